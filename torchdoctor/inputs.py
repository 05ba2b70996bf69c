"""Files that somebody sends: snapshots, listings, logs, all of one machine, into one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO, cast

from torchdoctor import bundle
from torchdoctor.child import Run, Stream
from torchdoctor.facts import Facts
from torchdoctor.model import DoctorError
from torchdoctor.reading.machine import TEXT
from torchdoctor.reading.pasted import embedded, normalise
from torchdoctor.snapshot import LARGEST, SCHEMA, Snapshot, parse

STDIN = "standard input"
"""How it is called."""
_OURS = SCHEMA.partition("/")[0].encode()


class SeveralError(DoctorError):
    """Raised where a file has the snapshots of several machines, one a line."""


def read(names: Sequence[str]) -> Snapshot:
    """Return the files *names* (``-`` is standard input) as one snapshot of one machine.

    Raises:
        DoctorError: one cannot be read, is no text, or there are two snapshots.

    """
    snapshots: list[Snapshot] = []
    texts: dict[str, Run] = {}
    for name in names:
        taken, text = _one(name)
        snapshots += [snapshot for snapshot in taken if snapshot not in snapshots]
        if len(snapshots) > 1:
            raise DoctorError(
                f"{name} is a second snapshot; one machine has one. "
                "Check them one after the other.",
                file=name,
                kind="usage",
            )
        if text is not None:
            texts[TEXT + name] = _run(text)
    return _together(snapshots, texts)


def of_text(text: str, name: str = "text") -> Snapshot:
    """Return the snapshot that a pasted *text* is; of several in it, the first."""
    rest, taken = embedded.take(text, name)
    return _together(taken, {TEXT + name: _run(rest)})


def of_bytes(content: bytes, name: str = "text") -> Snapshot:
    """Return *content*, the file *name* as it is on a disk, as one snapshot of one machine.

    Raises:
        DoctorError: as :func:`read`.

    """
    stream = cast("BufferedReader", BufferedReader(BytesIO(content)))
    taken, text = _taken(stream, name, len(content))
    return _together(taken[:1], {} if text is None else {TEXT + name: _run(text)})


def refuse_what_says_nothing(snapshot: Snapshot, facts: Facts) -> None:
    """Raise DoctorError when *snapshot* is texts only, of which *facts* could be made none."""
    texts = [name for name in snapshot.probes if name.startswith(TEXT)]
    if texts and facts == Facts(expectation=facts.expectation, remarks=facts.remarks):
        name = texts[0].removeprefix(TEXT)
        why = f" ({facts.remarks[0].rstrip('.')})" if facts.remarks else ""
        raise DoctorError(
            f"{name} holds nothing that torchdoctor can use{why}; give an error text, a log, the "
            "output of collect_env, pip list or nvidia-smi, or a snapshot.",
            file=name,
        )


def _run(text: str) -> Run:
    return Run((), "answered", stdout=Stream(text, len(text)))


def _together(snapshots: Sequence[Snapshot], texts: Mapping[str, Run]) -> Snapshot:
    if not snapshots:
        return Snapshot(collected_at="", probes=texts)
    whole = snapshots[0]
    return replace(whole, probes={**whole.probes, **texts})


def _one(name: str) -> tuple[tuple[Snapshot, ...], str | None]:
    said = STDIN if name == "-" else name
    if name == "-":
        return _taken(cast("BufferedReader", sys.stdin.buffer), said, None)
    path = Path(name)
    if path.is_dir():
        raise DoctorError(
            f"{name} is a folder; to look at the environment in it, use: "
            f"torchdoctor check --python {name}",
            file=name,
        )
    try:
        with path.open("rb") as stream:
            return _taken(stream, said, path.stat().st_size)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(
            f"{name} cannot be read: {reason}; give a file that is there.", file=name
        ) from error


def _taken(
    stream: BufferedReader, name: str, size: int | None
) -> tuple[tuple[Snapshot, ...], str | None]:
    head = stream.peek(4096)
    if not head.strip():
        raise DoctorError(
            f"{name} is empty; give the text of an error, a listing, or a snapshot "
            "(torchdoctor collect -o snapshot.json).",
            file=name,
        )
    if head.startswith(bundle.MAGIC):
        return _unpacked(stream, name)
    if head.lstrip()[:1] != b"{" or _OURS not in head:
        text, snapshots = embedded.take(normalise.load(stream, name), name)
        return snapshots, text
    first = _first_line(stream, name)
    if size is not None and size > LARGEST:
        raise DoctorError(
            f"{name} has {size >> 20} MB; a snapshot has at most {LARGEST >> 20} MB. "
            "Make a new one with: torchdoctor collect -o snapshot.json",
            file=name,
        )
    return (parse(first + stream.read(LARGEST + 1), name),), None


def _first_line(stream: BufferedReader, name: str) -> bytes:
    """Return the first line of the snapshot in *stream*; refuse a file of one snapshot a line.

    Raises:
        SeveralError: it has one on its first line, and another after it.

    """
    lines = (line for line in iter(lambda: stream.readline(LARGEST + 1), b"") if line.strip())
    first = next(lines, b"")
    if first.rstrip().endswith(b"}") and (second := next(lines, b"")):
        if not second.lstrip().startswith(b"{"):
            return first + second
        file = name if name != STDIN else "FILE.jsonl"
        raise SeveralError(
            f"{name} holds the snapshots of several machines, one a line; for all of them, use: "
            f"torchdoctor compare {file}",
            file=name,
            kind="usage",
        )
    return first


def _unpacked(stream: BufferedReader, name: str) -> tuple[tuple[Snapshot, ...], str | None]:
    """Return the snapshots in a bundle, and the texts, one after the other."""
    whole = stream if stream.seekable() else BytesIO(stream.read(LARGEST + 1))
    found: list[Snapshot] = []
    texts: list[str] = []
    for inner, content in bundle.unpack(cast("BinaryIO", whole), name):
        taken, text = _taken(BufferedReader(cast("BytesIO", content)), f"{name}/{inner}", None)
        found += [snapshot for snapshot in taken if snapshot not in found]
        texts += [text] if text is not None else []
    if not found and not texts:
        raise DoctorError(f"{name} holds no snapshot and no text.", file=name)
    return tuple(found), "\n".join(texts) if texts else None
