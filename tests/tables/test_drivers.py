"""NVIDIA drivers: invariants, and facts with their public sources."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor.tables import load
from torchdoctor.tables.drivers import (
    compare,
    cuda_of_driver,
    full_driver,
    last_driver_branch,
    minimum_driver,
    newest_cuda_major,
)

LINUX, WINDOWS = "linux_x86_64", "win_amd64"
# Their own drivers are older than those that run every toolkit of the major.
FIRST_OF_THEIR_MAJOR = {("11.0", LINUX), ("11.0", WINDOWS), ("12.0", WINDOWS)}
RELEASES = st.lists(st.integers(0, 999), min_size=1, max_size=3).map(
    lambda parts: ".".join(map(str, parts))
)


def toolkits() -> list[str]:
    return list(load("drivers")["toolkit"])


@settings(deadline=None)
@given(RELEASES, RELEASES, RELEASES)
def test_compare_orders_releases(a: str, b: str, c: str) -> None:
    assert compare(a, a) == 0
    assert compare(a, b) == -compare(b, a)
    if compare(a, b) <= 0 and compare(b, c) <= 0:
        assert compare(a, c) <= 0


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("580.65", "580.65.06"),
        ("525.60.13", "525.85.12"),
        ("535.86.09", "535.104.05"),
        ("570.26", "570.124.06"),
        ("99.1", "470.82.01"),
    ],
)
def test_a_release_is_numbers_not_text(older: str, newer: str) -> None:
    assert compare(older, newer) == -1


def test_leading_zeros_and_missing_parts_count_as_zero() -> None:
    assert compare("580.65.06", "580.65.6") == 0
    assert compare("580.88", "580.88.0") == 0


def test_what_is_no_release_is_an_error() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        compare("580.88", "N/A")


def test_toolkits_are_listed_newest_first_and_so_are_their_drivers() -> None:
    rows = list(load("drivers")["toolkit"].items())
    for (newer, new), (older, old) in pairwise(rows):
        assert compare(newer, older) == 1
        assert new["branch"] > old["branch"]
        for system in ("linux", "windows"):
            if new[system] and old[system]:
                assert compare(new[system][0], old[system][0]) == 1


def test_updates_never_ask_for_an_older_driver() -> None:
    for row in load("drivers")["toolkit"].values():
        for shipped in (row["linux"], row["windows"]):
            assert all(compare(one, two) <= 0 for one, two in pairwise(shipped))


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
def test_the_minimum_is_never_above_the_toolkits_own_driver(platform: str) -> None:
    for cuda in toolkits():
        low, full = minimum_driver(cuda, platform), full_driver(cuda, platform)
        if low is not None and full is not None:
            assert compare(low, full) <= 0, cuda


@pytest.mark.parametrize("platform", [LINUX, WINDOWS])
def test_a_toolkits_own_driver_supports_it(platform: str) -> None:
    for cuda in toolkits():
        full = full_driver(cuda, platform)
        if full is not None:
            assert cuda_of_driver(full, platform) == cuda
            if (cuda, platform) not in FIRST_OF_THEIR_MAJOR:
                assert newest_cuda_major(full, platform) == int(cuda.split(".")[0])


# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html; Windows 13:
# pytorch/pytorch .ci/pytorch/windows/internal/driver_update.bat
@pytest.mark.parametrize(
    ("cuda", "linux", "windows"),
    [
        ("13.2", "580.65.06", "580.88"),
        ("13.0", "580.65.06", "580.88"),
        ("12.9", "525.60.13", "528.33"),
        ("12.1", "525.60.13", "528.33"),
        ("11.8", "450.80.02", "452.39"),
        ("10.2", "440.33", "441.22"),
    ],
)
def test_the_lowest_driver_a_build_starts_on(cuda: str, linux: str, windows: str) -> None:
    assert minimum_driver(cuda, LINUX) == linux
    assert minimum_driver(cuda, "linux_aarch64") == linux
    assert minimum_driver(cuda, WINDOWS) == windows


# https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html
def test_the_driver_of_a_toolkit_and_of_its_updates() -> None:
    assert full_driver("12.8", LINUX) == "570.26"
    assert full_driver("12.8.1", LINUX) == "570.124.06"
    assert full_driver("12.8.1", WINDOWS) == "572.61"
    assert full_driver("13.2", LINUX) == "595.45.04"
    assert full_driver("13.2.2", LINUX) == "595.71.05"
    assert full_driver("13.0", WINDOWS) is None


# What nvidia-smi prints, in public reports
@pytest.mark.parametrize(
    ("release", "platform", "cuda"),
    [
        ("450.57", LINUX, "11.0"),
        ("550.144.03", LINUX, "12.4"),
        ("570.148.08", LINUX, "12.8"),
        ("580.65.06", LINUX, "13.0"),
        ("580.88", WINDOWS, "13.0"),
        ("581.95", WINDOWS, "13.0"),
        ("591.86", WINDOWS, "13.1"),
        ("596.49", WINDOWS, "13.2"),
        ("610.43.02", LINUX, "13.3"),
        ("615.71.09", LINUX, "13.4"),
        ("620.10", LINUX, None),
        ("390.157", LINUX, None),
    ],
)
def test_the_cuda_of_a_driver(release: str, platform: str, cuda: str | None) -> None:
    assert cuda_of_driver(release, platform) == cuda


# torch 2.11.0+cu129 ran on 550.144.03 and 2.13.0+cu129 on 570.148.08 (public reports);
# https://github.com/pytorch/pytorch/pull/162531: cu130 does not start on a CUDA 12.8 driver
def test_the_newest_major_that_starts() -> None:
    assert newest_cuda_major("550.144.03", LINUX) == 12
    assert newest_cuda_major("570.148.08", LINUX) == 12
    assert newest_cuda_major("580.65.06", LINUX) == 13
    assert newest_cuda_major("576.88", WINDOWS) == 12
    assert newest_cuda_major("472.12", WINDOWS) == 11
    assert newest_cuda_major("441.22", WINDOWS) == 10
    assert newest_cuda_major("620.10", LINUX) == 13
    assert newest_cuda_major("700.10", LINUX) is None
    assert newest_cuda_major("390.157", LINUX) is None


# https://nvidia.custhelp.com/app/answers/detail/a_id/5676,
# https://forums.developer.nvidia.com/t/current-graphics-driver-releases/28500
@pytest.mark.parametrize(
    ("capability", "branch"),
    [
        ((2, 1), 390),
        ((3, 0), 470),
        ((3, 7), 470),
        ((5, 0), 580),
        ((6, 1), 580),
        ((7, 0), 580),
        ((7, 5), None),
        ((12, 0), None),
        ((8, 7), None),
        ((5, 3), None),
    ],
)
def test_the_last_branch_of_a_gpu(capability: tuple[int, int], branch: int | None) -> None:
    assert last_driver_branch(capability) == branch


def test_what_the_tables_do_not_know_is_unknown() -> None:
    assert minimum_driver("13.5", LINUX) == "580.65.06"
    assert minimum_driver("13.6", LINUX) is None
    assert minimum_driver("14.0", LINUX) is None
    assert minimum_driver("9.2", LINUX) is None
    assert minimum_driver("13.0", "macos_arm64") is None
    assert minimum_driver("13.0", "win_arm64") is None
    assert minimum_driver("", LINUX) is None
    assert full_driver("13.4", LINUX) is None
    assert full_driver("12.8.2", LINUX) is None
    assert full_driver("thirteen", LINUX) is None
    assert cuda_of_driver("580.88", "macos_arm64") is None
    assert newest_cuda_major("580.88", "macos_arm64") is None
