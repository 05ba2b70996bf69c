from tests.checks.make import interpreter, linux, mac, symptom
from tests.conftest import Judge, Planner

SAID = symptom("shared-library-missing", library="libpython3.10.so.1.0")
HERE = {
    "platform": linux(),
    "interpreter": interpreter("3.10.14", base_prefix="/home/u/.pyenv/versions/3.10.14"),
    "variables": {"LD_LIBRARY_PATH": "/opt/lib"},
    "symptoms": (SAID,),
}


def test_the_folder_of_this_python_is_named(judge: Judge) -> None:
    (finding,) = judge(**HERE).findings
    assert (finding.name, finding.severity) == ("libpython-not-found", "error")
    assert "/home/u/.pyenv/versions/3.10.14/lib" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert line == "export LD_LIBRARY_PATH=/home/u/.pyenv/versions/3.10.14/lib:/opt/lib"


def test_macos_has_its_own_variable(judge: Judge) -> None:
    said = symptom("dyld-library-missing", library="@rpath/libpython3.11.dylib")
    (finding,) = judge(**HERE | {"symptoms": (said,), "platform": mac()}).findings
    assert finding.steps[0].commands.bash[0].startswith("export DYLD_LIBRARY_PATH=")


def test_other_libraries_are_for_other_checks(judge: Judge) -> None:
    other = symptom("shared-library-missing", library="libcublas.so.12")
    assert judge(**HERE | {"symptoms": (other,)}).status == "clear"


def test_messages_must_be_known(judge: Judge) -> None:
    assert judge(platform=linux()).status == "unknown"


def test_naming_the_folder_cures(cure: Planner) -> None:
    assert cure(**HERE).verdict == "healthy"


def test_where_its_folder_is_not_told_the_python_itself_is_asked(
    judge: Judge, cure: Planner
) -> None:
    here = HERE | {"interpreter": interpreter("3.10.14", redacted=True)}
    (finding,) = judge(**here).findings
    (line,) = finding.steps[0].commands.bash
    assert "sysconfig.get_config_var('LIBDIR')" in line
    assert line.endswith('${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"')
    assert cure(**here).verdict == "healthy"
