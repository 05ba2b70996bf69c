"""Which rank is behind in a job that hangs, in what, and what the others wait for.

Pure. In this order: a rank that was stopped or is gone; what the Flight Recorder has of all ranks
(calls that do not fit together, then who has not come to the collective that others wait in); what
NCCL says; stacks; how far the heartbeats were; where the kernel says that the ranks sleep. What was
looked at twice and moved in between is no hang.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from torchdoctor.hang import books, recorded, stacks
from torchdoctor.hang.records import Communicator, Entry, Job, Rank, RasRank
from torchdoctor.hang.seen import NONE, SLEEPS, UNKNOWN, Verdict, is_elsewhere, moves, waited

__all__ = ["Verdict", "blame", "moves", "waited"]

ECHOES = ("RuntimeError", "TimeoutError", "DistBackendError", "DistNetworkError", "DistStoreError")
"""What torch raises in a rank that waited for one that is gone; it may be a rank's own, too."""


def blame(job: Job) -> Verdict:
    """Return the verdict on *job*: ``none`` where it does not hang, ``unknown`` where not told."""
    rules: tuple[Callable[[Job], Verdict | None], ...] = (
        _stopped,
        _gone,
        recorded.mismatch,
        recorded.recorded,
        recorded.torchfrtrace,
        _nccl,
        _stacked,
        _beaten,
        _asleep,
        _finished,
        _moving,
    )
    return next((verdict for rule in rules if (verdict := rule(job)) is not None), UNKNOWN)


# ---- stopped, gone -------------------------------------------------------------------------------


def _stopped(job: Job) -> Verdict | None:
    still = [r.rank for r in job.ranks if r.kernel is not None and r.kernel.stopped]
    return _with_wait(job, "stopped", still) if still else None


def _gone(job: Job) -> Verdict | None:
    """Return who is not there any more while others are.

    An exception that only says that another rank is gone comes last, whatever came first.
    """
    if not any(rank.alive for rank in job.ranks) and job.live:
        return None
    gone = [rank for rank in job.ranks if rank.alive is False or _is_ending(rank)]
    if len(gone) == len(job.ranks) and not any(rank.beat and rank.beat.ended for rank in gone):
        return None
    ended = [rank for rank in gone if rank.beat is not None and rank.beat.ended]
    raised = {rank.rank: rank.beat.raised for rank in ended if rank.beat and rank.beat.raised}
    own = [number for number, name in raised.items() if name not in ECHOES]
    died = [rank.rank for rank in gone if rank not in ended]
    left = [rank.rank for rank in ended if rank.rank not in raised]
    if len(left) == len(job.ranks) or (left and not (own or died) and _others_get_on(job, gone)):
        return None
    if died and not own and (first := _left_before(job, left, died)):
        return _with_wait(job, "left", first)
    for cause, ranks in (("raised", own), ("died", died), ("left", left), ("raised", [*raised])):
        if ranks:
            return _with_wait(job, cause, ranks, {"raised": raised.get(ranks[0], "")})
    return None


def _is_ending(rank: Rank) -> bool:
    """Tell whether the script of a rank has ended, and its process only unloads what it had.

    What an earlier process of the same rank left does not count.
    """
    return rank.beat is not None and rank.beat.ended and rank.beat.pid == rank.pid is not None


def _others_get_on(job: Job, gone: Collection[Rank]) -> bool:
    """Tell whether nobody waits for those that left: one rank alone may still save a model."""
    here = [rank for rank in job.ranks if rank.alive and rank not in gone]
    waiting = {wait.rank for wait in books.waits(job)}
    return bool(here) and all(
        moves(rank) and rank.rank not in waiting and stacks.doing(rank.stack).kind == "other"
        for rank in here
    )


def _left_before(job: Job, left: list[int], died: list[int]) -> list[int]:
    """Return those of *left* whose end came before the last heartbeat of all who *died*.

    Whoever leaves with fewer collectives than the others makes them fail, one after the other; and
    a launcher then ends those that are left. The heartbeats say which of it was first.
    """
    beats = {rank.rank: rank.beat for rank in job.ranks if rank.beat is not None}
    called = {
        number: beat.status[books.DEFAULT[0]].enqueued
        for number, beat in beats.items()
        if books.DEFAULT[0] in beat.status
    }
    if any(number not in beats for number in died):
        return []
    soonest = min(beats[number].at for number in died)
    most = max(called.values(), default=-1)
    return [n for n in left if beats[n].at < soonest and called.get(n, most) < most]


def _with_wait(
    job: Job, cause: str, ranks: list[int], values: Mapping[str, object] | None = None
) -> Verdict:
    """Return that *ranks* are to blame, with what the others wait in, as far as that is told."""
    blamed = tuple(sorted(ranks))
    others = [wait for wait in books.waits(job) if wait.rank not in blamed]
    first = others[0] if others else None
    inside = [
        rank.rank
        for rank in job.ranks
        if rank.rank not in blamed and stacks.doing(rank.stack).waits
    ]
    waiting = {wait.rank for wait in others} | set(inside)
    operation = next((stacks.doing(r.stack).operation for r in job.ranks if r.rank in inside), "")
    return Verdict(
        cause,
        blamed,
        tuple(sorted(waiting)),
        first.group if first else "",
        first.entry if first else None,
        operation,
        values=values or {},
    )


# ---- NCCL ----------------------------------------------------------------------------------------


def _nccl(job: Job) -> Verdict | None:
    """Return who does not answer NCCL, or has launched fewer collectives, at both looks."""
    before = {one.name: one for one in job.ras.earlier} if job.ras is not None else {}
    for one in job.ras.communicators if job.ras is not None else ():
        heard = [rank for rank in one.ranks if not rank.missing]
        silent = [rank for rank in one.ranks if rank.missing and (rank.unresponsive or rank.dead)]
        if silent:
            return Verdict(
                "dead" if all(rank.dead for rank in silent) else "silent",
                _in_job(job, one, silent),
                _in_job(job, one, heard),
                one.name,
                confidence="likely",
            )
        earlier = before.get(one.name)
        if earlier is None or [r.counts for r in earlier.ranks] != [r.counts for r in one.ranks]:
            continue
        for kind, most in one.most.items():
            fewer = [r for r in one.ranks if kind in r.counts and r.counts[kind] < most]
            if fewer:
                ahead = [rank for rank in heard if rank not in fewer]
                entry = Entry(one.name, most, kind, "nccl")
                ranks = _in_job(job, one, fewer)
                others = _in_job(job, one, ahead)
                return Verdict("late", ranks, others, one.name, entry, confidence="likely")
    return None


def _in_job(job: Job, communicator: Communicator, some: list[RasRank]) -> tuple[int, ...]:
    """Return which ranks of the job some of a communicator are, as far as that is known.

    A communicator counts its ranks by itself; those of one for the whole job are the job's.
    """
    by_pid = {rank.pid: rank.rank for rank in job.ranks if rank.pid is not None}
    whole = communicator.size in (0, job.world)
    found = {by_pid.get(one.pid or 0, one.rank if whole else -1) for one in some}
    return tuple(sorted(found - {-1}))


# ---- stacks --------------------------------------------------------------------------------------


def _stacked(job: Job) -> Verdict | None:
    """Return who is elsewhere while the others are in a call that waits."""
    seen = {rank.rank: stacks.doing(rank.stack) for rank in job.ranks if rank.stack}
    inside = {number: one for number, one in seen.items() if one.waits and _held(job, number)}
    if not inside:
        return None
    outside = tuple(number for number in seen if is_elsewhere(job.rank(number)))
    first = next(iter(inside.values()))
    if outside:
        late = tuple(number for number in outside if not moves_of(job, number))
        cause = "late" if late or not job.live else "slow"
        return Verdict(
            cause,
            late or outside,
            tuple(sorted(inside)),
            operation=first.operation,
            confidence="likely",
        )
    if len(inside) < len(seen) or len(seen) < (job.world or 0):
        return None
    called = {number: one.operation for number, one in inside.items() if one.kind != "p2p"}
    if len(called) == len(inside) and len(set(called.values())) > 1:
        places = {n: str(one.place) for n, one in sorted(inside.items()) if one.place}
        return Verdict(
            "mismatch",
            _odd(called),
            tuple(sorted(inside)),
            operation=first.operation,
            confidence="likely",
            values={"what": "operation", "calls": dict(sorted(called.items())), "places": places},
        )
    return Verdict(
        "stuck", (), tuple(sorted(inside)), operation=first.operation, confidence="possible"
    )


def _odd(called: Mapping[int, str]) -> tuple[int, ...]:
    """Return the ranks that are in another call than most."""
    values = list(called.values())
    most = max(set(values), key=values.count)
    if values.count(most) * 2 <= len(values):
        return ()
    return tuple(sorted(number for number, one in called.items() if one != most))


def _held(job: Job, number: int) -> bool:
    """Tell whether a rank was seen not to get on, or was looked at only once."""
    rank = job.rank(number)
    return rank is not None and not moves(rank)


def moves_of(job: Job, number: int) -> bool:
    """Tell whether the rank *number* got on between the two looks."""
    rank = job.rank(number)
    return rank is not None and moves(rank)


# ---- what is left --------------------------------------------------------------------------------


def _beaten(job: Job) -> Verdict | None:
    """Return who is behind by the heartbeats alone."""
    far = {
        rank.rank: status
        for rank in job.ranks
        if rank.beat is not None and (status := rank.beat.status.get(books.DEFAULT[0])) is not None
    }
    if len(far) < 2 or any(moves(rank) for rank in job.ranks):  # noqa: PLR2004 - nobody to compare
        return None
    most = max(status.enqueued for status in far.values())
    waiting = tuple(sorted(r for r, s in far.items() if s.enqueued == most > s.completed))
    behind = tuple(sorted(r for r, s in far.items() if 0 <= s.enqueued < most))
    if not (waiting and behind):
        return None
    entry = Entry(books.DEFAULT[0], most, "collective")
    return Verdict("late", behind, waiting, entry.group, entry, confidence="likely")


def _asleep(job: Job) -> Verdict | None:
    """Return who sleeps for a time, while all others stand in a lock or on a socket."""
    asleep = [r.rank for r in job.ranks if r.kernel is not None and r.kernel.wchan in SLEEPS]
    others = [r for r in job.ranks if r.alive and r.rank not in asleep]
    if not asleep or not others or any(moves(rank) for rank in job.ranks):
        return None
    return Verdict("late", tuple(asleep), tuple(r.rank for r in others), confidence="possible")


def _finished(job: Job) -> Verdict | None:
    """Return that there is no hang where all have ended, or nobody waits for anything."""
    if job.ranks and all(rank.beat is not None and rank.beat.ended for rank in job.ranks):
        return Verdict("ended")
    entries = [rank.dump.entries for rank in job.ranks if rank.dump is not None]
    if not any(entries) or len(entries) < max(len(job.ranks), job.world or 1):
        return None
    if job.live:  # that nobody waits in a collective is not yet that they get on
        return NONE if any(map(recorded.gets_on, job.ranks)) else None
    return NONE if all(entry.done for each in entries for entry in each) else None


def _moving(job: Job) -> Verdict | None:
    """Return that every rank gets on, where that is what was seen."""
    here = [rank for rank in job.ranks if rank.alive]
    if here and job.live and all(map(moves, here)) and not _may_spin(here):
        return NONE
    return None


def _may_spin(ranks: list[Rank]) -> bool:
    """Tell whether the ranks may be waiting for a GPU, which keeps a processor busy."""
    return any(stacks.doing(rank.stack).kind in ("gpu", "") for rank in ranks)
