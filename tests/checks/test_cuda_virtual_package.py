from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner

PIXI = make.symptom(
    "cuda-virtual-package", "log", tool="pixi", wanted=">=12", have="__unix=0=0, __glibc=2.39=0"
)
CONDA = make.symptom("cuda-virtual-package", "log", package="pytorch-1.11.0-cuda102py310_202")


def test_a_machine_without_a_driver_cannot_solve_for_cuda(judge: Judge) -> None:
    (found,) = judge(symptoms=(PIXI,)).findings
    assert (found.name, found.severity) == ("cuda-virtual-package", "error")
    assert "__cuda >=12" in found.summary
    assert "sees no driver" in found.summary
    assert found.steps[0].commands.bash == ("export CONDA_OVERRIDE_CUDA=12.0",)


def test_an_older_driver_is_told_with_its_cuda(judge: Judge) -> None:
    said = make.symptom("cuda-virtual-package", "log", wanted=">=12", have="11.8")
    (found,) = judge(symptoms=(said,)).findings
    assert "sees CUDA 11.8" in found.summary


def test_a_driver_that_fits_is_only_listed_along(judge: Judge) -> None:
    said = make.symptom("cuda-virtual-package", "log", wanted=">=12", have="12.4")
    assert judge(symptoms=(said,)).status == "clear"
    both = make.symptom(
        "cuda-virtual-package", "log", wanted=">=12", have="__unix=0=0, __cuda=12.8=0"
    )
    assert judge(symptoms=(both,)).status == "clear"


def test_pixi_is_told_to_name_cuda_in_its_manifest(judge: Judge) -> None:
    text = "__cuda *, for which no candidates were found"
    said = make.symptom("cuda-virtual-package", "log", text, wanted="*")
    (found,) = judge(symptoms=(said,)).findings
    assert found.steps[0].commands.bash == ("pixi workspace system-requirements add cuda 12",)


def test_it_needs_messages(judge: Judge) -> None:
    assert judge().status == "unknown"
    assert judge(symptoms=()).status == "clear"


@pytest.mark.parametrize("said", [PIXI, CONDA])
def test_the_step_cures(cure: Planner, said: object) -> None:
    assert cure(symptoms=(said,), variables={}).verdict == "healthy"
    assert cure(symptoms=(said,)).verdict == "healthy"
