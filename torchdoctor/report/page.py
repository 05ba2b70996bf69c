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
from torchdoctor.report.page_parts import SHELLS, of_fault, of_step, prose
from torchdoctor.report.words import LONG_VALUE, LONGEST, one_line, visible
from torchdoctor.resource import read_text

if TYPE_CHECKING:
    from torchdoctor.report.document import Detail, Report
    from torchdoctor.report.words import Shell
    from torchdoctor.snapshot import Snapshot

__all__ = ("SHELLS", "render")

ABOUT_SNAPSHOT = "Snapshot of the machine, redacted; torchdoctor check reads it from this page"
ENDS = {
    "answered": "answered",
    "failed": "failed",
    "timeout": "no answer in time",
    "not-started": "could not be started",
}


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
    yield f'<p class="verdict {report.verdict}">{prose(say(report.verdict))}</p>'
    yield f"<h1>{prose(one_line(report.headline, LONG_VALUE * 2))}</h1>"
    yield f'<p class="quiet">{prose(say(f"Looked at: {words.origin(report.target)}"))}</p>'
    yield '</header>\n<main>\n<p id="said" role="status" class="quiet"></p>'
    if report.plan.steps:
        yield f'<section>\n<h2>{prose(say("Do this"))}</h2>\n<ol class="plan">'
        for planned in report.plan.steps:
            yield from of_step(planned, shell, say)
        yield "</ol>"
    else:
        yield "<section>"
    yield from _outlook(report, say)
    yield "</section>"
    if report.groups:
        from torchdoctor.report import page_groups  # noqa: PLC0415 - of many machines only

        yield from page_groups.drawn(report, shell, say)
    yield from _faults(report, say)
    yield from _details(d for d in report.details if not (d.drawn and report.groups))
    yield from _not_told(report, say)
    if report.snapshot is not None:
        yield from _timeline(report.snapshot, say)
        yield from _snapshot(report.snapshot, say)
    yield "</main>"
    yield f"<footer>torchdoctor {__version__}</footer>"


def _outlook(report: Report, say: Callable[[str], str]) -> Iterator[str]:
    faults = [fault.finding for fault in report.faults if fault.finding.severity != "note"]
    said = words.outlook(report, faults, LONG_VALUE * 2)
    if said:
        yield f"<p>{prose(say(said))}</p>"
    if said.endswith(":"):
        yield "<ul>"
        for finding in report.plan.remaining:
            if finding.severity != "note":
                both = f"{finding.name}: {finding.summary}"
                yield f"<li>{prose(one_line(both, LONG_VALUE * 2))}</li>"
        yield "</ul>"


def _faults(report: Report, say: Callable[[str], str]) -> Iterator[str]:
    if not report.faults:
        return
    # Of many machines, each group has shown its own.
    folded = any(detail.drawn for detail in report.details) and bool(report.groups)
    if folded:
        title = f"{say('All findings')} ({len(report.faults)})"
        yield f"<details>\n<summary>{prose(title)}</summary>"
    else:
        yield f"<section>\n<h2>{prose(say('Findings'))}</h2>"
    for fault in report.faults:
        yield from of_fault(fault, say)
    yield "</details>" if folded else "</section>"


# ---- the rest ------------------------------------------------------------------------------------


def _details(details: Iterable[Detail]) -> Iterator[str]:
    for heading, group in groupby(details, key=lambda detail: detail.heading):
        yield f"<section>\n<h2>{prose(one_line(heading, LONG_VALUE))}</h2>"
        for fixed, same in groupby(group, key=lambda detail: detail.command or detail.table):
            texts = [detail.text for detail in same]
            if fixed:
                lines = "\n".join(escape(visible(text)) for text in texts)
                yield f'<pre class="text" tabindex="0">{lines}</pre>'
            else:
                yield from (f"<p>{prose(one_line(text, LONGEST))}</p>" for text in texts)
        yield "</section>"


def _not_told(report: Report, say: Callable[[str], str]) -> Iterator[str]:
    rows = [o for o in report.outcomes if o.status in {"unknown", "moot", "crashed"}]
    # What could not be read comes first among them, and has a section of its own beside groups.
    remarks = report.remarks[len(report.unread) if report.groups else 0 :]
    if not rows and not remarks:
        return
    title = f"{say('Not told')} ({len(rows) + len(remarks)})"
    yield f"<details>\n<summary>{prose(title)}</summary>\n<ul>"
    for remark in remarks:
        yield f"<li>{prose(one_line(remark, LONGEST))}</li>"
    for outcome in rows:
        why = one_line(outcome.reason, LONGEST)
        said = f"{say(outcome.status)}: {why}" if why else say(outcome.status)
        yield f"<li><code>{escape(outcome.check)}</code> {prose(said)}</li>"
    yield "</ul>\n</details>"


def _timeline(snapshot: Snapshot, say: Callable[[str], str]) -> Iterator[str]:
    """Draw when each probe ran, on the scale of the whole look."""
    runs = [(name, run, run.began) for name, run in snapshot.probes.items()]
    timed = sorted(((b, name, run) for name, run, b in runs if b is not None), key=lambda r: r[:2])
    whole = max((began + run.seconds for began, _, run in timed), default=0.0)
    if not whole:
        return
    yield f'<section>\n<h2>{prose(say("Probes"))}</h2>\n<ol class="bars">'
    for began, name, run in timed:
        left, width = (100 * x / whole for x in (began, run.seconds))
        said = f"{name}: {run.seconds:.2f} s, {say(ENDS[run.outcome])}"
        yield (
            f"<li><span>{prose(said)}</span>"
            f'<span class="track" aria-hidden="true"><span class="bar {escape(run.outcome)}" '
            f'style="left:{left:.2f}%;width:{min(width, 100 - left):.2f}%"></span></span></li>'
        )
    yield "</ol>\n</section>"


def _snapshot(snapshot: Snapshot, say: Callable[[str], str]) -> Iterator[str]:
    from torchdoctor import block  # noqa: PLC0415 - texts have none

    rows = escape(block.wrap(snapshot))
    yield f"<details>\n<summary>{prose(say(ABOUT_SNAPSHOT))}</summary>"
    yield f'<pre class="text" tabindex="0">\n{rows}</pre>\n</details>'
