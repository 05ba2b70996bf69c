"""A store that asks for libuv."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

SAID = "use_libuv was requested but PyTorch was built without libuv support"


def test_the_variable_is_set(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(SAID), torch=make.build("2.5.1+cpu"))
    assert names(outcome) == {"libuv-missing": "error"}
    assert "torch 2.5.1+cpu" in summaries(outcome)
    plan = cure(symptoms=said(SAID), variables={})
    assert first_command(plan) == "export USE_LIBUV=0"
    assert plan.verdict == "healthy"


def test_a_library_of_that_name_is_another_matter(judge: Judge) -> None:
    text = "ImportError: libuv.so.1: cannot open shared object file: No such file or directory"
    assert judge(symptoms=said(text)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
