from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import NOT_COLLECTED, Gpu, Toolkit

RTX_5090 = make.nvidia("NVIDIA GeForce RTX 5090", (12, 0))
GTX_1080 = make.nvidia("NVIDIA GeForce GTX 1080", (6, 1))
WITHOUT = make.tools(nvcc=None, home=None)


def with_nvcc(release: str, torch: str, *gpus: Gpu, **more: object) -> dict[str, object]:
    tools = make.tools(nvcc=make.nvcc(release))
    return make.to_build(torch, build_tools=tools, gpus=gpus, **more)


def test_an_nvcc_of_torchs_cuda_that_knows_the_gpu_is_clear(judge: Judge) -> None:
    assert judge(**make.to_build()).status == "clear"
    assert judge(**with_nvcc("12.9", "2.10.0+cu128", RTX_5090)).status == "clear"
    assert judge(**with_nvcc("12.4", "2.10.0+cu128")).status == "clear"


def test_another_major_is_what_torch_raises_for(judge: Judge) -> None:
    (found,) = judge(**with_nvcc("12.4", "2.13.0+cu130")).findings
    assert (found.name, found.severity) == ("toolkit-mismatch", "error")
    assert "CUDA 12.4 in /usr/local/cuda-12.4, and torch was built with CUDA 13.0" in found.summary
    assert found.steps[0].commands.bash == ("export CUDA_HOME=/usr/local/cuda-13.0",)


def test_a_toolkit_of_torchs_major_that_is_here_is_named(judge: Judge, cure: Planner) -> None:
    here = (Toolkit("12.4", "/usr/local/cuda-12.4"), Toolkit("13.2", "/opt/cuda-13.2"))
    facts = with_nvcc("12.4", "2.13.0+cu130", toolkits=here)
    (found,) = judge(**facts).findings
    assert found.steps[0].commands.bash == ("export CUDA_HOME=/opt/cuda-13.2",)
    plan = cure(**facts)
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "set-cuda-home")


def test_no_nvcc_is_a_warning_for_a_cuda_build_alone(judge: Judge) -> None:
    (found,) = judge(**make.to_build(build_tools=WITHOUT)).findings
    assert (found.name, found.severity) == ("nvcc-missing", "warning")
    assert "CUDA_HOME is not set" in found.summary
    assert judge(**make.to_build("2.13.0+cpu", build_tools=WITHOUT)).status == "clear"
    assert judge(**make.to_build(torch=None, build_tools=WITHOUT)).status == "clear"
    run = make.to_build(build_tools=WITHOUT, expectation=make.EXPECT_CUDA)
    assert judge(**run).status == "clear"


def test_a_cuda_home_without_nvcc_is_named(judge: Judge) -> None:
    tools = make.tools(nvcc=None, home="/opt/nothing")
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert "/opt/nothing, which it takes for CUDA_HOME, has no bin/nvcc" in found.summary


def test_a_gpu_that_is_newer_than_nvcc_needs_the_first_that_knows_it(judge: Judge) -> None:
    (found,) = judge(**with_nvcc("12.4", "2.10.0+cu128", RTX_5090)).findings
    assert (found.name, found.severity) == ("toolkit-mismatch", "error")
    assert (
        "makes no code for NVIDIA GeForce RTX 5090 (sm_120); that of CUDA 12.8 does"
        in found.summary
    )
    assert found.steps[0].commands.bash == ("export CUDA_HOME=/usr/local/cuda-12.8",)


def test_a_gpu_that_nvcc_has_dropped_is_told_as_well(judge: Judge) -> None:
    (found,) = judge(**with_nvcc("13.0", "2.13.0+cu130", GTX_1080)).findings
    assert "makes no code for NVIDIA GeForce GTX 1080 (sm_61)." in found.summary
    assert judge(**with_nvcc("12.9", "2.10.0+cu128", GTX_1080)).status == "clear"


def test_torch_never_asks_for_more_than_it_has_code_for_itself(judge: Judge) -> None:
    seen = make.runtime(make.device(RTX_5090), arch_list=("sm_80", "sm_90"))
    assert judge(**with_nvcc("12.4", "2.5.1+cu124", RTX_5090, runtime=seen)).status == "clear"


def test_where_the_list_is_set_it_is_the_list_that_counts(judge: Judge) -> None:
    listed = {"TORCH_CUDA_ARCH_LIST": "8.0"}
    facts = with_nvcc("12.4", "2.10.0+cu128", RTX_5090, variables=listed)
    assert judge(**facts).status == "clear"


def test_of_a_text_the_toolkit_that_it_names_is_taken(judge: Judge) -> None:
    told = (Toolkit("11.8", ""),)
    facts = make.to_build(build_tools=NOT_COLLECTED, toolkits=told)
    (found,) = judge(**facts).findings
    assert found.summary.startswith("The toolkit is CUDA 11.8, and torch was built with CUDA 13.0")


def test_a_build_that_found_no_nvcc_says_so_without_the_profile(
    judge: Judge, cure: Planner
) -> None:
    said = make.symptom("nvcc-not-found", "log", "CUDA_HOME environment variable is not set")
    (found,) = judge(symptoms=(said,), torch=make.build()).findings
    assert (found.name, found.severity) == ("nvcc-missing", "error")
    assert found.steps[0].commands.bash == ("export CUDA_HOME=/usr/local/cuda-13.0",)
    assert cure(symptoms=(said,)).verdict == "healthy"


def test_what_is_not_known_supports_nothing(judge: Judge) -> None:
    assert judge(**make.to_build(torch=NOT_COLLECTED)).status == "unknown"
    nothing = make.to_build(build_tools=NOT_COLLECTED, toolkits=NOT_COLLECTED)
    assert judge(**nothing).status == "unknown"
    assert judge(**with_nvcc("13.99", "2.13.0+cu130", RTX_5090)).status == "unknown"
    mute = make.tools(nvcc=Toolkit(None, "/opt/cuda"))
    assert judge(**make.to_build(build_tools=mute)).status == "unknown"
    assert judge(**make.to_build(gpus=NOT_COLLECTED)).status == "clear"


def test_an_nvcc_newer_than_the_tables_tells_itself_what_it_knows(judge: Judge) -> None:
    tools = make.tools(nvcc=make.nvcc("13.99"), targets=("90", "120"))
    assert judge(**make.to_build(build_tools=tools, gpus=(RTX_5090,))).status == "clear"
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert "NVIDIA A100" in found.summary


def test_a_toolkit_brought_cures(cure: Planner) -> None:
    for release, facts in (
        ("13-0", make.to_build(build_tools=WITHOUT)),
        ("13-0", with_nvcc("12.4", "2.13.0+cu130")),
        ("12-8", with_nvcc("12.4", "2.10.0+cu128", RTX_5090)),
        ("13-0", make.to_build(build_tools=NOT_COLLECTED, toolkits=(Toolkit("11.8", ""),))),
    ):
        plan = cure(**facts)
        assert (plan.verdict, plan.steps[0].step.name) == ("healthy", f"name-toolkit-{release}")
