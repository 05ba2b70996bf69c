"""A report in another language: its sentences are said anew, all else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from torchdoctor.report.document import Detail, Fault, Group, Report, Way

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Outcome, Plan, PlannedStep

Say = Callable[[str], str]
_EXPLAINS = re.compile(r"^ {6}a column is |^ all  .* different, |^ \.\.\.  and ")

_AT_ITS_END = re.compile(r"(?:waits for ever|has no more|   <- here)$")


def translated(report: Report, say: Say) -> Report:
    """Return *report* as *say* says it: summaries, steps, reasons, the first line."""
    return replace(
        report,
        headline=_headline(report, say),
        findings=tuple(_finding(f, say) for f in report.findings),
        outcomes=tuple(_outcome(o, say) for o in report.outcomes),
        plan=_plan(report.plan, say),
        details=tuple(_detail(d, say) for d in report.details),
        remarks=tuple(map(say, report.remarks)),
        groups=tuple(_group(g, say) for g in report.groups),
        unread=tuple((name, say(why)) for name, why in report.unread),
    )


def _plan(plan: Plan, say: Say) -> Plan:
    return replace(
        plan,
        steps=tuple(_step(s, say) for s in plan.steps),
        remaining=tuple(_finding(f, say) for f in plan.remaining),
        outcomes=tuple(_outcome(o, say) for o in plan.outcomes),
    )


def _group(group: Group, say: Say) -> Group:
    return replace(
        group,
        faults=tuple(
            Fault(_finding(f.finding, say), tuple(_finding(c, say) for c in f.consequences))
            for f in group.faults
        ),
        ways=tuple(_way(way, say) for way in group.ways),
    )


def _way(way: Way, say: Say) -> Way:
    return replace(way, plan=_plan(way.plan, say))


def _headline(report: Report, say: Say) -> str:
    for fault in report.faults:
        summary = fault.finding.summary
        if report.headline.startswith(summary):
            rest = report.headline[len(summary) :]
            return say(summary) + (say(rest) if rest else "")
    return say(report.headline)


def _detail(detail: Detail, say: Say) -> Detail:
    # Of a table only what explains it is a sentence; its cells keep their columns.
    if detail.table and not _EXPLAINS.search(detail.text):
        text = _AT_ITS_END.sub(lambda found: say(found[0]), detail.text)
    else:
        text = detail.text if detail.command else say(detail.text)
    return replace(detail, heading=say(detail.heading), text=text)


def _finding(finding: Finding, say: Say) -> Finding:
    return replace(finding, summary=say(finding.summary))


def _outcome(outcome: Outcome, say: Say) -> Outcome:
    # The trace of a crash is for those who mend it.
    reason = outcome.reason if outcome.status == "crashed" else say(outcome.reason)
    findings = tuple(_finding(f, say) for f in outcome.findings)
    return replace(outcome, reason=reason, findings=findings)


def _step(planned: PlannedStep, say: Say) -> PlannedStep:
    step = planned.step
    return replace(planned, step=replace(step, title=say(step.title), why=say(step.why)))
