import pytest

from tests.checks.make import dll_error, dll_load, imported, linux, raised, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad, Unknown

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


# ---- a policy, and no number ----

SILENT = raised("ImportError", "DLL load failed while importing _C: ...")
ON = {"smart-app-control": "on"}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (ON, "Smart App Control is in force"),
        (
            {"smart-app-control": "off", "code-integrity": "enforced"},
            "a code integrity policy is in force",
        ),
    ],
)
def test_a_policy_in_force_is_one_reason_where_the_files_give_none(
    judge: Judge, cure: Planner, policy: dict[str, str], said: str
) -> None:
    here = system(DllLoad(), policy=policy)
    known = {"platform": windows(), "windows": here, "symptoms": (), "trial": SILENT}
    (finding,) = judge(**known).findings
    assert (finding.name, finding.confidence) == ("app-control-blocked", "possible")
    assert said in finding.summary
    assert cure(**known).verdict == "healthy"


@pytest.mark.parametrize(
    "changes",
    [
        {"windows": system(DllLoad(), policy={"smart-app-control": "evaluation"})},
        {"windows": system(DllLoad(), policy={"code-integrity": "audit"})},
        {"windows": system(DllLoad(), policy=Unknown())},
        {"windows": system(dll_load(), policy=ON)},  # the files say why
        {"windows": system(Unknown(), policy=ON)},
        {"trial": imported()},
        {"trial": Unknown()},
        {"trial": raised("ModuleNotFoundError", "No module named 'torch'")},
        {"symptoms": (dll_error("126", "shm.dll"),)},
    ],
)
def test_a_policy_is_not_blamed_for_what_has_another_reason_or_did_not_fail(
    judge: Judge, changes: dict[str, object]
) -> None:
    known = {
        "platform": windows(),
        "windows": system(DllLoad(), policy=ON),
        "symptoms": (),
        "trial": SILENT,
    }
    assert judge(**{**known, **changes}).status == "clear"
