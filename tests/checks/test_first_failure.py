"""The rank that failed first, and those that notice it."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

ECHO = "[rank0]: ncclRemoteError: A call failed possibly due to a network error"
OWN = "[rank3]: ValueError: expected sequence of length 512"
LATER = "[rank1]: KeyError: 'labels'"
ROOT = (
    "Root Cause (first observed failure):\n[0]:\n  time      : 2025-05-21_15:43:03\n"
    "  host      : worker-0\n  rank      : 1 (local_rank: 1)\n  exitcode  : {} (pid: 14750)"
)


def test_the_error_of_its_own_is_told_from_the_echo(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(ECHO, OWN))
    assert names(outcome) == {"rank-crashed-first": "error"}
    assert "Rank 3 failed first (ValueError: expected sequence of length 512)" in summaries(outcome)
    assert outcome.findings[0].where == {"rank": 3}
    plan = cure(symptoms=said(ECHO, OWN))
    assert "--redirects 3" in first_command(plan)
    assert plan.verdict == "healthy"


def test_the_rank_that_torchrun_names_comes_before_the_first_in_the_text(judge: Judge) -> None:
    outcome = judge(symptoms=said(ECHO, OWN, LATER, ROOT.format(1)))
    assert "Rank 1 failed first (KeyError: 'labels')" in summaries(outcome)
    assert outcome.findings[0].confidence == "certain"


def test_two_errors_without_a_word_of_torchrun_are_likely(judge: Judge) -> None:
    assert judge(symptoms=said(ECHO, OWN, LATER)).findings[0].confidence == "likely"


def test_where_only_the_exit_code_is_known_it_is_said(judge: Judge) -> None:
    assert "Rank 1 failed first (exit code 1)" in summaries(
        judge(symptoms=said(ECHO, ROOT.format(1)))
    )


def test_what_another_check_explains_makes_it_a_note(judge: Judge) -> None:
    full = "NCCL WARN Call to posix_fallocate failed : No space left on device"
    assert names(judge(symptoms=said(ECHO, OWN, full))) == {"rank-crashed-first": "note"}


def test_a_rank_that_was_killed_or_ended_is_not_told_here(judge: Judge) -> None:
    for code in (-9, -15):
        assert judge(symptoms=said(ECHO, ROOT.format(code))).status == "clear"


def test_echoes_alone_and_an_error_alone_are_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(ECHO)).status == "clear"
    assert judge(symptoms=said(OWN)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
