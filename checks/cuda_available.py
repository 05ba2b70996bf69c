"""torch uses the GPUs that are here: it finds them, and a computation on each of them works.

How it shows: ``torch.cuda.is_available()`` is False, or a first computation on the GPU raises or
kills the process.

Why: this is what is left when build, driver, device files and variables look right and the real
thing still fails; the text of the error is given. A GPU that another program keeps for itself
("busy or unavailable", out of memory at the first computation) is in use, not broken.

The fix depends on the error; a driver that was just updated wants a reboot first. Source: the trial
of this run, which asks torch and computes a sum on each GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from torchdoctor import gpu
from torchdoctor.facts import (
    Build,
    Device,
    Driver,
    Expectation,
    Gpu,
    ImportTrial,
    Runtime,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Severity

FAMILY = "gpu"
FINDS = ("cuda-not-available", "gpu-kernel-fails")
AFTER = (
    "driver",
    "nvml",
    "cuda-build",
    "gpu-architecture",
    "amd-architecture",
    "visible-devices",
    "mig",
    "fabric-manager",
    "gpu-permission",
    "uvm",
    "compat-libs",
    "container",
    "torch-imports",
)

IN_USE = re.compile(
    r"out of memory|busy or unavailable|DevicesUnavailable|\berror 46\b", re.IGNORECASE
)
STAGES = ("cuda", "cuda reason", "device", "kernel", "cudnn", "nccl")
LONGEST = 200


def check(
    runtime: Runtime | Unknown,
    torch: Build | None,
    trial: ImportTrial | Unknown,
    driver: Driver | Unknown | None,
    gpus: tuple[Gpu, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    expectation: Expectation,
) -> Iterator[Finding]:
    """Look at what torch said and at how each computation ended."""
    if torch is None or expectation.accelerator == "cpu" or not (torch.cuda or torch.hip):
        return
    if isinstance(runtime, Unknown) or isinstance(trial, Unknown):
        raise CannotTell("torch was not imported, so it was not asked for its GPUs")
    failed = [device for device in runtime.devices if device.kernel is not None]
    if failed:
        yield _kernel(torch, failed, len(runtime.devices))
    elif trial.outcome in ("died", "hung") and trial.stage.rstrip(" 0123456789") in STAGES:
        yield _ended(torch, trial)
    elif not runtime.available and torch.cuda and gpu.answers(driver):
        cards = gpu.of_nvidia(gpus)
        if not cards or gpu.hidden_by(variables):
            return
        said = (runtime.reason or "no reason").strip().partition("\n")[0][:LONGEST]
        yield Finding(
            "cuda-not-available",
            "error" if gpu.expects_cuda(expectation) else "warning",
            f"torch {torch.version} finds no GPU and the driver lists {cards[0].name}: {said}.",
            (
                Evidence("runtime.available", "False", "torch.cuda.is_available()"),
                Evidence("runtime.reason", said, "torch.cuda"),
                Evidence("gpus", ", ".join(card.name for card in cards), "the driver"),
            ),
            confidence="possible",
            because_of=("driver-not-answering",),
        )


def _kernel(torch: Build, failed: list[Device], count: int) -> Finding:
    first = failed[0]
    said = (first.kernel or "").strip().partition("\n")[0][:LONGEST]
    which = f"on {first.name or 'GPU'} (number {first.index})"
    more = f" and {len(failed) - 1} more of {count}" if len(failed) > 1 else ""
    severity: Severity = "error"
    if all(IN_USE.search(device.kernel or "") for device in failed):
        severity = "warning"
    return Finding(
        "gpu-kernel-fails",
        severity,
        f"torch {torch.version} finds the GPU, but a computation {which}{more} fails: {said}.",
        tuple(
            Evidence(
                f"runtime.devices.{d.index}.kernel", (d.kernel or "")[:LONGEST], "a sum of ours"
            )
            for d in failed
        ),
        confidence="possible",
    )


def _ended(torch: Build, trial: ImportTrial) -> Finding:
    how = (
        "did not come back" if trial.outcome == "hung" else f"died ({trial.signal or 'no answer'})"
    )
    return Finding(
        "gpu-kernel-fails",
        "error",
        f"torch {torch.version} {how} in stage {trial.stage}, after it had been imported.",
        (Evidence("trial.stage", trial.stage, "import torch"),),
        confidence="possible",
    )
