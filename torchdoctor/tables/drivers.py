"""Which NVIDIA driver a CUDA build needs, and which CUDA a driver runs.

Source: NVIDIA's toolkit release notes and compatibility guide (``drivers.toml``). CUDA versions are
toolkit versions ("13.2", as in ``torch.version.cuda``), driver releases are "580.65.06" on Linux
and "580.88" on Windows; text that is no release raises ValueError. Inside WSL the Windows driver
decides: ask with "win_amd64".
"""

import functools
from typing import cast

from torchdoctor.tables import load

RELEASE = r"[0-9]{2,4}(?:\.[0-9]{1,5}){1,3}"
"""How a driver release is written, as a regular expression."""


def compare(a: str, b: str) -> int:
    """Return -1, 0 or 1 as driver release *a* is older than, the same as or newer than *b*.

    By number, part by part; a missing part counts as 0, so "580.65.06" is newer than "580.65".
    Anything but numbers and dots raises ValueError.
    """
    first, second = _parts(a), _parts(b)
    width = max(len(first), len(second))
    first += (0,) * (width - len(first))
    second += (0,) * (width - len(second))
    return (first > second) - (first < second)


@functools.lru_cache(256)
def minimum_driver(cuda: str, platform: str) -> str | None:
    """Return the lowest driver with which a SASS build of this CUDA starts on *platform*.

    Minor version compatibility is counted in: every 12.x build runs from the first CUDA 12 driver
    on. PTX, and what Triton or NVRTC compile at run time, needs ``full_driver``. None: unknown.
    The Windows number for CUDA 13 is what PyTorch's CI installs; NVIDIA publishes none.
    """
    system, version = _system(platform), _minor(cuda)
    if system is None or version is None or version > _minor_of(load("drivers")["newest_cuda"]):
        return None
    own = full_driver(f"{version[0]}.{version[1]}", platform)
    major = load("drivers")["major"].get(str(version[0]), {}).get(system)
    if major is None or own is None:
        return cast("str | None", major or own)
    return own if compare(own, major) < 0 else str(major)


def full_driver(cuda: str, platform: str) -> str | None:
    """Return the driver that ships with this toolkit, from which on everything of it works.

    "12.8" asks for its first release, "12.8.1" for Update 1. None: unknown, or Windows from CUDA
    13.0 on, for which NVIDIA gives no number.
    """
    system, version = _system(platform), _minor(cuda)
    if system is None or version is None:
        return None
    row = load("drivers")["toolkit"].get(f"{version[0]}.{version[1]}")
    shipped = row[system] if row else []
    update = (*_parts(cuda), 0)[2]
    return str(shipped[update]) if update < len(shipped) else None


def cuda_of_driver(release: str, platform: str) -> str | None:
    """Return the newest CUDA that driver *release* supports fully, as nvidia-smi would print it.

    By the toolkit's own driver where NVIDIA names one, else by branch. None: a branch newer than
    the tables, older than CUDA 10.0, or a platform without an NVIDIA driver.
    """
    system = _system(platform)
    if system is None or _parts(release)[0] >= load("drivers")["branch_unknown_from"]:
        return None
    for cuda, row in load("drivers")["toolkit"].items():
        if compare(release, row[system][0] if row[system] else str(row["branch"])) >= 0:
            return str(cuda)
    return None


def newest_cuda_major(release: str, platform: str) -> int | None:
    """Return the newest CUDA major of which SASS builds start on driver *release*.

    None: a branch newer than the tables, older than CUDA 10.0, or no NVIDIA driver on *platform*.
    """
    system = _system(platform)
    if system is None or _parts(release)[0] > load("drivers")["newest_major_known_to"]:
        return None
    for major, row in load("drivers")["major"].items():
        if compare(release, row[system]) >= 0:
            return int(major)
    oldest = cuda_of_driver(release, platform)
    return None if oldest is None else int(oldest.partition(".")[0])


def last_driver_branch(capability: tuple[int, int]) -> int | None:
    """Return the last driver branch that supports GPUs of *capability*.

    390 Fermi, 470 Kepler, 580 Maxwell, Pascal and Volta; None: still supported, or Jetson.
    """
    wanted = f"{capability[0]}.{capability[1]}"
    for branch, capabilities in load("drivers")["last_branch"].items():
        if wanted in capabilities:
            return int(branch)
    return None


def _system(platform: str) -> str | None:
    if platform in {"linux_x86_64", "linux_aarch64"}:
        return "linux"
    return "windows" if platform == "win_amd64" else None


@functools.lru_cache(1024)
def _parts(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _minor(cuda: str) -> tuple[int, int] | None:
    try:
        return _minor_of(cuda)
    except ValueError:
        return None


def _minor_of(cuda: str) -> tuple[int, int]:
    major, minor, *_ = _parts(cuda)
    return major, minor
