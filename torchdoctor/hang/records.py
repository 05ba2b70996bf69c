"""What is known of a job that hangs: what each rank recorded, where it is, how it moves.

Values only; how they are read is the business of the other modules here, and what they mean of
``blame``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["scheduled", "started", "completed"]
Sizes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


@dataclass(frozen=True, slots=True)
class Entry:
    """One collective, or one send or receive, as a rank recorded it when it called it."""

    group: str
    number: int
    """Its place among the collectives of the group, or among the sends and receives; from 1."""
    operation: str
    """all_reduce, send 0->1, and so on, without the name of the backend."""
    backend: str = ""
    p2p: bool = False
    description: str = ""
    input_sizes: Sizes = ()
    output_sizes: Sizes = ()
    input_types: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()
    state: State = "scheduled"
    retired: bool = False
    created: int | None = None
    """Nanoseconds since the epoch."""
    timeout: int | None = None
    """Milliseconds."""
    frames: tuple[Frame, ...] = ()
    """From the innermost on."""

    @property
    def done(self) -> bool:
        """Return whether this rank has nothing to do with it any more.

        With gloo no event tells so; there an entry is retired once its call has returned. With
        NCCL one that is retired without being completed has timed out.
        """
        if self.state == "completed":
            return True
        return self.retired and self.backend in ("gloo", "mpi", "ucc")


@dataclass(frozen=True, slots=True)
class Group:
    """A process group; no ranks: the dump does not say who is in it."""

    name: str
    description: str = ""
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """How far a rank is in a group, by the numbers of its collectives; -1: not told."""

    enqueued: int = -1
    started: int = -1
    completed: int = -1


@dataclass(frozen=True, slots=True)
class Dump:
    """What the Flight Recorder of one rank has written."""

    rank: int
    version: str
    entries: tuple[Entry, ...] = ()
    groups: Mapping[str, Group] = field(default_factory=dict)
    status: Mapping[str, Status] = field(default_factory=dict)
    """By the number of the group in that process."""
    source: str = ""
    at: float | None = None
    """When it was written, in seconds since the epoch."""
    whole: bool = True
    """Whether it has all that was ever called, and nothing was overwritten or left out."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What an armed rank said last of itself."""

    rank: int
    world: int | None = None
    pid: int | None = None
    host: str = ""
    at: float = 0.0
    ended: bool = False
    """Whether its script came to its end."""
    raised: str = ""
    """What exception ended it, if one did."""
    step: int | None = None
    status: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the kernel says of a process, and how its main thread moved between two looks."""

    state: str = ""
    """R, S, D, T, Z and so on; empty where it is not known."""
    wchan: str = ""
    syscall: int | None = None
    seconds: float = 0.0
    """Between the two looks."""
    cpu: float = 0.0
    """Seconds on the processor meanwhile."""
    switches: int = 0
    """How often it gave the processor away meanwhile, of its own will."""

    @property
    def stopped(self) -> bool:
        """Return whether somebody stopped it."""
        return self.state[:1] in ("T", "t")

    @property
    def gone(self) -> bool:
        """Return whether there is no such process any more, but at most what is left of it."""
        return self.state[:1] in ("", "Z", "X")


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of the job, as far as it was seen."""

    rank: int
    pid: int | None = None
    host: str = ""
    alive: bool | None = None
    """None where that cannot be told from here."""
    kernel: Kernel | None = None
    stack: tuple[Frame, ...] = ()
    """Of the main thread, from the innermost frame on."""
    stack_from: str = ""
    why_no_stack: str = ""
    beat: Beat | None = None
    dump: Dump | None = None
    earlier: Dump | None = None
    """An earlier dump of the same rank, to see whether it got on."""
    armed: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """One collective that torchfrtrace found not to fit together."""

    group: str
    number: int
    operation: str
    sizes: Sizes = ()
    expected: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    odd: Mapping[int, Entry] = field(default_factory=dict)
    """What ranks called instead."""
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """All that is known of the job."""

    ranks: tuple[Rank, ...]
    world: int | None = None
    watched: float = 0.0
    """Seconds between the first and the last look; 0 for what was left on a disk."""
    looked_at: float | None = None
    """Seconds since the epoch."""
    live: bool = False
    ras: Ras | None = None
    told: tuple[Told, ...] = ()
    """What torchfrtrace made of the dumps, where that is all there is."""
    remarks: tuple[str, ...] = ()

    def rank(self, number: int) -> Rank | None:
        """Return the rank *number*, if anything is known of it."""
        return next((rank for rank in self.ranks if rank.rank == number), None)


@dataclass(frozen=True, slots=True)
class RasRank:
    """One rank of a communicator of NCCL, as its RAS threads know it."""

    rank: int
    """In the communicator."""
    host: str = ""
    pid: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    """Collective -> how many of them were launched."""
    missing: bool = False
    unresponsive: bool = False
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Communicator:
    """One communicator of NCCL."""

    name: str
    size: int
    ranks: tuple[RasRank, ...] = ()
    """All of them in JSON; in a report for people those that differ from most."""
    most: Mapping[str, int] = field(default_factory=dict)
    """Collective -> how many of them the rank launched that is furthest."""


@dataclass(frozen=True, slots=True)
class Ras:
    """What NCCL answered; ``earlier`` a little before."""

    address: str
    nccl: str = ""
    communicators: tuple[Communicator, ...] = ()
    earlier: tuple[Communicator, ...] = ()
