"""Releases of torch and of what is published with it, as the package index describes them.

Source: METADATA and file names of every wheel of torch 1.12-2.15, torchvision, torchaudio and
triton (``releases.json``); the glibc need and the CUDA of the plain wheel from the wheels' files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torchdoctor.tables import load
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from datetime import date

Companion = Literal["torchvision", "torchaudio"]
Project = Literal["torch", "torchvision", "torchaudio", "triton"]

_FIRST_PAIR, _LAST_PAIR = 4, 11
"""Minor releases of torch 1 that are older than the table and came with companions by rule."""
_PLATFORMS = {
    ("linux", "x86_64"): "linux_x86_64",
    ("linux", "amd64"): "linux_x86_64",
    ("linux", "aarch64"): "linux_aarch64",
    ("linux", "arm64"): "linux_aarch64",
    ("win32", "amd64"): "win_amd64",
    ("win32", "x86_64"): "win_amd64",
    ("win32", "arm64"): "win_arm64",
    ("darwin", "arm64"): "macos_arm64",
    ("darwin", "x86_64"): "macos_x86_64",
}


@dataclass(frozen=True, slots=True)
class TorchRelease:
    """One release of torch on the package index; mappings go by platform key.

    A platform that is missing from ``pythons`` has no wheel there (the per-build indexes may).
    """

    version: str
    date: str
    pythons: Mapping[str, tuple[str, ...]]
    """Pythons with a wheel: "3.12", "3.14t" (free-threaded), "3.12+" (stable ABI), "any"."""
    glibc: Mapping[str, str]
    """Oldest glibc the libraries load with (not what the wheel's tag claims)."""
    macos: Mapping[str, str]
    """Oldest macOS by the wheel's tag. MPS may ask for more (14.0 for 2.11.0, says Apple)."""
    torchvision: tuple[str, ...]
    """Every torchvision whose requirement accepts this torch, newest first."""
    torchvision_companion: str | None
    """The torchvision published within a week of this torch."""
    torchaudio: tuple[str, ...]
    torchaudio_companion: str | None
    triton: Mapping[str, str]
    """Specifier of triton, with a marker where not every Python gets one; absent = no triton."""
    cuda_default: Mapping[str, str]
    """CUDA of the plain wheel ("13.2"); a platform that is missing has a CPU wheel."""
    nvidia_pins: Mapping[str, Mapping[str, str]]
    """nvidia-* packages (and cuda-toolkit, expanded) that the plain wheel asks for."""
    requires: tuple[str, ...]
    """Every other requirement, as PEP 508 text."""


def platform_key(sys_platform: str, machine: str) -> str | None:
    """Return the platform key for ``sys.platform`` and ``platform.machine()``.

    One of linux_x86_64, linux_aarch64, win_amd64, win_arm64, macos_arm64, macos_x86_64; None where
    no torch wheel exists. musl is not told apart: ask for glibc before believing a Linux key.
    """
    system = "linux" if sys_platform.startswith("linux") else sys_platform
    return _PLATFORMS.get((system, machine.lower()))


@cache
def torch_releases() -> tuple[TorchRelease, ...]:
    """Return the torch releases known, newest first (1.12.0 is the oldest)."""
    return tuple(_release(row) for row in load("releases")["torch"])


def torch_release(version: str) -> TorchRelease | None:
    """Return the release of torch *version*, whose local label ("+cu132") does not matter.

    None for a version the tables do not have: too old, too new, a nightly, a vendor's build.
    """
    return _by_version().get(_public(version))


def newest(project: Project) -> str:
    """Return the newest version known of torch, torchvision, torchaudio or triton."""
    table = load("releases")[project]
    first = next(iter(table))
    return str(first["version"] if isinstance(first, dict) else first)


def beyond_tables(project: Project, version: str) -> bool:
    """Say whether *version* is newer than anything the tables know of *project*.

    Also true of what the tables never have: nightlies, alphas, release candidates, and text that
    is no version at all.
    """
    mine = _parse(version)
    return mine is None or mine.is_prerelease or mine > Version(newest(project))


@lru_cache(4096)
def fits(project: Companion, version: str, torch: str) -> bool | None:
    """Say whether *version* of torchvision or torchaudio accepts the torch release *torch*.

    Release with release: by the requirement in METADATA (torchvision pins one torch up to 0.29.0,
    then torch>=2.14.0; torchaudio one torch up to 2.10.0, then >=2.11, on torch's stable ABI).
    An open requirement says nothing of a torch the tables do not know: None.
    Nightly with nightly: True within a day of each other (inference: they are built daily against
    that day's torch, whose exact version they require). Nightly with release, or any alpha or
    release candidate: None. METADATA never names the CUDA flavour: compare that separately.
    """
    mine, base = _parse(version), _parse(torch)
    if mine is None or base is None:
        return None
    if mine.dev is not None and base.dev is not None:
        return _same_night(mine.dev, base.dev)
    specifier = load("releases")[project].get(str(mine))
    if specifier is None and not (mine.is_prerelease or base.is_prerelease):
        return _old_pair(project, mine, base)
    if specifier is None or base.is_prerelease:
        return None
    if not SpecifierSet(specifier).contains(base):
        return False
    return True if torch_release(torch) else None


def _old_pair(project: Companion, mine: Version, base: Version) -> bool | None:
    """Say whether two releases before those of the table fit; None where one is of its time.

    torch 1.4 to 1.11 came with torchvision of the next minor and torchaudio of the same
    (README of both: torch 1.9, torchvision 0.10, torchaudio 0.9).
    """
    (first, minor), (_, own) = ((*version.release[:2], 0)[:2] for version in (base, mine))
    if first != 1 or not _FIRST_PAIR <= minor <= _LAST_PAIR or mine.release[0] != 0:
        return None
    ahead = 1 if project == "torchvision" else 0
    if not _FIRST_PAIR <= own - ahead <= _LAST_PAIR:
        return None
    return own - ahead == minor


def companions(torch: str) -> tuple[str | None, str | None]:
    """Return the torchvision and the torchaudio to install beside *torch*.

    Those published with it, else the newest that accept it: torch 2.12-2.14 have no torchaudio of
    their own, 2.11.1 serves them (its plain Linux wheel needs CUDA 13: cu130 and cu132 only).
    """
    release = torch_release(torch)
    if release is None:
        return None, None
    return (
        release.torchvision_companion or next(iter(release.torchvision), None),
        release.torchaudio_companion or next(iter(release.torchaudio), None),
    )


@lru_cache(256)
def torch_for(project: Companion, version: str) -> tuple[str, ...]:
    """Return the torch releases that this torchvision or torchaudio accepts, newest first."""
    return tuple(r.version for r in torch_releases() if fits(project, version, r.version))


@cache
def _by_version() -> Mapping[str, TorchRelease]:
    return {release.version: release for release in torch_releases()}


def _release(row: Mapping[str, Any]) -> TorchRelease:
    return TorchRelease(
        version=row["version"],
        date=row["date"],
        pythons=MappingProxyType({k: tuple(v.split()) for k, v in row["pythons"].items()}),
        glibc=MappingProxyType(row["glibc"]),
        macos=MappingProxyType(row["macos"]),
        torchvision=tuple(reversed(row["torchvision"])),
        torchvision_companion=row["torchvision_companion"],
        torchaudio=tuple(reversed(row["torchaudio"])),
        torchaudio_companion=row["torchaudio_companion"],
        triton=MappingProxyType(row["triton"]),
        cuda_default=MappingProxyType(row["cuda_default"]),
        nvidia_pins=MappingProxyType(
            {k: MappingProxyType(v) for k, v in row["nvidia_pins"].items()}
        ),
        requires=tuple(row["requires"]),
    )


def _public(version: str) -> str:
    return version.partition("+")[0]


def _parse(version: str) -> Version | None:
    try:
        return Version(_public(version))
    except InvalidVersion:
        return None


def _same_night(mine: int, base: int) -> bool | None:
    first, second = _day(mine), _day(base)
    if first is None or second is None:
        return None
    return abs((first - second).days) <= 1


def _day(number: int) -> date | None:
    from datetime import datetime, timezone  # noqa: PLC0415 - nightlies are few

    try:
        return datetime.strptime(str(number), "%Y%m%d").replace(tzinfo=timezone.utc).date()
    except ValueError:
        return None
