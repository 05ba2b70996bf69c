"""Random loaders in a job of gloo processes: what an audit predicts against what is iterated.

Run by a Python with torch, once for each rank, with the seed and the number of configurations as
arguments, and for each configuration the kinds of preparing that may be drawn. The processes stay
from one configuration to the next. What the ranks iterate is recorded by the dataset itself, in
__getitem__, in whatever process that runs. Rank 0 prints what came out as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]
from torch.utils import data  # type: ignore[import-not-found,unused-ignore]

from torchdoctor.training import audit

EPOCHS = 2
SHORT = 1.5
"""Seconds after which a rank that waits in a step is taken to wait for ever."""
LENGTHS = (1, 2, 3, 5, 7, 8, 11, 16, 17, 23, 24, 31, 37, 48, 53)


@dataclass(frozen=True)
class Config:
    """One loader, and how it is prepared."""

    length: int
    world: int
    batch: int
    workers: int
    drop_last: bool
    shuffle: bool
    sampler: str
    mode: str
    sampler_drop_last: bool
    even_batches: bool
    seed: int
    set_epoch: bool


SAMPLERS = ("distributed", "plain", "weighted", "subset", "own", "batches", "uneven", "stream")
MODES = ("none", "shard", "split", "dispatch")


def drawn(seed: int, number: int, world: int, modes: tuple[str, ...]) -> Config:
    """Return configuration *number* of a run; nothing in it depends on the others."""
    draw = random.Random(f"{seed}:{number}:{world}")  # noqa: S311 - loaders, not secrets
    while True:
        mode = draw.choice(modes)
        sampler = draw.choice(SAMPLERS if mode == "none" else SAMPLERS[:6])
        batch = draw.randint(1, 6)
        if mode == "split":
            batch = world * draw.randint(1, 3)
        return Config(
            draw.choice(LENGTHS),
            world,
            batch,
            draw.choice((0, 0, 0, 1, 2)),
            draw.random() < 0.4,
            draw.random() < 0.6,
            sampler,
            mode,
            draw.random() < 0.3,
            draw.random() < 0.5,
            draw.randint(0, 10_000),
            draw.random() < 0.8,
        )


class Numbers(data.Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A dataset that writes down what is asked of it, in the process in which it is asked."""

    def __init__(self, length: int, log: str) -> None:
        self.length, self.log = length, log

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        handle = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, b"%d\n" % index)  # short enough to be written at once
        os.close(handle)
        return torch.tensor(index)


class Stream(data.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A stream that shares itself out by rank and worker, or only by rank."""

    def __init__(self, config: Config, rank: int, log: str) -> None:
        self.config, self.rank, self.log = config, rank, log

    def __iter__(self) -> Iterator[Any]:
        info = data.get_worker_info()
        many, mine = (info.num_workers, info.id) if info and self.config.shuffle else (1, 0)
        step = self.config.world * many
        for index in range(self.rank * many + mine, self.config.length, step):
            Numbers(0, self.log)[index]
            yield torch.tensor(index)


class Own(data.Sampler):  # type: ignore[misc,type-arg,unused-ignore]
    """A sampler with random numbers of its own, alike on all ranks."""

    def __init__(self, config: Config) -> None:
        self.config, self.random = config, random.Random(config.seed)  # noqa: S311 - indices

    def __iter__(self) -> Iterator[int]:
        order = list(range(self.config.length))
        if self.config.shuffle:
            self.random.shuffle(order)
        return iter(order)

    def __len__(self) -> int:
        return self.config.length


class Uneven(Own):
    """One that takes its place among the ranks, and gives some of them more."""

    def __init__(self, config: Config, rank: int) -> None:
        super().__init__(config)
        self.rank = rank

    def __iter__(self) -> Iterator[int]:
        return iter([i for i in super().__iter__() if i % (self.config.world + 1) >= self.rank])

    def __len__(self) -> int:
        return len(list(range(self.rank, self.config.length)))


def loader(config: Config, rank: int, log: str) -> Any:
    """Return the loader of *rank*, as a script would make it."""
    if config.sampler == "stream":
        return data.DataLoader(
            Stream(config, rank, log),
            config.batch,
            drop_last=config.drop_last,
            num_workers=config.workers,
        )
    dataset = Numbers(config.length, log)
    generator = torch.Generator()
    generator.manual_seed(config.seed)
    sampler: Any
    if config.sampler in {"distributed", "batches"}:
        sampler = data.DistributedSampler(
            dataset,
            config.world,
            rank,
            shuffle=config.shuffle,
            seed=config.seed,
            drop_last=config.sampler_drop_last,
        )
    elif config.sampler == "weighted":
        weights = torch.arange(1.0, config.length + 1)
        replace = config.sampler_drop_last
        sampler = data.WeightedRandomSampler(weights, config.length, replace, generator=generator)
    elif config.sampler == "subset":
        some = range(0, config.length, 2)
        sampler = data.SubsetRandomSampler(some, generator=generator)
    elif config.sampler == "own":
        sampler = Own(config)
    elif config.sampler == "uneven":
        sampler = Uneven(config, rank)
    elif config.shuffle:
        sampler = data.RandomSampler(dataset, generator=generator)
    else:
        sampler = data.SequentialSampler(dataset)
    if config.sampler == "batches":
        batches = data.BatchSampler(sampler, config.batch, config.drop_last)
        return data.DataLoader(dataset, batch_sampler=batches, num_workers=config.workers)
    return data.DataLoader(
        dataset,
        config.batch,
        sampler=sampler,
        drop_last=config.drop_last,
        num_workers=config.workers,
    )


def prepared(config: Config, rank: int, log: str) -> Any:
    """Return the loader as accelerate makes it, if it is asked."""
    made = loader(config, rank, log)
    if config.mode == "none":
        return made
    prepare = __import__("accelerate.data_loader", fromlist=["x"]).prepare_data_loader
    return prepare(
        made,
        num_processes=config.world,
        process_index=rank,
        split_batches=config.mode == "split",
        dispatch_batches=config.mode == "dispatch",
        even_batches=config.even_batches,
        device=torch.device("cpu"),
        put_on_device=True,
        rng_types=["generator"],
    )


def told(loader: Any, config: Config, epoch: int) -> None:
    """Tell the epoch, as a script does."""
    if config.set_epoch and config.mode == "none":
        parts: list[Any] = [loader.sampler, getattr(loader.batch_sampler, "sampler", None)]
        for part in parts:
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)


def read(log: str) -> Counter[int]:
    """Return what the dataset has written down, and forget it."""
    path = Path(log)
    found = Counter(map(int, path.read_text().split())) if path.exists() else Counter()
    path.unlink(missing_ok=True)
    return found


def everybody(value: object) -> list[Any]:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def iterated(config: Config, log: str) -> tuple[list[list[list[int]]], list[Counter[int]]]:
    """Return what this rank really gets in each epoch, and what its dataset was asked for."""
    made = prepared(config, dist.get_rank(), log)
    batches, asked = [], []
    for epoch in range(EPOCHS):
        told(made, config, epoch)
        batches.append([[int(i) for i in batch.reshape(-1)] for batch in made])
        asked.append(read(log))
    return batches, asked


def trained(config: Config, log: str) -> int | None:
    """Return the step in which this rank waits for others in vain; None if in none."""
    group = dist.new_group(backend="gloo", timeout=timedelta(seconds=SHORT))
    made = prepared(config, dist.get_rank(), log)
    told(made, config, 0)
    step = 0
    try:
        for step, _batch in enumerate(made, 1):  # noqa: B007 - the step is the answer
            dist.all_reduce(torch.ones(1), group=group)
    except RuntimeError:
        return step
    finally:
        read(log)
    return None


def predicted(config: Config, log: str) -> Any:
    return audit(
        lambda rank, _: prepared(config, rank, log),
        world_size=config.world,
        epochs=EPOCHS,
        set_epoch=config.set_epoch,
    )


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    rank, world = dist.get_rank(), dist.get_world_size()
    seed, many, hangs, modes = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    if any(mode != "none" for mode in modes):
        __import__("accelerate").Accelerator(cpu=True)
    wrong: list[object] = []
    seen: Counter[str] = Counter()
    hung = {"right": 0, "of": 0}
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/{rank}"
        number = -1
        while sum(seen.values()) < many:
            number += 1
            config = drawn(seed, number, world, tuple(modes))
            told_before = predicted(config, log)
            if config.mode != "none" and not all(told_before.seen.epochs[0].steps):
                continue  # accelerate (0.34, or dispatching) fails itself without any batch
            Path(log).unlink(missing_ok=True)  # a stream has been read to predict
            torch.manual_seed(1000 * rank + number)
            batches, asked = iterated(config, log)
            ranks = everybody((batches, asked))
            seen[f"{config.sampler}, {config.mode}"] += 1
            real = [[one[0][epoch] for one in ranks] for epoch in range(EPOCHS)]
            if real != list(told_before.epochs) or not as_asked(config, real, ranks):
                wrong.append(
                    {"config": asdict(config), "real": real, "predicted": told_before.epochs}
                )
            step = told_before.seen.epochs[0].hang
            if step is not None and config.mode != "dispatch" and hung["of"] < hangs:
                found = everybody(trained(config, log))
                hung["of"] += 1
                waits = {r for r, at in enumerate(found) if at is not None}
                right = waits == set(told_before.seen.epochs[0].waits)
                hung["right"] += right and {found[r] for r in waits} == {step}
    if rank == 0:
        print(json.dumps({"of": many, "wrong": wrong, "seen": seen, "hangs": hung}))  # noqa: T201
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


def as_asked(config: Config, real: list[Any], ranks: list[Any]) -> bool:
    """Tell whether each dataset was asked for what its rank got; of a dispatcher, rank 0's."""
    for epoch, dealt in enumerate(real):
        got = [Counter(i for batch in rank for i in batch) for rank in dealt]
        asked = [one[1][epoch] for one in ranks]
        if config.mode == "dispatch":
            if not set().union(*got) <= set(asked[0]):  # workers of other ranks read ahead, too
                return False
        elif config.sampler == "stream":  # what drop_last leaves out was read
            if not all(mine <= read for mine, read in zip(got, asked, strict=True)):
                return False
        elif got != asked:
            return False
    return True


if __name__ == "__main__":
    main()
