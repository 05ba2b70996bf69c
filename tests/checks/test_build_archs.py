from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import NOT_COLLECTED, Gpu

LIST = "TORCH_CUDA_ARCH_LIST"
RTX_5090 = make.nvidia("NVIDIA GeForce RTX 5090", (12, 0))
RTX_3090 = make.nvidia("NVIDIA GeForce RTX 3090", (8, 6))


def listing(value: str, *gpus: Gpu, nvcc: str = "13.0", **more: object) -> dict[str, object]:
    tools = make.tools(nvcc=make.nvcc(nvcc))
    torch = "2.13.0+cu130" if nvcc.startswith("13") else "2.10.0+cu128"
    known: dict[str, object] = {"build_tools": tools, "gpus": gpus, "variables": {LIST: value}}
    return make.to_build(torch, **known | more)


@pytest.mark.parametrize(
    "value", ["8.0", "8.0;8.6+PTX", "8.0 9.0a", "Ampere", "8.0 Hopper", "native", ""]
)
def test_what_torch_nvcc_and_the_gpu_take_is_clear(judge: Judge, value: str) -> None:
    assert judge(**listing(value, make.a100())).status == "clear"


@pytest.mark.parametrize("value", ["8.0,8.6", "sm_80", "80", "8.0;", "compute_80", "9.5"])
def test_what_torch_does_not_take_apart_is_an_error(judge: Judge, value: str) -> None:
    (found,) = judge(**listing(value, make.a100())).findings
    assert (found.name, found.severity) == ("arch-list-not-buildable", "error")
    assert value in found.summary
    assert found.steps[0].commands.bash == (f"export {LIST}=8.0",)


def test_an_older_torch_does_not_know_all_that_nvcc_does(judge: Judge) -> None:
    tools = make.tools(nvcc=make.nvcc("12.8"), arch_names=("8.0", "9.0"))
    facts = listing("8.0;12.0", make.a100(), nvcc="12.8", build_tools=tools)
    (found,) = judge(**facts).findings
    assert "torch does not know '12.0'" in found.summary
    unread = make.tools(nvcc=make.nvcc("12.8"), arch_names=NOT_COLLECTED)
    facts = listing("8.0;12.0", make.a100(), nvcc="12.8", build_tools=unread)
    assert judge(**facts).status == "clear"


@pytest.mark.parametrize(
    ("value", "nvcc", "kept"),
    [("8.0;12.0", "12.4", "8.0"), ("7.0;8.0", "13.0", "8.0"), ("10.0;8.0+PTX", "12.6", "8.0+PTX")],
)
def test_what_nvcc_makes_no_code_for_is_left_out(
    judge: Judge, value: str, nvcc: str, kept: str
) -> None:
    tools = make.tools(nvcc=make.nvcc(nvcc), arch_names=NOT_COLLECTED)
    (found,) = judge(**listing(value, make.a100(), nvcc=nvcc, build_tools=tools)).findings
    assert (found.name, found.severity) == ("arch-list-not-buildable", "error")
    assert f"nvcc of CUDA {nvcc} makes no code for" in found.summary
    assert found.steps[0].commands.bash == (f"export {LIST}={kept}",)


def test_a_list_without_the_gpu_is_a_warning(judge: Judge) -> None:
    (found,) = judge(**listing("8.0;9.0", RTX_5090)).findings
    assert (found.name, found.severity) == ("arch-list-misses-gpu", "warning")
    assert "leaves out NVIDIA GeForce RTX 5090 (12.0)" in found.summary
    assert found.steps[0].commands.bash == (f"export {LIST}='8.0;9.0;12.0'",)


@pytest.mark.parametrize(
    ("value", "card"), [("8.0", RTX_3090), ("9.0+PTX", RTX_5090), ("12.0a", RTX_5090)]
)
def test_code_that_runs_on_the_gpu_all_the_same_is_no_fault(
    judge: Judge, value: str, card: Gpu
) -> None:
    assert judge(**listing(value, card)).status == "clear"


def test_newer_code_or_ptx_does_not_run_on_an_older_gpu(judge: Judge) -> None:
    (found,) = judge(**listing("9.0+PTX", RTX_3090)).findings
    assert found.name == "arch-list-misses-gpu"
    (found,) = judge(**listing("8.6", make.a100())).findings
    assert found.name == "arch-list-misses-gpu"


def test_without_the_profile_or_cuda_the_list_is_not_looked_at(judge: Judge) -> None:
    assert judge(**listing("nonsense", expectation=make.EXPECT_CUDA)).status == "clear"
    assert judge(**listing("nonsense", torch=make.build("2.13.0+cpu"))).status == "clear"


def test_what_torch_said_of_it_needs_no_profile(judge: Judge, cure: Planner) -> None:
    commas = make.symptom("arch-list-refused", "log", arch="8.0,8.6")
    (found,) = judge(symptoms=(commas,)).findings
    assert found.steps[0].commands.bash == (f"unset {LIST}",)
    old = make.symptom("arch-list-refused", "log", arch="8.9")
    (found,) = judge(symptoms=(old,)).findings
    assert "install a torch that knows it" in found.steps[0].title
    for said in (commas, old):
        assert cure(symptoms=(said,), variables={}).verdict == "healthy"


def test_what_is_not_known_supports_nothing(judge: Judge) -> None:
    assert judge(**listing("8.0", variables=NOT_COLLECTED)).status == "unknown"
    assert judge(**listing("8.0", make.a100(), nvcc="13.99")).status == "unknown"
    unknown = judge(**listing("8.0", make.a100(), build_tools=NOT_COLLECTED, toolkits=()))
    assert unknown.status == "unknown"
    assert judge(**listing("8.0")).status == "clear"


def test_the_list_put_right_cures(cure: Planner) -> None:
    for facts in (
        listing("8.0,8.6", make.a100()),
        listing("8.0;9.0", RTX_5090),
        listing("7.0;8.0", make.a100()),
        listing("sm_80", make.a100(), RTX_5090),
    ):
        plan = cure(**facts)
        assert plan.verdict == "healthy"
        assert plan.steps[0].step.name in ("set-torch-cuda-arch-list", "unset-torch-cuda-arch-list")
