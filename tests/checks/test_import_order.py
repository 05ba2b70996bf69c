from tests.checks.make import (
    build,
    dist,
    dll_error,
    dll_load,
    imported,
    linux,
    raised,
    symptom,
    system,
    windows,
)
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad, Windows

QT = r"C:\env\Lib\site-packages\PyQt6\Qt6\bin\msvcp140.dll"
HERE = {"platform": windows(), "torch": build("2.9.1+cpu")}
FAILED = raised("OSError", "[WinError 1114] c10.dll")
OLD = dll_load(culprit=QT, place="package")


def test_torch_that_fails_after_a_module_and_works_alone(judge: Judge) -> None:
    (finding,) = judge(
        **HERE,
        windows=system(DllLoad(), after={"PyQt6": OLD}),
        trial=imported(),
        trial_after={"PyQt6": FAILED},
        symptoms=(),
    ).findings
    assert (finding.name, finding.severity) == ("import-order-dll-conflict", "error")
    assert finding.confidence == "certain"
    assert f"Import torch after PyQt6 ({QT}) raised" in finding.summary
    assert finding.steps[0].commands.powershell == ("python -c 'import torch, PyQt6'",)


def test_torch_that_works_after_the_module_is_in_order(judge: Judge) -> None:
    both = {"trial": imported(), "trial_after": {"PyQt6": imported()}}
    assert judge(**HERE, windows=system(DllLoad(), after={"PyQt6": OLD}), **both).status == "clear"


def test_torch_that_fails_alone_as_well_is_another_fault(judge: Judge) -> None:
    both = {"trial": FAILED, "trial_after": {"PyQt6": FAILED}}
    assert judge(**HERE, windows=system(dll_load(), after={}), **both).status == "clear"


def test_a_package_with_an_old_runtime_is_a_note(judge: Judge) -> None:
    what = system(DllLoad(), after={"PyQt6": OLD, "pyarrow": DllLoad()})
    (finding,) = judge(**HERE, windows=what, symptoms=()).findings
    assert (finding.severity, finding.confidence) == ("note", "likely")
    assert f"PyQt6 brings an older runtime ({QT})" in finding.summary


def test_a_folder_registered_by_another_package_stops_a_bare_import(judge: Judge) -> None:
    load = dll_load(culprit=QT, place="registered")
    (finding,) = judge(**HERE, windows=system(load), symptoms=()).findings
    assert finding.severity == "error"
    assert QT in finding.summary


def test_the_message_and_a_package_that_is_known_for_it(judge: Judge) -> None:
    (finding,) = judge(
        **HERE,
        symptoms=(dll_error("1114", "c10.dll"),),
        distributions=(dist("pyqt5", "5.15.2"), dist("numpy", "2.1")),
    ).findings
    assert (finding.name, finding.confidence) == ("import-order-dll-conflict", "likely")
    assert "PyQt5 5.15.2" in finding.summary
    assert finding.steps[0].commands.cmd[0] == 'python -c "import torch, PyQt5"'


def test_a_runtime_that_is_new_leaves_the_order_only(judge: Judge) -> None:
    (finding,) = judge(
        **HERE,
        symptoms=(dll_error("1114", "c10.dll"),),
        windows=Windows(registered={"x64": "14.44"}),
    ).findings
    assert (finding.confidence, finding.because_of) == ("likely", ())


def test_a_runtime_that_is_old_is_reason_enough(judge: Judge) -> None:
    old = Windows(registered={"x64": "14.36"})
    assert judge(**HERE, symptoms=(dll_error("1114", "c10.dll"),), windows=old).status == "clear"


def test_a_release_that_bears_an_old_runtime_is_not_concerned(judge: Judge) -> None:
    known = {**HERE, "torch": build("2.8.0+cpu")}
    assert judge(**known, symptoms=(dll_error("1114", "c10.dll"),)).status == "clear"
    assert judge(platform=linux(), windows=None, symptoms=()).status == "clear"


def test_the_other_order_cures(cure: Planner) -> None:
    plan = cure(
        **HERE,
        windows=system(DllLoad(), after={"PyQt6": OLD}),
        trial=imported(),
        trial_after={"PyQt6": FAILED},
        symptoms=(),
    )
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "import-torch-first")


def test_what_was_tried_counts_on_every_system(judge: Judge) -> None:
    known = {"platform": linux(), "windows": None, "trial": imported(), "symptoms": ()}
    (finding,) = judge(**known, trial_after={"pyarrow": raised("ImportError", "x")}).findings
    assert "Import torch after pyarrow raised ImportError: x" in finding.summary
    assert judge(**known, trial_after={"pyarrow": imported()}).status == "clear"


def test_a_console_shows_what_was_imported_before(judge: Judge) -> None:
    said = (symptom("imported-first", module="PyQt5"), dll_error("1114", "c10.dll"))
    (finding,) = judge(platform=windows(), symptoms=said).findings
    assert (finding.name, finding.confidence) == ("import-order-dll-conflict", "likely")
    assert "PyQt5 has probably loaded" in finding.summary
    newer = {"symptoms": said, "distributions": (dist("pyqt5", "5.15.11"),)}
    (finding,) = judge(platform=windows(), **newer).findings
    assert finding.confidence == "possible"
