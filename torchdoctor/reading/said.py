"""What a probe answered, asked for its members by type.

Another shape than the probe gives is no answer: :class:`Unreadable`, with the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchdoctor.values import dataclass

if TYPE_CHECKING:
    from torchdoctor.child import Run

LONGEST_TEXT = 1 << 20
LARGEST_NUMBER = 1 << 63


class Unreadable(ValueError):  # noqa: N818 - it is an answer, not an error
    """A piece of the answer is missing, or of another shape than the probe gives it."""


@dataclass(frozen=True, slots=True)
class Said:
    """One object of a probe's answer, asked for its members by type; *where* it was is named."""

    data: Mapping[str, object]
    where: str

    def text(self, key: str) -> str | None:
        """Return a text, None when there is none; raises Unreadable for anything else."""
        value = self.data.get(key)
        if value is None or (isinstance(value, str) and len(value) <= LONGEST_TEXT):
            return value
        raise self._odd(key)

    def line(self, key: str) -> str | None:
        """Return a text without the blanks around it, None when nothing is left."""
        return (self.text(key) or "").strip() or None

    def number(self, key: str, least: int = 0) -> int | None:
        """Return a whole number, None when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return None
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and least <= value < LARGEST_NUMBER
        ):
            return value
        raise self._odd(key)

    def flag(self, key: str) -> bool:
        """Return a truth value, False when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._odd(key)

    def part(self, key: str) -> Said:
        """Return an object, an empty one when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return Said({}, f"{self.where}.{key}")
        if isinstance(value, Mapping):
            return Said(value, f"{self.where}.{key}")
        raise self._odd(key)

    def parts(self, key: str) -> tuple[Said, ...]:
        """Return a list of objects, empty when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            raise self._odd(key)
        return tuple(Said(one, f"{self.where}.{key}") for one in value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._odd(key)
        return tuple(value)

    def _odd(self, key: str) -> Unreadable:
        return Unreadable(f"{self.where}.{key} is not what the probe gives")


def said(run: Run, *pieces: str) -> Said:
    """Return the whole answer of *run*; raises Unreadable when one of *pieces* is not in it."""
    errors = run.data.get("errors")
    for piece in pieces:
        if piece not in run.data:
            told = errors.get(piece) if isinstance(errors, Mapping) else None
            why = told or run.reason or f"the probe ended before it: {run.outcome}"
            raise Unreadable(f"{piece}: {str(why)[:400]}")
    return Said(run.data, "host")
