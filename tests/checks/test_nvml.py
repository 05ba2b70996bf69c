from __future__ import annotations

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Container, Driver, Unknown

HERE = {"platform": make.linux(), "torch": make.build()}
MISMATCH = Driver(
    None,
    source="nvml",
    kernel_module="550.90.07",
    library="550.107.02",
    error="Driver/library version mismatch",
    code=18,
)


def test_a_module_and_a_library_of_two_releases_want_a_reboot(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=MISMATCH, container=None).findings
    assert (found.name, found.severity) == ("nvml-mismatch", "error")
    assert "550.90.07" in found.summary
    assert "550.107.02" in found.summary
    assert found.steps[0].commands.bash == ("sudo reboot",)
    assert found.steps[1].name == "reload-nvidia-modules"


def test_it_is_a_warning_for_a_cpu_build(judge: Judge) -> None:
    cpu = HERE | {"torch": make.build("2.13.0+cpu")}
    (found,) = judge(**cpu, driver=MISMATCH, container=None).findings
    assert found.severity == "warning"


def test_another_library_on_the_disk_beside_a_driver_that_answers_is_quiet(judge: Judge) -> None:
    leftover = make.driver("550.90.07", library="550.107.02")
    assert judge(**HERE, driver=leftover, container=None).status == "clear"
    assert judge(**HERE, driver=make.driver(), container=None).status == "clear"
    assert judge(**HERE, driver=None, container=None).status == "clear"


def test_a_message_alone_is_enough(judge: Judge) -> None:
    said = make.symptom("nvml-version-mismatch", "log")
    known = HERE | {"driver": Driver(None), "symptoms": (said,)}
    assert names(judge(**known, container=None).findings) == ["nvml-mismatch"]


def test_a_container_that_lost_its_gpus_is_started_again(judge: Judge) -> None:
    lost = Driver(None, source="nvml", error="Unknown Error", code=999)
    (found,) = judge(**HERE, driver=lost, container=make.DOCKER).findings
    assert (found.name, found.severity) == ("container-gpu-detached", "error")
    assert found.steps[0].needs == ("restart-container",)
    assert judge(**HERE, driver=lost, container=None).status == "clear"


def test_a_lost_gpu_is_named(judge: Judge) -> None:
    lost = make.driver(error="GPU is lost", code=15)
    (found,) = judge(**HERE, driver=lost, container=None).findings
    assert found.name == "gpu-fell-off-bus"


def test_a_gpu_whose_handle_is_not_given_is_lost_also_in_a_container(judge: Judge) -> None:
    said = "Unable to determine the device handle for GPU0000:34:00.0: Unknown Error"
    driver = Driver("550.54", source="nvidia-smi", error=said, code=999)
    (found,) = judge(**HERE, driver=driver, container=Container("docker")).findings
    assert found.name == "gpu-fell-off-bus"


def test_it_cannot_tell_without_the_driver(judge: Judge) -> None:
    assert judge(**HERE, driver=Unknown("hung"), container=None).status == "unknown"


def test_the_steps_cure(cure: Planner) -> None:
    lost = make.driver(error="GPU is lost", code=15)
    gone = Driver(None, source="nvml", error="Unknown Error", code=999)
    for driver, container in ((MISMATCH, None), (lost, None), (gone, make.DOCKER)):
        plan = cure(**HERE, driver=driver, container=container)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    assert cure(**HERE, driver=MISMATCH, container=make.DOCKER).verdict == "healthy"


def test_the_words_of_nvml_are_enough_where_the_driver_was_not_asked(judge: Judge) -> None:
    detached = make.symptom("nvml-not-initialized", "log", reason="Unknown Error")
    (found,) = judge(symptoms=(detached,)).findings
    assert (found.name, found.severity) == ("container-gpu-detached", "warning")
    assert judge(symptoms=(detached,), container=None).status == "clear"
    differs = make.symptom("nvml-version-mismatch", "log")
    (found,) = judge(symptoms=(differs,)).findings
    assert found.name == "nvml-mismatch"
    assert judge(symptoms=()).status == "unknown"


def test_in_a_container_the_image_may_bring_a_driver_of_its_own(judge: Judge) -> None:
    driver = make.driver(None, kernel_module="470.129.06", library="525.105.17", code=18)
    (found,) = judge(driver=driver, container=Container("docker"), torch=make.build()).findings
    assert "(470.129.06 and 525.105.17)" in found.summary
    assert "out of the image" in found.steps[0].title
    assert "reboot the host" in found.steps[0].title
