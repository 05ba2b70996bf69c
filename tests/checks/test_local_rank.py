"""How a script learns its local rank."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

REFUSED = "train.py: error: unrecognized arguments: --local-rank=0"
REQUIRED = "train.py: error: the following arguments are required: --local_rank"


def test_an_argument_that_is_refused_comes_from_the_launcher(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(REFUSED))
    assert names(outcome) == {"local-rank-arg": "error"}
    assert "hands the script --local-rank" in summaries(outcome)
    plan = cure(symptoms=said(REFUSED))
    assert first_command(plan).startswith("torchrun")
    assert plan.verdict == "healthy"


def test_an_argument_that_is_asked_for_does_not_come_from_torchrun(judge: Judge) -> None:
    assert "torchrun hands no such argument on" in summaries(judge(symptoms=said(REQUIRED)))


def test_another_argument_is_another_matter(judge: Judge) -> None:
    text = "train.py: error: unrecognized arguments: --batch-size=8"
    assert judge(symptoms=said(text)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
