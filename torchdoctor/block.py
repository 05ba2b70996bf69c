"""A snapshot as lines that survive being pasted into a text: quoted, indented, wrapped.

The snapshot's JSON, compressed by zlib and written in base64, between two lines that say what it
is. ``reading/pasted/embedded.py`` reads it back.
"""

from __future__ import annotations

import base64
import zlib

from torchdoctor.snapshot import SCHEMA, Snapshot, dump

BEGIN, END = "-----BEGIN TORCHDOCTOR SNAPSHOT", "-----END TORCHDOCTOR SNAPSHOT-----"
WIDTH = 76


def wrap(snapshot: Snapshot) -> str:
    """Return *snapshot* as lines of ASCII between its two marks."""
    packed = base64.b64encode(
        zlib.compress(dump(snapshot).encode("utf-8", "backslashreplace"), 9)
    ).decode()
    rows = [packed[start : start + WIDTH] for start in range(0, len(packed), WIDTH)]
    return "\n".join([f"{BEGIN} {SCHEMA}-----", *rows, END, ""])
