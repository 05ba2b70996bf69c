from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import NOT_COLLECTED, Gpu, Toolkit

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


GB10 = make.nvidia("NVIDIA GB10", (12, 1))
RTX_5090 = make.nvidia("NVIDIA GeForce RTX 5090", (12, 0))


def asked(gpu: Gpu, **programs: str) -> dict[str, object]:
    named = {name.replace("_", "-"): release for name, release in programs.items()}
    return make.to_build(build_tools=make.tools(ptxas=named), gpus=(gpu,))


def test_for_who_compiles_the_release_of_ptxas_decides(judge: Judge, cure: Planner) -> None:
    (found,) = judge(**asked(GB10, ptxas="12.8")).findings
    assert (found.name, found.severity) == ("triton-ptxas-too-old", "error")
    assert (
        "ptxas of triton is of CUDA 12.8 and does not know NVIDIA GB10 (sm_121a)" in found.summary
    )
    assert judge(**asked(RTX_5090, ptxas="12.8")).status == "clear"
    assert judge(**asked(GB10, ptxas="12.9")).status == "clear"
    plan = cure(**asked(GB10, ptxas="12.8"))
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "set-triton-ptxas-path")


def test_the_one_for_newer_gpus_is_asked_for_them_alone(judge: Judge) -> None:
    assert judge(**asked(GB10, ptxas="12.8", ptxas_blackwell="13.0")).status == "clear"
    (found,) = judge(**asked(GB10, ptxas="13.0", ptxas_blackwell="12.8")).findings
    assert "BLACKWELL" in found.steps[0].commands.bash[0]
    hopper = make.nvidia("NVIDIA H100", (9, 0))
    (found,) = judge(**asked(hopper, ptxas="11.7", ptxas_blackwell="13.0")).findings
    assert "sm_90a" in found.summary


def test_a_gpu_that_it_has_dropped_and_no_triton_are_no_such_fault(judge: Judge) -> None:
    pascal = make.nvidia("NVIDIA GeForce GTX 1080", (6, 1))
    assert judge(**asked(pascal, ptxas="13.0")).status == "clear"
    assert judge(**asked(GB10)).status == "clear"
    assert judge(**asked(GB10, ptxas="12.8") | {"expectation": make.EXPECT_CUDA}).status == "clear"
    assert judge(**asked(GB10, ptxas="13.99")).status == "unknown"
    assert judge(**make.to_build(build_tools=NOT_COLLECTED)).status == "unknown"
