"""The report as SARIF 2.1.0 (OASIS): findings as results, with their place in a file if any."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from torchdoctor import __version__
from torchdoctor.report import lines

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Location
    from torchdoctor.report.document import Report

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def render(report: Report) -> str:
    """Return *report* as SARIF, all ASCII."""
    names = list(dict.fromkeys(finding.name for finding in report.findings))
    run: dict[str, object] = {
        "tool": {
            "driver": {
                "name": "torchdoctor",
                "version": __version__,
                "rules": [
                    {"id": name, "help": {"text": f"torchdoctor explain {name}"}} for name in names
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, names, report) for finding in report.findings],
        "invocations": [_invocation(report)],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(finding: Finding, names: list[str], report: Report) -> dict[str, object]:
    made: dict[str, object] = {
        "ruleId": finding.name,
        "ruleIndex": names.index(finding.name),
        "level": finding.severity,
        "message": {"text": "\n".join(lines.of(finding, report))},
        "partialFingerprints": {"torchdoctor/1": fingerprint(finding)},
        "properties": {"family": finding.family, "confidence": finding.confidence},
    }
    if finding.location is not None:
        made["locations"] = [{"physicalLocation": _place(finding.location)}]
    return made


def _place(location: Location) -> dict[str, object]:
    made: dict[str, object] = {"artifactLocation": {"uri": uri(location.file)}}
    if location.line is not None:
        region = {"startLine": max(1, location.line)}
        if location.column is not None:
            region["startColumn"] = max(1, location.column)
        made["region"] = region
    return made


def _invocation(report: Report) -> dict[str, object]:
    told = [
        {"level": "error", "message": {"text": f"{o.check}: {o.reason.strip() or 'crashed'}"}}
        for o in report.outcomes
        if o.status == "crashed"
    ]
    if report.error is not None:
        told.append({"level": "error", "message": {"text": report.error.message}})
    told += [{"level": "note", "message": {"text": remark}} for remark in report.remarks if remark]
    return {
        "executionSuccessful": report.error is None,
        **({"toolExecutionNotifications": told} if told else {}),
    }


def fingerprint(finding: Finding) -> str:
    """Return what stays the same of *finding* when lines are added above it."""
    place = finding.location.file if finding.location else ""
    said = "\0".join((finding.name, place.replace("\\", "/"), finding.summary))
    return hashlib.sha256(said.encode("utf-8", "backslashreplace")).hexdigest()


def uri(file: str) -> str:
    """Return the name of a file, of any system, as the URI that SARIF wants."""
    if "\\" in file or re.match(r"[A-Za-z]:/", file):
        path = PureWindowsPath(file).as_posix()
        start = "file:///" if path[1:2] == ":" else "file:" if path.startswith("//") else ""
    else:
        path = PurePosixPath(file).as_posix()
        start = "file://" if path.startswith("/") else ""
    safe = "/:" if start else "/"
    return start + quote(path.encode("utf-8", "backslashreplace"), safe=safe)
