"""Who was killed, and whether it was for memory."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner
from torchdoctor.facts import Limits

ROOT = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n"
    "  host      : worker-0\n  rank      : 3 (local_rank: 1)\n  exitcode  : {} (pid: 14750)"
)
WORKER = "RuntimeError: DataLoader worker (pid 19597) is killed by signal: Killed."
LOST = "RuntimeError: DataLoader worker (pid(s) 4242) exited unexpectedly"
KERNEL = "Out of memory: Killed process 4242 (python) total-vm:9000kB"
MANY = (
    "This DataLoader will create 8 worker processes in total. Our suggested max number of worker "
    "in current system is 2, which is smaller"
)


def test_a_rank_that_was_killed_is_named(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(ROOT.format(-9)), limits=Limits(memory=16 << 30))
    assert names(outcome) == {"host-oom-killed": "error"}
    assert "Rank 3 was killed" in summaries(outcome)
    assert outcome.findings[0].confidence == "likely"
    assert outcome.findings[0].where == {"rank": 3}
    assert "16 GiB" in [e.value for e in outcome.findings[0].evidence]
    plan = cure(symptoms=said(ROOT.format(-9)))
    assert first_command(plan).startswith("sudo dmesg")
    assert plan.verdict == "healthy"


def test_what_the_kernel_says_makes_it_certain(judge: Judge) -> None:
    outcome = judge(symptoms=said(ROOT.format(-9), KERNEL))
    assert outcome.findings[0].confidence == "certain"


def test_a_worker_that_was_killed_is_the_same_fault(judge: Judge) -> None:
    assert "A DataLoader worker was killed" in summaries(judge(symptoms=said(WORKER)))


def test_a_worker_that_says_nothing_is_run_without_workers(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(LOST))) == {"loader-worker-died": "error"}
    assert "num_workers=0" in cure(symptoms=said(LOST)).steps[0].step.title


def test_the_signal_of_a_worker_is_told(judge: Judge) -> None:
    text = "RuntimeError: DataLoader worker (pid 1) is killed by signal: Segmentation fault."
    assert "by Segmentation fault" in summaries(judge(symptoms=said(text)))


def test_too_many_workers_are_a_note_until_one_is_killed(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(MANY))) == {"dataloader-too-many-workers": "note"}
    both = judge(symptoms=said(MANY, WORKER))
    assert names(both)["dataloader-too-many-workers"] == "warning"
    assert cure(symptoms=said(MANY, WORKER)).verdict == "healthy"


def test_too_many_workers_are_a_warning_where_the_run_stands_still(judge: Judge) -> None:
    stands = judge(symptoms=said(MANY, "It hangs after that."))
    assert names(stands) == {"dataloader-too-many-workers": "warning"}


def test_as_many_workers_as_are_suggested_are_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(MANY.replace("create 8", "create 2"))).status == "clear"


def test_files_that_are_open_have_a_limit(judge: Judge, cure: Planner) -> None:
    text = said("OSError: [Errno 24] Too many open files")
    assert names(judge(symptoms=text)) == {"open-files-limit": "error"}
    assert first_command(cure(symptoms=text)) == "ulimit -n 65535"


def test_a_rank_that_was_asked_to_end_and_one_that_raised_are_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(ROOT.format(-15))).status == "clear"
    assert judge(symptoms=said(ROOT.format(1))).status == "clear"


def test_windows_has_no_such_killer(judge: Judge) -> None:
    outcome = judge(symptoms=said(ROOT.format(-9)), platform=make.windows())
    assert outcome.status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
