import pytest

from tests.checks.make import interpreter, linux, symptom, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage, Unknown

CASES = {
    "0xC0000135": ("program-dll-missing", "was not found"),
    "0xC0000139": ("program-dll-unfit", "lacks a function"),
    "0xC0000138": ("program-dll-unfit", "lacks a number"),
    "0xC000007B": ("program-dll-unfit", "for another processor"),
    "0xC0000142": ("program-dll-init-failed", "gave up while it started"),
    "0xC000012D": ("paging-file-too-small", "the page file cannot hold"),
}


@pytest.mark.parametrize("code", CASES)
def test_each_status_says_what_it_means(judge: Judge, code: str) -> None:
    said = (symptom("program-status", code=code),)
    (finding,) = judge(platform=windows(), symptoms=said).findings
    name, words = CASES[code]
    assert (finding.name, finding.severity, finding.confidence) == (name, "error", "likely")
    assert f"ended with {code} before its first line" in finding.summary
    assert words in finding.summary


def test_a_program_built_with_libtorch_needs_its_folder(judge: Judge, cure: Planner) -> None:
    said = (symptom("program-status", code="0xC0000135"),)
    (finding,) = judge(platform=windows(), symptoms=said).findings
    assert [s.name for s in finding.steps] == ["put-torch-dlls-on-path", "install-vc-redist"]
    assert r"\lib;$env:PATH" in finding.steps[0].commands.powershell[0]
    assert cure(platform=windows(), symptoms=said).verdict == "healthy"


def test_a_python_that_does_not_start_is_certain(judge: Judge, cure: Planner) -> None:
    known = {
        "platform": windows(),
        "interpreter": interpreter(executable=r"C:\env\python.exe"),
        "windows": system(status="0xC0000142"),
        "symptoms": (),
    }
    (finding,) = judge(**known).findings
    assert (finding.name, finding.confidence) == ("program-dll-init-failed", "certain")
    assert r"C:\env\python.exe ended with 0xC0000142" in finding.summary
    assert [s.name for s in finding.steps] == ["install-vc-redist"]
    assert cure(**known).verdict == "healthy"
    conda = Conda((CondaPackage("python", "3.11", "h", "conda-forge"),), r"C:\env")
    (finding,) = judge(**known, conda=conda).findings
    assert "vs2015_runtime" in finding.steps[0].commands.cmd[0]


@pytest.mark.parametrize("code", ["0xC0000005", "0xC0000409", "0xC000001D"])
def test_a_crash_of_code_that_ran_is_another_fault(judge: Judge, code: str) -> None:
    said = (symptom("program-status", code=code),)
    assert judge(platform=windows(), symptoms=said).status == "clear"
    known = {"platform": windows(), "windows": system(status=code), "symptoms": ()}
    assert judge(**known).status == "clear"


def test_a_python_that_starts_and_another_system_are_in_order(judge: Judge) -> None:
    started = {"platform": windows(), "windows": system(status=None), "symptoms": ()}
    assert judge(**started).status == "clear"
    said = (symptom("program-status", code="0xC0000135"),)
    assert judge(platform=linux(), windows=None, symptoms=said).status == "clear"


def test_without_messages_nothing_is_known(judge: Judge) -> None:
    assert judge(platform=windows(), windows=Unknown()).status == "unknown"
