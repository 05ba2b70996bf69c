"""Each cause is found on an input that was rebuilt from a public report, and cured by the plan."""

from __future__ import annotations

import pytest

from tests.corpus_score import judge
from tests.rebuilt_texts import Rebuilt, inputs


@pytest.mark.parametrize("one", inputs(), ids=lambda one: f"{one.cause}: {one.source[:50]}")
def test_the_cause_is_the_first_finding(one: Rebuilt) -> None:
    findings, plan = judge(one.text)
    above = [finding.name for finding in findings if finding.severity != "note"]
    assert above[:1] == [one.cause]
    assert one.source
    steps = findings[0].steps
    assert not steps or one.cause not in [f.name for f in plan.remaining if f.severity != "note"]
