import pytest

from tests.checks.make import SITE, dist, imported, interpreter, linux, mac, raised, symptom
from tests.conftest import Judge, Planner
from torchdoctor.facts import Unknown

NVJITLINK = symptom(
    "undefined-symbol",
    symbol="__nvJitLinkAddData_12_1",
    family="nvjitlink",
    file=f"{SITE}/nvidia/cusparse/lib/libcusparse.so.12",
)
CUDNN = symptom("cudnn-mismatch", compiled="8, 3, 2", found="8, 0, 3")
NCCL = symptom("undefined-symbol", symbol="ncclMemFree", family="nccl")
TOOLKIT = {"LD_LIBRARY_PATH": "/usr/local/cuda-12.1/lib64:"}
HERE = {"platform": linux(), "interpreter": interpreter(), "distributions": ()}
FAILED = raised("ImportError", "undefined symbol")


def test_a_toolkit_on_the_loaders_path_is_told_with_the_variable(judge: Judge) -> None:
    (finding,) = judge(**HERE, symptoms=(NVJITLINK,), variables=TOOLKIT, trial=FAILED).findings
    assert (finding.name, finding.severity) == ("cuda-lib-shadow", "error")
    assert "/usr/local/cuda-12.1/lib64" in finding.summary
    assert "__nvJitLinkAddData_12_1" in finding.summary
    assert finding.steps[0].commands.bash == ("unset LD_LIBRARY_PATH",)


def test_another_cudnn_is_told_though_torch_imports(judge: Judge) -> None:
    path = {"LD_LIBRARY_PATH": "/apps/cudnn/v8.0.3/lib64"}
    outcome = judge(**HERE, symptoms=(CUDNN,), variables=path, trial=imported())
    assert outcome.findings[0].name == "cuda-lib-shadow"


def test_a_library_captured_outside_the_environment_is_certain(judge: Judge) -> None:
    said = symptom(
        "symbol-version-missing", library="/opt/cuda/lib/libcudart.so.12", version="libcudart.so.12"
    )
    (finding,) = judge(**HERE, symptoms=(said,), variables={}, trial=FAILED).findings
    assert finding.confidence == "certain"


def test_a_pasted_message_without_variables_is_likely(judge: Judge) -> None:
    (finding,) = judge(symptoms=(NVJITLINK,)).findings
    assert finding.confidence == "likely"
    assert [s.name for s in finding.steps] == ["unset-ld-library-path"]


def test_another_libtorch_is_told_on_macos(judge: Judge) -> None:
    said = symptom("name-missing", module="torch._C", attribute="OutOfMemoryError")
    path = {"DYLD_LIBRARY_PATH": "/path/to/libtorch/2.3.1"}
    here = HERE | {"platform": mac()}
    (finding,) = judge(**here, symptoms=(said,), variables=path, trial=FAILED).findings
    assert (finding.name, finding.severity) == ("libtorch-shadow", "error")
    assert finding.steps[0].commands.bash == ("unset DYLD_LIBRARY_PATH",)


def test_a_symbol_missing_in_torchs_own_library_needs_a_path_to_blame(judge: Judge) -> None:
    said = symptom(
        "undefined-symbol", family="torch", file=f"{SITE}/torch/lib/libtorch_python.so", symbol="_Z"
    )
    path = {"LD_LIBRARY_PATH": "/opt/libtorch/lib"}
    assert judge(**HERE, symptoms=(said,), variables=path).findings[0].name == "libtorch-shadow"
    assert judge(**HERE, symptoms=(said,), variables={}).status == "clear"


def test_the_same_variable_and_a_torch_that_works_is_in_order(judge: Judge) -> None:
    assert judge(**HERE, symptoms=(), variables=TOOLKIT, trial=imported()).status == "clear"
    known = {"symptoms": (NVJITLINK,), "variables": TOOLKIT, "trial": imported()}
    assert judge(**HERE, **known).status == "clear"


def test_a_path_inside_the_environment_is_in_order(judge: Judge) -> None:
    own = {"LD_LIBRARY_PATH": "/env/lib"}
    assert judge(**HERE, symptoms=(NVJITLINK,), variables=own, trial=FAILED).status == "clear"


def test_two_nccl_wheels_explain_the_message_better(judge: Judge) -> None:
    both = (dist("nvidia-nccl-cu11", "2.14.3"), dist("nvidia-nccl-cu12", "2.27.3"))
    here = HERE | {"distributions": both}
    assert judge(**here, symptoms=(NCCL,)).status == "clear"


@pytest.mark.parametrize(
    "said",
    [
        symptom("undefined-symbol", family="mkl", symbol="iJIT_NotifyEvent"),
        symptom("undefined-symbol", family="torch", file=f"{SITE}/xformers/_C.so"),
        symptom("symbol-version-missing", namespace="GLIBCXX", library="/lib/libstdc++.so.6"),
        symptom("name-missing", module="torch", attribute="compile"),
    ],
)
def test_messages_of_other_faults_are_for_other_checks(judge: Judge, said: object) -> None:
    assert judge(**HERE, symptoms=(said,), variables=TOOLKIT, trial=FAILED).status == "clear"


def test_messages_must_be_known(judge: Judge) -> None:
    assert judge(**HERE, symptoms=Unknown("nothing was tried")).status == "unknown"


def test_unsetting_cures(cure: Planner) -> None:
    plan = cure(**HERE, symptoms=(NVJITLINK, CUDNN), variables=TOOLKIT, trial=FAILED)
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)
