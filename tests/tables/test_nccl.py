"""NCCL and cuDNN of each build: invariants, and facts with their public sources."""

import re

import pytest

from torchdoctor.tables import load
from torchdoctor.tables.builds import builds, cuda_of
from torchdoctor.tables.nccl import bundled
from torchdoctor.tables.releases import torch_releases


def test_every_row_is_of_a_build_that_exists() -> None:
    for torch, tags in load("nccl")["torch"].items():
        for tag, platforms in tags.items():
            for platform, (nccl, cudnn, _) in platforms.items():
                assert platform.startswith("linux")
                assert tag in {build.tag for build in builds(torch, platform)}, (torch, tag)
                assert nccl or cudnn
                assert nccl is None or re.fullmatch(r"\d+\.\d+\.\d+", nccl)
                assert cudnn is None or re.fullmatch(r"\d+\.\d+\.\d+\.\d+", cudnn)


def test_the_plain_wheel_brings_what_it_pins() -> None:
    for release in torch_releases():
        for platform, pins in release.nvidia_pins.items():
            tag = "cu" + release.cuda_default[platform].replace(".", "")
            assert cuda_of(tag) == release.cuda_default[platform]
            found = bundled(release.version, tag, platform)
            assert found is not None
            for name, version in (("nccl", found[0]), ("cudnn", found[1])):
                pinned = [s for n, s in pins.items() if n.startswith(f"nvidia-{name}-")]
                assert pinned in ([f"=={version}"], []), (release.version, name)


# METADATA of the wheels; pytorch/pytorch RELEASE.md; requirements of 2.9.1+cu130 and 2.11.0+cu128
# quoted in public reports
@pytest.mark.parametrize(
    ("torch", "tag", "platform", "nccl", "cudnn"),
    [
        ("2.15.0", "cu132", "linux_x86_64", "2.30.7", "9.26.0.51"),
        ("2.14.1", "cu126", "linux_x86_64", "2.29.3", "9.10.2.21"),
        ("2.12.0", "cu126", "linux_x86_64", "2.29.3", "9.10.2.21"),
        ("2.11.0", "cu128", "linux_x86_64", "2.28.9", "9.19.0.56"),
        ("2.10.0", "cu130", "linux_x86_64", "2.28.9", "9.15.1.9"),
        ("2.10.0", "cu130", "linux_aarch64", "2.28.9", "9.15.1.9"),
        ("2.9.0", "cu130", "linux_x86_64", "2.27.7", "9.13.0.50"),
        ("2.9.1", "cu130", "linux_x86_64", "2.27.7", "9.13.0.50"),
        ("2.8.0", "cu128", "linux_x86_64", "2.27.3", "9.10.2.21"),
        ("2.10.0", "cu129", "linux_x86_64", "2.27.5", "9.10.2.21"),
        ("2.13.0", "cu129", "linux_x86_64", "2.29.7", "9.20.0.48"),
    ],
)
def test_what_a_build_brings(torch: str, tag: str, platform: str, nccl: str, cudnn: str) -> None:
    assert bundled(torch, tag, platform) == (nccl, cudnn)
    assert bundled(f"{torch}+{tag}", tag, platform) == (nccl, cudnn)


def test_what_is_not_known_is_unknown() -> None:
    assert bundled("2.16.0", "cu132", "linux_x86_64") is None
    assert bundled("2.15.0", "cu132", "win_amd64") is None
    assert bundled("2.12.1", "cu129", "linux_x86_64") is None
    assert bundled("1.13.1", "cu117", "linux_x86_64") == (None, "8.5.0.96")
