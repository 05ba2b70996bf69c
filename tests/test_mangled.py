"""A listing that was torn on its way here gives the same findings, or what was lost is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import corpus_score
from tests.reading.pasted import manglings
from torchdoctor import inputs
from torchdoctor.facts import Expectation, Facts
from torchdoctor.reading import machine
from torchdoctor.run import run

LISTINGS = [c for c in corpus_score.cases() if c.kind in {"collect-env", "list"}]
MIXED = [c for c in corpus_score.cases() if c.kind == "mixed"]
WAYS = {
    "half its lines": manglings.half,
    "shuffled": manglings.shuffled,
    "quoted": manglings.quoted,
    "fenced": manglings.fenced,
    "wrapped at 80": manglings.wrapped,
    "tabs as spaces": manglings.tabs,
    "CRLF": manglings.crlf,
    "ANSI colours": manglings.coloured,
    "HTML escapes": manglings.escaped,
    "in a log": manglings.in_a_log,
}


def findings(text: str) -> tuple[list[str], Facts]:
    facts = machine.read(inputs.of_text(text), Expectation())
    outcomes = run(corpus_score.CHECKS, facts)
    names = {f.name for o in outcomes for f in o.findings if f.severity != "note"}
    return sorted(names), facts


# A message of which half the lines are gone, or in no order, is another message: these two ways
# are for listings alone.
TEARS = ("half its lines", "shuffled")
PAIRS = [(case, way) for case in LISTINGS for way in WAYS]
PAIRS += [(case, way) for case in MIXED for way in WAYS if way not in TEARS]


@pytest.mark.parametrize(("case", "way"), PAIRS, ids=lambda p: getattr(p, "id", p))
def test_a_mangled_listing_says_the_same_or_says_what_was_lost(
    case: corpus_score.Case, way: str
) -> None:
    text = case.file.read_text("utf-8")
    clean, _ = findings(text)
    said, facts = findings(WAYS[way](text))
    assert set(said) <= set(clean) or facts.remarks, f"made up: {set(said) - set(clean)}"
    assert said == clean or facts.remarks


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gbk", "utf-8-sig"])
@pytest.mark.parametrize("case", [*LISTINGS, *MIXED], ids=lambda c: c.id)
def test_a_listing_in_another_encoding_says_the_same(
    case: corpus_score.Case, encoding: str, tmp_path: Path
) -> None:
    text = case.file.read_text("utf-8")
    file = tmp_path / "pasted.txt"
    file.write_bytes(text.encode(encoding, "replace"))
    facts = machine.read(inputs.read([str(file)]), Expectation())
    outcomes = run(corpus_score.CHECKS, facts)
    names = {f.name for o in outcomes for f in o.findings if f.severity != "note"}
    assert sorted(names) == findings(text.encode(encoding, "replace").decode(encoding))[0]
