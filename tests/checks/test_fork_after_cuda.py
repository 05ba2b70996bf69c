"""CUDA and the processes that are made after it."""

from __future__ import annotations

from tests.checks.run import names, said
from tests.conftest import Judge, Planner

FORKED = "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with"
NOTEBOOK = (
    "RuntimeError: CUDA has been initialized before the `notebook_launcher` could create a "
    "forked subprocess."
)
GUARD = (
    "        An attempt has been made to start a new process before the\n"
    "        current process has finished its bootstrapping phase."
)


def test_a_forked_process_is_told_to_be_spawned(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(FORKED))) == {"cuda-init-before-fork": "error"}
    plan = cure(symptoms=said(FORKED))
    assert 'multiprocessing_context="spawn"' in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_a_notebook_is_told_to_restart_its_kernel(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(NOTEBOOK))) == {"cuda-init-before-fork": "error"}
    assert "Restart the kernel" in cure(symptoms=said(NOTEBOOK)).steps[0].step.title


def test_a_script_without_a_guard_starts_itself_again(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(GUARD))) == {"no-main-guard": "error"}
    assert "if __name__ == '__main__'" in cure(symptoms=said(GUARD)).steps[0].step.title


def test_an_initialization_error_without_a_fork_is_another_matter(judge: Judge) -> None:
    assert judge(symptoms=said("RuntimeError: CUDA error: initialization error")).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
