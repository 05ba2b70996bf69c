"""The report as annotations of GitHub Actions: lines that its runner shows beside the code.

Source: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchdoctor.report import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchdoctor.model import Finding
    from torchdoctor.report.document import Report

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable by which the runner names the file of the job's summary, written in Markdown."""
_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report) -> str:
    """Return *report* as workflow commands, one line each, after the first line of the report."""
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    # Not at the start of a line of its own: it might read as a command.
    yield f"torchdoctor: {' '.join(report.headline.split())}"
    if report.error is not None:
        yield f"::error title=torchdoctor::{_data(report.error.message)}"
    for outcome in report.outcomes:
        if outcome.status == "crashed":
            said = _data(f"{outcome.check} crashed\n{outcome.reason.strip()}")
            yield f"::error title=torchdoctor::{said}"
    for finding in report.findings:
        yield _annotation(finding, report)


def _annotation(finding: Finding, report: Report) -> str:
    given = {"title": finding.name}
    if (place := finding.location) is not None:
        given["file"] = place.file.replace("\\", "/")
        parts = {"line": place.line, "col": place.column}
        given |= {name: str(part) for name, part in parts.items() if part is not None}
    properties = ",".join(f"{name}={_property(value)}" for name, value in given.items())
    said = _data("\n".join(lines.of(finding, report)))
    return f"::{_LEVELS[finding.severity]} {properties}::{said}"


def _data(text: str) -> str:
    """Return *text* on one line, as the runner reads it back."""
    text = "\n".join(text.splitlines())  # other ends of lines, too
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
