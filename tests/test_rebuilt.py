"""Each cause is found on an input that was rebuilt from a public report, and cured by the plan."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.corpus_score import judge

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rebuilt"


class Rebuilt(NamedTuple):
    """A text, and the confirmed cause of what it shows."""

    cause: str
    text: str
    source: str


def inputs() -> list[Rebuilt]:
    return [
        Rebuilt(one["cause"], one["text"], one["source"])
        for path in sorted(FOLDER.glob("*.toml"))
        for one in tomllib.loads(path.read_text("utf-8"))["input"]
    ]


@pytest.mark.parametrize("one", inputs(), ids=lambda one: f"{one.cause}: {one.source[:50]}")
def test_the_cause_is_the_first_finding(one: Rebuilt) -> None:
    findings, plan = judge(one.text)
    above = [finding.name for finding in findings if finding.severity != "note"]
    assert above[:1] == [one.cause]
    assert one.source
    steps = findings[0].steps
    assert not steps or one.cause not in [f.name for f in plan.remaining if f.severity != "note"]
