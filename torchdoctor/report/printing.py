"""How a stream likes its text: how wide, with or without colour, in which characters."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from typing import TextIO

from torchdoctor.values import dataclass

NARROWEST, WIDEST, USUAL = 40, 120, 80

# What our own text may hold beyond ASCII, and what takes its place where it cannot be shown.
STAND_INS: Mapping[str, str] = {
    "✗": "x",
    "✓": "v",
    "·": "-",
    "…": "...",
    "→": "->",
    "←": "<-",
    "≥": ">=",
    "≤": "<=",
    "\u00d7": "x",
    "\u2013": "-",
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u00a0": " ",
}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What :func:`torchdoctor.report.text.render` has to know of where its text will go."""

    width: int
    colour: bool
    unicode: bool
    encoding: str = "utf-8"


def terminal(
    stream: TextIO | None, environ: Mapping[str, str], *, windows: bool = os.name == "nt"
) -> Terminal:
    """Return what *stream* can show.

    *environ* may ask for no colour (``NO_COLOR``, which wins), for colour in a pipe
    (``FORCE_COLOR``) and for a width (``COLUMNS``); *windows* says whether it is a console that
    has to be known to understand colour codes.
    """
    encoding = getattr(stream, "encoding", None) or "utf-8"
    # A code page that has these has most of what facts hold on its machine; the rest is replaced
    # one by one, so that a Chinese path stays whole on a GBK console.
    unicode = _can(encoding, "·…")
    return Terminal(_width(stream, environ), _colour(stream, environ, windows), unicode, encoding)


def write(text: str, stream: TextIO | None) -> None:
    """Write *text* and a newline to *stream*, whatever its encoding, and flush it.

    A character that the encoding lacks becomes a look-alike or an escape. A reader that has
    gone away (``| head``) is no error, and a stream that was closed from the start gets nothing.
    """
    if stream is None:
        return
    line = text if text.endswith("\n") else f"{text}\n"
    try:
        stream.write(encodable(line, stream.encoding or "utf-8"))
        stream.flush()
    except OSError as error:
        if error.errno not in {errno.EPIPE, errno.EINVAL}:  # EINVAL: how Windows says it
            raise
        # Python flushes once more when it ends, and would complain then.
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def encodable(text: str, encoding: str) -> str:
    """Return *text* with every character that *encoding* lacks replaced."""
    if _can(encoding, text):
        return text
    return "".join(c if _can(encoding, c) else _stand_in(c) for c in text)


def _stand_in(character: str) -> str:
    return STAND_INS.get(character) or character.encode("ascii", "backslashreplace").decode()


def _can(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeError:
        return False
    except LookupError:
        return text.isascii()
    return True


def _width(stream: TextIO | None, environ: Mapping[str, str]) -> int:
    asked = environ.get("COLUMNS", "")[:6]
    if asked.isdecimal() and int(asked) > 0:
        return _bounded(int(asked))
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if stream is not None and (columns := os.get_terminal_size(stream.fileno()).columns):
            return _bounded(columns)
    return USUAL


def _bounded(columns: int) -> int:
    return max(NARROWEST, min(columns, WIDEST))


def _colour(stream: TextIO | None, environ: Mapping[str, str], windows: bool) -> bool:  # noqa: FBT001
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    if stream is None or not _is_terminal(stream) or environ.get("TERM") == "dumb":
        return False
    knows_codes = ("WT_SESSION", "ANSICON", "ConEmuANSI", "TERM", "TERM_PROGRAM")
    return not windows or any(environ.get(name) for name in knows_codes)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
