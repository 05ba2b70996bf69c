"""What the project says of its own scripts: ``[tool.torchdoctor.lint]`` of pyproject.toml."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torchdoctor.lint.rule import Rule
from torchdoctor.model import DoctorError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KNOWN = ("select", "ignore", "exclude", "per-file-ignores")


@dataclass(frozen=True, slots=True)
class Settings:
    """Which rules are asked, and which files are left out."""

    select: tuple[str, ...] = ()
    """Rules or families; empty: all."""
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    """Patterns of paths or of parts of them."""
    per_file: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Rules that are left out for the files that match a pattern."""


def find(start: Path) -> Settings:
    """Return the settings of the nearest pyproject.toml at or above *start* that has some.

    Raises:
        DoctorError: it cannot be read, or says what no setting is.

    """
    place = start.resolve()
    for folder in (place, *place.parents):
        file = folder / "pyproject.toml"
        if file.is_file():
            found = _read(file)
            if found is not None:
                return found
    return Settings()


def _read(file: Path) -> Settings | None:
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DoctorError(f"{file} cannot be read: {error}.", file=str(file)) from error
    table: object = document
    for name in ("tool", "torchdoctor", "lint"):
        table = table.get(name) if isinstance(table, dict) else None
    if table is None:
        return None
    if not isinstance(table, dict) or (strange := sorted(set(table) - set(KNOWN))):
        what = f"{strange[0]!r} is no setting" if isinstance(table, dict) else "it is no table"
        raise DoctorError(
            f"{file}: [tool.torchdoctor.lint]: {what}; there are {', '.join(KNOWN)}.",
            file=str(file),
            kind="usage",
        )
    per_file = table.get("per-file-ignores", {})
    if not isinstance(per_file, dict):
        raise _wrong(file, "per-file-ignores")
    return Settings(
        _names(file, table, "select"),
        _names(file, table, "ignore"),
        _names(file, table, "exclude"),
        {pattern: _names(file, per_file, pattern) for pattern in per_file},
    )


def _names(file: Path, table: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _wrong(file, key)
    return tuple(value)


def _wrong(file: Path, key: str) -> DoctorError:
    return DoctorError(
        f"{file}: [tool.torchdoctor.lint] {key} is not a list of names.",
        file=str(file),
        kind="usage",
    )


def chosen(
    rules: Mapping[str, Rule], select: Iterable[str], ignore: Iterable[str]
) -> dict[str, Rule]:
    """Return *rules*, cut down to those of *select* (all, if it is empty) and without *ignore*.

    Raises:
        DoctorError: a word is no rule and no family.

    """
    wanted, unwanted = words(rules, select), words(rules, ignore)
    return {
        name: rule
        for name, rule in rules.items()
        if (not wanted or wanted & {name, rule.family}) and not unwanted & {name, rule.family}
    }


def words(rules: Mapping[str, Rule], lists: Iterable[str]) -> set[str]:
    """Return the names in *lists*, each of which may hold several with commas between them.

    Raises:
        DoctorError: a word is no rule and no family.

    """
    found = {word.strip() for entry in lists for word in entry.split(",") if word.strip()}
    known = {*rules, *(rule.family for rule in rules.values())}
    for word in sorted(found - known):
        near = difflib.get_close_matches(word, sorted(known), 1)
        hint = f"; did you mean {near[0]}?" if near else "; torchdoctor list names them all."
        raise DoctorError(f"{word!r} is no rule of lint and no family{hint}", kind="usage")
    return found
