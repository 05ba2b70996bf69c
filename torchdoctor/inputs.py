"""Files that somebody sends: snapshots, listings, logs, all of one machine, into one snapshot."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import cast

from torchdoctor.child import Run, Stream
from torchdoctor.model import DoctorError
from torchdoctor.reading.machine import TEXT
from torchdoctor.reading.pasted import embedded, normalise
from torchdoctor.snapshot import LARGEST, SCHEMA, Snapshot, parse

_OURS = SCHEMA.partition("/")[0].encode()


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


def _run(text: str) -> Run:
    return Run((), "answered", stdout=Stream(text, len(text)))


def _together(snapshots: Sequence[Snapshot], texts: Mapping[str, Run]) -> Snapshot:
    if not snapshots:
        return Snapshot(collected_at="", probes=texts)
    whole = snapshots[0]
    return replace(whole, probes={**whole.probes, **texts})


def _one(name: str) -> tuple[tuple[Snapshot, ...], str | None]:
    said = "standard input" if name == "-" else name
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
    if head.lstrip()[:1] != b"{" or _OURS not in head:
        text, snapshots = embedded.take(normalise.load(stream, name), name)
        return snapshots, text
    if size is not None and size > LARGEST:
        raise DoctorError(
            f"{name} has {size >> 20} MB; a snapshot has at most {LARGEST >> 20} MB. "
            "Make a new one with: torchdoctor collect -o snapshot.json",
            file=name,
        )
    return (parse(stream.read(LARGEST + 1), name),), None
