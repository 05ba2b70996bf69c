"""The report for people. The only module that uses Rich, and only once there is a page to fill.

What is said is put together as :class:`Line` values; :func:`_painted` alone knows of widths,
colours and characters, so that no text from a machine reaches a terminal around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.report import words
from torchdoctor.report.printing import encodable
from torchdoctor.report.words import (
    FEW_FAULTS,
    FEW_LINES,
    FEW_NOTES,
    LONG_VALUE,
    LONGEST,
    Shell,
    more,
    one_line,
)
from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from torchdoctor.model import Evidence, Finding, Outcome, PlannedStep
    from torchdoctor.report.document import Detail, Fault, Report

# Colours that can be read on a light and on a dark background.
STYLES = {"error": "bold red", "warning": "bold magenta", "note": "cyan", "healthy": "bold green"}
MARKS = {"error": "✗", "warning": "!", "note": "-"}
COMMAND = "cyan"
UNSHOWN = "(A command with characters that cannot be shown here; --format json has it.)"


@dataclass(frozen=True, slots=True)
class Line:
    """One paragraph before it meets the width of a page.

    ``label``, a few words of our own, stands before its first line and the others are indented
    as far; ``right`` goes to the right edge. A ``command`` is one line, shown as it is or not
    at all.
    """

    text: str = ""
    style: str = ""
    label: str = ""
    label_style: str = ""
    right: str = ""
    right_style: str = ""
    command: bool = False
    said: bool = True
    """Whether ``text`` is of our own words, which may be said in another language."""


def render(  # noqa: PLR0913 - each says one thing about the page
    report: Report,
    *,
    width: int = 80,
    colour: bool = False,
    unicode: bool = True,
    encoding: str = "utf-8",
    verbose: bool = False,
    quiet: bool = False,
    shell: Shell = "bash",
    say: Callable[[str], str] = str,
) -> str:
    """Return *report* as lines for a terminal that is *width* columns wide.

    Commands are those for *shell*; they are never wrapped, cut or altered, at any width. All of
    it fits *encoding*, or ASCII without *unicode*. *verbose* leaves nothing out; *quiet* is the
    first line alone. *say* says our own words in another language.
    """
    charset = encoding if unicode else "ascii"
    if quiet:
        return f"{_shown(one_line(_inone_line(report), LONG_VALUE * 2), charset)}\n"
    lines = (
        _failed(report) if report.error else _page(report, verbose=verbose, shell=shell, say=say)
    )
    said = (_said(line, say) for line in lines)
    return _painted(said, width=width, colour=colour, charset=charset)


def _said(line: Line, say: Callable[[str], str]) -> Line:
    return replace(
        line,
        text=say(line.text) if line.said and not line.command else line.text,
        label=say(line.label),
        right=" · ".join(map(say, line.right.split(" · "))),
    )


def _inone_line(report: Report) -> str:
    if report.verdict not in {"broken", "degraded"} or not report.faults:
        return report.headline
    first = report.faults[0].finding
    return f"{first.severity} {first.name}: {report.headline}"


def _failed(report: Report) -> Iterator[Line]:
    yield Line(one_line(report.headline, LONGEST), "bold red")


def _page(
    report: Report, *, verbose: bool, shell: Shell, say: Callable[[str], str]
) -> Iterator[Line]:
    limit = LONGEST if verbose else LONG_VALUE * 2
    yield Line(
        one_line(report.headline, limit),
        STYLES["healthy"] if report.verdict == "healthy" else "bold",
    )
    everything = report.faults
    faults = [fault for fault in everything if fault.finding.severity != "note"]
    notes = [fault for fault in everything if fault.finding.severity == "note"]
    known = {finding.name for finding in report.findings}
    shown = faults if verbose else faults[:FEW_FAULTS]
    for index, fault in enumerate(shown):
        yield Line()
        # The first line has said it already, in the same words.
        said = index == 0 and report.headline.startswith(fault.finding.summary)
        yield from _fault(fault, known, said=said, verbose=verbose)
    if len(faults) > len(shown):
        yield Line()
        yield Line(more(len(faults) - len(shown), "finding"))
    if report.plan.steps:
        yield Line()
        yield Line("Do this", "bold")
        for number, planned in enumerate(report.plan.steps, 1):
            yield from _step(number, planned, shell)
    yield from _details(report.details, verbose=verbose, limit=limit)
    if report.outcomes or report.findings or verbose or report.target.source != "live":
        yield Line()
    yield from _outlook(report, [fault.finding for fault in faults], limit)
    yield from _notes(notes, verbose=verbose, limit=limit)
    yield from _not_told(report.outcomes, verbose=verbose, say=say)
    yield from _remarks(report.remarks, verbose=verbose)
    yield from _origin(report, verbose=verbose)
    if report.findings:
        first = (faults or notes)[0].finding
        yield Line(f"torchdoctor explain {first.name}", label="More: ", command=True)


# ---- findings --------------------------------------------------------------------------------


def _fault(fault: Fault, known: set[str], *, said: bool, verbose: bool) -> Iterator[Line]:
    finding = fault.finding
    limit = LONGEST if verbose else LONG_VALUE
    yield _title(finding)
    if not said:
        yield Line(one_line(finding.summary, LONGEST), label="  ")
    yield from _place(finding)
    if causes := [name for name in finding.because_of if name in known and name != finding.name]:
        yield Line(one_line(", ".join(causes), limit), label="  cause  ")
    yield from _evidence(finding.evidence, limit, verbose=verbose)
    shown = fault.consequences if verbose else fault.consequences[:FEW_LINES]
    for index, consequence in enumerate(shown):
        yield Line(
            one_line(f"{consequence.name}: {consequence.summary}", limit),
            label="  then   " if index == 0 else " " * 9,
        )
        if verbose:
            yield from _evidence(consequence.evidence, limit, verbose=True)
    if len(fault.consequences) > len(shown):
        yield Line(more(len(fault.consequences) - len(shown), "consequence"), label=" " * 9)


def _title(finding: Finding) -> Line:
    style = STYLES[finding.severity]
    return Line(
        one_line(finding.name, LONG_VALUE),
        style,
        label=f"{MARKS[finding.severity]} ",
        label_style=style,
        right=f"{finding.severity} · {finding.confidence}",
        right_style=style,
    )


def _place(finding: Finding) -> Iterator[Line]:
    said = []
    if (place := finding.location) is not None:
        spot = (place.file, place.line, place.column)
        said.append(":".join(str(part) for part in spot if part is not None))
    if finding.where:
        said.append(", ".join(f"{key} {value}" for key, value in finding.where.items()))
    if said:
        yield Line(one_line(", ".join(said), LONG_VALUE), label="  at     ")


def _evidence(evidence: tuple[Evidence, ...], limit: int, *, verbose: bool) -> Iterator[Line]:
    shown = evidence if verbose else evidence[:FEW_LINES]
    for index, seen in enumerate(shown):
        source = f"  ({one_line(seen.source, LONG_VALUE)})" if seen.source else ""
        yield Line(
            f"{one_line(seen.fact, LONG_VALUE)}: {one_line(seen.value, limit)}{source}",
            label="  seen   " if index == 0 else " " * 9,
            said=False,
        )
    if len(evidence) > len(shown):
        yield Line(more(len(evidence) - len(shown), "fact"), label=" " * 9)


def _notes(notes: list[Fault], *, verbose: bool, limit: int) -> Iterator[Line]:
    shown = notes if verbose else notes[:FEW_NOTES]
    for note in shown:
        finding = note.finding
        yield Line(
            one_line(f"{finding.summary} ({finding.name})", limit),
            label="Note: ",
            label_style=STYLES["note"],
            said=False,  # the summary was, and a name is not
        )
        if verbose or finding.location is not None:
            yield from _place(finding)
        if verbose:
            yield from _evidence(finding.evidence, limit, verbose=True)
    if len(notes) > len(shown):
        yield Line(more(len(notes) - len(shown), "note"), label="      ")


# ---- the plan --------------------------------------------------------------------------------


def _step(number: int, planned: PlannedStep, shell: Shell) -> Iterator[Line]:
    step = planned.step
    label = f"{number}. "
    margin = " " * len(label)
    marks = ["deletes"] if step.deletes else []
    yield Line(
        one_line(step.title, LONGEST),
        "bold",
        label=label,
        label_style="bold",
        right=" · ".join([*marks, *words.needs(step.needs)]),
        right_style="bold red" if step.deletes else "magenta",
    )
    if step.why:
        yield Line(one_line(step.why, LONGEST), label=margin)
    before, commands = words.commands(step, shell)
    if before:
        yield Line(before, label=margin)
    for command in commands:
        yield Line(command, COMMAND, label=f"{margin}  ", command=True)
    for index, command in enumerate(planned.verify):
        start = f"{margin}then   " if index == 0 else f"{margin}       "
        yield Line(command, COMMAND, label=start, command=True)


def _details(details: tuple[Detail, ...], *, verbose: bool, limit: int) -> Iterator[Line]:
    shown = [detail for detail in details if verbose or not detail.more]
    for heading in dict.fromkeys(detail.heading for detail in shown):
        yield Line()
        yield Line(one_line(heading, limit), "bold")
        for detail in (d for d in shown if d.heading == heading):
            if detail.command or detail.table:
                style = COMMAND if detail.command else ""
                yield Line(detail.text, style, label="  ", command=True)
            else:
                yield Line(one_line(detail.text, limit), label="  ")


def _outlook(report: Report, faults: list[Finding], limit: int) -> Iterator[Line]:
    """Say what stands once the plan is done, or what the checks came to when there is none."""
    said = words.outlook(report, faults, limit)
    if said:
        yield Line(said)
    if not said.endswith(":"):
        return
    remaining = [f for f in report.plan.remaining if f.severity != "note"]
    for finding in remaining[:FEW_FAULTS]:
        yield Line(
            one_line(f"{finding.name}: {finding.summary}", limit),
            label=f"{MARKS[finding.severity]} ",
            label_style=STYLES[finding.severity],
        )
    if len(remaining) > FEW_FAULTS:
        yield Line(more(len(remaining) - FEW_FAULTS, "finding"), label="  ")


# ---- what could not be told ------------------------------------------------------------------


def _not_told(
    outcomes: tuple[Outcome, ...], *, verbose: bool, say: Callable[[str], str]
) -> Iterator[Line]:
    if verbose:
        untold = [o for o in outcomes if o.status in {"unknown", "moot", "crashed"}]
        yield from _not_told_in_full(untold, say)
        if clear := [one_line(o.check, LONG_VALUE) for o in outcomes if o.status == "clear"]:
            yield Line(", ".join(clear), label="Clear: ", said=False)
        return
    if said := words.untold(outcomes, say):
        yield Line(said, label="Not told: ", said=False)


def _remarks(remarks: tuple[str, ...], *, verbose: bool) -> Iterator[Line]:
    shown = remarks if verbose else remarks[:FEW_LINES]
    for index, remark in enumerate(shown):
        label = "Not read: " if index == 0 else " " * len("Not read: ")
        yield Line(one_line(remark, LONGEST if verbose else LONG_VALUE), label=label)
    if len(remarks) > len(shown):
        yield Line(more(len(remarks) - len(shown), "remark"), label=" " * len("Not read: "))


def _not_told_in_full(untold: list[Outcome], say: Callable[[str], str]) -> Iterator[Line]:
    if untold:
        yield Line("Not told:")
    for outcome in untold:
        first, *rest = outcome.reason[:LONGEST].splitlines() or [""]
        name = one_line(outcome.check, LONG_VALUE)
        # Names stay as they are, and the reason has been said.
        yield Line(f"{name}  {say(outcome.status)}: {first}", label="  ", said=False)
        for line in rest:
            yield Line(line.expandtabs(4), label="    ", said=False)


def _origin(report: Report, *, verbose: bool) -> Iterator[Line]:
    if report.target.source != "live" or verbose:
        yield Line(words.origin(report.target), label="Looked at: ")


# ---- paint -----------------------------------------------------------------------------------


def _shown(text: str, charset: str) -> str:
    """Return *text* with whatever could move a cursor or reorder a line made visible."""
    return encodable(words.visible(text), charset)


def _painted(lines: Iterable[Line], *, width: int, colour: bool, charset: str) -> str:
    from io import StringIO  # noqa: PLC0415 - with Rich, which costs more than all the rest

    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    page = StringIO()
    console = Console(
        file=page,
        width=width,
        color_system="standard" if colour else None,
        force_terminal=colour,
        force_jupyter=False,
        no_color=not colour,
        legacy_windows=False,
    )
    rows = [row for line in lines for row in _laid_out(line, console, width, charset)]
    if not colour:
        return "".join(f"{row.plain}\n" for row in rows)
    console.print(Text("\n").join(rows), soft_wrap=True, highlight=False)
    return page.getvalue()


def _laid_out(line: Line, console: Console, width: int, charset: str) -> Iterator[Text]:
    from rich.text import Text  # noqa: PLC0415

    if line.command:
        if _shown(line.text, charset) == line.text:
            yield Text.assemble(line.label, (line.text, line.style))
            return
        # Altered, it would be another command, and a comment is not one in every shell.
        line = Line(UNSHOWN, label=line.label)
    label = Text(_shown(line.label, charset), line.label_style)
    body = Text(_shown(line.text, charset), line.style)
    right = Text(_shown(line.right, charset), line.right_style)
    hang = min(label.cell_len, width // 2)
    gap = width - label.cell_len - body.cell_len - right.cell_len
    if right and gap > 1:
        yield Text.assemble(label, body, " " * gap, right)
        return
    rows = list(body.wrap(console, width - hang, overflow="fold"))
    rows += right.wrap(console, width - hang, overflow="fold") if right else []
    for index, row in enumerate(rows or [Text()]):
        whole = Text.assemble(label if index == 0 else " " * hang, row)
        whole.rstrip()
        yield whole
