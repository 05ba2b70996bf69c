"""``torchdoctor envs``: every interpreter of this machine that has a torch, one line for each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError

if TYPE_CHECKING:
    from torchdoctor.diagnosis import Look
    from torchdoctor.envs import Found
    from torchdoctor.report.document import Report

HELP = "find every environment on this machine that has a torch, and say in a line how it is"
SCHEMA = "torchdoctor.envs/1"
AT_ONCE = 2
"""Environments that are looked at side by side: each starts several processes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    from torchdoctor.commands import looking  # noqa: PLC0415 - only the verb that runs pays

    parser.add_argument(
        "folders", nargs="*", metavar="FOLDER", help="search these folders for environments, too"
    )
    looking.trial_options(parser)
    parser.add_argument(
        "--all", action="store_true", help="name the interpreters without a torch, too"
    )
    output.options(parser)
    output.fail_on(parser)


def execute(args: argparse.Namespace) -> int:
    """Find, look, judge, report; return the exit code."""
    from dataclasses import replace  # noqa: PLC0415

    from torchdoctor import envs  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415

    for folder in args.folders:
        if not Path(folder).is_dir():
            raise DoctorError(
                f"{folder} is no folder; name one to search, or none.", file=folder, kind="usage"
            )
    folders = [Path(folder).absolute() for folder in args.folders]
    found = envs.find(os.environ, folders, Path.cwd())
    judged = list(_judged([f for f in found if f.torch], args))
    without = [f for f in found if not f.torch]
    report = _report(judged, without, args)
    # A line for each environment says enough to people.
    output.write(report if args.format == "json" else replace(report, findings=()), args)
    return exit_code(report.findings, (), fail_on=args.fail_on, strict=False)


def _judged(
    found: Sequence[Found], args: argparse.Namespace
) -> Iterator[tuple[Found, Report, Look]]:
    from torchdoctor import diagnosis  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.background import Background  # noqa: PLC0415
    from torchdoctor.commands import progress  # noqa: PLC0415

    with progress.shown("looking at environments") as tell:
        for start in range(0, len(found), AT_ONCE):
            some = found[start : start + AT_ONCE]
            tell({"at": f"{start + 1} of {len(found)}: {some[0].python}"})
            looks = [Background(partial(_look, one, args)) for one in some]
            for one, look in zip(some, looks, strict=True):
                seen = look.result()
                yield one, diagnosis.report(seen), seen


def _look(found: Found, args: argparse.Namespace) -> Look:
    from torchdoctor import collect, diagnosis, redact  # noqa: PLC0415

    # Another environment's activation says nothing about this one.
    activated = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")
    environ = {name: value for name, value in os.environ.items() if name not in activated}
    request = collect.Request(
        python=found.python,
        working_folder=str(Path.cwd()),
        import_torch=not args.no_import,
        timeout=args.timeout or collect.TIMEOUT,
        import_timeout=args.timeout or collect.IMPORT_TIMEOUT,
        shared_objects=not args.no_import,
    )
    snapshot = collect.collect(request, environ)
    if args.format in output.PUBLIC:
        snapshot = redact.redact(snapshot, **redact.here(os.environ))
    return diagnosis.expecting(snapshot, (), live=True)


def _report(
    judged: Sequence[tuple[Found, Report, Look]], without: Sequence[Found], args: argparse.Namespace
) -> Report:
    from dataclasses import replace  # noqa: PLC0415

    from torchdoctor import shells  # noqa: PLC0415
    from torchdoctor.report import document  # noqa: PLC0415
    from torchdoctor.report.document import Detail  # noqa: PLC0415
    from torchdoctor.report.words import count  # noqa: PLC0415

    findings = tuple(
        replace(finding, where={"environment": found.python}, steps=())
        for found, report, _ in judged
        for finding in report.findings
        if finding.severity != "note"
    )
    broken = [found for found, report, _ in judged if report.verdict == "broken"]
    details: list[Detail] = []
    for found, report, look in judged:
        told = ", ".join((_kind(look), *found.told_by))
        details.append(Detail(found.python, f"{report.verdict}: {report.headline} ({told})"))
        if report.verdict != "healthy":
            more = shells.in_all([["torchdoctor", "check", "--python", found.python]])
            details.append(Detail(found.python, more.bash[0], command=True))
    if args.all:
        details += [Detail("Without a torch", found.python) for found in without]
    headline = (
        f"{count(len(judged), 'environment')} with a torch: {len(broken)} broken, "
        f"{count(len(without), 'interpreter')} without one."
        if judged
        else "No environment with a torch was found; "
        f"{count(len(without), 'interpreter')} looked at."
    )
    return document.build(
        target=document.Target("live"),
        findings=findings,
        headline=headline,
        details=details,
        data={
            "envs": {
                "schema": SCHEMA,
                "environments": [_data(*row) for row in judged],
                "without_torch": [found.python for found in without],
            }
        },
    )


def _data(found: Found, report: Report, look: Look) -> dict[str, object]:
    from torchdoctor.facts import Build  # noqa: PLC0415

    torch = look.facts.torch
    return {
        "python": found.python,
        "told_by": list(found.told_by),
        "kind": _kind(look),
        "torch": torch.version if isinstance(torch, Build) else None,
        "folders": list(found.torch),
        "verdict": report.verdict,
        "headline": report.headline,
        "findings": [finding.name for finding in report.findings],
    }


def _kind(look: Look) -> str:
    from torchdoctor.facts import Interpreter  # noqa: PLC0415

    interpreter = look.facts.interpreter
    return interpreter.kind if isinstance(interpreter, Interpreter) else "does not answer"
