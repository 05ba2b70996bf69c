from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Expectation

INTEL = make.interpreter("3.12.4", machine="macosx-11.0-x86_64")
ARM = make.interpreter("3.12.4", machine="macosx-11.0-arm64")


def test_an_intel_python_on_apple_silicon_is_found(judge: Judge) -> None:
    (found,) = judge(platform=make.mac(emulated=True), interpreter=INTEL).findings
    assert (found.name, found.severity) == ("interpreter-emulated", "warning")
    assert "macosx-11.0-x86_64" in found.summary
    assert found.steps[0].commands.bash[0].startswith("uv venv --python cpython-3.12-macos-aarch64")


def test_it_is_an_error_where_mps_is_expected(judge: Judge) -> None:
    expected = Expectation(accelerator="mps")
    (found,) = judge(
        platform=make.mac(emulated=None), interpreter=INTEL, expectation=expected
    ).findings
    assert found.severity == "error"


def test_native_interpreters_are_quiet(judge: Judge) -> None:
    assert judge(platform=make.mac(), interpreter=ARM).status == "clear"
    intel_mac = make.mac(machine="x86_64")
    assert judge(platform=intel_mac, interpreter=INTEL).status == "clear"
    assert judge(platform=make.linux(), interpreter=make.interpreter()).status == "clear"


def test_an_x64_python_on_windows_for_arm_is_only_a_note(judge: Judge) -> None:
    python = make.interpreter(machine="win-amd64")
    windows = make.windows(machine="ARM64", emulated=True)
    (found,) = judge(platform=windows, interpreter=python).findings
    assert (found.severity, found.steps) == ("note", ())


def test_it_cannot_tell_without_the_platform(judge: Judge) -> None:
    assert judge(interpreter=INTEL).status == "unknown"


def test_a_native_environment_cures(cure: Planner) -> None:
    plan = cure(platform=make.mac(emulated=True), interpreter=INTEL)
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
