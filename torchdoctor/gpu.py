"""What the facts say of GPUs and their driver, for the questions that several checks ask. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal

from torchdoctor.facts import (
    Build,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.tables import builds, platforms, releases
from torchdoctor.tables import gpus as table

Kind = Literal["cpu", "cuda", "rocm", "xpu"]

PLATFORMS = ("linux_x86_64", "linux_aarch64", "win_amd64", "win_arm64")
"""The platform keys of the tables under which GPU builds exist."""

OUR_TRIALS = ("import ", "output of import ", "torch.cuda", "torch and numpy", "torch, ")
"""How the sources of symptoms from our own trials begin; any other shows what the user ran."""

LOST, UNKNOWN = 15, 999
"""NVML's numbers for a GPU that is lost, and for an error without a name."""
_OFF_BUS = re.compile(r"GPU is lost|device handle for [^\n]{1,80}: Unknown Error")
"""Asked for one GPU of several, nvidia-smi says an unknown error where the driver lost that one."""


def answers(driver: Driver | Unknown | None) -> bool:
    """Tell whether there is an NVIDIA driver and it answered in full."""
    return isinstance(driver, Driver) and not (
        driver.hung or driver.garbage or driver.error or driver.code
    )


def silent(driver: Driver | Unknown | None) -> bool:
    """Tell whether the driver was asked and gave no answer, or one that cannot be read."""
    return isinstance(driver, Driver) and (driver.hung or driver.garbage)


def not_loaded(driver: Driver | Unknown | None) -> bool:
    """Tell whether only the driver's files are there and its kernel module is not loaded.

    NVML answers 9 (driver not loaded) or 12 (library not found) then; nvidia-smi says that it
    could not communicate with the driver.
    """
    if not isinstance(driver, Driver):
        return False
    return driver.code in (9, 12) or "communicate with the NVIDIA driver" in (driver.error or "")


def off_bus(driver: Driver, said: str = "") -> bool:
    """Tell whether a GPU no longer answers on the bus, by NVML's number or by what was *said*."""
    return driver.code == LOST or bool(_OFF_BUS.search((driver.error or "") + said))


def detached(driver: Driver, said: str = "") -> bool:
    """Tell whether NVML names no reason: inside a container, that it lost the GPUs it had.

    A host that loses a GPU says so in other words.
    """
    unnamed = driver.code == UNKNOWN or "Unknown Error" in (driver.error or "") + said
    return unnamed and not off_bus(driver, said)


def of_nvidia(gpus: tuple[Gpu, ...] | Unknown) -> tuple[Gpu, ...]:
    """Return the NVIDIA GPUs among *gpus*; none when they are unknown."""
    return () if isinstance(gpus, Unknown) else tuple(g for g in gpus if g.vendor == "nvidia")


def with_capability(gpu: Gpu) -> Gpu:
    """Return *gpu* with the capability that its name tells, where the driver gave none."""
    if gpu.capability or gpu.vendor != "nvidia":
        return gpu
    return replace(gpu, capability=table.capability_of(gpu.name))


def with_target(gpu: Gpu) -> Gpu:
    """Return *gpu* with the gfx target that its name tells, where the driver gave none."""
    if gpu.gfx or gpu.vendor != "amd":
        return gpu
    return replace(gpu, gfx=table.gfx_of(gpu.name))


def with_cards(facts: Facts, cards: Iterable[Gpu]) -> Facts:
    """Return *facts* with *cards* as the GPUs of the machine, to choose a build by."""
    return facts.but(gpus=tuple(cards))


def kind(torch: Build) -> Kind | None:
    """Return what *torch* was built for; None when nothing tells."""
    if cuda(torch):
        return "cuda"
    if torch.hip or (torch.tag or "").startswith("rocm"):
        return "rocm"
    if torch.xpu or torch.tag == "xpu":
        return "xpu"
    return "cpu" if torch.tag == "cpu" else None


def cuda(torch: Build) -> str | None:
    """Return the CUDA that *torch* was built with; of a version alone, what its label says."""
    return torch.cuda or builds.cuda_of(torch.tag or "")


def expects_cuda(expectation: Expectation) -> bool:
    """Tell whether the user said that CUDA has to work here."""
    if expectation.accelerator is not None:
        return expectation.accelerator == "cuda"
    return expectation.cuda_at_least is not None or expectation.gpus_at_least is not None


def works(runtime: Runtime | Unknown) -> bool:
    """Tell whether the imported torch ran a kernel on every GPU that it sees, and sees some."""
    return (
        isinstance(runtime, Runtime)
        and runtime.available
        and bool(runtime.devices)
        and all(device.kernel is None for device in runtime.devices)
    )


def available(runtime: Runtime | Unknown) -> bool:
    """Tell whether the imported torch says that its GPUs can be used."""
    return isinstance(runtime, Runtime) and runtime.available


def symptom(symptoms: Iterable[Symptom] | Unknown, *names: str) -> Symptom | None:
    """Return the first symptom that is called one of *names*."""
    if isinstance(symptoms, Unknown):
        return None
    return next((s for s in symptoms if s.name in names), None)


def asked_for(symptoms: Iterable[Symptom] | Unknown) -> Symptom | None:
    """Return the message that shows that the user's own program asked for a GPU and got none."""
    return of_user(symptoms, "no-nvidia-driver", "cuda-no-device")


def of_user(symptoms: Iterable[Symptom] | Unknown, *names: str) -> Symptom | None:
    """Return the first symptom called one of *names* that the user's own program printed."""
    if isinstance(symptoms, Unknown):
        return None
    return next(
        (s for s in symptoms if s.name in names and not s.source.startswith(OUR_TRIALS)), None
    )


def platform_key(platform: Platform | Unknown) -> str | None:
    """Return how the tables name the system and the machine; None where no wheel exists."""
    if isinstance(platform, Unknown):
        return None
    return releases.platform_key(platform.system, platform.machine)


def platform_keys(platform: Platform | Unknown) -> tuple[str, ...]:
    """Return every platform key that *platform* may be, as far as it is known."""
    if isinstance(platform, Unknown):
        return PLATFORMS
    if platform.machine:
        key = releases.platform_key(platform.system, platform.machine)
        return (key,) if key else ()
    start = {"linux": "linux", "win32": "win", "darwin": "macos"}.get(platform.system, "?")
    return tuple(key for key in (*PLATFORMS, "macos_arm64") if key.startswith(start))


def driver_platform(platform: Platform | Unknown) -> str | None:
    """Return the platform key of the driver: inside WSL it is the one of Windows."""
    key = platform_key(platform)
    if key is None or not isinstance(platform, Platform):
        return None
    return platforms.driver_platform(key, platform.wsl)


def hidden_by(variables: Mapping[str, str] | Unknown) -> str | None:
    """Return the assignment by which all GPUs are hidden on purpose, such as an empty list."""
    if isinstance(variables, Unknown):
        return None
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        value = variables.get(name)
        if value is not None and value.strip() in ("", "-1", "NoDevFiles", "none", "void"):
            return f"{name}={value}"
    return None


def visible(
    gpus: tuple[Gpu, ...],
    variables: Mapping[str, str] | Unknown,
    name: str = "CUDA_VISIBLE_DEVICES",
) -> tuple[Gpu, ...]:
    """Return those of *gpus* that the variable *name* leaves visible; all where that is unclear.

    CUDA stops at the first entry that names no GPU.
    """
    if isinstance(variables, Unknown) or name not in variables:
        return gpus
    left: list[Gpu] = []
    for entry in (e.strip() for e in variables[name].split(",")):
        if entry.startswith("MIG"):
            return gpus
        found = named(entry, gpus)
        if found is None:
            break
        left.append(found)
    return tuple(left)


def named(entry: str, gpus: tuple[Gpu, ...]) -> Gpu | None:
    """Return the GPU that an entry of CUDA_VISIBLE_DEVICES names: a number, the start of a UUID."""
    if entry.isdecimal():
        numbered = [g.index if g.index is not None else i for i, g in enumerate(gpus)]
        return next((g for g, n in zip(gpus, numbered, strict=True) if n == int(entry)), None)
    if not entry.startswith("GPU-"):
        return None
    return next((g for g in gpus if g.uuid and g.uuid.startswith(entry)), None)


def filled(facts: Facts) -> Facts:
    """Return *facts* with the capability of each GPU that its name tells, to choose a build by."""
    if isinstance(facts.gpus, Unknown):
        return facts
    return facts.but(gpus=tuple(map(with_capability, facts.gpus)))
