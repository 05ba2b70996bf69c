"""The report as one HTML page: nothing is loaded from elsewhere, and no fact can break out of it.

What to do comes before the findings, each command with a button that copies it. Colour says
nothing that words do not. The page works without its script, in light and dark, on a telephone
and on paper. A redacted snapshot in it lets ``torchdoctor check page.html`` judge again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from torchdoctor import __version__
from torchdoctor.report import words
from torchdoctor.report.words import LONG_VALUE, LONGEST, one_line, visible
from torchdoctor.resource import read_text

if TYPE_CHECKING:
    from torchdoctor.model import Evidence, Finding, PlannedStep
    from torchdoctor.report.document import Detail, Fault, Report
    from torchdoctor.report.words import Shell
    from torchdoctor.snapshot import Snapshot

ABOUT_SNAPSHOT = "Snapshot of the machine, redacted; torchdoctor check reads it from this page"
ARROW = " -> "
"""Between the files of a chain in which each needs the next."""
ENDS = {
    "answered": "answered",
    "failed": "failed",
    "timeout": "no answer in time",
    "not-started": "could not be started",
}
SHELLS: dict[Shell, str] = {"bash": "bash", "powershell": "PowerShell", "cmd": "cmd"}


def render(
    report: Report, *, shell: Shell = "bash", say: Callable[[str], str] = str, language: str = "en"
) -> str:
    """Return *report* as a page, the commands for *shell* first.

    *say* says our own words in another *language* (BCP 47).
    """
    style, script = read_text("report", "page.css"), read_text("report", "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    title = f"torchdoctor: {say(report.verdict)}"
    return "\n".join(
        (
            f'<!doctype html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>",
            *_body(report, shell, say),
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _body(report: Report, shell: Shell, say: Callable[[str], str]) -> Iterator[str]:
    yield "<header>"
    yield f'<p class="verdict {report.verdict}">{_prose(say(report.verdict))}</p>'
    yield f"<h1>{_prose(one_line(report.headline, LONG_VALUE * 2))}</h1>"
    yield f'<p class="quiet">{_prose(say(f"Looked at: {words.origin(report.target)}"))}</p>'
    yield '</header>\n<main>\n<p id="said" role="status" class="quiet"></p>'
    if report.plan.steps:
        yield f'<section>\n<h2>{_prose(say("Do this"))}</h2>\n<ol class="plan">'
        for planned in report.plan.steps:
            yield from _step(planned, shell, say)
        yield "</ol>"
    else:
        yield "<section>"
    yield from _outlook(report, say)
    yield "</section>"
    if report.faults:
        yield f"<section>\n<h2>{_prose(say('Findings'))}</h2>"
        for fault in report.faults:
            yield from _fault(fault, say)
        yield "</section>"
    yield from _details(report.details)
    yield from _not_told(report, say)
    if report.snapshot is not None:
        yield from _timeline(report.snapshot, say)
        yield from _snapshot(report.snapshot, say)
    yield "</main>"
    yield f"<footer>torchdoctor {__version__}</footer>"


# ---- what to do ----------------------------------------------------------------------------------


def _step(planned: PlannedStep, shell: Shell, say: Callable[[str], str]) -> Iterator[str]:
    step = planned.step
    deletes = f'<span class="tag deletes">{_prose(say("deletes"))}</span>'
    tags = deletes if step.deletes else ""
    tags += "".join(f'<span class="tag">{_prose(say(n))}</span>' for n in words.needs(step.needs))
    yield f"<li>\n<h3>{_prose(one_line(step.title, LONG_VALUE * 2))}{tags}</h3>"
    if step.why.strip():
        yield f"<p>{_prose(one_line(step.why, LONGEST))}</p>"
    before, commands = words.commands(step, shell)
    if before:
        yield f"<p>{_prose(say(before))}</p>"
    yield from _commands(commands, say)
    if planned.verify:
        yield f"<p>{_prose(say('then'))}</p>"
        yield from _commands(planned.verify, say)
    for other, name in SHELLS.items():
        lines: tuple[str, ...] = getattr(step.commands, other)
        if other != shell and lines and lines != commands:
            yield f"<details>\n<summary>{name}</summary>"
            yield from _commands(lines, say)
            yield "</details>"
    yield "</li>"


def _commands(commands: Iterable[str], say: Callable[[str], str]) -> Iterator[str]:
    copy, done, marked = map(say, ("Copy", "Copied", "Marked: copy it with the keyboard"))
    for command in commands:
        yield (
            f'<div class="command"><pre tabindex="0">{escape(visible(command))}</pre>'
            f'<button type="button" hidden data-copy data-done="{escape(done)}" '
            f'data-marked="{escape(marked)}" aria-label="{escape(f"{copy}: {visible(command)}")}">'
            f"{escape(copy)}</button></div>"
        )


def _outlook(report: Report, say: Callable[[str], str]) -> Iterator[str]:
    faults = [fault.finding for fault in report.faults if fault.finding.severity != "note"]
    said = words.outlook(report, faults, LONG_VALUE * 2)
    if said:
        yield f"<p>{_prose(say(said))}</p>"
    if said.endswith(":"):
        yield "<ul>"
        for finding in report.plan.remaining:
            if finding.severity != "note":
                both = f"{finding.name}: {finding.summary}"
                yield f"<li>{_prose(one_line(both, LONG_VALUE * 2))}</li>"
        yield "</ul>"


# ---- why -----------------------------------------------------------------------------------------


def _fault(fault: Fault, say: Callable[[str], str]) -> Iterator[str]:
    finding = fault.finding
    yield f'<article class="card {finding.severity}">'
    marks = f"{say(finding.severity)} · {say(finding.confidence)}"
    yield (
        f"<h3><code>{escape(visible(finding.name))}</code> "
        f'<span class="mark {finding.severity}">{_prose(marks)}</span></h3>'
    )
    yield f"<p>{_prose(one_line(finding.summary, LONGEST))}</p>"
    yield from _place(finding)
    yield from _evidence(finding, say)
    for consequence in fault.consequences:
        both = f"{consequence.name}: {one_line(consequence.summary, LONGEST)}"
        yield f'<p class="quiet">{_prose(say("so"))} {_prose(both)}</p>'
    yield (
        f'<p class="quiet">{_prose(say("More:"))} '
        f"<code>torchdoctor explain {escape(visible(finding.name))}</code></p>\n</article>"
    )


def _place(finding: Finding) -> Iterator[str]:
    if (place := finding.location) is not None:
        spot = (place.file, place.line, place.column)
        at = ":".join(str(part) for part in spot if part is not None)
        yield f"<p><code>{escape(visible(at))}</code></p>"
    if finding.where:
        at = ", ".join(f"{key} {value}" for key, value in finding.where.items())
        yield f"<p><code>{escape(visible(at))}</code></p>"


def _evidence(finding: Finding, say: Callable[[str], str]) -> Iterator[str]:
    if not finding.evidence:
        return
    yield f'<dl class="evidence" aria-label="{escape(say("Evidence"))}">'
    for seen in finding.evidence:
        source = one_line(seen.source, LONG_VALUE)
        from_there = f' <span class="quiet">({_prose(source)})</span>' if source else ""
        yield (
            f"<dt>{_prose(one_line(seen.fact, LONG_VALUE))}{from_there}</dt><dd>{_value(seen)}</dd>"
        )
    yield "</dl>"


def _value(seen: Evidence) -> str:
    """Return the value of a fact; a chain of files is drawn as one."""
    links = one_line(seen.value, LONGEST).split(ARROW)
    if len(links) == 1:
        return f"<code>{escape(visible(links[0]))}</code>"
    drawn = "".join(f"<li><code>{escape(visible(link))}</code></li>" for link in links)
    return f'<ol class="chain">{drawn}</ol>'


# ---- the rest ------------------------------------------------------------------------------------


def _details(details: Iterable[Detail]) -> Iterator[str]:
    for heading, group in groupby(details, key=lambda detail: detail.heading):
        yield f"<section>\n<h2>{_prose(one_line(heading, LONG_VALUE))}</h2>"
        for fixed, same in groupby(group, key=lambda detail: detail.command or detail.table):
            texts = [detail.text for detail in same]
            if fixed:
                lines = "\n".join(escape(visible(text)) for text in texts)
                yield f'<pre class="text" tabindex="0">{lines}</pre>'
            else:
                yield from (f"<p>{_prose(one_line(text, LONGEST))}</p>" for text in texts)
        yield "</section>"


def _not_told(report: Report, say: Callable[[str], str]) -> Iterator[str]:
    rows = [o for o in report.outcomes if o.status in {"unknown", "moot", "crashed"}]
    if not rows and not report.remarks:
        return
    title = f"{say('Not told')} ({len(rows) + len(report.remarks)})"
    yield f"<details>\n<summary>{_prose(title)}</summary>\n<ul>"
    for remark in report.remarks:
        yield f"<li>{_prose(one_line(remark, LONGEST))}</li>"
    for outcome in rows:
        why = one_line(outcome.reason, LONGEST)
        said = f"{say(outcome.status)}: {why}" if why else say(outcome.status)
        yield f"<li><code>{escape(outcome.check)}</code> {_prose(said)}</li>"
    yield "</ul>\n</details>"


def _timeline(snapshot: Snapshot, say: Callable[[str], str]) -> Iterator[str]:
    """Draw when each probe ran, on the scale of the whole look."""
    runs = [(name, run, run.began) for name, run in snapshot.probes.items()]
    timed = sorted(((b, name, run) for name, run, b in runs if b is not None), key=lambda r: r[:2])
    whole = max((began + run.seconds for began, _, run in timed), default=0.0)
    if not whole:
        return
    yield f'<section>\n<h2>{_prose(say("Probes"))}</h2>\n<ol class="bars">'
    for began, name, run in timed:
        left, width = (100 * x / whole for x in (began, run.seconds))
        said = f"{name}: {run.seconds:.2f} s, {say(ENDS[run.outcome])}"
        yield (
            f"<li><span>{_prose(said)}</span>"
            f'<span class="track" aria-hidden="true"><span class="bar {escape(run.outcome)}" '
            f'style="left:{left:.2f}%;width:{min(width, 100 - left):.2f}%"></span></span></li>'
        )
    yield "</ol>\n</section>"


def _snapshot(snapshot: Snapshot, say: Callable[[str], str]) -> Iterator[str]:
    from torchdoctor import block  # noqa: PLC0415 - texts have none

    rows = escape(block.wrap(snapshot))
    yield f"<details>\n<summary>{_prose(say(ABOUT_SNAPSHOT))}</summary>"
    yield f'<pre class="text" tabindex="0">\n{rows}</pre>\n</details>'


def _prose(text: str) -> str:
    return escape(visible(text))
