"""``torchdoctor train-check``: the command, and one real run of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.test_cli import Ran
from tests.training import jobs, runs
from torchdoctor.training import proving


def test_the_program_is_written_out_to_be_copied(tmp_path: Path) -> None:
    ran = Ran("train-check", "--eject", "mine", cwd=tmp_path)
    assert ran.code == 0
    assert "Run it: python mine/launch.py --nproc 2" in ran.out
    names = sorted(path.name for path in (tmp_path / "mine").iterdir())
    assert names == sorted(proving.FILES)
    text = "".join((tmp_path / "mine" / name).read_text() for name in names)
    assert "torchdoctor" not in text  # it stands by itself
    compile(text.replace("from __future__ import annotations", ""), "all", "exec")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--eject", "not-a-name"), "has to be a name that Python can import"),
        (("--eject", "full"), "the folder is not empty"),
        (("--dir", "full", "--python", sys.executable), "the folder is not empty"),
        (("--nproc", "0"), "invalid"),
        (("--sync-bn", "--device", "cpu", "--python", sys.executable), "on GPUs only"),
    ],
)
def test_wrong_usage_is_told_in_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert said in Ran("train-check", *words, cwd=tmp_path).complaint


def test_an_interpreter_without_torch_is_told_as_that(tmp_path: Path) -> None:
    words = ("--python", sys.executable, "--format", "json", "--timeout", "60")
    ran = Ran("train-check", *words, cwd=tmp_path)
    report: dict[str, Any] = ran.json
    assert ran.code == 1
    assert [f["name"] for f in report["findings"]] == ["training-run-failed"]
    assert "torch" in report["findings"][0]["summary"]
    assert {c["outcome"] for c in report["checks"]} == {"unknown"}


@pytest.mark.slow
def test_this_machine_trains_right_and_what_it_costs_is_told(tmp_path: Path) -> None:
    words = ("--python", jobs.python(), "--steps", "8", "--plot", "page.html", "--dir", "kept")
    ran = Ran("train-check", *words, "--format", "json", cwd=tmp_path)
    report: dict[str, Any] = ran.json
    assert ran.code == 0, report
    assert {c["name"]: c["outcome"] for c in report["checks"]} == {
        "replicas-equal": "clear",
        "loss-equal": "clear",
        "resume-equal": "clear",
        "shards-disjoint": "clear",
    }
    told = report["data"]["train_check"]
    assert told["schema"] == "torchdoctor.train-check/1"
    assert told["loss_difference"] <= told["tolerance"]["relative"]
    assert 0 <= told["costs"]["input_share"] <= 1
    assert told["costs"]["efficiency"] > 0
    assert told["runs"]["resumed"]["notes"][0]["event"] == "resumed"
    assert "<svg" in (tmp_path / "page.html").read_text()
    record = json.loads((tmp_path / "kept" / "whole" / "run.json").read_text())
    assert record["outcome"] == "done"


@pytest.mark.slow
def test_what_was_written_out_runs_by_itself(tmp_path: Path) -> None:
    place = runs.harness(tmp_path)
    done = subprocess.run(
        runs.command(place, tmp_path / "run", "--steps", "3"),
        cwd=tmp_path,
        env=runs.environ(tmp_path),
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    logs = [path.read_text() for path in (tmp_path / "run" / "logs").rglob("stdout.log")]
    assert sorted(log.split()[0] for log in logs) == ["rank=0", "rank=1"]
    assert all("world_size=2" in log for log in logs)
