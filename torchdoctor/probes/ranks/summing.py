"""The collective: the communicator, the first all_reduce, its verification and its speed."""

import time
from datetime import timedelta

from .device import NUMBERS
from .saying import OPTIONS, PACE, RANK, WORLD, Fault, Stage

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Store = Any
    Device = Any
    Tensor = Any

SIZES = (1 << 20,)
SWEEP = (1 << 3, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)


def communicate(dist: "ModuleType", store: "Store", backend: str, device: "Device") -> None:
    """Make the process group; with NCCL its communicator, too."""
    with Stage("communicator") as stage:
        more = {"device_id": device} if device.type == "cuda" else {}
        limit = timedelta(seconds=PACE.limit())
        prefix = dist.PrefixStore("group", store)
        stage.call()
        group = {"store": prefix, "rank": RANK, "world_size": WORLD, "timeout": limit}
        try:
            dist.init_process_group(backend, **group, **more)
        except TypeError:  # torch before 2.3 has no device_id
            dist.init_process_group(backend, **group)


def contribution(torch: "ModuleType", device: "Device") -> "Tensor":
    """Return what this rank gives: 1 in its own slots, so that a wrong one shows whose it is."""
    given = torch.zeros(NUMBERS, device=device)
    given[RANK::WORLD] = 1
    return given


def collective(dist: "ModuleType", given: "Tensor") -> None:
    """Make the collective that is tried."""
    dist.all_reduce(given)


def synchronise(torch: "ModuleType", device: "Device") -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reduce_once(torch: "ModuleType", dist: "ModuleType", device: "Device") -> "Tensor":
    """Make the first all_reduce."""
    with Stage("all-reduce") as stage:
        given = contribution(torch, device)
        synchronise(torch, device)
        stage.call(shape=list(given.shape), dtype=str(given.dtype))
        collective(dist, given)
        synchronise(torch, device)
    return given


def verify(got: "Tensor") -> None:
    """Look at the slots of each rank."""
    with Stage("verify"):
        wrong = [r for r in range(WORLD) if not bool((got[r::WORLD] == 1).all())]
        if wrong:
            seen = [float(got[rank::WORLD][0].item()) for rank in wrong]
            text = "the slots of ranks %s hold %s, not 1" % (wrong, seen)
            raise Fault("wrong-data", text, ranks=wrong, values=seen)


def measure(torch: "ModuleType", dist: "ModuleType", device: "Device") -> None:
    """Time all_reduce as nccl-tests does: algbw is size by time, busbw that by 2(n-1)/n."""
    with Stage("bandwidth") as stage:
        for size in SWEEP if OPTIONS["sweep"] else SIZES:
            data = torch.zeros(max(1, size // 4), device=device)
            stage.call(bytes=size)
            collective(dist, data)  # the first is slower than the others
            synchronise(torch, device)
            rounds = 2 if size >= 1 << 20 and device.type == "cpu" else 5
            begin = time.perf_counter()
            for _ in range(rounds):
                dist.all_reduce(data)
            synchronise(torch, device)
            spent = (time.perf_counter() - begin) / rounds
            speed = size / spent / 1e9
            stage.fact(
                bytes=size,
                seconds=round(spent, 7),
                algbw=round(speed, 4),
                busbw=round(speed * 2 * (WORLD - 1) / WORLD, 4),
            )
