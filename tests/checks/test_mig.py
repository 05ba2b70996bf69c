from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Expectation

SLICED = (make.a100(0, mig=True), make.a100(1, mig=True))
HERE = {"torch": make.build(), "gpus": SLICED}
TWO = {"CUDA_VISIBLE_DEVICES": "MIG-aaaa,MIG-bbbb"}


def test_two_slices_for_one_process_are_a_warning(judge: Judge) -> None:
    (found,) = judge(**HERE, variables=TWO).findings
    assert (found.name, found.severity) == ("mig-single-instance", "warning")
    assert "2 MIG slices" in found.summary
    assert found.steps[0].commands.bash == ("export CUDA_VISIBLE_DEVICES=MIG-aaaa",)


def test_the_wrong_count_of_torch_makes_it_an_error(judge: Judge) -> None:
    said = make.symptom("device-count-mismatch", "log")
    (found,) = judge(**HERE, variables={}, symptoms=(said,)).findings
    assert found.severity == "error"


def test_two_gpus_expected_of_slices_are_an_error(judge: Judge) -> None:
    expected = Expectation(gpus_at_least=2)
    (found,) = judge(**HERE, variables={}, expectation=expected).findings
    assert (found.severity, found.steps[0].name) == ("error", "switch-mig-off")


def test_one_slice_and_whole_gpus_are_quiet(judge: Judge) -> None:
    assert judge(**HERE, variables={"CUDA_VISIBLE_DEVICES": "MIG-aaaa"}).status == "clear"
    whole = HERE | {"gpus": (make.a100(0), make.a100(1))}
    expected = Expectation(gpus_at_least=2)
    assert judge(**whole, variables={}, expectation=expected).status == "clear"
    assert judge(**HERE, variables={}).status == "clear"


def test_it_cannot_tell_without_the_gpus(judge: Judge) -> None:
    assert judge(torch=make.build(), variables=TWO).status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    plan = cure(**HERE, variables=TWO)
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    plan = cure(**HERE, variables=TWO, expectation=Expectation(gpus_at_least=2))
    assert plan.verdict == "healthy"
