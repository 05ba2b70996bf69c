from tests.checks import make
from tests.checks.make import dist, interpreter, linux, symptom, system, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import NOT_COLLECTED, Unknown

HERE = {
    "platform": windows(),
    "interpreter": interpreter(),
    "distributions": (dist("triton-windows", "3.5.0"),),
}


def test_triton_on_a_python_without_headers(judge: Judge, cure: Planner) -> None:
    (finding,) = judge(**HERE, windows=system(headers=False)).findings
    assert (finding.name, finding.severity) == ("python-dev-files-missing", "warning")
    assert "triton-windows 3.5.0" in finding.summary
    assert cure(**HERE, windows=system(headers=False)).verdict == "healthy"


def test_near_misses(judge: Judge) -> None:
    assert judge(**HERE, windows=system(headers=True)).status == "clear"
    assert judge(**HERE | {"distributions": ()}, windows=system(headers=False)).status == "clear"
    assert judge(**HERE | {"platform": linux()}, windows=system(headers=False)).status == "clear"
    assert judge(**HERE, windows=Unknown()).status == "unknown"


GCC = symptom("python-headers-not-found", python="310")
MSVC = symptom("python-headers-not-found", python="311", system="win32")


def test_a_compiler_finds_no_headers(judge: Judge) -> None:
    (finding,) = judge(platform=linux(), symptoms=(GCC,)).findings
    assert (finding.name, finding.severity) == ("python-dev-files-missing", "error")
    assert "Python 3.10" in finding.summary
    assert finding.steps[0].commands.bash[-1] == "sudo apt-get install -y python3.10-dev"
    (finding,) = judge(symptoms=(GCC,)).findings
    assert "python3.10-dev" in finding.steps[0].title
    (line,) = finding.steps[0].commands.bash
    assert line.startswith("if command -v apt-get; then sudo apt-get update && ")
    assert "python3.10-devel; elif" in line


def test_which_python_is_told_by_the_interpreter_where_the_message_does_not(judge: Judge) -> None:
    said = symptom("python-headers-not-found")
    (finding,) = judge(symptoms=(said,), interpreter=interpreter("3.12.4")).findings
    assert "Python 3.12" in finding.summary
    assert judge(symptoms=(said,)).status == "found"


def test_on_windows_the_folders_are_copied(judge: Judge) -> None:
    (finding,) = judge(symptoms=(MSVC,)).findings
    assert "Copy Include and libs of a full Python 3.11" in finding.steps[0].title


def test_headers_of_something_else_are_nothing(judge: Judge) -> None:
    other = symptom("host-compiler-refused", compiler="GNU")
    assert judge(platform=linux(), symptoms=(other,)).status == "clear"
    assert judge(symptoms=(other,)).status == "unknown"


def test_the_headers_cure(cure: Planner) -> None:
    for said in (GCC, MSVC):
        assert cure(platform=linux(), symptoms=(said,)).verdict == "healthy"


def test_who_compiles_needs_python_h(judge: Judge, cure: Planner) -> None:
    without = make.to_build(build_tools=make.tools(headers=False))
    (found,) = judge(**without).findings
    assert (found.name, found.severity) == ("python-dev-files-missing", "error")
    assert "This Python 3.12 has no Python.h" in found.summary
    assert found.steps[0].commands.bash[-1] == "sudo apt-get install -y python3.12-dev"
    assert cure(**without).verdict == "healthy"
    on_windows = without | {"platform": make.windows()}
    (found,) = judge(**on_windows).findings
    assert [step.name for step in found.steps] == ["add-python-headers"]
    assert cure(**on_windows).verdict == "healthy"


def test_with_python_h_or_without_the_profile_a_build_is_no_question(judge: Judge) -> None:
    assert judge(**make.to_build()).status == "clear"
    without = make.tools(headers=False)
    run = make.to_build(expectation=make.EXPECT_CPU, build_tools=without)
    assert judge(**run).status == "clear"
    unknown = make.tools(headers=NOT_COLLECTED)
    assert judge(**make.to_build(build_tools=unknown)).status == "unknown"
    assert judge(expectation=make.TO_BUILD).status == "unknown"
