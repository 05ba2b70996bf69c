"""Who is behind by what the Flight Recorder has of all ranks. Pure."""

from __future__ import annotations

from torchdoctor.hang import books, stacks
from torchdoctor.hang.books import Mismatch, Wait
from torchdoctor.hang.records import Entry, Frame, Job, Rank
from torchdoctor.hang.seen import NONE, Verdict, is_elsewhere, moves
from torchdoctor.model import Confidence


def mismatch(job: Job) -> Verdict | None:
    """Return the first call that does not fit those of the other ranks."""
    pending = {(w.group, w.entry.number) for w in books.waits(job)}
    for found in books.mismatches(job):
        stuck = any(group == found.group and number >= found.number for group, number in pending)
        if stuck or not job.live:
            return _not_alike(job, found)
    return None


def _not_alike(job: Job, found: Mismatch) -> Verdict:
    others = tuple(sorted(set(found.calls) - set(found.odd))) if found.odd else ()
    entry = found.calls[others[0]] if others else next(iter(found.calls.values()))
    calls = {rank: books.called(one) for rank, one in sorted(found.calls.items())}
    places = {
        rank: str(place)
        for rank, one in sorted(found.calls.items())
        if (place := _called_at(job, rank, one)) is not None
    }
    return Verdict(
        "mismatch",
        found.odd,
        others,
        found.group,
        entry,
        values={"what": found.what, "calls": calls, "places": places},
    )


def _called_at(job: Job, number: int, entry: Entry) -> Frame | None:
    """Return where a rank made a call: as recorded, or where it is now, if it is still in it."""
    if entry.frames:
        return stacks.doing(entry.frames).place
    rank = job.rank(number)
    return stacks.doing(rank.stack).place if rank is not None and not entry.done else None


def recorded(job: Job) -> Verdict | None:
    """Return who has not come to the collective that others wait in."""
    waits = [wait for wait in books.waits(job) if _still(job, wait)]
    if not waits:
        if job.live:
            return NONE if any(map(_called_more, job.ranks)) else None
        return _fewer(job)
    waiting = {wait.rank for wait in waits}
    on = {rank for wait in waits for rank in wait.on}
    if behind := on - waiting:
        first = next(wait for wait in waits if wait.on & behind)
        return _behind(job, first, tuple(sorted(first.on & behind)), waits)
    return _circle(waits, "certain") if on else _on_nobody(job, waits, waiting)


def _on_nobody(job: Job, waits: list[Wait], waiting: set[int]) -> Verdict | None:
    """Return what it means that nobody is known to be behind of those that are waited for."""
    for first in waits:
        if unknown := first.unknown - waiting:
            return _without_a_dump(job, first, tuple(sorted(unknown)), waits)
    if any(wait.unknown for wait in waits) and len({wait.group for wait in waits}) > 1:
        return _circle(waits, "likely")
    return _all_there(job, waits)


def _circle(waits: list[Wait], confidence: Confidence) -> Verdict:
    """Return that those who wait wait for each other, each in another call."""
    first = next((wait for wait in waits if wait.on), waits[0])
    calls = {wait.rank: named_in(wait) for wait in sorted(waits, key=lambda wait: wait.rank)}
    waiting = tuple(sorted({wait.rank for wait in waits}))
    return Verdict(
        "order",
        (),
        waiting,
        first.group,
        first.entry,
        confidence=confidence,
        values={"calls": calls},
    )


def named_in(wait: Wait) -> str:
    """Return what a rank waits in, with its group: "all_reduce of Float [2] in group 1"."""
    return f"{books.called(wait.entry)} in group {wait.group}"


def _still(job: Job, wait: Wait) -> bool:
    """Tell whether a rank waited in the same collective at the first look, if there was one."""
    rank = job.rank(wait.rank)
    if rank is None or rank.earlier is None:
        return True
    key = (wait.entry.backend, wait.entry.group, wait.entry.p2p)
    return books.first_pending(rank.earlier).get(key) == wait.entry.number


def _behind(job: Job, first: Wait, behind: tuple[int, ...], waits: list[Wait]) -> Verdict:
    """Return that *behind* are behind: at work, or not getting on."""
    late = tuple(rank for rank in behind if not gets_on(job.rank(rank)))
    waiting = tuple(sorted({wait.rank for wait in waits if wait.group == first.group}))
    return Verdict("late" if late else "slow", late or behind, waiting, first.group, first.entry)


def gets_on(rank: Rank | None) -> bool:
    """Tell whether a rank was seen at work, or to have called something between two looks."""
    return rank is not None and (_called_more(rank) or moves(rank))


def _called_more(rank: Rank) -> bool:
    """Tell whether a rank called something between two looks."""
    if rank.earlier is None or rank.dump is None:
        return False
    groups = {(entry.group, entry.backend) for entry in rank.dump.entries}
    before = Rank(rank.rank, dump=rank.earlier)
    return any((books.last(rank, *g) or 0) > (books.last(before, *g) or 0) for g in groups)


def _without_a_dump(job: Job, first: Wait, unknown: tuple[int, ...], waits: list[Wait]) -> Verdict:
    """Return that a rank of which no dump is there may be the one; its stack may say more."""
    waiting = tuple(sorted({wait.rank for wait in waits}))
    outside = tuple(r for r in unknown if is_elsewhere(job.rank(r)))
    ranks = outside or unknown
    busy = all(gets_on(job.rank(rank)) for rank in ranks)
    cause = "slow" if busy and outside else "late" if outside else "no-dump"
    return Verdict(cause, ranks, waiting, first.group, first.entry, confidence="likely")


def _all_there(job: Job, waits: list[Wait]) -> Verdict | None:
    """Return what it means that all have come to the same collective, and nobody gets out of it."""
    first = waits[0]
    same = [w for w in waits if (w.group, w.entry.number) == (first.group, first.entry.number)]
    started = {wait.rank for wait in same if wait.entry.state == "started"}
    waiting = tuple(sorted({wait.rank for wait in same}))
    inside = set(first.members) & {rank.rank for rank in job.ranks}
    if started and (held := set(waiting) - started):
        return Verdict(
            "not-started", tuple(sorted(held)), tuple(sorted(started)), first.group, first.entry
        )
    if out := inside - set(waiting):
        ranks = tuple(sorted(waiting))
        return Verdict("not-completed", ranks, tuple(sorted(out)), first.group, first.entry)
    return Verdict("stuck", (), waiting, first.group, first.entry)


def _fewer(job: Job) -> Verdict | None:
    """Return who called fewer collectives of a group, where nothing says that anyone waits.

    gloo does not tell a call that ended from one that gave up: so it is in a dump that was written
    after the time-out.
    """
    for rank in job.ranks:
        for entry in reversed(rank.dump.entries if rank.dump else ()):
            if entry.p2p:
                continue
            fewer = [
                other.rank
                for other in job.ranks
                if other.dump is not None
                and any(e.group == entry.group for e in other.dump.entries)
                and (books.last(other, entry.group, entry.backend) or 0) < entry.number
            ]
            if fewer:
                ahead = tuple(r.rank for r in job.ranks if r.dump and r.rank not in fewer)
                return Verdict(
                    "fewer", tuple(sorted(fewer)), ahead, entry.group, entry, confidence="likely"
                )
            break
    return None


def torchfrtrace(job: Job) -> Verdict | None:
    """Return the first thing that torchfrtrace found at fault."""
    if not job.told:
        return None
    first = job.told[0]
    entry = Entry(
        first.group, first.number, first.operation, input_sizes=first.sizes, frames=first.frames
    )
    if first.missing:
        there = tuple(rank for rank in first.expected if rank not in first.missing)
        return Verdict("late", first.missing, there, first.group, entry, confidence="likely")
    calls: dict[int, str] = {rank: books.called(one) for rank, one in sorted(first.odd.items())}
    others = tuple(rank for rank in first.expected if rank not in first.odd)
    calls |= {rank: books.called(entry) for rank in others}
    return Verdict(
        "mismatch",
        tuple(sorted(first.odd)) if len(first.odd) < len(first.expected) - 1 else (),
        others,
        first.group,
        entry,
        confidence="likely",
        values={"what": "operation", "calls": dict(sorted(calls.items())), "places": {}},
    )
