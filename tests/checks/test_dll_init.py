from tests.checks.make import build, dll_error, dll_load, imported, linux, system, windows
from tests.conftest import Judge
from torchdoctor.facts import DllLoad

SEEN = (dll_error("1114", "c10.dll"),)


def test_1114_where_the_files_fit_is_an_unknown_failure(judge: Judge) -> None:
    (finding,) = judge(platform=windows(), symptoms=SEEN, windows=system(DllLoad())).findings
    assert (finding.name, finding.severity) == ("dll-init-failed", "error")
    assert finding.confidence == "possible"
    assert "python -X faulthandler" in finding.summary
    assert not finding.steps


def test_1114_of_a_release_that_bears_old_runtimes(judge: Judge) -> None:
    (finding,) = judge(
        platform=windows(), symptoms=SEEN, torch=build("2.8.0+cpu"), windows=None
    ).findings
    assert "torch 2.8.0 is not known to need a newer Visual C++ runtime" in finding.summary


def test_a_known_cause_is_for_its_own_check(judge: Judge) -> None:
    assert judge(platform=windows(), symptoms=SEEN, windows=system(dll_load())).status == "clear"
    newer = {"torch": build("2.9.1+cpu"), "windows": None}
    assert judge(platform=windows(), symptoms=SEEN, **newer).status == "clear"
    assert judge(platform=windows(), symptoms=SEEN, windows=None).status == "clear"


def test_another_number_or_a_torch_that_works_is_quiet(judge: Judge) -> None:
    other = (dll_error("126", "c10.dll"),)
    files = system(DllLoad())
    assert judge(platform=windows(), symptoms=other, windows=files).status == "clear"
    works = judge(platform=windows(), symptoms=SEEN, windows=files, trial=imported())
    assert works.status == "clear"
    assert judge(platform=linux(), symptoms=SEEN, windows=files).status == "clear"


def test_messages_must_be_known(judge: Judge) -> None:
    assert judge(platform=windows()).status == "unknown"
