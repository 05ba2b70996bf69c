from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner

ISOLATED = make.symptom("build-without-torch", "log")
OF_UV = make.symptom("build-without-torch", "log", package="flash-attn")


def test_a_build_without_torch_is_told_with_the_torch_that_is_there(judge: Judge) -> None:
    (found,) = judge(symptoms=(ISOLATED,), torch=make.build()).findings
    assert (found.name, found.severity) == ("build-isolation", "error")
    assert "although torch 2.13.0+cu130 is installed" in found.summary
    tools, build = found.steps[0].commands.bash
    assert tools == "python -m pip install setuptools wheel ninja"
    assert build == "python -m pip install --no-build-isolation PACKAGE"


def test_the_package_that_uv_names_is_in_the_command(judge: Judge) -> None:
    (found,) = judge(symptoms=(ISOLATED, OF_UV)).findings
    assert found.summary.startswith("flash-attn is built")
    assert found.steps[0].commands.bash[-1].endswith("--no-build-isolation flash-attn")


def test_a_torch_that_is_missing_at_a_prompt_is_another_fault(judge: Judge) -> None:
    missing = make.symptom("module-missing", "log", module="torch")
    assert judge(symptoms=(missing,), torch=None).status == "clear"


def test_it_needs_messages(judge: Judge) -> None:
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    assert cure(symptoms=(ISOLATED,), torch=make.build()).verdict == "healthy"
