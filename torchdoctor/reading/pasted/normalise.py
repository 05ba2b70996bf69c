"""From the bytes of a file to clean text: its encoding, and what a terminal or a page added.

A text of any size is read once: of a long one only the stretches around what could be of use are
kept. Nothing here knows what a listing means.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from torchdoctor.model import DoctorError

SAMPLE = 1 << 20
"""Bytes by which the encoding is told."""
CHUNK = 1 << 20
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
GAP = "[... left out ...]"

_MAGIC = (
    (b"\x89PNG", "a PNG picture; paste the text instead of a picture of it"),
    (b"\xff\xd8\xff", "a JPEG picture; paste the text instead of a picture of it"),
    (b"GIF8", "a GIF picture; paste the text instead of a picture of it"),
    (b"PK\x03\x04", "a ZIP archive; give the text file in it"),
    (b"\x1f\x8b", "compressed with gzip; give the text file in it"),
    (b"BZh", "compressed with bzip2; give the text file in it"),
    (b"\xfd7zXZ", "compressed with xz; give the text file in it"),
    (b"%PDF", "a PDF; give its text"),
    (b"\x7fELF", "a program or library, not a text"),
    (b"MZ\x90\x00", "a Windows program or library, not a text"),
)


# ---- bytes to text ------------------------------------------------------------------------------


def decode(data: bytes, name: str) -> str:
    """Return the text in *data*; *name* is the file's, for the error.

    UTF-8, UTF-16 (also without a mark, as PowerShell's redirection once wrote it), GBK or, when it
    is none of them, Windows-1252. What does not fit the encoding becomes the replacement character.

    Raises:
        DoctorError: *data* is no text.

    """
    return data.decode(encoding_of(data[:SAMPLE], name), errors="replace").lstrip("\ufeff")


def load(stream: BinaryIO, name: str) -> str:
    """Return the text of *stream*, of a long one the stretches that may matter.

    Reads once and keeps a bounded part, whatever the length. See :func:`decode` for the encoding.

    Raises:
        DoctorError: it is no text.

    """
    start = stream.read(SAMPLE)
    decoder = codecs.getincrementaldecoder(encoding_of(start, name))(errors="replace")
    keeper = _Keeper()
    chunk = start
    while chunk:
        keeper.take(decoder.decode(chunk))
        chunk = stream.read(CHUNK)
    keeper.take(decoder.decode(b"", final=True))
    return keeper.text().lstrip("\ufeff")


def shorten(text: str) -> str:
    """Return *text*, of a long one the stretches that may matter."""
    if len(text) <= SMALL:
        return text
    keeper = _Keeper()
    for start in range(0, len(text), CHUNK):
        keeper.take(text[start : start + CHUNK])
    return keeper.text()


def encoding_of(sample: bytes, name: str) -> str:
    """Return the name of the encoding of a text that starts with *sample*.

    Raises:
        DoctorError: it is no text; the message says what it is, where that can be told.

    """
    for magic, what in _MAGIC:
        if sample.startswith(magic):
            raise DoctorError(f"{name} is {what}.", file=name)
    if sample.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if wide := _wide(sample):
        return wide
    if b"\0" in sample:
        raise DoctorError(
            f"{name} is not a text: it has NUL bytes; give a pasted report, a log or a snapshot.",
            file=name,
        )
    odd = len(sample.translate(None, _TEXT_BYTES))
    if odd > max(8, len(sample) // 20):
        raise DoctorError(
            f"{name} is not a text: too many control characters; "
            "give a pasted report, a log or a snapshot.",
            file=name,
        )
    return _narrow(sample)


_TEXT_BYTES = bytes({7, 8, 9, 10, 12, 13, 27, *range(0x20, 0x100)} - {0x7F})
_MOST_WIDE = 0.3


def _wide(sample: bytes) -> str | None:
    """Return the byte order of UTF-16 without a mark: every other byte of ASCII is zero."""
    part = sample[: 1 << 16]
    if len(part) < 4:  # noqa: PLR2004
        return None
    even, odd = part[::2].count(0) / len(part[::2]), part[1::2].count(0) / len(part[1::2])
    if odd > _MOST_WIDE and even * 8 < odd:
        return "utf-16-le"
    if even > _MOST_WIDE and odd * 8 < even:
        return "utf-16-be"
    return None


_GB2312 = re.compile(rb"[\xa1-\xf7][\xa1-\xfe]|\xa8[\x40-\x95]")
_HIGH = re.compile(rb"[\x80-\xff]")


def _narrow(sample: bytes) -> str:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError as error:
        high = len(_HIGH.findall(sample))
        broken = len(_HIGH.findall(sample.decode("utf-8", errors="ignore").encode("utf-8")))
        if error.start and broken > high * 0.9:
            return "utf-8"  # here and there a broken byte, as logs of several programs have
        pairs = len(_GB2312.findall(sample))
        return "gb18030" if pairs * 2 > high * 0.7 else "cp1252"
    return "utf-8"


# ---- a long text --------------------------------------------------------------------------------

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
_NUMBERS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


class _Marks:
    """Where the marks stand in a piece of text, found as far as they are asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._next = [(text.find(mark), mark) for mark in MARKS]

    def after(self, place: int) -> int | None:
        """Return where the first mark from *place* on stands; places asked for only grow."""
        left = [one for one in self._next if one[0] >= 0]
        self._next = [
            one if one[0] >= place else (self.text.find(one[1], place), one[1]) for one in left
        ]
        return min((at for at, _ in self._next if at >= 0), default=None)


class _Keeper:
    """Takes a text piece by piece and keeps what is near a mark."""

    def __init__(self) -> None:
        self._whole: list[str] | None = []
        self._size = 0
        self._rest = ""
        self._head: list[str] = []
        self._tail: list[str] = []
        self._kept = 0
        self._open = 0
        self._shapes: dict[str, int] = {}
        self._gap = False

    def take(self, piece: str) -> None:
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
        if self._whole is not None:
            return "".join(self._whole)
        self._scan(self._rest)
        return "".join((*self._head, *self._tail))

    def _scan(self, text: str) -> None:
        marks = _Marks(text)
        place = 0
        while place < len(text):
            if self._open > 0:
                place = self._on(text, place)
                continue
            mark = self._next_mark(marks, place)
            if mark is None:
                self._gap = True
                return
            start = max(place, text.rfind("\n", 0, max(place, mark - BEFORE)) + 1)
            self._gap = self._gap or start > place
            self._open = AFTER + (mark - start)
            place = start

    def _on(self, text: str, place: int) -> int:
        """Keep lines from *place* on, for as long as the stretch is open or rows go on."""
        lines = []
        while place < len(text):
            end = text.find("\n", place) + 1 or len(text)
            line = text[place : min(end, place + LONGEST_LINE)]
            if self._open <= 0 and not _ROW.match(line.strip()[:400]):
                break
            if self._open > 0 and self._is_mark(line):
                self._open = max(self._open, AFTER)
            self._open -= len(line)
            lines.append(line)
            place = end
        self._keep("".join(lines))
        return place

    def _keep(self, piece: str) -> None:
        if self._gap:
            piece, self._gap = f"\n{GAP}\n{piece}", False
        self._kept += len(piece)
        if self._kept <= MOST_KEPT // 2:
            self._head.append(piece)
            return
        self._tail.append(piece)
        size = sum(map(len, self._tail))
        while size > MOST_KEPT // 2 and len(self._tail) > 1:
            size -= len(self._tail.pop(0))

    def _next_mark(self, marks: _Marks, place: int) -> int | None:
        text = marks.text
        while (at := marks.after(place)) is not None:
            start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            end = len(text) if end < 0 else end
            if self._is_new(text[start : min(end, start + 300)]):
                return at
            place = end
        return None

    def _is_mark(self, line: str) -> bool:
        return any(mark in line for mark in MARKS) and self._is_new(line[:300])

    def _is_new(self, line: str) -> bool:
        shape = _NUMBERS.sub("0", line)
        count = self._shapes.get(shape, 0)
        if count or len(self._shapes) < MOST_SHAPES:
            self._shapes[shape] = count + 1
        return count < MOST_ALIKE and len(self._shapes) < MOST_SHAPES


# ---- clean lines --------------------------------------------------------------------------------

_ESCAPE = re.compile(
    r"\x1b\][^\x07\x1b\n]{0,2000}(?:\x07|\x1b\\)"
    r"|\x1b\[[0-?]{0,40}[ -/]{0,4}[@-~]|\x1b[PX^_][^\x1b\n]{0,2000}\x1b\\|\x1b[ -/]{0,2}[0-~]"
)
_CARET = re.compile(r"\^\[\[[0-9;]{0,20}[mK]")
_BARE = re.compile(r"\[(?:[0-9]{1,3}(?:;[0-9]{1,3}){0,5})?m")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,6}|#[xX][0-9a-fA-F]{1,5});")
_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad\x00]")
_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|p|div|span|br|b|table|tbody|tr)(?:\s[^>]{0,200})?/?>"
)
_FENCE = re.compile(r"[ ]{0,12}(?:```+|~~~+)[\w+-]{0,20}\s*$")
_QUOTE = re.compile(r"[ ]{0,3}(?:>(?!>>(?:\s|$))[ ]?)+")
_BAR = re.compile(r"[ ]{0,3}\|[ ](?=\S)(?!.*\|\s*$)|[ ]{0,3}\|[ ](?=\|)")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]{1,120}?)\*\*")


def clean(text: str) -> Iterator[str]:
    """Yield the lines of *text* without what a terminal, a page or a mail put around them.

    A quote mark, a fence, an entity, a colour, a table's bars are not what the program printed.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "^[[" in text:
        text = _CARET.sub("", text)
    if "[0m" in text or "[m" in text:
        text = _BARE.sub("", text)
    for _ in range(2):  # a page's source pasted into a page is escaped twice
        if "&" in text:
            text = _ENTITY.sub(lambda m: html.unescape(m[0]), text)
    text = _BLANKS.sub(" ", _INVISIBLE.sub("", text))
    for line in re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", text):
        yield _bare(line[:LONGEST_LINE])


def _bare(line: str) -> str:
    if "<" in line:
        line = _TAG.sub("", line)
    line = line.rstrip()
    if (quote := _QUOTE.match(line)) or (quote := _BAR.match(line)):
        line = line[quote.end() :]
    if _FENCE.match(line):
        return ""
    if "**" in line:
        line = _BOLD.sub(r"\1", line)
    if line.count("`") == 2 and line.strip().startswith("`") and line.endswith("`"):  # noqa: PLR2004
        line = line.strip().strip("`")
    return _cells(line) if line.lstrip().startswith("|") else line


_FIRST_CELL = re.compile(r"[A-Za-z][\w.+/()-]{0,60}(?: [\w.+/()-]{1,40}){0,6}:?$")
_SECOND_CELL = re.compile(r"[0-9][\w.+-]{0,60}$|Version$|(?:True|False|N/A|None|Yes|No)$")
_KEYS = re.compile(
    r"(?:PyTorch|CUDA|ROC[mM]|HIP|OS|Libc|Python|Is|GPU|Nvidia|NVIDIA|Driver|cuDNN|"
    r"torch)\b",
    re.IGNORECASE,
)


def _cells(line: str) -> str:
    """Return the row of a Markdown table with blanks for bars; another table as it is."""
    cells = [cell.strip(" `") for cell in line.strip().strip("|").split("|")]
    if not 2 <= len(cells) <= 6 or "+" in line[:3]:  # noqa: PLR2004
        return line
    if all(re.fullmatch(r":?-{2,}:?", cell) for cell in cells):
        return "  ".join("-" * len(cell) for cell in cells)
    first, second = cells[:2]
    if not _FIRST_CELL.match(first) or not (_SECOND_CELL.match(second) or _KEYS.match(first)):
        return line
    key = first.rstrip(":")
    return f"{key}: {second}" if " " in key or key == "OS" else "  ".join(cells)
