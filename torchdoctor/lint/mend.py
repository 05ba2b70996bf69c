"""Make the edits that findings bring along, and only where they do what they are for."""

from __future__ import annotations

import codecs
from collections.abc import Sequence

from torchdoctor.lint import edits, source
from torchdoctor.lint.looking import Found
from torchdoctor.lint.rule import Edit
from torchdoctor.lint.source import Unreadable


def mend(raw: bytes, found: Sequence[Found]) -> bytes | None:
    """Return the module *raw* with the edits of *found*, its encoding and ends of lines kept.

    None when nothing changes, when it is in another encoding than UTF-8, or would no longer be
    Python.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    mark = "\ufeff" if raw.startswith(codecs.BOM_UTF8) else ""
    ends = "\r\n" if "\r\n" in text else "\n"
    new = edits.apply(
        text.removeprefix(mark), (_with_ends(edit, ends) for f in found for edit in f.edits)
    )
    try:
        source.parse(source.read("", new.encode("utf-8")).text)
    except Unreadable:
        return None
    return f"{mark}{new}".encode() if new != text.removeprefix(mark) else None


def _with_ends(edit: Edit, ends: str) -> Edit:
    if ends == "\n" or "\n" not in edit.text:
        return edit
    text = edit.text.replace("\n", ends)
    return Edit(edit.line, edit.column, edit.end_line, edit.end_column, text)
