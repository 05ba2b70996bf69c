"""The report as a Code Quality file of GitLab.

Source: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING

from torchdoctor.report import lines
from torchdoctor.report.sarif import fingerprint

if TYPE_CHECKING:
    from torchdoctor.model import Finding
    from torchdoctor.report.document import Report

NOWHERE = "environment"
"""The path of what is in no file: GitLab asks for one."""
_SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}


def render(report: Report) -> str:
    """Return *report* as a JSON array, all ASCII; empty where nothing was found."""
    met: Counter[str] = Counter()
    issues = [_issue(finding, report, met) for finding in report.findings]
    if report.error is not None:
        failed = report.error.message
        mark = hashlib.sha256(failed.encode("utf-8", "backslashreplace")).hexdigest()
        issues.append(_row("torchdoctor-failed", failed, mark, "blocker", (NOWHERE, 1)))
    return json.dumps(issues, indent=2) + "\n"


def _issue(finding: Finding, report: Report, met: Counter[str]) -> dict[str, object]:
    mark = fingerprint(finding)
    met[mark] += 1
    if met[mark] > 1:  # the same twice in one file: GitLab shows one of each
        mark = hashlib.sha256(f"{mark} {met[mark]}".encode()).hexdigest()
    place = finding.location
    path = place.file.replace("\\", "/").removeprefix("./") if place else NOWHERE
    line = max(1, place.line or 1) if place else 1
    said = "\n".join(lines.of(finding, report))
    return _row(finding.name, said, mark, _SEVERITIES[finding.severity], (path or NOWHERE, line))


def _row(
    name: str, said: str, mark: str, severity: str, place: tuple[str, int]
) -> dict[str, object]:
    path, line = place
    return {
        "description": said,
        "check_name": name,
        "fingerprint": mark,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line}},
    }
