"""Texts that look like a cause and are not: nothing above a note is made of the likeness."""

from __future__ import annotations

from collections import Counter

import pytest

from tests import near_miss_texts as texts
from tests.corpus_score import judge, vocabulary
from torchdoctor.registry import all_checks

ALL = texts.near_misses()
FEWEST = 2


@pytest.mark.parametrize("one", ALL, ids=lambda one: f"{one.looks_like}: {one.why[:60]}")
def test_the_likeness_alone_makes_no_finding(one: texts.NearMiss) -> None:
    findings, _ = judge(one.text)
    above = [finding.name for finding in findings if finding.severity != "note"]
    assert one.looks_like not in above
    assert above[:1] == ([one.is_it] if one.is_it else [])
    assert set(above[1:]) <= set(one.also)


def test_each_root_cause_that_is_found_has_two_that_look_like_it() -> None:
    found = {name for check in all_checks().values() for name in check.names}
    looks = Counter(one.looks_like for one in ALL)
    assert [name for name in vocabulary() if name in found and looks[name] < FEWEST] == []
    assert looks.keys() <= found


def test_there_are_many_and_each_says_what_makes_the_difference() -> None:
    assert len(ALL) >= 150
    assert all(one.why for one in ALL)
    assert len({one.text for one in ALL}) == len(ALL)
