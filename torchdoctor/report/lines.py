"""What the formats for CI systems say of a finding, in lines without colour or width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchdoctor.report.words import LONGEST, one_line

if TYPE_CHECKING:
    from torchdoctor.model import Finding
    from torchdoctor.report.document import Report


def of(finding: Finding, report: Report) -> Iterator[str]:
    """Yield what is so, how that is known, and what to run."""
    yield one_line(finding.summary, LONGEST)
    for seen in finding.evidence:
        source = f" ({seen.source})" if seen.source else ""
        yield one_line(f"seen: {seen.fact}: {seen.value}{source}", LONGEST)
    if causes := [name for name in finding.because_of if name in _names(report)]:
        yield f"cause: {', '.join(causes)}"
    for planned in report.plan.steps:
        if finding.name in planned.clears:
            yield one_line(f"do: {planned.step.title}", LONGEST)
            yield from (f"  {command}" for command in planned.step.commands.bash)
    yield f"more: torchdoctor explain {finding.name}"


def _names(report: Report) -> set[str]:
    return {finding.name for finding in report.findings}
