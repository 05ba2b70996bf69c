from tests.checks.make import SITE, interpreter, linux, symptom
from tests.conftest import Judge, Planner

GOMP = symptom(
    "undefined-symbol",
    loader="musl",
    file=f"{SITE}/torch/lib/libgomp-a34b3233.so.1",
    symbol="pthread_attr_setaffinity_np",
)
LOADER = symptom(
    "shared-library-missing",
    loader="musl",
    library="ld-linux-x86-64.so.2",
    required_by=f"{SITE}/torch/lib/libc10.so",
)
ALPINE = linux(distribution="alpine", like=(), libc="musl", libc_version=None)


def test_a_wheel_that_was_forced_on_musl_is_found(judge: Judge) -> None:
    (finding,) = judge(symptoms=(GOMP,), interpreter=interpreter("3.9.18")).findings
    assert (finding.name, finding.severity) == ("musl-libc", "error")
    assert "libgomp-a34b3233.so.1" in finding.summary
    assert "python:3.9-slim" in finding.steps[0].title
    for shell in ("bash", "powershell", "cmd"):
        (line,) = getattr(finding.steps[0].commands, shell)
        assert line == "docker run -it --rm python:3.9-slim bash"


def test_a_machine_of_its_own_is_not_replaced_by_a_command(judge: Judge) -> None:
    (finding,) = judge(symptoms=(GOMP,), interpreter=interpreter(), container=None).findings
    assert not finding.steps[0].commands


def test_that_the_loader_of_glibc_is_absent_says_it_too(judge: Judge) -> None:
    assert judge(symptoms=(LOADER,)).status == "found"


def test_the_same_words_of_glibc_are_another_fault(judge: Judge) -> None:
    of_glibc = symptom("undefined-symbol", file=f"{SITE}/torch/lib/libtorch.so", symbol="x")
    assert judge(symptoms=(of_glibc,)).status == "clear"


def test_a_program_of_alpine_that_lacks_a_library_is_not_torch(judge: Judge) -> None:
    other = symptom(
        "shared-library-missing",
        loader="musl",
        library="libpq.so.5",
        required_by="/usr/bin/psql",
    )
    assert judge(symptoms=(other,)).status == "clear"
    of_own = symptom("undefined-symbol", loader="musl", file="/opt/own/lib/x.so", symbol="y")
    assert judge(symptoms=(of_own,)).status == "clear"
    assert judge(platform=ALPINE).status == "unknown"


def test_another_image_cures(cure: Planner) -> None:
    for known in ({"platform": ALPINE}, {}):
        for said in (GOMP, LOADER):
            plan = cure(symptoms=(said,), **known)
            assert (plan.verdict, [s.step.name for s in plan.steps]) == (
                "healthy",
                ["take-glibc-image"],
            )
