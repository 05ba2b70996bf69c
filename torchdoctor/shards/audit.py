"""Count what the ranks of a job get: who sees what, how often, and when one waits for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from torchdoctor.shards.dealing import Epoch, Rank

LARGE_CHI = 3.09
"""How many standard deviations a class may be off: one chance in a thousand."""


@dataclass(frozen=True, slots=True)
class Count:
    """One epoch in numbers. Ranks are positions; steps count from 1."""

    steps: tuple[int, ...]
    samples: tuple[int, ...]
    distinct: tuple[int, ...]
    """How many different samples each rank sees."""
    unseen: tuple[int, ...]
    """Samples that no rank sees."""
    seen: int
    """How many different samples all ranks together see."""
    repeated: tuple[int, ...]
    """Samples that are seen more than once, by one rank or several."""
    most: int
    """How often the most frequent sample is seen."""
    padding: bool
    """Whether the last batch of each rank explains all that is repeated."""
    whole_everywhere: bool
    """Whether every rank sees all that any rank sees."""
    waits: tuple[int, ...]
    """The ranks that still have a batch when the first one has none."""
    hang: int | None
    """The step at which they wait for ever; None when all have equally many."""


@dataclass(frozen=True, slots=True)
class Skew:
    """A class that one rank gets too many or too few of."""

    rank: int
    label: str
    got: int
    expected: float
    """What it would get if classes were dealt out evenly."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a run sees of one epoch that is interrupted, and goes on with another world size."""

    world: int
    step: int
    """After so many steps it was interrupted; 0: between two epochs."""
    lost: int
    """Seen by nobody, when as many steps are skipped as were done."""
    repeated: int
    by_samples: tuple[int, int]
    """Lost and repeated when as many samples are skipped instead, in whole steps."""
    batch: tuple[int, int]
    """Samples of a step of all ranks together, before and after."""


def count(epoch: Epoch, length: int) -> Count:
    """Return *epoch* in numbers; samples are 0 to *length* - 1."""
    times = Counter(i for rank in epoch for batch in rank for i in batch)
    inner = Counter(i for rank in epoch for batch in rank[:-1] for i in batch)
    own = [{i for batch in rank for i in batch} for rank in epoch]
    steps = tuple(len(rank) for rank in epoch)
    fewest = min(steps, default=0)
    uneven = fewest < max(steps, default=0)
    many = sum(times.values()) - len(times)
    return Count(
        steps,
        tuple(sum(map(len, rank)) for rank in epoch),
        tuple(map(len, own)),
        tuple(i for i in range(length) if i not in times),
        len(times),
        tuple(sorted(i for i, n in times.items() if n > 1)),
        max(times.values(), default=0),
        padding=bool(many) and max(inner.values(), default=0) <= 1 and many < _last(epoch),
        whole_everywhere=len(epoch) > 1 and len(times) > 1 and all(s == set(times) for s in own),
        waits=tuple(r for r, n in enumerate(steps) if n > fewest) if uneven else (),
        hang=fewest + 1 if uneven else None,
    )


def _last(epoch: Epoch) -> int:
    return sum(len(rank[-1]) for rank in epoch if rank)


def same_order(epochs: Sequence[Epoch]) -> bool:
    """Tell whether every epoch has one and the same order, and that not the dataset's own."""
    repeats = len(epochs) > 1 and all(epoch == epochs[0] for epoch in epochs[1:])
    return repeats and any(not _ascending(rank) for rank in epochs[0])


def _ascending(rank: Rank) -> bool:
    """Tell whether a rank goes through the dataset from front to back; the last batch is filled."""
    flat = [i for batch in rank for i in batch]
    backwards = [at for at, (a, b) in enumerate(pairwise(flat), 1) if b < a]
    inner = len(flat) - len(rank[-1]) if rank else 0
    return not backwards or (len(backwards) == 1 and backwards[0] >= inner)


def skews(epoch: Epoch, labels: Sequence[str] | Mapping[int, str]) -> list[Skew]:
    """Return the classes that are dealt out more unevenly than chance would, the worst first."""
    named = labels if isinstance(labels, Mapping) else dict(enumerate(labels))
    total = Counter(named.values())
    everything = sum(total.values())
    found: list[tuple[float, Skew]] = []
    for number, rank in enumerate(epoch):
        got = Counter(named[i] for batch in rank for i in batch if i in named)
        size = sum(got.values())
        for label, many in total.items():
            share = many / everything if everything else 0.0
            expected = size * share
            # Drawn without replacement: the variance of a hypergeometric distribution.
            left = max(everything - size, 0) / max(everything - 1, 1)
            spread = (expected * (1 - share) * left) ** 0.5
            off = abs(got[label] - expected)
            if off > max(LARGE_CHI * spread, 1.0):
                found.append((off / max(spread, 1e-9), Skew(number, label, got[label], expected)))
    return [skew for _, skew in sorted(found, key=lambda pair: -pair[0])]


def resumed(before: Epoch, after: Epoch, step: int) -> Resumed:
    """Return what comes of going on with *after* once *step* steps of *before* are done.

    As many steps are skipped as were done, as scripts and accelerate's skip_first_batches do.
    """
    batch = (_batch(before), _batch(after))
    done = [i for rank in before for each in rank[:step] for i in each]
    fitting = len(done) // batch[1] if batch[1] else 0
    lost, repeated = _met(done, after, step)
    return Resumed(len(before), step, lost, repeated, _met(done, after, fitting), batch)


def _met(done: Sequence[int], after: Epoch, skip: int) -> tuple[int, int]:
    """Return how many samples are lost and repeated against an epoch that is not interrupted."""
    whole = Counter(i for rank in after for each in rank for i in each)
    times = Counter([*done, *(i for rank in after for each in rank[skip:] for i in each)])
    lost = sum(i not in times for i in whole)
    return lost, sum(n > max(whole[i], 1) for i, n in times.items())


def _batch(epoch: Epoch) -> int:
    return sum(len(rank[0]) for rank in epoch if rank)
