"""Find the ranks of a job among the processes of this machine, and see how they move.

All of it is read from /proc; nothing is attached to, and nothing is sent. The variables are those
that a process was started with, which is where launchers put them.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchdoctor.distributed import launcher
from torchdoctor.hang import signs
from torchdoctor.hang.records import Kernel
from torchdoctor.model import DoctorError

PROC = Path("/proc")
LARGEST = 1 << 20
JOB = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID")
"""Variables that tell one job from another."""
KEPT = (
    *(name for names in launcher.NAMES.values() for name in names),
    *JOB,
    *("LOCAL_WORLD_SIZE", "NCCL_RAS_ADDR", "NCCL_RAS_ENABLE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
    *("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "HOME", "XDG_CACHE_HOME"),
)
LOOPBACK = ("localhost", "127.", "::1")
DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Process:
    """One process: who started it, when, and those of its variables that matter here."""

    pid: int
    parent: int
    started: int
    environ: Mapping[str, str] | None = field(default_factory=dict)
    """None where it may not be read."""

    @property
    def rank(self) -> int | None:
        """Return the rank that a launcher gave to it."""
        return self._number(0)

    @property
    def world(self) -> int | None:
        """Return the number of ranks of its job."""
        return self._number(1)

    @property
    def local_rank(self) -> int | None:
        """Return its rank on this machine."""
        return self._number(2)

    @property
    def job(self) -> tuple[str, ...]:
        """Return what tells its job from others."""
        return tuple((self.environ or {}).get(name, "") for name in JOB)

    def _number(self, which: int) -> int | None:
        environ = self.environ or {}
        for rank, world, local in launcher.NAMES.values():
            if environ.get(rank, "").isdecimal() and environ.get(world, "").isdecimal():
                told = environ.get((rank, world, local)[which], "")
                return int(told) if told.isdecimal() and len(told) < 10 else None  # noqa: PLR2004
        return None


@dataclass(frozen=True, slots=True)
class Found:
    """The ranks of a job that are processes of this machine."""

    ranks: Mapping[int, Process]
    world: int | None = None
    lacking: tuple[int, ...] = ()
    """Ranks that should be on this machine, and are not."""
    signs: Mapping[int, signs.Sign] = field(default_factory=dict)
    """What those that are armed say of themselves."""


def find(pid: int, proc: Path = PROC) -> Found:
    """Return the ranks of the job that process *pid*, a launcher or a rank, belongs to.

    Raises:
        DoctorError: there is no such process, it may not be read, or it has to do with no rank.

    """
    everything = processes(proc)
    if not everything:
        raise DoctorError(
            "this system does not show its processes in /proc, as Linux does; give the folder of "
            "the dumps, or that of torchdoctor.training.arm()."
        )
    asked = everything.get(pid)
    if asked is None:
        raise DoctorError(f"there is no process {pid} on this machine.")
    if asked.environ is None:
        raise DoctorError(
            f"process {pid} may not be looked at; run this as the user that started it, or as root."
        )
    family = _family(pid, everything)
    first = next((p for p in (asked, *family) if p.rank is not None), None)
    if first is None:
        return _by_signs((asked, *family, *_siblings(asked, everything)), pid, proc)
    same = [p for p in everything.values() if p.rank is not None and p.job == first.job]
    ranks = _ranks(same)
    found = {rank: sign for rank, p in ranks.items() if (sign := signs.of_process(p.pid, proc))}
    return Found(ranks, first.world, _lacking(ranks, first), found)


def processes(proc: Path = PROC) -> dict[int, Process]:
    """Return every process that can be seen, by its number."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(proc):
            if entry.name.isdecimal() and (process := _process(int(entry.name), proc)) is not None:
                found[process.pid] = process
    return found


def kernel(pid: int, proc: Path = PROC, before: tuple[float, Kernel, int] | None = None) -> Kernel:
    """Return what the kernel says of *pid*; *before*: see :func:`look`."""
    now, said, ticks = look(pid, proc)
    if before is None:
        return said
    earlier_at, earlier, earlier_ticks = before
    return Kernel(
        said.state,
        said.wchan,
        said.syscall,
        now - earlier_at,
        max(0, ticks - earlier_ticks) / _TICKS,
        max(0, said.switches - earlier.switches),
    )


def look(pid: int, proc: Path = PROC) -> tuple[float, Kernel, int]:
    """Return the time, what the kernel says of the main thread of *pid*, and its ticks so far.

    The switches in it are all since the thread was started.
    """
    import time  # noqa: PLC0415 - so that the clock stands beside what it times

    main = proc / str(pid) / "task" / str(pid)
    fields = _read(main / "stat").rpartition(")")[2].split()
    many = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", _read(main / "status"), re.MULTILINE)
    call = _read(proc / str(pid) / "syscall").split()
    said = Kernel(
        fields[0] if fields else "",
        _read(proc / str(pid) / "wchan").strip("\0\n 0"),
        int(call[0]) if call and call[0].lstrip("-").isdecimal() else None,
        switches=int(many[1]) if many else 0,
    )
    ticks = sum(int(f) for f in fields[11:13] if f.isdecimal()) if len(fields) > 13 else 0  # noqa: PLR2004
    return time.monotonic(), said, ticks


_TICKS = float(os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else 100.0


def _process(pid: int, proc: Path) -> Process | None:
    fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] == "Z":  # noqa: PLR2004 - starttime is the twentieth behind )
        return None
    environ: dict[str, str] | None = None
    with contextlib.suppress(OSError), (proc / str(pid) / "environ").open("rb") as file:
        pairs = (pair.partition(b"=") for pair in file.read(LARGEST).split(b"\0"))
        told = {name.decode("utf-8", "replace"): value for name, _, value in pairs}
        environ = {n: told[n].decode("utf-8", "replace") for n in KEPT if n in told}
    return Process(pid, int(fields[1]), int(fields[19]), environ)


def _family(pid: int, everything: Mapping[int, Process]) -> list[Process]:
    """Return the children of *pid*, theirs, and so on; the nearest first."""
    children: dict[int, list[Process]] = {}
    for process in everything.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    level = [pid]
    for _ in range(DEEPEST):
        nearest = [p for parent in level for p in children.get(parent, ()) if p not in found]
        found += sorted(nearest, key=lambda p: p.pid)
        level = [p.pid for p in nearest]
    return found


def _siblings(asked: Process, everything: Mapping[int, Process]) -> list[Process]:
    return [p for p in everything.values() if p.parent == asked.parent and p.parent > 1]


def _ranks(same: Iterable[Process]) -> dict[int, Process]:
    """Return for each rank its process, and not one of those that it started itself."""
    by_pid = {process.pid: process for process in same}
    tops: dict[int, list[Process]] = {}
    for process in by_pid.values():
        parent = by_pid.get(process.parent)
        if process.rank is not None and (parent is None or parent.rank != process.rank):
            tops.setdefault(process.rank, []).append(process)
    parents = Counter(p.parent for each in tops.values() for p in each if p.parent > 1)
    found = {}
    for rank, each in sorted(tops.items()):
        # What a dead rank left behind, such as the workers of its loader, belongs to init.
        kept = [p for p in each if p.parent > 1 or not parents]
        if kept:
            found[rank] = min(kept, key=lambda p: (p.started, p.pid))
    return found


def _lacking(ranks: Mapping[int, Process], first: Process) -> tuple[int, ...]:
    """Return the ranks that were started here, and are not here any more."""
    environ = first.environ or {}
    many = environ.get("LOCAL_WORLD_SIZE", "")
    if many.isdecimal() and first.local_rank is not None and first.rank is not None:
        begin = first.rank - first.local_rank
        here = range(begin, begin + min(int(many), 1 << 16))
    elif environ.get("MASTER_ADDR", "").startswith(LOOPBACK) and first.world is not None:
        here = range(min(first.world, 1 << 16))
    else:
        return ()
    return tuple(rank for rank in here if rank not in ranks)


def _by_signs(some: Iterable[Process], pid: int, proc: Path) -> Found:
    """Return the ranks by what they say themselves, where no launcher gave them a variable.

    Raises:
        DoctorError: none of them is armed.

    """
    pairs = [(p, sign) for p in some if (sign := signs.of_process(p.pid, proc)) is not None]
    if not pairs:
        raise DoctorError(
            f"process {pid} is no rank, and neither is any that it started: none has RANK in its "
            "variables, and none is armed (torchdoctor.training.arm)."
        )
    world = next((sign.beat.world for _, sign in pairs), None)
    ranks = {sign.beat.rank: process for process, sign in pairs}
    lacking = tuple(sorted(set(range(min(world or 0, 1 << 16))) - set(ranks)))
    return Found(ranks, world, lacking, {sign.beat.rank: sign for _, sign in pairs})


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
