"""The report for an issue on GitHub: Markdown that no fact can break out of, with the snapshot.

Text from a machine is escaped or stands in code; nobody is mentioned and no issue is linked by it.
The whole stays below what GitHub takes. The snapshot in it lets ``torchdoctor check`` judge the
machine again, see ``torchdoctor/block.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from torchdoctor import __version__
from torchdoctor.report import words
from torchdoctor.report.words import FEW_FAULTS, FEW_LINES, LONG_VALUE, LONGEST, one_line

if TYPE_CHECKING:
    from torchdoctor.model import Finding, PlannedStep
    from torchdoctor.report.document import Detail, Report
    from torchdoctor.report.words import Shell

LARGEST = 65_536
"""What GitHub takes as the text of an issue or a comment. It counts characters; we, bytes."""
LEFT_OUT = "The rest is left out: GitHub takes no longer text. `torchdoctor check` shows all."
NO_ROOM = (
    "The snapshot of this machine is left out, as the text would be longer than GitHub takes. "
    "`torchdoctor collect -o snapshot.json` writes it to a file."
)
UNSHOWN = "(A command with characters that cannot be shown here; `--format json` has it.)"
ABOUT_SNAPSHOT = "Snapshot of the machine, redacted; torchdoctor check reads it from this text"

_OWN = ("#### ", "Not told: ", "Not read: ", "Looked at: ", "  - at: ", "  - because of: ")
_SPECIAL = re.compile(r"[\\`*{}\[\]<>#|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_MENTION = re.compile(r"(@|#|\bGH-)(?=\w)")
_LEADING = re.compile(r"(?:([-+=:])|(\d{1,9})([.)]))")
_TICKS = re.compile(r"`+")


def render(
    report: Report,
    *,
    verbose: bool = False,
    shell: Shell = "bash",
    say: Callable[[str], str] = str,
) -> str:
    """Return *report* as Markdown of at most :data:`LARGEST` bytes, with commands for *shell*.

    *verbose* leaves out nothing that fits; *say* says our own words in another language.
    """
    if report.error is not None:
        return f"{_headline(report)}\n"
    parts = [_said(p, say) for p in _parts(report, verbose=verbose, shell=shell, say=say)]
    if report.snapshot is not None:
        from torchdoctor import block  # noqa: PLC0415 - texts have none

        whole = "\n".join([*parts, *_folded_away(block.wrap(report.snapshot))])
        if _size(whole) <= LARGEST:
            return whole
        parts += ["", NO_ROOM, ""]
    return _within(parts)


def _said(part: str, say: Callable[[str], str]) -> str:
    """Return *part* in another language, where it is a line of our own words."""
    return say(part) if part.startswith(_OWN) else part


def _within(parts: list[str]) -> str:
    """Return *parts*, of which each is whole by itself, as far as there is room."""
    whole = "\n".join(parts)
    if _size(whole) <= LARGEST:
        return whole
    room = LARGEST - _size(LEFT_OUT) - 4
    kept = []
    for part in parts:
        room -= _size(part) + 1
        if room < 0:
            break
        kept.append(part)
    return "\n".join([*kept, "", LEFT_OUT, ""])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


# ---- the parts ----------------------------------------------------------------------------------


def _parts(
    report: Report, *, verbose: bool, shell: Shell, say: Callable[[str], str]
) -> Iterator[str]:
    """Yield paragraphs and items; a fence is never spread over two."""
    limit = LONGEST if verbose else LONG_VALUE
    yield _headline(report, say)
    yield ""
    shown = report.findings if verbose else report.findings[:FEW_FAULTS]
    if shown:
        yield "#### Findings\n"
        known = {finding.name for finding in report.findings}
        for finding in shown:
            yield from _finding(finding, known, limit, verbose=verbose)
        if len(report.findings) > len(shown):
            yield f"- {words.more(len(report.findings) - len(shown), 'finding')}"
        yield ""
    if report.plan.steps:
        yield "#### Do this\n"
        for number, planned in enumerate(report.plan.steps, 1):
            yield _step(number, planned, shell, say)
    yield from _details(report.details, verbose=verbose)
    faults = [fault.finding for fault in report.faults if fault.finding.severity != "note"]
    yield from _outlook(report, faults, say)
    if untold := words.untold(report.outcomes, say):
        yield f"Not told: {_prose(untold)}\n"
    for remark in report.remarks if verbose else report.remarks[:FEW_LINES]:
        yield f"Not read: {_prose(one_line(remark, limit))}\n"
    yield f"Looked at: {_prose(words.origin(report.target))}\n"


def _headline(report: Report, say: Callable[[str], str] = str) -> str:
    said = _prose(one_line(report.headline, LONG_VALUE * 2))
    return f"**torchdoctor {__version__}: {say(report.verdict)}.** {said}"


def _finding(finding: Finding, known: set[str], limit: int, *, verbose: bool) -> Iterator[str]:
    name = _bold(finding.name)
    summary = _prose(one_line(finding.summary, LONGEST))
    yield f"- {name} ({finding.severity} · {finding.confidence}): {summary}"
    causes = [name for name in finding.because_of if name in known and name != finding.name]
    if causes:
        names = ", ".join(_code(name, LONG_VALUE) for name in dict.fromkeys(causes))
        yield f"  - because of: {names}"
    if (place := finding.location) is not None:
        spot = (place.file, place.line, place.column)
        yield f"  - at: {_code(':'.join(str(p) for p in spot if p is not None), LONG_VALUE)}"
    if finding.where:
        where = ", ".join(f"{key} {value}" for key, value in finding.where.items())
        yield f"  - at: {_code(where, LONG_VALUE)}"
    shown = finding.evidence if verbose else finding.evidence[:FEW_LINES]
    for seen in shown:
        source = f" ({_prose(one_line(seen.source, LONG_VALUE))})" if seen.source.strip() else ""
        fact = _paragraph(one_line(seen.fact, LONG_VALUE))
        yield f"  - {fact}: {_code(seen.value, limit)}{source}"
    if len(finding.evidence) > len(shown):
        yield f"  - {words.more(len(finding.evidence) - len(shown), 'fact')}"


def _step(number: int, planned: PlannedStep, shell: Shell, say: Callable[[str], str]) -> str:
    step = planned.step
    mark = f"{number}. "
    needs = [*(["deletes"] if step.deletes else []), *words.needs(step.needs)]
    marks = f" ({', '.join(map(say, needs))})" if needs else ""
    lines = [f"{_bold(step.title)}{marks}"]
    if step.why.strip():
        lines += ["", _paragraph(one_line(step.why, LONGEST))]
    before, commands = words.commands(step, shell)
    if before:
        lines += ["", say(before)]
    lines += _fenced(commands, shell if not before else "text")
    if planned.verify:
        lines += ["", say("then"), *_fenced(planned.verify, shell)]
    margin = " " * len(mark)
    indented = [f"{margin}{line}" if line else "" for line in lines[1:]]
    return "\n".join([f"{mark}{lines[0]}", *indented, ""])


def _details(details: Iterable[Detail], *, verbose: bool) -> Iterator[str]:
    shown = [detail for detail in details if verbose or not detail.more]
    for heading, group in groupby(shown, key=lambda detail: detail.heading):
        yield f"#### {_prose(one_line(heading, LONG_VALUE))}\n"
        for fenced, same in groupby(group, key=lambda detail: detail.command or detail.table):
            texts = [detail.text for detail in same]
            if fenced:
                yield "\n".join([*_fenced(texts, "text")[1:], ""])
            else:
                yield "".join(f"- {_paragraph(one_line(text, LONG_VALUE * 2))}\n" for text in texts)


def _outlook(report: Report, faults: list[Finding], say: Callable[[str], str]) -> Iterator[str]:
    said = words.outlook(report, faults, LONG_VALUE * 2)
    if said:
        yield f"{_paragraph(say(said))}\n"
    if said.endswith(":"):
        remaining = [finding for finding in report.plan.remaining if finding.severity != "note"]
        for finding in remaining[:FEW_FAULTS]:
            both = f"{finding.name}: {finding.summary}"
            yield f"- {_paragraph(one_line(both, LONG_VALUE * 2))}"
        if len(remaining) > FEW_FAULTS:
            yield f"- {words.more(len(remaining) - FEW_FAULTS, 'finding')}"
        yield ""


def _folded_away(rows: str) -> list[str]:
    return [
        f"<details>\n<summary>{ABOUT_SNAPSHOT}</summary>\n",
        f"```text\n{rows}```\n",
        "</details>\n",
    ]


# ---- text of a machine --------------------------------------------------------------------------


def _prose(text: str) -> str:
    """Return *text* such that Markdown and GitHub show it as it is."""
    inert = _MENTION.sub("\\1\u200b", words.visible(text))
    return _SPECIAL.sub(r"\\\g<0>", inert)


def _bold(text: str) -> str:
    return f"**{_prose(one_line(text, LONG_VALUE * 2)) or '(nothing)'}**"


def _paragraph(text: str) -> str:
    """Return the same for *text* that begins a line."""
    shown = _prose(text)
    if begins := _LEADING.match(shown):
        at = begins.end(2) if begins[2] else 0
        return f"{shown[:at]}\\{shown[at:]}"
    return shown


def _code(text: str, limit: int) -> str:
    """Return *text* as code within a line."""
    shown = words.visible(one_line(text, limit))
    if not shown:
        return "(nothing)"
    ticks = _more_ticks(shown, 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def _fenced(commands: Iterable[str], language: str) -> list[str]:
    """Return *commands* as lines of code; one that cannot be shown as it is, is not shown."""
    every = list(commands)
    shown = [command for command in every if command.isprintable() and command.strip()]
    lines = []
    if shown:
        fence = _more_ticks("\n".join(shown), 3)
        lines += ["", f"{fence}{language}", *shown, fence]
    return lines if len(shown) == len(every) else [*lines, "", UNSHOWN]


def _more_ticks(text: str, least: int) -> str:
    """Return so many backticks that none in *text* can end what they begin."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)
