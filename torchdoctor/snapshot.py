"""The raw record of one look at a machine: write it, read it, refuse what is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from functools import cache
from pathlib import Path
from typing import cast

from torchdoctor import __version__
from torchdoctor.child import Run, Stream
from torchdoctor.model import DoctorError
from torchdoctor.resource import read_text
from torchdoctor.values import dataclass

SCHEMA = "torchdoctor.snapshot/1"
LARGEST = 16 * 1024 * 1024
"""Bytes. A snapshot of a real machine has about one megabyte."""
MOST_PARTS = 500_000
MOST_ITEMS = 2_000_000
"""Objects and lists, and commas, that are read: each takes twenty times its bytes of memory."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the machine said, probe by probe, and how it was asked."""

    collected_at: str
    """UTC, ISO 8601."""
    probes: Mapping[str, Run]
    options: Mapping[str, object] = field(default_factory=dict)
    """cwd, timeouts, whether the import was tried."""
    redacted: bool = False
    tool: str = __version__


def dump(snapshot: Snapshot) -> str:
    """Return *snapshot* as JSON text, one probe after another."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "torchdoctor", "version": snapshot.tool},
        "collected_at": snapshot.collected_at,
        "redacted": snapshot.redacted,
        "options": dict(snapshot.options),
        "probes": {name: asdict(run) for name, run in snapshot.probes.items()},
    }
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def load(path: Path) -> Snapshot:
    """Return the snapshot in the file *path*.

    Raises:
        DoctorError: it cannot be read, is too large, is no snapshot, or is of a newer schema.

    """
    name = str(path)
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise DoctorError(
                f"{name} has {size >> 20} MB; a snapshot has at most {LARGEST >> 20} MB. "
                "Make a new one with: torchdoctor collect -o snapshot.json",
                file=name,
            )
        raw = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(f"{name} cannot be read: {reason}.", file=name) from error
    return parse(raw, name)


def parse(raw: bytes, name: str) -> Snapshot:
    """Return the snapshot in *raw*, the content of the file called *name*.

    Raises:
        DoctorError: as for :func:`load`.

    """
    again = "make a new one with: torchdoctor collect -o snapshot.json"
    if not raw.strip():
        raise DoctorError(f"{name} is empty; {again}", file=name)
    if b"\0" in raw[:4096]:
        raise DoctorError(f"{name} is a binary file, no snapshot; {again}", file=name)
    if raw.count(b"[") + raw.count(b"{") > MOST_PARTS or raw.count(b",") > MOST_ITEMS:
        raise DoctorError(f"{name} has more parts than any snapshot; {again}", file=name)
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        what = "is cut off or damaged" if raw.lstrip()[:1] == b"{" else "is no snapshot"
        raise DoctorError(f"{name} {what} (no valid JSON); {again}", file=name) from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(schema, str) or not schema.startswith("torchdoctor.snapshot/"):
        raise DoctorError(f"{name} is JSON, but no snapshot of torchdoctor; {again}", file=name)
    if schema != SCHEMA:
        raise DoctorError(
            f"{name} is a {schema}; this torchdoctor {__version__} reads {SCHEMA}. "
            "Use a newer torchdoctor.",
            file=name,
        )
    _validate(document, name, again)
    return Snapshot(
        collected_at=document["collected_at"],
        probes={probe: _run(record) for probe, record in document["probes"].items()},
        options=document["options"],
        redacted=document["redacted"],
        tool=document["tool"]["version"],
    )


def _validate(document: object, name: str, again: str) -> None:
    # Not needed before a file is read, and slower to import than everything else here.
    import fastjsonschema  # noqa: PLC0415

    try:
        _validator()(document)
    except fastjsonschema.JsonSchemaValueException as error:
        raise DoctorError(
            f"{name} is a damaged snapshot: {error.message}; {again}", file=name
        ) from error


@cache
def _validator() -> Callable[[object], object]:
    import fastjsonschema  # noqa: PLC0415 - as above

    schema = json.loads(read_text("snapshot.schema.json"))
    compiled: Callable[[object], object] = fastjsonschema.compile(schema)
    return compiled


def _run(record: dict[str, object]) -> Run:
    fields = dict(record)
    for stream in ("stdout", "stderr"):
        fields[stream] = Stream(**cast("dict[str, object]", fields[stream]))  # type: ignore[arg-type]
    fields["command"] = tuple(cast("list[str]", fields["command"]))
    return Run(**fields)  # type: ignore[arg-type]
