"""Arm a training script against the day it hangs: heartbeats, stacks, Flight Recorder, in one line.

Nothing here imports torch; what of it is loaded already is asked for how far the rank is.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib.metadata
import json
import multiprocessing
import os
import re
import signal
import socket
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from pathlib import Path
from typing import IO, Any

from torchdoctor.distributed import launcher
from torchdoctor.hang import signs

BUFFER = 2000
POLL = 0.5
"""Seconds until a request is seen."""
LAST_WORD = 5.0
"""Seconds that the end of a script waits for a heartbeat that is being written."""
SIZES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""What torch reads since 2.9, and what it was called before."""
PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
ON_TIMEOUT = "TORCH_NCCL_DUMP_ON_TIMEOUT"
RENAMED = (2, 9)
C10D = "torch._C._distributed_c10d"
OWN_ONLY = 0o700
AFTER_ALL = -1000
"""The priority of what multiprocessing does last."""


@dataclass(slots=True)
class Armed:
    """What was armed, and what was not, with the reason."""

    rank: int
    world: int
    folder: Path
    armed: tuple[str, ...] = ()
    not_armed: Mapping[str, str] = field(default_factory=dict)
    _rank: _Rank | None = field(default=None, repr=False)

    def step(self, number: int) -> None:
        """Note that the training loop is in step *number*."""
        if self._rank is not None:
            self._rank.step = number

    def disarm(self) -> None:
        """Stop the heartbeat and take the signal back; what was written stays."""
        if self._rank is not None:
            self._rank.stop()
            self._rank = None

    def __str__(self) -> str:
        lacking = "".join(f"; not {what}: {why}" for what, why in self.not_armed.items())
        return f"rank {self.rank} is armed in {self.folder}: {', '.join(self.armed)}{lacking}"


_now: Armed | None = None


def arm(  # noqa: PLR0913 - one keyword for each thing that may be chosen
    folder: str | os.PathLike[str] | None = None,
    *,
    rank: int | None = None,
    world_size: int | None = None,
    every: float = 5.0,
    buffer: int = BUFFER,
    traceback_after: float | None = None,
) -> Armed:
    """Arm this process, so that ``torchdoctor hang`` can say where it is when the job hangs.

    To be called once in each rank, before init_process_group, since torch reads the size of the
    Flight Recorder once. It gives

    - a heartbeat: a file of this rank, written every *every* seconds by a thread, with how far
      the rank is in each process group, and whether its script has ended;
    - stacks: faulthandler on SIGUSR1, and with *traceback_after* also each time that so many
      seconds have passed;
    - the Flight Recorder with *buffer* entries, written when a collective times out (NCCL), and
      whenever ``torchdoctor hang`` asks.

    *folder* is where the files go: one that all machines share lets one command see all ranks
    (default: one in the temporary folder of this machine, for all ranks of one launcher). *rank*
    and *world_size* are taken from what the launcher set; a variable of torch that is set already
    is left as it is. What could not be armed is told by a warning and in ``not_armed``.

    Raises:
        ValueError: the folder is another user's, or cannot be written.

    """
    global _now  # noqa: PLW0603 - a process is armed once
    if _now is not None and _now._rank is not None and _now._rank.pid == os.getpid():  # noqa: SLF001
        return _now
    mine, world = _seat(rank, world_size)
    place = _folder(folder)
    lacking: dict[str, str] = {}
    done: list[str] = []
    _try(done, lacking, "flight recorder", lambda: _recorder(place, buffer))
    try:
        one = _Rank(place, mine, world, every)
    except OSError as error:
        raise ValueError(f"{place} cannot be written: {error.strerror or error}") from error
    _try(done, lacking, "stacks", one.take_signal)
    if traceback_after is not None:
        faulthandler.dump_traceback_later(traceback_after, repeat=True, file=one.stack)
        done.append(f"stacks every {traceback_after:g} s")
    one.start()
    done.append("heartbeat")
    _now = Armed(mine, world, place, tuple(done), lacking, one)
    if lacking:
        warnings.warn(f"torchdoctor: {_now}", RuntimeWarning, stacklevel=2)
    return _now


def _try(done: list[str], lacking: dict[str, str], what: str, do: Callable[[], str]) -> None:
    """Note *what* as armed, or why it is not."""
    if why := do():
        lacking[what] = why
    else:
        done.append(what)


def _seat(rank: int | None, world: int | None) -> tuple[int, int]:
    """Return rank and world, as given, else as the launcher says, else those of a process alone."""
    told = (0, 1)
    for names in launcher.NAMES.values():
        values = [os.environ.get(name, "") for name in names[:2]]
        if all(value.isdecimal() for value in values):
            told = (int(values[0]), int(values[1]))
            break
    mine = told[0] if rank is None else rank
    return mine, max(told[1] if world is None else world, mine + 1)


def _folder(given: str | os.PathLike[str] | None) -> Path:
    """Return the folder, made where it is not there; one of our own is closed to others.

    Raises:
        ValueError: it is somebody else's, or cannot be made.

    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    own = Path(tempfile.gettempdir()) / f"torchdoctor-{user}-{os.getppid()}"
    place = own if given is None else Path(given).absolute()
    try:
        if given is None:
            with contextlib.suppress(FileExistsError):
                place.mkdir(OWN_ONLY)
            found = place.lstat()
            if not stat.S_ISDIR(found.st_mode) or (user and found.st_uid != user):
                raise ValueError(f"{place} is there already, and not ours; give arm() a folder")
        else:
            place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{place} cannot be made: {error.strerror or error}") from error
    return place


def _recorder(folder: Path, buffer: int) -> str:
    """Set what torch reads of the Flight Recorder; return why it is not armed, if so."""
    prefix = str(folder / signs.TRACE)
    old = _torch_version() < RENAMED
    set_already = next((os.environ[name] for name in SIZES if name in os.environ), None)
    for names, value in ((SIZES, str(buffer)), (FILES, prefix)):
        given = next((os.environ[name] for name in names if name in os.environ), value)
        for name in names if old else names[:1]:
            os.environ.setdefault(name, given)
    os.environ.setdefault(PIPE, prefix)
    os.environ.setdefault(ON_TIMEOUT, "1")
    if set_already == "0":
        return f"{SIZES[0]} is set to 0"
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and getattr(distributed, "is_initialized", bool)():
        return "init_process_group was called before arm()"
    return ""


def _torch_version() -> tuple[int, ...]:
    """Return the first two numbers of torch's version, without importing it."""
    try:
        told = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return (0, 0)
    match = re.match(r"(\d+)\.(\d+)", told)
    return (int(match[1]), int(match[2])) if match else (0, 0)


class _Rank:
    """The files, the thread and the signal of this process."""

    def __init__(self, folder: Path, rank: int, world: int, every: float) -> None:
        self.folder, self.rank, self.world, self.every = folder, rank, world, every
        self.pid = os.getpid()
        self.step: int | None = None
        self.signal: int | None = None
        self.answered = ""
        self._symbols = False
        self._over = False
        self._finalizer: Any = None
        self._writing = threading.Lock()
        self.started = signs.started(self.pid)
        self.beat = folder / signs.BEAT.format(rank=rank)
        self.stack = self._open(folder / signs.STACK.format(rank=rank))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="torchdoctor", daemon=True)
        self._write()

    def _open(self, path: Path) -> IO[bytes]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        return os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def take_signal(self) -> str:
        """Have SIGUSR1 write all stacks; return why not, if so."""
        if not hasattr(faulthandler, "register") or not hasattr(signal, "SIGUSR1"):
            return "this system has no SIGUSR1"
        if signal.getsignal(signal.SIGUSR1) is not signal.SIG_DFL:
            return "SIGUSR1 has a handler already"
        faulthandler.register(signal.SIGUSR1, file=self.stack, all_threads=True, chain=False)
        self.signal = int(signal.SIGUSR1)
        return ""

    def start(self) -> None:
        """Begin to beat."""
        self._write()
        atexit.register(self._ended)
        if multiprocessing.parent_process() is not None:  # it may end without atexit
            self._finalizer = Finalize(None, self._ended, exitpriority=AFTER_ALL)
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and leave the signal as it was before."""
        self._stop.set()
        self._thread.join(2 * POLL)
        atexit.unregister(self._ended)
        if self._finalizer is not None:
            self._finalizer.cancel()
        if self.signal is not None:
            faulthandler.unregister(self.signal)
        self.stack.close()
        self.beat.unlink(missing_ok=True)

    def _run(self) -> None:
        next_beat = 0.0
        while not self._stop.wait(min(POLL, self.every)):
            try:
                asked = self._asked()
                if asked and asked != self.answered:
                    self._answer(asked)
                elif time.monotonic() < next_beat:
                    continue
                self._write()
            except OSError:  # the disk is full, the folder is gone: the training goes on
                pass
            next_beat = time.monotonic() + self.every

    def _asked(self) -> str:
        try:
            return (self.folder / signs.ASK).read_text("ascii", "replace")[:64]
        except OSError:
            return ""

    def _answer(self, asked: str) -> None:
        """Write down the stacks, and what the recorder has.

        The first time torch takes seconds to look up where each call was made; so the calls come
        first, without their stacks.
        """
        self.answered = asked
        faulthandler.dump_traceback(self.stack, all_threads=True)
        if not self._symbols:
            self._write_dumps(includeStackTraces=False)
            self._write()
        self._write_dumps(includeStackTraces=True)
        self._symbols = True

    def _write_dumps(self, **options: bool) -> None:
        for function, suffix in (("_dump_fr_trace", ""), ("_dump_nccl_trace", ".nccl")):
            told = _recorded(function, **options)
            if told is not None:
                self._replace(self.folder / signs.DUMP.format(rank=f"{self.rank}{suffix}"), told)

    def _ended(self) -> None:
        """Say that the script came to its end; a rank that is killed does not say so."""
        if os.getpid() == self.pid and not self._over:
            self._stop.set()
            with contextlib.suppress(OSError):
                self._write(ended=True)

    def _write(self, *, ended: bool = False) -> None:
        """Write the heartbeat. That the script ended is the last word, whatever the thread does."""
        held = self._writing.acquire(timeout=LAST_WORD)
        try:
            if ended or (held and not self._over):
                self._over = ended
                self._replace(self.beat, json.dumps(self._told(ended=ended)).encode("ascii"))
        finally:
            if held:
                self._writing.release()

    def _told(self, *, ended: bool) -> dict[str, object]:
        return {
            "schema": signs.SCHEMA,
            "rank": self.rank,
            "world": self.world,
            "pid": self.pid,
            "started": self.started,
            "host": socket.gethostname(),
            "signal": self.signal,
            "main_thread": threading.main_thread().ident,
            "at": time.time(),
            "every": self.every,
            "step": self.step,
            "answered": self.answered,
            "ended": ended,
            "raised": _raised() if ended else "",
            "status": {"cpu": _status("_dump_fr_trace_json"), "nccl": _nccl_status()},
        }

    def _replace(self, path: Path, raw: bytes) -> None:
        """Write *path*, whole or not at all."""
        draft = path.with_name(f".{path.name}.{self.pid}")
        with self._open(draft) as file:
            file.write(raw)
        draft.replace(path)


def _raised() -> str:
    """Return what ends the script: what Python told, or what a child of multiprocessing passes on.

    torch.multiprocessing.spawn turns an exception into sys.exit(1), whose context it then is.
    """
    error = sys.exc_info()[1]
    if isinstance(error, SystemExit):
        error = (error.__context__ or error) if error.code else None
    kind = getattr(sys, "last_type", None) if error is None else type(error)
    return kind.__name__ if isinstance(kind, type) else ""


def _nccl_status() -> object:
    """Return how far NCCL's groups are; nothing while CUDA is not in use, which it would start."""
    cuda = sys.modules.get("torch.cuda")
    used = cuda is not None and getattr(cuda, "is_initialized", bool)()
    return _status("_dump_nccl_trace_json") if used else None


def _status(name: str) -> object:
    told = _recorded(name, includeCollectives=False)
    try:
        whole = json.loads(told) if told else None
    except ValueError:
        return None
    return whole.get("pg_status") if isinstance(whole, dict) else None


def _recorded(name: str, **options: bool) -> bytes | None:
    """Return what torch's function *name* gives, once a process group is there; else None."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not getattr(distributed, "is_initialized", bool)():
        return None
    function = getattr(sys.modules.get(C10D), name, None)
    if function is None:
        return None
    try:
        told = function(**options)
    except TypeError:  # an older torch, without that option
        told = function()
    except RuntimeError:
        return None
    return told.encode() if isinstance(told, str) else bytes(told)
