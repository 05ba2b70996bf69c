"""Findings in the order in which to look at them: errors first, a cause before what it explains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchdoctor.model import CONFIDENCES, REPORTED, SEVERITIES, Finding, Layer, Outcome


def findings_of(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """Return all findings in *outcomes*, the first to look at first."""
    return ranked([f for outcome in outcomes for f in outcome.findings])


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return *findings* in order: errors first, a cause before what it explains.

    A finding that explains another is as severe, for the order, as what it explains. Ties go by
    the layer of the first step, by confidence, then by name.
    """
    weight = {id(f): SEVERITIES.index(f.severity) for f in findings}
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.name, []).append(finding)
    explained = [
        (finding, cause)
        for finding in findings
        for name in finding.because_of
        for cause in by_name.get(name, ())
    ]
    changed = True
    while changed:
        changed = False
        for finding, cause in explained:
            if weight[id(finding)] < weight[id(cause)]:
                weight[id(cause)] = weight[id(finding)]
                changed = True
    depth = {id(f): _depth(f, by_name, ()) for f, _ in explained}

    def key(finding: Finding) -> tuple[int, int, int, int, str, str]:
        layer = finding.steps[0].layer if finding.steps else Layer.SCRIPT
        return (
            weight[id(finding)],
            depth.get(id(finding), 0),
            layer,
            CONFIDENCES.index(finding.confidence),
            finding.name,
            finding.summary,
        )

    ordered = sorted(findings, key=key)
    # Those of a report had all their facts when they were put in order.
    told = iter([finding for finding in findings if finding.family == REPORTED])
    return tuple(next(told) if finding.family == REPORTED else finding for finding in ordered)


def _depth(finding: Finding, by_name: Mapping[str, list[Finding]], seen: tuple[str, ...]) -> int:
    causes = [name for name in finding.because_of if name in by_name and name not in seen]
    here = (*seen, finding.name)
    return max((1 + _depth(c, by_name, here) for n in causes for c in by_name[n]), default=0)
