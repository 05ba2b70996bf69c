from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Toolkit

OLD = Toolkit("11.8", "/usr/local/cuda-11.8")


def test_a_toolkit_of_another_major_is_a_note_without_steps(judge: Judge) -> None:
    (found,) = judge(torch=make.build("2.10.0+cu128"), toolkits=(OLD,)).findings
    assert (found.name, found.severity, found.steps) == ("toolkit-mismatch", "note", ())
    assert "11.8" in found.summary
    assert "12.8" in found.summary


def test_a_toolkit_of_the_same_major_and_none_are_quiet(judge: Judge) -> None:
    torch = make.build("2.10.0+cu128")
    newer = Toolkit("12.4", "/usr/local/cuda")
    assert judge(torch=torch, toolkits=(newer,)).status == "clear"
    assert judge(torch=torch, toolkits=(OLD, newer)).status == "clear"
    assert judge(torch=torch, toolkits=()).status == "clear"
    assert judge(torch=torch, toolkits=(Toolkit(None, "/opt/cuda"),)).status == "clear"
    assert judge(torch=make.build("2.10.0+cpu"), toolkits=(OLD,)).status == "clear"


def test_it_cannot_tell_without_the_toolkits(judge: Judge) -> None:
    assert judge(torch=make.build()).status == "unknown"


def test_a_note_needs_no_plan(cure: Planner) -> None:
    plan = cure(torch=make.build("2.10.0+cu128"), toolkits=(OLD,))
    assert (plan.verdict, plan.steps) == ("healthy", ())
    assert names(plan.remaining) == ["toolkit-mismatch"]


def test_a_build_that_the_toolkit_stopped_is_a_warning(judge: Judge, cure: Planner) -> None:
    said = make.symptom("toolkit-differs", "log", toolkit="11.8", torch="12.1")
    (found,) = judge(symptoms=(said,)).findings
    assert (found.name, found.severity) == ("toolkit-mismatch", "warning")
    assert "CUDA 11.8 and torch was built with CUDA 12.1" in found.summary
    assert found.steps[0].commands.bash == ("export CUDA_HOME=/usr/local/cuda-12.1",)
    old = make.symptom("nvcc-gpu-unsupported", "log", target="compute_120")
    (found,) = judge(symptoms=(old,)).findings
    assert "compute_120" in found.summary
    assert cure(symptoms=(said,)).verdict == "healthy"
    assert judge(symptoms=()).status == "unknown"


def test_for_who_compiles_another_check_looks_closer(judge: Judge) -> None:
    facts = {"torch": make.build("2.10.0+cu128"), "toolkits": (OLD,)}
    assert judge(**facts, expectation=make.TO_BUILD).status == "clear"
