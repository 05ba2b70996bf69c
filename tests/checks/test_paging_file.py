from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner

FULL = make.symptom("winerror-dll", "log", code="1455", file=r"E:\site\torch\lib\cublas64_12.dll")


def test_the_number_of_the_error_settles_it(judge: Judge) -> None:
    (found,) = judge(symptoms=(FULL,)).findings
    assert (found.name, found.severity) == ("paging-file-too-small", "error")
    assert "cublas64_12.dll" in found.summary
    assert "num_workers=0" in found.steps[0].title
    assert "AutomaticManagedPagefile" in found.steps[1].commands.powershell[0]


def test_another_number_is_another_fault(judge: Judge) -> None:
    other = make.symptom("winerror-dll", "log", code="126", file="c10.dll")
    assert judge(symptoms=(other,)).status == "clear"
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    assert cure(symptoms=(FULL,)).verdict == "healthy"
