"""Who is to blame for an all_reduce that failed: the stage, the rank or the link, the cause.

Pure. What one rank says of another is evidence and never the cause; so a rank's own error comes
first, then one that died without a word, one that was stopped, what cannot be reached, and last
whoever is furthest behind. Where all are equally far it is no rank, but what is between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from torchdoctor.distributed.stages import FIRST, LAST, NUMBERS, PLACE
from torchdoctor.facts import AllReduce, RankEvent, RankRun
from torchdoctor.tables import load, symptoms

Link = tuple[int, int]

GROUP = ("differs", "same-gpu", "loopback", "wrong-data")
"""What every rank finds alike, with the ranks that it is about."""
BETWEEN = ("refused", "timeout", "unreachable", "no-address", "slow", "stalled", "stranger")
"""What one rank finds of its way to another."""
ECHO_WHY = ("missing", "no-port")
WAITED = ("gloo-timed-out", "store-timed-out", "client-timed-out", "gloo-connect-failed")
"""Messages of one who waited in vain, for whichever reason."""
STORE_ERRORS = ("DistNetworkError", "DistStoreError", "TimeoutError")
"""What torch raises when the store, or whoever should have used it, is gone."""
MISMATCH = ("gloo-size-mismatch", "collective-mismatch", "nccl-collective-mismatch")
WATCHDOG = ("watchdog-timeout", "watchdog-took-down", "watchdog-stuck")
"""torch ends a process that has waited for NCCL for too long: it waited, and did not die."""
NCCL_FAILED = ("nccl-error",)
"""torch's exception for whatever fails in NCCL; what it was stands in NCCL's own log."""
ASKED = f"ALLREDUCE [{NUMBERS}] Float"
"""The collective that was to be called, as torch's fingerprint has it."""
STAGE_KINDS = ("enter", "call", "ok", "error")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where it failed, why in one word, and whose fault it is: ranks, links, or neither."""

    stage: str
    cause: str
    ranks: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)
    said: str = ""
    """What the rank, or whoever noticed, said."""


def blame(run: AllReduce) -> Verdict | None:
    """Return who is to blame for how *run* ended; None where it came to its end."""
    if run.ranks and all(last(rank).stage == LAST for rank in run.ranks) and not _lacking(run):
        return None
    rules: tuple[Callable[[AllReduce], Verdict | None], ...] = (
        _never_started,
        _own_error,
        _mismatch,
        _died,
        _stopped,
        _unreachable,
        _absent,
        _behind,
    )
    return next(verdict for rule in rules if (verdict := rule(run)) is not None)


def last(rank: RankRun) -> RankEvent:
    """Return the last event of a stage that *rank* told; before any, that it was to be started."""
    events = [event for event in rank.events if event.kind in STAGE_KINDS]
    return events[-1] if events else RankEvent(FIRST, "", 0.0)


def error_of(rank: RankRun) -> RankEvent | None:
    """Return the first error that *rank* told."""
    return next((event for event in rank.events if event.kind == "error"), None)


def why(event: RankEvent) -> str:
    """Return the word by which a rank told what it found out by itself."""
    return str(event.values.get("why", ""))


def message(event: RankEvent | None) -> str:
    """Return what was said in an error."""
    return str(event.values.get("message", "")) if event else ""


def fact(rank: RankRun, stage: str, name: str) -> object:
    """Return what *rank* told of *name* in *stage*; None where it did not."""
    told = (e.values[name] for e in rank.events if e.stage == stage and name in e.values)
    return next(told, None)


# ---- the rules, in their order -------------------------------------------------------------------


def _lacking(run: AllReduce) -> tuple[int, ...]:
    known = {*run.unheard, *(rank.rank for rank in run.ranks)}
    return tuple(sorted(set(range(run.world)) - known))


def _never_started(run: AllReduce) -> Verdict | None:
    silent = [
        rank
        for rank in run.ranks
        if not rank.started or (not last(rank).kind and not _ended_itself(rank))
    ]
    ranks = sorted({*_lacking(run), *(rank.rank for rank in silent)})
    if not ranks:
        return None
    reason = next((rank.reason for rank in silent if rank.reason), "")
    return Verdict(FIRST, "not-started", tuple(ranks), said=reason)


def _own_error(run: AllReduce) -> Verdict | None:
    """Return the first error that is no echo of another rank's."""
    own = [
        (event, rank)
        for rank in run.ranks
        if (event := error_of(rank)) is not None and _is_own(event)
    ]
    if not own:
        return None
    event, rank = min(own, key=lambda pair: (PLACE.get(pair[0].stage, 0), pair[0].at))
    cause = why(event) or _named(event, rank)
    if cause in GROUP and why(event):
        ranks = _numbers(event.values.get("ranks"))
    else:
        alike = (
            other
            for e, other in own
            if (why(e) or _named(e, other), e.stage) == (cause, event.stage)
        )
        ranks = tuple(sorted(other.rank for other in alike)) or (rank.rank,)
    return Verdict(event.stage, cause, ranks, values=event.values, said=message(event))


def _named(event: RankEvent, rank: RankRun) -> str:
    """Return the cause that an exception of torch stands for, or what NCCL logged before it."""
    known = load("all_reduce")["message"]
    logged = rank.symptoms if set(event.symptoms) & set(NCCL_FAILED) else ()
    return next((known[name] for name in (*event.symptoms, *logged) if name in known), "raised")


def _is_own(event: RankEvent) -> bool:
    said = why(event)
    if said:
        return said not in (*BETWEEN, *ECHO_WHY, "links")
    if event.values.get("type") in STORE_ERRORS:
        return False
    return not set(event.symptoms) & {*symptoms.echoes(), *WAITED, *MISMATCH}


def _mismatch(run: AllReduce) -> Verdict | None:
    """Return who called another collective than the others, or with other sizes."""
    prints = run.fingerprints or next(
        (again.fingerprints for again in run.again.values() if again.fingerprints), {}
    )
    told = any(set(MISMATCH) & {*rank.symptoms, *_of_errors(rank)} for rank in run.ranks)
    if not (prints or told):
        return None
    stages = [last(rank).stage for rank in run.ranks]
    stage = max(stages, key=lambda name: PLACE.get(name, 0), default=FIRST)
    odd = _odd(prints)
    values = {f"rank {rank}": called for rank, called in sorted(prints.items())}
    return Verdict(stage, "mismatch", odd, values=values, said=_first_said(run))


def _odd(prints: Mapping[int, str]) -> tuple[int, ...]:
    """Return the ranks whose collective is not the one that was to be called."""
    if len(set(prints.values())) <= 1:
        return ()
    asked = next((p for p in prints.values() if p == ASKED), None)
    common = asked or Counter(prints.values()).most_common(1)[0][0]
    return tuple(sorted(rank for rank, called in prints.items() if called != common))


def _ended_itself(rank: RankRun) -> bool:
    return not rank.ended_by_us and (rank.signal is not None or rank.exit_code is not None)


def _died(run: AllReduce) -> Verdict | None:
    """Return who ended first without having said why."""
    dead = [
        rank
        for rank in run.ranks
        if _ended_itself(rank)
        and last(rank).stage != LAST
        and error_of(rank) is None
        and not set(rank.symptoms) & set(WATCHDOG)
    ]
    if not dead:
        return None
    first = min(dead, key=lambda rank: (rank.ended_at or 0.0, rank.rank))
    how: dict[str, object] = {"signal": first.signal, "exit_code": first.exit_code}
    return Verdict(last(first).stage, "died", (first.rank,), values=how)


def _stopped(run: AllReduce) -> Verdict | None:
    still = [rank for rank in run.ranks if rank.state[:1] in ("T", "t") and rank.state]
    if not still:
        return None
    ranks = tuple(sorted(rank.rank for rank in still))
    return Verdict(last(still[0]).stage, "stopped", ranks, values={"state": still[0].state})


def _unreachable(run: AllReduce) -> Verdict | None:
    """Return the links that were found not to work."""
    found = [
        ((rank.rank, peer), event, one)
        for rank in run.ranks
        if (event := error_of(rank)) is not None
        for one in _ways(event)
        if isinstance(peer := one.get("peer"), int)
    ]
    if not found:
        return None
    _, event, values = min(found, key=lambda item: PLACE.get(item[1].stage, 0))
    here = [item for item in found if item[1].stage == event.stage]
    links = tuple(sorted({(min(a, b), max(a, b)) for (a, b), _, _ in here}))
    cause = Counter(str(one.get("why")) for _, _, one in here).most_common(1)[0][0]
    # At first everybody goes to rank 0, so that it is at the end of every link.
    ranks = _in_all(links) if event.stage == "pairwise" else ()
    said = str(values.get("message") or message(event))
    return Verdict(event.stage, f"link-{cause}", ranks, links, values=values, said=said)


def _ways(event: RankEvent) -> list[Mapping[str, object]]:
    """Return the ways to other ranks that an error tells of."""
    told = event.values.get("links")
    if isinstance(told, list):
        return [one for one in told if isinstance(one, Mapping)]
    return [event.values] if why(event) in BETWEEN else []


def _in_all(links: tuple[Link, ...]) -> tuple[int, ...]:
    """Return the rank that is at one end of each of several links, if there is one."""
    if len(links) < 2:  # noqa: PLR2004 - one link has two ends, and none is likelier
        return ()
    common = set(links[0]).intersection(*map(set, links[1:]))
    return tuple(sorted(common))


def _absent(run: AllReduce) -> Verdict | None:
    """Return who never came to the meeting point, of those that nothing was heard of."""
    for rank in run.ranks:
        event = error_of(rank)
        if event is not None and why(event) == "missing":
            gone = set(_numbers(event.values.get("missing"))) & set(run.unheard)
            if gone:
                links = tuple(sorted((min(rank.rank, r), max(rank.rank, r)) for r in gone))
                ranks = tuple(sorted(gone))
                return Verdict(event.stage, "absent", ranks, links, said=message(event))
    return None


def _behind(run: AllReduce) -> Verdict:
    """Return who is furthest behind; where nobody is, or only by a network, the link."""
    place = {rank.rank: _progress(rank) for rank in run.ranks if last(rank).stage != LAST}
    if not place:  # a record without ranks
        return Verdict(FIRST, "not-started")
    least = min(place.values())
    behind = [rank for rank in run.ranks if place.get(rank.rank) == least]
    stage = last(behind[0]).stage
    waiting = all(last(rank).kind != "enter" for rank in behind)
    others = [rank for rank in run.ranks if rank not in behind]
    links = _between(behind, others or behind)
    if waiting and links:
        return Verdict(stage, "link-lost", (), links, said=_first_said(run))
    if not others and run.unheard:
        far = {(min(a.rank, b), max(a.rank, b)) for a in behind for b in run.unheard}
        return Verdict(stage, "link-lost", (), tuple(sorted(far)), said=_first_said(run))
    if not others:
        return Verdict(stage, "stuck", said=_first_said(run))
    ranks = tuple(sorted(rank.rank for rank in behind))
    return Verdict(stage, "late", ranks, values={"kind": last(behind[0]).kind})


def _progress(rank: RankRun) -> int:
    """Return how far a rank has come: it waits in a call, or has given up there, alike."""
    event = last(rank)
    kind = {"": 0, "enter": 0, "call": 1, "error": 1, "ok": 2}[event.kind]
    return PLACE.get(event.stage, 0) * 3 + kind


def _between(some: Iterable[RankRun], others: Iterable[RankRun]) -> tuple[Link, ...]:
    """Return the links between ranks of two networks."""
    known = {rank.rank: fact(rank, "facts", "network") for rank in (*some, *others)}
    if None in known.values():
        return ()
    pairs = {
        (min(one.rank, other.rank), max(one.rank, other.rank))
        for one in some
        for other in others
        if known[one.rank] != known[other.rank]
    }
    return tuple(sorted(pairs))


def _of_errors(rank: RankRun) -> tuple[str, ...]:
    return tuple(name for event in rank.events for name in event.symptoms)


def _first_said(run: AllReduce) -> str:
    errors = [event for rank in run.ranks if (event := error_of(rank)) is not None]
    return message(min(errors, key=lambda event: event.at, default=None))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(v for v in value if isinstance(v, int)) if isinstance(value, list) else ()
