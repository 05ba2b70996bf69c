"""Make a loader of which every rank gets its share, of one that is not so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module

from torchdoctor.model import Finding
from torchdoctor.training import drawing
from torchdoctor.training.chain import (
    Part,
    chain,
    is_stream,
    own,
    put_inner,
    samplers,
    with_samplers,
)

KEPT = (
    *("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn"),
    *("multiprocessing_context", "generator", "prefetch_factor", "persistent_workers"),
)
"""What a rebuilt loader has of the old one."""


class SharedOrder:
    """The order of another sampler, drawn alike on all ranks, of which each takes its share.

    All ranks get equally many: the last ones are filled from the front, as DistributedSampler does
    it. In a world of one it only makes the order the same everywhere.
    """

    def __init__(self, sampler: Part, seed: int, rank: int = 0, world: int = 1) -> None:
        self.sampler, self.seed, self.epoch = sampler, seed, 0
        self.rank, self.num_replicas = rank, world

    def set_epoch(self, epoch: int) -> None:
        """Take another order from now on."""
        self.epoch = epoch
        if callable(getattr(self.sampler, "set_epoch", None)):
            self.sampler.set_epoch(epoch)

    def __len__(self) -> int:
        return math.ceil(len(self.sampler) / self.num_replicas)

    def __iter__(self) -> Iterator[int]:
        order = self._order()
        missing = -len(order) % self.num_replicas
        order += (order * math.ceil(missing / max(len(order), 1)))[:missing]
        return iter(order[self.rank :: self.num_replicas])

    def _order(self) -> list[int]:
        found = [g for each in chain(self.sampler) if (g := getattr(each, "generator", None))]
        with drawing.as_they_were(found):
            drawing.seed_process(self.seed + self.epoch)
            for generator in found:
                generator.manual_seed(self.seed + self.epoch)
            return list(self.sampler)


def mended(  # noqa: PLR0913 - what decides how it is made
    loader: Part,
    findings: Sequence[Finding],
    rank: int,
    world: int,
    seed: int,
    *,
    evaluation: bool,
    prepares: bool = False,
) -> Part:
    """Return *loader* without *findings*, or as it is where nobody can tell how.

    *prepares*: accelerate is going to deal it out, so it must not be dealt out before.
    """
    names = {finding.name for finding in findings}
    if type(loader).__name__ in drawing.PREPARED and not is_stream(loader):
        return _prepared(loader, names, seed, evaluation=evaluation)
    hopeless = "sampler-fails" in names or names == {"uneven-steps-hang"}
    if is_stream(loader) or not hasattr(loader, "dataset") or hopeless:
        return loader
    sampler = samplers(loader)[-1]
    if drawing.is_rank_aware(sampler):
        if "sharded-twice" in names:
            made = _plain(sampler, shuffle=bool(sampler.shuffle) and not evaluation, seed=seed)
        else:
            made = _distributed(loader.dataset, sampler, rank, world, evaluation=evaluation)
    elif names == {"evaluation-sampler-shuffles"}:
        made = _torch().SequentialSampler(loader.dataset)
    elif prepares:
        made = SharedOrder(sampler, seed)
    else:
        made = _shared(loader, sampler, seed, rank, world, evaluation=evaluation)
    return _rebuilt(loader, made)


def _torch() -> Part:
    """Return the module that has loaders and samplers; whoever has a loader has imported it."""
    return import_module("torch.utils.data")


def _distributed(dataset: Part, sampler: Part, rank: int, world: int, *, evaluation: bool) -> Part:
    return _torch().DistributedSampler(
        dataset,
        num_replicas=world,
        rank=rank,
        shuffle=bool(sampler.shuffle) and not evaluation,
        seed=sampler.seed,
        drop_last=sampler.drop_last,
    )


def _shared(  # noqa: PLR0913 - what decides how it is made
    loader: Part, sampler: Part, seed: int, rank: int, world: int, *, evaluation: bool
) -> Part:
    kind = type(sampler).__name__
    random = kind == "RandomSampler" and not sampler.replacement
    if kind == "SequentialSampler" or random:
        return _torch().DistributedSampler(
            loader.dataset,
            num_replicas=world,
            rank=rank,
            shuffle=random and not evaluation,
            seed=seed,
        )
    return SharedOrder(sampler, seed, rank, world)


def _plain(sampler: Part, *, shuffle: bool, seed: int) -> Part:
    """Return the sampler of torch that does not shard, for a DistributedSampler."""
    if not shuffle:
        return _torch().SequentialSampler(sampler.dataset)
    generator = import_module("torch").Generator()
    generator.manual_seed(seed)
    return _torch().RandomSampler(sampler.dataset, generator=generator)


def _rebuilt(loader: Part, sampler: Part) -> Part:
    """Return a loader like *loader* with another innermost sampler."""
    found = samplers(loader)
    kept = {name: getattr(loader, name) for name in KEPT if hasattr(loader, name)}
    if not kept.get("num_workers"):
        kept = {n: v for n, v in kept.items() if n not in {"prefetch_factor", "timeout"}}
    if len(found) > 1 and type(found[0]).__name__ != "BatchSampler":  # one of one's own
        top = own(loader)
        put_inner(chain(top)[-2], sampler)
        return _torch().DataLoader(loader.dataset, batch_sampler=top, **kept)
    size = loader.batch_size
    drop = loader.drop_last
    if size is None and len(found) > 1:
        size, drop = found[0].batch_size, found[0].drop_last
    return _torch().DataLoader(loader.dataset, size, sampler=sampler, drop_last=drop, **kept)


def _prepared(loader: Part, names: set[str], seed: int, *, evaluation: bool) -> Part:
    """Return a loader that accelerate has prepared, with another innermost sampler.

    accelerate's own objects are kept: its loader is asked to take another sampler, in a copy.
    """
    top = own(loader)
    found = chain(top)
    sampler = found[-1]
    made = sampler
    if drawing.is_rank_aware(sampler):
        made = _plain(sampler, shuffle=bool(sampler.shuffle) and not evaluation, seed=seed)
    elif evaluation and "evaluation-sampler-shuffles" in names:
        made = _torch().SequentialSampler(loader.dataset)
    if made is sampler and hasattr(sampler, "initial_seed"):
        made.initial_seed = seed  # of the copy: accelerate's own sampler that seeds itself
    elif not evaluation and (names & {"rank-seeds-differ"} or made is not sampler):
        made = SharedOrder(made, seed) if type(made).__name__ != "SequentialSampler" else made
    if made is not sampler:
        put_inner(found[-2], made)
    if "uneven-steps-hang" in names:
        for each in found:
            if hasattr(each, "even_batches"):
                each.even_batches = True
    return with_samplers(loader, top)
