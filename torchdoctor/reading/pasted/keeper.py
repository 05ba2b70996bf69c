"""Of a long text the stretches that may matter: read once, line by line, in bounded memory.

A line matters that holds a mark. A log of a thousand processes says the same a million times with
other numbers, so of lines that differ in their numbers only the first few are kept, and those
that were kept often enough are passed over at the pace at which sets are asked.
"""

from __future__ import annotations

import re
from collections import deque

SMALL = 2 << 20
"""Characters up to which a text is kept whole."""
MOST_KEPT = 8 << 20
"""Characters kept of a long one; of more, the first and the last."""
LONGEST_LINE = 20_000
BEFORE, AFTER = 600, 6_000
"""Characters kept around a mark."""
MOST_ALIKE = 20
"""How often a line that differs from others in its numbers only is taken for a mark."""
MOST_SHAPES = 50_000
LONGEST_SHAPE = 300
GAP = "[... left out ...]"

MARKS = (
    *("PyTorch", "pytorch", "torch", "Torch", "CUDA", "NVIDIA", "nvidia", "NVRM", "HIP", "ROC"),
    *("rocm", "gfx", "NCCL", "nccl", "Gloo", "gloo", "Traceback", "Error", "error:", "DLL"),
    *("undefined symbol", "cannot open shared", "GLIBC", "libstdc++", "Python version"),
    *("Python 3", "python3", "Package ", "packages in environment", "Redistributable"),
    *("glibc", "OS:", "OS  ", "Libc version", "GPU ", "dev/shm", "NumPy", "numpy", "xFormers"),
    *("OMP:", "MKL", "invalid distribution", "@EXPLICIT", "libcuda", "Driver Version", "fabric"),
    *("[conda]", "[pip", "[uv]", "__cuda", "docker ", "FROM ", "Microsoft Windows", "macOS"),
    *("TORCHDOCTOR SNAPSHOT", "torchdoctor"),
)
"""What a stretch of text has to hold to be looked at, in a text too long to keep whole."""
_ROW = re.compile(
    r"[\w@~.-]{1,100}\s{1,80}[0-9][\w.+!-]{0,40}(?:\s.{0,200})?$|[\w.-]{1,100}==\S{1,60}$"
    r"|(?:> ?){0,4}[A-Za-z0-9+/]{76}$"
)
_DIGITS = b"0123456789abcdef"
"""Those of a decimal or hexadecimal number; that words lose some of their letters does no harm."""


class Keeper:
    """Takes a text piece by piece and keeps what is near a mark."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._whole: list[str] | None = []
        self._size = 0
        self._rest = ""
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._kept = 0
        self._in_tail = 0
        self._open = 0
        self._gap = False
        self._times: dict[bytes, int] = {}
        self._worn: set[bytes] = set()
        """Shapes of lines with a mark that were kept often enough."""
        self._known: set[bytes] = set()
        """These, and shapes of lines without one."""

    def take(self, piece: str) -> None:
        """Take the next *piece* of the text."""
        if self._whole is not None:
            self._whole.append(piece)
            self._size += len(piece)
            if self._size <= SMALL:
                return
            piece, self._whole = "".join(self._whole), None
        text = self._rest + piece
        end = text.rfind("\n") + 1
        if not end and len(text) > LONGEST_LINE:
            text, end = text[:LONGEST_LINE] + "\n", LONGEST_LINE + 1
        self._rest = text[end:]
        self._scan(text[:end])

    def text(self) -> str:
        """Return what was kept."""
        if self._whole is not None:
            return "".join(self._whole)
        self._scan(self._rest)
        return "".join((*self._head, *self._tail))

    def _scan(self, text: str) -> None:
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        shapes = _shapes(text)
        if len(self._known) + len(self._times) > MOST_SHAPES:
            for seen in (self._known, self._worn, self._times):
                seen.clear()
        known = self._known
        unknown = iter([i for i, s in enumerate(shapes[: len(lines)]) if s not in known])
        place = 0
        while place < len(lines):
            if self._open <= 0:
                ahead = (i for i in unknown if i >= place)
                at = next((i for i in ahead if self._is_new(lines[i], shapes[i])), None)
                if at is None:
                    self._gap = True
                    return
                start = _back(lines, at, place)
                self._gap = self._gap or start > place
                self._open = AFTER + sum(len(line) + 1 for line in lines[start:at])
                self._keep(lines[start : at + 1])
                place = at + 1
            place = self._on(lines, shapes, place)

    def _on(self, lines: list[str], shapes: list[bytes], place: int) -> int:
        """Keep lines from *place* on, for as long as the stretch is open or rows go on."""
        kept: list[str] = []
        while place < len(lines):
            line, shape = lines[place], shapes[place]
            if self._open <= 0 and not _ROW.match(line[:1000].strip()[:400]):
                break
            if shape in self._worn:
                self._keep(kept)
                kept, self._gap = [], True
            else:
                if self._is_new(line, shape):
                    self._open = max(self._open, AFTER)
                kept.append(line)
            self._open -= min(len(line), LONGEST_LINE) + 1
            place += 1
        self._keep(kept)
        return place

    def _is_new(self, line: str, shape: bytes) -> bool:
        """Tell whether *line* has a mark and is not yet one of many alike; remember it."""
        if shape in self._known:
            return False
        if not any(mark in line for mark in MARKS):
            self._known.add(shape)
            return False
        times = self._times.pop(shape, 0) + 1
        if times < MOST_ALIKE:
            self._times[shape] = times
        else:
            self._worn.add(shape)
            self._known.add(shape)
        return True

    def _keep(self, lines: list[str]) -> None:
        if not lines:
            return
        piece = "".join(f"{line[:LONGEST_LINE]}\n" for line in lines)
        if self._gap:
            piece, self._gap = f"\n{GAP}\n{piece}", False
        self._kept += len(piece)
        if self._kept <= MOST_KEPT // 2:
            self._head.append(piece)
            return
        self._tail.append(piece)
        self._in_tail += len(piece)
        while self._in_tail > MOST_KEPT // 2 and len(self._tail) > 1:
            self._in_tail -= len(self._tail.popleft())


def _shapes(text: str) -> list[bytes]:
    """Return for each line of *text* what stays of it without its numbers, as far as it matters."""
    bare = text.encode("utf-8", "surrogatepass").translate(None, _DIGITS)
    return [line[:LONGEST_SHAPE] for line in bare.split(b"\n")]


def _back(lines: list[str], at: int, place: int) -> int:
    """Return the line, not before *place*, from which on BEFORE characters lead to line *at*."""
    room = BEFORE
    while at > place and room > 0:
        room -= len(lines[at - 1]) + 1
        at -= 1
    return at
