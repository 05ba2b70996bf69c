"""Whatever a script looks like, no rule fails on it, and what is mended stays Python."""

from __future__ import annotations

import keyword
import random
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lint.scripts import samples
from torchdoctor.lint import looking, mend, source
from torchdoctor.lint.rule import all_rules
from torchdoctor.lint.source import Source, Unreadable

CODES = [sample.code for sample in samples()]
TOKENS = re.compile(r"\w+|[^\w\s]|\n[ ]*| +")


def torn(code: str, other: str, seed: int) -> str:
    """Return *code* with names changed for those of *other*, and tokens lost or doubled."""
    draw = random.Random(seed)  # noqa: S311 - damage, not secrets
    tokens, spare = TOKENS.findall(code), [t for t in TOKENS.findall(other) if named(t)]
    for _ in range(draw.randint(1, 6)):
        at = draw.randrange(len(tokens))
        if named(tokens[at]):
            tokens[at] = draw.choice((*spare, "rank", "None", "x.y", "self", "(lambda: 0)"))
        elif draw.random() < 0.1:
            del tokens[at : at + draw.randint(1, 3)]
        elif draw.random() < 0.1:
            tokens.insert(at, tokens[draw.randrange(len(tokens))])
        tokens = tokens or ["pass"]
    return "".join(tokens)


def named(token: str) -> bool:
    return token.isidentifier() and not keyword.iskeyword(token)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CODES), st.sampled_from(CODES), st.integers(0, 2**32))
def test_no_rule_fails_on_a_damaged_script(code: str, other: str, seed: int) -> None:
    text = torn(code, other, seed)
    crashed: dict[str, str] = {}
    try:
        found = looking.findings(Source("x.py", text), all_rules(), crashed)
    except Unreadable:
        return
    assert crashed == {}
    mended = mend.mend(text.encode(), found)
    if mended is not None:
        again = looking.findings(source.read("x.py", mended), all_rules(), crashed)
        assert crashed == {}
        assert mend.mend(mended, again) is None, mended.decode()


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for name in ("x.py", "x.ipynb"):
        assert "\n" not in refusal(name, raw)


def refusal(name: str, raw: bytes) -> str:
    try:
        looking.findings(source.read(name, raw), all_rules())
    except Unreadable as reason:
        return str(reason)
    return ""
