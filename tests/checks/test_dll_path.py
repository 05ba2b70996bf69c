import pytest

from tests.checks.make import (
    build,
    dll_error,
    dll_load,
    imported,
    interpreter,
    lacks,
    system,
    windows,
)
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage, DllFile, DllLoad, Unknown

BESIDE = r"C:\env\msvcp140.dll"
HERE = {"platform": windows(), "torch": build("2.9.1+cpu"), "interpreter": interpreter()}
LOAD = dll_load(culprit=BESIDE, place="application", detail="it is 14.29, c10.dll needs 14.40")


def test_an_old_file_beside_python(judge: Judge) -> None:
    (finding,) = judge(**HERE, windows=system(LOAD)).findings
    assert (finding.name, finding.severity) == ("path-dll-conflict", "error")
    assert f"{BESIDE} is taken for msvcp140.dll" in finding.summary
    assert finding.steps[0].name == "use-own-environment"


def test_conda_brings_its_own_runtime(judge: Judge, cure: Planner) -> None:
    packages = (CondaPackage("python", "3.11", "h", "conda-forge"),)
    known = {
        **HERE,
        "interpreter": interpreter(kind="conda", installer="conda", prefix=r"C:\env"),
        "conda": Conda(packages, r"C:\env"),
    }
    copies = (DllFile(BESIDE, "14.29", "application"),)
    (finding,) = judge(**known, windows=system(LOAD, copies=copies)).findings
    assert "vc14_runtime>=14.40" in finding.steps[0].commands.bash[0]
    assert cure(**known, windows=system(LOAD, copies=copies)).verdict == "healthy"


@pytest.mark.parametrize(
    "load", [DllLoad(), dll_load(), lacks("MSVCP140.dll"), dll_load(place="package")]
)
def test_another_place_is_for_another_check(judge: Judge, load: DllLoad) -> None:
    assert judge(**HERE, windows=system(load)).status == "clear"


def test_path_is_not_blamed_where_the_strict_search_resolves(judge: Judge) -> None:
    copies = (
        DllFile(r"C:\Windows\System32\msvcp140.dll", "14.44", "system32"),
        DllFile(r"C:\Java\bin\msvcp140.dll", "14.0", "path"),
    )
    assert judge(**HERE, windows=system(DllLoad(), copies=copies)).status == "clear"


def test_what_resolves_by_path_only_is_a_note(judge: Judge) -> None:
    load = DllLoad(by_path=(r"C:\env\torch\lib\c10.dll",))
    (finding,) = judge(**HERE, windows=system(load), trial=imported()).findings
    assert (finding.severity, finding.name) == ("note", "path-dll-conflict")
    assert "c10.dll finds what it needs on PATH only" in finding.summary


def test_dlls_must_be_known(judge: Judge) -> None:
    assert judge(**HERE, windows=Unknown("no record")).status == "unknown"
    assert judge(**HERE, windows=None).status == "clear"


# ---- versions, where no DLL was tried ----


def beside(version: str, role: str = "application") -> dict[str, object]:
    there = (
        DllFile(r"C:\Windows\System32\msvcp140.dll", "14.44.1", "system32"),
        DllFile(BESIDE, version, role),
    )
    return {**HERE, "windows": system(Unknown(), copies=there), "symptoms": ()}


def test_an_old_copy_of_a_program_is_replaced_by_no_redistributable(
    judge: Judge, cure: Planner
) -> None:
    (finding,) = judge(**beside("14.29.1")).findings
    assert (finding.name, finding.severity) == ("path-dll-conflict", "warning")
    assert f"{BESIDE} is 14.29.1" in finding.summary
    assert [step.name for step in finding.steps] == ["use-own-environment"]
    assert cure(**beside("14.29.1")).verdict == "healthy"


def test_the_message_makes_it_an_error(judge: Judge) -> None:
    seen = (dll_error("1114", "c10.dll"),)
    (finding,) = judge(**beside("14.29.1") | {"symptoms": seen}).findings
    assert (finding.severity, finding.confidence) == ("error", "certain")
    (unsure,) = judge(**beside("14.37.1") | {"symptoms": seen}).findings
    assert (unsure.severity, unsure.confidence) == ("error", "possible")


@pytest.mark.parametrize(
    "known",
    [
        beside("14.44.1"),
        beside("14.37.1"),
        beside("14.29.1", "system32"),
        beside("14.29.1") | {"torch": build("2.8.0+cpu")},
        beside("14.29.1") | {"trial": imported()},
    ],
)
def test_a_copy_that_will_do_or_the_system_s_own_is_quiet(
    judge: Judge, known: dict[str, object]
) -> None:
    assert judge(**known).status == "clear"
