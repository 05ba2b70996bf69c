"""Every kind of loader, sanitized and then really iterated, in a job of gloo processes.

Run by a Python with torch, once for each rank, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
set. Rank 0 prints a JSON object: for each kind what the sanitizer found, and what the ranks got.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]
from torch.utils import data  # type: ignore[import-not-found,unused-ignore]

from torchdoctor.training import LoaderError, sanitize

N = 24
Loader = Any


class Numbers(data.Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A dataset that keeps what was asked of it."""

    def __init__(self, length: int = N) -> None:
        self.length = length
        self.read: list[int] = []

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        return torch.tensor(index)


class Stream(data.IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A stream, which may share itself out."""

    def __init__(self, start: int = 0, step: int = 1) -> None:
        self.start, self.step = start, step

    def __iter__(self) -> Iterator[Any]:
        return (torch.tensor(i) for i in range(self.start, N, self.step))


class Own(data.Sampler):  # type: ignore[misc,type-arg,unused-ignore]
    """A sampler of one's own, which draws from the random numbers of the process."""

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(N).tolist())

    def __len__(self) -> int:
        return N


class Uneven(data.Sampler):  # type: ignore[misc,type-arg,unused-ignore]
    """A sampler that takes its place among the ranks, with more for rank 0."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __iter__(self) -> Iterator[int]:
        return iter(range(16, N) if self.rank else range(16))

    def __len__(self) -> int:
        return 8 if self.rank else 16


def generator(seed: int) -> Any:
    found = torch.Generator()
    found.manual_seed(seed)
    return found


def plain(rank: int, world: int) -> dict[str, Callable[[], Loader]]:
    """Return the loaders that nothing prepares."""
    d = Numbers()

    def loader(*args: Any, **options: Any) -> Loader:
        return data.DataLoader(d, *args, **options)

    def distributed(place: int = rank, shuffle: bool = True, length: int = N) -> Loader:  # noqa: FBT001, FBT002 - short
        own = Numbers(length)
        sampler = data.DistributedSampler(own, world, place, shuffle=shuffle)
        return data.DataLoader(own, 2, sampler=sampler)

    return {
        "distributed": distributed,
        "distributed, 23": lambda: distributed(length=23),
        "distributed, in workers": lambda: data.DataLoader(
            d, 2, sampler=data.DistributedSampler(d, world, rank), num_workers=1
        ),
        "all are rank 0": lambda: distributed(0),
        "whole": lambda: loader(2),
        "whole, shuffled": lambda: loader(2, shuffle=True),
        "own sampler": lambda: loader(2, sampler=Own()),
        "uneven": lambda: loader(2, sampler=Uneven(rank)),
        "with replacement, each by itself": lambda: loader(
            2, sampler=data.WeightedRandomSampler(torch.ones(N), N, generator=generator(rank))
        ),
        "with replacement, all the same": lambda: loader(
            2, sampler=data.WeightedRandomSampler(torch.ones(N), N, generator=generator(3))
        ),
        "stream, whole": lambda: data.DataLoader(Stream(), 2),
        "stream, shared": lambda: data.DataLoader(Stream(rank, world), 2),
        "evaluation, shuffled": distributed,
        "evaluation": lambda: distributed(shuffle=False),
    }


def unprepared(rank: int, world: int) -> dict[str, Callable[[], Loader]]:
    """Return the loaders that accelerate prepares."""
    d, short = Numbers(), Numbers(23)

    def loader(*args: Any, **options: Any) -> Loader:
        return data.DataLoader(d, *args, **options)

    deal = {
        "num_replicas": world,
        "rank": rank,
        "shuffle": False,
    }
    return {
        "default": lambda: loader(2),
        "shuffle": lambda: loader(2, shuffle=True),
        "sequential": lambda: loader(2, sampler=data.SequentialSampler(d)),
        "random": lambda: loader(2, sampler=data.RandomSampler(d)),
        "random, a generator each": lambda: loader(
            2, sampler=data.RandomSampler(d, generator=generator(rank))
        ),
        "weighted": lambda: loader(
            2, sampler=data.WeightedRandomSampler(torch.ones(N), N, replacement=False)
        ),
        "weighted, with replacement": lambda: loader(
            2, sampler=data.WeightedRandomSampler(torch.ones(N), N)
        ),
        "subset": lambda: loader(2, sampler=data.SubsetRandomSampler(range(N))),
        "own": lambda: loader(2, sampler=Own()),
        "distributed": lambda: loader(2, sampler=data.DistributedSampler(d, **deal)),
        "batches of distributed": lambda: loader(
            batch_sampler=data.BatchSampler(data.DistributedSampler(d, **deal), 2, drop_last=False)
        ),
        "sampler of batches": lambda: loader(
            batch_size=None,
            sampler=data.BatchSampler(data.SequentialSampler(d), 2, drop_last=False),
        ),
        "stream": lambda: data.DataLoader(Stream(), 2),
        "21": lambda: data.DataLoader(Numbers(21), 2),
        "23": lambda: data.DataLoader(short, 2),
        "23, drop_last": lambda: data.DataLoader(short, 2, drop_last=True),
        "4": lambda: loader(4),
        "4, shuffle": lambda: loader(4, shuffle=True),
    }


MODES: tuple[tuple[str, dict[str, object], tuple[str, ...]], ...] = (
    ("", {}, ()),
    ("dispatch", {"dispatch_batches": True}, ("sampler of batches",)),
    ("split", {"split_batches": True}, ()),
    ("uneven", {"even_batches": False}, ()),
    ("seedable", {"use_seedable_sampler": True}, ()),
    ("no dispatch", {"dispatch_batches": False}, ()),
)
"""What accelerate is asked for, and the kinds that are left out of it."""


def accelerator(options: dict[str, object]) -> Any:
    """Return an Accelerator with *options*, whatever its release calls them."""
    accelerate = __import__("accelerate")
    try:
        config = __import__("accelerate.utils", fromlist=["x"]).DataLoaderConfiguration(**options)
    except AttributeError:  # before 0.28
        return accelerate.Accelerator(cpu=True, **options)
    return accelerate.Accelerator(cpu=True, dataloader_config=config)


def got(loader: Loader) -> list[list[int]] | str:
    """Return what this rank really gets, batch by batch, or why the loader itself cannot."""
    try:
        return [[int(i) for i in batch.reshape(-1)] for batch in loader]
    except AttributeError as error:  # accelerate 0.27 with a sampler of batches
        return str(error)


def everybody(value: object) -> list[Any]:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, value)
    return found


def outcome(loader: Loader, **options: Any) -> dict[str, object]:
    """Sanitize and then iterate *loader*; return both."""
    try:
        sanitize(loader, **options)
        said = []
    except LoaderError as fault:
        said = [finding.name for finding in fault.findings]
    before = torch.get_rng_state()
    names = everybody(said)
    same = bool(torch.equal(before, torch.get_rng_state()))
    return {"found": names[0], "agree": all(n == names[0] for n in names), "same": same}


def truth(loader: Loader) -> dict[str, object]:
    """Return what the ranks really got, all together."""
    ranks = everybody(got(loader))
    if any(isinstance(rank, str) for rank in ranks):
        return {"broken": ranks}
    times = Counter(i for rank in ranks for batch in rank for i in batch)
    return {"ranks": ranks, "union": len(times), "most": max(times.values(), default=0)}


def of_kind(make: Callable[[], Loader], acc: Any = None, **options: Any) -> dict[str, object]:
    rank = dist.get_rank()
    torch.manual_seed(1000 + rank)  # nobody has seeded the ranks alike
    try:
        made = make()
        loader = acc.prepare(made) if acc else made
    except ValueError as error:
        return {"refused": str(error)}
    found = outcome(loader, **options)
    try:
        mended = sanitize(loader, mend=True, **options)
        found["mended"] = truth(mended)
    except LoaderError as fault:
        found["left"] = [finding.name for finding in fault.findings]
    torch.manual_seed(1000 + rank)
    again = make()
    torch.manual_seed(1000 + rank)
    return found | {"truth": truth(acc.prepare(again) if acc else again)}


def main() -> None:
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank, world = dist.get_rank(), dist.get_world_size()
    found: dict[str, object] = {}
    if "plain" in sys.argv[1:]:
        for name, make in plain(rank, world).items():
            evaluation = name.startswith("evaluation")
            found[f"plain: {name}"] = of_kind(make, evaluation=evaluation)
    if "accelerate" in sys.argv[1:]:
        for mode, options, without in MODES:
            acc = accelerator(dict(options))
            for name, make in unprepared(rank, world).items():
                if name not in without:
                    found[f"{mode}: {name}" if mode else name] = of_kind(make, acc)
    if rank == 0:
        print(json.dumps(found))  # noqa: T201
    dist.barrier()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
