"""Draw the indices that a rank would get, and leave everything as it was."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from torchdoctor.shards.dealing import Rank, batched, dispatched
from torchdoctor.training.chain import Part, chain, put_inner, tell_epoch, with_samplers

RANK_AWARE = frozenset({"DistributedSampler", "BatchSamplerShard", "IterableDatasetShard"})


PREPARED = frozenset({"DataLoaderShard", "DataLoaderDispatcher"})
"""The loaders of accelerate."""


class At(int):
    """An index that remembers at which place of its sampler's order it came."""

    at: int


@dataclass(frozen=True, slots=True)
class Drawn:
    """What one rank drew in one epoch."""

    batches: Rank
    places: Rank
    """The same, as places in the order of the innermost sampler."""
    order: tuple[int, ...]
    """That order, whole: ranks that deal it out among them need to have one and the same."""


class Recorded:
    """A sampler that remembers what it has yielded, and marks where."""

    def __init__(self, sampler: Part) -> None:
        self._sampler = sampler
        self.order: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._sampler, name)

    def __len__(self) -> int:
        return len(self._sampler)

    def __iter__(self) -> Iterator[object]:
        for entry in self._sampler:
            many = isinstance(entry, Iterable) and getattr(entry, "ndim", 1) > 0
            yield [self._mark(i) for i in entry] if many else self._mark(entry)

    def _mark(self, index: Part) -> At:
        marked = At(index)
        marked.at = len(self.order)
        self.order.append(int(marked))
        return marked


def draw(part: Part, batch_size: int | None = None) -> Drawn:
    """Return what the samplers of *part* yield in an epoch.

    They go on from where this leaves them: give copies, where that matters. *batch_size* puts the
    indices of a bare sampler into batches.
    """
    found = chain(part)
    recorded = Recorded(found[-1])
    if len(found) > 1:
        put_inner(found[-2], recorded)
    try:
        entries = list(recorded if len(found) == 1 else part)
    finally:
        if len(found) > 1:
            put_inner(found[-2], found[-1])
    drawn = [list(entry) if isinstance(entry, Iterable) else [entry] for entry in entries]
    if batch_size is not None and all(len(batch) == 1 for batch in drawn):
        drawn = batched([i for batch in drawn for i in batch], batch_size, drop_last=False)
    return Drawn(
        [list(map(int, batch)) for batch in drawn],
        [[getattr(i, "at", -1) for i in batch] for batch in drawn],
        tuple(recorded.order),
    )


def of_dispatcher(part: Part) -> bool:
    """Tell whether rank 0 reads *part* for all ranks."""
    return type(part).__name__ == "DataLoaderDispatcher"


def is_rank_aware(part: Part) -> bool:
    """Tell whether *part* itself takes its share of an order."""
    return not RANK_AWARE.isdisjoint(kind.__name__ for kind in type(part).__mro__)


def shares(part: Part) -> int:
    """Return how many parts of *part* deal out among ranks: two of them deal out twice."""
    return of_dispatcher(part) + sum(map(is_rank_aware, chain(part)))


def has_one_order(part: Part) -> bool:
    """Tell whether the ranks deal out the order of an innermost sampler that knows no ranks."""
    parts = chain(part)
    return not is_rank_aware(parts[-1]) and shares(part) > 0


def shared_out(loader: Part, main: Rank, world: int) -> list[Rank]:
    """Return what all ranks get of what rank 0 reads."""
    return dispatched(
        main,
        world,
        split_batches=bool(loader.split_batches),
        drop_last=bool(loader._drop_last),  # noqa: SLF001 - it has no other name
    )


def tells_itself(loader: Part) -> bool:
    """Tell whether *loader* tells its samplers the epoch, whoever forgets it."""
    return type(loader).__name__ in {*PREPARED, "_FabricDataLoader"}


def tell(loader: Part, top: Part, epoch: int) -> None:
    """Tell *top*, the samplers of *loader*, the epoch, as *loader* itself would.

    Which samplers that reaches depends on the release: up to accelerate 1.0 not one that stands
    behind the batches that it deals out.
    """
    if type(loader).__name__ not in PREPARED:
        tell_epoch(top, epoch)
        return
    stand_in = with_samplers(loader, top)
    for part in (stand_in, getattr(stand_in, "base_dataloader", stand_in)):
        part.__dict__["dataset"] = None  # the user's own may want to know it, but not from us
    stand_in.set_epoch(epoch)


# ---- streams ------------------------------------------------------------------------------------


def first_batches(loader: Part, many: int) -> list[tuple[object, ...]]:
    """Return the first *many* batches of a stream, by what tells their samples apart."""
    # accelerate's own iteration would speak to other ranks.
    plain: Part = getattr(loader, "base_dataloader", loader)
    return [tuple(items(batch)) for batch in islice(plain, many)]


def items(batch: Part) -> list[int | str]:
    """Return what tells the samples of a collated *batch* apart: a number, or a hash."""
    if isinstance(batch, dict):
        batch = list(batch.values())
    if isinstance(batch, list | tuple) and batch and hasattr(batch[0], "shape"):
        batch = batch[0]
    if hasattr(batch, "tolist"):
        batch = batch.tolist()
    return [_mark(item) for item in (batch if isinstance(batch, list | tuple) else [batch])]


def _mark(item: Part) -> int | str:
    while isinstance(item, list) and len(item) == 1:
        item = item[0]
    return item if isinstance(item, int) else hashlib.sha256(repr(item).encode()).hexdigest()[:16]


# ---- random numbers -----------------------------------------------------------------------------


@contextmanager
def as_they_were(generators: Iterable[Part]) -> Iterator[None]:
    """Put *generators*, and those of the process, back to where they were before."""
    states = [(generator, generator.get_state()) for generator in generators]
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    python = random.getstate()
    whole = torch.get_rng_state() if torch is not None else None
    arrays = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)
        random.setstate(python)
        if torch is not None:
            torch.set_rng_state(whole)
        if numpy is not None:
            numpy.random.set_state(arrays)


def seed_process(seed: int) -> None:
    """Seed Python, NumPy and torch."""
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.manual_seed(seed)


def synchronized(loader: Part) -> dict[str, Part]:
    """Return the random states that accelerate gives from rank 0 to all before each epoch."""
    kinds = [str(getattr(kind, "value", kind)) for kind in getattr(loader, "rng_types", None) or ()]
    found: dict[str, Part] = {}
    generator = getattr(loader, "synchronized_generator", None)
    if generator is not None and "generator" in kinds:
        found["generator"] = generator.get_state()
    torch = sys.modules.get("torch")
    if "torch" in kinds and torch is not None:
        found["torch"] = torch.get_rng_state()
    return found


def synchronize(loader: Part, states: dict[str, Part]) -> None:
    """Take the *states* of rank 0, as accelerate does."""
    generator = getattr(loader, "synchronized_generator", None)
    if "generator" in states and generator is not None:
        generator.set_state(states["generator"])
    if "torch" in states:
        sys.modules["torch"].set_rng_state(states["torch"])
