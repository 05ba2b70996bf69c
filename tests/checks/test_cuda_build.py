from __future__ import annotations

from dataclasses import replace

from tests.checks import make
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Driver, Expectation, Gpu, Unknown

HERE = {
    "platform": make.linux(),
    "interpreter": make.interpreter(),
    "driver": make.driver(),
    "gpus": (make.a100(),),
}
CPU = make.build("2.13.0+cpu")
INTEL = Gpu("Intel UHD Graphics 770", "intel")
RADEON = Gpu("AMD Radeon RX 7900 XTX", "amd")
KFD = make.nodes("/dev/kfd", "/dev/dri/renderD128")


def test_a_cpu_build_beside_a_usable_gpu_is_a_warning(judge: Judge) -> None:
    (found,) = judge(**HERE, torch=CPU).findings
    assert (found.name, found.severity) == ("cpu-only-build", "warning")
    assert "A100" in found.summary
    (line,) = found.steps[0].commands.bash
    assert line.startswith("/env/bin/python -m pip install torch==2.13.0+cu130 ")
    assert line.endswith(" --index-url https://download.pytorch.org/whl/cu130")


def test_it_is_an_error_where_cuda_is_expected_and_quiet_where_cpu_is(judge: Judge) -> None:
    (found,) = judge(**HERE, torch=CPU, expectation=make.EXPECT_CUDA).findings
    assert found.severity == "error"
    assert judge(**HERE, torch=CPU, expectation=make.EXPECT_CPU).status == "clear"


def test_a_cuda_build_is_quiet(judge: Judge) -> None:
    assert judge(**HERE, torch=make.build()).status == "clear"


def test_a_cpu_build_without_gpu_or_driver_is_quiet(judge: Judge) -> None:
    assert judge(**HERE | {"gpus": ()}, torch=CPU).status == "clear"
    assert judge(**HERE | {"driver": None}, torch=CPU).status == "clear"
    assert judge(**HERE | {"gpus": (INTEL,), "driver": None}, torch=CPU).status == "clear"


def test_the_silence_of_the_driver_proves_nothing(judge: Judge) -> None:
    hung = Driver(None, error="nvidia-smi did not answer in 10 s", hung=True)
    assert judge(**HERE | {"driver": hung, "gpus": Unknown("hung")}, torch=CPU).status == "unknown"
    assert judge(**HERE | {"driver": hung}, torch=CPU).status == "unknown"


def test_a_build_that_cannot_be_told_is_unknown(judge: Judge) -> None:
    assert judge(**HERE, torch=make.build("2.13.0", tag=None)).status == "unknown"


def test_an_old_driver_gets_a_build_that_it_runs(judge: Judge) -> None:
    (found,) = judge(
        **HERE | {"driver": make.driver("535.104.05", cuda="12.2")}, torch=CPU
    ).findings
    assert "torch==2.13.0+cu126" in found.steps[0].commands.bash[0]


def test_a_gpu_that_no_build_serves_is_only_a_note(judge: Judge) -> None:
    kepler = make.nvidia("NVIDIA GeForce GT 710", (3, 5))
    known = HERE | {"gpus": (kepler,), "driver": make.driver("470.256.02")}
    (found,) = judge(**known, torch=CPU).findings
    assert (found.severity, found.steps) == ("note", ())


def test_a_jetson_is_sent_to_nvidias_wheels(cure: Planner) -> None:
    jetson = make.linux(machine="aarch64", jetson=True)
    orin = make.nvidia("Orin", (8, 7))
    plan = cure(**HERE | {"platform": jetson, "gpus": (orin,)}, torch=CPU)
    assert plan.verdict == "healthy"
    assert plan.steps[0].step.name == "install-jetson-wheel"


def test_an_amd_card_makes_a_cpu_build_a_possible_warning(judge: Judge) -> None:
    known = HERE | {"gpus": (RADEON,), "driver": None}
    (found,) = judge(**known, torch=CPU, device_nodes=KFD).findings
    assert (found.name, found.severity, found.confidence) == (
        "cpu-only-build",
        "warning",
        "possible",
    )
    assert "/whl/rocm" in found.steps[0].commands.bash[0]
    assert judge(**known, torch=CPU, device_nodes=()).status == "clear"


def test_a_card_that_rocminfo_lists_is_usable_where_no_device_was_looked_at(judge: Judge) -> None:
    for gfx, severity in (("gfx1100", "warning"), (None, "note")):
        cards = (replace(RADEON, gfx=gfx),)
        (found,) = judge(**HERE | {"driver": None, "gpus": cards}, torch=make.build()).findings
        assert (found.name, found.severity) == ("wrong-accelerator-build", severity)


def test_graphics_inside_an_amd_processor_earn_a_note(judge: Judge) -> None:
    known = HERE | {"gpus": (Gpu("AMD Radeon 780M Graphics", "amd"),), "driver": None}
    (found,) = judge(**known, torch=CPU, device_nodes=KFD).findings
    assert found.severity == "note"


def test_a_cuda_build_beside_other_graphics_is_a_note(judge: Judge) -> None:
    known = HERE | {"gpus": (INTEL,), "driver": None}
    (found,) = judge(**known, torch=make.build()).findings
    assert (found.name, found.severity) == ("wrong-accelerator-build", "note")
    assert "UHD" in found.summary


def test_a_cuda_build_where_rocm_is_expected_is_an_error(judge: Judge) -> None:
    known = HERE | {"gpus": (RADEON,), "driver": None, "device_nodes": KFD}
    expected = Expectation(accelerator="rocm")
    (found,) = judge(**known, torch=make.build(), expectation=expected).findings
    assert (found.name, found.severity) == ("wrong-accelerator-build", "error")


def test_a_rocm_build_beside_an_nvidia_gpu_is_found(judge: Judge) -> None:
    (found,) = judge(**HERE, torch=make.build("2.13.0+rocm7.2")).findings
    assert (found.name, found.severity) == ("wrong-accelerator-build", "warning")
    assert "torch==2.13.0+cu130" in found.steps[0].commands.bash[0]


def test_another_build_cures(cure: Planner) -> None:
    for version in ("2.13.0+cpu", "2.13.0+rocm7.2"):
        plan = cure(**HERE, torch=make.build(version))
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
        assert len(plan.steps) == 1


def test_a_program_that_asked_for_cuda_is_enough(judge: Judge, cure: Planner) -> None:
    asked = {"symptoms": (make.symptom("not-compiled-with-cuda", "train.log"),)}
    (found,) = judge(**asked).findings
    assert (found.name, found.severity, found.confidence) == ("cpu-only-build", "error", "likely")
    assert "+cu" in found.steps[0].commands.bash[0]
    assert cure(**asked).verdict == "healthy"
    ours = {"symptoms": (make.symptom("not-compiled-with-cuda", "torch.cuda"),)}
    assert judge(**ours).status == "unknown"
    assert judge(**asked, torch=CPU, gpus=(), platform=make.linux()).status == "clear"
    assert judge(**asked, platform=make.mac()).status == "clear"


def test_an_extension_of_the_cuda_build_of_this_release_tells_it(judge: Judge) -> None:
    def told(built: str, have: str) -> dict[str, object]:
        values = {"package": "xformers", "built": built, "have": have}
        return {"symptoms": (make.symptom("extension-built-for-other", "log", **values),)}

    (found,) = judge(**told("2.1.2+cu121", "2.1.2+cpu")).findings
    assert found.name == "cpu-only-build"
    assert "xformers is built for 2.1.2+cu121" in found.summary
    assert "torch==2.1.2+cu121" in found.steps[0].commands.bash[0]
    assert judge(**told("2.1.2+cu121", "2.1.0+cpu")).status == "unknown"
    assert judge(**told("2.1.2+cu121", "2.1.2+cu118")).status == "unknown"


def test_cards_that_the_driver_numbers_are_usable_where_it_was_not_asked(judge: Judge) -> None:
    here = HERE | {"driver": Unknown("not told"), "torch": CPU}
    assert judge(**here).status == "found"
    seen = Gpu("NVIDIA A100-SXM4-80GB")
    assert judge(**here | {"gpus": (seen,)}).status == "clear"


TOLD = make.symptom("cuda-told", "a text", "CUDA version: 12.5", cuda="12.5")


def test_a_cuda_that_is_written_down_beside_a_cpu_build_is_likely(
    judge: Judge, cure: Planner
) -> None:
    known = {"torch": make.build("2.2.1+cpu"), "symptoms": (TOLD,)}
    (found,) = judge(**known).findings
    assert (found.name, found.severity, found.confidence) == (
        "cpu-only-build",
        "warning",
        "likely",
    )
    assert "CUDA 12.5" in found.summary
    assert "torch==2.2.1+cu121" in found.steps[0].commands.bash[0]
    assert cure(**known).verdict == "healthy"


def test_it_counts_for_nothing_where_more_is_known(judge: Judge) -> None:
    known = {"symptoms": (TOLD,), "torch": CPU}
    assert judge(**known, gpus=()).findings == ()
    assert judge(**known, driver=None).findings == ()
    assert judge(symptoms=(TOLD,), torch=make.build("2.13.0+cu130")).findings == ()
    assert judge(symptoms=(TOLD,)).findings == ()
    ours = make.symptom("cuda-told", "output of import torch", cuda="12.5")
    assert judge(symptoms=(ours,), torch=CPU).findings == ()
