"""Every claim of the articles has its place in the program, and the page of them is current."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from torchdoctor.commands.known import known
from torchdoctor.lint.rule import all_rules
from torchdoctor.resource import read_text
from torchdoctor.training import advice, proofs

everything = cache(known)


def is_there(where: str) -> bool:
    """Tell whether the program has the place that a claim names."""
    kind, _, name = where.partition(":")
    checks = everything()
    if kind == "lint":
        return name in all_rules()
    if kind == "finding":
        return any(name in check.names for check in checks.values())
    if kind == "check":
        return name in checks
    if kind == "proof":
        return name in proofs.PROVES
    if kind == "harness":
        file, _, word = name.partition(":")
        return word in read_text("training", "harness", file)
    return kind in {"sanitize", "fixture", "explain"} and not name


def test_every_claim_has_a_place_that_is_there() -> None:
    lost = {
        claim.number: [where for where in claim.where if not is_there(where)]
        for claim in advice.claims()
        if not claim.where or not all(map(is_there, claim.where))
    }
    assert lost == {}


def test_a_place_that_is_not_there_is_noticed() -> None:
    for where in ("lint:no-such-rule", "harness:data.py:no such word", "proof:shards", "x:y"):
        assert not is_there(where)


def test_there_are_104_claims_in_their_order_and_false_ones_are_explained() -> None:
    claims = advice.claims()
    assert [claim.number for claim in claims] == list(range(1, 105))
    shown = advice.as_check().explains
    assert max(map(len, shown.splitlines())) <= advice.WIDTH
    said = shown.replace("\n", " ")
    for claim in claims:
        assert (claim.so in said) is (claim.truth != "true")
        assert claim.truth in advice.MARKS
    assert sum(claim.truth == "false" for claim in claims) == 14


def test_the_page_is_what_the_table_says() -> None:
    page = Path(advice.__file__).with_name("ADVICE.md").read_text(encoding="utf-8")
    assert page == advice.markdown()
    assert "| 49 | Hangs come of drop_last=True in the sampler" in page
