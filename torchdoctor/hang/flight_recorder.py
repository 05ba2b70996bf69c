"""Read what torch's Flight Recorder wrote: pickle or JSON, of every version so far.

Versions 2.0 (collective_seq_id and p2p_seq_id) to 2.10 (threads, the version of the library) are
known field by field; 1.x, which counted both in one seq_id, is read as far as it goes, and a newer
one as if it were the newest known. Fields that are missing or of another type are left out, never
believed. Sources: torch/csrc/distributed/c10d/TraceUtils.h (2.0 to 2.2), NCCLUtils.hpp (2.3),
FlightRecorder.hpp and FlightRecorderDetail.hpp (2.4 to 2.10) of PyTorch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from torchdoctor.hang import pickles
from torchdoctor.hang.records import Dump, Entry, Frame, Group, Sizes, Status

NEWEST = (2, 10)
LARGEST = 64 << 20
"""Bytes of one file."""
MOST_ENTRIES = 20_000
"""So many of the newest entries are read; torch keeps 2,000 by itself."""
MOST_FRAMES = 64
MOST_GROUPS = 100_000
MOST_RANKS = 1 << 20
LONGEST = 300
SUFFIXES = (".json", ".pickle", ".pkl", ".fr", ".nccl", ".dump", ".txt")


class NotADump(ValueError):  # noqa: N818 - says what the file is
    """Raised for a file that is no dump, with what it is instead."""


def read(path: Path) -> object:
    """Return what the file *path* holds as plain data.

    Raises:
        NotADump: it cannot be read, or holds neither JSON nor a pickle of plain data.

    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise NotADump(error.strerror or str(error)) from error
    if len(raw) > LARGEST:
        raise NotADump(f"it is larger than {LARGEST >> 20} MiB")
    return parse(raw)


def parse(raw: bytes) -> object:
    """Return what *raw*, JSON or a pickle, holds as plain data.

    Raises:
        NotADump: it is neither, or asks for more than plain data.

    """
    if raw[:1] == b"\x80":
        try:
            return pickles.loads(raw)
        except pickles.NotPlain as error:
            raise NotADump(f"as a pickle, {error}") from error
    if raw.lstrip()[:1] in (b"{", b"["):
        try:
            return cast("object", json.loads(raw))
        except (ValueError, RecursionError) as error:
            raise NotADump(f"it is no whole JSON ({type(error).__name__})") from error
    raise NotADump("it is neither JSON nor a pickle")


def rank_of(name: str) -> int | None:
    """Return the rank that a file's name ends with: nccl_trace_rank_3, rank3.json; None if none."""
    while name.endswith(SUFFIXES):
        name = name.rpartition(".")[0]
    match = re.search(r"(\d{1,9})$", name)
    return int(match[1]) if match else None


def is_dump(data: object) -> bool:
    """Tell whether *data* looks like a dump of the Flight Recorder."""
    return (
        isinstance(data, dict)
        and isinstance(data.get("version"), str)
        and bool({"entries", "pg_config", "pg_status"} & set(data))
        and isinstance(data.get("entries", []), list)
    )


def dump(data: object, rank: int, *, source: str = "", at: float | None = None) -> Dump:
    """Return the dump of *rank* that *data* is.

    Raises:
        NotADump: it is something else.

    """
    if not is_dump(data):
        raise NotADump("it holds no entries of the Flight Recorder")
    whole = cast("dict[str, object]", data)
    told = cast("list[object]", whole.get("entries", []))[-MOST_ENTRIES:]
    seen: dict[int, Frame | None] = {}
    entries = [_entry(one, seen) for one in told if isinstance(one, dict)]
    return Dump(
        rank,
        _text(whole["version"]),
        tuple(entry for entry in entries if entry is not None),
        _groups(whole.get("pg_config")),
        _statuses(whole.get("pg_status")),
        source,
        at,
        whole=_is_whole(whole),
    )


def is_newer(version: str) -> bool:
    """Tell whether a dump of *version* is newer than any that is known here."""
    numbers = re.match(r"(\d{1,4})(?:\.(\d{1,4}))?", version)
    return bool(numbers) and (int(numbers[1]), int(numbers[2] or 0)) > NEWEST  # type: ignore[index]


def statuses(told: object) -> Mapping[str, Status]:
    """Return how far a rank is in each group, as pg_status tells it."""
    return _statuses(told)


def _is_whole(whole: Mapping[str, object]) -> bool:
    """Tell whether the entries begin with the first call that was made."""
    told = whole.get("entries")
    if not isinstance(told, list) or len(told) > MOST_ENTRIES:
        return False
    return not told or (isinstance(told[0], dict) and told[0].get("record_id") == 0)


def _entry(told: Mapping[str, object], seen: dict[int, Frame | None]) -> Entry | None:
    """Return one entry; None for one without an operation or a number."""
    name = told.get("profiling_name")
    group, description = _group_of(told)
    operation, backend, p2p = _operation(name)
    p2p = told["is_p2p"] is True if isinstance(told.get("is_p2p"), bool) else p2p
    number = _number(told.get("p2p_seq_id" if p2p else "collective_seq_id", told.get("seq_id")))
    if not operation or number is None:
        return None
    state = told.get("state")
    return Entry(
        group,
        number,
        operation,
        backend,
        p2p,
        description,
        _sizes(told.get("input_sizes")),
        _sizes(told.get("output_sizes")),
        _texts(told.get("input_dtypes")),
        _texts(told.get("output_dtypes")),
        "completed" if state == "completed" else "started" if state == "started" else "scheduled",
        told.get("retired") is True,
        _number(told.get("time_created_ns")),
        _number(told.get("timeout_ms")),
        _frames(told.get("frames"), seen),
    )


def _operation(name: object) -> tuple[str, str, bool]:
    """Return the operation of a name such as "nccl:send 0->1", its backend, and whether p2p."""
    if not isinstance(name, str):
        return "", "", False
    backend, colon, operation = name[:LONGEST].partition(":")
    if not colon:
        backend, operation = "", name[:LONGEST]
    return operation.strip(), backend, operation.startswith(("send", "recv"))


def _group_of(told: Mapping[str, object]) -> tuple[str, str]:
    """Return name and description of a group: both since 2.0, a name or a number before."""
    group = told.get("process_group", told.get("pg_name"))
    if isinstance(group, list | tuple) and group:
        description = _text(group[1]) if len(group) > 1 else ""
        return _text(group[0]), "" if description == "undefined" else description
    if group is None:
        group = told.get("pg_id")
    return (_text(group), "") if group is not None else ("", "")


def _groups(told: object) -> Mapping[str, Group]:
    if not isinstance(told, dict):
        return {}
    found: dict[str, Group] = {}
    for key, one in list(told.items())[:MOST_GROUPS]:
        if isinstance(one, dict):
            description = _text(one.get("desc", ""))
            ranks = _ranks(one.get("ranks"))
        else:  # 1.x had the ranks alone
            description, ranks = "", _ranks(one)
        name = _text(key)
        found[name] = Group(name, "" if description == "undefined" else description, ranks)
    return found


def _ranks(told: object) -> tuple[int, ...]:
    """Return the ranks that a list, or a text such as "[0, 1]", names."""
    if isinstance(told, str):
        numbers = [int(word) for word in re.findall(r"\d{1,7}", told[: 8 * MOST_RANKS])]
    elif isinstance(told, list | tuple):
        numbers = [number for one in told[:MOST_RANKS] if (number := _number(one)) is not None]
    else:
        numbers = []
    return tuple(sorted({number for number in numbers if number < MOST_RANKS}))


def _statuses(told: object) -> Mapping[str, Status]:
    """Return how far a rank is: numbers in a pickle, texts in JSON."""
    if not isinstance(told, dict):
        return {}
    found = {}
    for key, one in list(told.items())[:MOST_GROUPS]:
        if isinstance(one, dict):
            numbers = (
                one.get(f"last_{word}_collective") for word in ("enqueued", "started", "completed")
            )
            found[_text(key)] = Status(*map(_far, numbers))
    return found


def _far(told: object) -> int:
    if isinstance(told, str) and re.fullmatch(r"-?\d{1,18}", told):
        return int(told)
    return told if isinstance(told, int) and not isinstance(told, bool) and told < 1 << 62 else -1


def _sizes(told: object) -> Sizes:
    if not isinstance(told, list | tuple):
        return ()
    return tuple(
        tuple(n for d in one[:LONGEST] if (n := _number(d)) is not None)
        for one in told[:LONGEST]
        if isinstance(one, list | tuple)
    )


def _texts(told: object) -> tuple[str, ...]:
    if not isinstance(told, list | tuple):
        return ()
    return tuple(_text(one) for one in told[:LONGEST] if isinstance(one, str))


def _frames(told: object, seen: dict[int, Frame | None]) -> tuple[Frame, ...]:
    """Return the frames of a stack; in a pickle the same frame of two stacks is one object."""
    if not isinstance(told, Sequence) or isinstance(told, str | bytes):
        return ()
    found = []
    for one in told[:MOST_FRAMES]:
        if id(one) not in seen:
            seen[id(one)] = _frame(one)
        if (frame := seen[id(one)]) is not None:
            found.append(frame)
    return tuple(found)


def _frame(told: object) -> Frame | None:
    if not isinstance(told, dict):
        return None
    name, file = told.get("name"), told.get("filename")
    line = _number(told.get("line")) or 0
    return Frame(_text(name), _text(file), line) if isinstance(name, str) else None


def _number(told: object) -> int | None:
    """Return a number that is none below 0, nor larger than torch could write."""
    if isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 1 << 64:
        return told
    return None


def _text(told: object) -> str:
    if isinstance(told, str):
        return told[:LONGEST]
    number = _number(told)
    return "" if number is None else str(number)
