from tests.checks.make import imported, interpreter, linux, loader, raised, symptom, unloadable
from tests.conftest import Judge, Planner
from torchdoctor.facts import Unknown

FILE = "/env/lib/python3.12/site-packages/torch/lib/libamdhip64.so"
SAID = symptom("executable-stack-refused", file="libamdhip64.so", reason="Invalid argument")
HERE = {"platform": linux(), "interpreter": interpreter(), "variables": {}}
REFUSED = unloadable("executable-stack", culprit=FILE, names=())


def test_the_message_is_joined_with_the_file(judge: Judge) -> None:
    known = {"symptoms": (SAID,), "linux": loader(stacks=(FILE,)), "trial": raised("OSError", "x")}
    (finding,) = judge(**HERE, **known).findings
    assert (finding.name, finding.severity) == ("executable-stack-refused", "error")
    assert "libamdhip64.so asks for an executable stack, which the C library" in finding.summary
    assert finding.steps[0].commands.bash[1] == f"patchelf --clear-execstack {FILE}"
    assert "glibc.rtld.execstack=2" in finding.steps[1].commands.bash[0]


def test_selinux_is_not_told_by_a_tunable(judge: Judge) -> None:
    denied = symptom("executable-stack-refused", file=FILE, reason="Permission denied")
    (finding,) = judge(**HERE, symptoms=(denied,)).findings
    assert "which SELinux refuses" in finding.summary
    assert [s.name for s in finding.steps] == ["clear-the-executable-stack"]


def test_the_files_tell_it_before_anything_is_tried(judge: Judge) -> None:
    untried = Unknown("not tried")
    (finding,) = judge(**HERE, symptoms=untried, linux=loader(REFUSED)).findings
    assert finding.severity == "error"
    assert FILE in finding.steps[0].commands.bash[1]


def test_another_package_is_a_warning(judge: Judge) -> None:
    known = loader(extensions={"ctranslate2": (REFUSED,)})
    (finding,) = judge(**HERE, symptoms=(), linux=known, trial=imported()).findings
    assert finding.severity == "warning"


def test_a_file_that_asks_where_it_is_granted_is_in_order(judge: Judge) -> None:
    assert judge(**HERE, symptoms=(), linux=loader(stacks=(FILE,))).status == "clear"
    assert judge(**HERE, symptoms=(), linux=loader(REFUSED), trial=imported()).status == "clear"


def test_without_messages_and_files_nothing_can_be_told(judge: Judge) -> None:
    assert judge(**HERE, symptoms=Unknown("not tried")).status == "unknown"


def test_the_step_cures(cure: Planner) -> None:
    assert cure(**HERE, symptoms=(), linux=loader(REFUSED)).verdict == "healthy"
