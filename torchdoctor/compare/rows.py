"""The facts of one machine as rows: a dotted name and a text for each, to be compared.

Generic over the fields of facts.py: a new fact is compared without a change here. What a thing is
known by (a package by its name, a device file by its path) is its part of the name; GPUs are
counted, since their order says nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache

from torchdoctor.facts import NOT_COLLECTED, Distribution, Facts, Interpreter, Unknown
from torchdoctor.tables import load

NOT_TOLD = "not told"
NONE = "none"
THERE = "there"
LONGEST = 400
"""Characters of a value that are shown; all of it is compared."""
KEYS = {
    "CondaPackage": "name",
    "DeviceNode": "path",
    "DllFile": "path",
    "Leftover": "name",
    "SoFile": "name",
    "SoLoad": "named",
    "Symptom": "name",
    "Toolkit": "path",
    "VcNeed": "dll",
}
"""Facts of which there are several, and what each is known by."""
COUNTED = ("Gpu", "Device")
SAID_BY_NAME = ("Symptom", "Leftover")
"""Those of which it only matters that they are there."""
RENAMED = {"distributions": "packages"}


def rows(
    facts: Facts, parts: Collection[str] | None = None, wanted: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for everything that *facts* tell.

    Of *parts* only, where they are given; and none but the names that are *wanted*, if any are.
    A part that nobody looked for has no row; one that could not be told has one that says so.
    """
    same = _same_everywhere(facts)
    for name in facts.__slots__:
        said = RENAMED.get(name, name)
        if parts is not None and said not in parts:
            continue
        value = getattr(facts, name)
        if value == NOT_COLLECTED:
            continue
        for row, text in _of(said, value):
            if wanted is None or row in wanted:
                yield row, same(text)


def _of(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Unknown):
        yield name, NOT_TOLD
    elif isinstance(value, Mapping):
        yield name, THERE
        for key, item in value.items():
            yield from _of(f"{name}.{key}", item)
    elif isinstance(value, frozenset):
        yield from ((f"{name}.{item}", "yes") for item in sorted(value))
    elif isinstance(value, tuple):
        yield from _several(name, value)
    elif hasattr(value, "__slots__") and not isinstance(value, str):
        yield name, THERE
        for field in type(value).__slots__:
            yield from _of(f"{name}.{field}", getattr(value, field))
    else:
        yield name, _text(value)


def _text(value: object) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _several(name: str, values: tuple[object, ...]) -> Iterator[tuple[str, str]]:
    kind = type(values[0]).__name__ if values else ""
    if kind == "Distribution" or kind in (*COUNTED, *KEYS):
        yield name, THERE
    if kind == "Distribution":
        yield from _packages(name, [v for v in values if isinstance(v, Distribution)])
    elif kind in COUNTED:
        yield f"{name}.count", str(len(values))
        for field in type(values[0]).__slots__:  # type: ignore[attr-defined]
            said = Counter(_text(getattr(value, field)) for value in values)
            yield f"{name}.{field}", ", ".join(_times(text, n) for text, n in sorted(said.items()))
    elif kind in KEYS:
        for value in values:
            key = getattr(value, KEYS[kind])
            if kind in SAID_BY_NAME:
                yield f"{name}.{key}", "yes"
            else:
                yield from _of(f"{name}.{key}", value)
    else:
        yield name, ", ".join(map(_text, values)) or NONE


def _times(text: str, number: int) -> str:
    return text if number == 1 else f"{number} x {text}"


def _packages(name: str, found: Iterable[Distribution]) -> Iterator[tuple[str, str]]:
    """Yield one row a package: its version, of several copies all, the first in front."""
    versions: dict[str, list[str]] = {}
    for one in found:
        said = f"{one.version} (editable)" if one.editable else one.version
        versions.setdefault(one.name, []).append(said)
    yield from ((f"{name}.{package}", " and ".join(all_)) for package, all_ in versions.items())


def _same_everywhere(facts: Facts) -> Callable[[str], str]:
    """Return what takes out of a value where this environment happens to lie, and other noise."""
    places: list[tuple[str, str]] = []
    if isinstance(python := facts.interpreter, Interpreter):
        given = ((python.prefix, "<env>"), (python.base_prefix, "<python>"))
        places = sorted(((p, n) for p, n in given if len(p) > 1), key=lambda row: -len(row[0]))

    def same(text: str) -> str:
        # Most values are a version or a number, in which there is nothing to replace.
        if len(text) <= _SHORT and "/" not in text and "\\" not in text:
            return text
        for place, name in places:
            text = text.replace(place, name)
        for pattern, becomes in _noise_in_values():
            text = pattern.sub(becomes, text)
        return text

    return same


_SHORT = 16


@cache
def _noise_in_values() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple((re.compile(row["pattern"]), row["becomes"]) for row in load("compare")["value"])
