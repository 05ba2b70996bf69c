from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Expectation, Unknown

HERE = {
    "platform": make.linux(),
    "interpreter": make.interpreter(),
    "driver": make.driver(),
    "gpus": (make.a100(),),
    "variables": {},
}
WORKS = make.runtime(make.device(make.a100()))


def _unmet(judge: Judge, expected: Expectation, **known: object) -> list[str]:
    return [f.summary for f in judge(**HERE | known, expectation=expected).findings]


def test_nothing_expected_is_quiet(judge: Judge) -> None:
    assert judge(**HERE, torch=make.build("2.13.0+cpu"), runtime=WORKS).status == "clear"


def test_cuda_needs_the_build_and_the_device(judge: Judge) -> None:
    cuda = make.EXPECT_CUDA
    assert _unmet(judge, cuda, torch=make.build(), runtime=WORKS) == []
    (said,) = _unmet(judge, cuda, torch=make.build("2.13.0+cpu"), runtime=WORKS)
    assert "is a cpu build" in said
    nothing = make.runtime(reason="Found no NVIDIA driver")
    (said,) = _unmet(judge, cuda, torch=make.build(), runtime=nothing)
    assert "Found no NVIDIA driver" in said
    assert len(_unmet(judge, cuda, torch=make.build(), driver=None)) == 1
    assert len(_unmet(judge, cuda, torch=None)) == 1


def test_cpu_is_met_by_any_build(judge: Judge) -> None:
    for version in ("2.13.0+cpu", "2.13.0+cu130"):
        assert _unmet(judge, make.EXPECT_CPU, torch=make.build(version)) == []
    assert len(_unmet(judge, make.EXPECT_CPU, torch=None)) == 1


def test_an_older_cuda_than_wanted_gets_a_build_with_it(judge: Judge) -> None:
    expected = Expectation(accelerator="cuda", cuda_at_least="12.6")
    outcome = judge(**HERE, torch=make.build("2.7.1+cu118"), expectation=expected)
    (found,) = outcome.findings
    assert (found.name, found.severity) == ("expectation-unmet", "error")
    assert "11.8" in found.summary
    assert "torch==2.7.1+cu128" in found.steps[0].commands.bash[0]
    assert _unmet(judge, expected, torch=make.build("2.7.1+cu126"), runtime=WORKS) == []


def test_cuda_versions_are_compared_as_numbers(judge: Judge) -> None:
    expected = Expectation(accelerator="cuda", cuda_at_least="12.10")
    assert len(_unmet(judge, expected, torch=make.build("2.13.0+cu129"), runtime=WORKS)) == 1


def test_the_number_of_gpus_counts_what_torch_sees(judge: Judge) -> None:
    two = Expectation(gpus_at_least=2)
    assert len(_unmet(judge, two, torch=make.build(), runtime=WORKS)) == 1
    cards = (make.a100(0), make.a100(1))
    both = make.runtime(*map(make.device, cards))
    assert _unmet(judge, two, torch=make.build(), runtime=both) == []
    assert _unmet(judge, two, torch=make.build(), gpus=cards) == []
    hidden = {"CUDA_VISIBLE_DEVICES": "0"}
    assert len(_unmet(judge, two, torch=make.build(), gpus=cards, variables=hidden)) == 1


def test_rocm_and_mps_are_asked_of_torch(judge: Judge) -> None:
    rocm, mps = Expectation(accelerator="rocm"), Expectation(accelerator="mps")
    assert _unmet(judge, rocm, torch=make.build("2.13.0+rocm7.2"), runtime=WORKS) == []
    assert len(_unmet(judge, rocm, torch=make.build(), runtime=WORKS)) == 1
    apple = make.build("2.13.0", tag=None)
    assert _unmet(judge, mps, torch=apple, runtime=make.runtime(mps=True)) == []
    assert len(_unmet(judge, mps, torch=apple, runtime=make.runtime(mps=False))) == 1


def test_it_cannot_tell_without_the_facts(judge: Judge) -> None:
    known = HERE | {"expectation": make.EXPECT_CUDA, "torch": make.build()}
    assert judge(**known).status == "unknown"
    two = Expectation(gpus_at_least=2)
    known = HERE | {"expectation": two, "torch": make.build(), "gpus": Unknown("hung")}
    assert judge(**known).status == "unknown"


def test_another_build_cures(cure: Planner) -> None:
    expected = Expectation(accelerator="cuda", cuda_at_least="12.6")
    plan = cure(**HERE, torch=make.build("2.7.1+cu118"), expectation=expected)
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
