"""Look at a job that runs on this machine: twice, some seconds apart, without disturbing it.

What the kernel and the ranks say of themselves is read before anything is asked of them, since a
signal makes errors of its own. A rank that is not armed is never signalled; nothing is attached to,
except by py-spy where that is installed, which reads memory without stopping the process.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchdoctor import child
from torchdoctor.hang import flight_recorder, folder, processes, ras, signs, stacks
from torchdoctor.hang.processes import Found
from torchdoctor.hang.records import Dump, Frame, Job, Kernel, Rank, Ras

ANSWER = 8.0
"""Seconds that armed ranks have to answer; the first time torch looks symbols up for some."""
TICK = 0.05
SPY = 6.0
SIGNALLED = 1.5
RAS = 10.0
MOST_AT_ONCE = 8
OLD_TRACE = "/tmp/nccl_trace_rank_"  # noqa: S108 - where torch wrote by itself at first
NEW_TRACE = "torch/comm_lib_trace_rank_"
"""The same today, in the folder for caches (DebugInfoWriter::getWriter)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How to look."""

    watch: float = 10.0
    """Seconds between the two looks."""
    environ: Mapping[str, str] = field(default_factory=dict)
    py_spy: bool = True
    ras: bool = True


def live(pid: int, wish: Wish) -> Job:
    """Return what is known of the job that process *pid* belongs to.

    Raises:
        DoctorError: there is no such process, or it has to do with no rank.

    """
    found = processes.find(pid)
    before = {rank: processes.look(p.pid) for rank, p in found.ranks.items()}
    began = time.monotonic()
    first = _asked(found)
    time.sleep(max(0.0, wish.watch - (time.monotonic() - began)))
    kernels = {
        rank: processes.kernel(p.pid, before=before[rank]) for rank, p in found.ranks.items()
    }
    watched = time.monotonic() - began
    marks = {rank: _size(sign.stack) for rank, sign in found.signs.items()}
    second = _asked(found, first)
    found_stacks = _stacks(found, kernels, marks, wish)
    left = _left(found)
    ranks = tuple(
        replace(
            _rank(found, left, rank, kernels),
            dump=second.get(rank) or first.get(rank),
            earlier=first.get(rank),
            **found_stacks.get(rank, {}),  # type: ignore[arg-type]
        )
        for rank in sorted({*found.ranks, *found.lacking, *left.signs})
    )
    return Job(
        ranks,
        found.world,
        watched,
        time.time(),
        live=True,
        ras=_ras(found, wish) if wish.ras else None,
    )


def alive_pid(left: folder.Left) -> int | None:
    """Return the number of a process of this machine that has left its sign, and still runs."""
    here = socket.gethostname()
    for sign in left.signs.values():
        pid = sign.beat.pid
        if (
            pid is not None
            and sign.beat.host == here
            and not sign.beat.ended
            and signs.started(pid) == sign.started is not None
        ):
            return pid
    return None


def _rank(found: Found, left: folder.Left, number: int, kernels: Mapping[int, Kernel]) -> Rank:
    """Return a rank as far as its process and what it left say."""
    seen = kernels.get(number)
    process = found.ranks.get(number)
    said = folder.rank(left, number) if number in left.signs else Rank(number)
    here = number in found.lacking or said.host == socket.gethostname() or seen is not None
    alive = True if seen is not None and not seen.gone else False if here else None
    sign = found.signs.get(number)
    return replace(
        said,
        pid=process.pid if process else said.pid,
        alive=alive,
        kernel=seen if alive else None,
        beat=said.beat or (sign.beat if sign else None),
        armed=sign is not None or said.armed,
    )


def _left(found: Found) -> folder.Left:
    """Return what the ranks of this job, here or elsewhere, left in the folders of the armed."""
    left = folder.Left()
    began = min((_began(process) for process in found.ranks.values()), default=0.0)
    for place in {sign.folder for sign in found.signs.values()}:
        some = folder.Left()
        for path in place.glob("torchdoctor-rank*.json"):
            sign = signs.of_file(path)
            if sign is None or (sign.beat.ended and sign.beat.at < began):
                continue  # it ended before any of these ranks was started: of an earlier job
            if found.world is None or sign.beat.world == found.world:
                some.signs[sign.beat.rank] = sign
        left.signs.update(some.signs)
    return left


# ---- the Flight Recorder ------------------------------------------------------------------------


def _asked(found: Found, able: Iterable[int] | None = None) -> dict[int, Dump]:
    """Ask all armed ranks for what their recorder has; return what came in time.

    *able* are those that are waited for: all of them, if it is not given.
    """
    word = secrets.token_hex(8)
    since = time.time() - 1
    folders = {sign.folder for sign in found.signs.values()}
    for place in folders:
        _write(place / signs.ASK, word)
    pipes = [rank for rank in found.ranks if rank not in found.signs and _poke(found, rank)]
    waiting = set(found.signs) & set(found.signs if able is None else able)
    until = time.monotonic() + ANSWER
    while (waiting or pipes) and time.monotonic() < until:
        time.sleep(TICK)
        waiting -= {
            rank
            for rank in waiting
            if _has_answered(found.signs[rank], word) or not _can_answer(found.ranks[rank].pid)
        }
        pipes = [rank for rank in pipes if not _fresh(_trace(found, rank), since)]
    for place in folders:
        with contextlib.suppress(OSError):
            (place / signs.ASK).unlink()
    return {rank: dump for rank in found.ranks if (dump := _dump(found, rank, since)) is not None}


def _has_answered(sign: signs.Sign, word: str) -> bool:
    now = signs.of_file(sign.folder / signs.BEAT.format(rank=sign.beat.rank))
    return now is None or now.answered == word or now.beat.ended


def _can_answer(pid: int) -> bool:
    """Tell whether a process is there, and not stopped."""
    seen = processes.look(pid)[1]
    return not (seen.stopped or seen.gone)


def _dump(found: Found, rank: int, since: float) -> Dump | None:
    """Return what a rank has written since it was asked, or its recorder when it timed out."""
    sign = found.signs.get(rank)
    paths: list[Path] = []
    if sign:
        names = (signs.DUMP.format(rank=f"{rank}{end}") for end in ("", ".nccl"))
        paths += [path for name in names if _fresh(path := sign.folder / name, since)]
    trace = _trace(found, rank)
    if not paths and _fresh(trace, _began(found.ranks[rank])):
        paths.append(trace)
    dumps = []
    for path in paths:
        with contextlib.suppress(flight_recorder.NotADump, OSError):
            data = flight_recorder.read(path)
            at = path.stat().st_mtime
            dumps.append(flight_recorder.dump(data, rank, source=path.name, at=at))
    return folder.merged(dumps)


def _trace(found: Found, rank: int) -> Path:
    """Return where torch itself writes the dump of a rank."""
    sign = found.signs.get(rank)
    environ = found.ranks[rank].environ or {}
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        if environ.get(name):
            return Path(f"{environ[name]}{rank}")
    if sign:
        return sign.folder / f"{signs.TRACE}{rank}"
    cache = environ.get("XDG_CACHE_HOME") or f"{environ.get('HOME', '/nonexistent')}/.cache"
    new = Path(cache, f"{NEW_TRACE}{rank}")
    return new if new.exists() else Path(f"{OLD_TRACE}{rank}")


def _poke(found: Found, rank: int) -> bool:
    """Ask torch for a dump by the pipe that it was started with, if it was; tell whether asked."""
    prefix = (found.ranks[rank].environ or {}).get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    if not prefix:
        return False
    path = f"{prefix}{rank}.pipe"
    try:
        if not stat.S_ISFIFO(os.lstat(path).st_mode):
            return False
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        os.write(pipe, b"1\n")
    os.close(pipe)
    return True


def _began(process: processes.Process) -> float:
    """Return when a process was started, in seconds since the epoch."""
    up = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else 0.0
    return time.time() - up + process.started / os.sysconf("SC_CLK_TCK")


# ---- stacks -------------------------------------------------------------------------------------


def _stacks(
    found: Found, kernels: Mapping[int, Kernel], marks: Mapping[int, int], wish: Wish
) -> dict[int, dict[str, object]]:
    """Return for each rank its stack and where that comes from, or why there is none."""
    spy = _spy(wish.environ) if wish.py_spy else None
    lacking = "py-spy is not installed, and the rank is not armed"
    told: dict[int, dict[str, object]] = {}
    if spy and found.ranks:
        with ThreadPoolExecutor(min(MOST_AT_ONCE, len(found.ranks))) as pool:
            pids = {rank: process.pid for rank, process in found.ranks.items()}
            answers = pool.map(lambda pid: _by_spy(spy, pid, wish.environ), pids.values())
            for rank, (stack, why) in zip(pids, answers, strict=True):
                told[rank] = _as_stack(stack, "py-spy", why)
    unsaid = [rank for rank in found.ranks if not told.get(rank, {}).get("stack")]
    armed = [rank for rank in unsaid if rank in found.signs]
    stopped = {rank for rank in armed if rank in kernels and kernels[rank].stopped}
    by_sign = _by_signs(found, armed, marks, stopped)
    for rank in unsaid:
        if rank in found.signs:
            why = "the rank is stopped, and cannot answer" if rank in stopped else "no answer came"
            told[rank] = _as_stack(by_sign.get(rank, ()), "faulthandler", why)
        else:
            told.setdefault(rank, _as_stack((), "", lacking))
    return told


def _as_stack(stack: tuple[Frame, ...], source: str, why: str) -> dict[str, object]:
    if stack:
        return {"stack": stack, "stack_from": source}
    return {"why_no_stack": why}


def _spy(environ: Mapping[str, str]) -> str | None:
    return shutil.which("py-spy", path=environ.get("PATH")) or shutil.which(
        "py-spy", path=str(Path(sys.executable).parent)
    )


def _by_spy(spy: str, pid: int, environ: Mapping[str, str]) -> tuple[tuple[Frame, ...], str]:
    run = child.run(
        (spy, "dump", "--nonblocking", "--json", "--pid", str(pid)),
        timeout=SPY,
        folder=tempfile.gettempdir(),
        environ=environ,
    )
    if run.outcome == "answered" and (stack := stacks.of_py_spy(run.stdout.text, pid)):
        return stack, ""
    said = run.reason or next(iter(run.stderr.text.strip().splitlines()), "it said nothing")
    return (), f"py-spy: {said[:200]}"


def _by_signs(
    found: Found, armed: Sequence[int], marks: Mapping[int, int], stopped: Collection[int]
) -> dict[int, tuple[Frame, ...]]:
    """Return the stacks that armed ranks wrote when they were asked, else when they are signalled.

    A signal goes only to a rank of which everything says that it is armed, and that runs.
    """
    told = _written(found, armed, marks)
    silent = {rank for rank in armed if rank not in told and rank not in stopped}
    waiting = {rank for rank in silent if _signal(found, rank)}
    until = time.monotonic() + SIGNALLED
    while waiting and time.monotonic() < until:
        time.sleep(TICK)
        new = _written(found, sorted(waiting), marks)
        told |= new
        waiting -= set(new)
    return told


def _written(
    found: Found, ranks: Sequence[int], marks: Mapping[int, int]
) -> dict[int, tuple[Frame, ...]]:
    """Return the stacks of those of *ranks* that have written one since their mark."""
    told = {}
    for rank in ranks:
        sign = found.signs[rank]
        text = _since(sign.stack, marks.get(rank, 0))
        if stack := stacks.of_faulthandler(text, sign.main_thread):
            told[rank] = stack
    return told


def _signal(found: Found, rank: int) -> bool:
    """Send its signal to an armed rank, if it may be sent; tell whether it was."""
    sign, pid = found.signs[rank], found.ranks[rank].pid
    if sign.signal is None or not signs.may_be_signalled(sign, pid):
        return False
    with contextlib.suppress(OSError):
        os.kill(pid, sign.signal)
        return True
    return False


# ---- NCCL ---------------------------------------------------------------------------------------


def _ras(found: Found, wish: Wish) -> Ras | None:
    """Return what NCCL says of this job, where one of its processes answers."""
    environs: Iterable[Mapping[str, str]] = (p.environ or {} for p in found.ranks.values())
    said = [environ for environ in environs if environ.get("NCCL_RAS_ENABLE") != "0"]
    addresses = {
        environ.get("NCCL_RAS_ADDR") or wish.environ.get("NCCL_RAS_ADDR") or ras.ADDRESS
        for environ in said
    }
    ours = {n for p in found.ranks.values() for n in (p.pid, signs.inside(p.pid))}
    for address in sorted(addresses)[:MOST_AT_ONCE]:
        answer = ras.ask(address, timeout=RAS, again_after=min(2.0, wish.watch / 2))
        pids = {r.pid for c in (answer.communicators if answer else ()) for r in c.ranks if r.pid}
        if answer is not None and answer.communicators and (not pids or pids & ours):
            return answer
    return None


# ---- files --------------------------------------------------------------------------------------


def _write(path: Path, text: str) -> None:
    """Write *path* anew, readable by the user of the job; never through a link."""
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(os.open(path, flags, 0o644), "w", encoding="ascii") as file:
            file.write(text)


def _fresh(path: Path, since: float) -> bool:
    try:
        return path.stat().st_mtime >= since
    except OSError:
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _since(path: Path, mark: int) -> str:
    """Return what was written to *path* after *mark* bytes."""
    try:
        with path.open("rb") as file:
            file.seek(mark)
            return file.read(folder.LARGEST_STACK).decode("utf-8", "replace")
    except OSError:
        return ""
