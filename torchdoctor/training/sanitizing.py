"""Look at a loader right before the training, on every rank, and stop what would go wrong.

Inside a job every rank draws the indices that it would get, as the loader would draw them, and
all ranks compare: so nothing depends on which class shards, or on what it is called. Outside of
one, ranks are played, as ``audit`` does.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING

from torchdoctor.model import Evidence, Finding
from torchdoctor.training import drawing
from torchdoctor.training.chain import Part, as_rank, chain, generators, is_stream, own
from torchdoctor.training.drawing import Drawn, as_they_were

if TYPE_CHECKING:
    from torchdoctor.shards.dealing import Epoch

FAMILY = "sampling"
EPOCHS = 2
"""Two: an order that is another one in each is a shuffled one."""
RAISED = ("error", "warning")
UNLIKE = (7, 1_000_003)
"""Seeds of played ranks that nobody has seeded alike: the first, and what lies between them."""


class LoaderError(ValueError):
    """A loader that must not be trained with; ``findings`` say why, the gravest first."""

    def __init__(self, findings: Sequence[Finding], loader: Part) -> None:
        self.findings = tuple(findings)
        said = "; ".join(f"{f.name}: {f.summary}" for f in findings)
        super().__init__(f"{type(loader).__name__}: {said}")


@dataclass(frozen=True, slots=True)
class Share:
    """What one rank tells the others."""

    epochs: tuple[Drawn, ...] = ()
    stream: tuple[tuple[object, ...], ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Job:
    """The ranks, and how they speak to each other; a world of one plays them all."""

    rank: int
    world: int
    group: Part = None
    live: bool = False

    def gather(self, value: object) -> list[Part]:
        """Return the *value* of every rank."""
        dist = import_module("torch.distributed")
        found: list[Part] = [None] * self.world
        dist.all_gather_object(found, value, group=self.group)
        return found


def sanitize(  # noqa: PLR0913 - one keyword for each thing that may be told
    loader: Part,
    *,
    evaluation: bool = False,
    accelerator: Part = None,
    mend: bool = False,
    world_size: int = 2,
    peek: int = 1,
    seed: int = 0,
    group: Part = None,
) -> Part:
    """Return *loader* if every rank gets its share of it, and raise if one does not.

    Call it on every rank, after the process group is there and before the first batch is read;
    outside of a job *world_size* ranks are played. *loader* is one of plain torch, one that
    accelerate or Lightning has prepared, or, with *accelerator*, one that it is going to prepare.

    Found are: a loader that nothing shards, one that is sharded twice, orders that differ between
    ranks since their seeds do, shards that overlap or leave samples out, steps that are uneven,
    and with *evaluation* one that shuffles. A function of rank and world size that makes the
    loader may stand for it. With *mend* a loader is returned that has none of
    these, where one can be made: samplers are replaced, with *seed* for the order; the given
    loader stays as it is. Of a stream, which has no indices, the first *peek* batches are read
    and compared (0: none). *group* is the process group to speak in.

    All ranks raise alike. Nothing else is read, and random generators are left as they were.

    Raises:
        LoaderError: with the findings, errors and warnings; those that could not be mended.

    """
    job = _job(world_size, group)
    findings = look(loader, job, evaluation=evaluation, accelerator=accelerator, peek=peek)
    if not findings:
        return loader
    if not mend:
        raise LoaderError(findings, loader)
    from torchdoctor.training import mending  # noqa: PLC0415 - only for this

    mended = mending.mended(
        loader,
        findings,
        job.rank,
        job.world,
        seed,
        evaluation=evaluation,
        prepares=accelerator is not None,
    )
    left = look(mended, job, evaluation=evaluation, accelerator=accelerator, peek=peek)
    if left:
        raise LoaderError(left, mended)
    return mended


def look(
    loader: Part, job: Job, *, evaluation: bool = False, accelerator: Part = None, peek: int = 1
) -> tuple[Finding, ...]:
    """Return what is wrong with *loader*: errors and warnings, the same on every rank."""
    if job.live:
        made = prepared(loader, accelerator, job.rank, job.world)
        return judge(made, _gathered(made, job, peek), evaluation=evaluation)
    played = [prepared(loader, accelerator, rank, job.world) for rank in range(job.world)]
    found = judge(played[0], _played(played, alike=True), evaluation=evaluation)
    if not found and not is_stream(played[0]):
        apart = judge(played[0], _played(played, alike=False), evaluation=evaluation)
        for finding in apart:  # right as long as somebody seeds all ranks alike
            warnings.warn(f"{finding.summary} Seed all ranks alike.", stacklevel=3)
    return found


def _job(world: int, group: Part) -> Job:
    dist = import_module("torch.distributed")
    if dist.is_available() and dist.is_initialized() and dist.get_world_size(group) > 1:
        return Job(dist.get_rank(group), dist.get_world_size(group), group, live=True)
    return Job(0, world)


def prepared(loader: Part, accelerator: Part, rank: int, world: int) -> Part:
    """Return *loader* as *accelerator* would prepare it for *rank*; as it is without one."""
    if callable(loader) and not hasattr(loader, "__iter__"):
        loader = loader(rank, world)
    if accelerator is None:
        return loader
    how = {
        name: value
        for name in ("split_batches", "even_batches", "dispatch_batches", "use_seedable_sampler")
        if (value := getattr(accelerator, name, None)) is not None
    }
    state = generators(loader)
    with as_they_were(state.values()):
        return import_module("accelerate.data_loader").prepare_data_loader(
            loader,
            num_processes=world,
            process_index=rank,
            device=import_module("torch").device("cpu"),
            put_on_device=True,  # without it nothing is dispatched
            rng_types=list(getattr(accelerator, "rng_types", None) or ["generator"]),
            **how,
        )


# ---- what each rank gets ------------------------------------------------------------------------


def _gathered(loader: Part, job: Job, peek: int) -> list[Share]:
    states = job.gather(drawing.synchronized(loader))[0]
    return job.gather(_share(loader, states, peek))


def _share(loader: Part, states: Mapping[str, Part], peek: int) -> Share:
    try:
        with as_they_were(generators(loader).values()):
            if is_stream(loader):
                told = () if _is_shared_stream(loader) else drawing.first_batches(loader, peek)
                return Share(stream=tuple(told))
            return Share(_draws(loader, own(loader), dict(states)))
    except Exception as error:  # noqa: BLE001 - the other ranks wait to hear of it
        return Share(fault=f"{type(error).__name__}: {error}")


def _draws(loader: Part, top: Part, states: dict[str, Part]) -> tuple[Drawn, ...]:
    found = []
    for epoch in range(EPOCHS):
        drawing.synchronize(loader, states if not epoch else {})
        drawing.tell(loader, top, epoch)
        found.append(drawing.draw(top))
    return tuple(found)


def _played(parts: Sequence[Part], *, alike: bool) -> list[Share]:
    """Return what ranks would get; not *alike*: that nobody has given the same seed."""
    first = parts[0]
    if is_stream(first):
        return [Share() for _ in parts]
    states = drawing.synchronized(first)
    found = []
    for rank, part in enumerate(parts):
        with as_they_were(generators(part).values()):
            top = as_rank(part, rank, len(parts)) if part is parts[rank - 1] else own(part)
            if not alike:
                drawing.seed_process(UNLIKE[0] + rank * UNLIKE[1])
            found.append(Share(_draws(part, top, states)))
    return found


def _is_shared_stream(loader: Part) -> bool:
    """Tell whether accelerate deals the stream out: from rank 0, or each rank its own part."""
    kinds = {type(getattr(p, "dataset", p)).__name__ for p in chain(loader)}
    return drawing.of_dispatcher(loader) or "IterableDatasetShard" in kinds


# ---- what is wrong with it ----------------------------------------------------------------------


def judge(loader: Part, shares: Sequence[Share], *, evaluation: bool) -> tuple[Finding, ...]:
    """Return the errors and warnings in what the ranks get."""
    world = len(shares)
    if faults := [(rank, share.fault) for rank, share in enumerate(shares) if share.fault]:
        rank, said = faults[0]
        return (_finding("sampler-fails", "error", f"Rank {rank} cannot draw: {said}.", loader),)
    if is_stream(loader):
        return tuple(_stream(loader, shares))
    epochs = [_dealt(loader, [share.epochs[n] for share in shares]) for n in range(EPOCHS)]
    found = [
        f
        for f in _counted(loader, shares, epochs, world)
        if f.severity in RAISED and f.name != "missing-set-epoch"
    ]
    if evaluation and any(_shuffled(share) for share in shares):
        found.append(
            _finding(
                "evaluation-sampler-shuffles",
                "warning",
                "This loader for evaluation has another order in each epoch; shuffle=False.",
                loader,
            )
        )
    return tuple(found)


def _counted(
    loader: Part, shares: Sequence[Share], epochs: Sequence[Epoch], world: int
) -> tuple[Finding, ...]:
    from torchdoctor.training.auditing import judged  # noqa: PLC0415 - a circle

    first = [share.epochs[0] for share in shares]
    main = first[:1] if drawing.of_dispatcher(loader) else first
    length = None
    if _repeats(main[0].order):  # samples come again by themselves: places are counted
        if not drawing.shares(loader) and len({drawn.order for drawn in first}) > 1:
            return ()  # each rank draws by itself, with replacement
        places = [replace(drawn, batches=drawn.places) for drawn in first]
        epochs, length = [_dealt(loader, places)], len(main[0].order)
    found = judged(epochs, loader, world, length=length).findings
    if drawing.has_one_order(loader) and len({drawn.order for drawn in main}) > 1:
        return (_unlike(loader, main), *(f for f in found if f.name == "uneven-steps-hang"))
    return found


def _dealt(loader: Part, drawn: Sequence[Drawn]) -> Epoch:
    if drawing.of_dispatcher(loader):
        return drawing.shared_out(loader, drawn[0].batches, len(drawn))
    return [each.batches for each in drawn]


def _repeats(order: Sequence[int]) -> bool:
    return len(set(order)) < len(order)


def _unlike(loader: Part, drawn: Sequence[Drawn]) -> Finding:
    other = next(r for r, each in enumerate(drawn) if each.order != drawn[0].order)
    digests = [hashlib.sha256(repr(d.order).encode()).hexdigest()[:8] for d in drawn]
    return _finding(
        "rank-seeds-differ",
        "error",
        f"Rank {other} draws another order than rank 0, and each takes its share of its own: "
        "samples are seen twice and not at all. Give the sampler one seed on all ranks.",
        loader,
        *(("order.rank." + str(rank), digest) for rank, digest in enumerate(digests[:8])),
    )


def _shuffled(share: Share) -> bool:
    return share.epochs[0].batches != share.epochs[1].batches


def _stream(loader: Part, shares: Sequence[Share]) -> list[Finding]:
    told = [share.stream for share in shares]
    if len(told) < 2 or not told[0] or any(each != told[0] for each in told):  # noqa: PLR2004 - a pair
        return []
    return [
        _finding(
            "iterable-not-sharded",
            "error",
            f"All of {len(told)} ranks read the same {len(told[0])} first batches of this stream: "
            "shard it by rank and by worker.",
            loader,
        )
    ]


def _finding(
    name: str, severity: str, summary: str, loader: Part, *facts: tuple[str, object]
) -> Finding:
    evidence = tuple(Evidence(f"shards.{n}", str(v), type(loader).__name__) for n, v in facts)
    return Finding(name, severity, summary, evidence, family=FAMILY)  # type: ignore[arg-type]
