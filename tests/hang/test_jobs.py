"""Real jobs over gloo, with a fault each: the right rank and place, and nothing is disturbed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hang import jobs
from tests.hang.jobs import finding_of, line_of, running
from tests.test_cli import Ran
from torchdoctor.hang import folder

pytestmark = pytest.mark.slow


@pytest.mark.sample
def test_the_rank_that_sleeps_before_a_collective_is_named_with_its_line(tmp_path: Path) -> None:
    with running("late", tmp_path) as job:
        words = ("--watch", "1", "--no-py-spy", "--no-ras", "--format", "json")
        ran = Ran("hang", str(job.launcher), *words, cwd=tmp_path)
        report: dict[str, Any] = ran.json
        assert job.alive(0)
        assert job.alive(1)
    assert ran.code == 1
    (finding,) = report["findings"]
    assert finding["name"] == "rank-stuck"
    assert finding["where"] == {
        "rank": 1,
        "collective": 4,
        "operation": "all_reduce",
        "group": "0",
    }
    assert finding["location"] == {"file": str(jobs.SCRIPT), "line": line_of("time.sleep(120)")}
    assert "all_reduce of Double [5, 7]" in finding["summary"]


def test_of_four_ranks_the_one_that_sleeps_is_named_from_any_of_them(tmp_path: Path) -> None:
    with running("late", tmp_path, ranks=4) as job:
        seen, found = job.look(pid=job.ranks[2])
        assert (found.cause, found.ranks, found.waiting) == ("late", (3,), (0, 1, 2))
        # What the ranks left on the disk says the same, without any process.
        finding_of(seen, found)
    left = folder.job(folder.read([str(job.armed)]))
    from torchdoctor.hang import blame  # noqa: PLC0415 - only here

    after = blame.blame(left)
    assert (after.cause, after.ranks) == ("late", (3,))


def test_a_rank_in_another_collective_is_a_mismatch_with_both_places(tmp_path: Path) -> None:
    with running("operation", tmp_path) as job:
        seen, found = job.look()
        finding = finding_of(seen, found)
    assert found.cause == "mismatch"
    line = line_of("dist.barrier() if RANK == 1")
    assert f"rank 0: broadcast of Float [3] at {jobs.SCRIPT}:{line}" in finding.summary
    assert f"rank 1: barrier at {jobs.SCRIPT}:{line}" in finding.summary


def test_a_collective_that_one_rank_skips_is_a_mismatch(tmp_path: Path) -> None:
    with running("skipped", tmp_path) as job:
        seen, found = job.look()
        finding = finding_of(seen, found)
    assert found.cause == "mismatch"
    assert f"{jobs.SCRIPT}:{line_of('dist.broadcast(torch.ones(8), 1)')}" in finding.summary


@pytest.mark.parametrize("fault", ["killed", "size"])
def test_a_rank_that_died_is_named_with_what_it_called_last(fault: str, tmp_path: Path) -> None:
    with running(fault, tmp_path, launcher="bare", settle=4) as job:
        seen, found = job.look(pid=job.ranks[0])
        finding = finding_of(seen, found)
    assert (finding.name, found.ranks) == ("rank-died", (1,))
    if fault == "killed":
        assert "after collective 3 of the default group" in finding.summary


def test_a_rank_that_came_to_its_end_first_is_no_crash(tmp_path: Path) -> None:
    with running("uneven", tmp_path, launcher="bare", settle=4) as job:
        seen, found = job.look(pid=job.ranks[0])
    assert (finding_of(seen, found).name, found.ranks) == ("uneven-steps-hang", (1,))


def test_an_exception_that_ended_a_rank_is_named(tmp_path: Path) -> None:
    with running("raised", tmp_path, launcher="bare", settle=4) as job:
        seen, found = job.look(pid=job.ranks[0])
    finding = finding_of(seen, found)
    assert (finding.name, found.ranks) == ("rank-raised", (1,))
    assert "KeyError" in finding.summary


@pytest.mark.parametrize("armed", [True, False])
def test_a_stopped_rank_is_named_and_stays_stopped(armed: bool, tmp_path: Path) -> None:  # noqa: FBT001
    with running("wait", tmp_path, armed=armed, settle=0) as job:
        os.kill(job.ranks[1], signal.SIGSTOP)
        time.sleep(1)
        seen, found = job.look()
        assert Path(f"/proc/{job.ranks[1]}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        finding = finding_of(seen, found)
        os.kill(job.ranks[1], signal.SIGCONT)
    assert (finding.name, found.ranks) == ("rank-stopped", (1,))
    assert finding.steps[0].commands.bash == (f"kill -CONT {job.ranks[1]}",)


def test_the_one_behind_is_named_and_not_who_waits_for_it_in_another_group(tmp_path: Path) -> None:
    with running("group", tmp_path, ranks=3) as job:
        _, found = job.look()
    assert (found.cause, found.ranks) == ("late", (1,))


def test_two_groups_in_another_order_are_a_circle(tmp_path: Path) -> None:
    with running("circle", tmp_path) as job:
        seen, found = job.look()
    assert (found.cause, finding_of(seen, found).name) == ("order", "collective-mismatch")


def test_a_job_that_is_merely_slow_is_no_hang(tmp_path: Path) -> None:
    with running("slow", tmp_path) as job:
        words = ("--watch", "3", "--no-py-spy", "--no-ras")
        ran = Ran("hang", str(job.launcher), *words, cwd=tmp_path)
    assert ran.code == 0, ran.out
    assert ran.out.startswith("No hang: 2 ranks get on")


def test_a_rank_at_work_is_slow_with_its_line_and_no_error(tmp_path: Path) -> None:
    with running("work", tmp_path) as job:
        seen, found = job.look(watch=3)
        finding = finding_of(seen, found)
    assert (finding.name, finding.severity, found.ranks) == ("slow-rank-timeout", "note", (1,))


def test_a_rank_that_is_not_armed_is_never_signalled(tmp_path: Path) -> None:
    with running("own-handler", tmp_path, armed=False, ranks=3) as job:
        _, found = job.look()
        assert all(map(job.alive, range(3)))
    assert not (tmp_path / "signalled").exists()
    assert (found.ranks, found.confidence) == ((2,), "possible")


def test_without_a_handler_a_signal_would_have_ended_it(tmp_path: Path) -> None:
    with running("late", tmp_path, armed=False) as job:
        _, found = job.look()
        assert all(map(job.alive, range(2)))
    assert (found.ranks, found.confidence) == ((1,), "possible")
