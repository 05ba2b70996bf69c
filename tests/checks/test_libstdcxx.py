from tests.checks.make import interpreter, linux, symptom
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
    assert line == "conda install -y -p /env conda-forge::libstdcxx-ng"


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
