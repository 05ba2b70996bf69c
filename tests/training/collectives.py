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

ROUNDS = 25
DELAY = COMPUTES = 0.05
slept: list[float] = []
SIZE = 4 << 20
"""Numbers of 32 bits in the parameter that is sent, which hardly anything is computed with."""


class Wide(torch.nn.Module):  # type: ignore[misc,unused-ignore]
    """A model that has much to send and little to compute."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = torch.nn.Parameter(torch.zeros(SIZE))
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


delayed.__annotations__.clear()  # DDP compares them with its own classes, which these are not


def bare() -> tuple[float, float]:
    """Return the seconds of one all_reduce of what Wide sends, and of waiting before it.

    With what DDP does beside it, and after the same wait as in Wide, from which the ranks of a
    busy machine wake up one after the other.
    """
    flat, given = torch.zeros(SIZE), torch.ones(SIZE)
    dist.barrier()
    began = time.perf_counter()
    time.sleep(COMPUTES)
    woken = time.perf_counter()
    flat.copy_(given).div_(dist.get_world_size())
    dist.all_reduce(flat)
    given.copy_(flat)
    return time.perf_counter() - began, woken - began


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
        data.model = lambda *_, **__: Wide()
        wide = engine(folder, rank, device)
        wide.settle()
        rounds = [(wide.measure(1), bare()) for _ in range(ROUNDS)]
        whole, without = least([one for one, _ in rounds])
        sent = min(both for _, (both, _) in rounds) - min(alone for _, (_, alone) in rounds)
        found["of known size"] = {
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
