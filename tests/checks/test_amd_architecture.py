from __future__ import annotations

from tests.checks import make
from tests.checks.run import said
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Device, Gpu

BUILD = make.build("2.13.0+rocm7.2")
LIST = ("gfx90a", "gfx1030", "gfx1100")
FAILS = "HIP error: invalid device function"


def _device(name: str, gfx: str, kernel: str | None) -> Device:
    return Device(0, name, kernel=kernel, gfx=gfx)


def test_a_relative_of_a_target_gets_an_override(judge: Judge, cure: Planner) -> None:
    said = make.runtime(_device("AMD Radeon RX 6600", "gfx1032", FAILS), arch_list=LIST)
    (found,) = judge(torch=BUILD, runtime=said, variables={}).findings
    assert (found.name, found.severity) == ("arch-not-supported", "error")
    assert "gfx1032" in found.summary
    assert found.steps[0].commands.bash == ("export HSA_OVERRIDE_GFX_VERSION=10.3.0",)
    assert cure(torch=BUILD, runtime=said, variables={}).verdict == "healthy"


def test_a_target_without_relatives_gets_the_newest_build_that_has_it(
    judge: Judge, cure: Planner
) -> None:
    said = make.runtime(_device("AMD Instinct MI50", "gfx906:sramecc+", FAILS), arch_list=LIST)
    known = {"torch": BUILD, "runtime": said, "variables": {}, "platform": make.linux()}
    (found,) = judge(**known).findings
    # rocBLAS of ROCm 6.4 and newer has no gfx906, though torch has
    assert "torch==2.9.1+rocm6.3" in found.steps[0].commands.bash[0]
    assert cure(**known).verdict == "healthy"


def test_a_gfx1103_is_not_told_to_hang_itself(judge: Judge) -> None:
    said = make.runtime(_device("AMD Radeon 780M", "gfx1103", FAILS), arch_list=LIST)
    (found,) = judge(torch=BUILD, runtime=said, variables={}, platform=make.linux()).findings
    assert all("HSA_OVERRIDE" not in str(step.commands) for step in found.steps)
    assert "rocm7.1" in found.steps[0].commands.bash[0]


def test_no_override_for_a_runtime_that_refuses_it(judge: Judge) -> None:
    said = make.runtime(_device("AMD Radeon RX 6600", "gfx1032", FAILS), arch_list=LIST)
    new = make.build("2.14.1+rocm7.14")
    (found,) = judge(torch=new, runtime=said, variables={}, platform=make.linux()).findings
    assert found.steps[0].commands.bash[0].endswith("/whl/rocm7.2")
    assert found.steps[0].commands.bash[1] == "export HSA_OVERRIDE_GFX_VERSION=10.3.0"


def test_the_table_tells_without_a_trial(judge: Judge) -> None:
    lone = Gpu("", "amd", gfx="gfx1032")
    known = {"torch": BUILD, "gpus": (lone,), "platform": make.linux()}
    (found,) = judge(**known, variables={}).findings
    assert (found.name, found.confidence) == ("arch-not-supported", "likely")
    fine = Gpu("", "amd", gfx="gfx1100")
    small = Gpu("", "amd", gfx="gfx1036")
    assert judge(**known | {"gpus": (fine, small)}, variables={}).status == "clear"
    already = {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"}
    assert judge(**known, variables=already).status == "unknown"
    unread = make.build("2.15.0+rocm7.14")
    assert judge(**known | {"torch": unread}, variables={}).status == "unknown"


def test_a_kernel_that_ran_is_quiet(judge: Judge) -> None:
    said = make.runtime(_device("AMD Radeon RX 6600", "gfx1032", None), arch_list=LIST)
    assert judge(torch=BUILD, runtime=said).status == "clear"


def test_another_error_on_a_listed_target_is_another_matter(judge: Judge) -> None:
    said = make.runtime(_device("RX 7900 XTX", "gfx1100", "HIP out of memory"), arch_list=LIST)
    assert judge(torch=BUILD, runtime=said).status == "clear"


def test_it_cannot_tell_without_a_trial_and_is_quiet_for_cuda(judge: Judge) -> None:
    assert judge(torch=BUILD).status == "unknown"
    known = make.runtime(make.device(make.a100(), FAILS))
    assert names(judge(torch=make.build(), runtime=known).findings) == []


def test_a_pasted_report_is_offered_the_override_too(judge: Judge, cure: Planner) -> None:
    torch = make.build("2.0.0+rocm5.4.2", hip=None)  # by its label alone
    known = {"torch": torch, "gpus": (Gpu("AMD Radeon RX 6600", "amd", gfx="gfx1032"),)}
    (found,) = judge(**known).findings
    assert found.steps[0].commands.bash == ("export HSA_OVERRIDE_GFX_VERSION=10.3.0",)
    assert cure(**known).verdict == "healthy"
    fits = known | {"gpus": (Gpu("AMD Radeon RX 6800", "amd", gfx="gfx1030"),)}
    assert judge(**fits).status == "clear"


PHOENIX = Gpu("AMD Radeon 780M", "amd", gfx="gfx1103")


def test_what_hip_says_of_the_only_gpu_needs_no_version(judge: Judge, cure: Planner) -> None:
    known = {
        "gpus": (PHOENIX,),
        "symptoms": said(f"RuntimeError: {FAILS}"),
        "platform": make.linux(),
    }
    (found,) = judge(**known).findings
    assert (found.name, found.confidence) == ("arch-not-supported", "likely")
    assert "gfx1103" in found.summary
    assert cure(**known).verdict == "healthy"


def test_the_same_words_of_cuda_or_without_a_gpu_say_nothing(judge: Judge) -> None:
    cuda = said("RuntimeError: CUDA error: invalid device function")
    assert judge(gpus=(PHOENIX,), symptoms=cuda).status == "unknown"
    assert judge(symptoms=said(f"RuntimeError: {FAILS}")).status == "unknown"
    two = (PHOENIX, Gpu("AMD Radeon RX 7900 XTX", "amd", gfx="gfx1100"))
    assert judge(gpus=two, symptoms=said(f"RuntimeError: {FAILS}")).status == "unknown"
