"""A loader, its samplers, and how they are made to play another rank."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

Part = Any
"""A loader or sampler of torch, of accelerate, or of one's own: known by its attributes."""

PLACES = (("rank", "num_replicas"), ("process_index", "num_processes"), ("rank", "world_size"))
"""What samplers call their place among the ranks, and how many there are."""
INNER = ("batch_sampler", "sampler")
DEEPEST = 8


def chain(part: Part) -> list[Part]:
    """Return *part* and the samplers in it, from the outside in."""
    found = [part]
    while len(found) < DEEPEST:
        # A loader names a sampler of its own too, which its batch sampler does not use.
        inner = next((s for n in INNER if (s := getattr(found[-1], n, None)) is not None), None)
        if inner is None:
            break
        found.append(inner)
    return found


def knows_ranks(part: Part) -> bool:
    """Tell whether *part* itself has a place among ranks."""
    return any(hasattr(part, place) and hasattr(part, many) for place, many in PLACES)


def is_stream(loader: Part) -> bool:
    """Tell whether *loader* iterates a dataset without indices."""
    dataset = getattr(loader, "dataset", None)
    return any(kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__)


def as_rank(part: Part, rank: int, world: int) -> Part:
    """Return the samplers of *part* as *rank* of *world* would have them; *part* stays as it is."""
    parts = chain(part)
    if hasattr(parts[0], "dataset") and len(parts) > 1 and not knows_ranks(parts[0]):
        parts = parts[1:]  # the loader itself: it need not be copied, only its samplers
    copies = [copy.copy(each) for each in parts]
    for each in copies:
        for place, many in PLACES:
            if hasattr(each, place) and hasattr(each, many):
                setattr(each, place, rank)
                setattr(each, many, world)
        _recount(each, world)
    for outer, inner in pairwise(copies):
        name = next(n for n in INNER if getattr(outer, n, None) is not None)
        setattr(outer, name, inner)
    return copies[0]


def _recount(sampler: Part, world: int) -> None:
    """Work out anew what a DistributedSampler keeps of its length."""
    if not (hasattr(sampler, "num_samples") and hasattr(sampler, "total_size")):
        return
    length = len(sampler.dataset)
    drops = getattr(sampler, "drop_last", False) and length % world
    sampler.num_samples = math.ceil((length - world) / world if drops else length / world)
    sampler.total_size = sampler.num_samples * world


def tell_epoch(part: Part, epoch: int) -> None:
    """Tell the epoch to whatever in *part* wants to know it."""
    for each in chain(part):
        if callable(getattr(each, "set_epoch", None)):
            each.set_epoch(epoch)


def batches(part: Part) -> Iterator[list[int]]:
    """Yield the indices of each batch; a sample alone is a batch of its own."""
    inner = getattr(part, "batch_sampler", None)
    if inner is None and hasattr(part, "dataset"):
        inner = getattr(part, "sampler", None) if not hasattr(part, "num_replicas") else None
    if inner is not None and hasattr(part, "dataset"):
        part = inner
    for entry in part:
        yield list(map(int, entry)) if isinstance(entry, Iterable) else [int(entry)]


def generators(part: Part) -> dict[int, Part]:
    """Return the random generators of *part* and its samplers, by their identity."""
    return {
        id(g): g
        for each in chain(part)
        if hasattr(g := getattr(each, "generator", None), "get_state")
    }


@contextmanager
def as_they_were(found: Iterable[Part]) -> Iterator[None]:
    """Put the generators *found*, and torch's own, back to where they were before."""
    torch = sys.modules.get("torch")
    states = [(generator, generator.get_state()) for generator in found]
    whole = torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)
        if torch is not None:
            torch.set_rng_state(whole)
