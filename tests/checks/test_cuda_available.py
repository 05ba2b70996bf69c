from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Driver, Unknown

HERE = {
    "torch": make.build(),
    "trial": make.imported(),
    "driver": make.driver(),
    "gpus": (make.a100(),),
    "variables": {},
}
NOTHING = make.runtime(reason="CUDA error 3: initialization error")


def test_a_gpu_that_torch_does_not_find_is_a_warning(judge: Judge) -> None:
    (found,) = judge(**HERE, runtime=NOTHING).findings
    assert (found.name, found.severity) == ("cuda-not-available", "warning")
    assert "initialization error" in found.summary
    (found,) = judge(**HERE, runtime=NOTHING, expectation=make.EXPECT_CUDA).findings
    assert found.severity == "error"


def test_it_is_quiet_where_nothing_else_is_to_be_expected(judge: Judge) -> None:
    hung = Driver(None, hung=True)
    for change in (
        {"gpus": ()},
        {"driver": None},
        {"driver": hung},
        {"gpus": Unknown("hung")},
        {"variables": {"CUDA_VISIBLE_DEVICES": ""}},
        {"torch": make.build("2.13.0+cpu")},
        {"expectation": make.EXPECT_CPU},
    ):
        assert judge(**HERE | change, runtime=NOTHING).status == "clear"


def test_a_gpu_that_works_is_quiet(judge: Judge) -> None:
    assert judge(**HERE, runtime=make.runtime(make.device(make.a100()))).status == "clear"


def test_a_computation_that_fails_is_an_error(judge: Judge) -> None:
    said = make.runtime(make.device(make.a100(), "CUDA error: an illegal memory access"))
    (found,) = judge(**HERE, runtime=said).findings
    assert (found.name, found.severity) == ("gpu-kernel-fails", "error")
    assert "illegal memory access" in found.summary


def test_a_gpu_in_use_is_a_warning(judge: Judge) -> None:
    said = make.runtime(make.device(make.a100(), "CUDA out of memory. Tried to allocate"))
    (found,) = judge(**HERE, runtime=said).findings
    assert found.severity == "warning"


def test_a_death_in_a_stage_of_the_gpu_is_an_error(judge: Judge) -> None:
    known = HERE | {"trial": make.died("SIGSEGV", stage="nccl")}
    works = make.runtime(make.device(make.a100()))
    (found,) = judge(**known, runtime=works).findings
    assert found.name == "gpu-kernel-fails"
    assert "SIGSEGV" in found.summary
    elsewhere = HERE | {"trial": make.died("SIGSEGV", stage="numpy")}
    assert judge(**elsewhere, runtime=works).status == "clear"


def test_it_cannot_tell_without_a_trial(judge: Judge) -> None:
    assert judge(**HERE).status == "unknown"


def test_it_stays_in_the_plan_as_what_remains(cure: Planner) -> None:
    plan = cure(**HERE, runtime=NOTHING)
    assert (plan.verdict, names(plan.remaining)) == ("degraded", ["cuda-not-available"])
