"""The rows by which messages are known: of installs and imports, of runs, of bare words.

The files beside this one say what a row is. Nothing here matches text: reading/traceback.py does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import TypeAlias

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torchdoctor.tables import load
from torchdoctor.values import dataclass

Row: TypeAlias = Mapping[str, object]

TABLES = ("symptoms", "symptoms_running")


@cache
def rows() -> tuple[Row, ...]:
    """Return the rows of all messages; where two take one place in a text, the first wins."""
    return tuple(row for name in TABLES for row in load(name)["symptom"])


def is_printed_by(row: Row, versions: Mapping[str, Collection[str]]) -> bool:
    """Tell whether some of *versions*, by the name of the program, may print the message of *row*.

    A row without a range, and a program of which no version is known, may.
    """
    program, _, wanted = str(row.get("versions", "")).partition(" ")
    at_hand = versions.get(program, ())
    return not at_hand or any(_within(version, wanted.replace(" ", "")) for version in at_hand)


@cache
def _within(version: str, wanted: str) -> bool:
    try:
        return SpecifierSet(wanted).contains(Version(version).base_version)
    except InvalidVersion:
        return True


@dataclass(frozen=True, slots=True)
class Topic:
    """What a few words mostly mean: the command that decides, and causes, the likeliest first."""

    decide: str
    causes: tuple[tuple[str, str], ...]
    """The name of a finding, and what to say of it."""


ASKED = "asked-about"
"""The symptom that stands for bare words."""


@cache
def words() -> tuple[Row, ...]:
    """Return the rows of bare words, by which people ask when they have no message."""
    return tuple(
        {
            "name": ASKED,
            "hints": topic["words"],
            "regex": "|".join(map(_whole, topic["words"])),
            "set": {"topic": topic["name"]},
        }
        for topic in load("symptoms_words")["topic"]
    )


def _whole(word: str) -> str:
    """Return the expression of a word that begins as one; "oom" is in "room", and not meant."""
    start = r"(?<![a-z])" if word[0].isascii() and word[0].isalpha() else ""
    short = r"(?![a-z])" if word.isascii() and word.isalpha() and len(word) <= SHORT else ""
    return f"{start}{re.escape(word)}{short}"


SHORT = 3
"""Letters of a word that is no part of a longer one."""


def topic(name: str) -> Topic | None:
    """Return the topic called *name*."""
    for one in load("symptoms_words")["topic"]:
        if one["name"] == name:
            return Topic(one["decide"], tuple((cause, says) for cause, says in one["causes"]))
    return None


@cache
def lasting() -> frozenset[str]:
    """Return the names of messages that no install, and no variable of the loader, unsays."""
    return frozenset({str(row["name"]) for row in rows() if row.get("lasting")} | {ASKED})


@cache
def echoes() -> frozenset[str]:
    """Return the names of messages that only tell of what another process did."""
    return frozenset(str(row["name"]) for row in rows() if row.get("echo"))


def collect() -> Mapping[str, str]:
    """Return, for messages that nothing may explain, what to look at next."""
    known: Mapping[str, str] = load("symptoms_running")["collect"]
    return known


@cache
def told() -> frozenset[str]:
    """Return the names of what people say and no program prints."""
    return frozenset(str(row["name"]) for row in rows() if row.get("told"))
