from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import Toolkit

TEXT = "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"
OLD = make.symptom("ptxas-too-old", "log", TEXT, target="sm_121a")
HERE = {"symptoms": (OLD,), "torch": make.build("2.9.1+cu130")}


def test_a_ptxas_that_does_not_know_the_gpu_is_told_with_its_target(judge: Judge) -> None:
    (found,) = judge(**HERE).findings
    assert (found.name, found.severity) == ("triton-ptxas-too-old", "error")
    assert "sm_121a" in found.summary
    (line,) = found.steps[0].commands.bash
    assert line == "export TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas"


def test_the_toolkit_that_is_here_is_named_where_it_is_new_enough(judge: Judge) -> None:
    toolkits = (Toolkit("12.4", "/opt/cuda-12"), Toolkit("13.0", "/opt/cuda-13"))
    (found,) = judge(**HERE, toolkits=toolkits).findings
    assert found.steps[0].commands.bash[0].endswith("=/opt/cuda-13/bin/ptxas")
    (found,) = judge(**HERE, toolkits=toolkits[:1]).findings
    assert [step.name for step in found.steps] == ["install-torch-2-15-0-cu132"]


def test_the_second_ptxas_of_triton_has_a_variable_of_its_own(judge: Judge) -> None:
    said = make.symptom("ptxas-too-old", "log", f"ptxas-blackwell {TEXT[6:]}", target="sm_110a")
    (found,) = judge(symptoms=(said,), torch=make.build()).findings
    assert "TRITON_PTXAS_BLACKWELL_PATH" in found.steps[0].commands.bash[0]


def test_a_torch_without_code_for_the_gpu_is_another_fault(judge: Judge) -> None:
    said = make.symptom("no-kernel-image", "log", code="209")
    assert judge(symptoms=(said,), torch=make.build()).status == "clear"
    assert judge(**HERE | {"torch": None}).status == "clear"
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    plan = cure(**HERE, variables={})
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "set-triton-ptxas-path")
