"""Compare what the ranks recorded: who waits for whom, in which collective, and who called another.

Pure. Collectives of one group have the same number on all its ranks, so that the rank with the
smaller last number is behind, and two ranks that called different things under one number do not
fit together. Sends and receives are counted for each pair of ranks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from torchdoctor.hang.records import Dump, Entry, Job, Rank, Sizes, Status

Key = tuple[str, str, tuple[int, ...]]
"""Backend, name and ranks of a group; no ranks where the dumps do not say them."""

DEFAULT = ("0", "default_pg")
ANY_SIZE = ("all_to_all", "barrier", "coalesced", "split", "new_window")
BY_INPUT = ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "allreduce")
BY_OUTPUT = ("reduce_scatter", "scatter")
PEERS = re.compile(r"(send|recv)\s+(\d+)\s*(?:->|<-)\s*(\d+)")


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank that waits, for the ranks that have not come to the same collective."""

    rank: int
    entry: Entry
    group: str
    members: tuple[int, ...]
    on: frozenset[int] = frozenset()
    unknown: frozenset[int] = frozenset()
    """Ranks of the group of which nothing is known."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What ranks called under one number that does not fit together."""

    group: str
    number: int
    what: str
    """operation, type or size."""
    calls: Mapping[int, Entry]
    odd: tuple[int, ...]
    """Those that differ from most; empty where there is no such thing as most."""


def waits(job: Job) -> list[Wait]:
    """Return who waits in what, the earliest of each rank and group first."""
    found: list[Wait] = []
    for key, books in _by_group(job).items():
        members, known = _members(job, key, books)
        found += _collective_waits(job, key, members, books, known=known)
        found += _p2p_waits(members, books)
    return sorted(found, key=lambda wait: (wait.entry.created or 0, wait.rank))


def mismatches(job: Job) -> list[Mismatch]:
    """Return the first thing that does not fit together, of each group."""
    return [
        found
        for key, books in _by_group(job).items()
        if (found := _mismatch(key, books)) is not None
    ]


def last(rank: Rank, group: str, backend: str = "") -> int | None:
    """Return the number of the last collective that *rank* called in *group*; None: not told."""
    dump = rank.dump
    if dump is None:
        return _far(rank.beat.status, group) if rank.beat is not None else None
    numbers = [
        entry.number
        for entry in dump.entries
        if entry.group == group and not entry.p2p and entry.backend in (backend, "")
    ]
    if numbers:
        return max(numbers)
    # What it called in this group may have been overwritten by what it called in others.
    far = _far(dump.status, group)
    return far if far is not None or not dump.whole else 0


def first_pending(dump: Dump | None) -> dict[tuple[str, str, bool], int]:
    """Return for each group the number of the first collective that *dump* has not done."""
    found: dict[tuple[str, str, bool], int] = {}
    for entry in dump.entries if dump else ():
        if not entry.done:
            key = (entry.backend, entry.group, entry.p2p)
            found[key] = min(entry.number, found.get(key, entry.number))
    return found


def called(entry: Entry) -> str:
    """Return what was called, with sizes and types: "all_reduce of Float [5, 7]"."""
    sizes = entry.input_sizes or entry.output_sizes
    types = entry.input_types or entry.output_types
    what = f"{types[0]} " if types else ""
    if not sizes:
        return entry.operation
    more = f" and {len(sizes) - 1} more" if len(sizes) > 1 else ""
    return f"{entry.operation} of {what}{list(sizes[0])}{more}"


# ---- by group -----------------------------------------------------------------------------------


def _by_group(job: Job) -> dict[Key, dict[int, list[Entry]]]:
    """Return the entries of each group, by rank."""
    books: dict[Key, dict[int, list[Entry]]] = {}
    for rank in job.ranks:
        for entry in rank.dump.entries if rank.dump else ():
            known = rank.dump.groups.get(entry.group) if rank.dump else None
            key = (entry.backend, entry.group, known.ranks if known else ())
            books.setdefault(key, {}).setdefault(rank.rank, []).append(entry)
    return books


def _members(job: Job, key: Key, books: Mapping[int, list[Entry]]) -> tuple[tuple[int, ...], bool]:
    """Return who is in a group, and whether that is known: gloo does not write it down."""
    _, name, ranks = key
    if ranks:
        return ranks, True
    description = next((e.description for entries in books.values() for e in entries), "")
    if name == DEFAULT[0] or description == DEFAULT[1]:
        many = job.world if job.world is not None else 0
        return tuple(sorted({*range(many), *(rank.rank for rank in job.ranks), *books})), True
    return tuple(sorted(books)), False


def _collective_waits(
    job: Job,
    key: Key,
    members: tuple[int, ...],
    books: Mapping[int, list[Entry]],
    *,
    known: bool,
) -> Iterator[Wait]:
    backend, group, _ = key
    far: dict[int, int] = {}
    for member in members:
        rank = job.rank(member)
        number = last(rank, group, backend) if rank else None
        if number is not None:
            far[member] = number
    others = {rank.rank for rank in job.ranks} if not known else set(members)
    unknown = frozenset(others - set(far))
    for rank_number, entries in books.items():
        pending = [entry for entry in entries if not (entry.done or entry.p2p)]
        if pending:
            entry = min(pending, key=lambda one: one.number)
            on = frozenset(member for member, number in far.items() if number < entry.number)
            yield Wait(rank_number, entry, group, members, on, unknown)


def _p2p_waits(members: tuple[int, ...], books: Mapping[int, list[Entry]]) -> Iterator[Wait]:
    made = {rank: Counter(_pair(e, members) for e in entries) for rank, entries in books.items()}
    for rank, entries in books.items():
        pending = [entry for entry in entries if entry.p2p and not entry.done]
        for entry in sorted(pending, key=lambda one: one.number)[:1]:
            pair = _pair(entry, members)
            if pair is None:
                continue
            kind, source, target = pair
            peer = target if kind == "send" else source
            other = ("recv" if kind == "send" else "send", source, target)
            if peer not in made:
                yield Wait(rank, entry, entry.group, members, unknown=frozenset({peer}))
                continue
            behind = made[peer][other] < made[rank][pair]
            yield Wait(rank, entry, entry.group, members, frozenset({peer} if behind else ()))


def _pair(entry: Entry, members: tuple[int, ...]) -> tuple[str, int, int] | None:
    """Return (send or recv, source, target) by the ranks of the job; None for a collective."""
    match = PEERS.match(entry.operation)
    if match is None:
        return None
    ends = [int(match[2]), int(match[3])]
    if members and max(ends) < len(members):  # they count within the group
        ends = [members[end] for end in ends]
    source, target = ends if match[1] == "send" else ends[::-1]
    return match[1], source, target


# ---- what does not fit --------------------------------------------------------------------------


def _mismatch(key: Key, books: Mapping[int, list[Entry]]) -> Mismatch | None:
    """Return the first number under which the ranks of a group called different things."""
    by_number: dict[int, dict[int, Entry]] = {}
    for rank, entries in books.items():
        for entry in entries:
            # One number may hold several, coalesced; the last stands for all of them.
            if not entry.p2p:
                by_number.setdefault(entry.number, {})[rank] = entry
    for number in sorted(by_number):
        calls = by_number[number]
        if len(calls) > 1 and (what := _differs(calls)):
            return Mismatch(key[1], number, what, calls, _odd(calls, what))
    return None


def _differs(calls: Mapping[int, Entry]) -> str:
    for what in ("operation", "type", "size"):
        if len({told for e in calls.values() if (told := _told(e, what)) is not None}) > 1:
            return what
    return ""


def _odd(calls: Mapping[int, Entry], what: str) -> tuple[int, ...]:
    """Return the ranks that are not of the majority."""
    votes = Counter(_told(entry, what) for entry in calls.values())
    (most, many), *others = votes.most_common()
    if others and others[0][1] == many:
        return ()
    return tuple(sorted(rank for rank, entry in calls.items() if _told(entry, what) != most))


def _told(entry: Entry, what: str) -> object:
    """Return what has to be the same on all ranks; None where it need not be, or is not known."""
    kind = _kind(entry.operation)
    if what == "operation":
        return kind
    if what == "type":
        types = entry.input_types or entry.output_types
        return types[0].rpartition("::")[2].lower() if types and kind != "barrier" else None
    if kind.startswith(ANY_SIZE) or entry.operation.endswith(("_v", "coalesced")):
        return None
    if kind.startswith(BY_OUTPUT):
        return _count(entry.output_sizes)
    if kind.startswith(BY_INPUT):
        return _count(entry.input_sizes)
    return None


def _kind(operation: str) -> str:
    """Return an operation without what tells two ways to call the same thing apart."""
    name = operation.lower().strip("_").split(" ")[0]
    for end in ("_into_tensor", "_tensor", "_single", "_base", "_oop"):
        name = name.removesuffix(end)
    return name


def _count(sizes: Sizes) -> int | None:
    """Return the numbers in a tensor: [2, 3] and [6] fit together."""
    return sum(prod(size) for size in sizes) if sizes else None


def _far(status: Mapping[str, Status], group: str) -> int | None:
    found = status.get(group)
    return found.enqueued if found is not None and found.enqueued >= 0 else None
