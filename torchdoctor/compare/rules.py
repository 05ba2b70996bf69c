"""Which facts are noise, and in which order the others are told: tables/compare.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cache

from torchdoctor.tables import load


@cache
def noise(fact: str) -> str | None:
    """Return why a difference in *fact* means nothing; None where it may mean something."""
    kept, rows = _noise()
    if kept.match(fact):
        return None
    return next((why for pattern, why in rows if pattern.match(fact)), None)


@cache
def place(fact: str) -> tuple[int, int]:
    """Return where *fact* stands in the order: its subject's number, its row's within that."""
    for at, (_, patterns) in enumerate(_subjects()):
        for within, pattern in enumerate(patterns):
            if pattern.match(fact):
                return at, within
    return len(_subjects()), 0


def subject(fact: str) -> str:
    """Return the heading under which *fact* is told."""
    at, _ = place(fact)
    return _subjects()[at][0]


def _pattern(facts: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(translate(fact) for fact in facts))


@cache
def _noise() -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    table = load("compare")
    kept = _pattern(fact for row in table["kept"] for fact in row["facts"])
    return kept, tuple((_pattern(row["facts"]), row["why"]) for row in table["noise"])


@cache
def _subjects() -> tuple[tuple[str, tuple[re.Pattern[str], ...]], ...]:
    return tuple(
        (row["name"], tuple(_pattern([fact]) for fact in row["facts"]))
        for row in load("compare")["subject"]
    )
