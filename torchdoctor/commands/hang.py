"""``torchdoctor hang``: which rank of a job that hangs is behind, where, and what is waited for."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.hang.blame import Verdict
    from torchdoctor.hang.records import Job, Rank
    from torchdoctor.model import Finding, Plan
    from torchdoctor.report.document import Detail, Report

HELP = "say which rank of a job that hangs is behind, where it is, and what the others wait for"
SCHEMA = "torchdoctor.hang/1"
WATCH = 10.0
LONGEST_WATCH = 3600.0
MOST_RANKS = 64
"""So many ranks have a row in the report for people."""
MOST_FRAMES = 30


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "target",
        nargs="+",
        metavar="PID|DIR",
        help="a process of the job that runs here (its torchrun, or any rank); or what it left: "
        "folders or files of Flight Recorder dumps, the folder of torchdoctor.training.arm()",
    )
    parser.add_argument(
        "--watch",
        type=_seconds,
        default=WATCH,
        metavar="S",
        help="seconds between the two looks at a job that runs (default: 10)",
    )
    parser.add_argument(
        "--no-py-spy", action="store_true", help="do not use py-spy, even where it is installed"
    )
    parser.add_argument("--no-ras", action="store_true", help="do not ask NCCL's RAS")
    output.options(parser)
    output.fail_on(parser)
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when it could not be told"
    )


def execute(args: argparse.Namespace) -> int:
    """Look, judge, report; return the exit code."""
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415 - only this verb pays

    report = _report(args, _job(args))
    output.write(report, args)
    return exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=args.strict)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= LONGEST_WATCH:
        raise ValueError
    return value


def _job(args: argparse.Namespace) -> Job:
    """Return what is known of the job: by a process of it, or by what it left."""
    from dataclasses import replace  # noqa: PLC0415 - only this verb pays

    from torchdoctor.hang import folder, looking  # noqa: PLC0415

    wish = looking.Wish(args.watch, os.environ, not args.no_py_spy, not args.no_ras)
    (first, *more) = args.target
    if first.isdecimal() and not os.path.exists(first):  # noqa: PTH110 - a name as it was given
        if more:
            raise DoctorError("give one process, or files and folders.", kind="usage")
        return looking.live(int(first), wish)
    left = folder.read(args.target)
    pid = looking.alive_pid(left)
    if pid is None:
        return folder.job(left)
    job = looking.live(pid, wish)
    known = {rank.rank for rank in job.ranks}
    rest = [rank for rank in folder.job(left).ranks if rank.rank not in known]
    return replace(job, ranks=tuple(sorted((*job.ranks, *rest), key=lambda rank: rank.rank)))


# ---- the report ---------------------------------------------------------------------------------


def _report(args: argparse.Namespace, job: Job) -> Report:
    from dataclasses import replace  # noqa: PLC0415 - only this verb pays

    from torchdoctor.hang import blame, verdict  # noqa: PLC0415
    from torchdoctor.model import Outcome  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415

    short = args.format in output.PUBLIC
    found = blame.blame(job)
    one = verdict.finding(found, job, short=short)
    findings = (one,) if one is not None else ()
    unknown = found.cause == "unknown"
    outcome = (
        Outcome("hang", "unknown", reason=verdict.NOT_KNOWN)
        if unknown
        else Outcome("hang", "found" if findings else "clear", findings)
    )
    report = document.build(
        target=document.Target("run" if job.live else "folder", tuple(args.target)),
        findings=findings,
        outcomes=[outcome],
        plan=_plan(one),
        essential_unknown=unknown,
        data={"hang": {"schema": SCHEMA, **_measured(found, job)}},
        headline=one.summary if one is not None else verdict.headline(found, job),
        details=tuple(_details(found, job, short=short)),
    )
    return replace(report, remarks=job.remarks)


def _plan(finding: Finding | None) -> Plan | None:
    """Return the one step that there is; what comes after it only the next look can tell."""
    from torchdoctor.model import Plan, PlannedStep  # noqa: PLC0415 - only this verb pays

    if finding is None or not finding.steps:
        return None
    return Plan((PlannedStep(finding.steps[0], (finding.name,), ()),), "unknown")


def _details(found: Verdict, job: Job, *, short: bool) -> Iterator[Detail]:
    from torchdoctor.hang import verdict  # noqa: PLC0415 - only this verb pays
    from torchdoctor.report.document import Detail  # noqa: PLC0415

    for rank in job.ranks[:MOST_RANKS]:
        mark = "   <- here" if rank.rank in found.ranks else ""
        row = f"rank {rank.rank:<4} {verdict.told(rank, short=short)}{mark}"
        yield Detail("Ranks", row, table=True)
    if found.cause == "unknown":
        for rank in job.ranks[:MOST_RANKS]:
            if rank.why_no_stack:
                yield Detail("What would tell more", f"rank {rank.rank}: {rank.why_no_stack}")
    for number in found.ranks:
        stacked = job.rank(number)
        if stacked is not None and stacked.stack:
            for frame in stacked.stack[:MOST_FRAMES]:
                place = verdict.at(frame, short=short)
                yield Detail(f"Stack of rank {number}", place, table=True, more=True)
            break


def _measured(found: Verdict, job: Job) -> dict[str, object]:
    """Return for programs all that was seen."""
    from dataclasses import asdict  # noqa: PLC0415 - only this verb pays

    return {
        "verdict": {
            "cause": found.cause,
            "confidence": found.confidence,
            "ranks": found.ranks,
            "waiting": found.waiting,
            "group": found.group,
            "operation": found.entry.operation if found.entry else found.operation,
            "collective": None if found.entry is None else _called(found),
            "calls": {str(k): v for k, v in _mapping(found.values.get("calls")).items()},
        },
        "world_size": job.world,
        "watched_seconds": round(job.watched, 1),
        "ranks": [_rank(rank) for rank in job.ranks],
        "ras": None if job.ras is None else asdict(job.ras),
    }


def _called(found: Verdict) -> dict[str, object]:
    entry = found.entry
    assert entry is not None
    return {
        "number": entry.number,
        "p2p": entry.p2p,
        "input_sizes": entry.input_sizes,
        "output_sizes": entry.output_sizes,
        "input_dtypes": entry.input_types,
        "output_dtypes": entry.output_types,
        "timeout_ms": entry.timeout,
    }


def _rank(rank: Rank) -> dict[str, object]:
    from torchdoctor.hang import blame, verdict  # noqa: PLC0415 - only this verb pays

    kernel, beat = rank.kernel, rank.beat
    return {
        "rank": rank.rank,
        "pid": rank.pid,
        "alive": rank.alive,
        "armed": rank.armed,
        "told": verdict.told(rank),
        "moves": blame.moves(rank) if kernel is not None else None,
        "kernel": None
        if kernel is None
        else {
            "state": kernel.state,
            "wchan": kernel.wchan,
            "syscall": kernel.syscall,
            "cpu_seconds": round(kernel.cpu, 3),
            "switches": kernel.switches,
        },
        "stack": [{"function": f.function, "file": f.file, "line": f.line} for f in rank.stack],
        "stack_from": rank.stack_from,
        "why_no_stack": rank.why_no_stack,
        "heartbeat": None
        if beat is None
        else {"at": beat.at, "ended": beat.ended, "raised": beat.raised, "step": beat.step},
        "dump": None
        if rank.dump is None
        else {
            "version": rank.dump.version,
            "entries": len(rank.dump.entries),
            "source": rank.dump.source,
        },
    }


def _mapping(value: object) -> dict[object, object]:
    return dict(value) if isinstance(value, dict) else {}
