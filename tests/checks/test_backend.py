"""A backend that is not in the build."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import names, said, summaries
from tests.conftest import Judge, Planner

SAID = "RuntimeError: Distributed package doesn't have NCCL built in"


def test_nccl_on_windows_is_never_there(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(SAID), platform=make.windows())
    assert names(outcome) == {"backend-unavailable": "error"}
    assert "torch for Windows has no NCCL" in summaries(outcome)
    plan = cure(symptoms=said(SAID), platform=make.windows())
    assert 'init_process_group("gloo")' in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_elsewhere_the_build_is_named_and_a_cpu_build_explains_it(judge: Judge) -> None:
    outcome = judge(symptoms=said(SAID), platform=make.linux(), torch=make.build("2.13.0+cpu"))
    assert "torch 2.13.0+cpu" in summaries(outcome)
    assert "cpu-only-build" in outcome.findings[0].because_of


def test_a_build_with_nccl_and_no_gpu_is_another_matter(judge: Judge) -> None:
    text = "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"
    assert judge(symptoms=said(text)).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"


ON_CPU = "RuntimeError: No backend type associated with device type cpu"


def test_a_tensor_on_the_cpu_is_not_for_nccl(judge: Judge, cure: Planner) -> None:
    for text in (ON_CPU, "RuntimeError: Tensors must be CUDA and dense"):
        outcome = judge(symptoms=said(text))
        assert names(outcome) == {"cpu-tensor-with-nccl": "error"}
    plan = cure(symptoms=said(ON_CPU))
    assert "cpu:gloo,cuda:nccl" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_tensors_on_two_devices_are_another_matter(judge: Judge) -> None:
    text = "RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!"
    assert judge(symptoms=said(text)).findings == ()
