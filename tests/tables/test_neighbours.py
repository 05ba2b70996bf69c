"""What other packages ask of torch: invariants, and facts with their public sources."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchdoctor.tables import load
from torchdoctor.tables.neighbours import (
    built_for,
    compiled,
    cxx11_abi,
    fits,
    index_for_cuda,
    mkl_breaks,
    needs_capability,
    numpy2_from,
    on_pytorch_index,
    pins,
    plain_cuda,
    setuptools_breaks,
    source_only,
    torchaudio_needs_torchcodec,
    torchtext_last,
    versions,
)
from torchdoctor.tables.releases import torch_release, torch_releases


def test_every_specifier_can_be_read_and_is_met_by_some_torch() -> None:
    torches = [release.version for release in torch_releases()]
    for table in ("pins", "built_for"):
        for package, rows in load("neighbours")[table].items():
            for version, specifier in rows.items():
                assert list(SpecifierSet(specifier).filter(torches)), (package, version)


def test_pins_are_listed_newest_first() -> None:
    for package, rows in load("neighbours")["pins"].items():
        versions = [Version(version) for version in rows]
        assert versions == sorted(versions, reverse=True), package


# METADATA of the wheels; https://github.com/facebookresearch/xformers/releases;
# https://github.com/Dao-AILab/flash-attention/issues/2212 (vllm 0.14.1)
@pytest.mark.parametrize(
    ("package", "version", "torch"),
    [
        ("xformers", "0.0.29", "==2.5.1"),
        ("xformers", "0.0.29.post2", "==2.6.0"),
        ("xformers", "0.0.33.post2", "==2.9.1"),
        ("xformers", "0.0.34", "==2.10.0"),
        ("xformers", "0.0.35", ">=2.10"),
        ("vllm", "0.14.1", "==2.9.1"),
        ("vllm", "0.28.0", "==2.13.0"),
        ("vllm", "0.32.0+cu129", "==2.13.0"),
        ("torchtext", "0.18.0", ">=2.3.0"),
        ("torchtext", "0.16.1", "==2.1.1"),
        ("Intel_Extension.for-PyTorch", "2.8.0", ""),
        ("flash-attn", "2.8.3", None),
        ("xformers", "0.0.99", None),
        ("numpy", "2.0.0", None),
    ],
)
def test_what_metadata_asks_for(package: str, version: str, torch: str | None) -> None:
    assert pins(package, version) == torch


# xformers release page ("2.10.0 (and later)"); README of torchcodec 0.17.0;
# https://github.com/pytorch/ao/issues/2919
@pytest.mark.parametrize(
    ("package", "version", "torch"),
    [
        ("xformers", "0.0.34", ">=2.10"),
        ("xformers", "0.0.33", None),
        ("torchcodec", "0.9.1", "==2.9.*"),
        ("torchcodec", "0.17.0", None),
        ("torchcodec", "0.0.3", "==2.4.*"),
        ("torchao", "0.14.1", "==2.9.0"),
        ("intel-extension-for-pytorch", "2.3.100", "==2.3.*"),
        ("torchtext", "0.18.0", "==2.3.*"),
        ("accelerate", "1.15.0", None),
    ],
)
def test_what_the_binaries_were_built_for(package: str, version: str, torch: str | None) -> None:
    assert built_for(package, version) == torch


# https://github.com/Comfy-Org/comfy-cli/issues/170, https://github.com/pytorch/vision/issues/8594,
# https://github.com/pytorch/pytorch/issues/131668
def test_numpy_2() -> None:
    assert numpy2_from("linux_x86_64") == "2.3.0"
    assert numpy2_from("macos_arm64") == "2.3.0"
    assert numpy2_from("win_amd64") == "2.4.1"
    assert torch_release(numpy2_from("linux_aarch64")) is not None
    assert torch_release(numpy2_from("win_amd64")) is not None


def test_the_last_torchtext() -> None:
    assert torchtext_last() == "0.18.0"


# https://github.com/pytorch/pytorch/issues/123097
def test_mkl_2024_1_breaks_conda_builds() -> None:
    assert mkl_breaks("2024.1.0", "2.0.1") is True
    assert mkl_breaks("2024.0.0", "2.0.1") is False
    assert mkl_breaks("2025.0.1", "2.5.1") is None
    assert mkl_breaks("2023.1.0", "2.5.1") is False


# c10::Error symbol in the wheels; https://github.com/Dao-AILab/flash-attention/issues/1644
@pytest.mark.parametrize(
    ("torch", "tag", "new"),
    [
        ("2.5.1", "cu124", False),
        ("2.6.0+cu124", "cu124", False),
        ("2.6.0", "cu118", False),
        ("2.6.0", "cu126", True),
        ("2.6.0", "rocm6.2.4", True),
        ("2.6.0", "cpu", None),
        ("2.7.0", "cu118", True),
        ("2.15.0", "cu132", True),
    ],
)
def test_the_cxx_abi(torch: str, tag: str, *, new: bool | None) -> None:
    assert cxx11_abi(torch, tag) is new


# https://huggingface.co/docs/bitsandbytes/v0.50.0/installation
def test_the_gpu_a_package_needs() -> None:
    assert needs_capability("flash_attn") == (8, 0)
    assert needs_capability("bitsandbytes") == (6, 0)
    assert needs_capability("xformers") is None


# https://github.com/vllm-project/vllm/issues/44335: the PyPI wheel needs libcudart.so.13;
# https://github.com/vllm-project/vllm/issues/42756: only cu129 and cu130 are published
def test_vllm_is_for_one_cuda() -> None:
    assert plain_cuda("vllm", "0.24.0") == 13
    assert plain_cuda("vllm", "0.20.0") == 13
    assert plain_cuda("vllm", "0.19.1") == 12
    assert plain_cuda("vllm", "0.25.1+cu129") == 12
    assert plain_cuda("vllm", "0.2.0") is None
    assert plain_cuda("xformers", "0.0.35") is None
    index = "https://wheels.vllm.ai/0.25.1/cu129"
    assert index_for_cuda("vllm", "0.25.1", "cu129") == index
    assert index_for_cuda("vllm", "0.25.1", "cu128") is None
    assert index_for_cuda("vllm", "0.9.0", "cu129") is None
    assert index_for_cuda("xformers", "0.0.35", "cu129") is None


# https://docs.pytorch.org/audio/2.9.0/torchaudio.html
def test_torchaudio_loads_by_torchcodec_from_2_9_on() -> None:
    assert not torchaudio_needs_torchcodec("2.8.0+cu128")
    assert torchaudio_needs_torchcodec("2.9.0")
    assert torchaudio_needs_torchcodec("2.11.1+cu132")


# https://github.com/pytorch/pytorch/pull/174631
def test_setuptools_82_breaks_extensions_of_old_torch() -> None:
    assert setuptools_breaks("82.0.0", "2.1.2+cu121")
    assert not setuptools_breaks("81.0.0", "2.1.2")
    assert not setuptools_breaks("82.0.1", "2.2.0")


def test_versions_are_newest_first_and_stand_for_all_that_is_known() -> None:
    assert versions("xformers")[:2] == ("0.0.35", "0.0.34")
    codec = versions("torchcodec")
    assert codec[:2] == ("0.17.0", "0.16.0")
    assert "0.9.*" in codec  # of which only the minor is on record
    assert versions("numpy") == ()
    for package in load("neighbours")["pins"]:
        order = [Version(v.replace("*", "0")) for v in versions(package)]
        assert order == sorted(order, reverse=True)


@pytest.mark.parametrize(
    ("package", "version", "torch", "fit"),
    [
        ("xformers", "0.0.34", "2.13.0", True),  # whatever its METADATA says
        ("xformers", "0.0.33.post2", "2.13.0", False),
        ("torchtext", "0.18.0", "2.3.1", True),
        ("torchtext", "0.18.0", "2.6.0", False),
        ("torchcodec", "0.9.*", "2.9.1", True),
        ("torchcodec", "0.17.0", "2.15.0", None),  # silent, and not in its table
        ("vllm", "0.33.0", "2.14.0", True),
        ("numpy", "2.1.0", "2.14.0", None),
    ],
)
def test_whether_a_version_works_with_a_torch(
    package: str, version: str, torch: str, fit: object
) -> None:
    assert fits(package, version, torch) is fit


# https://github.com/Dao-AILab/flash-attention, https://github.com/facebookresearch/xformers
def test_where_packages_come_from() -> None:
    assert source_only("flash_attn")
    assert not source_only("xformers")
    assert on_pytorch_index("xformers")
    assert not on_pytorch_index("vllm")
    assert {"xformers", "vllm", "flash-attn"} <= set(compiled())
    assert "numpy" not in compiled()
