"""``torchdoctor check``: what is wrong, and what to run, in which order."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.commands import looking, output
from torchdoctor.model import SEVERITIES, Finding, Outcome

if TYPE_CHECKING:
    from torchdoctor.commands.looking import Look
    from torchdoctor.registry import Check
    from torchdoctor.report.document import Source, Target
    from torchdoctor.snapshot import Snapshot

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
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="what makes the exit code 1 (default: error)",
    )
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


def execute(args: argparse.Namespace) -> int:
    """Look, judge, report; return the exit code."""
    if args.only or args.skip:  # a wrong name is told before anything is looked at
        _checks(args)
    waiting = looking.begin(args)
    # Imported while the probes run.
    from torchdoctor import plan  # noqa: PLC0415
    from torchdoctor.reading import machine  # noqa: F401, PLC0415
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.run import run  # noqa: PLC0415
    from torchdoctor.tables import load  # noqa: PLC0415

    checks = _checks(args)
    for table in ("releases", "neighbours", "known_bad"):  # those that every machine needs
        load(table)
    seen = waiting()
    tried = looking.tried(seen)
    outcomes = run(checks, seen.facts)
    report = document.build(
        target=target(seen, args.inputs),
        findings=plan.findings_of(outcomes),
        outcomes=outcomes,
        plan=tried.verified(plan.make(checks, seen.facts, outcomes)),
        essential_unknown=_essential_unknown(seen),
        data=tried.data,
        details=tried.details,
        facts=seen.facts,
        snapshot=_shown_along(seen, args),
    )
    code = exit_code(report.findings, outcomes, fail_on=args.fail_on, strict=args.strict)
    output.write(report, args)
    return code


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


def target(seen: Look, inputs: list[str]) -> Target:
    """Return what a report says of the machine that was looked at."""
    from torchdoctor.facts import Interpreter, Platform  # noqa: PLC0415
    from torchdoctor.reading import machine  # noqa: PLC0415
    from torchdoctor.report.document import Target  # noqa: PLC0415

    platform, interpreter = seen.facts.platform, seen.facts.interpreter
    looked = any(not name.startswith(machine.TEXT) for name in seen.snapshot.probes)
    source: Source = "live" if seen.live else "snapshot" if looked else "text"
    return Target(
        "folder" if seen.folder else source,
        inputs=(seen.folder,) if seen.folder else tuple(inputs),
        os=(platform.name or platform.system) if isinstance(platform, Platform) else None,
        python=interpreter.version if isinstance(interpreter, Interpreter) else None,
        collected_at=seen.snapshot.collected_at or None,
    )


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


def _essential_unknown(seen: Look) -> bool:
    """Tell whether it stayed open if torch imports, though somebody looked."""
    from torchdoctor.facts import Unknown  # noqa: PLC0415

    options = seen.snapshot.options
    asked = bool(options) and options.get("import_torch") is not False
    return isinstance(seen.facts.torch, Unknown) or (
        asked and isinstance(seen.facts.trial, Unknown)
    )
