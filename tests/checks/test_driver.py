from __future__ import annotations

from tests.checks import make
from tests.checks.run import said
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Driver, Expectation, Gpu, Kernel, Unknown

HERE = {"platform": make.linux(), "interpreter": make.interpreter(), "torch": make.build()}
OLD = make.driver("535.104.05", cuda="12.2")
CARD = (make.a100(),)


def test_a_cuda_build_without_gpu_and_driver_is_healthy_with_a_note(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=None, gpus=()).findings
    assert (found.name, found.severity) == ("driver-missing", "note")


def test_it_is_an_error_where_cuda_or_gpus_are_expected(judge: Judge) -> None:
    for expected in (make.EXPECT_CUDA, Expectation(gpus_at_least=2)):
        (found,) = judge(**HERE, driver=None, gpus=(), expectation=expected).findings
        assert (found.name, found.severity) == ("driver-missing", "error")
        assert found.steps == ()  # no driver helps where there is no GPU


def test_somebody_who_writes_that_nvidia_smi_hangs_is_believed(judge: Judge, cure: Planner) -> None:
    facts = {"driver": Unknown("not asked"), "symptoms": said("after a day nvidia-smi hangs")}
    (found,) = judge(**HERE, **facts).findings
    assert (found.name, found.evidence[0].fact) == ("driver-not-answering", "symptoms")
    assert cure(**HERE, **facts).verdict == "healthy"
    assert judge(**HERE, **facts | {"symptoms": said("nvidia-smi is quick")}).status == "unknown"


def test_no_nvidia_driver_is_missed_where_only_other_gpus_are(judge: Judge) -> None:
    asked = (make.symptom("no-nvidia-driver", "train.log"),)
    facts = {"driver": Unknown("not asked"), "symptoms": asked}
    radeon = (Gpu("AMD Radeon RX 7900 XTX", "amd"),)
    (found,) = judge(**HERE, **facts, gpus=CARD).findings
    assert found.name == "driver-missing"
    assert judge(**HERE, **facts, gpus=radeon).status == "unknown"


def test_a_gpu_without_a_driver_is_a_warning_with_a_step(judge: Judge) -> None:
    modules = Kernel(frozenset({"nouveau"}))
    (found,) = judge(**HERE, driver=None, gpus=CARD, kernel=modules).findings
    assert found.severity == "warning"
    assert "nouveau" in found.summary
    assert found.steps[0].commands.bash[0] == "sudo ubuntu-drivers install nvidia:580"


def test_a_program_of_the_user_that_asked_for_a_gpu_makes_it_an_error(judge: Judge) -> None:
    ours = make.symptom("no-nvidia-driver", "torch.cuda")
    theirs = make.symptom("no-nvidia-driver", "train.log")
    (found,) = judge(**HERE, driver=None, gpus=(), symptoms=(ours,)).findings
    assert found.severity == "note"
    (found,) = judge(**HERE, driver=None, gpus=(), symptoms=(theirs,)).findings
    assert found.severity == "error"


def test_a_missing_driver_is_nothing_to_other_builds_and_systems(judge: Judge) -> None:
    cpu = HERE | {"torch": make.build("2.13.0+cpu")}
    assert judge(**cpu, driver=None, gpus=CARD).status == "clear"
    assert judge(**HERE | {"platform": make.mac()}, driver=None, gpus=()).status == "clear"
    assert judge(**HERE | {"platform": make.linux(wsl=1)}, driver=None, gpus=()).status == "clear"
    assert judge(**HERE, driver=None, gpus=(), container=make.DOCKER).status == "clear"


def test_a_driver_whose_module_is_not_loaded_is_loaded_first(judge: Judge) -> None:
    asleep = Driver(None, source="nvml", library="580.95.05", error="Driver Not Loaded", code=9)
    (found,) = judge(**HERE, driver=asleep, gpus=CARD).findings
    assert (found.name, found.severity) == ("driver-missing", "warning")
    assert found.steps[0].commands.bash == ("sudo modprobe nvidia",)


def test_a_driver_older_than_the_major_of_cuda_is_too_old(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=OLD, gpus=CARD).findings
    assert (found.name, found.severity) == ("driver-too-old", "error")
    assert "535.104.05" in found.summary
    assert "580.65.06" in found.summary
    build, upgrade = found.steps
    assert "torch==2.13.0+cu126 --index-url" in build.commands.bash[0]
    assert upgrade.commands.bash[0] == "sudo ubuntu-drivers install nvidia:580"


def test_minor_version_compatibility_is_counted_in(judge: Judge) -> None:
    newer = HERE | {"torch": make.build("2.10.0+cu128")}
    assert judge(**newer, driver=OLD, gpus=CARD).status == "clear"
    assert judge(**newer, driver=make.driver("520.61.05", cuda="11.8"), gpus=CARD).status == "found"


def test_the_driver_of_windows_decides_inside_wsl(judge: Judge) -> None:
    wsl = HERE | {"platform": make.linux(wsl=2)}
    assert judge(**wsl, driver=make.driver("580.88"), gpus=CARD).status == "clear"
    (found,) = judge(**wsl, driver=make.driver("580.66", cuda="12.9"), gpus=CARD).findings
    assert "580.88" in found.summary
    assert not found.steps[-1].commands


def test_torch_saying_that_cuda_works_settles_it(judge: Judge) -> None:
    works = make.runtime(make.device(make.a100()))
    assert judge(**HERE, driver=OLD, gpus=CARD, runtime=works).status == "clear"


def test_the_message_of_torch_is_enough_without_the_driver(judge: Judge) -> None:
    said = make.symptom("cuda-driver-too-old", "train.log", cuda="11.4")
    known = HERE | {"driver": Unknown("pasted"), "symptoms": (said,)}
    (found,) = judge(**known).findings
    assert found.name == "driver-too-old"
    assert "CUDA 11.4" in found.summary


def test_a_driver_that_hangs_is_a_warning_and_nothing_else(judge: Judge) -> None:
    hung = Driver(None, error="nvidia-smi did not answer in 10 s", hung=True)
    (found,) = judge(**HERE, driver=hung, gpus=Unknown("hung")).findings
    assert (found.name, found.severity) == ("driver-not-answering", "warning")
    assert found.evidence[0].value == "nvidia-smi did not answer in 10 s"
    rubbish = Driver(None, source="nvidia-smi", garbage=True)
    (found,) = judge(**HERE, driver=rubbish, gpus=()).findings
    assert found.name == "driver-not-answering"


def test_it_cannot_tell_without_a_driver_or_a_row_for_it(judge: Judge) -> None:
    assert judge(**HERE, driver=Unknown("not asked")).status == "unknown"
    newer = HERE | {"torch": make.build("2.13.0+cu150")}
    assert judge(**newer, driver=make.driver(), gpus=CARD).status == "unknown"
    assert judge(**HERE, driver=make.driver(None), gpus=CARD).status == "unknown"


def test_a_driver_that_reports_a_newer_cuda_may_be_bridged(judge: Judge) -> None:
    bridged = make.driver("535.104.05", cuda="13.0")
    assert judge(**HERE, driver=bridged, gpus=CARD).status == "unknown"
    fails = make.runtime(reason="forward compatibility was attempted")
    assert judge(**HERE, driver=bridged, gpus=CARD, runtime=fails).status == "found"


def test_a_machine_for_cpu_work_gets_notes_without_steps(judge: Judge) -> None:
    hung = Driver(None, error="nvidia-smi did not answer in 10 s", hung=True)
    for driver in (OLD, hung, None):
        (found,) = judge(**HERE, driver=driver, gpus=CARD, expectation=make.EXPECT_CPU).findings
        assert (found.severity, found.steps) == ("note", ())


def test_an_old_gpu_is_not_sent_to_a_driver_that_dropped_it(judge: Judge) -> None:
    kepler = make.nvidia("Tesla K80", (3, 7))
    (found,) = judge(**HERE, driver=make.driver("470.57.02", cuda="11.4"), gpus=(kepler,)).findings
    assert "upgrade-driver" not in [step.name for step in found.steps]


def test_a_container_is_sent_to_the_host_for_a_driver(judge: Judge) -> None:
    (found,) = judge(**HERE, driver=OLD, gpus=CARD, container=make.DOCKER).findings
    assert "on the host" in found.steps[-1].title
    assert not found.steps[-1].commands


def test_the_steps_cure(cure: Planner) -> None:
    hung = Driver(None, error="nvidia-smi did not answer in 10 s", hung=True)
    for driver, gpus in ((OLD, CARD), (None, CARD), (hung, Unknown("hung"))):
        plan = cure(**HERE, driver=driver, gpus=gpus)
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
    assert cure(**HERE, driver=OLD, gpus=CARD).steps[0].step.needs == ("network",)


def test_the_message_alone_tells_the_oldest_cuda_that_torch_can_be(judge: Judge) -> None:
    said = make.symptom("cuda-driver-too-old", "train.log", cuda="11.4")
    (found,) = judge(symptoms=(said,)).findings
    assert (found.name, found.severity) == ("driver-too-old", "error")
    assert "12.0 or newer" in found.summary
    assert "525.60.13" in found.summary
    newer = make.symptom("cuda-driver-too-old", "train.log", cuda="12.2")
    (found,) = judge(symptoms=(newer,)).findings
    assert "580.65.06" in found.summary


def test_a_driver_that_is_named_gets_a_build_that_runs_on_it(judge: Judge, cure: Planner) -> None:
    said = make.symptom("cuda-driver-too-old", "train.log", cuda="11.4")
    here = {
        "symptoms": (said,),
        "driver": make.driver("470.86", cuda="11.4"),
        "platform": make.linux(machine=""),
        "gpus": (make.nvidia("NVIDIA GeForce RTX 3050", None),),
    }
    (found,) = judge(**here).findings
    assert "+cu118" in found.steps[0].commands.bash[0]
    assert cure(**here).verdict == "healthy"


def test_a_driver_that_is_new_by_now_outlives_the_message(judge: Judge) -> None:
    said = make.symptom("cuda-driver-too-old", "train.log", cuda="11.4")
    assert judge(symptoms=(said,), driver=make.driver()).status == "clear"


def test_the_message_that_there_is_no_driver_is_believed_where_it_was_not_asked(
    judge: Judge, cure: Planner
) -> None:
    none = {"symptoms": (make.symptom("no-nvidia-driver", "train.log"),)}
    (found,) = judge(**none).findings
    assert (found.name, found.severity, found.confidence) == ("driver-missing", "error", "likely")
    assert judge(**none, platform=make.linux(wsl=1)).status == "clear"
    assert judge(**none, variables={"CUDA_VISIBLE_DEVICES": ""}).status == "clear"
    assert cure(**none, platform=make.linux()).verdict == "healthy"
