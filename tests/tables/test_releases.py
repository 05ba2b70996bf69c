"""Releases of torch and of its companions: invariants, and facts with their public sources."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from torchdoctor.tables import load
from torchdoctor.tables.releases import (
    Companion,
    Project,
    TorchRelease,
    beyond_tables,
    companions,
    fits,
    newest,
    platform_key,
    torch_for,
    torch_release,
    torch_releases,
)

COMPANIONS: tuple[Companion, ...] = ("torchvision", "torchaudio")
PLATFORMS = {"linux_x86_64", "linux_aarch64", "win_amd64", "macos_arm64", "macos_x86_64"}
TORCHES = [release.version for release in torch_releases()]


def known(version: str) -> TorchRelease:
    release = torch_release(version)
    assert release is not None
    return release


def named(release: TorchRelease, project: Companion) -> tuple[str, ...]:
    return release.torchvision if project == "torchvision" else release.torchaudio


@pytest.mark.parametrize("project", ["torch", "torchvision", "torchaudio", "triton"])
def test_releases_are_listed_newest_first(project: Project) -> None:
    rows = load("releases")[project]
    versions = [Version(row["version"] if isinstance(row, dict) else row) for row in rows]
    assert versions == sorted(versions, reverse=True)
    assert len(set(versions)) == len(versions)
    assert str(versions[0]) == newest(project)


def test_dates_follow_versions() -> None:
    days = [date.fromisoformat(release.date) for release in torch_releases()]
    assert days == sorted(days, reverse=True)


def test_every_platform_key_is_one_of_ours() -> None:
    for release in torch_releases():
        assert set(release.pythons) <= PLATFORMS
        assert set(release.glibc) == {p for p in release.pythons if p.startswith("linux")}
        assert set(release.macos) == {p for p in release.pythons if p.startswith("macos")}
        for mapping in (release.triton, release.cuda_default, release.nvidia_pins):
            assert set(mapping) <= set(release.pythons)


def test_every_requirement_can_be_read() -> None:
    for release in torch_releases():
        for text in release.requires:
            Requirement(text)
        for text in release.triton.values():
            Requirement("triton" + text)
        for pins in release.nvidia_pins.values():
            for name, specifier in pins.items():
                assert Requirement(name + specifier).specifier


def test_pinned_tritons_exist() -> None:
    tritons = load("releases")["triton"]
    for release in torch_releases():
        for text in release.triton.values():
            assert list(Requirement("triton" + text).specifier.filter(tritons)), release.version


@pytest.mark.parametrize("project", COMPANIONS)
def test_every_companion_is_a_release_that_accepts_its_torch(project: Companion) -> None:
    table = load("releases")[project]
    for release in torch_releases():
        mine = companions(release.version)[COMPANIONS.index(project)]
        assert mine in table, release.version
        assert mine in named(release, project)
        for version in named(release, project):
            assert fits(project, version, release.version) is True


@pytest.mark.parametrize("project", COMPANIONS)
def test_what_a_torch_names_is_what_names_that_torch(project: Companion) -> None:
    yanked = {"0.15.0", "2.0.0"}  # torchvision, torchaudio: withdrawn on the day of release
    for release in torch_releases():
        back = {v for v in load("releases")[project] if release.version in torch_for(project, v)}
        assert back - yanked == set(named(release, project)), release.version


@settings(deadline=None)
@given(
    project=st.sampled_from(COMPANIONS),
    torch=st.sampled_from(TORCHES),
    label=st.sampled_from(["", "+cpu", "+cu132", "+rocm7.14"]),
    data=st.data(),
)
def test_fits_and_torch_for_agree_whatever_the_labels(
    project: Companion, torch: str, label: str, data: st.DataObject
) -> None:
    version = data.draw(st.sampled_from(list(load("releases")[project])))
    answer = fits(project, version + label, torch + label)
    assert answer is (torch in torch_for(project, version))


@settings(deadline=None)
@given(days=st.integers(-400, 400), start=st.dates(date(2022, 1, 1), date(2026, 11, 1)))
def test_nightlies_fit_within_a_day(days: int, start: date) -> None:
    other = start + timedelta(days=days)
    answer = fits("torchvision", f"0.30.0.dev{start:%Y%m%d}", f"2.16.0.dev{other:%Y%m%d}+cu132")
    assert answer is (abs(days) <= 1)


def test_a_nightly_and_a_release_cannot_be_told() -> None:
    assert fits("torchvision", "0.30.0.dev20261101", "2.15.0") is None
    assert fits("torchaudio", "2.11.1", "2.16.0.dev20261101") is None
    assert fits("torchvision", "0.26.0", "2.11.0a0+nv26.02") is None


def test_an_exact_pin_answers_for_any_torch_an_open_one_only_for_known_torches() -> None:
    assert fits("torchvision", "0.29.0", "2.99.0") is False
    assert fits("torchvision", "0.29.2", "2.99.0") is None
    assert fits("torchvision", "0.99.0", "2.15.0") is None
    assert fits("torchvision", "what", "2.15.0") is None


# METADATA of the wheels of torchvision 0.23.0-0.29.2, and
# https://github.com/pytorch/vision/releases/tag/v0.29.1
@pytest.mark.parametrize(
    ("version", "torches"),
    [
        ("0.23.0", ("2.8.0",)),
        ("0.24.0", ("2.9.0",)),
        ("0.24.1", ("2.9.1",)),
        ("0.25.0", ("2.10.0",)),
        ("0.26.0", ("2.11.0",)),
        ("0.27.0", ("2.12.0",)),
        ("0.27.1", ("2.12.1",)),
        ("0.28.0", ("2.13.0",)),
        ("0.29.0", ("2.14.0",)),
        ("0.29.1", ("2.15.0", "2.14.1", "2.14.0")),
        ("0.29.2", ("2.15.0", "2.14.1", "2.14.0")),
    ],
)
def test_torchvision_pins_one_torch_up_to_0_29_0(version: str, torches: tuple[str, ...]) -> None:
    assert torch_for("torchvision", version) == torches


# METADATA of the wheels of torchaudio 2.8.0-2.11.1; https://github.com/pytorch/audio/pull/4212
def test_torchaudio_pins_one_torch_up_to_2_10() -> None:
    assert torch_for("torchaudio", "2.8.0") == ("2.8.0",)
    assert torch_for("torchaudio", "2.10.0") == ("2.10.0",)
    since = ("2.15.0", "2.14.1", "2.14.0", "2.13.0", "2.12.1", "2.12.0", "2.11.0")
    assert torch_for("torchaudio", "2.11.0") == since
    assert torch_for("torchaudio", "2.11.1") == since


# https://github.com/espnet/espnet/pull/6678: torch 2.12 has no torchaudio 2.12
def test_a_torch_without_a_torchaudio_of_its_own_gets_the_newest_that_fits() -> None:
    assert known("2.13.0").torchaudio_companion is None
    assert companions("2.13.0") == ("0.28.0", "2.11.1")
    assert companions("2.15.0+cu132") == ("0.29.2", "2.11.1")
    assert companions("2.5.1") == ("0.20.1", "2.5.1")
    assert companions("2.16.0") == (None, None)


# METADATA of torch-2.6.0, 2.8.0, 2.9.1, 2.11.0, 2.12.1 and 2.15.0 wheels
@pytest.mark.parametrize(
    ("torch", "triton"),
    [
        ("2.6.0", "==3.2.0"),
        ("2.8.0", "==3.4.0"),
        ("2.9.1", "==3.5.1"),
        ("2.10.0", "==3.6.0"),
        ("2.11.0", "==3.6.0"),
        ("2.12.1", "==3.7.1"),
        ("2.15.0", "~=3.9.0"),
    ],
)
def test_torch_asks_for_its_triton(torch: str, triton: str) -> None:
    assert known(torch).triton["linux_x86_64"] == triton


# https://github.com/pytorch/pytorch/releases: 2.5 had no triton for Python 3.13
def test_a_python_without_triton_is_in_the_marker() -> None:
    requirement = Requirement("triton" + known("2.5.1").triton["linux_x86_64"])
    assert requirement.marker is not None
    assert requirement.marker.evaluate({"python_version": "3.12"})
    assert not requirement.marker.evaluate({"python_version": "3.13"})


# METADATA of torch-2.4.1-cp39, cp310, cp311 (no setuptools) and cp312 wheels
def test_torch_2_4_asks_for_setuptools_from_python_3_12_only() -> None:
    assert 'setuptools; python_version >= "3.12"' in known("2.4.1").requires


# Symbol versions in the libraries of torch-2.6.0, 2.8.0, 2.15.0 wheels
def test_glibc_is_the_real_need_not_the_tag() -> None:
    assert known("1.12.0").glibc["linux_x86_64"] == "2.17"
    assert known("2.6.0").glibc["linux_x86_64"] == "2.17"
    assert known("2.7.0").glibc["linux_x86_64"] == "2.28"
    assert known("2.15.0").glibc == {"linux_x86_64": "2.28", "linux_aarch64": "2.28"}


# File names on the package index
def test_pythons_by_platform() -> None:
    newest_pythons = ("3.11", "3.12", "3.13", "3.14", "3.14t", "3.15", "3.15t")
    assert known("2.15.0").pythons["linux_x86_64"] == newest_pythons
    assert "3.9" not in known("2.9.0").pythons["win_amd64"]
    assert "3.13" in known("2.5.1").pythons["linux_x86_64"]
    assert "3.13" not in known("2.5.1").pythons["win_amd64"]
    assert "macos_x86_64" in known("2.2.2").pythons
    assert "macos_x86_64" not in known("2.3.0").pythons


# https://github.com/pytorch/pytorch/issues/178665
def test_macos_14_from_2_12() -> None:
    assert known("2.11.0").macos["macos_arm64"] == "11.0"
    assert known("2.12.0").macos["macos_arm64"] == "14.0"


# torch/version.py in the wheels on the package index
def test_cuda_of_the_plain_wheel() -> None:
    assert known("1.12.1").cuda_default == {"linux_x86_64": "10.2"}
    assert known("2.6.0").cuda_default == {"linux_x86_64": "12.4"}
    assert known("2.8.0").cuda_default == {"linux_x86_64": "12.8"}
    assert known("2.10.0").cuda_default == {"linux_x86_64": "12.8"}
    assert known("2.11.0").cuda_default == {"linux_x86_64": "13.0", "linux_aarch64": "13.0"}
    assert known("2.15.0").cuda_default == {"linux_x86_64": "13.2", "linux_aarch64": "13.2"}


# METADATA of torch-2.15.0 and torch-2.9.1 wheels
def test_nvidia_pins() -> None:
    pins = known("2.15.0").nvidia_pins["linux_x86_64"]
    assert pins["nvidia-nccl-cu13"] == "==2.30.7"
    assert pins["nvidia-cudnn-cu13"] == "==9.26.0.51"
    assert pins["cuda-toolkit"] == "==13.2.2"
    assert SpecifierSet(pins["nvidia-cublas"]).contains("13.4.1.3")
    assert known("2.9.1").nvidia_pins["linux_x86_64"]["nvidia-nccl-cu12"] == "==2.27.5"
    assert "win_amd64" not in known("2.15.0").nvidia_pins


def test_a_version_outside_the_tables_is_unknown() -> None:
    assert torch_release("2.15.0+cu132") == torch_release("2.15.0")
    assert torch_release("2.16.0") is None
    assert torch_release("1.11.0") is None
    assert torch_release("2.11.0a0+nv26.02") is None


@pytest.mark.parametrize(
    ("version", "beyond"),
    [
        ("2.15.0", False),
        ("2.15.0+cu132", False),
        ("1.11.0", False),
        ("2.15.1", True),
        ("2.16.0", True),
        ("2.9.0.dev20250901+cu130", True),
        ("2.11.0a0+nv26.02", True),
        ("2.15.0rc1", True),
        ("main", True),
    ],
)
def test_beyond_the_tables(version: str, *, beyond: bool) -> None:
    assert beyond_tables("torch", version) is beyond


def test_platform_keys() -> None:
    assert platform_key("linux", "x86_64") == "linux_x86_64"
    assert platform_key("linux", "aarch64") == "linux_aarch64"
    assert platform_key("win32", "AMD64") == "win_amd64"
    assert platform_key("win32", "ARM64") == "win_arm64"
    assert platform_key("darwin", "arm64") == "macos_arm64"
    assert platform_key("darwin", "x86_64") == "macos_x86_64"
    assert platform_key("linux", "riscv64") is None
    assert platform_key("freebsd14", "amd64") is None
