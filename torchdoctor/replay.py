"""Run the checks again on facts that differ in a little: only those that read what differs.

A plan is searched on dozens of sets of facts, which share nearly everything. What a check said is
kept with the facts that it read, and said again where these are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields

from torchdoctor.facts import Facts
from torchdoctor.model import Outcome
from torchdoctor.registry import Check
from torchdoctor.run import in_order, looked, run

KEPT = 12
"""How many answers of a check are kept."""
_FIELDS = tuple(field.name for field in fields(Facts))

Numbers = dict[str, int]
"""For each field which of the values that were met it has."""


class Replay:
    """What checks say of facts, as :func:`torchdoctor.run.run` has it."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        """Keep *checks* and, once there is any, what they said."""
        self._checks = checks
        self._order = in_order(checks)
        self._said: dict[str, deque[_Said]] = {name: deque(maxlen=KEPT) for name in checks}
        self._values: dict[str, list[object]] = {name: [] for name in _FIELDS}
        self._known: dict[int, tuple[Facts, Numbers]] = {}

    def run(self, facts: Facts) -> tuple[Outcome, ...]:
        """Return one outcome for each check, in the order they ran."""
        return run(self._checks, facts, order=self._order, look=self.look)

    def look(self, check: Check, facts: Facts) -> Outcome:
        """Return what *check* alone says of *facts*."""
        numbers = self._numbers(facts)
        known = self._said[check.name]
        for said in known:
            if said.holds_for(numbers):
                return said.outcome
        said = _Said(check, facts, numbers)
        known.appendleft(said)
        return said.outcome

    def _numbers(self, facts: Facts) -> Numbers:
        if known := self._known.get(id(facts)):
            return known[1]
        numbers = {name: _place(self._values[name], getattr(facts, name)) for name in _FIELDS}
        self._known[id(facts)] = facts, numbers  # with the facts, so that the id stays theirs
        return numbers


def _place(values: list[object], value: object) -> int:
    """Return where *value* stands among *values*; it is added where it is not there."""
    for place, known in enumerate(values):
        if known is value or known == value:
            return place
    values.append(value)
    return len(values) - 1


class _Said:
    """What a check said, and of which facts."""

    __slots__ = ("_named", "_numbers", "_watched", "outcome")

    def __init__(self, check: Check, facts: Facts, numbers: Numbers) -> None:
        self._numbers = numbers
        self._named = tuple(name for name in check.reads if name != "facts")
        self._watched = _Watched.over(facts) if "facts" in check.reads else None
        self.outcome = looked(check, facts if self._watched is None else self._watched)

    def holds_for(self, numbers: Numbers) -> bool:
        """Tell whether the check would say the same of the facts with these *numbers*."""
        then = self._numbers
        for name in self._named:
            if numbers[name] != then[name]:
                return False
        if self._watched is None:
            return True
        return all(numbers[name] == then[name] for name in self._watched.touched)


class _Watched(Facts):
    """Facts that know which of their fields were read.

    A field is filled in when it is read first; steps that were built from these facts may do that
    later, too. To everybody else they are ordinary facts.
    """

    __slots__ = ("_whole", "touched")
    # So that dataclasses.replace makes plain facts of them.
    __class__ = Facts  # type: ignore[assignment]

    _whole: Facts
    touched: list[str]

    @staticmethod
    def over(facts: Facts) -> _Watched:
        """Return *facts*, none of which was read yet."""
        watched = object.__new__(_Watched)
        object.__setattr__(watched, "_whole", facts)
        object.__setattr__(watched, "touched", [])
        return watched

    def __getattr__(self, name: str) -> object:
        """Fill in a field: called while it has no value."""
        if name not in _FIELDS:
            raise AttributeError(name)
        value = getattr(self._whole, name)
        object.__setattr__(self, name, value)
        self.touched.append(name)
        return value
