"""A loader, its samplers, and how they are made to play another rank."""

from __future__ import annotations

import copy
import math
from itertools import pairwise
from typing import Any

Part = Any
"""A loader or sampler of torch, of accelerate, or of one's own: known by its attributes."""

PLACES = (("rank", "num_replicas"), ("process_index", "num_processes"), ("rank", "world_size"))
"""What samplers call their place among the ranks, and how many there are."""
INNER = ("batch_sampler", "sampler")
DEEPEST = 8
PLAIN = (str, bytes, list, tuple, dict, set, range)


def inner(part: Part) -> Part:
    """Return the sampler that *part* draws from; None for the innermost one."""
    if _hides(part):
        return part.dataset._sampler  # noqa: SLF001 - Lightning has no other name for it
    # A loader names a sampler of its own too, which its batch sampler does not use.
    return next((s for name in INNER if (s := getattr(part, name, None)) is not None), None)


def put_inner(part: Part, sampler: Part) -> None:
    """Make *part* draw from *sampler*."""
    if _hides(part):
        part.dataset = copy.copy(part.dataset)
        part.dataset._sampler = sampler  # noqa: SLF001 - likewise
        return
    name = next(n for n in INNER if getattr(part, n, None) is not None)
    setattr(part, name, sampler)


def _hides(part: Part) -> bool:
    """Tell whether *part* is Lightning's DistributedSampler over the order of another sampler."""
    return type(part).__name__ == "DistributedSamplerWrapper"


def chain(part: Part) -> list[Part]:
    """Return *part* and the samplers in it, from the outside in."""
    found = [part]
    while len(found) < DEEPEST and (within := inner(found[-1])) is not None:
        found.append(within)
    return found


def samplers(part: Part) -> list[Part]:
    """Return the samplers in *part*, from the outside in, without the loader."""
    found = chain(part)
    return found[1:] if is_loader(part) and len(found) > 1 else found


def is_loader(part: Part) -> bool:
    """Tell whether *part* is a loader, not a sampler."""
    return hasattr(part, "dataset") and hasattr(part, "num_workers")


def is_stream(loader: Part) -> bool:
    """Tell whether *loader* iterates a dataset without indices."""
    dataset = getattr(loader, "dataset", None)
    return any(kind.__name__ == "IterableDataset" for kind in type(dataset).__mro__)


def own(part: Part) -> Part:
    """Return copies of the samplers of *part*; drawing from them leaves its own as they are."""
    parts = samplers(part)
    copies = [_copy(each) for each in parts]
    for outer, within in pairwise(copies):
        put_inner(outer, within)
    return copies[0]


def with_samplers(loader: Part, top: Part) -> Part:
    """Return a loader of the kind and with all that *loader* has, which draws from *top*."""
    again = _twin(loader)
    name = "batch_sampler" if loader.batch_sampler is not None else "sampler"
    if hasattr(loader, "base_dataloader"):
        again.__dict__["base_dataloader"] = base = _twin(loader.base_dataloader)
        base.__dict__[name] = top
    else:
        again.__dict__[name] = top
    return again


def _twin(loader: Part) -> Part:
    """Return a copy of *loader*, whose class may say that it is another one."""
    found = object.__new__(type(loader))
    found.__dict__.update(loader.__dict__)
    return found


def _copy(sampler: Part) -> Part:
    """Return a copy of one sampler with random numbers of its own; data are not copied."""
    kept = [value for value in vars(sampler).values() if _is_shared(value)]
    try:
        return copy.deepcopy(sampler, {id(value): value for value in kept})
    except (TypeError, AttributeError, RuntimeError):  # it holds what nobody can copy
        return copy.copy(sampler)


def _is_shared(value: object) -> bool:
    if is_generator(value):
        return True  # its state is put back
    if isinstance(value, PLAIN) or hasattr(value, "dtype"):
        return False
    return hasattr(value, "__getitem__") or hasattr(value, "__iter__")


def as_rank(part: Part, rank: int, world: int) -> Part:
    """Return the samplers of *part* as *rank* of *world* would have them; *part* stays as it is."""
    top = own(part)
    for each in chain(top):
        for place, many in PLACES:
            if hasattr(each, place) and hasattr(each, many):
                setattr(each, place, rank)
                setattr(each, many, world)
        _recount(each, world)
    return top


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
        if callable(getattr(each, "set_epoch", None)) and not is_loader(each):
            each.set_epoch(epoch)


def generators(part: Part) -> dict[int, Part]:
    """Return the random generators that *part* and its samplers hold, by their identity."""
    return {
        id(value): value
        for each in chain(part)
        for value in getattr(each, "__dict__", {}).values()
        if is_generator(value)
    }


def is_generator(value: object) -> bool:
    """Tell whether *value* is a generator of torch."""
    return hasattr(value, "get_state") and hasattr(value, "manual_seed")
