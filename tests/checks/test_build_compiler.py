from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner
from torchdoctor.facts import NOT_COLLECTED, Compiler

GONE = Compiler("c++", None)


def test_a_machine_with_compilers_that_nvcc_takes_is_clear(judge: Judge) -> None:
    assert judge(**make.to_build()).status == "clear"


def test_without_the_profile_nothing_is_said(judge: Judge) -> None:
    broken = make.tools(cxx=GONE, cc=GONE)
    assert judge(**make.to_build(expectation=make.EXPECT_CPU, build_tools=broken)).findings == ()


def test_no_compiler_at_all_is_an_error_with_the_packages_of_the_system(judge: Judge) -> None:
    tools = make.tools(cxx=GONE, cc=Compiler("gcc", None), found=())
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert (found.name, found.severity) == ("host-compiler-missing", "error")
    assert found.summary.startswith("The usual compiler c++ is nowhere on PATH")
    assert found.steps[0].commands.bash[-1] == "sudo apt-get install -y build-essential"


def test_a_variable_that_names_nothing_is_unset_where_another_is_there(judge: Judge) -> None:
    tools = make.tools(cxx=Compiler("g++-99", None, named_by="CXX"))
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert found.summary.startswith("CXX names g++-99, which is nowhere on PATH")
    assert found.steps[0].commands.bash == ("unset CXX",)
    nowhere = make.tools(cxx=Compiler("g++-99", None, named_by="CXX"), found=())
    (found,) = judge(**make.to_build(build_tools=nowhere)).findings
    assert [step.name for step in found.steps] == ["install-compiler"]


def test_a_compiler_that_does_not_run_is_missing_with_what_it_said(judge: Judge) -> None:
    said = "xcrun: error: invalid active developer path"
    tools = make.tools(cxx=Compiler("c++", "/usr/bin/c++", error=said))
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert said in found.summary


def test_cl_off_path_is_no_fault_where_visual_studio_is_installed(judge: Judge) -> None:
    absent = Compiler("cl", None)
    tools = make.tools(cxx=absent, cc=absent, found=(), visual_studio=True)
    assert judge(**make.to_build(build_tools=tools)).status == "clear"
    tools = make.tools(cxx=absent, cc=absent, found=())
    (found,) = judge(**make.to_build(build_tools=tools)).findings
    assert "BuildTools" in found.steps[0].commands.powershell[0]


@pytest.mark.parametrize(
    ("torch", "release", "fits", "refused"),
    [
        ("2.0.1+cu118", "11.8", make.gcc("11.4.0"), make.gcc("12.2.0")),
        ("2.5.1+cu124", "12.4", make.gcc("13.3.0"), make.gcc("14.2.0")),
        ("2.10.0+cu128", "12.8", make.gcc("14.2.0"), make.gcc("15.1.0")),
        ("2.13.0+cu130", "13.0", make.gcc("15.1.0"), make.gcc("16.1.0")),
        (
            *("2.5.1+cu124", "12.4"),
            make.gcc("17.0.6", "clang++", kind="clang"),
            make.gcc("18.1.3", "clang++", kind="clang"),
        ),
        (
            *("2.1.2+cu121", "12.1"),
            make.gcc("19.39.33523", "cl", kind="msvc"),
            make.gcc("19.44.35211", "cl", kind="msvc"),
        ),
    ],
)
def test_one_major_past_what_nvcc_takes_is_refused(
    judge: Judge, torch: str, release: str, fits: Compiler, refused: Compiler
) -> None:
    tools = {"nvcc": make.nvcc(release), "cc": make.gcc("11.1.0", "gcc")}
    good = make.to_build(torch, build_tools=make.tools(cxx=fits, **tools))
    assert judge(**good).status == "clear"
    (found,) = judge(**make.to_build(torch, build_tools=make.tools(cxx=refused, **tools))).findings
    assert (found.name, found.severity) == ("host-compiler-too-new", "error")
    assert f"nvcc of CUDA {release} refuses {refused.command} {refused.version}" in found.summary


def test_the_compiler_that_nvcc_calls_counts_as_the_one_of_torch(judge: Judge) -> None:
    tools = make.tools(cxx=make.gcc("13.1.0"), cc=make.gcc("14.1.0", "gcc"), nvcc=make.nvcc("12.4"))
    (found,) = judge(**make.to_build("2.5.1+cu124", build_tools=tools)).findings
    assert "gcc 14.1.0" in found.summary
    assert found.steps[0].commands.bash[0] == "sudo apt-get install -y gcc-13 g++-13"


def test_an_older_one_that_is_here_is_only_named(judge: Judge) -> None:
    known = {"cxx": make.gcc("14.1.0"), "nvcc": make.nvcc("12.4"), "found": ("g++", "g++-13")}
    tools = make.tools(**known)
    (found,) = judge(**make.to_build("2.5.1+cu124", build_tools=tools)).findings
    assert found.steps[0].commands.bash[0] == "export CC=gcc-13"


def test_where_nvcc_has_no_part_no_compiler_is_too_new(judge: Judge) -> None:
    newest = {"cxx": make.gcc("20.1.0"), "cc": make.gcc("20.1.0")}
    tools = make.tools(**newest)
    assert judge(**make.to_build("2.13.0+cpu", build_tools=tools)).status == "clear"
    assert judge(**make.to_build(torch=None, build_tools=tools)).status == "clear"
    forced = make.tools(**newest, unchecked=True)
    assert judge(**make.to_build(build_tools=forced)).status == "clear"
    other = make.tools(**newest, nvcc=make.nvcc("12.4"))
    assert judge(**make.to_build(build_tools=other)).status == "clear"
    assert judge(**make.to_build(build_tools=make.tools(**newest, nvcc=None))).status == "clear"


def test_what_is_not_known_supports_nothing(judge: Judge) -> None:
    assert judge(expectation=make.TO_BUILD).status == "unknown"
    assert judge(**make.to_build(torch=NOT_COLLECTED)).status == "unknown"
    neither = make.tools(cxx=NOT_COLLECTED, cc=NOT_COLLECTED)
    assert judge(**make.to_build(build_tools=neither)).status == "unknown"
    later = judge(**make.to_build(build_tools=make.tools(nvcc=make.nvcc("13.99"))))
    assert later.status == "unknown"
    assert "CUDA 13.99 is not in the tables of 20" in later.reason
    silent = make.tools(cxx=Compiler("icpx", "/opt/icpx"), cc=Compiler("icx", "/opt/icx"))
    assert judge(**make.to_build(build_tools=silent)).status == "clear"


def test_the_steps_cure(cure: Planner) -> None:
    gone = make.tools(cxx=GONE, cc=Compiler("gcc", None), found=())
    wrong = make.tools(cxx=Compiler("g++-99", None, named_by="CXX"))
    for tools in (gone, wrong):
        assert cure(**make.to_build(build_tools=tools)).verdict == "healthy"
    new = make.tools(cxx=make.gcc("16.1.0"), cc=make.gcc("16.1.0"))
    msvc = make.tools(cxx=make.gcc("19.99.1", "cl", kind="msvc"), cc=NOT_COLLECTED)
    for tools, step in ((new, "use-gcc-15"), (msvc, "use-older-compiler")):
        plan = cure(**make.to_build(build_tools=tools))
        assert (plan.verdict, plan.steps[0].step.name) == ("healthy", step)


def test_a_compiler_that_does_not_know_torchs_cxx_is_too_old(judge: Judge, cure: Planner) -> None:
    old = make.tools(cxx=make.gcc("9.4.0"))
    for version in ("2.13.0+cu130", "2.13.0+cpu"):
        (found,) = judge(**make.to_build(version, build_tools=old)).findings
        assert (found.name, found.severity) == ("host-compiler-too-old", "error")
        assert "g++ 9.4.0 does not know C++20" in found.summary
    assert cure(**make.to_build(build_tools=old)).verdict == "healthy"
    here = make.tools(cxx=make.gcc("9.4.0"), found=("g++", "g++-9", "g++-12"))
    (found,) = judge(**make.to_build(build_tools=here)).findings
    assert found.steps[0].commands.bash == ("export CC=gcc-12", "export CXX=g++-12")


def test_an_old_compiler_does_for_an_old_torch_and_without_knowing_which(judge: Judge) -> None:
    old = {"cxx": make.gcc("9.4.0")}
    for standard in ("17", "99", NOT_COLLECTED):
        tools = make.tools(**old, standard=standard)
        assert judge(**make.to_build(build_tools=tools)).status == "clear"
    assert judge(**make.to_build(build_tools=make.tools(cxx=make.gcc("10.1.0")))).findings == ()
    assert judge(**make.to_build(torch=None, build_tools=make.tools(**old))).status == "clear"


def test_what_the_compiler_said_of_it_needs_no_profile(judge: Judge, cure: Planner) -> None:
    said = make.symptom("cxx-standard-unknown", "log", "-std=c++20", standard="20")
    (found,) = judge(symptoms=(said,)).findings
    assert (found.name, found.severity) == ("host-compiler-too-old", "error")
    assert "gcc 10 or newer" in found.steps[0].title
    assert cure(symptoms=(said,)).verdict == "healthy"
