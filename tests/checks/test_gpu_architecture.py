from __future__ import annotations

from dataclasses import replace

from tests.checks import make
from tests.checks.run import said
from tests.conftest import Judge, Planner, names
from torchdoctor.facts import Conda, CondaPackage, Unknown
from torchdoctor.tables import gpus as table

HERE = {"platform": make.linux(), "interpreter": make.interpreter(), "driver": make.driver()}
BLACKWELL = make.nvidia("NVIDIA GeForce RTX 5090", (12, 0))
PASCAL = make.nvidia("NVIDIA GeForce GTX 1080 Ti", (6, 1))
VOLTA = make.nvidia("Tesla V100-SXM2-32GB", (7, 0))
NO_IMAGE = "CUDA error: no kernel image is available for execution on the device"
CU126 = make.build("2.6.0+cu126")


def test_a_gpu_newer_than_the_build_is_not_supported(judge: Judge) -> None:
    (found,) = judge(**HERE, torch=CU126, gpus=(BLACKWELL,)).findings
    assert (found.name, found.severity) == ("arch-not-supported", "error")
    assert "RTX 5090 (sm_120)" in found.summary
    assert "sm_90" in found.summary
    assert "/whl/cu13" in found.steps[0].commands.bash[0]


def test_a_gpu_that_the_build_left_behind_is_dropped(judge: Judge) -> None:
    for card, version in ((PASCAL, "2.13.0+cu130"), (VOLTA, "2.11.0+cu128")):
        (found,) = judge(**HERE, torch=make.build(version), gpus=(card,)).findings
        assert found.name == "arch-dropped"
        assert f"torch=={version[:6]}+cu126" in found.steps[0].commands.bash[0]


def test_release_and_build_decide_together(judge: Judge) -> None:
    assert judge(**HERE, torch=make.build("2.10.0+cu128"), gpus=(VOLTA,)).status == "clear"
    assert judge(**HERE, torch=make.build("2.13.0+cu126"), gpus=(PASCAL,)).status == "clear"
    assert judge(**HERE, torch=make.build("2.7.0+cu128"), gpus=(BLACKWELL,)).status == "clear"


def test_a_kernel_that_ran_settles_it_against_any_table(judge: Judge) -> None:
    spark = make.nvidia("NVIDIA GB10", (12, 1))
    ran = make.runtime(make.device(spark), arch_list=("sm_80", "sm_90"))
    warned = make.symptom("gpu-not-in-build", "torch.cuda", capability="12.1")
    known = HERE | {"torch": make.build(), "gpus": (spark,), "symptoms": (warned,)}
    assert judge(**known, runtime=ran).status == "clear"


def test_a_kernel_that_found_no_code_settles_it_too(judge: Judge) -> None:
    failed = make.runtime(make.device(BLACKWELL, NO_IMAGE), arch_list=("sm_80", "sm_90"))
    (found,) = judge(**HERE, torch=CU126, gpus=(BLACKWELL,), runtime=failed).findings
    assert (found.name, found.confidence) == ("arch-not-supported", "certain")
    assert NO_IMAGE in [e.value for e in found.evidence]


def test_another_error_of_a_kernel_is_another_matter(judge: Judge) -> None:
    failed = make.runtime(make.device(make.a100(), "CUDA error: out of memory"))
    known = HERE | {"torch": make.build(), "gpus": (make.a100(),)}
    assert judge(**known, runtime=failed).status == "clear"


def test_one_of_two_gpus_is_a_warning_that_names_it(judge: Judge) -> None:
    cards = (make.a100(0), make.nvidia("Tesla K80", (3, 7), 1))
    (found,) = judge(**HERE, torch=make.build(), gpus=cards, variables={}).findings
    assert (found.name, found.severity) == ("arch-dropped", "warning")
    assert "K80" in found.summary
    assert "A100" not in found.summary
    uuid = "GPU-00000000-0000-0000-0000-000000000000"
    assert found.steps[0].commands.bash == (f"export CUDA_VISIBLE_DEVICES={uuid}",)


def test_a_gpu_that_is_hidden_does_not_count(judge: Judge) -> None:
    cards = (make.a100(0), make.nvidia("Tesla K80", (3, 7), 1))
    shown = {"CUDA_VISIBLE_DEVICES": "0"}
    assert judge(**HERE, torch=make.build(), gpus=cards, variables=shown).status == "clear"


def test_what_torch_says_of_itself_goes_before_the_tables(judge: Judge) -> None:
    said = make.runtime(arch_list=("sm_80", "sm_90", "compute_90"))
    (found,) = judge(**HERE, torch=make.build(), gpus=(VOLTA,), runtime=said).findings
    assert "compute_90" in found.summary


def test_the_name_stands_in_for_a_capability(judge: Judge) -> None:
    named = make.nvidia("NVIDIA GeForce RTX 5090", None)
    assert names(judge(**HERE, torch=CU126, gpus=(named,)).findings) == ["arch-not-supported"]
    strange = make.nvidia("Graphics Device", None)
    assert judge(**HERE, torch=CU126, gpus=(strange,)).status == "clear"


def test_a_pasted_warning_names_the_gpu(judge: Judge) -> None:
    said = make.symptom("gpu-not-in-build", "log", gpu="NVIDIA GeForce RTX 5090", capability="12.0")
    known = HERE | {"torch": CU126, "gpus": Unknown("pasted")}
    (found,) = judge(**known, symptoms=(said,)).findings
    assert found.name == "arch-not-supported"


def test_it_cannot_tell_beyond_the_tables_or_without_gpus(judge: Judge) -> None:
    newer = make.build("9.0.0+cu150")
    assert judge(**HERE, torch=newer, gpus=(BLACKWELL,)).status == "unknown"
    assert judge(**HERE, torch=make.build()).status == "unknown"
    # its list was never read with certainty, so it turns no GPU away
    doubtful = make.build("2.9.0+cu128")
    windows = HERE | {"platform": make.windows()}
    listed = table.arch_list("2.9.0", "cu128", "win_amd64")
    assert listed is not None
    assert listed.certain is False
    assert judge(**windows, torch=doubtful, gpus=(PASCAL,)).status == "unknown"


def test_the_p100_of_a_kaggle_notebook_is_dropped_from_its_cu128_build(judge: Judge) -> None:
    p100 = make.nvidia("Tesla P100-PCIE-16GB", (6, 0))
    kaggle = HERE | {"variables": {"KAGGLE_KERNEL_RUN_TYPE": "Interactive"}}
    (found,) = judge(**kaggle, torch=make.build("2.10.0+cu128"), gpus=(p100,)).findings
    assert found.name == "arch-dropped"
    assert "P100-PCIE-16GB (sm_60)" in found.summary
    assert "torch==2.10.0+cu126" in found.steps[0].commands.bash[0]
    t4 = make.nvidia("Tesla T4", (7, 5))
    assert judge(**kaggle, torch=make.build("2.10.0+cu128"), gpus=(t4,)).status == "clear"


def _jetson(cuda: str, **changes: object) -> dict[str, object]:
    return {
        "platform": make.linux(machine="aarch64", jetson=True),
        "interpreter": make.interpreter("3.10.12", machine="linux-aarch64"),
        "driver": make.driver(None, cuda=cuda),
        "gpus": (make.nvidia("", None, uuid=None),),
        **changes,
    }


def test_an_ordinary_arm_build_does_not_run_on_a_jetson(judge: Judge, cure: Planner) -> None:
    known = _jetson("12.6", torch=make.build("2.9.1+cu126"))
    (found,) = judge(**known).findings
    assert found.name == "arch-not-supported"
    assert "Jetson (sm_87)" in found.summary
    (line,) = found.steps[0].commands.bash
    assert line.endswith("torch --index-url https://pypi.jetson-ai-lab.io/jp6/cu126")
    assert cure(**known).verdict == "healthy"


def test_on_a_jetson_only_what_the_facts_say_counts(judge: Judge) -> None:
    own = make.build("2.8.0", cuda="12.6", tag="cu126")  # NVIDIA's, whose list is not known
    assert judge(**_jetson("12.6", torch=own)).status == "unknown"
    orin = (make.nvidia("Orin", (8, 7)),)
    new = _jetson("13.2", torch=make.build("2.15.0+cu132"), gpus=orin)
    assert judge(**new).status == "clear"  # from CUDA 13.2 on, code for 8.0 runs on 8.7


def test_a_build_of_conda_forge_has_a_list_of_its_own(judge: Judge) -> None:
    conda = make.build("2.13.0", cuda="13.0", tag="cu130")
    assert conda.distribution
    conda = replace(conda, distribution=replace(conda.distribution, installer="conda"))

    def env(channel: str, build: str) -> dict[str, object]:
        return {"conda": Conda((CondaPackage("pytorch", "2.13.0", build, channel),))}

    known = HERE | {"torch": conda, "gpus": (PASCAL,)}
    built = "cuda130_generic_py312h1da07bd_200"
    (found,) = judge(**known, **env("conda-forge", built)).findings
    assert found.name == "arch-dropped"
    assert "conda-forge" in found.evidence[1].source
    older = "cuda129_generic_py312h1da07bd_200"
    assert judge(**known, **env("conda-forge", older)).status == "clear"
    assert judge(**known, **env("pytorch", built)).status == "unknown"


def test_builds_without_cuda_are_quiet(judge: Judge) -> None:
    for version in ("2.13.0+cpu", "2.13.0+rocm7.2"):
        assert judge(**HERE, torch=make.build(version), gpus=(BLACKWELL,)).status == "clear"


def test_another_build_cures(cure: Planner) -> None:
    mixed = (BLACKWELL, make.nvidia("Tesla K80", (3, 7), 1))
    for version, cards in (
        ("2.6.0+cu126", (BLACKWELL,)),
        ("2.13.0+cu130", (PASCAL,)),
        ("2.15.0+cu132", (VOLTA,)),
        ("2.13.0+cu130", mixed),
    ):
        plan = cure(**HERE, torch=make.build(version), gpus=cards, variables={})
        assert (plan.verdict, names(plan.remaining)) == ("healthy", [])
        assert len(plan.steps) == 1
    failed = make.runtime(make.device(VOLTA, NO_IMAGE), arch_list=("sm_75", "sm_80"))
    plan = cure(**HERE, torch=make.build("2.11.0+cu128"), gpus=(VOLTA,), runtime=failed)
    assert plan.verdict == "healthy"


def warned(**values: str) -> dict[str, object]:
    return {"symptoms": (make.symptom("gpu-not-in-build", "train.log", **values),)}


def test_the_list_in_torchs_own_warning_is_enough(judge: Judge, cure: Planner) -> None:
    said = warned(gpu="NVIDIA GeForce RTX 5090", capability="12.0", built="sm_80 sm_86 sm_90")
    (found,) = judge(**said).findings
    assert (found.name, found.severity) == ("arch-not-supported", "error")
    assert "This torch has no code for NVIDIA GeForce RTX 5090 (sm_120)" in found.summary
    assert cure(**said).verdict == "healthy"


def test_a_warning_of_a_gpu_whose_family_is_in_the_list_is_no_fault(judge: Judge) -> None:
    gb10 = warned(gpu="NVIDIA GB10", capability="12.1", built="sm_80 sm_90 sm_100 sm_120")
    assert judge(**gb10).status == "clear"
    in_range = warned(gpu="NVIDIA GB10", capability="12.1", lowest="8.0", highest="12.0")
    assert judge(**in_range).status == "unknown"


def test_the_range_in_the_warning_tells_old_from_new(judge: Judge) -> None:
    pascal = warned(gpu="GTX 1080 Ti", capability="6.1", lowest="7.0", highest="12.0")
    (found,) = judge(**pascal).findings
    assert found.name == "arch-dropped"
    new = warned(gpu="RTX 5090", capability="12.0", lowest="3.7", highest="9.0")
    (found,) = judge(**new).findings
    assert found.name == "arch-not-supported"


def test_a_bare_warning_is_told_by_the_age_of_the_gpu(judge: Judge) -> None:
    (found,) = judge(**warned(gpu="RTX 5070 Ti", capability="12.0")).findings
    assert found.name == "arch-not-supported"
    (found,) = judge(**warned(gpu="Tesla V100", capability="7.0")).findings
    assert found.name == "arch-dropped"


def test_a_version_and_a_card_are_enough_without_the_platform(judge: Judge) -> None:
    torch = make.build("2.11.0+cu128", cuda=None, distribution=None)
    (found,) = judge(torch=torch, gpus=(VOLTA,), interpreter=make.interpreter()).findings
    assert found.name == "arch-dropped"
    assert judge(torch=torch, gpus=(make.a100(),)).status == "clear"
    assert judge(gpus=(VOLTA,)).status == "unknown"


ORIN = make.nvidia("Orin", (8, 7))
DESKTOP = ("sm_50", "sm_80", "sm_86", "sm_90", "compute_90")


def test_a_report_with_the_list_and_the_error_needs_no_version(judge: Judge) -> None:
    runtime = make.runtime(make.device(ORIN), arch_list=DESKTOP, version="")
    (found,) = judge(runtime=runtime, symptoms=said(f"RuntimeError: {NO_IMAGE}")).findings
    assert (found.name, found.severity) == ("arch-not-supported", "error")
    assert "Orin (sm_87)" in found.summary


def test_a_list_without_the_error_or_with_the_target_is_no_fault(judge: Judge) -> None:
    runtime = make.runtime(make.device(ORIN), arch_list=DESKTOP, version="")
    assert judge(runtime=runtime, symptoms=()).findings == ()
    fits = make.runtime(make.device(ORIN), arch_list=(*DESKTOP, "sm_87"), version="")
    assert judge(runtime=fits, symptoms=said(f"RuntimeError: {NO_IMAGE}")).findings == ()
