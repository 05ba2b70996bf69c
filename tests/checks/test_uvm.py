from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Driver, Kernel

SAID = make.symptom("cuda-unknown-error", code="999")
HERE = {
    "platform": make.linux(),
    "driver": make.driver(),
    "kernel": Kernel(frozenset({"nvidia", "nvidia_uvm"})),
    "device_nodes": make.NVIDIA_NODES,
    "container": None,
}


def test_an_unknown_error_beside_a_driver_that_answers_wants_a_reload(judge: Judge) -> None:
    (found,) = judge(**HERE, symptoms=(SAID,)).findings
    assert (found.name, found.severity) == ("nvidia-uvm-stale", "error")
    assert "999" in found.summary
    assert found.steps[0].commands.bash == (
        "sudo rmmod nvidia_uvm",
        "sudo modprobe nvidia_uvm",
    )


def test_a_device_file_that_is_missing_is_made(judge: Judge) -> None:
    known = HERE | {"device_nodes": make.nodes("/dev/nvidia0", "/dev/nvidiactl")}
    (found,) = judge(**known, symptoms=(SAID,)).findings
    assert found.confidence == "certain"
    assert found.steps[0].commands.bash == ("sudo nvidia-modprobe -u -c=0",)


def test_without_the_error_a_missing_file_is_quiet(judge: Judge) -> None:
    known = HERE | {"device_nodes": make.nodes("/dev/nvidia0")}
    assert judge(**known, symptoms=()).status == "clear"


def test_other_places_have_other_reasons(judge: Judge) -> None:
    for change in (
        {"container": make.DOCKER},
        {"platform": make.linux(wsl=2)},
        {"platform": make.windows()},
        {"driver": None},
        {"driver": Driver(None, error="GPU is lost", code=15)},
        {"runtime": make.runtime(make.device(make.a100()))},
    ):
        assert judge(**HERE | change, symptoms=(SAID,)).status == "clear"


def test_it_cannot_tell_without_a_trial(judge: Judge) -> None:
    assert judge(**HERE).status == "unknown"


def test_the_reload_is_the_plan_and_cures(cure: Planner) -> None:
    plan = cure(**HERE, symptoms=(SAID,))
    assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    assert plan.steps[0].step.name == "reload-nvidia-uvm"
