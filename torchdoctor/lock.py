"""What an environment that worked was like, kept in a file, as the expectation of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import translate
from functools import cache
from pathlib import Path
from typing import Literal, cast

from torchdoctor import __version__
from torchdoctor.compare.rows import NONE, NOT_TOLD, RENAMED, THERE, rows
from torchdoctor.facts import Facts
from torchdoctor.model import DoctorError, Severity
from torchdoctor.tables import load
from torchdoctor.values import dataclass

SCHEMA = "torchdoctor.lock/1"
LARGEST = 4 << 20
"""Bytes of a lock file; one has a few kilobytes."""
How = Literal["same", "minor", "least", "kinds"]
FIELDS = {said: name for name, said in RENAMED.items()}
KEPT = 128
_known: dict[tuple[object, ...], tuple[object, Mapping[str, str]]] = {}
"""What parts of facts told, beside these parts; at most ``KEPT``."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not as it was."""

    fact: str
    was: str
    now: str
    severity: Severity


def held(facts: Facts) -> dict[str, str]:
    """Return what a lock holds of *facts*, in the order of tables/lock.toml."""
    told = {fact: text for fact, text in rows(facts) if text not in (NOT_TOLD, THERE)}
    ordered = sorted((place, fact) for fact in told if (place := _place(fact)) is not None)
    return {fact: told[fact] for _, fact in ordered}


def dump(facts: Facts, made_at: str) -> str:
    """Return the text of the lock file of *facts*, made at *made_at* (ISO 8601)."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "torchdoctor", "version": __version__},
        "made_at": made_at,
        "facts": held(facts),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def read(path: str) -> dict[str, str]:
    """Return the facts that the lock file *path* holds.

    Raises:
        DoctorError: it cannot be read, or is no lock file.

    """
    again = "make one with: torchdoctor lock -o torchdoctor.lock"
    try:
        with Path(path).open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(f"{path} cannot be read: {reason}; {again}", file=path) from error
    try:
        document = json.loads(raw if len(raw) <= LARGEST else b"")
        known = document["schema"]
        facts = document["facts"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DoctorError(f"{path} is no lock file of torchdoctor; {again}", file=path) from error
    if known != SCHEMA:
        raise DoctorError(
            f"{path} is a {str(known)[:80]}; this torchdoctor {__version__} reads {SCHEMA}. "
            "Use a newer torchdoctor.",
            file=path,
        )
    if not isinstance(facts, dict) or not all(isinstance(v, str) for v in facts.values()):
        raise DoctorError(f"{path} is a damaged lock file; {again}", file=path)
    return cast("dict[str, str]", facts)


def differences(locked: Mapping[str, str], facts: Facts) -> Iterator[Difference]:
    """Yield in what *facts* are not as *locked* says; what nobody could tell is none."""
    told = _told(locked, facts)
    for fact, was in locked.items():
        rule = _rule(fact)
        now = told.get(fact, _absent(fact, told))
        if rule is None or now in (None, NOT_TOLD):
            continue
        if not _fits(was, now, rule[0]):
            yield Difference(fact, was, now, rule[1])


def untold(locked: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    """Return the locked facts that *facts* do not tell."""
    told = _told(locked, facts)
    return tuple(f for f in locked if told.get(f, _absent(f, told)) in (None, NOT_TOLD))


def _told(locked: Mapping[str, str], facts: Facts) -> dict[str, str]:
    """Return what *facts* tell of the parts that *locked* is about."""
    told: dict[str, str] = {}
    for part in dict.fromkeys(fact.partition(".")[0] for fact in locked):
        told |= _of_part(locked, facts, part)
    return told


def _of_part(locked: Mapping[str, str], facts: Facts, part: str) -> Mapping[str, str]:
    """Return what *facts* tell of *part*: a plan asks again after steps that leave most of them."""
    now = getattr(facts, FIELDS.get(part, part), None), facts.interpreter, locked
    key = (part, *map(id, now))
    if key not in _known:
        if len(_known) >= KEPT:
            _known.clear()
        told = dict(rows(facts, (part,), {*locked, part}))
        _known[key] = now, told  # with the values: their ids stay theirs
    return _known[key][1]


def _absent(fact: str, told: Mapping[str, str]) -> str | None:
    """Return what a fact without a row is: nothing, where what it belongs to was looked at."""
    above = fact.partition(".")[0]
    return NONE if told.get(above, NOT_TOLD) != NOT_TOLD else None


def _fits(was: str, now: str, how: How) -> bool:
    if was == now:
        return True
    if how == "same":
        return False
    if how == "kinds":
        one, other = ({re.sub(r"^\d+ x ", "", kind) for kind in t.split(", ")} for t in (was, now))
        return one == other
    old, new = (re.findall(r"\d+", text) for text in (was, now))
    if how == "minor":
        return old[:2] == new[:2]
    return [int(n) for n in new] >= [int(n) for n in old] if old and new else False


@cache
def _rules() -> tuple[tuple[re.Pattern[str], How, Severity], ...]:
    return tuple(
        (re.compile(translate(fact)), row["how"], row["severity"])
        for row in load("lock")["held"]
        for fact in row["facts"]
    )


def _place(fact: str) -> int | None:
    return next((i for i, (p, _, _) in enumerate(_rules()) if p.match(fact)), None)


@cache
def _rule(fact: str) -> tuple[How, Severity] | None:
    place = _place(fact)
    return None if place is None else _rules()[place][1:]
