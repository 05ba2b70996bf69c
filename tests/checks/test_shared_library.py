import pytest

from tests.checks.make import (
    SITE,
    dist,
    imported,
    interpreter,
    linux,
    loader,
    mac,
    raised,
    symptom,
    unloadable,
)
from tests.conftest import Judge, Planner
from torchdoctor.facts import SoFile, Unknown

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


# ---- what the files say, without a message ----------------------------------------------------

FOREIGN = "/opt/cuda/lib64/libcusparse.so.12"
OWN = f"{SITE}/nvidia/cusparse/lib/libcusparse.so.12"
SHADOWED = unloadable(
    "symbol",
    culprit=FOREIGN,
    place="LD_LIBRARY_PATH",
    instead=OWN,
    names=("cusparseNew",),
    asks=f"{SITE}/torch/lib/libtorch_cuda.so",
    message=f"{SITE}/torch/lib/libtorch_cuda.so: undefined symbol: cusparseNew",
)
PATH = {"LD_LIBRARY_PATH": "/opt/cuda/lib64"}


def test_the_file_that_wins_is_named_before_anything_is_tried(judge: Judge) -> None:
    known = {"linux": loader(SHADOWED), "variables": PATH, "trial": Unknown("not tried")}
    (finding,) = judge(**HERE, **known, symptoms=Unknown("not tried")).findings
    assert (finding.name, finding.severity) == ("cuda-lib-shadow", "error")
    assert finding.confidence == "certain"
    assert f"takes {FOREIGN} by LD_LIBRARY_PATH in place of {OWN}" in finding.summary
    assert "no cusparseNew, which libtorch_cuda.so calls" in finding.summary
    assert finding.steps[0].commands.bash == ("unset LD_LIBRARY_PATH",)


def test_the_files_and_the_message_are_one_finding(judge: Judge) -> None:
    said = symptom("undefined-symbol", symbol="cusparseNew", family="cuda")
    failed = raised("ImportError", "libtorch_cuda.so: undefined symbol: cusparseNew")
    known = {"linux": loader(SHADOWED), "variables": PATH, "trial": failed}
    (finding,) = judge(**HERE, **known, symptoms=(said,)).findings
    assert finding.confidence == "certain"


def test_another_libtorch_by_preload_is_told_with_its_variable(judge: Judge) -> None:
    load = unloadable(
        "symbol",
        culprit="/opt/libtorch/lib/libtorch_cpu.so",
        place="LD_PRELOAD",
        instead=f"{SITE}/torch/lib/libtorch_cpu.so",
    )
    (finding,) = judge(**HERE, linux=loader(load), symptoms=()).findings
    assert finding.name == "libtorch-shadow"
    assert [s.name for s in finding.steps] == ["unset-ld-preload"]


def test_a_variable_that_torch_survives_is_in_order_also_by_the_files(judge: Judge) -> None:
    steered = loader(steered=(SoFile("libcusparse.so.12", FOREIGN, "LD_LIBRARY_PATH", OWN),))
    assert judge(**HERE, linux=steered, symptoms=(), variables=PATH).status == "clear"
    known = {"linux": loader(SHADOWED), "symptoms": (), "variables": PATH}
    assert judge(**HERE, **known, trial=imported()).status == "clear"


def test_a_library_that_fails_without_the_variable_as_well_is_not_its_fault(judge: Judge) -> None:
    load = unloadable("symbol", culprit=FOREIGN, place="LD_LIBRARY_PATH")
    also = loader(load, without=unloadable("symbol"))
    assert judge(**HERE, linux=also, symptoms=(), variables=PATH).status == "clear"


def test_a_c_runtime_by_a_variable_is_another_check(judge: Judge) -> None:
    load = unloadable("version", culprit="/opt/gcc/libstdc++.so.6", place="LD_LIBRARY_PATH")
    assert judge(**HERE, linux=loader(load), symptoms=(), variables=PATH).status == "clear"


def test_a_message_is_joined_with_the_file_that_is_taken(judge: Judge) -> None:
    steered = loader(steered=(SoFile("libnvJitLink.so.12", "/opt/x.so", "LD_LIBRARY_PATH", OWN),))
    known = {"linux": steered, "symptoms": (NVJITLINK,), "variables": TOOLKIT, "trial": FAILED}
    (finding,) = judge(**HERE, **known).findings
    assert ("linux.steered", f"/opt/x.so, not {OWN}", "LD_LIBRARY_PATH") in [
        (e.fact, e.value, e.source) for e in finding.evidence
    ]


def test_to_unset_the_variable_cures_what_the_files_say(cure: Planner) -> None:
    plan = cure(**HERE, linux=loader(SHADOWED), variables=PATH, symptoms=())
    assert plan.verdict == "healthy"


def test_without_messages_and_without_files_nothing_can_be_told(judge: Judge) -> None:
    assert judge(**HERE, symptoms=Unknown("not tried")).status == "unknown"


def test_what_ldd_shows_is_named(judge: Judge) -> None:
    shown = symptom("library-resolved", library="/usr/local/lib/libnccl.so.2")
    (finding,) = judge(symptoms=(NCCL, shown)).findings
    assert (finding.name, finding.confidence) == ("cuda-lib-shadow", "certain")
    assert "/usr/local/lib/libnccl.so.2" in finding.summary
    assert "remove the package that put libnccl.so.2 there" in finding.steps[0].title
    assert finding.steps[0].commands.bash == ("unset LD_LIBRARY_PATH",)
    own = symptom("library-resolved", library=f"{SITE}/nvidia/nccl/lib/libnccl.so.2")
    (finding,) = judge(symptoms=(NCCL, own)).findings
    assert finding.confidence == "likely"


ELSEWHERE = symptom(
    "undefined-symbol",
    file="/opt/libtorch/lib/libtorch_python.so",
    symbol="PyThread_tss_alloc",
    family="python",
)


def test_another_libtorch_by_the_variable_shadows_whatever_it_lacks(
    judge: Judge, cure: Planner
) -> None:
    led = {"LD_LIBRARY_PATH": "/usr/lib/x:/opt/libtorch/lib"}
    (finding,) = judge(**HERE, symptoms=(ELSEWHERE,), variables=led, trial=FAILED).findings
    assert finding.name == "libtorch-shadow"
    assert "/opt/libtorch/lib" in finding.summary
    assert cure(**HERE, symptoms=(ELSEWHERE,), variables=led).verdict == "healthy"


def test_a_libtorch_that_no_variable_leads_to_is_not_blamed_on_one(judge: Judge) -> None:
    other = {"LD_LIBRARY_PATH": "/opt/other/lib"}
    assert judge(**HERE, symptoms=(ELSEWHERE,), variables=other).findings == ()
    own = symptom(
        "undefined-symbol",
        file=f"{SITE}/torch/lib/libtorch_python.so",
        symbol="Py_x",
        family="python",
    )
    led = {"LD_LIBRARY_PATH": f"{SITE}/torch/lib"}
    assert judge(**HERE, symptoms=(own,), variables=led).findings == ()
