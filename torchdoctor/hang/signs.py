"""How an armed process is known from outside: what it leaves, and what has to hold before a signal.

``torchdoctor.training.arm`` keeps a file open whose name says so, and writes beside it who it is. A
process may be sent a signal only where all of this agrees: the file is open in that process, what
stands beside it names this very process (its number and when it was started), and the kernel says
that the signal is caught. Anything less would end a job that was only slow.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.hang import flight_recorder
from torchdoctor.hang.records import Beat, Status

SCHEMA = "torchdoctor.armed/1"
STACK = "torchdoctor-rank{rank}.stack"
BEAT = "torchdoctor-rank{rank}.json"
DUMP = "torchdoctor-rank{rank}.fr"
ASK = "torchdoctor.ask"
TRACE = "nccl_trace_rank_"
"""What torch itself writes in that folder when a collective times out, with the rank behind it."""
OPEN = re.compile(r"torchdoctor-rank(\d{1,7})\.stack")
LARGEST = 1 << 20
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Sign:
    """What an armed process says of itself."""

    beat: Beat
    folder: Path
    started: int | None = None
    signal: int | None = None
    main_thread: int | None = None
    answered: str = ""
    """The last request that it has answered."""

    @property
    def stack(self) -> Path:
        """Return where faulthandler writes."""
        return self.folder / STACK.format(rank=self.beat.rank)


def of_file(path: Path) -> Sign | None:
    """Return what the file *path*, left by an armed rank, says; None where it is no such file."""
    try:
        with path.open("rb") as file:
            told = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return of(told, path.parent)


def of(told: object, folder: Path) -> Sign | None:
    """Return the sign that *told* is; None where it is none."""
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        return None
    rank = _number(told.get("rank"))
    if rank is None:
        return None
    at = told.get("at")
    beat = Beat(
        rank,
        _number(told.get("world")),
        _number(told.get("pid")),
        _text(told.get("host")),
        float(at) if isinstance(at, int | float) and 0 <= at < 1 << 40 else 0.0,
        told.get("ended") is True,
        _text(told.get("raised")),
        _number(told.get("step")),
        _status(told.get("status")),
    )
    return Sign(
        beat,
        folder,
        _number(told.get("started")),
        _number(told.get("signal")),
        _number(told.get("main_thread")),
        _text(told.get("answered")),
    )


def of_process(pid: int, proc: Path = PROC) -> Sign | None:
    """Return the sign of the armed process *pid*; None where it is not armed, or not readable."""
    with contextlib.suppress(OSError):
        for link in (proc / str(pid) / "fd").iterdir():
            target = Path()
            with contextlib.suppress(OSError):
                target = link.readlink()
            match = OPEN.fullmatch(target.name)
            if match is None:
                continue
            # A process in a container names the file as it sees it.
            for root in (Path("/"), proc / str(pid) / "root"):
                place = root / target.relative_to("/").with_name(BEAT.format(rank=match[1]))
                sign = of_file(place)
                if sign and _is(sign, pid, proc):
                    return sign
    return None


def may_be_signalled(sign: Sign, pid: int, proc: Path = PROC) -> bool:
    """Tell whether the armed process *pid* still is the one of *sign*, and catches the signal."""
    if sign.signal is None or not _is(sign, pid, proc):
        return False
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", _read(proc / str(pid) / "status"), re.MULTILINE)
    return bool(caught) and bool(int(caught[1], 16) >> (sign.signal - 1) & 1)  # type: ignore[index]


def started(pid: int, proc: Path = PROC) -> int | None:
    """Return when a process was started, in ticks since the machine was; None: there is none."""
    fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[19].isdecimal() else None  # noqa: PLR2004


def inside(pid: int, proc: Path = PROC) -> int:
    """Return the number by which the process *pid* knows itself, in its own namespace."""
    match = re.search(r"^NSpid:.*?(\d+)$", _read(proc / str(pid) / "status"), re.MULTILINE)
    return int(match[1]) if match else pid


def _is(sign: Sign, pid: int, proc: Path) -> bool:
    """Tell whether *sign* was left by this very process, and not by a parent that it was forked of.

    A child that is forked has the file open too; it has another number.
    """
    return (
        sign.beat.pid == inside(pid, proc)
        and sign.started is not None
        and sign.started == started(pid, proc)
    )


def _status(told: object) -> Mapping[str, Status]:
    """Return how far it is: what NCCL's recorder says, else that of the others."""
    if not isinstance(told, dict):
        return {}
    return flight_recorder.statuses(told.get("nccl")) or flight_recorder.statuses(told.get("cpu"))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _number(told: object) -> int | None:
    right = isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 1 << 63
    return told if right else None  # type: ignore[return-value]


def _text(told: object) -> str:
    return told[:300] if isinstance(told, str) else ""
