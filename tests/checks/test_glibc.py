from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.model import Finding

CENTOS = make.linux(name="CentOS Linux 7", distribution="centos", libc_version="2.17")
PYTHON = make.interpreter("3.11.9")
OLD = make.symptom(
    "symbol-version-missing",
    "import torch",
    "version `GLIBC_2.28' not found",
    namespace="GLIBC",
    version="2.28",
    required_by="/env/lib/libtorch_cpu.so",
)
FAILED = make.raised("ImportError", "version `GLIBC_2.28' not found")


def test_the_loaders_own_words_are_believed(judge: Judge) -> None:
    (found,) = judge(
        platform=CENTOS, interpreter=PYTHON, torch=make.build("2.9.1+cpu"), symptoms=(OLD,)
    ).findings
    assert (found.name, found.severity) == ("glibc-too-old", "error")
    assert "2.28" in found.summary
    assert "2.17" in found.summary
    assert found.steps[0].commands.bash[0].startswith("/env/bin/python -m pip install torch==2.")


def _static(judge: Judge, version: str, libc: str) -> tuple[Finding, ...]:
    platform = make.linux(libc_version=libc)
    return judge(
        platform=platform, interpreter=PYTHON, torch=make.build(version), trial=FAILED
    ).findings


def test_the_release_decides_where_the_loader_said_nothing(judge: Judge) -> None:
    assert [f.name for f in _static(judge, "2.9.1+cpu", "2.17")] == ["glibc-too-old"]
    assert _static(judge, "2.9.1+cpu", "2.28") == ()
    assert _static(judge, "2.5.1+cpu", "2.17") == ()


def test_the_version_is_compared_as_numbers(judge: Judge) -> None:
    assert [f.name for f in _static(judge, "2.9.1+cpu", "2.9")] == ["glibc-too-old"]
    assert _static(judge, "2.9.1+cpu", "2.100") == ()


def test_libstdcxx_in_the_same_words_is_another_matter(judge: Judge) -> None:
    other = make.symptom("symbol-version-missing", namespace="GLIBCXX", version="3.4.30")
    known = {"platform": make.linux(), "torch": make.build(), "symptoms": (other,)}
    assert judge(**known).status == "clear"


def test_a_torch_that_imports_is_quiet(judge: Judge) -> None:
    known = {"platform": CENTOS, "torch": make.build("2.9.1+cpu"), "trial": make.imported()}
    assert judge(**known).status == "clear"


def test_a_release_beyond_the_tables_is_unknown(judge: Judge) -> None:
    known = {"platform": CENTOS, "torch": make.build("9.0.0+cpu"), "trial": FAILED}
    assert judge(**known).status == "unknown"
    assert judge(torch=make.build()).status == "unknown"


def test_an_older_release_cures_and_has_no_build_for_a_newer_system(cure: Planner) -> None:
    plan = cure(
        platform=CENTOS,
        interpreter=PYTHON,
        torch=make.build("2.9.1+cu128"),
        trial=FAILED,
        driver=make.driver(),
        gpus=(make.a100(),),
    )
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    # 2.6.0+cu126 needs glibc 2.28 as well
    assert plan.steps[0].step.title == "Install torch 2.6.0+cu124"


def test_a_newer_system_cures_where_no_release_fits(cure: Planner) -> None:
    ancient = make.linux(libc_version="2.12")
    known = {"interpreter": PYTHON, "torch": make.build("2.9.1+cpu"), "trial": FAILED}
    plan = cure(platform=ancient, **known)
    assert plan.verdict == "healthy"
    assert plan.steps[0].step.name == "use-a-newer-system"
