"""``torchdoctor guard -- COMMAND``: what a command did to torch and what belongs to it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.diagnosis import Look
    from torchdoctor.model import Finding, Step
    from torchdoctor.report.document import Report

HELP = "run a command, then say what it changed in torch's family, and the way back"
SCHEMA = "torchdoctor.guard/1"
PACKAGES = "packages."
SHOWN = 12


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    from torchdoctor.commands import looking  # noqa: PLC0415 - only the verb that runs pays

    looking.options(parser)
    output.options(parser)
    output.fail_on(parser, " (default: error); a command that fails does, too")
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="what to run, as you would without torchdoctor: guard -- pip install xformers",
    )


@dataclass(frozen=True, slots=True)
class Guarded:
    """A command, how it ended, and the environment before and after it."""

    command: tuple[str, ...]
    status: int
    before: Look
    after: Look


def execute(args: argparse.Namespace) -> int:
    """Look, run the command, look again, report; return the exit code."""
    command = tuple(args.command[1:] if args.command[:1] == ["--"] else args.command)
    if not command:
        raise DoctorError(
            "guard needs the command to run: torchdoctor guard -- pip install xformers",
            kind="usage",
        )
    from torchdoctor import child  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415

    before = _look(args)
    sys.stdout.flush()
    status = child.passed_through(command, os.environ)
    if isinstance(status, str):
        raise DoctorError(f"{command[0]} could not be started: {status}.", kind="usage")
    guarded = Guarded(command, status, before, _look(args))
    report = _report(guarded)
    output.write(report, args)
    code = exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=False)
    return code or int(status != 0 and args.fail_on != "never")


def _look(args: argparse.Namespace) -> Look:
    from torchdoctor import diagnosis, redact  # noqa: PLC0415 - only the verb that runs pays
    from torchdoctor.commands import looking  # noqa: PLC0415

    snapshot = looking.look(args, os.environ)
    if args.format in output.PUBLIC:
        snapshot = redact.redact(snapshot, **redact.here(os.environ))
    return diagnosis.expecting(snapshot, (), live=True)


def _report(guarded: Guarded) -> Report:
    from dataclasses import replace  # noqa: PLC0415

    from torchdoctor import diagnosis  # noqa: PLC0415
    from torchdoctor.report.document import Detail  # noqa: PLC0415

    was, now = diagnosis.report(guarded.before), diagnosis.report(guarded.after)
    changes = _changes(guarded.before, guarded.after)
    details = [
        Detail("What it changed", f"{name}: {old} -> {new}", more=number >= SHOWN)
        for number, (name, old, new) in enumerate(changes)
    ]
    back = _back(guarded) if changes else None
    if back is not None:
        lines = back.commands.bash
        details += [Detail("The way back", line, command=True) for line in lines]
    return replace(
        now,
        headline=_headline(guarded, was, now, changes),
        details=tuple(details),
        data={
            "guard": {
                "schema": SCHEMA,
                "command": list(guarded.command),
                "exit_status": guarded.status,
                "before": {"verdict": was.verdict, "findings": _names(was.findings)},
                "after": {"verdict": now.verdict, "findings": _names(now.findings)},
                "changes": [{"fact": n, "before": o, "after": a} for n, o, a in changes],
                "way_back": list(back.commands.bash) if back else [],
            }
        },
    )


def _names(findings: Sequence[Finding]) -> list[str]:
    return [finding.name for finding in findings]


def _headline(
    guarded: Guarded, was: Report, now: Report, changes: Sequence[tuple[str, str, str]]
) -> str:
    from torchdoctor.report.words import count  # noqa: PLC0415

    said = shlex.join(guarded.command)
    ended = f" (it ended with {guarded.status})" if guarded.status else ""
    if not changes:
        did = f"{said} changed nothing that belongs to torch{ended}."
    else:
        name, old, new = changes[0]
        more = f" and {count(len(changes) - 1, 'more fact')}" if len(changes) > 1 else ""
        did = f"{said} changed {name} from {old} to {new}{more}{ended}."
    if now.verdict == "healthy":
        return (
            f"{did} PyTorch works as before."
            if was.verdict == "healthy"
            else f"{did} {now.headline}"
        )
    new_ones = [f for f in now.findings if f.name not in _names(was.findings)]
    if now.verdict == was.verdict != "healthy" and not new_ones:
        return f"{did} What was wrong before still is: {now.headline}"
    return f"{did} {now.headline}"


def _changes(before: Look, after: Look) -> list[tuple[str, str, str]]:
    """Return (fact, before, after) of what a lock would hold, and of the packages around it."""
    from torchdoctor import lock  # noqa: PLC0415
    from torchdoctor.compare.rows import NONE, NOT_TOLD, THERE, rows  # noqa: PLC0415

    old, new = dict(rows(before.facts)), dict(rows(after.facts))
    held = list(dict.fromkeys([*lock.held(before.facts), *lock.held(after.facts)]))
    around = sorted({f for f in (*old, *new) if f.startswith(PACKAGES)} - set(held))
    silent = (NOT_TOLD, THERE)
    return [
        (fact, old.get(fact, NONE), new.get(fact, NONE))
        for fact in (*held, *around)
        if old.get(fact, NONE) != new.get(fact, NONE)
        and old.get(fact) not in silent
        and new.get(fact) not in silent
    ]


def _back(guarded: Guarded) -> Step | None:
    """Return the step that brings the packages back to what they were; None if none changed."""
    from torchdoctor import steps  # noqa: PLC0415
    from torchdoctor.facts import Unknown  # noqa: PLC0415

    before, after = guarded.before.facts.distributions, guarded.after.facts.distributions
    if isinstance(before, Unknown) or isinstance(after, Unknown):
        return None
    old = {d.name: d.version for d in before}
    new = {d.name: d.version for d in after}
    versions = {name: version for name, version in old.items() if new.get(name) != version}
    added = sorted(set(new) - set(old))
    if not versions and not added:
        return None
    return steps.restore(
        guarded.after.facts, versions, added=added, why="They are what was there before."
    )
