"""A snapshot inside a text, as ``torchdoctor/block.py`` writes it.

Reading one takes no more memory than a snapshot may have, whatever its lines claim.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib

from torchdoctor.block import BEGIN, END, WIDTH
from torchdoctor.model import DoctorError
from torchdoctor.reading.pasted import normalise
from torchdoctor.snapshot import LARGEST, Snapshot, parse

TAKEN = "-----TORCHDOCTOR SNAPSHOT TAKEN-----"
"""What stands in a text in the place of a snapshot that was read."""
DAMAGED = "-----TORCHDOCTOR SNAPSHOT DAMAGED: "
"""The same for one that could not be read; the reason and five more dashes follow."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]{1,400}={0,2}")
_SCHEMA = re.compile(r" {1,3}([a-z./0-9]{1,60})-----")
_REASON = re.compile(rf"{re.escape(DAMAGED)}(.{{1,600}}?)-----$", re.MULTILINE)


def take(text: str, name: str) -> tuple[str, tuple[Snapshot, ...]]:
    """Return *text* without the snapshots in it, and these, each once.

    *name* is the file's. A snapshot that is damaged leaves a line that says why; see
    :func:`damage`. Never raises.
    """
    if BEGIN not in text:
        return text, ()
    found: list[Snapshot] = []
    rest: list[str] = []
    at = 0
    while (start := text.find(BEGIN, at)) >= 0:
        rest.append(text[at:start])
        at, inside, reason = _inside(text, start + len(BEGIN))
        if not reason:
            try:
                snapshot = parse(_unpacked(inside), f"the snapshot in {name}")
            except DoctorError as error:
                reason = error.message
            else:
                rest.append(TAKEN)
                if snapshot not in found:
                    found.append(snapshot)
                continue
        rest.append(f"{DAMAGED}{' '.join(reason.split())[:600]}-----\n")
    rest.append(text[at:])
    return "".join(rest), tuple(found)


def damage(text: str) -> tuple[str, ...]:
    """Return why snapshots were not read from *text*, as :func:`take` left it."""
    return tuple(dict.fromkeys(_REASON.findall(text))) if DAMAGED in text else ()


def _inside(text: str, start: int) -> tuple[int, str, str]:
    """Return where the block whose mark ends at *start* is over, what is in it, what is wrong."""
    schema = _SCHEMA.match(text, start)
    if schema is None:
        return start, "", "the snapshot's first line is damaged"
    following = text.find(BEGIN, start)
    stop = text.find(END, start, following if following >= 0 else len(text))
    if stop < 0:
        return _past_rows(text, schema.end()), "", "the snapshot's end is missing"
    # What a page or a mail put around the lines goes, as from any text.
    rows = [row.strip() for row in normalise.clean(text[schema.end() : stop])]
    if bad := next((row for row in rows if row and not _BASE64.fullmatch(row)), None):
        return stop + len(END), "", f"the snapshot holds {bad[:40]!a}, which is no part of one"
    return stop + len(END), "".join(rows), ""


def _past_rows(text: str, start: int) -> int:
    """Return where the lines of base64 that follow *start* end."""
    at = text.find("\n", start) + 1 or len(text)
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        row = next(normalise.clean(text[at : min(end, at + 1000)])).strip()
        if not _BASE64.fullmatch(row) or len(row) < WIDTH // 2:
            return at
        at = end
    return at


def _unpacked(packed: str) -> bytes:
    again = "ask for the report once more"
    try:
        pressed = base64.b64decode(packed, validate=True)
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(pressed, LARGEST + 1)
    except (binascii.Error, zlib.error) as error:
        raise DoctorError(f"the snapshot is damaged ({error}); {again}") from error
    if len(raw) > LARGEST:
        raise DoctorError(f"the snapshot is larger than {LARGEST >> 20} MB; {again}")
    if not unpacker.eof:
        raise DoctorError(f"the snapshot is cut off; {again}")
    return raw
