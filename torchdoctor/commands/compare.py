"""``torchdoctor compare``: what differs between machines, or between yesterday and today."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from torchdoctor.commands import output, progress
from torchdoctor.model import SEVERITIES, DoctorError

if TYPE_CHECKING:
    from torchdoctor.compare.fleet import Fleet
    from torchdoctor.report.document import Report

HELP = "say what differs between machines, or between yesterday and today"
FEWEST = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="INPUT",
        help="snapshots or reports, one of each machine; folders of them; files of many (.jsonl, "
        "of collect --gather)",
    )
    parser.add_argument(
        "--no-findings",
        action="store_true",
        help="compare facts only; do not judge each machine (a quarter faster)",
    )
    output.options(parser)
    output.fail_on(
        parser,
        ": a finding (of two: a new one), or any difference (default: error)",
        also=("difference",),
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when an input could not be read"
    )


def execute(args: argparse.Namespace) -> int:
    """Read one after the other, count, report; return the exit code."""
    import gc  # noqa: PLC0415 - only this verb pays

    from torchdoctor.compare import fleet, report, sources  # noqa: PLC0415

    gc.enable()  # many snapshots, one after the other
    machines = progress.counted(sources.read(sources.files(args.inputs)), "Read so far:")
    inputs = tuple(map(sources.shown, args.inputs))
    if args.format in output.PUBLIC:
        from torchdoctor import redact  # noqa: PLC0415 - for what others will read only

        who = redact.here(os.environ)
        name = redact.words(**who)
        machines = sources.redacted(machines, name, lambda s: redact.redact(s, **who))
        inputs = tuple(map(name, inputs))
    seen = fleet.of(machines, None if args.no_findings else fleet.judge())
    seen.inputs = inputs
    if len(seen.names) < FEWEST:
        raise DoctorError(_too_few(seen), file=next(iter(args.inputs)))
    made = report.build(seen)
    code = exit_code(made, seen, fail_on=args.fail_on, strict=args.strict)
    output.write(made, args)
    return code


def exit_code(report: Report, fleet: Fleet, *, fail_on: str, strict: bool) -> int:
    """Return 1 for what *fail_on* names, 3 with *strict* where an input was not read, else 0."""
    if fail_on == "difference":
        differs = any(d.noise is None for d in fleet.tally.differences()) or report.findings
        code = 1 if differs else 0
    else:
        grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
        code = 1 if any(finding.severity in grave for finding in report.findings) else 0
    return 3 if strict and fleet.unread_count and not code else code


def _too_few(fleet: Fleet) -> str:
    if fleet.unread:
        name, why = fleet.unread[0]
        more = f" (and {fleet.unread_count - 1} more)" if fleet.unread_count > 1 else ""
        said = why if name in why else f"{name}: {why}"
        return f"{said.rstrip('.')}{more}; two machines are needed to compare."
    return f"{fleet.names[0]} is one machine; name another to compare it with."
