"""Gradients that never come, and those that come twice."""

from __future__ import annotations

from tests.checks.run import names, said
from tests.conftest import Judge, Planner

NEVER = "RuntimeError: Expected to have finished reduction in the prior iteration before starting"
TWICE = "RuntimeError: Expected to mark a variable ready only once."


def test_a_parameter_without_a_gradient(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(NEVER))) == {"unused-parameters": "error"}
    plan = cure(symptoms=said(NEVER))
    assert "find_unused_parameters=True" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_a_parameter_with_two(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(TWICE))) == {"parameter-used-twice": "error"}
    assert "use_reentrant=False" in cure(symptoms=said(TWICE)).steps[0].step.title


def test_a_flag_that_was_not_needed_is_nothing(judge: Judge) -> None:
    text = "Warning: find_unused_parameters=True was specified in DDP constructor, but did not"
    assert judge(symptoms=said(text)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
