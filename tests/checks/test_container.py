from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Container, Driver, Unknown

HERE: dict[str, object] = {
    "platform": make.linux(),
    "torch": make.build(),
    "driver": None,
    "gpus": (),
    "device_nodes": (),
    "variables": {},
    "container": make.DOCKER,
}


def test_a_cuda_build_in_a_container_without_gpus_is_a_note(judge: Judge) -> None:
    (found,) = judge(**HERE).findings
    assert (found.name, found.severity, found.steps) == ("container-no-gpu", "note", ())


def test_it_is_an_error_where_cuda_is_expected_or_was_asked_for(judge: Judge) -> None:
    (found,) = judge(**HERE, expectation=make.EXPECT_CUDA).findings
    assert (found.name, found.severity) == ("container-no-gpu", "error")
    assert found.steps[0].commands.bash == ("docker run --gpus all IMAGE",)
    theirs = make.symptom("no-nvidia-driver", "train.log")
    (found,) = judge(**HERE, symptoms=(theirs,)).findings
    assert found.severity == "error"


def test_a_gpu_of_the_host_makes_it_a_warning(judge: Judge) -> None:
    (found,) = judge(**HERE | {"gpus": (make.a100(),)}).findings
    assert found.severity == "warning"
    assert "A100" in found.summary


def test_every_kind_of_container_is_told_in_its_own_words(judge: Judge) -> None:
    for kind, words in (
        ("podman", "nvidia.com/gpu=all"),
        ("kubernetes", "nvidia.com/gpu: 1"),
        ("singularity", "--nv"),
        ("container", "--gpus all"),
    ):
        known = HERE | {"container": Container(kind)}
        (found,) = judge(**known, expectation=make.EXPECT_CUDA).findings
        assert words in found.steps[0].title


def test_a_setting_that_hides_gpus_is_evidence(judge: Judge) -> None:
    known = HERE | {"variables": {"NVIDIA_VISIBLE_DEVICES": "void"}}
    (found,) = judge(**known).findings
    assert "void" in [e.value for e in found.evidence]


def test_it_is_quiet_with_gpus_or_without_a_wish_for_them(judge: Judge) -> None:
    given = HERE | {"driver": make.driver(), "device_nodes": make.NVIDIA_NODES}
    assert judge(**given).status == "clear"
    assert judge(**HERE | {"torch": make.build("2.13.0+cpu")}).status == "clear"
    assert judge(**HERE | {"container": None}).status == "clear"
    assert judge(**HERE, expectation=make.EXPECT_CPU).status == "clear"


def test_driver_packages_in_the_container_are_found(judge: Judge) -> None:
    hidden = Driver(
        None, kernel_module="570.86.15", library="535.183.01", error="mismatch", code=18
    )
    (found,) = judge(**HERE | {"driver": hidden}).findings
    assert (found.name, found.severity) == ("driver-installed-in-container", "error")
    assert "570.86.15" in found.summary
    assert found.steps[0].deletes
    assert judge(**HERE | {"driver": hidden, "container": None}).status == "clear"


def test_wsl_1_has_no_gpu_and_wsl_2_is_quiet(judge: Judge) -> None:
    first = HERE | {"platform": make.linux(wsl=1), "container": None}
    (found,) = judge(**first).findings
    assert (found.name, found.severity) == ("wsl1-no-gpu", "note")
    (found,) = judge(**first, expectation=make.EXPECT_CUDA).findings
    assert found.severity == "error"
    assert found.steps[0].commands.powershell == ("wsl --set-version Ubuntu 2",)
    assert judge(**first | {"platform": make.linux(wsl=2)}).status == "clear"


def test_it_cannot_tell_without_the_driver(judge: Judge) -> None:
    assert judge(**HERE | {"driver": Unknown("not asked")}).status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    hidden = Driver(None, kernel_module="570.86.15", library="535.183.01", code=18)
    wsl = {"platform": make.linux(wsl=1), "container": None}
    for change in ({}, {"driver": hidden}, wsl):
        plan = cure(**HERE | change, expectation=make.EXPECT_CUDA)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
        assert plan.steps


def test_wsl_1_is_told_by_the_message_without_knowing_torch(judge: Judge) -> None:
    here = {"platform": make.linux(wsl=1), "container": Unknown("not told")}
    theirs = make.symptom("no-nvidia-driver", "train.log")
    (found,) = judge(**here, symptoms=(theirs,)).findings
    assert (found.name, found.severity) == ("wsl1-no-gpu", "error")
    assert judge(**here).status == "clear"


GIVEN = HERE | {"device_nodes": make.NVIDIA_NODES}


def test_device_files_without_the_drivers_libraries_are_told(judge: Judge, cure: Planner) -> None:
    (found,) = judge(**GIVEN).findings
    assert (found.name, found.severity) == ("container-no-gpu", "warning")
    assert "/dev/nvidia0 and not the libraries" in found.summary
    assert found.steps[0].commands.bash == ("docker run --gpus all IMAGE",)
    lacks = Driver(None, error="Library Not Found", code=12)
    (found,) = judge(**GIVEN | {"driver": lacks}, expectation=make.EXPECT_CUDA).findings
    assert found.severity == "error"
    assert cure(**GIVEN, expectation=make.EXPECT_CUDA).verdict == "healthy"


def test_capabilities_without_compute_are_why(judge: Judge) -> None:
    graphics = GIVEN | {"variables": {"NVIDIA_DRIVER_CAPABILITIES": "graphics,display"}}
    (found,) = judge(**graphics).findings
    assert "NVIDIA_DRIVER_CAPABILITIES=graphics,display asks for no compute" in found.summary
    assert found.steps[0].commands.bash == (
        "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility IMAGE",
    )
    utility = GIVEN | {"variables": {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}}
    (found,) = judge(**utility).findings
    assert "asks for no compute" not in found.summary


def test_device_files_with_a_driver_that_answers_or_fails_otherwise_are_quiet(judge: Judge) -> None:
    for driver in (make.driver(), Driver(None, error="Unknown Error", code=999)):
        assert judge(**GIVEN | {"driver": driver}).status == "clear"
    assert judge(**GIVEN | {"container": None}).status == "clear"
