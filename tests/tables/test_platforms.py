"""Machines with rules of their own: invariants, and facts with their public sources."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.tables import load
from torchdoctor.tables.builds import builds
from torchdoctor.tables.gpus import arch_list, capability_of, runs
from torchdoctor.tables.platforms import (
    CondaBuild,
    conda_archs,
    conda_build,
    driver_platform,
    is_index,
    jetpack,
    jetpack_of_cuda,
    mps_macos,
    ngc_cuda,
    ngc_image_name,
    ngc_release,
    no_wheel,
    notebook,
    undeclared,
    xpu_card,
    xpu_validated,
)
from torchdoctor.tables.releases import torch_releases

# ---- notebooks ----------------------------------------------------------------------------------


# https://github.com/Kaggle/kaggle-cli/issues/1151: P100s are handed out, the image has cu128
def test_kaggle_hands_out_a_gpu_that_its_torch_has_no_code_for() -> None:
    found = notebook({"KAGGLE_KERNEL_RUN_TYPE": "Interactive", "PATH": "/"})
    assert found is not None
    assert (found.key, found.build) == ("kaggle", "cu128")
    archs = arch_list("2.10.0", found.build, "linux_x86_64")
    assert archs is not None
    for name in found.not_gpu:
        capability = capability_of(name)
        assert capability is not None
        assert runs(archs.sm, archs.ptx, capability) is False
    for name in found.rather:
        capability = capability_of(name)
        assert capability is not None
        assert runs(archs.sm, archs.ptx, capability) is True


def test_colab_is_told_by_its_release_and_nothing_else_is_a_notebook() -> None:
    found = notebook({"COLAB_RELEASE_TAG": "release-colab"})
    assert found is not None
    assert found.name == "Google Colab"
    assert notebook({}) is None
    assert notebook({"JPY_PARENT_PID": "1"}) is None


def test_the_build_of_a_notebook_is_one_that_exists() -> None:
    for row in load("platforms")["notebook"].values():
        assert row["build"] in {build.tag for build in builds("2.11.0", "linux_x86_64")}


# ---- WSL ----------------------------------------------------------------------------------------


# https://docs.nvidia.com/cuda/wsl-user-guide
def test_in_wsl_2_the_windows_driver_decides() -> None:
    assert driver_platform("linux_x86_64", 2) == "win_amd64"
    assert driver_platform("linux_x86_64", 1) == "linux_x86_64"
    assert driver_platform("linux_x86_64", None) == "linux_x86_64"


# ---- Jetson -------------------------------------------------------------------------------------


# https://docs.pytorch.org/TensorRT/getting_started/jetpack.html;
# https://github.com/roboflow/inference/pull/2531
def test_a_jetpack_by_its_l4t() -> None:
    orin = jetpack("36.4.7")
    assert orin is not None
    assert (orin.version, orin.cuda, orin.cudnn, orin.python) == ("6.1-6.2", "12.6", "9.3", "3.10")
    assert orin.capabilities == ((8, 7),)
    assert orin.index == "https://pypi.jetson-ai-lab.io/jp6/cu126"
    newest = jetpack("39.2.0")
    assert newest is not None
    assert (newest.version, newest.cuda, newest.index) == ("7.2", "13.2", "")
    assert newest.capabilities == ((8, 7), (11, 0))
    assert jetpack("99.1") is None
    assert jetpack("") is None


# torch/cuda/__init__.py of torch 2.14.1: code for 8.0 runs on 8.7 from CUDA 13.2 on
def test_a_jetpack_without_an_index_is_one_that_ordinary_wheels_run_on() -> None:
    for row in load("platforms")["jetpack"]:
        found = jetpack(row)
        assert found is not None
        archs = arch_list("2.15.0", "cu132", "linux_aarch64")
        assert archs is not None
        if not found.index:
            assert all(runs(archs.sm, archs.ptx, c, cuda="13.2") for c in found.capabilities)


# https://github.com/pollen-robotics/microduck_rl/pull/39
def test_a_jetpack_by_its_cuda() -> None:
    old, new = jetpack_of_cuda("12.6"), jetpack_of_cuda("13.2")
    assert old is not None
    assert new is not None
    assert (old.python, is_index(old.index)) == ("3.10", True)
    assert (new.version, is_index(new.index)) == ("7.2", False)
    page = jetpack_of_cuda("11.4")
    assert page is not None
    assert not is_index(page.index)  # a page of a forum, nothing for pip
    assert jetpack_of_cuda("12.9") is None


def test_a_wheel_for_a_jetson_links_what_it_does_not_ask_for() -> None:
    assert undeclared("libcudss.so.0") == "nvidia-cudss-cu13"
    assert undeclared("libnvpl_lapack_lp64_gomp.so.0") == "nvpl-lapack"
    assert undeclared("libcublas.so.13") is None


# ---- Apple --------------------------------------------------------------------------------------


# https://developer.apple.com/metal/pytorch (2.11.0); https://github.com/pytorch/pytorch/issues/139425
# (2.5.1 on 12.7), issues/164943 (2.10.0 on 13.7)
@pytest.mark.parametrize(
    ("torch", "macos"),
    [
        ("2.11.0", "14.0"),
        ("2.10.0", "14.0"),
        ("2.9.1", None),
        ("2.8.0", "13.0"),
        ("2.5.1", "13.0"),
        ("2.4.1", "12.3"),
        ("1.12.0", "12.3"),
        ("1.11.0", None),
    ],
)
def test_mps_asks_for_a_macos(torch: str, macos: str | None) -> None:
    assert mps_macos(torch) == macos


def test_mps_never_asks_for_less_than_the_wheel() -> None:
    for release in torch_releases():
        tag, needed = release.macos.get("macos_arm64"), mps_macos(release.version)
        if tag and needed:
            assert tuple(map(int, needed.split("."))) >= tuple(map(int, tag.split(".")))


# ---- NGC ----------------------------------------------------------------------------------------


# Versions in public logs; the last one is a wheel for Jetson of the same makers
@pytest.mark.parametrize(
    ("torch", "release"),
    [
        ("2.11.0a0+nv26.02", "26.02"),
        ("2.13.0a0+nv26.07", "26.07"),
        ("2.5.0a0+872d972e41.nv24.08", "24.08"),
        ("2.0.0+nv23.05", "23.05"),
        ("2.15.0+cu132", None),
        ("2.15.0", None),
        ("2.16.0.dev20261101+cu132", None),
        ("2.10.0a0+b4e4ee81d3", None),
        ("", None),
    ],
)
def test_an_ngc_torch_is_told_by_its_version(torch: str, release: str | None) -> None:
    assert ngc_release(torch) == release


# https://docs.nvidia.com/deeplearning/frameworks/pytorch-release-notes/rel-25-12.html
def test_an_ngc_image_is_known_with_its_cuda() -> None:
    assert ngc_image_name() == "nvcr.io/nvidia/pytorch"
    assert ngc_cuda("25.12") == "13.1"
    assert ngc_cuda("24.01") is None


# ---- Intel --------------------------------------------------------------------------------------


# https://docs.pytorch.org/docs/2.15/notes/get_start_xpu.html, docs/2.12/..., docs/2.7/...
def test_a_card_for_xpu_is_no_graphics_inside_a_processor() -> None:
    assert xpu_card("Intel(R) Arc(TM) B580 Graphics")
    assert xpu_card("Intel(R) Data Center GPU Max 1550")
    assert not xpu_card("Intel(R) Arc(TM) Graphics")
    assert not xpu_card("Intel(R) UHD Graphics 770")


def test_xpu_is_validated_on_arc_and_max() -> None:
    assert xpu_validated("Intel(R) Arc(TM) B580 Graphics")
    assert xpu_validated("Intel(R) Arc(TM) A770 Graphics")
    assert xpu_validated("Intel(R) Arc(TM) Graphics")
    assert xpu_validated("Intel(R) Data Center GPU Max 1550")
    assert not xpu_validated("Intel(R) UHD Graphics 770")
    assert not xpu_validated("Intel(R) Iris(R) Xe Graphics")


# ---- conda --------------------------------------------------------------------------------------


# Build strings on anaconda.org: conda-forge/pytorch, conda-forge/libtorch, pytorch/pytorch
@pytest.mark.parametrize(
    ("build", "cuda"),
    [
        ("cuda130_generic_py314_h1da07bd_200", "13.0"),
        ("cuda129_mkl_py312_hd1e55d2_300", "12.9"),
        ("cuda120_py312h7d80a5b_203", "12.0"),
        ("cuda118_py311hde743b7_303", "11.8"),
        ("cuda120py312hfe5e8c6_301", "12.0"),
        ("gpu_cuda130py312h1234567_100", "13.0"),
        ("py3.11_cuda12.1_cudnn8.9.2_0", "12.1"),
        ("cpu_mkl_py310h6b9ef62_103", None),
        ("cpu_generic_py312h1be10a2_3", None),
        ("cpu_py311h587aeda_0", None),
        ("py3.11_cpu_0", None),
        ("py3.11_0", None),
    ],
)
def test_a_conda_build_is_described_by_its_string(build: str, cuda: str | None) -> None:
    assert conda_build(build) == CondaBuild("cuda" if cuda else "cpu", cuda)


@pytest.mark.parametrize("build", ["", "h1234_0", "pyhd8ed1ab_0", "cuda_0", "0"])
def test_a_build_string_of_another_shape_is_unknown(build: str) -> None:
    assert conda_build(build) is None


@given(st.text(max_size=40))
def test_any_text_is_a_build_or_unknown(text: str) -> None:
    found = conda_build(text)
    assert found is None or (found.cuda is None) == (found.kind == "cpu")


# conda-forge/pytorch-cpu-feedstock recipe/build.sh @74dd3d46
def test_conda_forge_has_targets_of_its_own() -> None:
    old_card, orin = (6, 1), (8, 7)
    linux = conda_archs("12.9", "linux_x86_64")
    assert linux is not None
    assert runs(linux, linux[-1:], old_card) is True
    assert runs(linux, linux[-1:], (12, 1)) is True
    newest = conda_archs("13.0", "linux_x86_64")
    assert newest is not None
    assert runs(newest, newest[-1:], old_card) is False
    assert orin[0] * 10 + orin[1] in (conda_archs("13.0", "linux_aarch64") or ())
    assert conda_archs("12.9", "linux_aarch64", tegra=True) == (87,)
    assert conda_archs("14.0", "linux_x86_64") is None


# ---- no wheel -----------------------------------------------------------------------------------


# File names of torch on the package index: manylinux x86_64 and aarch64, win_amd64, macosx only
def test_some_machines_have_no_wheel() -> None:
    assert no_wheel("linux", "x86_64", "glibc") is None
    assert no_wheel("linux", "aarch64", None) is None
    assert no_wheel("win32", "AMD64", None) is None
    assert no_wheel("darwin", "arm64", None) is None
    for system, machine, libc in (
        ("linux", "x86_64", "musl"),
        ("linux", "ppc64le", "glibc"),
        ("linux", "s390x", "glibc"),
        ("linux", "riscv64", "glibc"),
        ("linux", "armv7l", "glibc"),
        ("win32", "x86", None),
        ("freebsd14", "amd64", None),
    ):
        assert no_wheel(system, machine, libc), machine


def test_every_row_of_the_table_has_its_source_above_it() -> None:
    text = load("platforms")
    assert text["source"] == ["the line above each row"]
    assert all(re.fullmatch(r"\d\d\.\d+", row) for row in text["jetpack"])
