"""Machines with rules of their own: what is known of each, as small pure functions.

Source: the page named above each row of ``platforms.toml``. Nothing here looks at a machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from torchdoctor.tables import load
from torchdoctor.tables.releases import platform_key
from torchdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook service whose image brings torch along."""

    key: str
    """kaggle, colab."""
    name: str
    build: str
    """The build of torch in its image, "cu128"."""
    not_gpu: tuple[str, ...]
    """GPUs that it hands out and its torch has no code for."""
    rather: tuple[str, ...]
    """GPUs to choose instead."""


@dataclass(frozen=True, slots=True)
class JetPack:
    """What a Jetson runs, by its L4T release."""

    version: str
    cuda: str
    cudnn: str | None
    """None where it was not read."""
    python: str
    """The only Python that CUDA wheels are made for."""
    capabilities: tuple[tuple[int, int], ...]
    index: str
    """Where CUDA wheels for it are; empty when PyTorch's own of that CUDA fit (from 13.2 on)."""


@dataclass(frozen=True, slots=True)
class CondaBuild:
    """What the build string of a conda package of torch says."""

    kind: str
    """cpu or cuda."""
    cuda: str | None
    """"12.9"; None for a CPU build."""


def notebook(variables: Mapping[str, str]) -> Notebook | None:
    """Return the notebook service that an environment with *variables* belongs to, if any."""
    for key, row in load("platforms")["notebook"].items():
        if any(mark in variables for mark in row["marks"]):
            return Notebook(
                key, row["name"], row["build"], tuple(row["not_gpu"]), tuple(row["rather"])
            )
    return None


def driver_platform(platform: str, wsl: int | None) -> str:
    """Return the platform key whose driver decides on a machine of *platform*: Windows in WSL 2."""
    if wsl != _WSL2:
        return platform
    return str(load("platforms")["wsl"]["2"]["driver"])


def jetpack(l4t: str) -> JetPack | None:
    """Return what an L4T release ("36.4.7") is; None when the table has no such line."""
    row = load("platforms")["jetpack"].get(".".join(l4t.split(".")[:2]))
    if row is None:
        return None
    return JetPack(
        row["jetpack"],
        row["cuda"],
        row.get("cudnn"),
        row["python"],
        tuple(_pair(text) for text in row["gpus"]),
        row["index"],
    )


def jetpack_of_cuda(cuda: str) -> JetPack | None:
    """Return the newest JetPack whose CUDA is *cuda* ("12.6"), as a Jetson's driver names it."""
    rows = load("platforms")["jetpack"].items()
    return next((jetpack(l4t) for l4t, row in rows if row["cuda"] == cuda), None)


def is_index(address: str) -> bool:
    """Say whether where wheels for a JetPack are is an index that pip can use, not a page."""
    return bool(address) and "forums." not in address


def undeclared(soname: str) -> str | None:
    """Return the package for a library that Jetson wheels link without asking for it."""
    found = load("platforms")["jetpack_undeclared"].get(soname)
    return None if found is None else str(found)


def mps_macos(torch: str) -> str | None:
    """Return the oldest macOS on which MPS of *torch* works ("14.0"); None: not known, or none.

    It is more than the wheel's tag asks for. MPS needs Apple silicon besides.
    """
    release = _numbers(torch)
    for since, needed in load("platforms")["mps"].items():
        if release >= _numbers(since):
            return None if needed == "unknown" else str(needed)
    return None


def ngc_release(torch: str) -> str | None:
    """Return the NGC release ("26.02") that a version of torch was built for, None if it was not.

    2.11.0a0+nv26.02, 2.5.0a0+872d972e41.nv24.08. Nothing on a package index fits such a torch.
    """
    found = re.fullmatch(r"\d+(?:\.\d+)+(?:a0)?\+(?:\w+\.)?nv(\d\d\.\d\d)(?:\.\w+)?", torch)
    return found[1] if found else None


def ngc_image_name() -> str:
    """Return the name of NVIDIA's image with PyTorch, without its tag."""
    return str(load("platforms")["ngc"]["image"])


def ngc_cuda(release: str) -> str | None:
    """Return the CUDA of an NGC image of *release*, None where it was not read."""
    found = load("platforms")["ngc_cuda"].get(release)
    return None if found is None else str(found)


def xpu_validated(gpu: str) -> bool:
    """Say whether *gpu* is one that torch's xpu builds were validated on. False is no verdict."""
    table = load("platforms")["xpu"]
    return any(re.search(p, gpu) for p in (*table["client"], *table["data_center"]))


def xpu_card(gpu: str) -> bool:
    """Say whether *gpu* is a card of its own among those, no graphics inside a processor."""
    table = load("platforms")["xpu"]
    return any(re.search(p, gpu) for p in (*table["cards"], *table["data_center"]))


def conda_build(build: str) -> CondaBuild | None:
    """Return what the build string of conda's pytorch says; None for one of no known shape.

    conda-forge: cuda129_generic_py314h1da07bd_200, cpu_mkl_py310h6b9ef62_103, cuda120py312h..._301;
    Anaconda: gpu_cuda130...; PyTorch's own channel, which ended with 2.5:
    py3.11_cuda12.1_cudnn8.9.2_0, py3.11_cpu_0, on macOS py3.11_0.
    """
    for pattern in _BUILDS:
        if found := re.fullmatch(pattern, build):
            cuda = _dotted(found["cuda"])
            return CondaBuild("cuda" if cuda else "cpu", cuda)
    return None


def conda_archs(cuda: str, platform: str, *, tegra: bool = False) -> tuple[int, ...] | None:
    """Return the targets of conda-forge's build for *cuda* on *platform*; the last is PTX as well.

    *tegra*: its variant for Jetson (arm-variant * tegra). None: not known.
    """
    found = load("platforms")["conda_archs"].get(f"{cuda} {'tegra' if tegra else platform}")
    return None if found is None else tuple(found)


def no_wheel(system: str, machine: str, libc: str | None) -> str | None:
    """Return why there is no wheel of torch for such a machine, None when there may be one.

    *system* is as ``sys.platform``, *machine* as ``platform.machine()``, *libc* glibc or musl.
    """
    table = load("platforms")["no_wheel"]
    if libc == "musl":
        return str(table["musl"])
    known = table.get(machine.lower())
    if known is not None or platform_key(system, machine) is not None:
        return cast("str | None", known)
    return f"there are no wheels for {system} on {machine}"


_WSL2 = 2
_BUILDS = (
    r"(?:gpu_)?cuda_?(?P<cuda>\d{3})(?!\d)\w*",
    r"py\d\.\d+_cuda(?P<cuda>\d+\.\d+)_\w[\w.]*",
    r"(?P<cuda>)(?:cpu(?:_|py)\w+|py\d\.\d+_cpu_\d+|py\d\.\d+_\d+)",
)
"""conda-forge and Anaconda with CUDA; PyTorch's own channel with CUDA; any without."""


def _dotted(cuda: str) -> str | None:
    if not cuda or "." in cuda:
        return cuda or None
    return f"{cuda[:-1]}.{cuda[-1]}"


def _pair(text: str) -> tuple[int, int]:
    major, minor = _numbers(text)
    return major, minor


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()
