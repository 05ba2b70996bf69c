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
from torchdoctor.reading.pasted import keeper
from torchdoctor.reading.pasted.keeper import LONGEST_LINE, SMALL, Keeper

SAMPLE = 1 << 20
"""Bytes by which the encoding is told."""
CHUNK = 1 << 20
GAP, MOST_KEPT = keeper.GAP, keeper.MOST_KEPT
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
    kept = Keeper()
    chunk = start
    while chunk:
        kept.take(decoder.decode(chunk))
        chunk = stream.read(CHUNK)
    kept.take(decoder.decode(b"", final=True))
    return kept.text().lstrip("\ufeff")


def shorten(text: str) -> str:
    """Return *text*, of a long one the stretches that may matter."""
    if len(text) <= SMALL:
        return text
    kept = Keeper()
    for start in range(0, len(text), CHUNK):
        kept.take(text[start : start + CHUNK])
    return kept.text()


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
    if odd > _MOST_WIDE and even * 3 < odd:
        return "utf-16-le"
    if even > _MOST_WIDE and odd * 3 < even:
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
