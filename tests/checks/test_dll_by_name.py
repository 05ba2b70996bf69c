import pytest

from tests.checks.make import (
    build,
    dist,
    dll_error,
    imported,
    interpreter,
    linux,
    symptom,
    system,
    windows,
)
from tests.checks.run import said
from tests.conftest import Judge, Planner
from torchdoctor.facts import DllLoad

OWNED = {
    "platform": windows(),
    "interpreter": interpreter(),
    "torch": build("2.9.1+cu128", distribution=dist("torch", "2.9.1+cu128")),
    "distributions": (dist("torch", "2.9.1+cu128"),),
}


def lost(library: str) -> object:
    return symptom("cudnn-library-missing", library=library)


def test_a_part_of_cudnn_is_written_again(judge: Judge, cure: Planner) -> None:
    said = (lost("cudnn_graph64_9.dll"),)
    (finding,) = judge(**OWNED, symptoms=said).findings
    assert (finding.name, finding.confidence) == ("cuda-dll-missing", "likely")
    assert "cudnn_graph64_9.dll was not found" in finding.summary
    assert finding.steps[0].name == "reinstall-torch"
    assert cure(**OWNED, symptoms=said).verdict == "healthy"


def test_another_major_explains_it(judge: Judge) -> None:
    (finding,) = judge(symptoms=(lost("cudnn_ops_infer64_8.dll"),)).findings
    assert "cudnn-major-mismatch" in finding.because_of


def test_a_cudnn_of_another_major_than_torch_s_is_not_missing_from_it(judge: Judge) -> None:
    assert judge(**OWNED, symptoms=(lost("cudnn_ops_infer64_8.dll"),)).status == "clear"
    assert judge(**OWNED, symptoms=(lost("cudnn_ops64_9.dll"),)).status == "found"


def test_zlibwapi_is_asked_for_by_a_cudnn_of_others(judge: Judge, cure: Planner) -> None:
    said = (lost("zlibwapi.dll"),)
    (finding,) = judge(platform=windows(), symptoms=said).findings
    assert (finding.name, finding.confidence) == ("import-order-dll-conflict", "possible")
    assert "another one was probably loaded first" in finding.summary
    assert cure(platform=windows(), symptoms=said).steps[0].step.name == "import-torch-first"


def test_127_of_a_part_of_cudnn_is_another_cudnn(judge: Judge) -> None:
    said = (dll_error("127", "cudnn_cnn64_9.dll"),)
    (finding,) = judge(platform=windows(), symptoms=said).findings
    assert (finding.name, finding.confidence) == ("import-order-dll-conflict", "possible")


@pytest.mark.parametrize("file", ["caffe2_nvrtc.dll", "c10_cuda.dll", "cudnn64_8.dll"])
def test_126_of_a_cuda_dll_is_possibly_that(judge: Judge, file: str) -> None:
    (finding,) = judge(**OWNED, symptoms=(dll_error("126", file),)).findings
    assert (finding.name, finding.confidence) == ("cuda-dll-missing", "possible")
    assert f"{file} needs a DLL that is not found" in finding.summary


@pytest.mark.parametrize(
    ("code", "file"),
    [("126", "shm.dll"), ("127", "c10_cuda.dll"), ("1114", "cudnn64_9.dll"), ("126", "c10.dll")],
)
def test_other_numbers_and_files_are_for_others(judge: Judge, code: str, file: str) -> None:
    assert judge(**OWNED, symptoms=(dll_error(code, file),)).status == "clear"


def test_the_files_count_more_than_the_number(judge: Judge) -> None:
    said = (dll_error("126", "c10_cuda.dll"),)
    assert judge(**OWNED, symptoms=said, windows=system(DllLoad())).status == "clear"


def test_a_torch_that_works_and_another_system_are_not_concerned(judge: Judge) -> None:
    said = (dll_error("126", "c10_cuda.dll"),)
    assert judge(**OWNED, symptoms=said, trial=imported()).status == "clear"
    away = {"platform": linux(), "windows": None}
    assert judge(**away, symptoms=(lost("cudnn_graph64_9.dll"),)).status == "clear"
    assert judge(platform=windows()).status == "unknown"


def test_a_shared_object_of_linux_is_not_meant(judge: Judge) -> None:
    assert judge(symptoms=(lost("libcudnn_ops.so.9.1.0"),)).status == "clear"


def test_a_frozen_program_has_a_fault_of_its_own(judge: Judge) -> None:
    path = r"D:\out\lib\torch\lib\cudnn_cnn64_9.dll"
    said = symptom("winerror-dll", code="127", file=path)
    assert judge(platform=windows(), symptoms=(said,)).status == "clear"


LOST = "RuntimeError: nvrtc: error: failed to open nvrtc-builtins64_116.dll."


def test_the_other_half_of_nvrtc_is_brought(judge: Judge, cure: Planner) -> None:
    (finding,) = judge(platform=windows(), symptoms=said(LOST)).findings
    assert finding.name == "cuda-dll-missing"
    assert "CUDA 11.6" in finding.summary
    assert "cuda-nvrtc=11.6" in finding.steps[0].commands.powershell[0]
    (owned,) = judge(**OWNED, symptoms=said(LOST)).findings
    assert owned.steps[0].name == "reinstall-torch"
    assert cure(**OWNED, symptoms=said(LOST)).verdict == "healthy"


def test_nvrtc_of_linux_and_another_error_of_it_are_no_dll(judge: Judge) -> None:
    linux_file = "RuntimeError: nvrtc: error: failed to open libnvrtc-builtins.so.11.1."
    other = "nvrtc: error: invalid value for --gpu-architecture (-arch)"
    for text in (linux_file, other):
        assert judge(platform=windows(), symptoms=said(text)).findings == ()
