"""A training script with a fault, for the tests of hang: ``train.py FAULT FOLDER [armed]``."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

fault, folder, *more = sys.argv[1:]
if "armed" in more:
    from torchdoctor.training import arm

    arm(Path(folder) / "armed", every=0.5)

import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]  # noqa: E402


def ready() -> None:
    """Tell the test that the fault is next."""
    Path(folder, f"ready{RANK}").touch()


def work(seconds: float) -> None:
    """Keep a processor busy."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(10_000))


def quietly(many: int = 3, ends: float = 120.0) -> None:
    """Wait in an all_reduce, and after it has failed go on waiting, as with NCCL."""
    try:
        dist.all_reduce(torch.ones(many))
    except RuntimeError:
        time.sleep(ends)


if fault == "own-handler":
    signal.signal(signal.SIGUSR1, lambda *_: Path(folder, "signalled").touch())
dist.init_process_group("gloo", timeout=timedelta(seconds=120))
RANK, WORLD = dist.get_rank(), dist.get_world_size()
pair = dist.new_group([0, 1]) if fault in ("group", "circle") else None
other = dist.new_group([0, 1]) if fault == "circle" else None
for _ in range(3):
    dist.all_reduce(torch.ones(3))
if fault != "slow":
    ready()

if fault in ("late", "own-handler"):
    if RANK == WORLD - 1:
        time.sleep(120)
    dist.all_reduce(torch.ones(5, 7, dtype=torch.float64))
elif fault == "work":
    if RANK == 1:
        work(60)
    dist.all_reduce(torch.ones(4))
elif fault == "operation":
    dist.barrier() if RANK == 1 else dist.broadcast(torch.ones(3), 1)
elif fault == "size":
    quietly(500 if RANK == 1 else 1000)
elif fault == "skipped":
    if RANK == 0:
        dist.broadcast(torch.ones(8), 1)
    dist.all_reduce(torch.ones(3))
elif fault == "killed":
    if RANK == 1:
        time.sleep(1)  # for a heartbeat
        os.kill(os.getpid(), signal.SIGKILL)
    quietly()
elif fault == "uneven":
    if RANK != 1:
        quietly()
elif fault == "raised":
    if RANK == 1:
        raise KeyError("no such batch")
    quietly()
elif fault == "group":
    if RANK == 1:
        time.sleep(120)
    if RANK == 0:
        dist.all_reduce(torch.ones(2), group=pair)
    dist.barrier()
elif fault == "circle":
    dist.all_reduce(torch.ones(2), group=pair if RANK else other)
elif fault == "slow":
    for number in range(400):
        if number == 2:  # it runs by then
            ready()
        time.sleep(0.3)
        dist.all_reduce(torch.ones(3))
else:  # all wait: the test stops one of them
    if RANK == 1:
        time.sleep(1)
    dist.monitored_barrier() if fault == "monitored" else quietly()
    time.sleep(120)
