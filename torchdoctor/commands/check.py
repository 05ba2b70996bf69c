"""``torchdoctor check``: what is wrong, and what to run, in which order."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor import diagnosis, lazily
from torchdoctor.commands import looking, output
from torchdoctor.model import SEVERITIES, DoctorError, Finding, Outcome

if TYPE_CHECKING:
    from torchdoctor.diagnosis import Look
    from torchdoctor.policy import Policy
    from torchdoctor.registry import Check
    from torchdoctor.report.document import Report
    from torchdoctor.snapshot import Snapshot

WATCHED = 5.0
HELP = "say whether PyTorch will work here, if not why not, and what to run to fix it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "inputs",
        nargs="*",
        metavar="INPUT",
        help="snapshots, listings, logs, error texts of one machine (- for standard input); "
        "none: look at this machine",
    )
    looking.options(parser)
    looking.profile_option(parser)
    looking.folder_options(parser)
    parser.add_argument(
        "--all-reduce",
        nargs="?",
        type=looking.ranks,
        const=0,
        metavar="N",
        help="try a real all_reduce, too, on this many ranks (default: as many as suit)",
    )
    output.options(parser)
    output.fail_on(parser, " (default: error, or what the policy says)", default=None)
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when something could not be told"
    )
    for option, what in (("--only", "only these"), ("--skip", "all but these")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME",
            help=f"{what} checks, findings or families (commas between several)",
        )
    parser.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="WHAT",
        help="what this machine is for: cpu, cuda, cuda>=12.6, rocm, gpus>=2, or a file of these",
    )
    parser.add_argument(
        "--lock", metavar="FILE", help="the environment that worked, of `torchdoctor lock`"
    )
    parser.add_argument(
        "--policy",
        nargs="?",
        const="",
        metavar="FILE",
        help="hold the machine to what the project says in [tool.torchdoctor] of pyproject.toml, "
        "or in torchdoctor.toml (default: the nearest one)",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=looking.seconds,
        const=WATCHED,
        metavar="S",
        help="look again every S seconds, while you repair, until nothing is left "
        f"(default: {WATCHED:g})",
    )


def execute(args: argparse.Namespace) -> int:
    """Look, judge, report; return the exit code."""
    lazily.begin()
    rule = _policy(args)  # one that is wrong is told before anything is looked at
    args.fail_on = args.fail_on or (rule.fail_on if rule else None) or "error"
    if args.only or args.skip:  # a wrong name is told before anything is looked at
        _checks(args)
    if args.watch is not None:
        return _watch(args)
    report = _judged(args)
    output.write(report, args)
    return _code(report, args)


def _watch(args: argparse.Namespace) -> int:
    """Look again and again, and report whenever it is another; return 0 once nothing is left."""
    import time  # noqa: PLC0415 - only where somebody waits

    if args.inputs or args.output or args.format != "text":
        raise DoctorError(
            "--watch looks at this machine and reports to the terminal; leave out inputs, "
            "--output and --format.",
            kind="usage",
        )
    before = None
    while True:
        report = _judged(args)
        now = report.headline, report.findings
        if now != before:
            before = now
            output.write(report, args)
            sys.stdout.flush()
        code = _code(report, args)
        if code == 0:
            return code
        time.sleep(args.watch)


def _code(report: Report, args: argparse.Namespace) -> int:
    fail_on, strict = args.fail_on, args.strict
    return exit_code(report.findings, report.outcomes, fail_on=fail_on, strict=strict)


def _policy(args: argparse.Namespace) -> Policy | None:
    """Return the policy that is asked for, if one is."""
    if args.policy is None:
        return None
    from torchdoctor import policy  # noqa: PLC0415 - for whom asks for it

    return policy.read(args.policy)


def _judged(args: argparse.Namespace) -> Report:
    waiting = looking.begin(args)
    # Imported while the probes run.
    from torchdoctor import plan  # noqa: PLC0415
    from torchdoctor.reading import machine  # noqa: F401, PLC0415
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.run import run  # noqa: PLC0415
    from torchdoctor.tables import load  # noqa: PLC0415

    rule = _policy(args)
    bearing = rule.bearing(_checks(args)) if rule else None
    checks = bearing.checks if bearing else _checks(args)
    for table in ("releases", "neighbours", "known_bad"):  # those that every machine needs
        load(table)
    seen = waiting()
    tried = looking.tried(seen)
    outcomes = run(checks, seen.facts)
    return document.build(
        target=diagnosis.target(seen, args.inputs),
        findings=plan.findings_of(outcomes),
        outcomes=outcomes,
        plan=tried.verified(plan.make(checks, seen.facts, outcomes)),
        essential_unknown=diagnosis.essential_unknown(seen),
        data={**tried.data, **(bearing.data() if bearing else {})},
        details=(*tried.details, *(bearing.details() if bearing else ())),
        facts=seen.facts,
        snapshot=_shown_along(seen, args),
    )


def _checks(args: argparse.Namespace) -> dict[str, Check]:
    from torchdoctor.registry import all_checks  # noqa: PLC0415 - while the probes run
    from torchdoctor.select import select  # noqa: PLC0415

    return select(all_checks(), only=args.only, skip=args.skip)


def exit_code(
    findings: Iterable[Finding], outcomes: Iterable[Outcome], *, fail_on: str, strict: bool
) -> int:
    """Return 1 for a finding at *fail_on* or above, 3 when a check crashed or, with *strict*,
    could not tell, else 0.
    """  # noqa: D205 - one sentence
    grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on != "never" else ()
    if any(finding.severity in grave for finding in findings):
        return 1
    untold = {"crashed", "unknown"} if strict else {"crashed"}
    return 3 if any(outcome.status in untold for outcome in outcomes) else 0


def _shown_along(seen: Look, args: argparse.Namespace) -> Snapshot | None:
    """Return the snapshot that goes into a report for others, with what was expected."""
    from torchdoctor import expectation  # noqa: PLC0415 - it is there by now
    from torchdoctor.reading import machine  # noqa: PLC0415

    whole = seen.snapshot
    texts = any(name.startswith(machine.TEXT) for name in whole.probes)
    if args.format not in output.PUBLIC or texts or not whole.redacted:
        return None
    words = list(expectation.words(seen.facts.expectation))
    return replace(whole, options={**whole.options, **({"expect": words} if words else {})})
