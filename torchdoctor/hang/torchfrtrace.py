"""Read what torchfrtrace made of the dumps of all ranks, as JSON.

Its database is five tables: groups, memberships, tracebacks, collectives, ncclcalls. A row is an
object, or a list of its fields in their order (torch/distributed/flight_recorder/components/
types.py). What torchfrtrace itself writes with ``-o`` is a pickle of torch's own classes, which is
not read here: give the dumps instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from torchdoctor.hang import flight_recorder
from torchdoctor.hang.records import Entry, Told

TABLES = ("groups", "memberships", "tracebacks", "collectives", "ncclcalls")
FIELDS = (
    *("id", "group_id", "pass_check", "collective_seq_id", "p2p_seq_id", "record_id", "pg_desc"),
    *("collective_name", "input_sizes", "output_sizes", "expected_ranks", "collective_state"),
    *("collective_frames", "input_numel", "output_numel", "missing_ranks"),
    *("mismatch_collectives", "type_of_mismatch"),
)
MOST = 100_000


def is_database(data: object) -> bool:
    """Tell whether *data* is such a database."""
    if isinstance(data, list):
        return len(data) == len(TABLES) and all(isinstance(table, list) for table in data)
    return isinstance(data, dict) and isinstance(data.get("collectives"), list)


def told(data: object) -> tuple[Told, ...]:
    """Return the collectives of the database *data* that torchfrtrace found at fault, in order."""
    table = data.get("collectives") if isinstance(data, dict) else cast("list[object]", data)[3]
    rows = [_row(one) for one in table[:MOST]] if isinstance(table, list) else []
    found = [
        one
        for row in rows
        if row.get("pass_check") is False or row.get("missing_ranks")
        if (one := _told(row)) is not None
    ]
    return tuple(sorted(found, key=lambda one: one.number))


def _row(told: object) -> Mapping[str, object]:
    if isinstance(told, list):
        return dict(zip(FIELDS, told, strict=False))
    return told if isinstance(told, dict) else {}


def _told(row: Mapping[str, object]) -> Told | None:
    entry = _entry(row)
    if entry is None:
        return None
    odd: dict[int, Entry] = {}
    others = row.get("mismatch_collectives")
    for rank, other in others.items() if isinstance(others, dict) else ():
        called = _entry(_row(other))
        if re.fullmatch(r"\d{1,7}", str(rank)) and called is not None:
            odd[int(rank)] = called
    return Told(
        entry.group,
        entry.number,
        entry.operation,
        entry.input_sizes,
        _ranks(row.get("expected_ranks")),
        _ranks(row.get("missing_ranks")),
        odd,
        entry.frames,
    )


def _entry(row: Mapping[str, object]) -> Entry | None:
    """Return the collective of a row, by the reader of the dumps, which have the same fields."""
    whole = {
        "version": "2.0",
        "entries": [
            {
                "process_group": [row.get("group_id"), row.get("pg_desc")],
                "profiling_name": row.get("collective_name"),
                "collective_seq_id": row.get("collective_seq_id"),
                "p2p_seq_id": row.get("p2p_seq_id"),
                "input_sizes": row.get("input_sizes"),
                "output_sizes": row.get("output_sizes"),
                "state": row.get("collective_state"),
                "frames": row.get("collective_frames"),
            }
        ],
    }
    entries = flight_recorder.dump(whole, 0).entries
    return entries[0] if entries else None


def _ranks(told: object) -> tuple[int, ...]:
    if not isinstance(told, list):
        return ()
    return tuple(sorted({n for n in told if isinstance(n, int) and 0 <= n < 1 << 20}))
