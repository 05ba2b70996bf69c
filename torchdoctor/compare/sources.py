"""The snapshots that are compared, one at a time: files, folders, patterns, files of many.

A file of many (``.jsonl``) has one snapshot a line, as ``collect --gather`` writes it. What cannot
be read is told and passed over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from glob import has_magic, iglob
from pathlib import Path

from torchdoctor import inputs
from torchdoctor.model import DoctorError
from torchdoctor.snapshot import LARGEST, Snapshot, parse

SUFFIXES = (".json", ".jsonl", ".md", ".txt", ".log", ".zip")
"""Of the files that are taken from a folder."""
MANY = (".jsonl", ".ndjson")
MOST = 100_000
"""Files in a folder: more is no fleet."""
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Source:
    """One machine: what it is called, and its snapshot, or why there is none."""

    name: str
    snapshot: Snapshot | None
    why: str = ""


def files(names: Iterable[str]) -> tuple[str, ...]:
    """Return the files that *names* stand for: those of a folder, those that a pattern fits.

    Raises:
        DoctorError: a name stands for no file, or for too many.

    """
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name == "-" or path.is_file():
            found.append(name)
        elif path.is_dir():
            found += _bounded(_in_folder(name, 0), name)
        elif has_magic(name):
            found += _bounded(iglob(name, recursive=True), name)  # noqa: PTH207 - as a shell
        else:
            raise DoctorError(f"{name} is not there; name a snapshot or a folder.", file=name)
    return tuple(dict.fromkeys(found))


def _bounded(found: Iterable[str], name: str) -> list[str]:
    taken: list[str] = []
    for file in found:
        if not Path(file).is_file():
            continue
        taken.append(file)
        if len(taken) > MOST:
            raise DoctorError(
                f"{name} has more than {MOST:,} files; gather them into one .jsonl file.",
                file=name,
            )
    if not taken:
        raise DoctorError(
            f"{name} holds no snapshot; {', '.join(SUFFIXES)} files are looked for.", file=name
        )
    return sorted(taken)


def _in_folder(folder: str, depth: int) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if depth < DEEPEST:
                        yield from _in_folder(entry.path, depth + 1)
                elif entry.name.lower().endswith(SUFFIXES):
                    yield entry.path
    except OSError as error:
        raise DoctorError(
            f"{folder} cannot be read: {error.strerror or error}.", file=folder
        ) from error


def read(names: Iterable[str]) -> Iterator[Source]:
    """Yield the machines in the files *names*; never more than one snapshot is held."""
    for name in names:
        if name.lower().endswith(MANY):
            yield from _lines(name)
        else:
            try:
                snapshot = inputs.read([name])
            except inputs.SeveralError as error:
                if name == "-":  # it cannot be read twice
                    yield Source(shown(name), None, error.message)
                else:
                    yield from _lines(name)
            except DoctorError as error:
                yield Source(shown(name), None, shown(error.message))
            else:
                yield Source(shown(name), snapshot)


def redacted(
    machines: Iterable[Source],
    name: Callable[[str], str],
    snapshot: Callable[[Snapshot], Snapshot],
) -> Iterator[Source]:
    """Yield *machines* as others may see them; *name* and *snapshot* take out what they may not."""
    for one in machines:
        whole = one.snapshot
        hidden = whole if whole is None or whole.redacted else snapshot(whole)
        yield Source(name(one.name), hidden, name(one.why))


def _lines(name: str) -> Iterator[Source]:
    try:
        with Path(name).open("rb") as stream:
            number = 0
            while line := stream.readline(LARGEST + 1):
                number += 1
                if not line.strip():
                    continue
                at = f"{shown(name)}:{number}"
                if len(line) > LARGEST:
                    _skip(line, stream)
                    yield Source(at, None, f"line {number} has more than {LARGEST >> 20} MB.")
                    continue
                yield _one(line, at)
    except OSError as error:
        why = f"{shown(name)} cannot be read: {error.strerror or error}."
        yield Source(shown(name), None, why)


def _skip(line: bytes, stream: object) -> None:
    while line and not line.endswith(b"\n"):
        line = stream.readline(1 << 20)  # type: ignore[attr-defined]


def _one(line: bytes, at: str) -> Source:
    try:
        snapshot = parse(line, at)
    except DoctorError as error:
        return Source(at, None, error.message)
    return Source(label(snapshot) or at, snapshot)


def shown(name: str) -> str:
    """Return the *name* of a file as text, whatever its bytes are."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def label(snapshot: Snapshot) -> str:
    """Return what a gathered snapshot is called: its host, where that is kept, and its rank."""
    seat = snapshot.options.get("seat")
    if not isinstance(seat, dict) or not isinstance(seat.get("rank"), int):
        return ""
    host = seat.get("host")
    return f"rank {seat['rank']}" + (f" ({host})" if isinstance(host, str) and host else "")
