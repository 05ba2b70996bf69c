"""CUDA's compatibility library (cuda-compat) is not used where it cannot work.

How it shows: "Error 804: forward compatibility was attempted on non supported HW", or "Error 803:
system has unsupported display driver / cuda driver combination".

Why: images of CUDA carry a newer libcuda, cuda-compat, that runs on an older driver of data-centre
GPUs only. On a GeForce card, or beside a driver of another branch, loading it fails. It comes in by
LD_LIBRARY_PATH (/usr/local/cuda/compat), by the image, or by a faulty container toolkit; nvidia-smi
in the container then shows a higher CUDA than on the host.

Both can be foretold before anything is tried: from the libcuda that the loader takes, the release
of the driver and the names of the GPUs. An older cuda-compat than the driver gives 803 on every
GPU.

A kernel module and a library of different releases (error 18 of NVML) also give 803: then it is
that. The fix is to leave the compatibility library out, or a driver on the host that knows the
image's CUDA. Sources: NVIDIA's CUDA Compatibility guide, forward compatibility;
https://github.com/NVIDIA/nvidia-docker/issues/1515
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import (
    Build,
    Container,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Platform,
    Runtime,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Commands, Evidence, Finding, Layer, Step
from torchdoctor.tables import drivers
from torchdoctor.tables import gpus as table

FAMILY = "gpu"
FINDS = ("cuda-compat-libs",)
AFTER = ("nvml",)

PATH = "LD_LIBRARY_PATH"
_FOLDER = re.compile(r"/(?:cuda-)?compat/")
"""Where the packages of NVIDIA and of conda put the library."""


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    driver: Driver | Unknown | None,
    torch: Build | Unknown | None,
    platform: Platform | Unknown,
    container: Container | Unknown | None,
    expectation: Expectation,
    gpus: tuple[Gpu, ...] | Unknown,
    runtime: Runtime | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for errors 803 and 804, or for what will bring them, and for how the library comes."""
    value = "" if isinstance(variables, Unknown) else variables.get(PATH, "")
    entries = [entry for entry in value.split(":") if entry]
    compat = [entry for entry in entries if "compat" in entry]
    inside = isinstance(container, Container)
    said = gpu.symptom(symptoms, "cuda-compat-not-supported", "cuda-driver-mismatch")
    if said and said.name != "cuda-compat-not-supported" and not compat and not inside:
        said = None  # 803 without a sign of the library says no more than that versions differ
    asks = isinstance(torch, Build) and gpu.cuda(torch) and not gpu.available(runtime)
    foretold = _foretold(driver, gpus) if asks and not said else None
    if said:
        code = "804" if said.name == "cuda-compat-not-supported" else "803"
        seen = [Evidence("symptoms", said.text, said.source)]
    elif foretold:
        code, path = foretold
        seen = [Evidence("driver.cuda_library", path, "the loader")]
    elif isinstance(symptoms, Unknown):
        raise CannotTell(symptoms.reason)
    else:
        return
    release = driver.release if isinstance(driver, Driver) else None
    if compat:
        seen.append(Evidence(f"variables.{PATH}", ":".join(compat), "the environment"))
    if release:
        seen.append(Evidence("driver.release", release, "the driver"))
    by = f" through {PATH}" if compat else (" by this image" if inside else "")
    cures: list[Step] = []
    if compat:
        cures.append(_without(entries, compat))
    cures += [_remove(), *_newer_driver(torch, release, facts, platform, inside=inside)]
    cpu = expectation.accelerator == "cpu"
    yield Finding(
        "cuda-compat-libs",
        "note" if cpu else "error",
        f"The compatibility libcuda is loaded{by} and does not work with"
        f" {f'driver {release}' if release else 'the driver of this machine'} or its GPU"
        f" (error {code}).",
        tuple(seen),
        () if cpu else tuple(cures),
        confidence="certain" if said and code == "804" and compat else "likely",
    )


def _foretold(
    driver: Driver | Unknown | None, gpus: tuple[Gpu, ...] | Unknown
) -> tuple[str, str] | None:
    """Return the error that the libcuda which the loader takes will give, and where it lies."""
    if not isinstance(driver, Driver) or not driver.cuda_library:
        return None
    path = driver.cuda_library
    library = re.search(rf"\.so\.({drivers.RELEASE})$", path)
    module = driver.kernel_module or driver.release
    if library is None or module is None or not _FOLDER.search(path) or library[1] == module:
        return None
    cards = gpu.of_nvidia(gpus)
    if cards and all(table.without_forward_compatibility(card.name) for card in cards):
        return "804", path
    return ("803", path) if drivers.compare(library[1], module) < 0 else None


def _own_libcuda(facts: Facts) -> Facts:
    """Return *facts* without the libcuda that was taken: it will be another."""
    if not isinstance(facts.driver, Driver):
        return facts
    return facts.but(driver=replace(facts.driver, cuda_library=None))


def _without(entries: list[str], compat: list[str]) -> Step:
    left = ":".join(entry for entry in entries if entry not in compat)
    why = "torch then loads the libcuda of the driver itself."
    step = steps.set_variable(PATH, left, why=why) if left else steps.unset_variable(PATH, why=why)
    return replace(step, effect=effects.then(step.effect, _own_libcuda))


def _remove() -> Step:
    step = steps.by_hand(
        "remove-cuda-compat",
        "Remove the package cuda-compat from the image or the machine",
        why="torch then loads the libcuda of the driver itself.",
        layer=Layer.RUNTIME,
        cost=steps.SMALL,
        effect=effects.then(effects.untried, _own_libcuda),
        bash=("sudo apt-get remove -y 'cuda-compat-*'", "sudo ldconfig"),
        admin=True,
    )
    return replace(step, deletes=True)


def _newer_driver(
    torch: Build | Unknown | None,
    release: str | None,
    facts: Facts,
    platform: Platform | Unknown,
    *,
    inside: bool,
) -> Iterator[Step]:
    cuda = torch.cuda if isinstance(torch, Build) else None
    full = drivers.full_driver(cuda, gpu.driver_platform(platform) or "") if cuda else None
    if full and (release is None or drivers.compare(release, full) < 0):
        step = steps.upgrade_driver(
            facts, full, cuda, why=f"With a driver for CUDA {cuda} nothing has to be bridged."
        )
        title = f"{step.title} (on the host)" if inside else step.title
        yield replace(step, title=title, commands=Commands() if inside else step.commands)
