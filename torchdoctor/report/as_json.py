"""The report for programs: the contract ``torchdoctor.report/1`` of report.schema.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from torchdoctor import __version__

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Outcome, PlannedStep
    from torchdoctor.report.document import Report

SCHEMA = "torchdoctor.report/1"


def render(report: Report) -> str:
    """Return *report* as JSON. All ASCII, so that no pipe and no code page can spoil it."""
    return json.dumps(as_dict(report), indent=2, allow_nan=False) + "\n"


def as_dict(report: Report) -> dict[str, object]:
    """Return *report* as the plain value that :func:`render` writes."""
    target = report.target
    document: dict[str, object] = {
        "schema": SCHEMA,
        "tool": {"name": "torchdoctor", "version": __version__},
        "target": {
            "source": target.source,
            "inputs": list(target.inputs),
            "os": target.os,
            "python": target.python,
            "collected_at": target.collected_at,
        },
        "verdict": report.verdict,
        "findings": [_finding(f) for f in report.findings],
        "plan": [step(planned) for planned in report.plan.steps],
        "after_plan": {
            "verdict": report.verdict_after_plan,
            "findings": [_finding(f) for f in report.findings_after_plan],
        },
        "checks": [_check(outcome) for outcome in report.outcomes],
        "data": _plain(_data(report)),
    }
    if report.error is not None:
        error = report.error
        document["error"] = {"kind": error.kind, "message": error.message, "file": error.file}
    return document


def _finding(finding: Finding) -> dict[str, object]:
    entry: dict[str, object] = {
        "name": finding.name,
        "family": finding.family,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "summary": finding.summary,
        "evidence": [
            {"fact": seen.fact, "value": seen.value, "from": seen.source}
            for seen in finding.evidence
        ],
        "because_of": list(finding.because_of),
        "steps": [step.name for step in finding.steps],
    }
    if (place := finding.location) is not None:
        parts = {"file": place.file, "line": place.line, "column": place.column}
        entry["location"] = {key: value for key, value in parts.items() if value is not None}
    if finding.where is not None:
        entry["where"] = _plain(finding.where)
    return entry


def step(planned: PlannedStep) -> dict[str, object]:
    """Return a step of a plan as every document has it."""
    step = planned.step
    return {
        "step": step.name,
        "title": step.title,
        "why": step.why,
        "commands": {
            "bash": list(step.commands.bash),
            "powershell": list(step.commands.powershell),
            "cmd": list(step.commands.cmd),
        },
        "needs": list(step.needs),
        "deletes": step.deletes,
        "clears": list(planned.clears),
        "verify": list(planned.verify),
    }


def _check(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.check,
        "outcome": outcome.status,
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 6),
    }


def _data(report: Report) -> Mapping[str, object]:
    remarks = {"remarks": list(report.remarks)} if report.remarks else {}
    return {**report.data, **remarks}


def _plain(value: object) -> object:
    """Return *value* in JSON's own types; a measure that is not a finite number becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return str(value)
