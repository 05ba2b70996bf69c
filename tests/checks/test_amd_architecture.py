from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Device

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


def test_a_target_without_relatives_has_no_step(judge: Judge) -> None:
    said = make.runtime(_device("AMD Instinct MI50", "gfx906:sramecc+", FAILS), arch_list=LIST)
    (found,) = judge(torch=BUILD, runtime=said, variables={}).findings
    assert found.steps == ()


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
