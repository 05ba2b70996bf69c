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


# ---- what the files say -----------------------------------------------------------------------

LIBC = "/lib64/libc.so.6"
NEEDS = make.unloadable(
    "version", culprit=LIBC, place="system", names=("GLIBC_2.32",), asks="/env/x/flash_attn_cuda.so"
)
HERE = {"platform": make.linux(libc_version="2.31"), "interpreter": PYTHON, "symptoms": ()}
FLASH = make.dist("flash-attn", "2.8.0")


def test_the_files_tell_it_before_anything_is_tried(judge: Judge) -> None:
    torch = make.build("2.9.1+cpu")
    (found,) = judge(**HERE, torch=torch, linux=make.loader(NEEDS)).findings
    assert found.severity == "error"
    assert "flash_attn_cuda.so needs glibc 2.32; Ubuntu 24.04 has 2.31" in found.summary


def test_a_file_of_another_package_is_a_warning_and_is_compiled_here(judge: Judge) -> None:
    known = make.loader(extensions={"flash-attn": (NEEDS, NEEDS)})
    (found,) = judge(
        **HERE,
        torch=make.build("2.9.1+cpu"),
        distributions=(FLASH,),
        linux=known,
        trial=make.imported(),
    ).findings
    assert (found.name, found.severity) == ("glibc-too-old", "warning")
    assert "flash_attn_cuda.so of flash-attn needs glibc 2.32" in found.summary
    assert [s.name for s in found.steps] == ["compile-flash-attn-2-8-0", "use-a-newer-system"]


def test_a_newer_libstdcxx_is_another_check(judge: Judge) -> None:
    other = make.unloadable("version", names=("GLIBCXX_3.4.32",))
    torch = make.build("2.5.1+cpu")
    assert judge(**HERE, torch=torch, linux=make.loader(other)).status == "clear"
    assert judge(**HERE, torch=torch, linux=make.loader()).status == "clear"


def test_a_step_cures_what_the_files_say(cure: Planner) -> None:
    known = make.loader(extensions={"flash-attn": (NEEDS,)})
    plan = cure(**HERE, torch=make.build("2.9.1+cpu"), distributions=(FLASH,), linux=known)
    assert plan.verdict == "healthy"


def test_the_c_library_itself_tells_its_release_where_the_system_does_not(judge: Judge) -> None:
    here = HERE | {"platform": make.linux(libc_version=None)}
    known = make.loader(NEEDS, glibc="2.31")
    (found,) = judge(**here, torch=make.build("2.9.1+cpu"), linux=known).findings
    assert "Ubuntu 24.04 has 2.31" in found.summary


OF_FLASH = make.symptom(
    "symbol-version-missing",
    "a text",
    namespace="GLIBC",
    version="2.32",
    required_by="/env/lib/python3.11/site-packages/flash_attn_2_cuda.cpython-311.so",
)


def test_a_message_about_another_package_changes_no_torch(judge: Judge, cure: Planner) -> None:
    known = HERE | {"symptoms": (OF_FLASH,), "torch": make.build("2.7.0+cu126")}
    (found,) = judge(**known).findings
    assert found.severity == "warning"
    assert "torch itself is not concerned" in found.summary
    assert all("torch==" not in line for step in found.steps for line in step.commands.bash)
    (found,) = judge(**known, distributions=(FLASH,)).findings
    assert found.steps[0].commands.bash[0] == "export FLASH_ATTENTION_FORCE_BUILD=TRUE"
    assert "--no-binary=flash-attn" in found.steps[0].commands.bash[1]
    assert cure(**known).verdict == "healthy"
    assert cure(**known, distributions=(FLASH,)).verdict == "healthy"
