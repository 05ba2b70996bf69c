"""``torchdoctor shards``: which rank gets which sample, without starting a job."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.report.document import Detail, Report
    from torchdoctor.shards.asking import Asked
    from torchdoctor.shards.audit import Resumed, Skew
    from torchdoctor.shards.dealing import Epoch, Setup
    from torchdoctor.shards.verdict import Seen

HELP = "say which rank gets which sample, how often, and where a rank would wait for ever"
SCHEMA = "torchdoctor.shards/1"
PRIME = 37
MOST_LISTED = 20_000
"""So many samples of an epoch, at most, are listed in the JSON."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "target",
        nargs="?",
        metavar="FILE.py:NAME",
        help="a function of yours that returns a loader, or a loader itself, asked as each rank in "
        "turn in a process of its own (default: an index dataset, dealt out as the options say)",
    )
    _number(parser, "--world-size", 2, "so many ranks")
    _number(parser, "--epochs", 2, "so many epochs")
    parser.add_argument(
        "--no-set-epoch",
        action="store_true",
        help="never call set_epoch(), as if it were forgotten",
    )
    parser.add_argument(
        "--labels",
        metavar="WHAT",
        help="the classes, to see whether ranks get equally many of each: cycle:K, sorted:K, or a "
        "file with one in each line",
    )
    parser.add_argument(
        "--resume-from",
        metavar="WORLD[:STEP]",
        help="go on from a run of so many ranks, interrupted after that step of an epoch "
        "(default: between epochs)",
    )
    _setup_options(parser.add_argument_group("without FILE.py:NAME"))
    child = parser.add_argument_group("with FILE.py:NAME")
    child.add_argument(
        "--python", metavar="PATH", help="the interpreter (default: the active environment's)"
    )
    child.add_argument(
        "--live",
        action="store_true",
        help="really iterate it, as one rank of those that torchrun has started; rank 0 reports",
    )
    child.add_argument(
        "--timeout", type=float, default=120.0, metavar="S", help="seconds for each rank"
    )
    output.options(parser)
    output.fail_on(parser)


def _setup_options(group: argparse._ArgumentGroup) -> None:
    _number(group, "--length", PRIME, "samples", least=0)
    _number(group, "--batch-size", 4, "samples a batch")
    group.add_argument(
        "--sampler",
        choices=("distributed", "none"),
        default="distributed",
        help="a DistributedSampler, or none (default: distributed)",
    )
    group.add_argument(
        "--prepare",
        choices=("none", "accelerate", "dispatch"),
        default="none",
        help="prepared by accelerate, each rank for itself or dispatched by rank 0",
    )
    group.add_argument("--no-shuffle", action="store_true")
    group.add_argument("--seed", type=int, default=0, metavar="N")
    group.add_argument("--sampler-drop-last", action="store_true", help="of the sampler")
    group.add_argument("--drop-last", action="store_true", help="of the loader")
    group.add_argument("--no-even-batches", action="store_true", help="of accelerate")
    group.add_argument("--split-batches", action="store_true", help="of accelerate")
    group.add_argument("--stream", action="store_true", help="an IterableDataset")
    _number(group, "--workers", 0, "workers of the stream's loader", least=0)
    group.add_argument(
        "--split",
        choices=("none", "worker", "rank", "both"),
        default="none",
        help="by what the stream's own __iter__ shards (default: none)",
    )


def _number(
    group: argparse._ActionsContainer, name: str, default: int, what: str, *, least: int = 1
) -> None:
    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise ValueError
        return value

    group.add_argument(
        name, type=number, default=default, metavar="N", help=f"{what} (default: {default})"
    )


def execute(args: argparse.Namespace) -> int:
    """Deal out, count, judge, report; return the exit code."""
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415 - only this verb pays

    if args.live:
        return _live(args)
    report = _asked(args) if args.target else _dealt(args)
    output.write(report, args)
    return exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=False)


def _dealt(args: argparse.Namespace) -> Report:
    """Return the report on the loader that the options describe."""
    from dataclasses import asdict, replace  # noqa: PLC0415 - only this verb pays

    from torchdoctor.shards import audit  # noqa: PLC0415
    from torchdoctor.shards.dealing import deal  # noqa: PLC0415

    setup = _setup(args)
    try:
        epochs = [deal(setup, epoch) for epoch in range(args.epochs)]
        resumed = None
        if resume := _resume(args):
            before = deal(replace(setup, world=resume[0]), 0)
            resumed = audit.resumed(before, epochs[0], resume[1])
    except ValueError as error:
        raise DoctorError(f"{error}.", kind="usage") from error
    seen = _seen(args, setup.length, setup.batch_size, epochs, resumed=resumed, setup=setup)
    return _report(args, seen, epochs, {"setup": asdict(setup)}, "script")


def _setup(args: argparse.Namespace) -> Setup:
    from torchdoctor.shards.dealing import Setup  # noqa: PLC0415 - only this verb pays

    return Setup(
        args.length,
        args.world_size,
        args.batch_size,
        "none" if args.stream else args.sampler,
        args.prepare,
        not args.no_shuffle,
        args.seed,
        args.sampler_drop_last,
        args.drop_last,
        not args.no_set_epoch,
        not args.no_even_batches,
        args.split_batches,
        args.stream,
        args.workers,
        args.split,
    )


def _resume(args: argparse.Namespace) -> tuple[int, int] | None:
    if args.resume_from is None:
        return None
    world, _, step = args.resume_from.partition(":")
    if not (world.isdecimal() and int(world) and (step or "0").isdecimal()):
        raise DoctorError(
            f"--resume-from {args.resume_from}: give WORLD or WORLD:STEP, such as 4:100.",
            kind="usage",
        )
    return int(world), int(step or 0)


def _live(args: argparse.Namespace) -> int:
    """Be one rank of a real job; rank 0 reports what all ranks got."""
    import sys  # noqa: PLC0415 - only this verb pays

    from torchdoctor import interpreters  # noqa: PLC0415
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415
    from torchdoctor.shards import asking  # noqa: PLC0415

    world = os.environ.get("WORLD_SIZE", "")
    if not (args.target and world.isdecimal() and os.environ.get("RANK", "").isdecimal()):
        raise DoctorError(
            "--live is for a rank that a launcher has started: torchrun --nproc-per-node 2 "
            "-m torchdoctor shards --live FILE.py:NAME",
            kind="usage",
        )
    file, name = _target(args.target)
    # The launcher has chosen the interpreter.
    python = interpreters.given(args.python) if args.python else sys.executable
    play = asking.Play(int(world), args.epochs, set_epoch=not args.no_set_epoch)
    asked = asking.live(file, name, play, python=python, timeout=args.timeout)
    if asked is None:
        return 0
    args.world_size = int(world)
    seen = _seen(args, asked.length, asked.batch_size, asked.epochs, resumed=None, asked=asked)
    about = {"loader": dict(asked.loader), "live": True}
    report = _report(args, seen, asked.epochs, about, "run")
    output.write(report, args)
    return exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=False)


def _target(target: str) -> tuple[str, str]:
    """Return the file and the name in FILE.py:NAME."""
    file, _, name = target.rpartition(":")
    if not file or not name.replace(".", "a").isidentifier():
        raise DoctorError(
            f"{target} is not FILE.py:NAME, such as train.py:make_loader.", kind="usage"
        )
    return file, name


def _asked(args: argparse.Namespace) -> Report:
    """Return the report on the user's own loader."""
    from torchdoctor import interpreters  # noqa: PLC0415 - only this verb pays
    from torchdoctor.shards import asking, audit  # noqa: PLC0415

    file, name = _target(args.target)
    python = interpreters.given(args.python) if args.python else interpreters.active(os.environ)
    resume = _resume(args)
    worlds = dict.fromkeys([args.world_size, *([resume[0]] if resume else [])])
    answers = {
        world: asking.ask(
            file,
            name,
            asking.Play(world, args.epochs, set_epoch=not args.no_set_epoch),
            python=python,
            timeout=args.timeout,
        )
        for world in worlds
    }
    asked = answers[args.world_size]
    resumed = None
    if resume:
        resumed = audit.resumed(answers[resume[0]].epochs[0], asked.epochs[0], resume[1])
    seen = _seen(args, asked.length, asked.batch_size, asked.epochs, resumed=resumed, asked=asked)
    return _report(args, seen, asked.epochs, {"loader": dict(asked.loader)}, "run")


def _seen(  # noqa: PLR0913 - what the two ways have in common
    args: argparse.Namespace,
    length: int,
    batch_size: int,
    epochs: Sequence[Epoch],
    *,
    resumed: Resumed | None,
    setup: Setup | None = None,
    asked: Asked | None = None,
) -> Seen:
    from torchdoctor.shards import audit  # noqa: PLC0415 - only this verb pays
    from torchdoctor.shards.verdict import Seen  # noqa: PLC0415

    counts = tuple(audit.count(epoch, length) for epoch in epochs)
    never = set(counts[0].unseen).intersection(*(c.unseen for c in counts[1:]))
    twice = drops = stream = False
    if setup is not None:
        twice = setup.sampler == "distributed" and setup.prepare != "none" and not setup.stream
        drops, stream = setup.drop_last or setup.sampler_drop_last, setup.stream
    elif asked is not None:
        twice, drops, stream = asked.twice, asked.drops, asked.stream
    return Seen(
        args.world_size,
        length,
        batch_size,
        counts,
        len(never),
        audit.same_order(epochs),
        tuple(_skews(args, length, epochs[0], asked)),
        resumed,
        twice=twice,
        stream=stream,
        drops=drops,
        source="index arithmetic" if asked is None else args.target,
    )


def _skews(args: argparse.Namespace, length: int, epoch: Epoch, asked: Asked | None) -> list[Skew]:
    from torchdoctor.shards import audit  # noqa: PLC0415 - only this verb pays

    labels = _labels(args.labels, length) if args.labels else asked.labels if asked else ()
    return audit.skews(epoch, labels) if labels else []


def _labels(what: str, length: int) -> Sequence[str]:
    kind, _, number = what.partition(":")
    if kind in {"cycle", "sorted"} and number.isdecimal() and int(number):
        many = int(number)
        return [
            str(i % many if kind == "cycle" else i * many // max(length, 1)) for i in range(length)
        ]
    try:
        with open(what, encoding="utf-8") as file:  # noqa: PTH123 - a name as it was given
            labels = [line.strip() for line in file]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DoctorError(
            f"--labels {what}: {reason}; give cycle:K, sorted:K or a file with one class a line.",
            file=what,
        ) from error
    if len(labels) != length:
        raise DoctorError(f"{what} has {len(labels)} lines for {length} samples.", file=what)
    return labels


# ---- the report ---------------------------------------------------------------------------------


def _report(
    args: argparse.Namespace,
    seen: Seen,
    epochs: Sequence[Epoch],
    about: Mapping[str, object],
    source: str,
) -> Report:
    from torchdoctor.model import Outcome  # noqa: PLC0415 - only this verb pays
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.shards import verdict  # noqa: PLC0415

    findings = verdict.findings(seen)
    return document.build(
        target=document.Target(
            "run" if source == "run" else "script", (args.target,) if args.target else ()
        ),
        findings=findings,
        outcomes=[Outcome("shards", "found" if findings else "clear", findings)],
        data={"shards": {"schema": SCHEMA, **about, **_measured(seen, epochs)}},
        headline=_headline(seen, [f.summary for f in findings if f.severity != "note"]),
        details=tuple(_details(seen, epochs)),
    )


def _headline(seen: Seen, faults: Sequence[str]) -> str:
    if faults:
        return faults[0] + (f" And {len(faults) - 1} more." if len(faults) > 1 else "")
    first = seen.epochs[0]
    return (
        f"{seen.world} ranks share {seen.length:,} samples: {first.seen:,} are seen, "
        f"{len(first.repeated):,} more than once, each rank has {first.steps[0]:,} steps."
    )


def _details(seen: Seen, epochs: Sequence[Epoch]) -> Iterator[Detail]:
    from torchdoctor.report.document import Detail  # noqa: PLC0415 - only this verb pays
    from torchdoctor.shards import picture  # noqa: PLC0415

    for number, (epoch, count) in enumerate(zip(epochs, seen.epochs, strict=True)):
        more = number > 0
        for row in picture.table(epoch, count):
            yield Detail(f"Epoch {number}", row, table=True, more=more)
        for row in picture.strips(epoch, seen.length):
            yield Detail(f"Samples of epoch {number}, by rank", row, table=True, more=more)
        for row in picture.steps(count):
            yield Detail(f"Steps of epoch {number}, by rank", row, table=True, more=more)


def _measured(seen: Seen, epochs: Sequence[Epoch]) -> dict[str, object]:
    listed = max((sum(c.samples) for c in seen.epochs), default=0) <= MOST_LISTED
    return {
        "world_size": seen.world,
        "length": seen.length,
        "batch_size": seen.batch_size,
        "never_seen": seen.never,
        "same_order": seen.same_order,
        "epochs": [
            {
                "steps": count.steps,
                "samples": count.samples,
                "seen": count.seen,
                "unseen": len(count.unseen),
                "repeated": len(count.repeated),
                "most": count.most,
                "hang_step": count.hang,
                "indices": epoch if listed else None,
            }
            for epoch, count in zip(epochs, seen.epochs, strict=True)
        ],
        "resume": None
        if seen.resumed is None
        else {
            "world_size": seen.resumed.world,
            "step": seen.resumed.step,
            "lost": seen.resumed.lost,
            "repeated": seen.resumed.repeated,
            "batch": seen.resumed.batch,
        },
    }
