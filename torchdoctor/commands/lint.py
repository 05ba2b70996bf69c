"""``torchdoctor lint``: what will go wrong in a training script on several ranks, unrun."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torchdoctor.commands import output
from torchdoctor.model import DoctorError, Finding, Plan, PlannedStep
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.facts import Facts
    from torchdoctor.lint.looking import Looked
    from torchdoctor.lint.rule import Rule
    from torchdoctor.report.document import Report

HELP = "read training scripts and name what goes wrong on several GPUs; nothing is run"
SCHEMA = "torchdoctor.lint/1"
FIX = "apply-lint-fixes"


@dataclass(frozen=True, slots=True)
class Fixed:
    """What is left once the mechanical faults are mended."""

    texts: dict[str, bytes]
    """Each file that changes, as it then is."""
    names: tuple[str, ...]
    """The findings that go, each once for every place."""
    left: Looked


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of this verb."""
    parser.add_argument(
        "paths",
        nargs="*",
        default=["."],
        metavar="PATH",
        help="scripts, notebooks, or folders of them (- for standard input; default: this folder)",
    )
    for option, what in (("--select", "ask only these"), ("--ignore", "leave these out")):
        parser.add_argument(
            option,
            action="append",
            default=[],
            metavar="NAME",
            help=f"{what}: rules or families (commas between several)",
        )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave out files and folders that match",
    )
    parser.add_argument(
        "--no-config",
        action="store_true",
        help="do not read [tool.torchdoctor.lint] of pyproject.toml",
    )
    parser.add_argument(
        "--fix", action="store_true", help="mend what is mechanical, in the files themselves"
    )
    output.options(parser)
    output.fail_on(parser)
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 when a file could not be read"
    )


def execute(args: argparse.Namespace) -> int:
    """Read, judge, mend if asked, report; return the exit code."""
    from torchdoctor.commands.check import exit_code  # noqa: PLC0415 - only this verb pays
    from torchdoctor.lint import looking  # noqa: PLC0415
    from torchdoctor.lint.rule import all_rules  # noqa: PLC0415
    from torchdoctor.lint.settings import Settings, chosen, find, words  # noqa: PLC0415

    start = next((Path(path) for path in args.paths if path != "-"), Path())
    settings = Settings() if args.no_config else find(start)
    rules = chosen(all_rules(), args.select or settings.select, [*args.ignore, *settings.ignore])
    for names in settings.per_file.values():
        words(all_rules(), names)
    given = Settings(exclude=(*settings.exclude, *args.exclude), per_file=settings.per_file)
    looked = looking.look(args.paths, rules, given)
    fixed = _fixed(looked, rules, given)
    if args.fix and fixed is not None:
        for file, raw in fixed.texts.items():
            _write(file, raw, before=looked.mendable[file])
        looked = fixed.left
    report = _report(args, looked, rules, fixed)
    code = exit_code(report.findings, report.outcomes, fail_on=args.fail_on, strict=args.strict)
    output.write(report, args)
    return 2 if not code and looked.named_unread else code


def _fixed(looked: Looked, rules: dict[str, Rule], settings: object) -> Fixed | None:
    """Return what the edits of *looked* lead to, tried out in memory; None if there are none."""
    from torchdoctor.lint import looking, mend  # noqa: PLC0415 - only this verb pays
    from torchdoctor.lint.settings import Settings  # noqa: PLC0415

    assert isinstance(settings, Settings)
    texts = {
        file: new for file, raw, found in looking.mended(looked) if (new := mend.mend(raw, found))
    }
    if not texts:
        return None
    left = looking.again(looked, texts, rules, settings)
    before = [f.name for f in looked.findings()]
    for name in (f.name for f in left.findings()):
        before.remove(name) if name in before else None
    return Fixed(texts, tuple(before), left) if before else None


def _write(file: str, raw: bytes, *, before: bytes) -> None:
    """Write *raw* over *file*, whole or not at all, unless it is no longer as it was *before*."""
    import os  # noqa: PLC0415 - only where something is mended
    import tempfile  # noqa: PLC0415

    place = Path(file).resolve()
    try:
        if place.read_bytes() != before:
            raise DoctorError(f"{file} has changed meanwhile; it is left as it is.", file=file)
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        try:
            with os.fdopen(handle, "wb") as opened:
                opened.write(raw)
            Path(name).chmod(place.stat().st_mode & 0o7777)
            Path(name).replace(place)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(f"{file} cannot be written: {reason}.", file=file) from error


def _report(
    args: argparse.Namespace, looked: Looked, rules: dict[str, Rule], fixed: Fixed | None
) -> Report:
    from dataclasses import replace  # noqa: PLC0415 - only this verb pays

    from torchdoctor.report import document  # noqa: PLC0415

    outcomes = looked.outcomes(rules)
    done = fixed if args.fix else None
    plan = None if args.fix or fixed is None else _plan(args.paths, fixed, rules)
    findings = looked.findings(plan.steps[0].step if plan else None)
    report = document.build(
        target=document.Target("script", inputs=tuple(args.paths)),
        findings=findings,
        outcomes=outcomes,
        plan=plan,
        data={
            "lint": {
                "schema": SCHEMA,
                "files": looked.files,
                "not_read": list(looked.unread),
                "mended": sorted(done.texts) if done else [],
                "mended_findings": list(done.names) if done else [],
            }
        },
        headline=_headline(findings, looked, done),
    )
    return replace(report, remarks=tuple(looked.unread))


def _headline(findings: Sequence[Finding], looked: Looked, done: Fixed | None) -> str:
    from torchdoctor.report.words import count  # noqa: PLC0415 - only this verb pays

    mended = f" {count(len(done.names), 'finding')} mended." if done else ""
    read = count(looked.files - looked.named_unread, "file")
    graves = [f for f in findings if f.severity != "note"]
    if graves:
        place = graves[0].location
        assert place is not None
        others = f" And {len(graves) - 1} more." if len(graves) > 1 else ""
        return f"{graves[0].summary} ({place.file}:{place.line}){others}{mended}"
    if findings:
        notes = count(len(findings), "note")
        return f"Nothing was found that goes wrong in {read}; {notes}.{mended}"
    return f"Nothing was found in {read}.{mended}"


def _plan(paths: Sequence[str], fixed: Fixed, rules: dict[str, Rule]) -> Plan:
    """Return the one step that mends what is mechanical, with what would remain."""
    from torchdoctor import model, shells  # noqa: PLC0415 - only where something can be mended
    from torchdoctor.report.words import count  # noqa: PLC0415
    from torchdoctor.scale import SMALL  # noqa: PLC0415

    again = ["torchdoctor", "lint", *paths]
    step = model.Step(
        FIX,
        f"Let torchdoctor mend {count(len(fixed.names), 'finding')} in "
        f"{count(len(fixed.texts), 'file')}",
        "What is mechanical is written into the files; the edits were tried out in memory, and "
        "the rules asked again.",
        model.Layer.SCRIPT,
        SMALL,
        effect=_as_it_is,
        commands=shells.in_all([[*again, "--fix"]]),
    )
    left = fixed.left.findings()
    stays = {finding.name for finding in left}
    clears = tuple(dict.fromkeys(name for name in fixed.names if name not in stays))
    return Plan(
        (PlannedStep(step, clears or tuple(dict.fromkeys(fixed.names)), ()),),
        model.verdict(left),
        left,
        fixed.left.outcomes(rules),
    )


def _as_it_is(facts: Facts) -> Facts:
    """Change no fact of the machine: the step is about a script."""
    return facts
