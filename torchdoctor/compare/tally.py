"""Counts of what many machines say, in bounded memory, and what differs at the end.

Machines come one at a time and only numbers of them are kept: for every fact its values, each by a
hash with the numbers of the machines that said it, four bytes each. A fact with very many values
loses the rarest, which are then counted as others.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from torchdoctor.compare import rules
from torchdoctor.compare.rows import LONGEST, NONE, NOT_TOLD

MOST_VALUES = 64
"""Values of one fact that are told apart."""
MOST_FACTS = 20_000
"""Names of facts; a fleet of real machines has some thousands."""
ABSENT = "absent"
LONGEST_NAME = 200


@dataclass(slots=True)
class _Said:
    """One value, and who said it."""

    text: str
    machines: array[int] = field(default_factory=lambda: array("I"))


@dataclass(slots=True)
class _Fact:
    values: dict[int, _Said] = field(default_factory=dict)
    others: array[int] = field(default_factory=lambda: array("I"))
    """Who said something rare."""

    def add(self, machine: int, text: str) -> None:
        key = hash(text)
        said = self.values.get(key)
        if said is None:
            if len(self.values) >= MOST_VALUES:
                self._forget()
            said = self.values[key] = _Said(text[:LONGEST])
        said.machines.append(machine)

    def _forget(self) -> None:
        """Keep the more frequent half; what nearly all say is never among the others."""
        ordered = sorted(self.values.items(), key=lambda row: -len(row[1].machines))
        self.values = dict(ordered[: MOST_VALUES // 2])
        for _, said in ordered[MOST_VALUES // 2 :]:
            self.others.extend(said.machines)


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the numbers of the machines that have it, in order."""

    text: str
    machines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact in which machines differ. ``norm`` is what more than half of them say, if any."""

    fact: str
    subject: str
    norm: Value | None
    values: tuple[Value, ...]
    """The others, the most frequent first."""
    rare: int = 0
    """Machines whose values were too many to be told apart."""
    noise: str | None = None
    """Why it means nothing, where it does."""

    @property
    def outliers(self) -> tuple[int, ...]:
        """Return the machines that do not say what most do; none where there is no norm."""
        if self.norm is None:
            return ()
        return tuple(sorted(chain.from_iterable(value.machines for value in self.values)))


class Tally:
    """What was said so far."""

    def __init__(self) -> None:
        """Begin with no machine."""
        self.machines = 0
        self.left_out = 0
        """Rows of facts that were one too many."""
        self._facts: dict[str, _Fact] = {}
        self._made: tuple[int, tuple[Difference, ...]] | None = None

    @property
    def facts(self) -> int:
        """Return how many facts are compared."""
        return len(self._facts)

    def add(self, rows: Iterable[tuple[str, str]]) -> int:
        """Count what one machine says; return its number."""
        machine = self.machines
        self.machines += 1
        seen: set[str] = set()
        for name, text in rows:
            if len(name) > LONGEST_NAME or name in seen:
                continue
            seen.add(name)
            fact = self._facts.get(name)
            if fact is None:
                if len(self._facts) >= MOST_FACTS:
                    self.left_out += 1
                    continue
                fact = self._facts[name] = _Fact()
            fact.add(machine, text)
        return machine

    def differences(self) -> tuple[Difference, ...]:
        """Return what differs, in the order of what would matter for a failure; noise last."""
        if self._made is None or self._made[0] != self.machines:
            found = [d for name in self._facts if (d := self._difference(name)) is not None]
            self._made = self.machines, tuple(sorted(found, key=_order))
        return self._made[1]

    def _difference(self, name: str) -> Difference | None:
        fact = self._facts[name]
        told = [(said.text, said.machines) for said in fact.values.values()]
        heard = sum(len(machines) for _, machines in told) + len(fact.others)
        if heard == self.machines and len(told) == 1 and not fact.others:
            return None
        if missing := self._without(name, fact) if heard < self.machines else ():
            told.append((ABSENT, array("I", missing)))
        if len(told) == 1 and not fact.others:
            return None
        told.sort(key=lambda row: (-len(row[1]), row[0]))
        values = [Value(text, tuple(machines)) for text, machines in told]
        compared = sum(len(value.machines) for value in values) + len(fact.others)
        normal = 2 * len(values[0].machines) > compared
        return Difference(
            name,
            rules.subject(name),
            values[0] if normal else None,
            tuple(values[1:] if normal else values),
            rare=len(fact.others),
            noise=rules.noise(name),
        )

    def _without(self, name: str, fact: _Fact) -> list[int]:
        """Return the machines without a row *name*, though they have what it is a part of."""
        if "." not in name:
            return []  # nobody looked there
        there = set(fact.others).union(*(said.machines for said in fact.values.values()))
        for above in _above(name):
            parent = self._facts.get(above)
            if parent is None:
                continue
            lacking = [s.machines for s in parent.values.values() if s.text in (NONE, NOT_TOLD)]
            there = there.union(*lacking)
            if "." not in above:  # who does not say that it is there has not looked for it
                heard = set(parent.others).union(*(s.machines for s in parent.values.values()))
                there |= set(range(self.machines)) - heard
        return [machine for machine in range(self.machines) if machine not in there]


def _above(name: str) -> Iterator[str]:
    """Yield the names of what the fact *name* is a part of, the nearest first."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _order(difference: Difference) -> tuple[object, ...]:
    """Order by subject, then by how few are out of line, then by name."""
    out = len(difference.outliers) if difference.norm else len(difference.values)
    return (difference.noise is not None, *rules.place(difference.fact), out, difference.fact)
