"""What torchfrtrace made of the dumps is read, and torchfrtrace agrees with what is said here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.hang import make
from torchdoctor.hang import blame, folder, torchfrtrace, verdict

DATABASE = """
import argparse, json, sys
from torch.distributed.flight_recorder.components.builder import build_db
from torch.distributed.flight_recorder.components.config_manager import JobConfig
from torch.distributed.flight_recorder.components.loader import read_dir

def plain(value):
    if hasattr(value, "_asdict"):
        return {name: plain(one) for name, one in value._asdict().items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

args = JobConfig().parse_args([sys.argv[1], "-p", "trace_"])
details, version = read_dir(args)
print("=====" + json.dumps(plain(build_db(details, args, version))))
"""
"""The analysis of torch itself, with its tables as JSON."""


def row(**more: Any) -> dict[str, Any]:
    return {
        "id": 3,
        "group_id": "0",
        "pass_check": True,
        "collective_seq_id": 4,
        "p2p_seq_id": 0,
        "record_id": 3,
        "pg_desc": "0:default_pg",
        "collective_name": "nccl:all_reduce",
        "input_sizes": [[3]],
        "output_sizes": [[3]],
        "expected_ranks": [0, 1, 2],
        "collective_state": "scheduled",
        "collective_frames": [],
        "input_numel": None,
        "output_numel": None,
        "missing_ranks": None,
        "mismatch_collectives": None,
        "type_of_mismatch": None,
    } | more


def database(*rows: dict[str, Any]) -> dict[str, Any]:
    return {name: [] for name in torchfrtrace.TABLES} | {"collectives": list(rows)}


def judged(path: Path) -> blame.Verdict:
    return blame.blame(folder.job(folder.read([str(path)])))


def test_missing_ranks_are_behind(tmp_path: Path) -> None:
    file = tmp_path / "db.json"
    file.write_text(json.dumps(database(row(collective_seq_id=3), row(missing_ranks=[1]))))
    found = judged(file)
    assert (found.cause, found.ranks, found.waiting) == ("late", (1,), (0, 2))
    assert found.entry is not None
    assert (found.entry.number, found.entry.operation) == (4, "all_reduce")


def test_other_calls_are_a_mismatch(tmp_path: Path) -> None:
    other = row(collective_name="nccl:broadcast", input_sizes=[[9]])
    wrong = row(pass_check=False, mismatch_collectives={"1": other})
    file = tmp_path / "db.json"
    file.write_text(json.dumps(database(wrong)))
    job = folder.job(folder.read([str(file)]))
    found = blame.blame(job)
    assert (found.cause, found.ranks) == ("mismatch", (1,))
    finding = verdict.finding(found, job)
    assert finding is not None
    assert "rank 1: broadcast of [9]" in finding.summary


def test_rows_may_be_lists_in_the_order_of_the_fields(tmp_path: Path) -> None:
    one = row(missing_ranks=[2])
    told = [[], [], [], [[one[name] for name in torchfrtrace.FIELDS]], []]
    file = tmp_path / "db.json"
    file.write_text(json.dumps(told))
    assert judged(file).ranks == (2,)


def test_where_torchfrtrace_found_nothing_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "db.json"
    file.write_text(json.dumps(database(row())))
    job = folder.job(folder.read([str(file)]))
    assert job.remarks == ("torchfrtrace found nothing at fault",)
    assert blame.blame(job).cause == "unknown"


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.3", "2.5", "2.7", "2.10"])
@pytest.mark.parametrize("fault", ["late", "operation", "size", "fine"])
def test_torchs_own_analysis_of_the_same_dumps_agrees(
    fault: str, version: str, tmp_path: Path
) -> None:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    groups = {"0": (0, 1, 2)}
    other: dict[str, dict[str, Any]] = {
        "operation": {"operation": "broadcast"},
        "size": {"size": (9,)},
    }
    for rank in range(3):
        entries = make.agreed(3, version=version)
        if fault != "fine" and not (fault == "late" and rank == 1):
            odd = other.get(fault, {}) if rank == 1 else {}
            entries.append(make.call(4, **({"version": version, "state": "started"} | odd)))
        whole = make.raw(entries, version=version, groups=groups)
        (dumps / f"trace_{rank}").write_bytes(make.as_pickle(whole))
    done = subprocess.run(
        [str(environments.base().root / "bin/python"), "-c", DATABASE, str(dumps)],
        capture_output=True,
        text=True,
        check=False,
        env=environments.environ(tmp_path),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    file = tmp_path / "db.json"
    file.write_text(done.stdout.rpartition("=====")[2])
    ours, theirs = judged(dumps), judged(file)
    if fault == "fine":
        assert ours.cause == "none"
        assert theirs.cause == "unknown"
        return
    assert ours.cause == theirs.cause == ("late" if fault == "late" else "mismatch")
    assert ours.ranks == (1,)
    assert ours.entry is not None
    assert theirs.entry is not None
    assert ours.entry.number == theirs.entry.number == 4
    assert 1 in theirs.ranks
