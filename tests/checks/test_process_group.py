"""The process group, before it is used."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

MISSING = (
    "ValueError: Default process group has not been initialized, please make sure to call "
    "init_process_group."
)
ENVIRONMENT = (
    "ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
    "variable WORLD_SIZE expected, but not set"
)


def test_a_group_that_is_used_too_early_is_an_error(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(MISSING))) == {"process-group-not-initialised": "error"}
    assert cure(symptoms=said(MISSING)).verdict == "healthy"


def test_a_script_without_its_launcher_is_told_to_use_torchrun(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(ENVIRONMENT))
    assert names(outcome) == {"launcher-missing": "error"}
    assert "WORLD_SIZE" in summaries(outcome)
    assert first_command(cure(symptoms=said(ENVIRONMENT))).startswith("torchrun --standalone")


def test_a_missing_launcher_explains_a_missing_group(judge: Judge) -> None:
    outcome = judge(symptoms=said(ENVIRONMENT, MISSING))
    assert "launcher-missing" in outcome.findings[1].because_of


def test_a_group_that_is_there_is_in_order(judge: Judge) -> None:
    text = "ValueError: trying to initialize the default process group twice!"
    assert judge(symptoms=said(text)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
