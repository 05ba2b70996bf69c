"""Texts that look like a cause and are not: nothing above a note is made of the likeness."""

from __future__ import annotations

import pytest

from tests import near_miss_texts as texts
from tests.corpus_score import judge

ALL = texts.near_misses()


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.looks_like}: {one.why[:60]}")
def test_the_likeness_alone_makes_no_finding(one: texts.NearMiss) -> None:
    findings, _ = judge(one.text)
    above = [finding.name for finding in findings if finding.severity != "note"]
    assert one.looks_like not in above
    assert above[:1] == ([one.is_it] if one.is_it else above[:1])


def test_there_are_many_and_each_says_what_makes_the_difference() -> None:
    assert len(ALL) >= 150
    assert all(one.why for one in ALL)
    assert len({one.text for one in ALL}) == len(ALL)
