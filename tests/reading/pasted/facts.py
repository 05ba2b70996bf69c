"""Compare what two texts say of a machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import cast

from torchdoctor.facts import ErrorText, ImportTrial, Symptom, Unknown
from torchdoctor.reading.pasted import Pasted
from torchdoctor.tables.symptoms import ASKED

EMPTY: tuple[object, ...] = (None, "", (), False, frozenset())
"""Values that say nothing, or that a statement refines."""


def plain(value: object) -> object:  # noqa: PLR0911 - one answer for each type
    """Return *value* without what depends on where a line stood."""
    if isinstance(value, Symptom):
        return value.name, tuple(sorted((k, " ".join(v.split())) for k, v in value.values.items()))
    if isinstance(value, ErrorText) and value.type == "an exception":
        return None  # one that collect_env keeps to itself
    if isinstance(value, ErrorText):
        return value.type, re.sub(r"\s+", "", value.message)
    if isinstance(value, ImportTrial):
        return value.module, value.outcome, plain(value.error), value.file, value.version
    if isinstance(value, Unknown):
        return "unknown"
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    return value


def of(pasted: Pasted) -> dict[str, object]:
    """Return the facts of *pasted* as comparable values."""
    found = {name: plain(value) for name, value in pasted.fields.items()}
    # What bare words ask about is read where no message is, so it comes when one goes.
    symptoms = cast("tuple[tuple[str, object], ...]", found.pop("symptoms", ()))
    if kept := tuple(sorted(one for one in symptoms if one[0] != ASKED)):
        found["symptoms"] = kept
    return found


def contradictions(  # noqa: C901, PLR0911 - one answer for each type
    less: object, more: object, where: str = ""
) -> list[str]:
    """Return what *less* says that *more* does not: nothing may be made up."""
    if less == more or less in EMPTY or less == "unknown" or more == "unknown":
        return []
    if where.endswith((".installer", ".redacted", ".bits", ".source")):
        return []  # the installer of an environment has no spelling for "not known"
    if isinstance(less, dict) and isinstance(more, dict):
        found = []
        for key, value in less.items():
            if key not in more and value not in EMPTY:
                found.append(f"{where}.{key}: {value!r} out of nothing")
            elif key in more:
                found += contradictions(value, more[key], f"{where}.{key}")
        return found
    if isinstance(less, tuple) and isinstance(more, tuple):
        found = []
        for one in less:
            if not any(not contradictions(one, other) for other in more):
                found.append(f"{where}: {one!r} is not in {more!r}")
        return found
    if isinstance(less, str) and isinstance(more, str) and more.lower().startswith(less.lower()):
        return []
    if more in EMPTY and isinstance(less, str) and where.endswith((".source",)):
        return []
    return [f"{where}: {less!r} is not {more!r}"]
