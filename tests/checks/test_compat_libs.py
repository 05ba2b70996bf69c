from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names

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


def test_the_steps_cure(cure: Planner) -> None:
    for variables in (COMPAT, {}, {"LD_LIBRARY_PATH": "/usr/local/cuda/compat"}):
        plan = cure(**HERE, symptoms=(HARDWARE,), variables=variables, driver=OLD)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
