from tests.checks.make import build, linux, symptom
from tests.conftest import Judge, Planner

BITS = symptom("extension-without-cuda", package="bitsandbytes", cuda="114")
OTHER = symptom("extension-without-cuda")


def test_a_binary_that_a_release_does_not_bring_is_named(judge: Judge) -> None:
    (finding,) = judge(symptoms=(BITS,)).findings
    assert (finding.name, finding.severity) == ("ext-cuda-variant-missing", "error")
    assert "CUDA 11.4" in finding.summary
    assert finding.steps[0].commands.bash == ("python -m pip install 'bitsandbytes>=0.43,<0.46'",)


def test_a_release_that_fits_torch_is_taken_where_one_is_on_record(judge: Judge) -> None:
    (finding,) = judge(symptoms=(BITS,), torch=build("2.13.0+cu130")).findings
    assert finding.steps[0].commands.bash == ("python -m pip install bitsandbytes==0.50.2",)
    (finding,) = judge(symptoms=(BITS,), torch=build("1.13.1+cu117")).findings
    assert "<0.46" in finding.steps[0].commands.bash[0]


def test_an_extension_that_was_compiled_without_cuda_is_to_be_compiled_anew(judge: Judge) -> None:
    (finding,) = judge(symptoms=(OTHER,)).findings
    assert "without CUDA" in finding.summary
    assert "nvcc" in finding.steps[0].title
    assert finding.because_of == ("cpu-only-build",)


def test_an_extension_that_does_not_load_is_another_fault(judge: Judge) -> None:
    other = symptom("extension-built-for-other", package="xformers", built="2.1.0", have="2.2.0")
    assert judge(symptoms=(other,)).status == "clear"
    assert judge(torch=build()).status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    for said in (BITS, OTHER):
        assert cure(symptoms=(said,), platform=linux()).verdict == "healthy"
