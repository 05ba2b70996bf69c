import pytest

from tests.checks.make import dll_error, imported, linux, system, windows
from tests.conftest import Judge, Planner

CASES = {
    "4551": ("app-control-blocked", "refuses c10_cuda.dll, which is not signed"),
    "225": ("antivirus-blocked", "A virus scanner refuses c10_cuda.dll"),
    "5": ("dll-access-denied", "This user may not open c10_cuda.dll"),
}


@pytest.mark.parametrize("code", CASES)
def test_each_number_has_its_name(judge: Judge, cure: Planner, code: str) -> None:
    seen = (dll_error(code, "c10_cuda.dll"),)
    (finding,) = judge(platform=windows(), symptoms=seen).findings
    name, said = CASES[code]
    assert (finding.name, finding.severity, finding.confidence) == (name, "error", "certain")
    assert said in finding.summary
    assert cure(platform=windows(), symptoms=seen).verdict == "healthy"


def test_the_state_of_smart_app_control_changes_the_advice(judge: Judge) -> None:
    seen = (dll_error("4551", "shm.dll"),)
    on = system(policy={"smart-app-control": "on"})
    (finding,) = judge(platform=windows(), symptoms=seen, windows=on).findings
    assert "WSL" in finding.steps[0].title
    assert "on" in {e.value for e in finding.evidence}


def test_a_policy_that_let_torch_through_is_in_order(judge: Judge) -> None:
    on = system(policy={"smart-app-control": "on"})
    assert judge(platform=windows(), symptoms=(), windows=on).status == "clear"
    seen = (dll_error("4551", "shm.dll"),)
    works = judge(platform=windows(), symptoms=seen, windows=on, trial=imported())
    assert works.status == "clear"


def test_another_number_or_system_is_not_concerned(judge: Judge) -> None:
    other = (dll_error("126", "shm.dll"),)
    assert judge(platform=windows(), symptoms=other).status == "clear"
    seen = (dll_error("4551", "shm.dll"),)
    assert judge(platform=linux(), symptoms=seen).status == "clear"
    assert judge(platform=windows()).status == "unknown"
