"""Pieces of the environment probe's answer, their types checked.

Each function returns a value as its type and raises CannotReadError for another; *what* names the
piece that the value is from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class CannotReadError(ValueError):
    """The answer lacks something or has it in another shape. The message is a reason."""


def wrong(what: str) -> CannotReadError:
    """Return the error that *what* has another shape than the probe gives it."""
    return CannotReadError(f"the environment probe's answer cannot be read at {what!r}")


def mapping(value: object, what: str) -> Mapping[str, object]:
    """Return an object."""
    if not isinstance(value, Mapping):
        raise wrong(what)
    return value


def listed(value: object, what: str) -> Sequence[object]:
    """Return a list."""
    if not isinstance(value, (list, tuple)):
        raise wrong(what)
    return value


def mappings(value: object, what: str) -> list[Mapping[str, object]]:
    """Return a list of objects."""
    return [mapping(item, what) for item in listed(value, what)]


def text(value: object, what: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise wrong(what)
    return value


def text_or_none(value: object, what: str) -> str | None:
    """Return a text, or None where there is none."""
    return None if value is None else text(value, what)


def strings(value: object, what: str) -> tuple[str, ...]:
    """Return a list of texts."""
    return tuple(text(item, what) for item in listed(value, what))


def texts(value: object, what: str) -> dict[str, str]:
    """Return an object whose values are texts."""
    return {text(k, what): text(v, what) for k, v in mapping(value, what).items()}


def number(value: object, what: str) -> int:
    """Return a whole number that is not negative."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise wrong(what)
    return value


def truth(value: object, what: str) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise wrong(what)
    return value
