"""How torch and accelerate deal samples out to ranks, epoch by epoch.

Each function is the arithmetic of one class, on lists of indices: DistributedSampler,
BatchSampler and the loop over an IterableDataset of torch; BatchSamplerShard,
IterableDatasetShard and DataLoaderDispatcher of accelerate (1.15). What they do was compared with
the classes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torchdoctor.shards.permutation import randperm

Batch = list[int]
Rank = list[Batch]
"""The batches of one rank in one epoch."""
Epoch = list[Rank]
Sampler = Literal["distributed", "none"]
Prepare = Literal["none", "accelerate", "dispatch"]
Split = Literal["none", "worker", "rank", "both"]


@dataclass(frozen=True, slots=True)
class Setup:
    """A loader as far as it decides who gets what."""

    length: int = 37
    """A prime by default, so that nothing comes out even by chance."""
    world: int = 2
    batch_size: int = 4
    sampler: Sampler = "distributed"
    prepare: Prepare = "none"
    shuffle: bool = True
    seed: int = 0
    sampler_drop_last: bool = False
    drop_last: bool = False
    set_epoch: bool = True
    even_batches: bool = True
    split_batches: bool = False
    stream: bool = False
    """Whether the dataset is an IterableDataset, which no sampler can shard."""
    workers: int = 0
    split: Split = "none"
    """By what the stream's own __iter__ shards itself."""


def deal(setup: Setup, epoch: int) -> Epoch:
    """Return the batches of every rank in *epoch*.

    Raises:
        ValueError: accelerate refuses it: split_batches with a batch size that the number of
            ranks does not divide.

    """
    if setup.prepare == "accelerate" and setup.world == 1:  # it leaves such a loader as it is
        setup = replace(setup, prepare="none")
    _refuse(setup)
    if setup.prepare == "dispatch":
        main = _batches(setup, 0, epoch)
        return dispatched(
            main, setup.world, split_batches=setup.split_batches, drop_last=setup.drop_last
        )
    if setup.stream:
        return [_stream(setup, rank) for rank in range(setup.world)]
    ranks = (_batches(setup, rank, epoch) for rank in range(setup.world))
    if setup.prepare == "none":
        return list(ranks)
    return [
        batch_sampler_shard(
            batches,
            rank,
            setup.world,
            batch_size=setup.batch_size,
            split_batches=setup.split_batches,
            even_batches=setup.even_batches,
            drop_last=setup.drop_last,
        )
        for rank, batches in enumerate(ranks)
    ]


def _refuse(setup: Setup) -> None:
    """Raise what accelerate raises: batches can be split into equal parts only."""
    split = setup.prepare != "none" and setup.split_batches and setup.batch_size % setup.world
    one = setup.batch_size == 1 and (setup.stream or setup.prepare == "dispatch")
    if split and not one:
        raise ValueError(
            f"split_batches needs a batch size that {setup.world} ranks divide; "
            f"{setup.batch_size} is none"
        )


def _batches(setup: Setup, rank: int, epoch: int) -> Rank:
    """Return the batches of the loader of *rank*, before anything prepares it."""
    if setup.stream:
        return _loader_of_stream(setup, rank)
    at = epoch if setup.set_epoch or setup.sampler == "none" else 0
    if setup.sampler == "distributed":
        indices = distributed_sampler(
            setup.length,
            setup.world,
            rank,
            shuffle=setup.shuffle,
            seed=setup.seed + at,
            drop_last=setup.sampler_drop_last,
        )
    elif setup.shuffle:
        # Nobody shares a seed unless something prepares the loader: an order of its own each.
        own = rank * 7919 if setup.prepare == "none" else 0
        indices = randperm(setup.length, setup.seed + at + own)
    else:
        indices = list(range(setup.length))
    return batched(indices, setup.batch_size, drop_last=setup.drop_last)


# ---- torch --------------------------------------------------------------------------------------


def distributed_sampler(  # noqa: PLR0913 - as many as the sampler takes
    length: int, world: int, rank: int, *, shuffle: bool, seed: int, drop_last: bool
) -> list[int]:
    """Return the indices that a DistributedSampler yields; *seed* has the epoch in it."""
    indices = randperm(length, seed) if shuffle else list(range(length))
    if drop_last and length % world:
        each = math.ceil((length - world) / world)
        indices = indices[: each * world]
    else:
        each = math.ceil(length / world)
        padding = each * world - length
        if padding:
            indices += (indices * math.ceil(padding / length))[:padding]
    return indices[rank : each * world : world]


def batched(indices: Iterable[int], size: int, *, drop_last: bool) -> Rank:
    """Return *indices* in batches, as BatchSampler makes them."""
    every = list(indices)
    found = [every[at : at + size] for at in range(0, len(every), size)]
    return found[:-1] if drop_last and found and len(found[-1]) < size else found


def worker_share(setup: Setup, rank: int, worker: int) -> range:
    """Return what the stream's own __iter__ yields in one worker of one rank."""
    many = max(setup.workers, 1)
    start, step = {
        "none": (0, 1),
        "worker": (worker, many),
        "rank": (rank, setup.world),
        "both": (rank * many + worker, setup.world * many),
    }[setup.split]
    return range(start, setup.length, step)


def in_turn(workers: Sequence[Rank]) -> Rank:
    """Return the batches of the *workers* of one loader, in the order in which it yields them."""
    found: Rank = []
    for turn in range(max(map(len, workers), default=0)):
        found += [batches[turn] for batches in workers if turn < len(batches)]
    return found


def _loader_of_stream(setup: Setup, rank: int) -> Rank:
    return in_turn(
        [
            batched(worker_share(setup, rank, worker), setup.batch_size, drop_last=setup.drop_last)
            for worker in range(max(setup.workers, 1))
        ]
    )


# ---- accelerate ---------------------------------------------------------------------------------


def _stream(setup: Setup, rank: int) -> Rank:
    if setup.prepare == "none":
        return _loader_of_stream(setup, rank)
    size = setup.batch_size // setup.world if setup.split_batches else setup.batch_size
    return in_turn(
        [
            batched(
                iterable_dataset_shard(
                    worker_share(setup, rank, worker),
                    rank,
                    setup.world,
                    batch_size=setup.batch_size,
                    drop_last=setup.drop_last,
                    split_batches=setup.split_batches,
                ),
                max(size, 1),
                drop_last=setup.drop_last,
            )
            for worker in range(max(setup.workers, 1))
        ]
    )


def batch_sampler_shard(  # noqa: PLR0913 - as many as the class takes
    batches: Rank,
    rank: int,
    world: int,
    *,
    batch_size: int,
    split_batches: bool,
    even_batches: bool,
    drop_last: bool,
) -> Rank:
    """Return what accelerate's BatchSamplerShard yields on *rank* of the whole *batches*."""
    if split_batches:
        return list(
            _halves(batches, rank, world, size=batch_size, even=even_batches, drop_last=drop_last)
        )
    return _every_nth(batches, rank, world, size=batch_size, even=even_batches, drop_last=drop_last)


def _halves(  # noqa: PLR0913 - likewise
    batches: Rank, rank: int, world: int, *, size: int, even: bool, drop_last: bool
) -> Iterator[Batch]:
    """Yield this rank's part of each batch; the last one is filled from the first."""
    each = size // world
    part = slice(each * rank, each * (rank + 1))
    for batch in batches:
        if len(batch) == size:
            yield batch[part]
    if drop_last or not batches or len(batches[-1]) == size:
        return
    last = batches[-1]
    if even:
        yield (last + _filling(batches[0], size))[part]
    elif len(last) > each * rank:
        yield last[part]


def _every_nth(  # noqa: PLR0913 - likewise
    batches: Rank, rank: int, world: int, *, size: int, even: bool, drop_last: bool
) -> Rank:
    """Return every *world*-th whole batch; what is missing at the end comes from the beginning."""
    whole = len(batches) // world * world
    if whole and len(batches[whole - 1]) < size:
        whole -= world
    mine = batches[rank:whole:world]
    rest = batches[whole:]
    if drop_last or not rest:
        return mine
    if not even:
        return mine + rest[rank : rank + 1]
    filling = _filling([i for batch in batches[:world] for i in batch], world * size)
    rest, at = list(rest), 0
    if len(rest[-1]) < size:
        at = size - len(rest[-1])
        rest[-1] = rest[-1] + filling[:at]
    while len(rest) < world:
        rest.append(filling[at : at + size])
        at += size
    return [*mine, rest[rank]]


def _filling(first: Batch, least: int) -> Batch:
    """Return *first* doubled until it is at least *least* long, as accelerate does."""
    found = list(first)
    while len(found) < least:
        found += found
    return found


def iterable_dataset_shard(  # noqa: PLR0913 - as many as the class takes
    items: Iterable[int],
    rank: int,
    world: int,
    *,
    batch_size: int,
    drop_last: bool,
    split_batches: bool,
) -> list[int]:
    """Return what accelerate's IterableDatasetShard yields on *rank*."""
    together = batch_size if split_batches else batch_size * world
    each = batch_size // world if split_batches else batch_size
    part = slice(each * rank, each * (rank + 1))
    groups = batched(items, together, drop_last=drop_last)
    if groups and len(groups[-1]) < together:
        first = list(groups[0])
        while len(groups[-1]) < together:
            groups[-1] = groups[-1] + first
    return [item for group in groups for item in group[part]]


def dispatched(main: Rank, world: int, *, split_batches: bool, drop_last: bool) -> Epoch:
    """Return what accelerate's DataLoaderDispatcher hands out of rank 0's batches."""
    if split_batches:
        together = [list(batch) for batch in main]
    else:
        groups = [main[at : at + world] for at in range(0, len(main), world)]
        if drop_last and groups and len(groups[-1]) < world:
            groups.pop()
        together = [[i for batch in group for i in batch] for group in groups]
    ranks: Epoch = [[] for _ in range(world)]
    for number, batch in enumerate(together):
        each, whole = len(batch) // world, batch
        if not drop_last and number == len(together) - 1 and len(batch) % world:
            whole, each = batch + together[0][:world], each + 1
        for rank, batches in enumerate(ranks):
            batches.append(whole[rank * each : (rank + 1) * each])
    return ranks
