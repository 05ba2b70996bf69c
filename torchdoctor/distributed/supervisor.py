"""Start the ranks of an all_reduce, watch what they say, and end them in time, whatever they do.

Nothing here imports torch, and nothing is waited for without a deadline. A rank says what it does
in a file of its own; what was said is read before any signal is sent, since a signal makes errors
of its own.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torchdoctor.child import Watched, signal_name
from torchdoctor.distributed.heartbeat import Heartbeat
from torchdoctor.distributed.stages import FIRST, LAST, NUMBERS, PLACE, Limits
from torchdoctor.resource import read_text

TICK = 0.02
GRACE = 1.5
"""Seconds that the others have, once a rank has ended, to say what they saw of it."""
STACKS = 0.3
"""Seconds for the stacks of those that are still there."""
STOPPED = ("T", "t")
PARTS = (
    *("__init__", "saying", "settings", "interfaces", "meeting", "device", "identity"),
    *("pairs", "summing", "main"),
)
"""The files of probes/ranks."""
KEPT = 16 * 1024
"""Characters of what a rank printed, and of its stacks."""
CUT = "\n[...]\n"
LARGEST_LOG = 16 << 20
"""Bytes of NCCL's log in which warnings are looked for."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one rank runs: its interpreter with what stands before it, and its environment."""

    python: tuple[str, ...]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """One all_reduce. ``places`` are the ranks to start here, by their number."""

    places: Mapping[int, Place]
    world: int
    limits: Limits = field(default_factory=Limits)
    host: str = "127.0.0.1"
    port: int = 0
    """Of the meeting point; 0: rank 0 takes a free one."""
    backend: str = "auto"
    device: str = "auto"
    sweep: bool = False
    store: str = "own"
    """own, or launcher: the store of a launcher, which is there already."""
    attempt: str = "0"
    gather: Mapping[str, object] | None = None
    """What rank 0 leaves in the store for those that will bring it their records."""
    share: bool = False
    """Whether several ranks may use one GPU."""
    local_ranks: Mapping[int, int] = field(default_factory=dict)
    source: str = ""
    """The worker, where it is not the one that is shipped."""


class Rank:
    """One rank that was started here."""

    def __init__(self, job: Job, number: int, folder: Path, began: float) -> None:
        """Start it; one that cannot be started is known by its reason."""
        self.number = number
        self.said = Heartbeat(folder / f"rank{number}.jsonl")
        self.state = ""
        self.code: int | None = None
        self.ended_by_us = False
        self.ended_at: float | None = None
        self.reason = ""
        self._folder = folder
        self._output = folder / f"rank{number}.out"
        place = job.places[number]
        options = _options(job, number, folder, began)
        command = (*place.python, str(folder / "worker.py"), json.dumps(options))
        try:
            log = {"NCCL_DEBUG_FILE": str(folder / f"rank{number}.nccl")}
            self._child: Watched | None = Watched(
                command,
                output=self._output,
                folder=str(folder),
                environ={**place.environ, **log},
            )
        except OSError as error:
            self._child = None
            self.reason = str(error)

    def look(self, now: float) -> None:
        """Read what it said, and see whether it has ended."""
        self.said.read()
        if self._child and self.code is None and (code := self._child.code) is not None:
            self.said.read()  # what it said last
            self.code, self.ended_at = code, now

    @property
    def running(self) -> bool:
        """Return whether it has neither ended nor failed to start."""
        return self._child is not None and self.code is None

    @property
    def failed(self) -> bool:
        """Return whether it has ended before its time, or was never there."""
        return not self.running and not self.succeeded

    @property
    def succeeded(self) -> bool:
        """Return whether it came to the end."""
        return self.code == 0 and self.said.stage == LAST

    @property
    def stopped(self) -> bool:
        """Return whether it stands still because somebody stopped it."""
        return self._child is not None and kernel_state(self._child.pid)[:1] in STOPPED

    def look_into(self) -> None:
        """See what the kernel says of it: running, sleeping, stopped, and where it waits."""
        if self._child and self.running:
            self.state = kernel_state(self._child.pid)

    def ask_for_stacks(self) -> None:
        """Have it write down where it is."""
        if self._child and self.running and hasattr(signal, "SIGUSR1"):
            self._child.signal(signal.SIGUSR1)

    def end(self) -> None:
        """End it and all that it started."""
        if self._child is None:
            return
        self.ended_by_us = self.running
        code = self._child.end()
        if self.code is None:
            self.code = code

    def record(self, began: float) -> dict[str, object]:
        """Return what is known of it, for a snapshot."""
        return {
            "rank": self.number,
            "started": self._child is not None,
            "reason": self.reason,
            "exit_code": self.code if self.code is not None and self.code >= 0 else None,
            "signal": signal_name(self.code),
            "ended_by_us": self.ended_by_us,
            "ended_at": None if self.ended_at is None else round(self.ended_at - began, 3),
            "state": self.state,
            "stack": _text(self._folder / f"rank{self.number}.stack"),
            "output": _text(self._output),
            "nccl_log": _log(self._folder / f"rank{self.number}.nccl"),
            "events": self.said.events,
        }


def run(job: Job, folder: Path) -> dict[str, object]:
    """Run *job* and return what its ranks said and how they ended; *folder* is empty, and ours.

    Ends within the limits of *job* and two seconds more, and leaves no process.
    """
    began = time.time()
    _lay_out(job, folder)
    ranks: list[Rank] = []
    try:
        ranks.extend(Rank(job, number, folder, began) for number in job.places)
        why = _watch(job, ranks, began)
        for rank in ranks:
            rank.look_into()
        if any(rank.running for rank in ranks):
            _stacks(ranks, folder)
    finally:
        for rank in ranks:
            rank.end()
    return {
        "world": job.world,
        "asked": {"backend": job.backend, "device": job.device},
        "host": job.host,
        "limits": {
            "whole": job.limits.whole,
            "stage": job.limits.stage,
            "importing": job.limits.importing,
        },
        "ended": why,
        "slowness": _slowness(ranks),
        "seconds": round(time.time() - began, 3),
        "ranks": [rank.record(began) for rank in ranks],
    }


def _lay_out(job: Job, folder: Path) -> None:
    """Write the worker and its parts into *folder*; its interpreter need not know this package."""
    source = job.source or read_text("probes", "all_reduce.py")
    (folder / "worker.py").write_text(source, encoding="ascii", newline="\n")
    parts = folder / "torchdoctor_ranks"
    parts.mkdir()
    for name in PARTS:
        text = read_text("probes", "ranks", f"{name}.py")
        (parts / f"{name}.py").write_text(text, encoding="ascii", newline="\n")


def _watch(job: Job, ranks: Sequence[Rank], began: float) -> str:
    """Wait until all have come to the end, or one of them does not; return which it is."""
    failed_at: float | None = None
    seen_stopped = 0
    while True:
        now = time.time()
        for rank in ranks:
            rank.look(now)
        if all(rank.succeeded for rank in ranks):
            return "done"
        if not any(rank.running for rank in ranks):
            return "rank-ended"
        if now - began > job.limits.whole:
            return "limit"
        if failed_at is None and any(rank.failed for rank in ranks):
            failed_at = now
        if failed_at is not None and now - failed_at > GRACE * _slowness(ranks):
            return "rank-ended"
        if failed_at is None and _late(job, ranks, began, now):
            return "stage-limit"
        seen_stopped = seen_stopped + 1 if _any_stopped(ranks) else 0
        if seen_stopped * TICK > GRACE:  # a debugger stops a process for a moment
            return "stopped"
        time.sleep(TICK)


def _late(job: Job, ranks: Sequence[Rank], began: float, now: float) -> bool:
    """Tell whether those that are furthest behind have been where they are for too long.

    The others wait for them, however long they have been where they are.
    """
    running = [rank for rank in ranks if rank.running]
    place = min(PLACE.get(rank.said.stage or FIRST, 0) for rank in running)
    behind = [r for r in running if PLACE.get(r.said.stage or FIRST, 0) == place]
    # Whoever gets on may be what those behind have waited for all the time.
    since = max(rank.said.since or began for rank in ranks)
    elsewhere = job.world > len(job.places)
    stage = behind[0].said.stage or FIRST
    limit = job.limits.of(stage, elsewhere=elsewhere, slowness=_slowness(ranks))
    return now - since > limit


def _slowness(ranks: Sequence[Rank]) -> float:
    return max(rank.said.slowness for rank in ranks)


def _any_stopped(ranks: Sequence[Rank]) -> bool:
    return any(rank.stopped for rank in ranks if rank.running)


def _stacks(ranks: Sequence[Rank], folder: Path) -> None:
    for rank in ranks:
        rank.ask_for_stacks()
    until = time.time() + STACKS
    files = [folder / f"rank{rank.number}.stack" for rank in ranks if rank.running]
    while time.time() < until and not all(_size(file) for file in files):
        time.sleep(TICK)
    time.sleep(TICK)


def kernel_state(pid: int) -> str:
    """Return the state letter of a process and where in the kernel it waits; empty if unknown."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        place = Path(f"/proc/{pid}/wchan").read_text("utf-8", "replace").strip("\0\n ")
    except OSError:
        return ""
    return f"{letter[0]} {place}".strip() if letter else ""


def _options(job: Job, number: int, folder: Path, began: float) -> dict[str, object]:
    return {
        "rank": number,
        "world": job.world,
        "local_rank": job.local_ranks.get(number, number),
        "host": job.host,
        "port": job.port,
        "folder": str(folder),
        "began": began,
        "backend": job.backend,
        "device": job.device,
        "sweep": job.sweep,
        "numbers": NUMBERS,
        "store": job.store,
        "attempt": job.attempt,
        "gather": job.gather,
        "share": job.share,
        "limit": job.limits.whole,
        "stage_limit": job.limits.stage,
        "import_limit": job.limits.importing,
    }


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _log(path: Path) -> str:
    """Return both ends of what NCCL wrote, and between them the lines in which it warns."""
    ends = _text(path)
    if CUT not in ends:
        return ends
    with path.open("rb") as file:
        lines = file.read(LARGEST_LOG).decode("utf-8", "backslashreplace").splitlines()
    head, _, tail = ends.partition(CUT)
    warned = [line for line in lines if " NCCL WARN " in line and line not in ends]
    return f"{head}{CUT}{chr(10).join(warned)[:KEPT]}{CUT if warned else ''}{tail}"


def _text(path: Path) -> str:
    """Return both ends of a file."""
    try:
        with path.open("rb") as file:
            head = file.read(KEPT // 2)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(len(head), size - KEPT // 2))
            tail = file.read(KEPT // 2)
    except OSError:
        return ""
    cut = CUT if size > KEPT else ""
    return head.decode("utf-8", "backslashreplace") + cut + tail.decode("utf-8", "backslashreplace")
