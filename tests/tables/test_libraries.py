"""Shared libraries and their packages: invariants, and facts with their public sources."""

import pytest

from torchdoctor.tables import load
from torchdoctor.tables.libraries import from_driver, same_files, suppliers
from torchdoctor.tables.releases import torch_releases


def test_every_row_is_a_folder_and_files() -> None:
    for package, (folder, *names) in load("libraries")["files"].items():
        assert folder.startswith(("nvidia/", "torch/")), package
        assert names
        assert len(set(names)) == len(names)
        assert all(name.startswith("lib") and ".so" in name for name in names)


def test_every_package_is_torch_or_one_that_torch_pins() -> None:
    pinned = {n for r in torch_releases() for pins in r.nvidia_pins.values() for n in pins}
    assert set(load("libraries")["files"]) - {"torch"} <= pinned


# File lists of the nvidia-* wheels; https://github.com/vllm-project/vllm/issues/44335
@pytest.mark.parametrize(
    ("soname", "packages"),
    [
        ("libcublas.so.13", ("nvidia-cublas",)),
        ("libcublas.so.12", ("nvidia-cublas-cu12",)),
        ("libcudart.so.13", ("nvidia-cuda-runtime",)),
        ("libcudart.so.12", ("nvidia-cuda-runtime-cu12",)),
        ("libcudnn.so.9", ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")),
        ("libcudnn.so.8", ("nvidia-cudnn-cu11",)),
        ("libcusparseLt.so.0", ("nvidia-cusparselt-cu12", "nvidia-cusparselt-cu13")),
        ("libcufile.so.0", ("nvidia-cufile", "nvidia-cufile-cu12")),
        ("libnvshmem_host.so.3", ("nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13")),
        ("libcurand.so.10", ("nvidia-curand-cu11", "nvidia-curand-cu12")),
        ("libnccl.so.2", ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13")),
        ("libtorch_cuda.so", ("torch",)),
        ("libcublas.so.99", ()),
        ("libcuda.so.1", ()),
        ("libgomp.so.1", ()),
        # pytorch/pytorch .ci/pytorch/windows/internal/copy.bat
        ("cudnn64_9.dll", ("torch",)),
        ("cublasLt64_12.dll", ("torch",)),
        ("torch_python.dll", ("torch",)),
        ("c10.dll", ("torch",)),
        ("libomp140.x86_64.dll", ()),  # https://github.com/pytorch/pytorch/issues/131662
        ("vcruntime140_1.dll", ()),
    ],
)
def test_who_supplies_a_library(soname: str, packages: tuple[str, ...]) -> None:
    assert suppliers(soname) == packages


def test_libcuda_comes_with_the_driver() -> None:
    assert from_driver("libcuda.so.1")
    assert not from_driver("libcudart.so.13")


# nvidia-nccl-cu12 2.29.3 and -cu13 2.30.7 hold one file of one name
def test_packages_that_write_the_same_file() -> None:
    nccl = ("nvidia/nccl/lib/libnccl.so.2",)
    assert same_files("nvidia-nccl-cu12", "nvidia-nccl-cu13") == nccl
    assert same_files("nvidia-nccl-cu13", "nvidia-nccl-cu12") == nccl
    assert "nvidia/cudnn/lib/libcudnn.so.9" in same_files("nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
    assert same_files("nvidia-cublas", "nvidia-cublas-cu12") == ()
    assert same_files("nvidia-nccl-cu12", "numpy") == ()
