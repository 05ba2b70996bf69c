"""Who would get which sample of a loader, on every rank, without a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from torchdoctor.model import Finding
from torchdoctor.shards import audit as counting
from torchdoctor.shards import picture, verdict
from torchdoctor.shards.audit import Resumed
from torchdoctor.shards.dealing import Epoch
from torchdoctor.shards.verdict import Seen
from torchdoctor.training import drawing
from torchdoctor.training.chain import Part, as_rank, chain, generators, is_stream, own
from torchdoctor.training.drawing import as_they_were


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


@dataclass(frozen=True, slots=True)
class Played:
    """A loader as one rank has it."""

    loader: Part
    samplers: Part
    """Its samplers, to draw from; the loader itself for a stream."""


@dataclass(frozen=True, slots=True)
class How:
    """How a loader is drawn from."""

    batch_size: int | None
    """Of a bare sampler."""
    tell: bool
    """Whether the epoch is told."""


def audit(  # noqa: PLR0913 - one keyword for each thing that may be told
    loader: Part,
    *,
    world_size: int = 2,
    epochs: int = 2,
    batch_size: int | None = None,
    set_epoch: bool = True,
    labels: Sequence[object] | None = None,
    resume_from: tuple[int, int] | None = None,
) -> Audit:
    """Return who would get which sample of *loader* in a job of *world_size* ranks.

    *loader* is a DataLoader (also one that accelerate or Lightning has prepared), a batch sampler,
    a sampler, or a function of rank and world size that returns one of them. It is not changed, no
    sample is read, and random generators are left as they were. Samplers are copied, with the
    place among the ranks that DistributedSampler and accelerate's BatchSamplerShard keep as
    attributes; what takes its place from elsewhere has to be given as a function. So has a stream,
    which is read: its samples are told apart by what they are, and numbered as they come.

    *batch_size* puts the indices of a bare sampler into batches; without *set_epoch* nobody is
    told the epoch; *labels* are the classes of the samples; *resume_from* is the world size of a
    run that goes on with this one, and the step of its first epoch after which it was interrupted
    (0: between two epochs).

    Raises:
        ValueError: the dataset is a stream, and no function of rank and world size gives it; a
            world size or *epochs* below 1, or a step below 0.

    """
    worlds = (world_size, *(resume_from or ())[:1])
    if min(*worlds, epochs) < 1 or (resume_from and resume_from[1] < 0):
        raise ValueError("world sizes and epochs start at 1, the step of resume_from at 0")
    how = How(batch_size, tell=set_epoch)
    first, found = _drawn(loader, world_size, epochs, how)
    resumed = None
    if resume_from is not None and found:
        world, step = resume_from
        resumed = counting.resumed(_drawn(loader, world, 1, how)[1][0], found[0], step)
    return judged(found, first, world_size, labels, resumed=resumed)


def _drawn(loader: Part, world: int, epochs: int, how: How) -> tuple[Part, list[Epoch]]:
    """Return *loader* as rank 0 of *world* has it, and the epochs that all of them would get."""
    ranks = [_rank(loader, rank, world) for rank in range(world)]
    every = [generators(part.samplers) for part in ranks]
    # In a job each rank has a copy of its own, with the same state: so all draw the same here.
    times = Counter(key for of_rank in every for key in of_rank)
    shared = [g for key, g in (every[0] if every else {}).items() if times[key] > 1]
    with as_they_were([g for of_rank in every for g in of_rank.values()]):
        return ranks[0].loader, [_epoch(ranks, shared, epoch, how) for epoch in range(epochs)]


def _rank(loader: Part, rank: int, world: int) -> Played:
    made = callable(loader) and not hasattr(loader, "__iter__")
    part = loader(rank, world) if made else loader
    if is_stream(part):
        if not made:
            raise ValueError(
                "a stream has no indices to audit: give a function of rank and world size that "
                "makes its loader, or use torchdoctor shards FILE.py:NAME, which reads it as each "
                "rank in a process of its own"
            )
        return Played(part, getattr(part, "base_dataloader", part))
    return Played(part, own(part) if made else as_rank(part, rank, world))


def _epoch(ranks: Sequence[Played], shared: Sequence[Part], epoch: int, how: How) -> Epoch:
    first = ranks[0].loader
    states = drawing.synchronized(first)
    known: dict[object, int] = {}
    found: Epoch = []
    for rank, part in enumerate(ranks):
        if rank and drawing.of_dispatcher(first):
            return drawing.shared_out(first, found[0], len(ranks))
        with nullcontext() if part is ranks[-1] else as_they_were(shared):
            if is_stream(part.loader):
                found.append(_read(part.samplers, known))
                continue
            drawing.synchronize(part.loader, states)
            if how.tell or drawing.tells_itself(part.loader):
                drawing.tell(part.loader, part.samplers, epoch)
            found.append(drawing.draw(part.samplers, how.batch_size).batches)
    return found


def _read(stream: Part, known: dict[object, int]) -> list[list[int]]:
    """Return the batches of a stream; what is no number is numbered as it first comes."""
    found = []
    for batch in stream:
        values = drawing.items(batch)
        found.append([v if isinstance(v, int) else known.setdefault(v, len(known)) for v in values])
    return found


def judged(  # noqa: PLR0913 - one parameter for each thing that is known of them
    epochs: Sequence[Epoch],
    loader: Part,
    world: int,
    labels: Sequence[object] | None = None,
    *,
    length: int | None = None,
    resumed: Resumed | None = None,
) -> Audit:
    """Return what is wrong with *epochs* that were drawn from *loader* as the ranks have it.

    *length* takes the place of the dataset's, where places in an order are counted, not samples.
    """
    parts = chain(loader)
    length = _length(parts, epochs) if length is None else length
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
        resumed,
        twice=drawing.shares(loader) > 1,
        stream=is_stream(loader),
        shares=drawing.shares(loader) > 0,
        drops=any(getattr(part, "drop_last", False) for part in parts),
        source=type(loader).__name__,
    )
    return Audit(verdict.findings(seen), tuple(epochs), seen)


def _length(parts: Sequence[Part], epochs: Sequence[Epoch]) -> int:
    for part in parts:
        for name in ("dataset", "data_source"):
            data = getattr(part, name, None)
            if data is not None and hasattr(data, "__len__") and not is_stream(part):
                return len(data)
    return max((i + 1 for e in epochs for r in e for b in r for i in b), default=0)
