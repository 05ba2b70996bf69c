"""The report for people. The only module that uses Rich, and only once there is a page to fill.

What is said is put together as :class:`Line` values; :func:`_painted` alone knows of widths,
colours and characters, so that no text from a machine reaches a terminal around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torchdoctor.report.printing import encodable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from torchdoctor.model import Evidence, Finding, Outcome, PlannedStep, Status
    from torchdoctor.report.document import Detail, Fault, Report

Shell = Literal["bash", "powershell", "cmd"]

# Colours that can be read on a light and on a dark background.
STYLES = {"error": "bold red", "warning": "bold magenta", "note": "cyan", "healthy": "bold green"}
MARKS = {"error": "✗", "warning": "!", "note": "-"}
COMMAND = "cyan"
UNSHOWN = "(A command with characters that cannot be shown here; --format json has it.)"
NEEDS = {"restart-shell": "new shell", "restart-container": "new container"}

# How much is shown unless everything is asked for.
FEW_FAULTS, FEW_LINES, FEW_NOTES = 12, 6, 5
SHORT_REASON, LONG_VALUE, LONGEST = 60, 240, 4000


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
) -> str:
    """Return *report* as lines for a terminal that is *width* columns wide.

    Commands are those for *shell*; they are never wrapped, cut or altered, at any width. All of
    it fits *encoding*, or ASCII without *unicode*. *verbose* leaves nothing out; *quiet* is the
    first line alone.
    """
    charset = encoding if unicode else "ascii"
    if quiet:
        return f"{_shown(_one_line(_in_one_line(report), LONG_VALUE * 2), charset)}\n"
    lines = _failed(report) if report.error else _page(report, verbose=verbose, shell=shell)
    return _painted(lines, width=width, colour=colour, charset=charset)


def _in_one_line(report: Report) -> str:
    if report.verdict not in {"broken", "degraded"} or not report.faults:
        return report.headline
    first = report.faults[0].finding
    return f"{first.severity} {first.name}: {report.headline}"


def _failed(report: Report) -> Iterator[Line]:
    yield Line(_one_line(report.headline, LONGEST), "bold red")


def _page(report: Report, *, verbose: bool, shell: Shell) -> Iterator[Line]:
    limit = LONGEST if verbose else LONG_VALUE * 2
    yield Line(
        _one_line(report.headline, limit),
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
        yield Line(_more(len(faults) - len(shown), "finding"))
    if report.plan.steps:
        yield Line()
        yield Line("Do this", "bold")
        for number, planned in enumerate(report.plan.steps, 1):
            yield from _step(number, planned, shell)
    yield from _details(report.details, verbose=verbose, limit=limit)
    if report.outcomes or report.findings or verbose:
        yield Line()
    yield from _outlook(report, [fault.finding for fault in faults], limit)
    yield from _notes(notes, verbose=verbose, limit=limit)
    yield from _not_told(report.outcomes, verbose=verbose)
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
        yield Line(_one_line(finding.summary, LONGEST), label="  ")
    yield from _place(finding)
    if causes := [name for name in finding.because_of if name in known and name != finding.name]:
        yield Line(_one_line(", ".join(causes), limit), label="  cause  ")
    yield from _evidence(finding.evidence, limit, verbose=verbose)
    shown = fault.consequences if verbose else fault.consequences[:FEW_LINES]
    for index, consequence in enumerate(shown):
        yield Line(
            _one_line(f"{consequence.name}: {consequence.summary}", limit),
            label="  then   " if index == 0 else " " * 9,
        )
        if verbose:
            yield from _evidence(consequence.evidence, limit, verbose=True)
    if len(fault.consequences) > len(shown):
        yield Line(_more(len(fault.consequences) - len(shown), "consequence"), label=" " * 9)


def _title(finding: Finding) -> Line:
    style = STYLES[finding.severity]
    return Line(
        _one_line(finding.name, LONG_VALUE),
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
        yield Line(_one_line(", ".join(said), LONG_VALUE), label="  at     ")


def _evidence(evidence: tuple[Evidence, ...], limit: int, *, verbose: bool) -> Iterator[Line]:
    shown = evidence if verbose else evidence[:FEW_LINES]
    for index, seen in enumerate(shown):
        source = f"  ({_one_line(seen.source, LONG_VALUE)})" if seen.source else ""
        yield Line(
            f"{_one_line(seen.fact, LONG_VALUE)}: {_one_line(seen.value, limit)}{source}",
            label="  seen   " if index == 0 else " " * 9,
        )
    if len(evidence) > len(shown):
        yield Line(_more(len(evidence) - len(shown), "fact"), label=" " * 9)


def _notes(notes: list[Fault], *, verbose: bool, limit: int) -> Iterator[Line]:
    shown = notes if verbose else notes[:FEW_NOTES]
    for note in shown:
        finding = note.finding
        yield Line(
            _one_line(f"{finding.summary} ({finding.name})", limit),
            label="Note: ",
            label_style=STYLES["note"],
        )
        if verbose:
            yield from _place(finding)
            yield from _evidence(finding.evidence, limit, verbose=True)
    if len(notes) > len(shown):
        yield Line(_more(len(notes) - len(shown), "note"), label="      ")


# ---- the plan --------------------------------------------------------------------------------


def _step(number: int, planned: PlannedStep, shell: Shell) -> Iterator[Line]:
    step = planned.step
    label = f"{number}. "
    margin = " " * len(label)
    marks = ["deletes"] if step.deletes else []
    yield Line(
        _one_line(step.title, LONGEST),
        "bold",
        label=label,
        label_style="bold",
        right=" · ".join([*marks, *(NEEDS.get(need, need) for need in step.needs)]),
        right_style="bold red" if step.deletes else "magenta",
    )
    if step.why:
        yield Line(_one_line(step.why, LONGEST), label=margin)
    for command in getattr(step.commands, shell):
        yield Line(command, COMMAND, label=f"{margin}  ", command=True)
    if not getattr(step.commands, shell) and step.commands:
        yield Line(f"There is no command for {shell}. In another shell:", label=margin)
        for command in step.commands.bash or step.commands.powershell or step.commands.cmd:
            yield Line(command, COMMAND, label=f"{margin}  ", command=True)
    for index, command in enumerate(planned.verify):
        start = f"{margin}then   " if index == 0 else f"{margin}       "
        yield Line(command, COMMAND, label=start, command=True)


def _details(details: tuple[Detail, ...], *, verbose: bool, limit: int) -> Iterator[Line]:
    shown = [detail for detail in details if verbose or not detail.more]
    for heading in dict.fromkeys(detail.heading for detail in shown):
        yield Line()
        yield Line(_one_line(heading, limit), "bold")
        for detail in (d for d in shown if d.heading == heading):
            if detail.command:
                yield Line(detail.text, COMMAND, label="  ", command=True)
            else:
                yield Line(_one_line(detail.text, limit), label="  ")


def _outlook(report: Report, faults: list[Finding], limit: int) -> Iterator[Line]:
    """Say what stands once the plan is done, or what the checks came to when there is none."""
    plan = report.plan
    if not plan.steps:
        if faults:
            names = _one_line(", ".join(dict.fromkeys(f.name for f in faults)), limit)
            yield Line(f"No command is known that cures {names}.")
        elif report.outcomes:
            yield Line(f"{_tally(report.outcomes)}.")
        return
    if not (report.outcomes or report.findings):  # no check ran, so nothing was replayed
        return
    after = "After this step" if len(plan.steps) == 1 else "After these steps"
    replayed = f" ({_tally(plan.outcomes, 'replayed')})" if plan.outcomes else ""
    remaining = [f for f in plan.remaining if f.severity != "note"]
    if remaining:
        yield Line(f"{after} {_count(len(remaining), 'finding')} would remain{replayed}:")
        for finding in remaining[:FEW_FAULTS]:
            yield Line(
                _one_line(f"{finding.name}: {finding.summary}", limit),
                label=f"{MARKS[finding.severity]} ",
                label_style=STYLES[finding.severity],
            )
        if len(remaining) > FEW_FAULTS:
            yield Line(_more(len(remaining) - FEW_FAULTS, "finding"), label="  ")
    elif plan.verdict == "healthy":
        yield Line(f"{after} nothing else stands in the way{replayed}.")
    else:
        yield Line(f"{after} nothing known stands in the way, but not all can be told{replayed}.")


# ---- what could not be told ------------------------------------------------------------------


def _not_told(outcomes: tuple[Outcome, ...], *, verbose: bool) -> Iterator[Line]:
    untold = [o for o in outcomes if o.status in {"unknown", "moot", "crashed"}]
    if verbose:
        yield from _not_told_in_full(untold)
        if clear := [_one_line(o.check, LONG_VALUE) for o in outcomes if o.status == "clear"]:
            yield Line(", ".join(clear), label="Clear: ")
        return
    # A fault of our own is never the one left out.
    untold.sort(key=lambda o: o.status != "crashed")
    groups: dict[str, list[str]] = {}
    for outcome in untold:
        groups.setdefault(_short_reason(outcome), []).append(outcome.check)
    said = [
        _one_line(f"{_few(names)} ({reason})" if reason else _few(names), LONG_VALUE)
        for reason, names in list(groups.items())[:FEW_LINES]
    ]
    left = sum(len(names) for names in list(groups.values())[FEW_LINES:])
    if left:
        said.append(_more(left, "check"))
    if said:
        yield Line(f"{'; '.join(said)}.", label="Not told: ")


def _remarks(remarks: tuple[str, ...], *, verbose: bool) -> Iterator[Line]:
    shown = remarks if verbose else remarks[:FEW_LINES]
    for index, remark in enumerate(shown):
        label = "Not read: " if index == 0 else " " * len("Not read: ")
        yield Line(_one_line(remark, LONGEST if verbose else LONG_VALUE), label=label)
    if len(remarks) > len(shown):
        yield Line(_more(len(remarks) - len(shown), "remark"), label=" " * len("Not read: "))


def _not_told_in_full(untold: list[Outcome]) -> Iterator[Line]:
    if untold:
        yield Line("Not told:")
    for outcome in untold:
        first, *rest = outcome.reason[:LONGEST].splitlines() or [""]
        name = _one_line(outcome.check, LONG_VALUE)
        yield Line(f"{name}  {outcome.status}: {first}", label="  ")
        for line in rest:
            yield Line(line.expandtabs(4), label="    ")


def _short_reason(outcome: Outcome) -> str:
    if outcome.status == "crashed":
        last = next((x for x in reversed(outcome.reason.splitlines()) if x.strip()), "")
        return _one_line(f"the check crashed: {last}", SHORT_REASON * 2)
    return _one_line(outcome.reason.split("; ")[0], SHORT_REASON)


def _origin(report: Report, *, verbose: bool) -> Iterator[Line]:
    target = report.target
    if target.source == "live" and not verbose:
        return
    what = ", ".join(target.inputs[:FEW_LINES]) or (
        "this machine" if target.source == "live" else ""
    )
    details = [
        target.source,
        target.os or "",
        f"Python {target.python}" if target.python else "",
        target.collected_at or "",
    ]
    said = f"{what} ({', '.join(detail for detail in details if detail)})"
    yield Line(_one_line(said, LONG_VALUE * 2), label="Looked at: ")


# ---- words -----------------------------------------------------------------------------------


def _one_line(text: str, limit: int) -> str:
    """Return *text* with its white space collapsed, and its middle left out when it is long."""
    # Far more than is shown, so that a text of many megabytes is not gone through in vain.
    if len(text) > 8 * limit:
        text = f"{text[: 4 * limit]} … {text[-4 * limit :]}"
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def _tally(outcomes: tuple[Outcome, ...], what: str = "") -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    words: dict[Status, str] = {
        "clear": "clear",
        "found": "with findings",
        "unknown": "unknown",
        "moot": "waiting",
        "crashed": "crashed",
    }
    parts = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
    total = " ".join(filter(None, [_count(len(outcomes), "check"), what]))
    return f"{total}: {', '.join(parts)}"


def _few(names: list[str]) -> str:
    if len(names) <= FEW_LINES:
        return ", ".join(names)
    return f"{', '.join(names[:FEW_LINES])} and {len(names) - FEW_LINES} more"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _more(number: int, what: str) -> str:
    return f"and {_count(number, f'more {what}')} (--verbose shows all)"


# ---- paint -----------------------------------------------------------------------------------


def _shown(text: str, charset: str) -> str:
    """Return *text* with whatever could move a cursor or reorder a line made visible."""
    if not text.isprintable():
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
        )
    return encodable(text, charset)


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
