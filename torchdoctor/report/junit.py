"""The report as a JUnit file: each check is a test case, a finding a failure.

After the schema of Apache Ant's JUnit task. What could not be told is skipped; what is not grave
enough to fail goes to the output of its test case's suite.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from torchdoctor import __version__
from torchdoctor.model import SEVERITIES
from torchdoctor.report import lines

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Outcome
    from torchdoctor.report.document import Report

UNKNOWN_TIME = "1970-01-01T00:00:00"
# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, *, fail_on: str = "error") -> str:
    """Return *report* as XML, all ASCII. Findings at *fail_on* (error or warning) are failures."""
    graves = SEVERITIES[:1] if fail_on in {"error", "never"} else SEVERITIES[:2]
    root = ET.Element("testsuites")
    cases = list(_cases(report, graves))
    count = {kind: sum(case.find(kind) is not None for case in cases) for kind in _KINDS}
    suite = ET.SubElement(
        root,
        "testsuite",
        id="0",
        package="torchdoctor",
        name="torchdoctor",
        timestamp=_time(report.target.collected_at),
        hostname="localhost",
        tests=str(len(cases)),
        failures=str(count["failure"]),
        errors=str(count["error"]),
        skipped=str(count["skipped"]),
        time=f"{sum(o.seconds for o in report.outcomes):.6f}",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", name=name, value=_text(value))
    suite.extend(cases)
    ET.SubElement(suite, "system-out").text = _text("\n".join(_output(report, graves)))
    ET.SubElement(suite, "system-err").text = _text("\n".join(report.remarks))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, "us-ascii").decode()}\n'


_KINDS = ("failure", "error", "skipped")


def _cases(report: Report, graves: tuple[str, ...]) -> Iterator[ET.Element]:
    if report.error is not None:
        case = _case("torchdoctor", "torchdoctor", 0.0)
        _put(case, "error", report.error.message, report.error.kind, report.error.message)
        yield case
    told: set[int] = set()
    for outcome in report.outcomes:
        told |= {id(finding) for finding in outcome.findings}
        yield _of_outcome(outcome, report, graves)
    named = {f.name for outcome in report.outcomes for f in outcome.findings}
    for finding in report.findings:  # those of no check: of a comparison, say
        if id(finding) not in told and finding.name not in named:
            case = _case(finding.name, finding.family or "torchdoctor", 0.0)
            _failed(case, [finding], report, graves)
            yield case


def _of_outcome(outcome: Outcome, report: Report, graves: tuple[str, ...]) -> ET.Element:
    family = next((finding.family for finding in outcome.findings if finding.family), "check")
    case = _case(outcome.check, family, outcome.seconds)
    if outcome.status == "crashed":
        last = outcome.reason.strip().splitlines()[-1:] or ["crashed"]
        _put(case, "error", last[0], "crashed", outcome.reason)
    elif outcome.status in {"unknown", "moot"}:
        _put(case, "skipped", outcome.reason, None, outcome.reason)
    else:
        _failed(case, outcome.findings, report, graves)
    return case


def _failed(
    case: ET.Element, findings: Iterable[Finding], report: Report, graves: tuple[str, ...]
) -> None:
    faults = [finding for finding in findings if finding.severity in graves]
    if faults:
        said = "\n\n".join("\n".join(lines.of(finding, report)) for finding in faults)
        _put(case, "failure", faults[0].summary, faults[0].name, said)


def _case(name: str, family: str, seconds: float) -> ET.Element:
    time = f"{max(0.0, seconds):.6f}"
    return ET.Element("testcase", name=_token(name), classname=_token(family), time=time)


def _put(case: ET.Element, kind: str, message: str, type_: str | None, text: str) -> None:
    given = {"message": _token(message), **({"type": _token(type_)} if type_ else {})}
    ET.SubElement(case, kind, given).text = _text(text)


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "torchdoctor", __version__
    yield "verdict", report.verdict
    target = report.target
    for name, value in (("os", target.os), ("python", target.python), ("source", target.source)):
        if value:
            yield name, value


def _output(report: Report, graves: tuple[str, ...]) -> Iterator[str]:
    yield report.headline
    for finding in report.findings:
        if finding.severity not in graves:
            yield f"{finding.severity} {finding.name}: {finding.summary}"


def _time(collected: str | None) -> str:
    """Return *collected* as the schema wants it: without a time zone."""
    try:
        return datetime.fromisoformat((collected or "")[:19]).strftime("%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return UNKNOWN_TIME


def _text(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _token(text: str) -> str:
    return " ".join(_text(text).split()) or "unnamed"
