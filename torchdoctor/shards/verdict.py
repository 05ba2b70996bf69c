"""From counts to findings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from torchdoctor.model import Evidence, Finding
from torchdoctor.registry import Check
from torchdoctor.shards.audit import Count, Resumed, Skew

FAMILY = "sampling"
FINDS = (
    "class-skew-between-ranks",
    "empty-shard",
    "rank-seeds-differ",
    "samples-repeated",
    "samples-unseen",
    "shards-overlap",
    "world-size-changed-on-resume",
)
"""Those of which nothing but this verb speaks; the others have the names of their lint rules."""
ABOUT = """Who gets which sample, counted index by index, without starting a job.

samples-unseen: an epoch leaves samples out. Some at the end, where drop_last asks for it: others
in each epoch with shuffling and set_epoch(), else always the same ones. Many, where something
shards what is sharded already.

shards-overlap: ranks see the same samples, and not just to fill up their last batch. Orders that
are drawn with different seeds overlap by chance: a sampler of one's own needs a generator that has
one seed on all ranks.

rank-seeds-differ: the ranks deal out one order among them, but each draws another one, as their
seeds differ. accelerate gives the order of rank 0 to all where a sampler has a `generator`; a
sampler of one's own without one, and use_seedable_sampler without set_seed(), need the same seed
on all ranks.

samples-repeated: the last batches are filled up with samples that were seen. A DistributedSampler
takes them from the head of the permutation, at most world size - 1; accelerate's even_batches
from the first batches, at most a batch of all ranks less one. A metric counts them twice, unless
outputs are gathered and cut (gather_for_metrics).

empty-shard: a rank gets nothing, as the dataset is smaller than the world and drop_last is set;
every rank then trains zero steps, silently.

class-skew-between-ranks: one rank gets more or less of a class than chance would give it. Without
shuffling rank r gets every world-th sample: data whose classes come in turn then is dealt out by
class. A permutation removes that.

world-size-changed-on-resume: between two epochs nothing is lost by it, whatever is said elsewhere:
only the samples of a step, and with them the learning rate that suits, change. In the middle of an
epoch a DistributedSampler goes on in the same order, as it is drawn from seed + epoch alone; but a
script that skips as many steps as were done skips too many samples, or too few. Skip as many
samples instead: then at most those of one step come twice."""


def as_check() -> Check:
    """Return this verb in the form in which checks are explained and listed."""
    return Check("shards", FAMILY, ABOUT, (), frozenset(), (), FINDS, lambda: iter(()))


@dataclass(frozen=True, slots=True)
class Seen:
    """All that was counted."""

    world: int
    length: int
    batch_size: int
    epochs: tuple[Count, ...]
    never: int = 0
    """How many samples no epoch shows."""
    same_order: bool = False
    skews: tuple[Skew, ...] = ()
    resumed: Resumed | None = None
    twice: bool = False
    """Whether a DistributedSampler stands in a loader that accelerate shards."""
    stream: bool = False
    shares: bool = False
    """Whether something in it deals out among ranks, well or not."""
    drops: bool = False
    """Whether drop_last is asked for somewhere."""
    source: str = "index arithmetic"


def findings(seen: Seen) -> tuple[Finding, ...]:
    """Return what is wrong with how samples are dealt out, the gravest first."""
    if not seen.epochs:
        return ()
    first = seen.epochs[0]
    every = [
        *_unequal(seen, first),
        *_coverage(seen, first),
        *_overlap(seen, first),
        *_order(seen),
        *_skewed(seen),
        *_resumed(seen),
    ]
    return tuple(sorted(every, key=lambda f: ("error", "warning", "note").index(f.severity)))


def _finding(
    name: str,
    severity: str,
    summary: str,
    seen: Seen,
    *facts: tuple[str, object],
    where: Mapping[str, int | str] | None = None,
) -> Finding:
    evidence = tuple(Evidence(f"shards.{n}", str(v), seen.source) for n, v in facts)
    return Finding(name, severity, summary, evidence, family=FAMILY, where=where)  # type: ignore[arg-type]


def _unequal(seen: Seen, epoch: Count) -> Iterator[Finding]:
    if empty := [rank for rank, many in enumerate(epoch.samples) if not many]:
        who = "Every rank" if len(empty) == seen.world else f"Rank {_ranks(empty)}"
        yield _finding(
            "empty-shard",
            "error",
            f"{who} gets no sample at all of {seen.length}: it trains 0 steps, silently.",
            seen,
            ("samples", _listed(epoch.samples)),
            where={"rank": empty[0]},
        )
    if epoch.hang is not None:
        short = [r for r in range(seen.world) if r not in epoch.waits]
        yield _finding(
            "uneven-steps-hang",
            "error",
            f"Rank {_ranks(short)} has {epoch.hang - 1} batches an epoch, rank "
            f"{_ranks(epoch.waits)} more: in step {epoch.hang} they wait for it until the timeout.",
            seen,
            ("steps", _listed(epoch.steps)),
            where={"rank": short[0], "step": epoch.hang},
        )


def _coverage(seen: Seen, epoch: Count) -> Iterator[Finding]:
    many = len(epoch.unseen)
    if not many:
        return
    facts = (("unseen", f"{many} of {seen.length}: {_some(epoch.unseen)}"),)
    tail = many < max(seen.world * seen.batch_size, 1)
    if seen.twice:
        yield _finding(
            "sharded-twice",
            "error",
            f"{many} of {seen.length} samples are seen by no rank: the DistributedSampler shards, "
            "and accelerate shards its batches again; leave the sampler out.",
            seen,
            *facts,
        )
    elif seen.drops and tail:
        over = f"; over {len(seen.epochs)} epochs {seen.never} are never seen"
        yield _finding(
            "sampler-drops-tail",
            "note",
            f"drop_last leaves {many} of {seen.length} samples out of an epoch"
            f"{over if len(seen.epochs) > 1 else ''}.",
            seen,
            *facts,
        )
    else:
        yield _finding(
            "samples-unseen",
            "warning" if tail else "error",
            f"{many} of {seen.length} samples are seen by no rank in an epoch.",
            seen,
            *facts,
        )


def _overlap(seen: Seen, epoch: Count) -> Iterator[Finding]:
    if not epoch.repeated:
        return
    times = f"up to {epoch.most} times"
    facts = (
        ("repeated", f"{len(epoch.repeated)} of {epoch.seen}: {_some(epoch.repeated)}"),
        ("samples", _listed(epoch.samples)),
    )
    if epoch.padding:
        yield _finding(
            "samples-repeated",
            "note",
            "The last batches are filled up with samples that were seen already: "
            f"{len(epoch.repeated)} of {seen.length}, {times}. A metric counts them so, unless "
            "outputs are gathered and cut.",
            seen,
            *facts,
        )
    elif epoch.whole_everywhere and not seen.shares:
        yield _finding(
            "iterable-not-sharded" if seen.stream else "loader-not-sharded",
            "error",
            f"Every one of {seen.world} ranks sees all {epoch.seen} samples ({times} an epoch): "
            "nothing shards this loader.",
            seen,
            *facts,
        )
    elif seen.world == 1 or (seen.stream and epoch.most > 1 and _own_repeats(epoch)):
        yield _finding(
            "iterable-not-sharded" if seen.stream else "samples-repeated",
            "error" if seen.stream else "note",
            f"{len(epoch.repeated)} of {epoch.seen} samples are seen {times} in an epoch, by one "
            f"and the same rank{': its workers each yield all of it' if seen.stream else ''}.",
            seen,
            *facts,
        )
    else:
        yield _finding(
            "shards-overlap",
            "error",
            f"{len(epoch.repeated)} of {epoch.seen} samples are seen {times} in an epoch: the "
            "shards of the ranks overlap, and not only to fill the last batch.",
            seen,
            *facts,
        )


def _own_repeats(epoch: Count) -> bool:
    return any(a > b for a, b in zip(epoch.samples, epoch.distinct, strict=True))


def _order(seen: Seen) -> Iterator[Finding]:
    if seen.same_order and not seen.stream:
        yield _finding(
            "missing-set-epoch",
            "warning",
            f"All of {len(seen.epochs)} epochs have one shuffled order: call "
            "sampler.set_epoch(epoch) before each. The ranks together still see everything.",
            seen,
            ("epochs", len(seen.epochs)),
        )


def _skewed(seen: Seen) -> Iterator[Finding]:
    if seen.skews:
        worst = seen.skews[0]
        yield _finding(
            "class-skew-between-ranks",
            "warning",
            f"Rank {worst.rank} gets {worst.got} samples of class {worst.label}, where an even "
            f"deal gives {worst.expected:.1f}: the order of the data goes with the ranks; shuffle.",
            seen,
            *(
                (f"class.{s.label}.rank.{s.rank}", f"{s.got} of {s.expected:.1f}")
                for s in seen.skews[:6]
            ),
            where={"rank": worst.rank},
        )


def _resumed(seen: Seen) -> Iterator[Finding]:
    after = seen.resumed
    if after is None or after.world == seen.world:
        return
    batches = f"{after.batch[0]} samples a step become {after.batch[1]}"
    facts = (("world.before", after.world), ("world.after", seen.world))
    if not after.lost and not after.repeated:
        yield _finding(
            "world-size-changed-on-resume",
            "note",
            f"Going on with {seen.world} ranks instead of {after.world} loses and repeats no "
            f"sample of this epoch; {batches}.",
            seen,
            *facts,
        )
        return
    yield _finding(
        "world-size-changed-on-resume",
        "warning",
        f"Going on after step {after.step} with {seen.world} ranks instead of {after.world}, and "
        f"skipping as many steps, shows {after.repeated} samples twice and {after.lost} not at "
        f"all; {batches}. Skip as many samples instead, or resume between epochs.",
        seen,
        *facts,
        ("step", after.step),
        ("skipped.by_samples", "{} lost, {} repeated".format(*after.by_samples)),
    )


def _ranks(ranks: Sequence[int]) -> str:
    names = [str(rank) for rank in ranks[:6]]
    if len(ranks) > len(names):
        names.append("...")
    return ", ".join(names)


def _listed(numbers: Sequence[int]) -> str:
    return _some(numbers, 12)


def _some(numbers: Sequence[int], most: int = 8) -> str:
    shown = " ".join(map(str, numbers[:most]))
    return f"{shown} ..." if len(numbers) > most else shown
