"""What the harness measures of communication, against collectives whose time is known.

Run by a Python with torch, once for each rank. Rank 0 prints for each of them the share of a step
that was measured, and the true one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]

from torchdoctor.training.harness import data, train
from torchdoctor.training.harness.engine import Engine
from torchdoctor.training.harness.events import Events

ROUNDS = 20
DELAY = 0.05
COMPUTES = 0.1
slept: list[float] = []
RATE = 40 << 20
"""Bytes a second of the wire: so few that what CPUs do meanwhile, others' work too, hides."""
SIZES = {"small": 1 << 20, "large": 2 << 20}
"""Numbers of 32 bits in the parameter that is sent, which hardly anything is computed with."""


class Wide(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A model that has much to send and little to compute."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.sent = torch.nn.Parameter(torch.zeros(size))
        self.used = torch.nn.Linear(data.INPUTS, 1)

    def forward(self, x: Any) -> Any:
        time.sleep(COMPUTES)  # computing, for a time that is known
        return self.used(x) + self.sent[:1] * 0 + self.sent.sum() * 0


def engine(folder: str, rank: int, device: Any) -> Engine:
    words = ["--dir", folder, "--width", "16", "--batch", "4"]
    options: argparse.Namespace = train.options(words)
    return Engine(options, Events(Path(folder), rank), device)


def delayed(state: object, bucket: Any) -> Any:
    """Average a bucket as DDP does, DELAY seconds later."""
    del state
    began = time.perf_counter()
    time.sleep(DELAY)
    slept.append(time.perf_counter() - began)  # a busy machine sleeps longer than it is told
    work = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return work.then(lambda done: done.value()[0] / dist.get_world_size())


def carried(state: object, bucket: Any) -> Any:
    """Average a bucket as DDP does, over a wire of RATE bytes a second."""
    del state
    buffer = bucket.buffer()
    ready = time.perf_counter() + buffer.numel() * buffer.element_size() / RATE
    work = dist.all_reduce(buffer, async_op=True).get_future()
    work.wait()
    time.sleep(max(0.0, ready - time.perf_counter()))
    return work.then(lambda done: done.value()[0] / dist.get_world_size())


for hook in (delayed, carried):
    hook.__annotations__.clear()  # DDP compares them with its own classes, which these are not


def least(rounds: list[dict[str, float]]) -> tuple[float, float]:
    """Return the seconds with and without talking of the steps that nothing else disturbed."""
    return min(one["with"] for one in rounds), min(one["without"] for one in rounds)


def main() -> None:
    found: dict[str, dict[str, float]] = {}
    device = train.place(train.options(["--dir", "."]))
    rank = dist.get_rank()
    with tempfile.TemporaryDirectory() as folder:
        plain = data.loss

        def loss(output: Any, target: Any) -> Any:
            time.sleep(DELAY)  # so that a step does not only send
            return plain(output, target)

        data.loss = loss
        late = engine(folder, rank, device)
        late.model.register_comm_hook(None, delayed)
        late.settle()
        slept.clear()
        whole, without = least([late.measure(1) for _ in range(ROUNDS)])
        found["of known delay"] = {
            "measured": (whole - without) / whole,
            "truth": min(slept) / (min(slept) + without),
        }
        data.loss = plain
        for name, size in SIZES.items():
            data.model = lambda *_, size=size, **__: Wide(size)
            wide = engine(folder, rank, device)
            wide.model.register_comm_hook(None, carried)
            wide.settle()
            whole, without = least([wide.measure(1) for _ in range(ROUNDS)])
            sent = 4 * size / RATE
            found[f"of known size, {name}"] = {
                "measured": (whole - without) / whole,
                "truth": sent / (sent + without),
            }
    if rank == 0:
        print(json.dumps(found))  # noqa: T201
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
