"""From runs of the harness to what they prove, and what they cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from torchdoctor.model import CannotTell, Evidence, Finding, Outcome
from torchdoctor.registry import Check
from torchdoctor.training.proving import Proof, Trained

FAMILY = "training"
PROVES = ("replicas-equal", "loss-equal", "resume-equal", "shards-disjoint")
"""The checks, by what they prove."""
FINDS = (
    *("training-run-failed", "replicas-differ", "loss-differs", "resume-differs"),
    "training-shards-overlap",
)
TOLERANCE = {"off": (1e-7, 1e-7), "bf16": (1.6e-2, 1e-5), "fp16": (1e-3, 1e-5)}
"""Relative and absolute, of float64, bfloat16 and float16: torch.testing.assert_close's own."""
TITLES = {
    "replicas-equal": "After a small training all ranks have the same weights.",
    "loss-equal": "Several ranks have the losses that one process has with the same samples.",
    "resume-equal": "A run that goes on from a checkpoint ends as one that was not interrupted.",
    "shards-disjoint": "No sample of an epoch is seen by two ranks, or twice.",
}
ABOUT = """Whether this machine trains right on several processes, proven by a small training.

replicas-equal: after all steps every rank has the same weights and the same optimizer, bit for
bit; else gradients are not averaged, or some rank reads wrong numbers.

loss-equal: each step has the loss that one process has with the samples of all, within what
torch.testing.assert_close allows for the type (float64 without AMP: 1e-7). That several processes
learn what one would learn with the larger batch is all that DDP promises: not that N ranks are as
good as one with the small batch, and not that a learning rate still suits.

resume-equal: a run that goes on from the checkpoint in the middle ends with the same weights, the
same losses and the same random numbers on every rank, bit for bit, as one that was never
interrupted. It takes more than the weights: optimizer, scaler, epoch and place in the epoch,
random numbers of each rank, and, with three ranks or more, DDP's order of buckets, which changes
after the first backward pass and with it how sums are rounded.

shards-disjoint: within an epoch no sample is seen by two ranks, or twice.

The run also says what it cost. Scaling efficiency is the time of a step on one rank over that on
N ranks with as many samples each: 7.2 times faster on 8 GPUs is 90 %. Waiting for input is what a
step waits for its samples. Communication is what a step takes longer than one whose gradients stay
on the rank: DDP overlaps the two by itself, so this is what overlapping cannot hide. The model is
small, so that these shares say what the machine costs, not what your model will.

training-run-failed: the run did not come to its end; run.json has the first failure, which is
that of the rank that failed by itself, not of those that then missed it. popular advice to read
the last lines of rank 0 shows the latter."""


def as_checks() -> dict[str, Check]:
    """Return what is proven in the form in which checks are explained and listed."""
    owner = {
        "replicas-equal": ("replicas-differ",),
        "loss-equal": ("loss-differs",),
        "resume-equal": ("resume-differs",),
        "shards-disjoint": ("training-shards-overlap",),
    }
    checks = {
        name: Check(name, FAMILY, _about(name), (), frozenset(), (), finds, lambda: iter(()))
        for name, finds in owner.items()
    }
    finds = ("training-run-failed",)
    whole = Check("train-check", FAMILY, ABOUT, (), frozenset(), (), finds, lambda: iter(()))
    return {"train-check": whole, **checks}


def _about(name: str) -> str:
    paragraphs = ABOUT.split("\n\n")
    own = next(p for p in paragraphs if p.startswith(f"{name}: "))
    rest = own.removeprefix(f"{name}: ")
    return f"{TITLES[name]}\n\n{rest[0].upper()}{rest[1:]}\n\nA proof of torchdoctor train-check."


def outcomes(proof: Proof) -> tuple[Outcome, ...]:
    """Return for each proof whether it holds, does not, or could not be tried."""
    return tuple(_judged(name, proof) for name in PROVES)


def _judged(name: str, proof: Proof) -> Outcome:
    prove: Callable[[Proof], Iterator[Finding]] = {
        "replicas-equal": _replicas,
        "loss-equal": _loss,
        "resume-equal": _resume,
        "shards-disjoint": _shards,
    }[name]
    try:
        found = tuple(prove(proof))
    except CannotTell as reason:
        return Outcome(name, "unknown", reason=str(reason))
    return Outcome(name, "found" if found else "clear", found)


def failures(proof: Proof) -> tuple[Finding, ...]:
    """Return the runs that did not come to their end."""
    runs = {
        "with all ranks": proof.whole,
        "of one rank": proof.single,
        "of one rank with the samples of all": proof.alone,
        "from the checkpoint": proof.resumed,
    }
    return tuple(_failed(what, run) for what, run in runs.items() if run and not run.done)


def _failed(what: str, run: Trained) -> Finding:
    first = run.record.get("first_failure")
    told = first if isinstance(first, dict) else {}
    message = str(told.get("message") or "nobody said why").strip()
    last = message.splitlines()[-1][:300]
    rank = told.get("rank")
    who = f"rank {rank}: " if rank is not None and f"rank {rank}" not in last else ""
    where: dict[str, int | str] = {} if rank is None else {"rank": cast("int", rank)}
    if told.get("stage"):
        where["stage"] = str(told["stage"])
    return Finding(
        "training-run-failed",
        "error",
        f"The run {what} failed; first {who}{last}",
        (Evidence("training.first_failure", f"{told.get('kind')}: {message[:300]}", "run.json"),),
        family=FAMILY,
        where=where or None,
    )


# ---- the proofs ---------------------------------------------------------------------------------


def _replicas(proof: Proof) -> Iterator[Finding]:
    ranks = _ranks(proof.whole, "with all ranks")
    digests = [str(rank["digest"]) for rank in ranks]
    if len(digests) < 2:  # noqa: PLR2004 - a pair
        raise CannotTell("one rank has nobody to be equal to")
    if other := [rank for rank, digest in enumerate(digests) if digest != digests[0]]:
        yield _finding(
            "replicas-differ",
            f"After {proof.wish.steps} steps the weights of rank {other[0]} are other ones than "
            "those of rank 0.",
            *((f"digest.rank.{rank}", digest[:16]) for rank, digest in enumerate(digests[:8])),
            rank=other[0],
        )


def _loss(proof: Proof) -> Iterator[Finding]:
    together = _numbers(_ranks(proof.whole, "with all ranks")[0], "losses")
    alone = _numbers(_ranks(proof.alone, "of one rank with the samples of all")[0], "losses")
    relative, absolute = TOLERANCE[proof.wish.amp]
    pairs = list(zip(together, alone, strict=False))
    if len(together) != len(alone) or not pairs:
        raise CannotTell("the two runs have no equal number of steps")
    off = [abs(a - b) > absolute + relative * abs(b) for a, b in pairs]
    if any(off):
        step = off.index(True)
        yield _finding(
            "loss-differs",
            f"In step {step + 1} the loss of {proof.wish.nproc} ranks is {together[step]:.9g}, "
            f"that of one process with the same samples {alone[step]:.9g}.",
            ("tolerance", f"{relative:g} relative, {absolute:g} absolute (assert_close)"),
        )


def largest_difference(proof: Proof) -> float | None:
    """Return the largest relative difference of two losses; None where they were not compared."""
    if not (proof.whole.done and proof.alone and proof.alone.done):
        return None
    together, alone = (_numbers(r.ranks[0], "losses") for r in (proof.whole, proof.alone))
    return max(
        (abs(a - b) / max(abs(b), 1e-300) for a, b in zip(together, alone, strict=False)),
        default=None,
    )


def _resume(proof: Proof) -> Iterator[Finding]:
    whole = _ranks(proof.whole, "with all ranks")
    again = _ranks(proof.resumed, "from the checkpoint")
    left = proof.wish.steps - proof.wish.middle
    if left <= 0:
        raise CannotTell("there is no step left after the checkpoint; ask for two or more")
    for rank, (a, b) in enumerate(zip(whole, again, strict=True)):
        for what in ("losses", "draws", "indices"):
            if cast("list[object]", a[what])[-left:] != b[what]:
                yield _resumed_otherwise(what, rank, proof)
                return
        if a["digest"] != b["digest"]:
            yield _resumed_otherwise("weights", rank, proof)
            return


def _resumed_otherwise(what: str, rank: int, proof: Proof) -> Finding:
    named = {"draws": "random numbers", "indices": "samples"}.get(what, what)
    return _finding(
        "resume-differs",
        f"From the checkpoint of step {proof.wish.middle} on, rank {rank} has other {named} than "
        "in the run that was not interrupted.",
        rank=rank,
    )


def _shards(proof: Proof) -> Iterator[Finding]:
    ranks = _ranks(proof.whole, "with all ranks")
    each = int(cast("int", ranks[0]["steps_an_epoch"]))
    steps = [cast("list[list[int]]", rank["indices"]) for rank in ranks]
    for epoch in range(-(-proof.wish.steps // each)):
        owner: dict[int, int] = {}
        for rank, own in enumerate(steps):
            for index in (i for step in own[epoch * each : (epoch + 1) * each] for i in step):
                if index in owner:
                    yield _finding(
                        "training-shards-overlap",
                        f"In epoch {epoch} sample {index} is seen by rank {owner[index]} and by "
                        f"rank {rank}.",
                        rank=rank,
                    )
                    return
                owner[index] = rank


def _ranks(run: Trained | None, what: str) -> Sequence[Mapping[str, object]]:
    if run is None or not run.done:
        raise CannotTell(f"the run {what} did not come to its end")
    return run.ranks


def _numbers(rank: Mapping[str, object], name: str) -> list[float]:
    return cast("list[float]", rank[name])


def _finding(
    name: str, summary: str, *facts: tuple[str, object], rank: int | None = None
) -> Finding:
    evidence = tuple(Evidence(f"training.{fact}", str(value), "the runs") for fact, value in facts)
    where = None if rank is None else {"rank": rank}
    return Finding(name, "error", summary, evidence, family=FAMILY, where=where)


# ---- what it cost -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of a step, medians, on the slowest rank."""

    step: float
    """All of it."""
    wait: float
    """Waiting for its samples."""
    communication: float
    """What synchronising the ranks adds."""
    single: float | None
    """A step of one rank alone, with as many samples."""

    @property
    def input_share(self) -> float:
        """Return the share of a step that waits for its samples."""
        return self.wait / self.step if self.step else 0.0

    @property
    def communication_share(self) -> float:
        """Return the share of a step that synchronising adds."""
        return min(self.communication / self.step, 1.0) if self.step else 0.0

    @property
    def efficiency(self) -> float | None:
        """Return how much of N times the work of one rank is done in the same time."""
        return self.single / self.step if self.single is not None and self.step else None


def costs(proof: Proof) -> Costs | None:
    """Return what a step cost; None where there is no run to tell it."""
    if not proof.whole.done:
        return None
    slowest = max(proof.whole.ranks, key=_step)
    measured = cast("dict[str, float]", slowest["communication"])
    added = max(measured["with"] - measured["without"], 0.0) if measured else 0.0
    single = proof.single.ranks[0] if proof.single and proof.single.done else None
    return Costs(_step(slowest), _wait(slowest), added, None if single is None else _step(single))


def _step(rank: Mapping[str, object]) -> float:
    seconds = cast("dict[str, list[float]]", rank["seconds"])
    whole = [a + b for a, b in zip(seconds["wait"], seconds["step"], strict=False)]
    return statistics.median(whole[1:] or whole)  # the first one warms caches up


def _wait(rank: Mapping[str, object]) -> float:
    waits = cast("dict[str, list[float]]", rank["seconds"])["wait"]
    return statistics.median(waits[1:] or waits)
