from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Unknown

HARDWARE = make.symptom("cuda-compat-not-supported", code="804")
COMBINATION = make.symptom("cuda-driver-mismatch", code="803")
HERE = {"platform": make.linux(), "torch": make.build("2.1.2+cu121"), "container": None}
COMPAT = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat:/opt/lib"}
OLD = make.driver("525.85.12")


def test_error_804_with_the_path_that_brings_it_in(judge: Judge) -> None:
    (found,) = judge(**HERE, symptoms=(HARDWARE,), variables=COMPAT, driver=OLD).findings
    assert (found.name, found.severity) == ("cuda-compat-libs", "error")
    assert "525.85.12" in found.summary
    assert "804" in found.summary
    assert found.steps[0].commands.bash == ("export LD_LIBRARY_PATH=/opt/lib",)
    assert found.steps[-1].name == "upgrade-driver"


def test_a_new_driver_is_not_advised_where_it_is_new_enough(judge: Judge) -> None:
    known = HERE | {"symptoms": (HARDWARE,), "variables": {}}
    (found,) = judge(**known, driver=make.driver("560.35.03")).findings
    assert [step.name for step in found.steps] == ["remove-cuda-compat"]


def test_error_803_needs_a_sign_of_the_library(judge: Judge) -> None:
    known = HERE | {"symptoms": (COMBINATION,), "driver": OLD}
    assert judge(**known, variables={}).status == "clear"
    assert judge(**known, variables=COMPAT).status == "found"
    assert judge(**known | {"container": make.DOCKER}, variables={}).status == "found"


def test_the_library_alone_is_quiet(judge: Judge) -> None:
    assert judge(**HERE, symptoms=(), variables=COMPAT, driver=OLD).status == "clear"


def test_it_cannot_tell_without_a_trial(judge: Judge) -> None:
    assert judge(**HERE, variables=COMPAT, driver=OLD).status == "unknown"


GEFORCE = (make.nvidia("NVIDIA GeForce RTX 3090", (8, 6)),)
NEWER = make.driver("535.183.01", cuda_library="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
OLDER = make.driver("580.95.05", cuda_library="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
UNTRIED = {**HERE, "variables": COMPAT, "symptoms": Unknown(), "runtime": Unknown()}


def test_error_804_is_foretold_where_the_gpu_is_none_that_it_runs_on(judge: Judge) -> None:
    (found,) = judge(**UNTRIED, driver=NEWER, gpus=GEFORCE).findings
    assert (found.name, found.severity, found.confidence) == (
        "cuda-compat-libs",
        "error",
        "likely",
    )
    assert "error 804" in found.summary
    assert "libcuda.so.550.54.15" in str(found.evidence[0].value)
    assert found.steps[0].commands.bash == ("export LD_LIBRARY_PATH=/opt/lib",)


def test_a_newer_library_runs_on_a_gpu_of_a_data_centre(judge: Judge) -> None:
    for gpus in ((make.a100(),), (make.a100(), *GEFORCE), (), Unknown()):
        assert judge(**UNTRIED, driver=NEWER, gpus=gpus).findings == ()


def test_error_803_is_foretold_where_the_driver_is_newer_than_the_library(judge: Judge) -> None:
    (found,) = judge(**UNTRIED, driver=OLDER, gpus=(make.a100(),)).findings
    assert "error 803" in found.summary


def test_nothing_is_foretold_of_the_library_of_the_driver_itself(judge: Judge) -> None:
    for library in (
        None,
        "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15",
        "/usr/local/cuda-12.4/compat/libcuda.so.580.95.05",
        "/usr/local/cuda-12.4/compat/libcuda.so.1",
    ):
        driver = make.driver("580.95.05", cuda_library=library)
        assert judge(**UNTRIED, driver=driver, gpus=GEFORCE).findings == ()


def test_nothing_is_foretold_where_torch_works_or_asks_for_no_gpu(judge: Judge) -> None:
    works = UNTRIED | {"runtime": make.runtime(make.device(make.a100())), "symptoms": ()}
    assert judge(**works, driver=NEWER, gpus=GEFORCE).status == "clear"
    cpu = UNTRIED | {"torch": make.build("2.1.2+cpu")}
    assert judge(**cpu, driver=NEWER, gpus=GEFORCE).findings == ()


def test_the_steps_cure_what_is_foretold(cure: Planner) -> None:
    tried = UNTRIED | {"symptoms": ()}
    for variables in (COMPAT, {}, {"LD_LIBRARY_PATH": "/usr/local/cuda/compat"}):
        plan = cure(**tried | {"variables": variables}, driver=NEWER, gpus=GEFORCE)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])


def test_the_steps_cure(cure: Planner) -> None:
    for variables in (COMPAT, {}, {"LD_LIBRARY_PATH": "/usr/local/cuda/compat"}):
        plan = cure(**HERE, symptoms=(HARDWARE,), variables=variables, driver=OLD)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
