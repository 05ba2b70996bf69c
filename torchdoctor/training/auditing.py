"""Who would get which sample of a loader, on every rank, without a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from torchdoctor.model import Finding
from torchdoctor.shards import audit as counting
from torchdoctor.shards import picture, verdict
from torchdoctor.shards.dealing import Epoch, batched
from torchdoctor.shards.verdict import Seen
from torchdoctor.training.chain import (
    Part,
    as_rank,
    as_they_were,
    batches,
    chain,
    generators,
    is_stream,
    tell_epoch,
)


@dataclass(frozen=True, slots=True)
class Audit:
    """What was counted, and what is wrong with it. Printed, it is a table."""

    findings: tuple[Finding, ...]
    epochs: tuple[Epoch, ...]
    """For each epoch and rank the indices of each batch."""
    seen: Seen

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong: notes do not count."""
        return all(finding.severity == "note" for finding in self.findings)

    def __str__(self) -> str:
        rows = [f"{f.severity} {f.name}: {f.summary}" for f in self.findings]
        for number, (epoch, count) in enumerate(zip(self.epochs, self.seen.epochs, strict=True)):
            rows += [f"epoch {number}", *picture.table(epoch, count), *picture.steps(count)]
        return "\n".join(rows)


def audit(  # noqa: PLR0913 - one keyword for each thing that may be told
    loader: Part,
    *,
    world_size: int = 2,
    epochs: int = 2,
    batch_size: int | None = None,
    set_epoch: bool = True,
    labels: Sequence[object] | None = None,
) -> Audit:
    """Return who would get which sample of *loader* in a job of *world_size* ranks.

    *loader* is a DataLoader (also one that accelerate has prepared), a batch sampler, a sampler,
    or a function of rank and world size that returns one of them. It is not changed, no sample is
    read, and random generators are left as they were. Samplers are copied, with the place among
    the ranks that DistributedSampler and accelerate's BatchSamplerShard keep as attributes; what
    takes its place from elsewhere has to be given as a function.

    *batch_size* puts the indices of a bare sampler into batches; without *set_epoch* nobody is
    told the epoch; *labels* are the classes of the samples.

    Raises:
        ValueError: the dataset is a stream, which has no indices (see ``torchdoctor shards``), or
            a loader that accelerate dispatches from rank 0.

    """
    ranks = [_rank(loader, rank, world_size) for rank in range(world_size)]
    every = [generators(part) for part in ranks]
    # In a job each rank has a copy of its own, with the same state: so all draw the same here.
    times = Counter(key for of_rank in every for key in of_rank)
    shared = [g for key, g in (every[0] if every else {}).items() if times[key] > 1]
    found: list[Epoch] = []
    with as_they_were([g for of_rank in every for g in of_rank.values()]):
        for epoch in range(epochs):
            dealt: Epoch = []
            for rank, part in enumerate(ranks):
                if set_epoch:
                    tell_epoch(part, epoch)
                last = rank == world_size - 1
                with nullcontext() if last else as_they_were(shared):
                    dealt.append(_draw(part, batch_size))
            found.append(dealt)
    return _judged(found, ranks, loader, world_size, labels)


def _rank(loader: Part, rank: int, world: int) -> Part:
    made = callable(loader) and not hasattr(loader, "__iter__")
    part = loader(rank, world) if made else loader
    if is_stream(part):
        raise ValueError(
            "a stream has no indices to audit; torchdoctor shards FILE.py:NAME reads it as each "
            "rank in a process of its own"
        )
    if type(part).__name__ == "DataLoaderDispatcher":
        raise ValueError("rank 0 reads for all here; audit the loader before it is prepared")
    return part if made else as_rank(part, rank, world)


def _draw(part: Part, batch_size: int | None) -> list[list[int]]:
    """Return the batches of one rank in one epoch."""
    found = list(batches(part))
    if batch_size is None or any(len(batch) != 1 for batch in found):
        return found
    return batched([i for batch in found for i in batch], batch_size, drop_last=False)


def _judged(
    epochs: list[Epoch],
    ranks: Sequence[Part],
    loader: Part,
    world: int,
    labels: Sequence[object] | None,
) -> Audit:
    parts = [*chain(ranks[0]), *([] if callable(loader) else chain(loader))]
    names = {type(part).__name__ for part in parts}
    length = _length(parts, epochs)
    counts = tuple(counting.count(epoch, length) for epoch in epochs)
    never = set(counts[0].unseen).intersection(*(c.unseen for c in counts[1:])) if counts else ()
    skews = counting.skews(epochs[0], [str(label) for label in labels]) if labels else []
    largest = max((len(b) for e in epochs for r in e for b in r), default=1)
    seen = Seen(
        world,
        length,
        largest,
        counts,
        len(never),
        counting.same_order(epochs),
        tuple(skews),
        twice=names >= {"DistributedSampler", "BatchSamplerShard"},
        drops=any(getattr(part, "drop_last", False) for part in parts),
        source=type(loader).__name__ if not callable(loader) else "the loader",
    )
    return Audit(verdict.findings(seen), tuple(epochs), seen)


def _length(parts: Sequence[Part], epochs: Sequence[Epoch]) -> int:
    for part in parts:
        for name in ("dataset", "data_source"):
            data = getattr(part, name, None)
            if data is not None and hasattr(data, "__len__"):
                return len(data)
    return max((i + 1 for e in epochs for r in e for b in r for i in b), default=0)
