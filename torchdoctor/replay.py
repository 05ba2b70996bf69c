"""Run the checks again on facts that differ in a little: only those that read what differs.

A plan is searched on dozens of sets of facts, which share nearly everything. What a check said is
kept with the facts that it read, and said again where these are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter

from torchdoctor.facts import Facts
from torchdoctor.model import Outcome
from torchdoctor.registry import Check
from torchdoctor.run import in_order, looked, run

_FIELDS = tuple(field.name for field in fields(Facts))
_PLACES = {name: place for place, name in enumerate(_FIELDS)}
_values_of = attrgetter(*_FIELDS)
_WIDTH = 16
"""Bits of a number: of one field a plan meets some hundred values, not thousands."""
_SHIFTS = tuple(_WIDTH * place for place in _PLACES.values())
_MASKS = tuple(((1 << _WIDTH) - 1) << shift for shift in _SHIFTS)
"""For each field, in their order, its bits in the numbers of facts."""


class Replay:
    """What checks say of facts, as :func:`torchdoctor.run.run` has it."""

    def __init__(self, checks: Mapping[str, Check]) -> None:
        """Keep *checks* and, once there is any, what they said."""
        self._checks = checks
        self._order: tuple[str, ...] = ()
        self._said: dict[str, dict[int, dict[object, _Said]]] = {name: {} for name in checks}
        """What each check said, by the bits of the fields that it read, and by these numbers."""
        self._values: tuple[list[object], ...] = tuple([] for _ in _FIELDS)
        self._met: dict[int, _Met] = {}

    def run(self, facts: Facts, like: Facts | None = None) -> tuple[Outcome, ...]:
        """Return one outcome for each check, in the order they ran.

        *like* are facts that were run before, and that these were made of.
        """
        now, before = self._of(facts, like), self._met.get(id(like))
        if before:
            changed = now.numbers ^ before.numbers
            now.said |= {
                name: told
                for name, told in before.said.items()
                if not (told.mask & changed or told.late)
            }
        known = {name: told.outcome for name, told in now.said.items()}

        def look(check: Check, _facts: Facts) -> Outcome:
            return self._look(check, now).outcome

        self._order = self._order or in_order(self._checks)
        return run(self._checks, facts, order=self._order, look=look, known=known)

    def told(self, facts: Facts, outcomes: Sequence[Outcome]) -> None:
        """Take note of what the checks said of *facts*, where it is known what they read."""
        met = self._of(facts, None)
        order = tuple(outcome.check for outcome in outcomes)
        if sorted(order) == sorted(self._checks):
            self._order = order
        for outcome in outcomes:
            check = self._checks.get(outcome.check)
            # An echo says less once others have spoken; one that waits has not looked.
            if check is None or check.echoes or outcome.status == "moot":
                continue
            if "facts" not in check.reads:
                met.said[check.name] = said = _Said(check, facts, met.numbers, outcome)
                self._keep(said, check)

    def look(self, check: Check, facts: Facts, like: Facts | None = None) -> Outcome:
        """Return what *check* alone says of *facts*, which were made of *like*."""
        return self._look(check, self._of(facts, like)).outcome

    def _look(self, check: Check, met: _Met) -> _Said:
        numbers = met.numbers
        said = met.said.get(check.name)
        if said and not said.late:
            return said
        for mask, answers in self._said[check.name].items():
            said = answers.get(numbers & mask)
            if said and not (said.late and said.mask & (said.numbers ^ numbers)):
                break
        else:
            said = _Said(check, met.facts, numbers)
            self._keep(said, check)
        met.said[check.name] = said
        return said

    def _keep(self, said: _Said, check: Check) -> None:
        self._said[check.name].setdefault(said.mask, {})[said.numbers & said.mask] = said

    def _of(self, facts: Facts, like: Facts | None) -> _Met:
        if known := self._met.get(id(facts)):
            return known
        values, before = _values_of(facts), self._met.get(id(like))
        numbers = before.numbers if before else 0
        for place, value in enumerate(values):
            if before is None or value is not before.values[place]:
                number = _place(self._values[place], value)
                numbers = numbers & ~_MASKS[place] | number << _SHIFTS[place]
        self._met[id(facts)] = met = _Met(facts, values, numbers)
        return met


class _Met:
    """Facts that were met, kept so that their id stays theirs, and what the checks said of them."""

    __slots__ = ("facts", "numbers", "said", "values")

    def __init__(self, facts: Facts, values: tuple[object, ...], numbers: int) -> None:
        self.facts = facts
        self.values = values
        self.numbers = numbers
        """Of each field, at its bits, which of the values that were met it has."""
        self.said: dict[str, _Said] = {}


def _place(values: list[object], value: object) -> int:
    """Return where *value* stands among *values*; it is added where it is not there."""
    for place, known in enumerate(values):
        if known is value or known == value:
            return place
    values.append(value)
    return len(values) - 1


@cache
def _read_by(names: tuple[str, ...]) -> tuple[int, bool]:
    """Return the bits of the fields with these *names*, and whether all are asked."""
    return sum(_MASKS[_PLACES[name]] for name in names if name != "facts"), "facts" in names


class _Said:
    """What a check said, and of which facts."""

    __slots__ = ("_ended", "late", "mask", "numbers", "outcome")

    def __init__(
        self, check: Check, facts: Facts, numbers: int, outcome: Outcome | None = None
    ) -> None:
        self.numbers = numbers
        self.mask, all_of_them = _read_by(check.reads)
        """The bits of the fields that it read."""
        self.late = self._ended = False
        """Whether one of its steps read a field when the check was done."""
        whole = _Watched.over(facts, self) if all_of_them else facts
        self.outcome = outcome or looked(check, facts, whole)
        self._ended = True

    def read(self, place: int) -> None:
        """Take note that the field at *place* was read, too."""
        self.mask |= _MASKS[place]
        self.late = self._ended


class _Watched(Facts):
    """Facts that tell which of their fields were read.

    A field is filled in when it is read first; steps that were built from these facts may do that
    later, too. To everybody else they are ordinary facts.
    """

    __slots__ = ("_said", "_whole")
    # So that dataclasses.replace makes plain facts of them.
    __class__ = Facts  # type: ignore[assignment]

    _whole: Facts
    _said: _Said

    @staticmethod
    def over(facts: Facts, said: _Said) -> _Watched:
        """Return *facts*, none of which was read yet; *said* is to know of each that is."""
        watched = object.__new__(_Watched)
        object.__setattr__(watched, "_whole", facts)
        object.__setattr__(watched, "_said", said)
        return watched

    def but(self, **changes: object) -> Facts:
        """Return these facts with *changes*, which tell of the fields that are read of them."""
        new = _Watched.over(self._whole.but(**changes), self._said)
        for name, value in changes.items():  # what is put in is not read
            object.__setattr__(new, name, value)
        return new

    def __getattr__(self, name: str) -> object:
        """Fill in a field: called while it has no value."""
        if name not in _PLACES:
            raise AttributeError(name)
        value = getattr(self._whole, name)
        object.__setattr__(self, name, value)
        self._said.read(_PLACES[name])
        return value


# Whoever goes through all fields goes through those of facts.
_Watched.__slots__ = Facts.__slots__  # type: ignore[assignment]
