"""What a verdict on a job is, and what can be told of one rank by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torchdoctor.hang import stacks
from torchdoctor.hang.records import Entry, Job, Rank
from torchdoctor.model import Confidence

BUSY = 0.2
"""Share of a processor from which on a main thread is at work."""
SWITCHES = 5.0
"""A thread that gives the processor away so often in a second is getting on."""
SLEEPS = ("hrtimer_nanosleep", "do_nanosleep", "clock_nanosleep")
"""Where a thread is that sleeps for a time; nothing that waits for another rank is there."""
SECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong, whose fault it is, and what the others wait in."""

    cause: str
    ranks: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    group: str = ""
    entry: Entry | None = None
    operation: str = ""
    """What the others wait in, where only stacks say so."""
    confidence: Confidence = "certain"
    values: Mapping[str, object] = field(default_factory=dict)


NONE = Verdict("none")
UNKNOWN = Verdict("unknown")


def moves(rank: Rank) -> bool:
    """Tell whether the main thread of *rank* got on between the two looks."""
    seen = rank.kernel
    if seen is None or seen.seconds <= 0:
        return False
    return seen.cpu / seen.seconds >= BUSY or seen.switches / seen.seconds >= SWITCHES


def waited(job: Job, entry: Entry | None) -> float | None:
    """Return for how many seconds *entry* has been waited for; None where that is not known."""
    if entry is None or entry.created is None or job.looked_at is None:
        return None
    return max(0.0, job.looked_at - entry.created / SECONDS)


def is_elsewhere(rank: Rank | None) -> bool:
    """Tell whether a rank is in no call that waits, or may wait, for others.

    The stack of Python does not show a call such as ``work.wait()``, which is written in C++: so
    whoever neither moves nor sleeps in his own code may be waiting, too.
    """
    if rank is None:
        return False
    asleep = rank.kernel is not None and rank.kernel.wchan in SLEEPS
    if not rank.stack:
        return asleep
    one = stacks.doing(rank.stack)
    if one.may_wait:
        return False
    if one.kind == "loader" or asleep or rank.kernel is None:
        return True
    in_lock = rank.kernel.wchan.startswith("futex") or not rank.kernel.wchan
    return moves(rank) or not in_lock
