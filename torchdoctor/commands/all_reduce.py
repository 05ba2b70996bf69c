"""``torchdoctor all-reduce``: a real all_reduce that ends in time and says who is to blame."""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor.commands import looking, output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.collect import Request
    from torchdoctor.distributed.launcher import Seat
    from torchdoctor.facts import Facts
    from torchdoctor.report.document import Report, Target
    from torchdoctor.snapshot import Snapshot

HELP = "try a real all_reduce on several ranks, and say which rank fails, where, and why"
CHECKS = ("all-reduce", "nccl-run")
OF_LOGS = (
    *("fabric-manager", "infiniband", "net-plugin", "nccl-versions", "network-interface"),
    *("peer-traffic", "shared-memory"),
)
"""What judges the logs of NCCL, where it wrote any and failed."""
DEADLINE = 120.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "--nproc", type=looking.ranks, metavar="N", help="so many ranks (default: 2; 1 on one GPU)"
    )
    parser.add_argument("--backend", choices=("auto", "nccl", "gloo"), default="auto")
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument(
        "--sweep", action="store_true", help="measure the bandwidth for sizes from 8 B to 64 MiB"
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="the interpreter, or the folder of an environment, to try (default: the active "
        "environment's)",
    )
    parser.add_argument(
        "--timeout",
        type=looking.seconds,
        metavar="S",
        default=DEADLINE,
        help="seconds that all of it may take, an import of torch half of them (default: 120)",
    )
    parser.add_argument(
        "--worker",
        action="store_true",
        help="be one rank of those that torchrun, srun or mpirun starts, on one host or several",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when something could not be told"
    )
    output.options(parser)
    output.fail_on(parser)


def execute(args: argparse.Namespace) -> int:
    """Try, judge, report; return the exit code."""
    from torchdoctor.background import Background  # noqa: PLC0415 - --help does not need it

    if args.worker:
        return _work(args)
    trying = Background(partial(_try, args))
    # Imported while the ranks run.
    from torchdoctor import plan  # noqa: F401, PLC0415
    from torchdoctor.reading import machine  # noqa: F401, PLC0415
    from torchdoctor.registry import load  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: F401, PLC0415

    for name in CHECKS:
        load(name.replace("-", "_"))
    report, code = _judged(trying.result(), args)
    output.write(report, args)
    return code


def _work(args: argparse.Namespace) -> int:
    """Be one rank; rank 0 reports for all, another one only where it cannot reach rank 0."""
    from torchdoctor import collect  # noqa: PLC0415
    from torchdoctor.distributed import launcher  # noqa: PLC0415

    seat = launcher.seat(os.environ)
    if isinstance(seat, str):
        raise DoctorError(
            f"--worker: {seat}. Start it as: torchrun --nnodes 2 ... -m torchdoctor all-reduce "
            "--worker",
            kind="usage",
        )
    snapshot, dismiss = collect.all_reduce_in_seat(_request(args), os.environ, seat)
    if snapshot is None:
        return dismiss(0)
    report, code = _judged(snapshot, args, seat)
    output.write(report, args)
    return dismiss(code)


def _judged(
    snapshot: Snapshot, args: argparse.Namespace, seat: Seat | None = None
) -> tuple[Report, int]:
    """Return the report on a run, and the exit code."""
    from torchdoctor import plan  # noqa: PLC0415
    from torchdoctor.commands import all_reduce_report, check  # noqa: PLC0415
    from torchdoctor.facts import AllReduce, Expectation, Unknown  # noqa: PLC0415
    from torchdoctor.reading import machine  # noqa: PLC0415
    from torchdoctor.registry import load  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.run import run  # noqa: PLC0415

    facts = machine.read(snapshot, Expectation())
    logged = not isinstance(facts.symptoms, Unknown) and facts.symptoms
    names = (*CHECKS, *(OF_LOGS if logged else ()))
    checks = {c.name: c for c in map(load, (name.replace("-", "_") for name in names))}
    outcomes = run(checks, facts)
    data, details = all_reduce_report.told(facts, snapshot)
    findings = plan.findings_of(outcomes)
    done = isinstance(facts.all_reduce, AllReduce) and not findings
    report = document.build(
        target=_target(snapshot, facts),
        findings=findings,
        outcomes=outcomes,
        plan=all_reduce_report.verified(
            plan.make(checks, facts, outcomes), lambda _: "torchdoctor all-reduce"
        ),
        essential_unknown=isinstance(facts.all_reduce, Unknown),
        data=data,
        details=(*all_reduce_report.heard(facts.all_reduce, seat), *details),
        facts=facts,
        headline=all_reduce_report.headline(facts.all_reduce)
        if done and isinstance(facts.all_reduce, AllReduce)
        else "",
    )
    code = check.exit_code(report.findings, outcomes, fail_on=args.fail_on, strict=args.strict)
    return report, code


def _try(args: argparse.Namespace) -> Snapshot:
    from torchdoctor import collect  # noqa: PLC0415 - --help does not need it

    snapshot = collect.all_reduce(_request(args), os.environ)
    if args.format in output.PUBLIC:
        from torchdoctor import redact  # noqa: PLC0415 - for what others will read only

        return redact.redact(snapshot, **redact.here(os.environ))
    return snapshot


def _request(args: argparse.Namespace) -> Request:
    from torchdoctor import collect, interpreters  # noqa: PLC0415
    from torchdoctor.distributed.session import Wish  # noqa: PLC0415
    from torchdoctor.distributed.stages import Limits  # noqa: PLC0415

    if args.worker and not args.python:  # the launcher has chosen it
        python = sys.executable
    else:
        python = interpreters.given(args.python) if args.python else interpreters.active(os.environ)
    limits = Limits(
        whole=args.timeout,
        stage=min(Limits().stage, args.timeout / 3),
        importing=min(max(Limits().importing, args.timeout / 2), args.timeout),
    )
    wish = Wish(args.nproc, args.backend, args.device, sweep=args.sweep, limits=limits)
    return collect.Request(python=python, working_folder=str(Path.cwd()), all_reduce=wish)


def _target(snapshot: Snapshot, facts: Facts) -> Target:
    from torchdoctor.distributed.blame import fact  # noqa: PLC0415
    from torchdoctor.facts import AllReduce  # noqa: PLC0415
    from torchdoctor.report.document import Target  # noqa: PLC0415

    run = facts.all_reduce
    ranks = run.ranks if isinstance(run, AllReduce) else ()
    told = (fact(rank, "spawn", "python") for rank in ranks)
    return Target(
        "run",
        python=next((str(version) for version in told if version), None),
        collected_at=snapshot.collected_at,
    )
