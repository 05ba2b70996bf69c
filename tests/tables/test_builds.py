"""Builds of torch: invariants, and facts with their public sources."""

import pytest
from packaging.version import Version

from torchdoctor.tables import load
from torchdoctor.tables.builds import (
    INDEX_ROOT,
    builds,
    cuda_of,
    default_build,
    glibc,
    installable,
    kind_of,
    torchaudio_default,
    torchaudio_for,
)
from torchdoctor.tables.neighbours import cxx11_abi
from torchdoctor.tables.releases import torch_releases

PLATFORMS = [
    "linux_x86_64",
    "linux_aarch64",
    "win_amd64",
    "win_arm64",
    "macos_arm64",
    "macos_x86_64",
]


def tags(torch: str, platform: str) -> list[str]:
    return [build.tag for build in builds(torch, platform)]


def test_every_release_has_builds_and_no_other() -> None:
    assert list(load("builds")["torch"]) == [release.version for release in torch_releases()]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_every_build_reads_as_its_tag_says(platform: str) -> None:
    for release in torch_releases():
        found = builds(release.version, platform)
        assert len({build.tag for build in found}) == len(found)
        for build in found:
            assert platform in build.platforms
            assert set(build.platforms) <= set(PLATFORMS)
            assert build.status in {"listed", "inferred"}
            assert (build.cuda is None) is (build.kind != "cuda")
        cudas = [Version(build.cuda) for build in found if build.cuda]
        assert cudas == sorted(cudas)


def test_the_plain_wheel_is_the_cuda_that_its_release_names() -> None:
    for release in torch_releases():
        for platform in release.pythons:
            tag = default_build(release.version, platform)
            assert tag is not None
            assert cuda_of(tag) == release.cuda_default.get(platform), (release.version, platform)


def test_the_plain_wheel_is_one_of_the_builds() -> None:
    for release in torch_releases():
        for platform in release.pythons:
            if platform == "linux_aarch64" and Version(release.version) < Version("2.1"):
                continue  # its CPU wheel was on the package index only
            assert default_build(release.version, platform) in tags(release.version, platform)


@pytest.mark.parametrize(
    ("tag", "kind", "cuda"),
    [
        ("cpu", "cpu", None),
        ("cu92", "cuda", "9.2"),
        ("cu102", "cuda", "10.2"),
        ("cu118", "cuda", "11.8"),
        ("cu132", "cuda", "13.2"),
        ("rocm7.14", "rocm", None),
        ("xpu", "xpu", None),
    ],
)
def test_tags(tag: str, kind: str, cuda: str | None) -> None:
    assert kind_of(tag) == kind
    assert cuda_of(tag) == cuda


@pytest.mark.parametrize("tag", ["", "cuda13", "cp312", "cpu-cxx11-abi"])
def test_what_is_no_tag_is_an_error(tag: str) -> None:
    with pytest.raises(ValueError, match="not a build tag"):
        kind_of(tag)


# https://github.com/pytorch/pytorch/pull/188443 (12.9 for release/2.12 and 2.13) and installs
def test_cu129_goes_on_to_2_13_on_linux() -> None:
    for torch in ("2.10.0", "2.11.0", "2.12.1", "2.13.0"):
        assert "cu129" in tags(torch, "linux_x86_64")
        assert "cu129" not in tags(torch, "win_amd64")
    for torch in ("2.12.0", "2.14.0", "2.14.1", "2.15.0"):
        assert "cu129" not in tags(torch, "linux_x86_64")
    assert "cu129" in tags("2.10.0", "linux_aarch64")
    assert "cu129" not in tags("2.13.0", "linux_aarch64")


# https://github.com/isl-org/Open3D-ML/pull/694 (cu132 from 12 May 2026)
def test_2_12_swaps_cu128_for_cu132() -> None:
    assert tags("2.11.0", "win_amd64") == ["cpu", "cu126", "cu128", "cu130", "xpu"]
    assert tags("2.12.0", "win_amd64") == ["cpu", "cu126", "cu130", "cu132", "xpu"]


# https://github.com/pytorch/pytorch/issues/190385
def test_2_15_has_no_cu126() -> None:
    assert "cu126" in tags("2.14.1", "linux_x86_64")
    assert "cu126" not in tags("2.15.0", "linux_x86_64")
    assert {"cu130", "cu132"} <= set(tags("2.15.0", "linux_x86_64"))


# Installed by users: torch 2.14.1+rocm7.14, hip 7.14.60850
def test_rocm_7_14_of_2_14_1_was_seen() -> None:
    (build,) = [b for b in builds("2.14.1", "linux_x86_64") if b.tag == "rocm7.14"]
    assert build.status == "listed"


# https://github.com/pytorch/pytorch/issues/138416: only under /whl/test/xpu
def test_xpu_is_on_the_index_from_2_6() -> None:
    assert "xpu" not in tags("2.5.1", "linux_x86_64")
    assert "xpu" in tags("2.6.0", "linux_x86_64")


# torch/version.py in the wheels: 2.8.0, 2.11.0, 2.15.0 on Windows; 2.9.1, 2.10.0, 2.12.1 aarch64
def test_the_plain_wheel() -> None:
    assert default_build("2.15.0", "win_amd64") == "cpu"
    assert default_build("2.8.0", "win_amd64") == "cpu"
    assert default_build("2.10.0", "linux_aarch64") == "cpu"
    assert default_build("2.12.1", "linux_aarch64") == "cu130"
    assert default_build("2.15.0+cpu", "linux_x86_64") == "cu132"
    assert default_build("2.15.0", "macos_x86_64") is None


def test_an_unknown_release_has_no_builds() -> None:
    assert builds("2.16.0", "linux_x86_64") == ()
    assert default_build("2.16.0", "linux_x86_64") is None


def test_the_index_of_a_build_is_the_root_and_its_tag() -> None:
    assert INDEX_ROOT.endswith("/")


def test_a_plain_wheel_that_no_build_index_has_can_still_be_installed() -> None:
    assert builds("1.13.1", "linux_aarch64") == ()
    assert [b.tag for b in installable("1.13.1", "linux_aarch64")] == ["cpu"]
    assert installable("2.13.0", "linux_x86_64") == builds("2.13.0", "linux_x86_64")
    assert installable("2.16.0", "linux_x86_64") == ()


# _GLIBCXX_USE_CXX11_ABI of the builds of 2.6.0: https://github.com/Dao-AILab/flash-attention/issues/1783
def test_builds_with_the_new_abi_need_the_glibc_it_came_with() -> None:
    for tag in tags("2.6.0", "linux_x86_64"):
        old = cxx11_abi("2.6.0", tag) is False
        assert glibc("2.6.0", tag, "linux_x86_64") == (None if old else "2.28")
    assert glibc("2.7.0", "cu126", "linux_x86_64") is None
    assert glibc("2.6.0", "cu126", "linux_aarch64") is None


# https://github.com/pytorch/audio/pull/4212; torchaudio/version.py of 2.11.1 (aarch64, Windows)
def test_torchaudio_for_torch_without_one_of_its_own_is_there_for_some_builds() -> None:
    accepted = ("2.11.1", "2.11.0")
    assert torchaudio_for(accepted, "cu126", "linux_x86_64") == ("2.11.0", "cu126")
    assert torchaudio_for(accepted, "cu132", "linux_x86_64") == ("2.11.1", None)
    assert torchaudio_for(accepted, "cu132", "win_amd64") is None
    assert torchaudio_for(accepted, "cpu", "win_amd64") == ("2.11.0", "cpu")
    assert torchaudio_for(accepted, "rocm7.14", "linux_x86_64") is None
    assert torchaudio_for(("2.10.0",), "cu128", "linux_x86_64") == ("2.10.0", "cu128")
    assert torchaudio_default("2.11.0", "linux_x86_64") == "cu130"
    assert torchaudio_default("2.10.0", "linux_x86_64") is None
