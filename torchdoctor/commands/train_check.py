"""``torchdoctor train-check``: a small training on several processes that proves the machine."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.report.document import Detail, Report
    from torchdoctor.training.proofs import Costs
    from torchdoctor.training.proving import Proof

HELP = "prove by a small training on several processes that this machine trains right"
SCHEMA = "torchdoctor.train-check/1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    add = parser.add_argument
    add("--nproc", type=_positive, metavar="N", help="so many ranks (default: the GPUs, or 2)")
    add("--steps", type=_positive, default=20, metavar="K", help="so many steps (default: 20)")
    add("--batch", type=_positive, default=32, metavar="B", help="samples of a rank (default: 32)")
    add("--accumulate", type=_positive, default=1, metavar="A", help="backward passes of a step")
    add("--amp", choices=("off", "bf16", "fp16"), default="off", help="mixed precision")
    add("--sync-bn", action="store_true", help="with BatchNorm over all ranks; needs GPUs")
    add("--width", type=_positive, default=512, metavar="W", help="of the model (default: 512)")
    add("--workers", type=int, default=0, metavar="N", help="of the loader (default: 0)")
    add("--device", choices=("auto", "cuda", "cpu"), default="auto")
    add("--python", metavar="PATH", help="the interpreter (default: the active environment's)")
    add("--timeout", type=float, default=180.0, metavar="S", help="seconds of each of four runs")
    add("--dir", metavar="DIR", help="keep the runs there: run.json, logs, checkpoints")
    add("--eject", metavar="DIR", help="only write the training program there, to be copied")
    add("--plot", metavar="FILE", help="write a page of HTML there")
    output.options(parser)
    output.fail_on(parser)
    add("--strict", action="store_true", help="exit with 3 when a proof could not be tried")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def execute(args: argparse.Namespace) -> int:
    """Train, judge, report; return the exit code."""
    from torchdoctor.training import proving  # noqa: PLC0415 - only this verb pays

    if args.eject:
        return _eject(Path(args.eject))
    import tempfile  # noqa: PLC0415

    from torchdoctor import interpreters  # noqa: PLC0415
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415
    from torchdoctor.distributed.session import gpus_here  # noqa: PLC0415

    python = interpreters.given(args.python) if args.python else interpreters.active(os.environ)
    gpus = gpus_here() if args.device != "cpu" else 0
    if args.sync_bn and not gpus:
        raise DoctorError("--sync-bn: torch synchronises BatchNorm on GPUs only.", kind="usage")
    wish = proving.Wish(
        args.nproc or (gpus if gpus > 1 else 2),
        *(args.steps, args.batch, args.accumulate, args.amp, args.sync_bn, args.width),
        *(args.workers, "cpu" if args.device == "auto" and not gpus else args.device),
        timeout=max(args.timeout / 3, 1.0),
    )
    if args.dir:
        proof = proving.prove(wish, python, os.environ, _new(Path(args.dir)), args.timeout)
    else:
        with tempfile.TemporaryDirectory(prefix="torchdoctor-") as folder:
            proof = proving.prove(wish, python, os.environ, Path(folder), args.timeout)
    report = _report(proof, args)
    output.write(report, args)
    return exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=args.strict)


def _eject(folder: Path) -> int:
    import sys  # noqa: PLC0415 - only here

    from torchdoctor.report import printing  # noqa: PLC0415
    from torchdoctor.training import proving  # noqa: PLC0415

    files = proving.eject(folder)
    rows = [f"{path}\n" for path in files]
    run = f"Run it: python {folder / 'launch.py'} --nproc 2 --dir RUN -- --steps 100\n"
    printing.write("".join([*rows, run]), sys.stdout)
    return 0


def _new(folder: Path) -> Path:
    """Return *folder*, made; runs of another time are not mixed with these."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise DoctorError(f"--dir {folder}: the folder is not empty.", kind="usage")
    except OSError as error:
        raise DoctorError(f"--dir {folder}: {error.strerror or error}.", kind="usage") from error
    return folder.resolve()


# ---- the report ---------------------------------------------------------------------------------


def _report(proof: Proof, args: argparse.Namespace) -> Report:
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.training import proofs  # noqa: PLC0415

    outcomes = proofs.outcomes(proof)
    findings = (*proofs.failures(proof), *(f for o in outcomes for f in o.findings))
    spent = proofs.costs(proof)
    headline = findings[0].summary if findings else _headline(proof, spent)
    if args.plot:
        from torchdoctor.training import chart  # noqa: PLC0415

        output.save(chart.page(headline, outcomes, spent, _losses(proof)), args.plot)
    return document.build(
        target=document.Target("run", python=_version(proof, "python")),
        findings=findings,
        outcomes=outcomes,
        essential_unknown=not proof.whole.done,
        data={"train_check": _measured(proof, spent)},
        headline=headline,
        details=tuple(_details(proof, spent)),
    )


def _version(proof: Proof, name: str) -> str | None:
    versions = proof.whole.record.get("versions")
    value = versions.get(name) if isinstance(versions, dict) else None
    return str(value) if value else None


def _headline(proof: Proof, spent: Costs | None) -> str:
    ranks = f"{proof.wish.nproc} ranks" if proof.wish.nproc > 1 else "1 rank"
    torch, backend = _version(proof, "torch"), _version(proof, "backend")
    scaled = ""
    if spent is not None and spent.efficiency is not None:
        scaled = f", scaling efficiency {spent.efficiency:.0%}"
    return (
        f"Training works: {proof.wish.steps} steps on {ranks} (torch {torch}, {backend} on "
        f"{proof.whole.record.get('device')}){scaled}."
    )


def _details(proof: Proof, spent: Costs | None) -> Iterator[Detail]:
    from torchdoctor.report.document import Detail  # noqa: PLC0415
    from torchdoctor.training import chart, proofs  # noqa: PLC0415

    for outcome in proofs.outcomes(proof):
        said = outcome.reason and f"  ({outcome.reason})"
        yield Detail("Proofs", f"{outcome.check:<18}{outcome.status}{said}", table=True)
    if spent is not None:
        heading = f"Where a step of {spent.step * 1000:.1f} ms goes"
        for row in chart.bars(spent):
            yield Detail(heading, row, table=True)
    if (off := proofs.largest_difference(proof)) is not None:
        relative, absolute = proofs.TOLERANCE[proof.wish.amp]
        yield Detail(
            "Loss against one process",
            f"largest relative difference {off:.2g}; allowed {relative:g}, and {absolute:g} "
            "absolute (torch.testing.assert_close)",
        )


def _measured(proof: Proof, spent: Costs | None) -> dict[str, object]:
    from dataclasses import asdict  # noqa: PLC0415

    from torchdoctor.training import proofs  # noqa: PLC0415

    runs = {
        "whole": proof.whole,
        "single": proof.single,
        "alone": proof.alone,
        "resumed": proof.resumed,
    }
    return {
        "schema": SCHEMA,
        "asked": asdict(proof.wish),
        "loss_difference": proofs.largest_difference(proof),
        "tolerance": dict(
            zip(("relative", "absolute"), proofs.TOLERANCE[proof.wish.amp], strict=True)
        ),
        "costs": None
        if spent is None
        else {
            **asdict(spent),
            "input_share": spent.input_share,
            "communication_share": spent.communication_share,
            "efficiency": spent.efficiency,
        },
        "losses": _losses(proof),
        "runs": {name: None if run is None else run.record for name, run in runs.items()},
    }


def _losses(proof: Proof) -> list[float]:
    losses = proof.whole.ranks[0].get("losses") if proof.whole.done else None
    return losses if isinstance(losses, list) else []
