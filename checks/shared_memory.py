"""Shared memory (/dev/shm) is large enough for NCCL and for the workers of a DataLoader.

How it shows: NCCL's "unhandled system error", and above it "Call to posix_fallocate failed : No
space left on device" or "Error while creating shared memory segment"; "DataLoader worker is killed
by signal: Bus error"; "unable to allocate shared memory(shm)"; a process that ends with -7.

Why: docker gives a container 64 MB of /dev/shm. NCCL takes about 10 MB for each pair of GPUs that
have no direct traffic, and every batch of a DataLoader with workers goes through it. Segments of
runs that were killed stay there and fill it.

A container with several GPUs, or with a DataLoader at work, and the 64 MB is told before anything
fails, as a warning; one with less than its pairs of GPUs may come to take (280 MB for 8) as a
note, since GPUs with direct traffic take none.

Neighbours: the same line about a segment with "invalid argument", or after a "Cuda failure", is no
lack of space. "No space left on device" for another path is a full disk.

The fix is ``--shm-size=8g`` or ``--ipc=host`` when the container starts; in Kubernetes an emptyDir
of medium Memory at /dev/shm; outside a container, remove what dead runs left there.

Sources: https://github.com/NVIDIA/nccl/issues/290, https://github.com/pytorch/pytorch/issues/5040
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import distributed_steps as distributed
from torchdoctor import effects, steps
from torchdoctor.facts import (
    Container,
    Gpu,
    Limits,
    Platform,
    Symptom,
    Unknown,
    Workers,
    items_of,
)
from torchdoctor.model import Commands, Evidence, Finding, Step
from torchdoctor.tables import containers

FAMILY = "distributed"
FINDS = ("shm-too-small",)

SMALL = 1 << 27
"""Bytes of /dev/shm that are too few for most; docker's own is half of that."""
EACH_PAIR = 10 << 20
"""Bytes that NCCL takes for two GPUs without direct traffic (https://github.com/NVIDIA/nccl/issues/290)."""
ENOUGH = 8 << 30
SEVERAL = 2


def check(
    symptoms: tuple[Symptom, ...],
    limits: Limits | Unknown,
    container: Container | Unknown | None,
    platform: Platform | Unknown,
    workers: tuple[Workers, ...] | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
) -> Iterator[Finding]:
    """Read who ran out of it, and how large it is."""
    size = limits.shm if isinstance(limits, Limits) else None
    small = size is not None and size <= SMALL
    full = distributed.first(symptoms, "shm-no-space", "loader-bus-error")
    torn = distributed.first(symptoms, "shm-segment-failed")
    bus = next(
        (s for s in distributed.told(symptoms, "exit-code") if _is_bus_error(s.values)), None
    )
    said = full or (torn or bus if small else None)
    if said is None:
        if size is not None and isinstance(container, Container) and isinstance(limits, Limits):
            step = _step(container, platform)
            if small:
                yield from _before(limits, container, workers, gpus, step)
            elif size < (most := _at_most(items_of(gpus))):
                yield _perhaps(size, most, container, step)
        return
    measured = (
        [Evidence("limits.shm", f"{size >> 20} MiB", "df")] if size is not None and small else []
    )
    has = f"Shared memory is {size >> 20} MiB" if measured and size else "Shared memory is full"
    yield Finding(
        "shm-too-small",
        "error",
        f"{has} (/dev/shm): too little for NCCL and the workers of a DataLoader.",
        (*distributed.seen(full, torn, bus), *measured),
        (_step(container, platform),),
        confidence="certain" if full and (small or said.name == "shm-no-space") else "likely",
    )


def _before(
    limits: Limits,
    container: Container,
    workers: tuple[Workers, ...] | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    step: Step,
) -> Iterator[Finding]:
    """Say before anything fails that it will: where there is somebody who needs it."""
    loaders = () if isinstance(workers, Unknown) else [w for w in workers if w.named]
    cards = items_of(gpus)
    if not loaders and len(cards) < SEVERAL:
        return
    who = "the workers of a DataLoader that runs here" if loaders else f"NCCL on {len(cards)} GPUs"
    size = limits.shm or 0
    free = limits.shm_free
    left = "" if free is None else f", {free >> 20} MiB of it free"
    whose = {"own": " of its own"}.get(container.ipc or "", "")
    yield Finding(
        "shm-too-small",
        "warning",
        f"This {container.kind} container has {size >> 20} MiB{whose} of shared memory (/dev/shm)"
        f"{left}: too little for {who}.",
        _measured(size, container),
        (step,),
        confidence="likely",
    )


def _measured(size: int, container: Container) -> tuple[Evidence, ...]:
    return (
        Evidence("limits.shm", f"{size >> 20} MiB", "/dev/shm"),  # noqa: S108 - a name
        Evidence("container.kind", container.kind, "the system"),
    )


def _at_most(cards: tuple[Gpu, ...]) -> int:
    """Return the bytes that NCCL takes where no two of *cards* have direct traffic."""
    return len(cards) * (len(cards) - 1) // 2 * EACH_PAIR


def _perhaps(size: int, most: int, container: Container, step: Step) -> Finding:
    return Finding(
        "shm-too-small",
        "note",
        f"NCCL may take up to {most >> 20} MiB of shared memory (/dev/shm) for the GPUs here, and "
        f"this {container.kind} container has {size >> 20} MiB.",
        _measured(size, container),
        (step,),
        confidence="possible",
    )


def _is_bus_error(values: Mapping[str, str]) -> bool:
    return values.get("exitcode") in ("-7", "135") or values.get("signal") == "BUS"


def _step(container: Container | Unknown | None, platform: Platform | Unknown) -> Step:
    kind = container.kind if isinstance(container, Container) else ""
    options = [containers.option(kind, need, ENOUGH >> 30) for need in ("shm", "ipc", "gpus")]
    larger, shared, gpus = options
    bash: tuple[str, ...] = ()
    title = "Start the container with --shm-size=8g, or with --ipc=host"
    if larger and not shared:
        title = containers.start(kind, larger)[0]
    elif larger and gpus:
        title = f"{containers.start(kind, larger)[0]}, or with {shared}"
        bash = containers.start(kind, f"{gpus} {larger}")[1]
    elif not kind and container is None:
        title = "Remove what dead runs left in /dev/shm (nccl-*, torch_*), or make it larger"
    elif not kind:
        pod = containers.option("kubernetes", "shm", ENOUGH >> 30)
        title += f" (Kubernetes: {pod})"
    if not kind:
        bash = ("docker run --gpus all --shm-size=8g IMAGE",)
    step = steps.restart_container(
        title,
        why="A container has 64 MB of /dev/shm unless it is told otherwise.",
        effect=effects.larger_shm(ENOUGH),
        bash=bash,
        name="enlarge-shm",
    )
    if container is None and isinstance(platform, Platform):
        lines = ("df -h /dev/shm", "ls /dev/shm", "sudo mount -o remount,size=8G /dev/shm")
        step = replace(
            step,
            why="Segments of runs that were killed stay there until they are removed.",
            commands=Commands(bash=lines),
            needs=("admin",),
        )
    return step
