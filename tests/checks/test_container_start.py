from __future__ import annotations

import pytest

from tests.checks import make
from tests.conftest import Judge, Planner, names

IMEX = "error parsing IMEX info: unsupported IMEX channel value: all: unknown."
NO_RUNTIME = make.symptom("container-runtime-unknown", "log")
NEEDS = make.symptom("container-needs-newer-driver", "log", needs="12.8")


def failed(reason: str) -> dict[str, object]:
    return {"symptoms": (make.symptom("container-toolkit-failed", "log", reason=reason),)}


def test_docker_without_the_toolkit_gives_no_gpu(judge: Judge) -> None:
    (found,) = judge(symptoms=(NO_RUNTIME,)).findings
    assert (found.name, found.severity) == ("container-no-gpu", "error")
    assert "Container Toolkit is not installed" in found.summary
    assert found.steps[0].commands.bash[1] == "sudo apt-get install -y nvidia-container-toolkit"
    assert found.steps[0].needs == ("admin",)


def test_an_image_that_asks_for_a_newer_driver_is_told_with_both_versions(judge: Judge) -> None:
    old = make.driver("551.78", cuda="12.4")
    (found,) = judge(symptoms=(NEEDS,), driver=old, platform=make.linux()).findings
    assert (found.name, found.severity) == ("driver-too-old", "error")
    assert "CUDA 12.8" in found.summary
    assert "supports 12.4" in found.summary
    without, upgrade = found.steps
    assert "NVIDIA_DISABLE_REQUIRE=1" in without.commands.bash[0]
    assert upgrade.title.startswith("Install the NVIDIA driver 570.")


def test_the_requirement_of_another_major_is_not_waived(judge: Judge) -> None:
    older = make.driver("470.86", cuda="11.4")
    (found,) = judge(symptoms=(NEEDS,), driver=older).findings
    assert [step.name for step in found.steps] == ["upgrade-driver"]
    (found,) = judge(symptoms=(NEEDS,)).findings
    assert "is older" in found.summary


def test_a_driver_that_is_new_enough_by_now_is_no_fault(judge: Judge) -> None:
    assert judge(symptoms=(NEEDS,), driver=make.driver()).status == "clear"


def test_a_faulty_release_of_the_toolkit_is_known_by_its_words(judge: Judge) -> None:
    (found,) = judge(**failed(IMEX)).findings
    assert (found.name, found.severity) == ("container-toolkit-broken", "error")
    assert "1.17.0" in found.summary
    assert "1.17.1" in found.steps[0].title


def test_a_host_without_a_driver_is_told_by_the_toolkit(judge: Judge) -> None:
    (found,) = judge(**failed("initialization error: nvml error: driver not loaded")).findings
    assert found.name == "driver-missing"


@pytest.mark.parametrize("reason", ["device error: 7: unknown device", "mount error: busy"])
def test_other_words_of_the_toolkit_blame_nothing(judge: Judge, reason: str) -> None:
    assert judge(**failed(reason)).status == "clear"


def test_it_needs_messages(judge: Judge) -> None:
    assert judge().status == "unknown"
    assert judge(symptoms=()).status == "clear"


def test_the_steps_cure(cure: Planner) -> None:
    for symptoms in ((NO_RUNTIME,), (NEEDS,), failed(IMEX)["symptoms"]):
        plan = cure(symptoms=symptoms, driver=make.driver("551.78", cuda="12.4"))
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
