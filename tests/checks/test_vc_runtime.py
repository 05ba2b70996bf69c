import pytest

from tests.checks.make import (
    build,
    died,
    dist,
    dll_error,
    dll_load,
    imported,
    lacks,
    linux,
    raised,
    symptom,
    system,
    windows,
)
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllFile, DllLoad, Unknown, VcNeed, Windows

HERE = {"platform": windows(), "torch": build("2.9.1+cpu")}
FAILED = raised("OSError", "[WinError 1114]")


def copies(*roles: tuple[str, str]) -> tuple[DllFile, ...]:
    return tuple(DllFile(rf"C:\{role}\msvcp140.dll", version, role) for role, version in roles)


def test_an_old_file_in_system32_is_an_error_with_its_version(judge: Judge) -> None:
    (finding,) = judge(**HERE, windows=system(dll_load())).findings
    assert (finding.name, finding.severity) == ("vcredist-too-old", "error")
    assert (finding.confidence, "14.34.31931.0" in finding.summary) == ("certain", True)
    assert "WinError 1114 naming c10.dll" in finding.summary
    assert finding.steps[0].commands.powershell == (
        "winget install -e --id Microsoft.VCRedist.2015+.x64",
    )


def test_a_runtime_that_is_nowhere(judge: Judge) -> None:
    load = lacks("MSVCP140.dll", "c10.dll", hint=True)
    (finding,) = judge(**HERE, windows=system(load, copies=())).findings
    assert finding.name == "vcredist-missing"
    assert "MSVCP140.dll of the Visual C++ runtime is nowhere" in finding.summary


def test_a_part_that_an_old_runtime_lacks_is_no_missing_runtime(judge: Judge) -> None:
    load = lacks("VCRUNTIME140_THREADS.dll", "shm.dll", "torch_cpu.dll")
    (finding,) = judge(**HERE, windows=system(load)).findings
    assert finding.name == "vcredist-too-old"
    assert "it has no VCRUNTIME140_THREADS.dll" in finding.summary


def test_what_the_registry_says_against_the_file_is_told(judge: Judge) -> None:
    need = VcNeed("mutex", "msvcp140.dll", "older", registered="14.44", contradicts_registry=True)
    (finding,) = judge(**HERE, windows=system(dll_load(), needs=(need,))).findings
    assert "although the registry has 14.44" in finding.summary


@pytest.mark.parametrize(
    "load",
    [
        DllLoad(),
        dll_load(place="application"),
        dll_load(place="package"),
        lacks("mkl_intel_thread.1.dll"),
    ],
)
def test_what_is_not_the_machine_s_runtime_is_for_others(judge: Judge, load: DllLoad) -> None:
    assert judge(**HERE, windows=system(load)).status == "clear"


def test_a_torch_that_imports_is_not_judged(judge: Judge) -> None:
    quiet = judge(**HERE, windows=system(dll_load()), trial=imported(), symptoms=())
    assert quiet.status == "clear"


def test_another_number_than_the_files_say_makes_it_possible_only(judge: Judge) -> None:
    seen = (dll_error("193", "c10.dll"),)
    (finding,) = judge(
        **HERE, windows=system(dll_load()), trial=died("exit"), symptoms=seen
    ).findings
    assert finding.confidence == "possible"


def test_wine_says_998_for_1114(judge: Judge) -> None:
    seen = (dll_error("998", "c10.dll"),)
    (finding,) = judge(**HERE, windows=system(dll_load()), trial=FAILED, symptoms=seen).findings
    assert finding.confidence == "certain"


# ---- versions, where the DLLs were not looked into ----


def listed(version: str) -> Windows:
    return Windows(registered={"x64": version})


def test_a_listed_runtime_and_the_message(judge: Judge) -> None:
    (finding,) = judge(
        **HERE, windows=listed("14.36"), symptoms=(dll_error("1114", "torch_python.dll"),)
    ).findings
    assert (finding.name, finding.severity) == ("vcredist-too-old", "error")
    assert "is 14.36, and torch 2.9.1 needs 14.39 or newer" in finding.summary


def test_without_a_message_it_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**HERE, windows=listed("14.36"), symptoms=()).findings
    assert (finding.severity, finding.confidence) == ("warning", "likely")


def test_a_new_runtime_or_an_older_torch_is_in_order(judge: Judge) -> None:
    message = (dll_error("1114", "c10.dll"),)
    assert judge(**HERE, windows=listed("14.44"), symptoms=message).status == "clear"
    older = {**HERE, "torch": build("2.8.0+cpu")}
    assert judge(**older, windows=listed("14.29"), symptoms=message).status == "clear"


@pytest.mark.parametrize("version", ["14.37.1", "14.38.33135"])
def test_between_what_faults_and_what_does_nothing_is_known(judge: Judge, version: str) -> None:
    between = listed(version)
    assert judge(**HERE, windows=between, symptoms=()).status == "clear"
    (finding,) = judge(**HERE, windows=between, symptoms=(dll_error("1114", "c10.dll"),)).findings
    assert (finding.name, finding.confidence) == ("vcredist-too-old", "possible")


@pytest.mark.parametrize(
    ("torch", "version", "old"),
    [
        ("2.9.1", "14.39.33520", False),
        ("2.9.1", "14.36.32532", True),
        ("2.14.1", "14.39.33520", False),
        ("2.14.1", "14.40.33810", False),
        ("2.15.0", "14.36.32532", False),
        ("2.15.0", "14.34.31931", True),
    ],
)
def test_only_what_was_seen_to_fail_is_too_old(
    judge: Judge, torch: str, version: str, *, old: bool
) -> None:
    known = {**HERE, "torch": build(f"{torch}+cpu")}
    found = judge(**known, windows=listed(version), symptoms=()).findings
    assert bool(found) is old


def test_the_file_counts_more_than_the_list(judge: Judge) -> None:
    both = system(registered={"x64": "14.44"}, copies=copies(("system32", "14.29.1")))
    (finding,) = judge(**HERE, windows=both, symptoms=()).findings
    assert "is 14.29.1" in finding.summary
    newer = system(registered={"x64": "14.29"}, copies=copies(("system32", "14.44.1")))
    assert judge(**HERE, windows=newer, symptoms=()).status == "clear"


def test_no_file_in_any_folder_that_counts(judge: Judge) -> None:
    none = system(copies=copies(("package", "14.44")))
    (finding,) = judge(**HERE, windows=none, symptoms=()).findings
    assert (finding.name, finding.severity) == ("vcredist-missing", "warning")


def test_1114_alone_is_likely_that(judge: Judge) -> None:
    message = (dll_error("1114", "c10.dll"),)
    (finding,) = judge(platform=windows(), symptoms=message).findings
    assert (finding.name, finding.confidence) == ("vcredist-too-old", "likely")
    beside = (dist("pyqt5", "5.15.2"),)
    (finding,) = judge(platform=windows(), symptoms=message, distributions=beside).findings
    assert (finding.confidence, finding.because_of) == ("possible", ("import-order-dll-conflict",))


def test_another_package_that_was_imported_before_comes_first(judge: Judge) -> None:
    said = (symptom("imported-first", module="PyQt5"), dll_error("1114", "c10.dll"))
    (finding,) = judge(platform=windows(), symptoms=said).findings
    assert (finding.confidence, finding.because_of) == ("possible", ("import-order-dll-conflict",))


def test_126_of_the_first_dll_is_likely_a_missing_runtime(judge: Judge) -> None:
    (finding,) = judge(platform=windows(), symptoms=(dll_error("126", "c10.dll"),)).findings
    assert (finding.name, finding.confidence) == ("vcredist-missing", "likely")
    assert judge(platform=windows(), symptoms=(dll_error("126", "shm.dll"),)).status == "clear"
    said = (symptom("vc-runtime-not-found"), dll_error("126", "c10.dll"))
    assert judge(platform=windows(), symptoms=said).status == "clear"  # dll-named has it


def test_another_system_is_not_concerned(judge: Judge) -> None:
    seen = (dll_error("1114", "c10.dll"),)
    assert judge(platform=linux(), windows=None, symptoms=seen).status == "clear"


def test_nothing_is_said_where_nothing_is_known(judge: Judge) -> None:
    assert judge(**HERE, windows=Unknown(), symptoms=()).status == "clear"


# ---- what a real import loaded ----


def test_another_file_than_the_one_worked_out_makes_it_possible_only(judge: Judge) -> None:
    other = (r"C:\Python\MSVCP140.dll", r"C:\env\Lib\site-packages\torch\lib\c10.dll")
    (finding,) = judge(**HERE, windows=system(dll_load(), loaded=other)).findings
    assert finding.confidence == "possible"
    same = (r"C:\windows\system32\MSVCP140.dll",)
    (finding,) = judge(**HERE, windows=system(dll_load(), loaded=same)).findings
    assert finding.confidence == "certain"


def test_the_loaded_file_is_the_runtime_of_the_process(judge: Judge) -> None:
    both = copies(("system32", "14.29.1"), ("application", "14.44.1"))
    old = system(copies=both, loaded=(r"C:\system32\msvcp140.dll",))
    (finding,) = judge(**HERE, windows=old, symptoms=()).findings
    assert "is 14.29.1" in finding.summary
    new = system(copies=both, loaded=(r"C:\application\msvcp140.dll",))
    assert judge(**HERE, windows=new, symptoms=()).status == "clear"


def test_a_copy_of_a_program_is_nothing_that_the_redistributable_mends(judge: Judge) -> None:
    both = copies(("system32", "14.44.1"), ("application", "14.29.1"))
    for loaded in ((), (r"C:\application\msvcp140.dll",)):
        old = system(copies=both, loaded=loaded or Unknown())
        seen = (dll_error("1114", "c10.dll"),)
        assert judge(**HERE, windows=old, symptoms=seen).status == "clear"
        between = system(copies=copies(("application", "14.37.1")), loaded=loaded or Unknown())
        assert judge(**HERE, windows=between, symptoms=seen).status == "clear"


# ---- the cure ----


def test_the_redistributable_cures(cure: Planner) -> None:
    plan = cure(**HERE, windows=system(dll_load()), symptoms=())
    assert (plan.verdict, [s.step.name for s in plan.steps]) == ("healthy", ["install-vc-redist"])


def test_a_newer_torch_does_not_clear_it(judge: Judge) -> None:
    newer = {**HERE, "torch": build("2.15.0+cpu")}
    (finding,) = judge(**newer, windows=system(Unknown("to be tried")), symptoms=()).findings
    assert "VCRUNTIME140_THREADS.dll" in finding.summary


# ---- releases that say nothing ----

MUTE = symptom("winerror-dll", code="126")


def test_before_1_6_an_unnamed_dll_is_mostly_of_the_runtime(judge: Judge, cure: Planner) -> None:
    old = {"platform": windows(), "torch": build("1.4.0"), "symptoms": (MUTE,)}
    (finding,) = judge(**old).findings
    assert (finding.name, finding.confidence) == ("vcredist-missing", "possible")
    assert cure(**old).verdict == "healthy"


def test_a_newer_release_or_a_runtime_that_is_known_says_more(judge: Judge) -> None:
    new = {"platform": windows(), "torch": build("1.8.0"), "symptoms": (MUTE,)}
    assert judge(**new).findings == ()
    there = system(copies=copies(("system32", "14.44.1")))
    old = {"platform": windows(), "torch": build("1.4.0"), "symptoms": (MUTE,)}
    assert judge(**old, windows=there).findings == ()
    assert judge(platform=windows(), symptoms=(MUTE,)).findings == ()
