"""What is said of a job that hangs: the finding of a verdict, and what each rank is doing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from torchdoctor import steps
from torchdoctor.facts import Facts
from torchdoctor.hang import books, stacks
from torchdoctor.hang.blame import Verdict, moves, waited
from torchdoctor.hang.records import Entry, Frame, Job, Rank
from torchdoctor.model import Confidence, Evidence, Finding, Layer, Location, Severity
from torchdoctor.registry import Check
from torchdoctor.tables import load

FAMILY = "distributed"
FINDS = (
    *("rank-stopped", "rank-died", "rank-raised", "rank-stuck", "uneven-steps-hang"),
    *("slow-rank-timeout", "collective-mismatch", "collective-stuck"),
)
NO_HANG = ("none", "ended", "unknown")
MOST = 8
"""Ranks that are named, or shown as evidence."""
HALF = 0.5
"""Of the time-out; from then on a slow rank is more than worth knowing."""
SOON = 30.0
"""Seconds; who waits no longer than that may be waiting for one that is only slow."""
ABOUT = """Which rank of a job that hangs is behind, where it is, and what the others wait for.

A collective ends when every rank of its group has called it. So in a job that hangs most ranks wait
in one and the same call, and the cause is at the one that has not come there: stopped, killed, at
the end of its script with fewer batches, in another call, or in code that does not get on.

What is asked: the Flight Recorder of torch, which numbers the collectives of each group, so that
the rank with the smaller number is behind, and two different calls under one number are a mismatch;
the stacks of the ranks of this machine (py-spy where it is installed, else faulthandler in a rank
that was armed); NCCL's own RAS threads, where they answer; and the kernel. The ranks are looked at
twice, and what moved in between is no hang. A rank that is not armed is never signalled.

``torchdoctor.training.arm()``, called once before init_process_group, gives a script a heartbeat,
stacks on SIGUSR1, and dumps of the Flight Recorder, which this verb then finds by itself. Without
it only NCCL's dumps (TORCH_NCCL_DUMP_ON_TIMEOUT=1) and the stacks are there.

Neighbours: ``torchdoctor all-reduce`` tries whether ranks can reach each other at all; the check
``collectives`` reads what a job printed before it died.

Sources: https://docs.pytorch.org/tutorials/prototype/flight_recorder_tutorial.html,
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html"""
NOT_KNOWN = "nothing told who waits for whom"


def as_check() -> Check:
    """Return this verb in the form in which checks are explained and listed."""
    return Check("hang", FAMILY, ABOUT, (), frozenset(), (), FINDS, lambda: iter(()))


def finding(verdict: Verdict, job: Job, *, short: bool = False) -> Finding | None:
    """Return *verdict* on *job* as a finding; None where there is no hang, or it is not known.

    *short*: files are named without their folders, for others to read.
    """
    if verdict.cause in NO_HANG:
        return None
    row = load("hang")["cause"][verdict.cause]
    words = _words(verdict, job, short=short)
    step = steps.by_hand(
        f"mend-{verdict.cause}",
        row["title"].format_map(words),
        why="The other ranks wait only because of it."
        if verdict.ranks
        else "Until then the ranks wait for each other.",
        layer=Layer[row["layer"].upper()],
        cost=steps.SMALL,
        effect=_as_it_is,
        bash=tuple(c.format_map(words) for c in row.get("commands", ())),
    )
    severity: Severity = row["severity"]
    if verdict.cause == "slow" and _is_late(verdict, job):
        severity = "warning"
    given: Confidence = row.get("confidence", "likely" if _is_early(verdict, job) else "certain")
    return Finding(
        row["name"],
        severity,
        row["summary"].format_map(words),
        _evidence(verdict, job, short=short),
        (step,) if severity != "note" else (),
        confidence=verdict.confidence if verdict.confidence != "certain" else given,
        family=FAMILY,
        location=_location(verdict, job, short=short),
        where=where(verdict),
    )


def where(verdict: Verdict) -> Mapping[str, int | str]:
    """Return the rank to blame, and the collective that the others wait in."""
    place: dict[str, int | str] = {"rank": verdict.ranks[0] if verdict.ranks else "none"}
    if len(verdict.ranks) > 1:
        place["ranks"] = ",".join(map(str, verdict.ranks))
    if verdict.entry is not None:
        place["collective"] = verdict.entry.number
        place["operation"] = verdict.entry.operation
    elif verdict.operation:
        place["operation"] = verdict.operation
    if verdict.group:
        place["group"] = verdict.group
    return place


def headline(verdict: Verdict, job: Job) -> str:
    """Return the first line, where there is no hang or nothing is known of one."""
    looked = f"looked at twice within {job.watched:.0f} s" if job.live else "by what they left"
    many = "1 rank" if len(job.ranks) == 1 else f"{len(job.ranks)} ranks"
    if verdict.cause == "ended":
        return f"No hang: {many} came to the end of the script."
    if verdict.cause == "none" and job.live:
        return f"No hang: {many} get on ({looked})."
    if verdict.cause == "none":
        return f"No hang: of {many} none waits for another ({looked})."
    return f"Cannot tell whether the job hangs, or which of {many} is behind: {NOT_KNOWN}."


def told(rank: Rank, *, short: bool = False) -> str:
    """Return in one line what is known of a rank."""
    parts = []
    if rank.alive is False:
        parts.append("ended by itself" if rank.beat and rank.beat.ended else "not there any more")
    elif rank.kernel is not None and rank.kernel.stopped:
        parts.append("stopped")
    elif rank.kernel is not None and rank.kernel.seconds:
        parts.append("at work" if moves(rank) else "stands still")
    one = stacks.doing(rank.stack)
    if one.waits:
        parts.append(f"in {one.operation}")
    if one.place is not None:
        parts.append(f"at {at(one.place, short=short)}")
    if entry := _last(rank):
        state = "done" if entry.done else "not done"
        parts.append(f"last called {named(entry)} ({state})")
    elif rank.beat is not None and (status := rank.beat.status.get(books.DEFAULT[0])):
        parts.append(f"last called collective {status.enqueued}")
    if not rank.stack and rank.kernel is not None and rank.kernel.wchan:
        parts.append(f"in the kernel at {rank.kernel.wchan}")
    return ", ".join(parts) or "nothing is known of it"


def named(entry: Entry) -> str:
    """Return a call with its number: "all_reduce of Float [3], collective 4 of group 0"."""
    kind = "message" if entry.p2p else "collective"
    group = "the default group" if _is_default(entry) else f"group {entry.group}"
    if entry.description and not _is_default(entry):
        group += f" ({entry.description})"
    what = "" if entry.operation == "collective" else f"{books.called(entry)}, "
    return f"{what}{kind} {entry.number} of {group}"


def at(frame: Frame, *, short: bool) -> str:
    """Return a place in code: train.py:12, in step."""
    file = frame.file.replace("\\", "/").rpartition("/")[2] if short else frame.file
    name = "" if frame.function in ("<module>", "") else f", in {frame.function}"
    return f"{file}:{frame.line}{name}"


# ---- words --------------------------------------------------------------------------------------


class _Values(defaultdict[str, str]):
    """What a sentence may name."""

    def __missing__(self, key: str) -> str:
        return "?"


def _words(verdict: Verdict, job: Job, *, short: bool) -> _Values:
    words = _Values(str)
    words["who"] = who(verdict.ranks)
    words["ranks"] = who(verdict.ranks).lower()
    words["wait"] = _wait(verdict)
    words["others"] = _others(verdict, job)
    words["group"] = verdict.group
    words["odd"] = f" ({who(verdict.ranks).lower()} apart)" if verdict.ranks else ""
    words["what"] = str(verdict.values.get("what", ""))
    words["raised"] = str(verdict.values.get("raised", ""))
    if verdict.entry is not None:
        kind = "message" if verdict.entry.p2p else "collective"
        words["number"] = f"{kind} {verdict.entry.number} of group {verdict.group}"
    else:
        words["number"] = "next collective"
    words["values"] = _calls(verdict, short=short)
    first = next((rank for n in verdict.ranks if (rank := job.rank(n))), None)
    place = _place(first)
    words["where"] = f", at {at(place, short=short)}" if place else _after(first)
    words["where_now"] = _now(first, place, short=short)
    one = len(verdict.ranks) <= 1
    words["is"], words["has"] = ("is", "has") if one else ("are", "have")
    words["does"] = "does" if one else "do"
    if first is not None:
        words["pid"] = str(first.pid or "PID")
        words["state"] = first.kernel.state if first.kernel else ""
    return words


def _after(rank: Rank | None) -> str:
    """Return what a rank has called last, of which no stack is there."""
    if rank is None:
        return ""
    if entry := _last(rank):
        return f", after {named(entry)}"
    status = rank.beat.status.get(books.DEFAULT[0]) if rank.beat else None
    return f", after collective {status.enqueued} of the default group" if status else ""


def _now(rank: Rank | None, place: Frame | None, *, short: bool) -> str:
    """Return where the first rank to blame is, by what is known of it."""
    if rank is None:
        return "nothing is known of where it is"
    name = f"rank {rank.rank}"
    if place is not None:
        return f"{name} is at {at(place, short=short)}"
    if entry := _last(rank):
        return f"the last call of {name} was {named(entry)}"
    if rank.kernel is not None and rank.kernel.wchan:
        return f"{name} is in the kernel at {rank.kernel.wchan}"
    status = rank.beat.status.get(books.DEFAULT[0]) if rank.beat else None
    if status:
        return f"the last call of {name} was collective {status.enqueued} of the default group"
    return f"where {name} is, is not known"


def _wait(verdict: Verdict) -> str:
    if verdict.entry is not None:
        return named(verdict.entry)
    return verdict.operation or "what the others wait in"


def _others(verdict: Verdict, job: Job) -> str:
    """Return who waits, in what, and for how long."""
    if not verdict.waiting:
        return "the others wait for it"
    does = "waits" if len(verdict.waiting) == 1 else "wait"
    what = f" in {_wait(verdict)}" if verdict.cause in ("stopped", "died", "raised", "left") else ""
    seconds = waited(job, verdict.entry) if job.live else None
    long = f" for {seconds:.0f} s so far" if seconds is not None else ""
    there = "" if what else " there"
    if verdict.cause == "fewer":
        does, there = ("has" if does == "waits" else "have"), ""
        return f"{who(verdict.waiting).lower()} {does}"
    return f"{who(verdict.waiting).lower()} {does}{what or there}{long}"


def _calls(verdict: Verdict, *, short: bool) -> str:
    """Return what each rank called, the same of several ranks once."""
    calls = verdict.values.get("calls")
    places = verdict.values.get("places")
    if not isinstance(calls, Mapping):
        return ""
    by_call: dict[str, list[int]] = {}
    for rank, call in calls.items():
        by_call.setdefault(str(call), []).append(int(rank))
    told = []
    for call, ranks in by_call.items():
        place = places.get(ranks[0]) if isinstance(places, Mapping) else None
        shown = str(place).replace("\\", "/").rpartition("/")[2].rstrip(")") if place else ""
        if place and not short:
            shown = str(place).partition(" (")[2].rstrip(")")
        told.append(f"{who(ranks).lower()}: {call}{f' at {shown}' if shown else ''}")
    return "; ".join(told[:MOST])


def who(ranks: Sequence[int]) -> str:
    """Return "Rank 1", "Ranks 1 and 2", or of many the first ones."""
    if not ranks:
        return "A rank"
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    if len(ranks) > MOST:
        shown = ", ".join(map(str, ranks[:MOST]))
        return f"Ranks {shown} and {len(ranks) - MOST} more"
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


# ---- evidence -----------------------------------------------------------------------------------


def _evidence(verdict: Verdict, job: Job, *, short: bool) -> tuple[Evidence, ...]:
    """Return what is known of those to blame, and of some that wait."""
    ordered = sorted(
        job.ranks,
        key=lambda r: (r.rank not in verdict.ranks, r.rank not in verdict.waiting, r.rank),
    )
    shown = [
        Evidence(f"hang.rank {rank.rank}", told(rank, short=short), source(rank))
        for rank in ordered[:MOST]
    ]
    if not shown and verdict.entry is not None:
        shown = [Evidence("hang.collective", named(verdict.entry), "torchfrtrace")]
    return tuple(shown)


def source(rank: Rank) -> str:
    """Return where what is known of a rank comes from."""
    some = [
        rank.stack_from,
        "Flight Recorder" if rank.dump else "",
        "heartbeat" if rank.beat else "",
        "/proc" if rank.kernel else "",
    ]
    return ", ".join(filter(None, some)) or "the launcher's variables"


def _place(rank: Rank | None) -> Frame | None:
    return stacks.doing(rank.stack).place if rank is not None else None


def _last(rank: Rank) -> Entry | None:
    """Return what a rank called last; what it waits in comes first."""
    entries = rank.dump.entries if rank.dump else ()
    pending = next((entry for entry in entries if not entry.done), None)
    return pending or (entries[-1] if entries else None)


def _is_default(entry: Entry) -> bool:
    return entry.group == books.DEFAULT[0] or entry.description == books.DEFAULT[1]


def _is_late(verdict: Verdict, job: Job) -> bool:
    """Tell whether half of the others' patience is over."""
    entry, seconds = verdict.entry, waited(job, verdict.entry)
    return bool(entry and entry.timeout and seconds and seconds * 1000 > HALF * entry.timeout)


def _is_early(verdict: Verdict, job: Job) -> bool:
    """Tell whether the others have waited for so short a time that it may end by itself."""
    seconds = waited(job, verdict.entry)
    return job.live and verdict.cause == "late" and seconds is not None and seconds < SOON


def _location(verdict: Verdict, job: Job, *, short: bool) -> Location | None:
    """Return where the rank to blame is in its own code."""
    rank = next((rank for number in verdict.ranks if (rank := job.rank(number))), None)
    place = _place(rank)
    if place is None:
        return None
    file = place.file.replace("\\", "/").rpartition("/")[2] if short else place.file
    return Location(file, place.line or None)


def _as_it_is(facts: Facts) -> Facts:
    """Change no fact of the machine: the step is about a job."""
    return facts
