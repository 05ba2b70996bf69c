from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Unknown

WITHOUT_TORCH = {"torch": None, "platform": make.linux()}


def test_a_python_older_than_every_wheel_is_not_supported(judge: Judge) -> None:
    (found,) = judge(**WITHOUT_TORCH, interpreter=make.interpreter("3.6.9")).findings
    assert (found.name, found.severity) == ("python-not-supported", "error")
    assert "Python 3.6" in found.summary
    assert found.steps[0].commands.bash[0] == "uv venv --python 3.15 .venv-torch"


def test_a_python_newer_than_every_wheel_is_likely_not_supported(judge: Judge) -> None:
    (found,) = judge(**WITHOUT_TORCH, interpreter=make.interpreter("3.16.0a2")).findings
    assert (found.name, found.confidence) == ("python-not-supported", "likely")


def test_a_free_threaded_python_without_wheel_is_not_supported(judge: Judge) -> None:
    python = make.interpreter("3.12.4", free_threaded=True)
    (found,) = judge(**WITHOUT_TORCH, interpreter=python).findings
    assert "3.12t" in found.summary


def test_pypy_is_not_supported(judge: Judge) -> None:
    python = make.interpreter("3.11.9", implementation="pypy")
    (found,) = judge(**WITHOUT_TORCH, interpreter=python).findings
    assert "pypy 3.11" in found.summary


def test_a_python_with_wheels_is_quiet(judge: Judge) -> None:
    for version in ("3.8.18", "3.12.4", "3.15.0"):
        assert judge(**WITHOUT_TORCH, interpreter=make.interpreter(version)).status == "clear"
    free = make.interpreter("3.14.0", free_threaded=True)
    assert judge(**WITHOUT_TORCH, interpreter=free).status == "clear"


def test_an_unsupported_python_whose_torch_imports_is_quiet(judge: Judge) -> None:
    known = {"torch": make.build("1.4.0+cpu"), "trial": make.imported()}
    python = make.interpreter("3.6.9")
    assert judge(platform=make.linux(), interpreter=python, **known).status == "clear"


def test_a_wheel_that_was_copied_to_another_python_is_found(judge: Judge) -> None:
    trial = make.raised("ModuleNotFoundError", "No module named 'torch._C'")
    known = {"torch": make.build("2.2.2+cu121"), "trial": trial}
    (found,) = judge(
        platform=make.linux(), interpreter=make.interpreter("3.13.1"), **known
    ).findings
    assert found.name == "python-not-supported"
    assert "torch 2.2.2" in found.summary


def test_a_32_bit_python_is_found_and_its_neighbour_is_not(judge: Judge) -> None:
    python = make.interpreter("3.12.4", bits=32, machine="win32")
    (found,) = judge(platform=make.windows(), torch=None, interpreter=python).findings
    assert (found.name, found.severity) == ("python-32bit", "error")
    assert "32-bit" in found.summary
    assert found.steps[0].commands.cmd[0].startswith("uv venv --python 3.1")
    whole = make.interpreter("3.12.4", machine="win-amd64")
    assert judge(platform=make.windows(), torch=None, interpreter=whole).status == "clear"


def test_musl_has_no_wheel(judge: Judge) -> None:
    alpine = make.linux(libc="musl", name="Alpine Linux 3.20", distribution="alpine")
    (found,) = judge(platform=alpine, torch=None, interpreter=make.interpreter()).findings
    assert found.name == "platform-wheel-dropped"
    assert "musl" in found.summary
    assert found.steps[0].name == "use-a-glibc-system"


def test_32_bit_arm_has_no_wheel(judge: Judge) -> None:
    pi = make.linux(machine="armv7l")
    (found,) = judge(platform=pi, torch=None, interpreter=make.interpreter()).findings
    assert found.name == "platform-wheel-dropped"
    assert found.steps == ()


def test_windows_on_arm_is_sent_to_the_cpu_index(judge: Judge) -> None:
    arm = make.windows(machine="ARM64")
    python = make.interpreter("3.12.4", machine="win-arm64")
    (found,) = judge(platform=arm, torch=None, interpreter=python).findings
    assert found.name == "platform-wheel-dropped"
    assert "/whl/cpu" in found.steps[0].commands.powershell[0]


def test_an_intel_mac_with_a_new_python_gets_the_last_release(judge: Judge) -> None:
    intel = make.mac(machine="x86_64")
    python = make.interpreter("3.13.0", machine="macosx-13.0-x86_64")
    (found,) = judge(platform=intel, torch=None, interpreter=python).findings
    assert found.name == "python-not-supported"
    assert found.steps[0].commands.bash[1].endswith("torch===2.2.2")
    fits = make.interpreter("3.12.0", machine="macosx-13.0-x86_64")
    assert judge(platform=intel, torch=None, interpreter=fits).status == "clear"


def test_it_cannot_tell_without_the_interpreter(judge: Judge) -> None:
    assert judge(**WITHOUT_TORCH).status == "unknown"
    unknown = Unknown("no such program")
    python = make.interpreter("3.6.9")
    assert judge(platform=make.linux(), interpreter=python, torch=unknown).status == "unknown"


def test_a_new_environment_cures(cure: Planner) -> None:
    for python in (make.interpreter("3.6.9"), make.interpreter("3.12.4", bits=32)):
        plan = cure(**WITHOUT_TORCH, interpreter=python)
        assert plan.verdict == "healthy"
        assert names(plan.remaining) == []
    alpine = make.linux(libc="musl")
    plan = cure(platform=alpine, torch=None, interpreter=make.interpreter())
    assert plan.verdict == "healthy"


def test_a_processor_that_was_not_told_is_unknown(judge: Judge) -> None:
    here = WITHOUT_TORCH | {"platform": make.linux(machine="")}
    assert judge(**here, interpreter=make.interpreter()).status == "unknown"
