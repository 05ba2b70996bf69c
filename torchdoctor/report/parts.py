"""What is known of a finding, in six parts: from the check's own documentation, and from a table.

A check writes for all of its findings at once. What holds for one of them alone, or stands nowhere
in the documentation under its head, is in ``tables/explained.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from torchdoctor.registry import Check
from torchdoctor.tables import load
from torchdoctor.values import dataclass

PARTS: Mapping[str, str] = {
    "what": "What it is",
    "shows": "How it shows",
    "why": "Why",
    "apart": "How to tell it from its neighbours",
    "fix": "Fix",
    "sources": "Sources",
}
"""The parts of an explanation in their order, with their heads."""
BAD, GOOD = "Bad", "Good"
_BEGINS = {
    "shows": re.compile(r"How it shows: ?"),
    "why": re.compile(r"Why: ?"),
    "apart": re.compile(r"(?:Neighbours|How to tell): ?|(?=Not to be confused )"),
    "fix": re.compile(
        r"(?:The fix|What to do|To have a finding): ?|The fix is (?:to )?"
        r"|(?=The fix\b|There is no )"
    ),
    "sources": re.compile(r"Sources?:\s?"),
}
_SPLIT = re.compile(r"(?<=[.)])\s+(?=Sources?:\s|The fix\b|Neighbours: |Not to be confused )")
"""Where the next part begins within a paragraph."""
_EXAMPLE = re.compile(rf"({BAD}|{GOOD})::$")


@dataclass(frozen=True, slots=True)
class Page:
    """What is known of one finding."""

    name: str
    maker: Check
    """The check that is most about it."""
    also: tuple[str, ...]
    """The names of others that find it, too."""
    parts: Mapping[str, tuple[str, ...]]
    """Paragraphs by part; what is not known has none."""
    bad: str = ""
    good: str = ""
    """Code in which a rule of lint finds it, and code in which it does not."""


def page(name: str, checks: Iterable[Check]) -> Page | None:
    """Return what is known of the finding *name*; None where none of *checks* finds it."""
    makers = [check for check in checks if name in check.names]
    # What only repeats, or answers a question, says nothing of the finding itself.
    own = [check for check in makers if not check.echoes] or makers
    if not own:
        return None
    row = rows().get(name, {})
    maker = min(own, key=lambda c: (c.name != row.get("by"), _is_rule(c), len(c.names)))
    told = dict(documented(maker.explains))
    told |= {part: tuple(_paragraphs(row[part])) for part in PARTS if part in row}
    rule = next((check for check in own if _is_rule(check)), None)
    return Page(
        name,
        maker,
        tuple(check.name for check in own if check.name not in (maker.name, name)),
        {part: told.get(part, ()) for part in PARTS},
        _example(rule.explains, BAD) if rule else "",
        _example(rule.explains, GOOD) if rule else "",
    )


def rows() -> Mapping[str, Mapping[str, str | list[str]]]:
    """Return what the tables say of findings, by name."""
    return {**load("explained")["finding"], **load("explained_scripts")["finding"]}


def documented(explains: str) -> Mapping[str, tuple[str, ...]]:
    """Return the paragraphs of the documentation of a check by part; code is left out.

    A paragraph without a head goes with the one before it, and the first is what is looked for.
    """
    found: dict[str, list[str]] = {}
    part = "what"
    for paragraph in _prose(explains):
        begins = next((p for p, head in _BEGINS.items() if head.match(paragraph)), None)
        if begins:
            part = begins
        elif part == "what" and found:
            part = "why"
        told = _BEGINS[begins].sub("", paragraph, count=1) if begins else paragraph
        found.setdefault(part, []).append(told)
    return {part: tuple(some) for part, some in found.items()}


def _prose(explains: str) -> Iterator[str]:
    for block in explains.split("\n\n"):
        if block.startswith("    ") or _EXAMPLE.match(block.strip()):
            continue
        for paragraph in _SPLIT.split(block):
            if text := " ".join(paragraph.split()):
                yield text


def _paragraphs(told: str | list[str]) -> Iterator[str]:
    if isinstance(told, list):  # sources
        yield ", ".join(told)
        return
    for paragraph in told.split("\n\n"):
        yield " ".join(paragraph.split())


def _is_rule(check: Check) -> bool:
    return f"{GOOD}::" in check.explains


def _example(explains: str, which: str) -> str:
    match = re.search(rf"^{which}::\n\n((?:[ ]{{4}}.*\n|\n)+)", f"{explains}\n", re.MULTILINE)
    return match[1].rstrip("\n") if match else ""
