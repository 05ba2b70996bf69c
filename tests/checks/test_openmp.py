import subprocess
from pathlib import Path

from tests.checks.make import died, imported, interpreter, symptom, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda, CondaPackage

TWICE = symptom("openmp-twice", second="libiomp5md.dll", first="libiomp5md.dll")
DLL = symptom("winerror-dll", code="182", file=r"D:\env\Lib\site-packages\torch\lib\fbgemm.dll")
HERE: dict[str, object] = {
    "platform": windows(),
    "interpreter": interpreter(kind="conda", installer="conda", prefix=r"D:\env"),
    "conda": None,
    "variables": {},
}


def both(rival: str = "llvm-openmp") -> dict[str, object]:
    names = ("intel-openmp", rival, "pytorch")
    return {"conda": Conda(tuple(CondaPackage(n, "1", "", "conda-forge") for n in names))}


def test_the_message_of_the_runtime_is_an_error(judge: Judge) -> None:
    (finding,) = judge(**HERE, symptoms=(TWICE,), trial=died("exit 3")).findings
    assert (finding.name, finding.severity) == ("openmp-duplicate", "error")
    assert "libiomp5md.dll after libiomp5md.dll" in finding.summary
    first, workaround = finding.steps
    assert "but the one in torch\\lib" in first.title
    assert all((first.commands.bash, first.commands.powershell, first.commands.cmd))
    assert workaround.commands.powershell == ("$env:KMP_DUPLICATE_LIB_OK = 'TRUE'",)
    assert workaround.cost > first.cost


def test_the_copy_that_was_really_loaded_is_renamed(judge: Judge, cure: Planner) -> None:
    own = r"D:\env\Lib\site-packages\torch\lib\libiomp5md.dll"
    other = r"D:\env\Lib\site-packages\it's\libiomp5md.dll"
    known = HERE | {"windows": system(loaded=(own, other))}
    (finding,) = judge(**known, symptoms=(TWICE,)).findings
    commands = finding.steps[0].commands
    assert commands.cmd == (f'ren "{other}" "libiomp5md.dll.off"',)
    (line,) = commands.powershell
    assert line.endswith("\\it''s\\libiomp5md.dll' 'libiomp5md.dll.off'")
    plan = cure(**known, symptoms=(TWICE,))
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "rename-libiomp5md-dll")


def test_elsewhere_both_are_to_come_from_one_source(judge: Judge, tmp_path: Path) -> None:
    twice = symptom("openmp-twice", second="libomp.dylib", first="libiomp5.dylib")
    (finding,) = judge(symptoms=(twice,)).findings
    assert "from one source" in finding.steps[0].title
    (line,) = finding.steps[0].commands.bash
    for name in ("libomp.dylib", "libc10.dylib"):
        (tmp_path / name).touch()
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{tmp_path}'\n")
    python.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-ec", line], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path / "libomp.dylib")]


def test_two_packages_of_conda_that_write_one_dll(judge: Judge) -> None:
    (finding,) = judge(**HERE | both("openmp"), symptoms=(DLL,)).findings
    assert "intel-openmp and openmp write the same OpenMP DLL" in finding.summary
    removal, back = finding.steps[0].commands.bash
    assert removal.startswith("conda remove -y --force")
    assert removal.endswith(" openmp")
    assert back.endswith(" intel-openmp")


def test_both_beside_a_torch_that_works_are_in_order(judge: Judge) -> None:
    assert judge(**HERE | both(), symptoms=(), trial=imported()).status == "clear"
    assert judge(**HERE | both(), symptoms=(DLL,), trial=imported()).status == "clear"


def test_another_dll_error_is_for_another_check(judge: Judge) -> None:
    other = symptom("winerror-dll", code="126", file="fbgemm.dll")
    assert judge(**HERE | both(), symptoms=(other,)).status == "clear"
    assert judge(**HERE, symptoms=(DLL,)).status == "clear"


def test_messages_must_be_known(judge: Judge) -> None:
    assert judge(platform=windows()).status == "unknown"


def test_one_runtime_cures(cure: Planner) -> None:
    plan = cure(**HERE | both(), symptoms=(DLL,))
    assert (plan.verdict, plan.steps[0].step.name) == ("healthy", "conda-remove-llvm-openmp")


def test_the_workaround_cures_where_nothing_better_is_known(cure: Planner) -> None:
    assert cure(**HERE, symptoms=(TWICE,)).verdict == "healthy"


def test_what_was_really_loaded_is_evidence(judge: Judge) -> None:
    lib = r"D:\env\Lib\site-packages\torch\lib"
    paths = (rf"{lib}\libiomp5md.dll", rf"{lib}\libiompstubs5md.dll")
    beside = (*paths, r"D:\env\Library\bin\libiomp5md.dll")
    (finding,) = judge(**HERE, symptoms=(TWICE,), windows=system(loaded=beside)).findings
    assert [e.value for e in finding.evidence[1:]] == [beside[0], beside[2]]
    (finding,) = judge(**HERE, symptoms=(TWICE,), windows=system(loaded=paths)).findings
    assert len(finding.evidence) == 1
