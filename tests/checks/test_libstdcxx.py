from tests.checks.make import imported, interpreter, linux, loader, symptom, unloadable
from tests.conftest import Judge, Planner
from torchdoctor.facts import Conda

OLD = "/lib/x86_64-linux-gnu/libstdc++.so.6"
SAID = symptom(
    "symbol-version-missing",
    namespace="GLIBCXX",
    version="3.4.29",
    library=OLD,
    required_by="/env/lib/python3.12/site-packages/x/_C.so",
)
HERE = {"platform": linux(), "interpreter": interpreter(), "conda": None, "symptoms": (SAID,)}


def test_an_older_runtime_of_the_system_needs_its_package(judge: Judge) -> None:
    (finding,) = judge(**HERE).findings
    assert (finding.name, finding.severity) == ("libstdcxx-too-old", "error")
    assert f"{OLD} has no GLIBCXX_3.4.29, which _C.so needs" in finding.summary
    assert finding.steps[0].needs == ("admin",)
    assert "libstdc++6" in finding.steps[0].commands.bash[1]


def test_in_a_conda_environment_conda_brings_one(judge: Judge) -> None:
    python = interpreter(kind="conda", installer="conda")
    (finding,) = judge(**HERE | {"conda": Conda(()), "interpreter": python}).findings
    (line,) = finding.steps[0].commands.bash
    # The system's was loaded: what the environment may have of its own is not whole.
    assert line == "conda install -y --force-reinstall -p /env conda-forge::libstdcxx-ng"


def test_an_older_one_of_the_environment_itself_is_replaced(judge: Judge) -> None:
    own = symptom(
        "symbol-version-missing",
        library="/env/lib/libstdc++.so.6",
        namespace="GLIBCXX",
        version="3.4.32",
    )
    python = interpreter(kind="conda")
    (finding,) = judge(**HERE | {"symptoms": (own,), "interpreter": python}).findings
    assert finding.steps[0].commands.bash == ("conda install -y -p /env conda-forge::libstdcxx-ng",)


def test_a_variable_that_leads_to_it_is_unset_first(judge: Judge) -> None:
    path = {"LD_LIBRARY_PATH": "/lib/x86_64-linux-gnu"}
    (finding,) = judge(**HERE, variables=path).findings
    assert finding.steps[0].name == "unset-ld-library-path"


def test_the_c_library_is_another_check(judge: Judge) -> None:
    glibc = symptom("symbol-version-missing", namespace="GLIBC", version="2.34")
    assert judge(**HERE | {"symptoms": (glibc,)}).status == "clear"


def test_messages_must_be_known(judge: Judge) -> None:
    assert judge(platform=linux()).status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    assert cure(**HERE).verdict == "healthy"


# ---- what the files say -----------------------------------------------------------------------

LACKS = unloadable(
    "version", culprit=OLD, place="system", names=("GLIBCXX_3.4.32",), asks="/env/x/_ext.so"
)
SILENT = {"platform": linux(), "interpreter": interpreter(), "conda": None, "symptoms": ()}


def test_the_files_tell_it_before_anything_is_tried(judge: Judge) -> None:
    (finding,) = judge(**SILENT, linux=loader(LACKS)).findings
    assert finding.severity == "error"
    assert f"{OLD} has no GLIBCXX_3.4.32, which _ext.so needs" in finding.summary


def test_a_part_of_another_package_is_a_warning(judge: Judge) -> None:
    known = loader(extensions={"flash-attn": (LACKS,)})
    (finding,) = judge(**SILENT, linux=known, trial=imported()).findings
    assert (finding.name, finding.severity) == ("libstdcxx-too-old", "warning")


def test_what_was_imported_has_all_it_needs(judge: Judge) -> None:
    assert judge(**SILENT, linux=loader(LACKS), trial=imported()).status == "clear"
    assert judge(**SILENT, linux=loader()).status == "clear"


def test_a_newer_c_library_is_another_check(judge: Judge) -> None:
    glibc = unloadable("version", names=("GLIBC_2.34",))
    assert judge(**SILENT, linux=loader(glibc)).status == "clear"


def test_the_step_cures_what_the_files_say(cure: Planner) -> None:
    assert cure(**SILENT, linux=loader(LACKS)).verdict == "healthy"
