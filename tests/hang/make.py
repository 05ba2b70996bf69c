"""Dumps of the Flight Recorder as each version of torch writes them, and jobs made of them.

By the sources of PyTorch: ``torch/csrc/distributed/c10d/TraceUtils.h`` (2.0, 2.1, and 2.2 with
timeout_ms), ``NCCLUtils.hpp`` (2.3 with pg_status and types as "Float"), ``FlightRecorder.hpp``
(2.4; 2.6 and 2.8 with the version of the library; 2.7 with each call of a coalesced one; 2.9 and
2.10 with threads).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from torchdoctor.hang import flight_recorder
from torchdoctor.hang.records import Dump, Job, Rank

VERSIONS = ("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10")
CREATED = 1_795_000_000_000_000_000
"""When the first call was made, in nanoseconds since the epoch."""
FRAMES = [
    {
        "name": "all_reduce",
        "filename": "/venv/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py",
        "line": 2696,
    },
    {"name": "step", "filename": "/job/train.py", "line": 41},
]


def call(
    number: int,
    operation: str = "all_reduce",
    *,
    version: str = "2.10",
    size: Sequence[int] = (3,),
    kind: str = "Float",
    state: str = "completed",
    retired: bool | None = None,
    group: str = "0",
    description: str = "default_pg",
    backend: str = "nccl",
    p2p: bool = False,
    timeout: int = 600_000,
    sizes: Sequence[Sequence[int]] | None = None,
    frames: bool = True,
) -> dict[str, Any]:
    """Return one entry, as *version* has it in a pickle."""
    minor = int(version.partition(".")[2])
    entry: dict[str, Any] = {
        "frames": FRAMES if frames else [],
        "record_id": number - 1,
        "pg_id": int(group) if group.isdecimal() else 7,
        "process_group": (group, description),
        "collective_seq_id": 0 if p2p else number,
        "p2p_seq_id": number if p2p else 0,
        "op_id": number,
        "profiling_name": f"{backend}:{operation}",
        "time_created_ns": CREATED + number * 1_000_000_000,
        "input_sizes": [list(size)] if sizes is None else [list(one) for one in sizes],
        "input_dtypes": [kind if minor > 2 else kind.lower()],
        "output_sizes": [list(size)] if sizes is None else [list(one) for one in sizes],
        "output_dtypes": [kind if minor > 2 else kind.lower()],
        "state": state,
        "time_discovered_started_ns": None if state == "scheduled" else CREATED,
        "time_discovered_completed_ns": CREATED if state == "completed" else None,
        "retired": state == "completed" if retired is None else retired,
        "is_p2p": p2p,
    }
    if minor >= 2:
        entry["timeout_ms"] = timeout
    if minor >= 9:
        entry |= {"thread_name": "python", "thread_id": "140110022720384"}
    return entry


def raw(
    entries: Sequence[Mapping[str, Any]],
    *,
    version: str = "2.10",
    groups: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, Any]:
    """Return a dump, as *version* has it in a pickle."""
    minor = int(version.partition(".")[2])
    groups = {"0": (0, 1)} if groups is None else groups
    whole: dict[str, Any] = {
        "version": version,
        "pg_config": {
            name: {
                "name": name,
                "desc": "default_pg" if name == "0" else "undefined",
                "ranks": str(list(ranks)),
            }
            for name, ranks in groups.items()
        },
        "entries": list(entries),
    }
    if minor >= 3:
        done = [e["collective_seq_id"] for e in entries if e["state"] == "completed"]
        whole["pg_status"] = {
            "0": {
                "last_enqueued_collective": max(
                    (e["collective_seq_id"] for e in entries), default=-1
                ),
                "last_started_collective": -1,
                "last_completed_collective": max(done, default=-1),
            }
        }
    if minor >= 6:
        whole["nccl_version" if minor < 8 else "comm_lib_version"] = "2.27.5"
    return whole


def as_pickle(whole: Mapping[str, Any]) -> bytes:
    """Return a dump as torch pickles it, with the protocol 2."""
    return pickle.dumps(whole, 2)


def as_json(whole: Mapping[str, Any]) -> bytes:
    """Return a dump as torch writes it in JSON: no stacks, 0 for no time, numbers as text."""
    told = json.loads(json.dumps(whole))
    for entry in told["entries"]:
        del entry["frames"]
        for name in ("time_discovered_started_ns", "time_discovered_completed_ns"):
            entry[name] = entry[name] or 0
    for status in told.get("pg_status", {}).values():
        status |= {name: str(value) for name, value in status.items()}
    return json.dumps(told).encode()


def dump(rank: int, *entries: Mapping[str, Any], **more: Any) -> Dump:
    """Return the dump of *rank* with *entries*."""
    return flight_recorder.dump(raw(entries, **({"groups": {}} | more)), rank, source="a test")


def job(*dumps: Dump, world: int | None = 2, **more: Any) -> Job:
    """Return a job of which only dumps are there."""
    ranks = tuple(Rank(one.rank, dump=one) for one in dumps)
    return Job(ranks, world, **more)


def agreed(upto: int, **more: Any) -> list[dict[str, Any]]:
    """Return the all_reduces 1 to *upto*, all completed."""
    return [call(number, **more) for number in range(1, upto + 1)]
