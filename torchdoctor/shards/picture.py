"""Shards as lines of text: a table of the ranks, a strip of the samples, a strip of the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchdoctor.shards.audit import Count
from torchdoctor.shards.dealing import Epoch

WIDE = 60
"""The most columns of a strip; a longer dataset has several samples in each."""
MOST_RANKS = 16
SHOWN = 6
"""How many of its first samples a rank's row shows."""


def table(epoch: Epoch, count: Count) -> Iterator[str]:
    """Yield one row for each rank: steps, samples, those that others see too, the first ones."""
    yield f"{'rank':>4}  {'steps':>7}  {'samples':>9}  {'shared':>7}  first"
    owners = Counter(i for rank in epoch for i in {i for batch in rank for i in batch})
    for number, rank in enumerate(epoch[:MOST_RANKS]):
        flat = [i for batch in rank for i in batch]
        shared = sum(owners[i] > 1 for i in set(flat))
        first = " ".join(map(str, flat[:SHOWN])) + (" ..." if len(flat) > SHOWN else "")
        steps, samples = count.steps[number], count.samples[number]
        yield f"{number:>4}  {steps:>7,}  {samples:>9,}  {shared:>7,}  {first}".rstrip()
    if len(epoch) > MOST_RANKS:
        yield f" ...  and {len(epoch) - MOST_RANKS} more ranks"
    together = sum(count.samples)
    yield (
        f" all  {max(count.steps, default=0):>7,}  {together:>9,}  {len(count.repeated):>7,}  "
        f"{count.seen:,} different, {len(count.unseen):,} unseen"
    )


def strips(epoch: Epoch, length: int) -> Iterator[str]:
    """Yield which samples each rank sees, as a strip of characters, and what they mean."""
    each = max(-(-length // WIDE), 1)
    columns = -(-length // each)
    for number, rank in enumerate(epoch[:MOST_RANKS]):
        times = Counter(i for batch in rank for i in batch)
        cells = (
            [times[i] for i in range(at * each, min((at + 1) * each, length))]
            for at in range(columns)
        )
        yield f"{number:>4}  {''.join(map(_cell, cells))}"
    unit = "a sample" if each == 1 else f"{each:,} samples"
    yield f"      a column is {unit}: . not seen, # seen, + some of them, 2 seen more than once"


def _cell(times: list[int]) -> str:
    if max(times) > 1:
        return "2"
    return "#" if all(times) else "+" if any(times) else "."


def steps(count: Count) -> Iterator[str]:
    """Yield the steps of each rank around the one in which some wait for ever."""
    if count.hang is None:
        return
    start = max(count.hang - 12, 1)
    for number, many in enumerate(count.steps[:MOST_RANKS]):
        strip = "".join(
            "#" if step < count.hang else "w" if step <= many else "-"
            for step in range(start, min(max(count.steps), start + WIDE) + 1)
        )
        note = "has no more" if many < count.hang else "waits for ever"
        yield f"{number:>4}  {strip}  {note}"
    yield f"      a column is a step, the first is {start:,}: # done by all, w waits, - has none"
