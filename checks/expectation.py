"""The machine is what ``--expect`` says: cpu, cuda, cuda>=X, rocm, xpu, mps, gpus>=N.

How it shows: a training job that was to run on GPUs runs on the CPU, without an error.

Why: what is right for a machine depends on what it is for. A CUDA build without a driver is healthy
on a login node and broken on a GPU node; only you know which one this is. The reason, where another
check knows it, is listed before this.

The fix is the one of that reason. ``cuda>=X`` is about the CUDA that torch was built with
(``torch.version.cuda``), not about a toolkit and not about the number that nvidia-smi prints.
Source: what torch and the driver say of themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from torchdoctor import choose, gpu, steps
from torchdoctor.facts import (
    Build,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Runtime,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step
from torchdoctor.tables import drivers

FAMILY = "system"
FINDS = ("expectation-unmet",)

EXPLAINED_BY = (
    "torch-not-installed",
    "torch-import-fails",
    "interpreter-emulated",
    "cpu-only-build",
    "wrong-accelerator-build",
    "driver-missing",
    "driver-too-old",
    "driver-not-answering",
    "nvml-mismatch",
    "gpu-fell-off-bus",
    "container-no-gpu",
    "container-gpu-detached",
    "driver-installed-in-container",
    "wsl1-no-gpu",
    "gpu-device-permission",
    "cuda-visible-devices-bad",
    "mig-single-instance",
    "fabric-manager-not-running",
    "nvidia-uvm-stale",
    "cuda-compat-libs",
    "arch-not-supported",
    "arch-dropped",
    "cuda-not-available",
    "gpu-kernel-fails",
)


def check(
    expectation: Expectation,
    torch: Build | None,
    runtime: Runtime | Unknown,  # noqa: ARG001 - read by way of facts
    driver: Driver | Unknown | None,  # noqa: ARG001
    gpus: tuple[Gpu, ...] | Unknown,  # noqa: ARG001
    variables: Mapping[str, str] | Unknown,  # noqa: ARG001
    facts: Facts,
) -> Iterator[Finding]:
    """Compare each word of the expectation with the facts."""
    wanted = expectation.accelerator
    if wanted is None and not expectation.cuda_at_least and not expectation.gpus_at_least:
        return
    if torch is None:
        yield _finding(_words(expectation), "torch is not installed", "torch", "none")
        return
    parts = [_one(part, expectation, torch, facts) for part in (_build, _gpus)]
    found = [finding for part in parts if not isinstance(part, str) for finding in part]
    unclear = [part for part in parts if isinstance(part, str)]
    if unclear and not found:
        raise CannotTell("; ".join(unclear))
    yield from found


def _one(
    part: Callable[[Expectation, Build, Facts], Iterator[Finding]],
    expectation: Expectation,
    torch: Build,
    facts: Facts,
) -> tuple[Finding, ...] | str:
    """Return the findings of one *part*, or why it could not tell, so that the other still says."""
    try:
        return tuple(part(expectation, torch, facts))
    except CannotTell as why:
        return str(why)


def _build(expectation: Expectation, torch: Build, facts: Facts) -> Iterator[Finding]:
    wanted, least = expectation.accelerator, expectation.cuda_at_least
    if least and torch.cuda and drivers.compare(torch.cuda, least) < 0:
        has = f"torch {torch.version} was built with CUDA {torch.cuda}"
        cure = tuple(_newer_cuda(torch, least, facts))
        yield _finding(f"cuda>={least}", has, "torch.cuda", torch.cuda, cure)
    elif wanted not in (None, "cpu") or least:
        yield from _accelerator(wanted or "cuda", torch, facts)


def _words(expectation: Expectation) -> str:
    if expectation.accelerator:
        return expectation.accelerator
    if expectation.cuda_at_least:
        return f"cuda>={expectation.cuda_at_least}"
    return f"gpus>={expectation.gpus_at_least}"


def _accelerator(wanted: str, torch: Build, facts: Facts) -> Iterator[Finding]:
    runtime, least = facts.runtime, facts.expectation.cuda_at_least
    words = f"cuda>={least}" if least else wanted
    kind = gpu.kind(torch)
    if wanted != "mps" and kind is not None and kind != wanted:
        yield _finding(words, f"torch {torch.version} is a {kind} build", "torch.tag", kind)
        return
    if isinstance(runtime, Runtime):
        ready = {"mps": runtime.mps, "xpu": runtime.xpu}.get(wanted, runtime.available)
        if ready is None:
            raise CannotTell(f"whether torch can use {wanted} was not asked")
        if not ready:
            why = (runtime.reason or "no reason given").strip().partition("\n")[0][:200]
            yield _finding(words, f"torch finds no such device ({why})", "runtime", "not available")
        return
    if wanted == "cuda" and facts.driver is None:
        yield _finding(words, "there is no NVIDIA driver", "driver", "none")
        return
    raise CannotTell(f"runtime: {runtime.reason}")


def _gpus(expectation: Expectation, torch: Build, facts: Facts) -> Iterator[Finding]:
    least, runtime, gpus = expectation.gpus_at_least, facts.runtime, facts.gpus
    if not least:
        return
    if isinstance(runtime, Runtime):
        found, source = len(runtime.devices), "runtime.devices"
    elif isinstance(gpus, Unknown):
        raise CannotTell(f"gpus: {gpus.reason}")
    else:
        vendor = "amd" if torch.hip else "nvidia"
        mine = tuple(card for card in gpus if card.vendor == vendor)
        found, source = len(gpu.visible(mine, facts.variables)), "gpus"
    if found < least:
        has = f"torch sees {found}" if source == "runtime.devices" else f"there are {found}"
        yield _finding(f"gpus>={least}", has, source, str(found))


def _newer_cuda(torch: Build, least: str, facts: Facts) -> Iterator[Step]:
    for release in (torch.public, None):
        if choice := choose.choose(facts, accelerator="cuda", release=release):
            why = f"This build was made with CUDA {least} or newer."
            yield steps.change_build(facts, choice, why=why)
            return


def _finding(words: str, has: str, fact: str, value: str, cure: tuple[Step, ...] = ()) -> Finding:
    return Finding(
        "expectation-unmet",
        "error",
        f"--expect {words} is not met: {has}.",
        (Evidence(fact, value, "--expect"),),
        cure,
        because_of=EXPLAINED_BY,
    )
