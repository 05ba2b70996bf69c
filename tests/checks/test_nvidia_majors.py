from tests.checks.cuda_wheels import CUBLAS, FAILED, NCCL, TRITON, with_torch
from tests.checks.make import build, dist, imported, interpreter, linux, raised, symptom
from tests.conftest import Judge, Planner


def test_wheels_of_two_majors_that_write_one_file_are_told(judge: Judge) -> None:
    other = dist("nvidia-nccl-cu11", "2.14.3")
    failed = raised("ImportError", "undefined symbol: ncclMemFree")
    (finding,) = judge(**with_torch(CUBLAS, NCCL, TRITON, other), trial=failed).findings
    assert (finding.name, finding.severity) == ("nvidia-wheels-mixed", "error")
    assert "nvidia/nccl/lib/libnccl.so.2" in finding.summary
    assert finding.steps[0].commands.bash == (
        "/env/bin/python -m pip uninstall -y nvidia-nccl-cu11",
        "/env/bin/python -m pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.27.5",
    )


def test_two_majors_and_a_torch_that_works_is_a_warning(judge: Judge) -> None:
    other = dist("nvidia-nccl-cu13", "2.28.9")
    (finding,) = judge(**with_torch(CUBLAS, NCCL, TRITON, other), trial=imported()).findings
    assert finding.severity == "warning"


def test_a_list_without_metadata_is_judged_by_the_cuda_of_torch(judge: Judge) -> None:
    other = dist("nvidia-nccl-cu11", "2.14.3")
    (finding,) = judge(**with_torch(NCCL, other, asks=())).findings
    assert "torch needs nvidia-nccl-cu12" in finding.summary


def test_two_majors_in_folders_of_their_own_are_in_order(judge: Judge) -> None:
    other = dist("nvidia-cublas", "13.1.0.3")
    assert judge(**with_torch(CUBLAS, NCCL, TRITON, other)).status == "clear"


def test_two_majors_that_torch_does_not_use_are_not_its_business(judge: Judge) -> None:
    others = (dist("nvidia-cudnn-cu11", "8.9.6.50"), dist("nvidia-cudnn-cu12", "8.9.7.29"))
    cpu = dist("torch", "2.9.1+cpu")
    known = with_torch(*others) | {"torch": build("2.9.1+cpu", distribution=cpu)}
    assert judge(**known).status == "clear"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build(), platform=linux(), interpreter=interpreter()).status == "unknown"


def test_taking_the_other_away_cures(cure: Planner) -> None:
    other = dist("nvidia-nccl-cu11", "2.14.3")
    plan = cure(**with_torch(CUBLAS, NCCL, TRITON, other), trial=FAILED)
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_a_symbol_that_is_absent_tells_it_where_torch_is_unknown(
    judge: Judge, cure: Planner
) -> None:
    pair = (dist("nvidia-nccl-cu11", "2.14.3"), dist("nvidia-nccl-cu12", "2.27.3"))
    said = symptom("undefined-symbol", "log", family="nccl", symbol="ncclMemFree")
    here = {"distributions": pair, "symptoms": (said,), "trial": FAILED}
    (finding,) = judge(**here).findings
    assert (finding.name, finding.severity) == ("nvidia-wheels-mixed", "error")
    assert "needs nvidia-nccl-cu12" in finding.summary
    assert cure(**here).verdict == "healthy"
    assert judge(distributions=pair, symptoms=()).status == "clear"
    other = symptom("undefined-symbol", "log", family="mkl", symbol="iJIT_NotifyEvent")
    assert judge(distributions=pair, symptoms=(other,)).status == "clear"
    assert judge(distributions=pair[:1], symptoms=(said,)).status == "clear"
