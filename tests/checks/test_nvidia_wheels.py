from tests.checks.cuda_wheels import CUBLAS, FAILED, NCCL, TRITON, with_torch
from tests.checks.make import (
    build,
    dist,
    imported,
    interpreter,
    linux,
    raised,
    symptom,
    torch_and,
    windows,
)
from tests.conftest import Judge, Planner


def test_wheels_that_are_absent_are_installed_at_their_pins(judge: Judge) -> None:
    (finding,) = judge(**with_torch(TRITON), trial=FAILED).findings
    assert (finding.name, finding.severity) == ("nvidia-wheels-missing", "error")
    assert "nvidia-cublas-cu12==12.8.4.1" in finding.summary
    assert finding.steps[0].commands.bash == (
        "/env/bin/python -m pip install nvidia-cublas-cu12==12.8.4.1 nvidia-nccl-cu12==2.27.5",
    )


def test_triton_alone_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**with_torch(CUBLAS, NCCL)).findings
    assert finding.severity == "warning"
    assert "torch.compile" in finding.summary


def test_a_torch_that_works_makes_it_a_warning(judge: Judge) -> None:
    (finding,) = judge(**with_torch(TRITON), trial=imported()).findings
    assert finding.severity == "warning"


def test_what_a_toolkit_package_asks_for_counts(judge: Judge) -> None:
    toolkit = dist("cuda-toolkit", "13.0.2", requires=('nvidia-cufft==12.*; extra == "cufft"',))
    (finding,) = judge(**with_torch(toolkit, asks=("cuda-toolkit[cufft]==13.0.2",))).findings
    assert "nvidia-cufft==12.*" in finding.summary


def test_a_whole_set_is_in_order(judge: Judge) -> None:
    assert judge(**with_torch(CUBLAS, NCCL, TRITON)).status == "clear"


def test_another_version_matters_only_when_the_import_fails(judge: Judge) -> None:
    older = dist("nvidia-cublas-cu12", "12.4.5.8")
    assert judge(**with_torch(older, NCCL, TRITON), trial=imported()).status == "clear"
    (finding,) = judge(**with_torch(older, NCCL, TRITON), trial=FAILED).findings
    assert "12.4.5.8 is there" in finding.summary


def test_a_torch_that_brings_its_own_needs_none(judge: Judge) -> None:
    assert judge(**with_torch(asks=("filelock",)), trial=imported()).status == "clear"


def test_windows_needs_none(judge: Judge) -> None:
    assert judge(**with_torch(platform=windows())).status == "clear"


def test_metadata_that_forgot_them_is_replaced_by_the_table(judge: Judge) -> None:
    torch = dist("torch", "2.0.1", requires=("filelock",))
    absent = symptom("shared-library-missing", library="libcurand.so.10")
    known = torch_and(build("2.0.1+cu117", distribution=torch))
    (finding,) = judge(**known, symptoms=(absent,), trial=FAILED).findings
    assert finding.name == "nvidia-wheels-missing"
    assert "nvidia-curand-cu11==10.2.10.91" in finding.steps[0].commands.bash[0]
    assert judge(**known, trial=imported()).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build(), platform=linux(), interpreter=interpreter()).status == "unknown"


def test_the_pins_cure(cure: Planner) -> None:
    plan = cure(**with_torch(), trial=FAILED)
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_a_plain_wheel_is_told_by_the_table_where_the_machine_is_not(judge: Judge) -> None:
    torch = dist("torch", "2.0.1")
    here = torch_and(
        build("2.0.1", tag=None, distribution=torch),
        platform=linux(machine=""),
        trial=raised("OSError", "libcurand.so.10: cannot open shared object file"),
    )
    gone = symptom("shared-library-missing", "log", library="libcurand.so.10")
    (finding,) = judge(**here, symptoms=(gone,)).findings
    assert finding.name == "nvidia-wheels-missing"
    assert "nvidia-cublas-cu11==11.10.3.66 (absent)" in finding.summary
    other = symptom("shared-library-missing", "log", library="libGL.so.1")
    assert judge(**here, symptoms=(other,)).status == "clear"


def test_a_list_without_the_system_is_enough_with_the_library(judge: Judge) -> None:
    torch = dist("torch", "2.2.2", metadata="")
    here = {
        "torch": build("2.2.2", tag=None, cuda=None, distribution=torch),
        "distributions": (torch, dist("numpy", "1.26.4", metadata="")),
    }
    gone = symptom("shared-library-missing", "log", library="libcublas.so.12")
    (finding,) = judge(**here, symptoms=(gone,)).findings
    assert finding.name == "nvidia-wheels-missing"
    assert judge(**here, symptoms=()).status == "unknown"
    cublas = dist("nvidia-cublas-cu12", "12.1.3.1", metadata="")
    partial = here | {"distributions": (torch, cublas)}
    assert judge(**partial, symptoms=(gone,)).status == "clear"
