from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import NOT_COLLECTED

WITHOUT = make.to_build(build_tools=make.tools(ninja=None))


def test_a_build_without_ninja_is_a_note_with_its_command(judge: Judge) -> None:
    (found,) = judge(**WITHOUT).findings
    assert (found.name, found.severity) == ("ninja-missing", "note")
    assert found.steps[0].commands.bash == ("/env/bin/python -m pip install ninja",)


def test_with_ninja_and_without_the_profile_nothing_is_said(judge: Judge) -> None:
    assert judge(**make.to_build()).status == "clear"
    assert judge(**WITHOUT | {"expectation": make.EXPECT_CPU}).status == "clear"


def test_what_torch_said_is_an_error_that_its_step_cures(judge: Judge, cure: Planner) -> None:
    said = make.symptom("ninja-not-found", "log", "Ninja is required to load C++ extensions")
    (found,) = judge(symptoms=(said,)).findings
    assert (found.name, found.severity) == ("ninja-missing", "error")
    plan = cure(symptoms=(said,), interpreter=make.interpreter())
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "install-ninja")


def test_what_is_not_known_supports_nothing(judge: Judge, cure: Planner) -> None:
    unknown = make.tools(ninja=NOT_COLLECTED)
    assert judge(**make.to_build(build_tools=unknown)).status == "unknown"
    assert judge(expectation=make.TO_BUILD).status == "unknown"
    assert names(cure(**WITHOUT).remaining) == ["ninja-missing"]
