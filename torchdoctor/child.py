"""Run one child process and come back in time, whatever it does.

The only module that starts processes. A child gets a deadline, a neutral working folder and a
process group of its own; what it prints is bounded; when it has ended, or its time is up, nothing
that it started is left. A crash, a hang or rubbish is an answer like any other.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

from torchdoctor.values import dataclass

KEPT = 64 * 1024
"""How many bytes are kept of each end of a stream."""
LONGEST_LINE = 16 * 1024 * 1024
"""A longer line of an answer is no answer."""
NTSTATUS_ERROR = 0xC0000000
"""From here on an exit code of Windows stands for an exception."""
MARK = "TORCHDOCTOR_CHILD"
"""An environment variable by which a child's own children are found again."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What came over one stream: its two ends as text, its length in bytes, its SHA-256."""

    text: str = ""
    length: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One child, and how it ended.

    ``answered``: it ended and its answer is complete (a probe's last line says ``done``; a plain
    command exited with 0). ``data`` holds a probe's answer, as far as it came.
    """

    command: tuple[str, ...]
    outcome: Literal["answered", "failed", "timeout", "not-started"]
    seconds: float = 0.0
    exit_code: int | None = None
    signal: str | None = None
    reason: str = ""
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    data: Mapping[str, object] = field(default_factory=dict)
    began: float | None = None
    """When it was started: by the monotonic clock, in a snapshot since the look began."""


def _sha256() -> Any:  # noqa: ANN401 - hashlib has no name for its type
    """Return a new SHA-256: Python's own, as hashlib loads OpenSSL, a tenth of a quick look."""
    name = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
    try:
        own = import_module(name)
    except ImportError:  # another Python than CPython
        own = import_module("hashlib")
    return own.sha256()


class _Drain(threading.Thread):
    """Read one pipe to its end; keep both ends of it, and the answer lines of a probe."""

    def __init__(
        self, pipe: IO[bytes], *, answers: bool, hears: Callable[[object], None] | None = None
    ) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._answers = answers
        self._hears = hears
        self._line = bytearray()
        self._head = bytearray()
        self._tail = bytearray()
        self._length = 0
        self._hash = _sha256()
        self.data: dict[str, object] = {}
        self.done = threading.Event()
        self.over = threading.Event()
        """Set at the end of the answer, of the pipe, or of the child."""
        self.start()

    def run(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed under us once time is up
            while block := os.read(self._pipe.fileno(), 1 << 16):
                if self._answers:
                    self._split(block)
                else:
                    self._keep(block)
        if self._line:
            self._take(bytes(self._line))
        self.over.set()

    def _split(self, block: bytes) -> None:
        *lines, rest = block.split(b"\n")
        for line in lines:
            self._take(bytes(self._line) + line + b"\n")
            self._line.clear()
        self._line += rest
        if len(self._line) > LONGEST_LINE:
            self._keep(bytes(self._line))
            self._line.clear()

    def _take(self, line: bytes) -> None:
        if self._answers and line.startswith(b"{"):
            with contextlib.suppress(ValueError, RecursionError):
                answer = json.loads(line)
                far = answer.pop("progress", None)
                if far is not None and self._hears is not None:
                    self._hears(far)
                self.data.update(answer)
                if answer.get("done") is True:
                    self.done.set()
                    self.over.set()
                return
        self._keep(line)

    def _keep(self, block: bytes) -> None:
        self._length += len(block)
        self._hash.update(block)
        if room := KEPT - len(self._head):
            self._head += block[:room]
            block = block[room:]
        self._tail += block
        if len(self._tail) > 2 * KEPT:
            del self._tail[:-KEPT]

    def stream(self) -> Stream:
        """Return what was read so far."""
        if not self._length:
            return Stream()
        tail = bytes(self._tail[-KEPT:])
        left_out = self._length - len(self._head) - len(tail)
        marker = f"\n[... {left_out} bytes left out ...]\n" if left_out else ""
        text = _decode(bytes(self._head)) + marker + _decode(tail)
        return Stream(text, self._length, self._hash.hexdigest())


def run_probe(  # noqa: PLR0913 - a child has that many sides
    source: str,
    options: Mapping[str, object],
    *,
    python: Sequence[str],
    timeout: float,
    folder: str,
    environ: Mapping[str, str],
    hears: Callable[[object], None] | None = None,
) -> Run:
    """Run a probe's *source* under the interpreter *python* and return its answer.

    *timeout* is in seconds; *folder* is the neutral working folder; *environ* is the whole
    environment of the child. *hears* is told, in another thread, what the probe says of its
    progress; that is no part of the answer.
    """
    command = (*python, "-", json.dumps(options, ensure_ascii=True))
    return run(
        command,
        timeout=timeout,
        folder=folder,
        environ=environ,
        stdin=source.encode("ascii"),
        answers=True,
        hears=hears,
    )


def run(  # noqa: PLR0913 - a child has that many sides
    command: Sequence[str],
    *,
    timeout: float,
    folder: str,
    environ: Mapping[str, str],
    stdin: bytes = b"",
    answers: bool = False,
    hears: Callable[[object], None] | None = None,
) -> Run:
    """Run *command* for at most *timeout* seconds; see :class:`Run` for what comes back.

    Never raises for what the child does or fails to do. *answers* says that it is a probe,
    which prints JSON objects; they are merged, the later line winning.
    """
    start = time.monotonic()
    mark = os.urandom(16).hex()
    name = tuple(command)
    with _starting:  # who ends us waits for it, so that no child is born unseen
        if _closing.is_set():
            return Run(name, "not-started", reason="torchdoctor is ending")
        _live[mark] = None
        try:
            process = _live[mark] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env={**environ, MARK: mark},
                start_new_session=os.name != "nt",
                creationflags=_OWN_GROUP,
            )
        except (OSError, ValueError) as error:
            del _live[mark]
            return Run(name, "not-started", reason=str(error))
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018
    assert process.stderr is not None
    out, err = (
        _Drain(process.stdout, answers=answers, hears=hears),
        _Drain(process.stderr, answers=False),
    )
    threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True).start()
    threading.Thread(target=_watch, args=(process, out), daemon=True).start()
    in_time = _wait(process, out, start + timeout)
    _end(process, mark, (out, err))
    _live.pop(mark, None)
    seconds = time.monotonic() - start
    code = process.returncode if in_time else None
    complete = out.done.is_set() if answers else code == 0
    outcome: Literal["answered", "failed", "timeout"] = (
        "answered" if complete else "failed" if in_time else "timeout"
    )
    return Run(
        name,
        outcome,
        seconds,
        exit_code=code if code is not None and code >= 0 else None,
        signal=signal_name(code),
        reason=f"did not end within {timeout:g} s" if not in_time else "",
        stdout=out.stream(),
        stderr=err.stream(),
        data=dict(out.data),
        began=start,
    )


def passed_through(command: Sequence[str], environ: Mapping[str, str]) -> int | str:
    """Run the user's own *command* on the user's terminal, for as long as it takes.

    Returns its exit status (a signal's number with a minus), or why it could not be started.
    An interrupt reaches it as it would without us.
    """
    try:
        with subprocess.Popen(command, env=dict(environ)) as process:
            while process.poll() is None:
                with contextlib.suppress(KeyboardInterrupt):  # it has had it, too, and decides
                    process.wait()
            return process.returncode
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


class Watched:
    """A child that is looked at while it runs, one of several; what it prints goes to a file.

    Like every child it has a group of its own and ends with us; whoever started it ends it.
    """

    def __init__(
        self, command: Sequence[str], *, output: Path, folder: str, environ: Mapping[str, str]
    ) -> None:
        """Start *command*.

        Raises:
            OSError: it cannot be started, or we are ending.

        """
        self._mark = os.urandom(16).hex()
        with _starting:
            if _closing.is_set():
                raise OSError("torchdoctor is ending")
            with output.open("wb") as file:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env={**environ, MARK: self._mark},
                    start_new_session=os.name != "nt",
                    creationflags=_OWN_GROUP,
                )
            _live[self._mark] = self._process
        self.pid = self._process.pid

    @property
    def code(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal, if it still runs."""
        with contextlib.suppress(OSError, ValueError):
            self._process.send_signal(number)

    def end(self) -> int:
        """End it, and all that it started; return the exit code."""
        _kill_group(self._process)
        code = self._process.wait()
        _kill_marked(self._mark)
        _live.pop(self._mark, None)
        return code


_live: dict[str, subprocess.Popen[bytes] | None] = {}
"""The children by their mark; None while one is being started."""
_starting = threading.Lock()
_closing = threading.Event()


@atexit.register
def end_all() -> None:
    """End every child that is still there: we are ending, perhaps because somebody said so."""
    _closing.set()
    with _starting:
        children = list(_live.items())
    for mark, process in children:
        if process is not None:
            _kill_group(process)
        _kill_marked(mark)


_OWN_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(
    subprocess, "CREATE_NO_WINDOW", 0
)
"""Flags of Windows; elsewhere a session of its own does the same."""
LINGERS = 2.0
"""How many seconds a child may take to end once its answer is complete."""


def _feed(pipe: IO[bytes], content: bytes) -> None:
    with (
        contextlib.suppress(OSError, ValueError),
        pipe,
    ):  # the child may not read at all
        pipe.write(content)


def _watch(process: subprocess.Popen[bytes], out: _Drain) -> None:
    process.wait()
    out.over.set()  # a grandchild may hold the pipe open


def _wait(process: subprocess.Popen[bytes], out: _Drain, until: float) -> bool:
    """Wait for the end of the child, or of its answer; tell whether it ended by itself."""
    out.over.wait(max(0.0, until - time.monotonic()))  # sooner than polling
    if out.done.is_set():
        until = min(until, time.monotonic() + LINGERS)
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: subprocess.Popen[bytes], mark: str, drains: Sequence[_Drain]) -> None:
    """Kill what is left of the child's family, then let the pipes run dry."""
    _kill_group(process)
    process.wait()
    for drain in drains:
        drain.join(0.05)
    if any(drain.is_alive() for drain in drains):  # something that left the group holds a pipe
        _kill_marked(mark)
        for drain in drains:
            drain.join(0.5)
    else:
        _kill_marked(mark)
    for pipe, drain in zip((process.stdout, process.stderr), drains, strict=True):
        if pipe is not None and not drain.is_alive():
            pipe.close()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        if process.poll() is None:
            root = os.environ.get("SYSTEMROOT", r"C:\Windows")
            subprocess.run(
                [
                    rf"{root}\System32\taskkill.exe",
                    "/T",
                    "/F",
                    "/PID",
                    str(process.pid),
                ],
                capture_output=True,
                check=False,
            )
            process.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill processes that carry *mark* in their environment: those that left the group."""
    needle = f"{MARK}={mark}".encode()
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if needle in Path(entry.path, "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def signal_name(code: int | None) -> str | None:
    """Return what ended a process, by its exit code: SIGKILL, 0xC0000005; None for nothing."""
    if code is None or 0 <= code < NTSTATUS_ERROR:
        return None
    if code > 0:  # an NTSTATUS of Windows
        return f"0x{code:08X}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
