from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner

GNU = make.symptom("host-compiler-refused", "log", compiler="GNU", newest="12")
OF_TORCH = make.symptom(
    "host-compiler-refused", "log", command="g++", version="13.2.0", cuda="11.8", newest="12.0"
)
MSVC = make.symptom(
    "host-compiler-refused", "log", compiler="Microsoft Visual Studio", newest="2022"
)


def test_nvcc_names_the_newest_gcc_that_it_takes(judge: Judge) -> None:
    (found,) = judge(symptoms=(GNU,)).findings
    assert (found.name, found.severity) == ("host-compiler-too-new", "error")
    assert "up to 12 is taken" in found.summary
    assert found.steps[0].commands.bash == (
        "sudo apt-get install -y gcc-12 g++-12",
        "export CC=gcc-12",
        "export CXX=g++-12",
        "export NVCC_PREPEND_FLAGS='-ccbin g++-12'",
    )


def test_torch_names_the_first_that_is_refused(judge: Judge) -> None:
    (found,) = judge(symptoms=(OF_TORCH,)).findings
    assert "nvcc of CUDA 11.8 refuses g++ 13.2.0" in found.summary
    assert found.steps[0].commands.bash[0] == "sudo apt-get install -y gcc-11 g++-11"


def test_visual_studio_has_no_command(judge: Judge) -> None:
    (found,) = judge(symptoms=(MSVC,)).findings
    assert "Visual Studio" in found.steps[0].title
    assert not found.steps[0].commands


def test_another_message_of_a_build_is_nothing(judge: Judge) -> None:
    other = make.symptom("toolkit-differs", "log", toolkit="11.8", torch="12.8")
    assert judge(symptoms=(other,)).status == "clear"
    assert judge().status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    for said in (GNU, OF_TORCH, MSVC):
        assert cure(symptoms=(said,)).verdict == "healthy"


CL = make.symptom("host-compiler-not-found", "log", compiler="cl")
GCC = make.symptom("host-compiler-not-found", "log", compiler="gcc")
ANY = make.symptom("host-compiler-not-found", "log")


def test_without_cl_the_build_tools_are_installed(judge: Judge) -> None:
    (found,) = judge(symptoms=(CL,)).findings
    assert (found.name, found.severity) == ("host-compiler-missing", "error")
    assert "(cl)" in found.summary
    commands = found.steps[0].commands
    assert commands.bash == ()
    assert "Microsoft.VisualStudio.2022.BuildTools" in commands.powershell[0]
    (found,) = judge(symptoms=(ANY,), platform=make.windows()).findings
    assert found.steps[0].commands.cmd


def test_without_gcc_the_packages_of_the_system_are_installed(judge: Judge) -> None:
    (found,) = judge(symptoms=(GCC,), platform=make.linux()).findings
    assert found.steps[0].commands.bash[-1] == "sudo apt-get install -y build-essential"
    fedora = make.linux(distribution="fedora", like=())
    (found,) = judge(symptoms=(GCC,), platform=fedora).findings
    assert found.steps[0].commands.bash == ("sudo dnf install -y gcc-c++ make",)
    (found,) = judge(symptoms=(GCC,)).findings
    (line,) = found.steps[0].commands.bash
    assert "sudo dnf install -y gcc-c++ make; elif command -v apk" in line
    (found,) = judge(symptoms=(GCC,), platform=make.linux(distribution="nixos", like=())).findings
    assert not found.steps[0].commands


def test_a_compiler_in_place_of_none_cures(cure: Planner) -> None:
    for said in (CL, GCC, ANY):
        assert cure(symptoms=(said,), platform=make.linux()).verdict == "healthy"
