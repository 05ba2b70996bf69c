"""Statements and what holds of them: the weightiest decides, what contradicts is kept apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field

from torchdoctor.facts import Unknown
from torchdoctor.reading.pasted.said import TOLD, Said, Value
from torchdoctor.values import dataclass

SAME_MACHINE = ({"x86_64", "AMD64", "amd64"}, {"aarch64", "arm64", "ARM64"})


@dataclass(frozen=True, slots=True)
class Source:
    """A statement and the file it was read from."""

    said: Said
    file: str

    @property
    def name(self) -> str:
        """Return the source as a person reads it."""
        return f"{self.file}: {self.said.layout}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two or more sources that contradict each other on one fact."""

    fact: str
    values: tuple[tuple[str, str], ...]
    """Each value as text, and where it was read."""

    @property
    def reason(self) -> str:
        """Return it as the reason of an unknown fact."""
        told = "; ".join(f"{value} ({source})" for value, source in self.values[:4])
        return f"two sources disagree: {told}"


class _Absent(str):
    """Marks a fact that nothing states."""

    __slots__ = ()


ABSENT = _Absent("absent")
NOTHING = object()


@dataclass
class Statements:
    """What all texts state, by fact, and the contradictions that were met."""

    sources: Sequence[Source]
    by_fact: dict[str, list[Source]]
    conflicts: list[Conflict] = field(default_factory=list)
    _settled: dict[str, Value | Conflict] = field(default_factory=dict)

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Statements:
        """Return *sources* by the fact that each states."""
        by_fact: dict[str, list[Source]] = {}
        for source in sources:
            by_fact.setdefault(source.said.fact, []).append(source)
        return cls(sources, by_fact)

    def one(
        self, fact: str, *, compatible: Callable[[Value, Value], bool] | None = None
    ) -> Value | Conflict:
        """Return the value of *fact*: ABSENT, a value, or a conflict.

        The weightiest statements decide. A less weighty one that contradicts is told, unless it is
        a mere hint.
        """
        if fact in self._settled:
            return self._settled[fact]
        stated = self.by_fact.get(fact, [])
        if not stated:
            return ABSENT
        most = max(source.said.weight for source in stated)
        first = [source for source in stated if source.said.weight == most]
        chosen = self._agreed(first, compatible or _same)
        if isinstance(chosen, Conflict):
            self.conflicts.append(chosen)
        else:
            against = [
                s
                for s in stated
                if TOLD < s.said.weight < most and not (compatible or _same)(s.said.value, chosen)
            ]
            if against:
                told = [s for s in first if s.said.value == chosen][:1] + against[:3]
                self.conflicts.append(_conflict(fact, told))
            chosen = _finest(chosen, [s.said.value for s in stated], compatible or _same)
        self._settled[fact] = chosen
        return chosen

    def _agreed(
        self, sources: Sequence[Source], compatible: Callable[[Value, Value], bool]
    ) -> Value | Conflict:
        chosen = sources[0].said.value
        for source in sources[1:]:
            value = source.said.value
            if not compatible(chosen, value):
                different = [s for s in sources if s.said.value in (chosen, value)]
                return _conflict(source.said.fact, _each_value(different))
            chosen = finer(chosen, value)
        return chosen

    def text(
        self, fact: str, *, compatible: Callable[[Value, Value], bool] | None = None
    ) -> str | None:
        """Return the text of *fact*, None when it is absent or contradicted."""
        value = self.one(fact, compatible=compatible)
        return value if isinstance(value, str) and value is not ABSENT else None

    def clash(self, *facts: str) -> Unknown | None:
        """Return why what hangs on *facts* is unknown, None when none is contradicted."""
        for fact in facts:
            value = self.one(fact, compatible=_COMPATIBLE.get(fact))
            if isinstance(value, Conflict):
                return Unknown(value.reason)
        return None

    def layouts(self, fact: str) -> set[str]:
        """Return the layouts that state *fact*."""
        return {source.said.layout for source in self.by_fact.get(fact, ())}


def _each_value(sources: Sequence[Source]) -> list[Source]:
    seen: dict[Value, Source] = {}
    for source in sources:
        seen.setdefault(source.said.value, source)
    return list(seen.values())


def _conflict(fact: str, sources: Iterable[Source]) -> Conflict:
    return Conflict(fact, tuple((str(s.said.value), s.name) for s in sources))


def _same(one: Value, other: Value) -> bool:
    return one == other


def same_prefix(one: Value, other: Value) -> bool:
    """Tell whether one version is the other, said more exactly: 3.10 and 3.10.12."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    short, long = sorted((one, other), key=len)
    return long == short or long.startswith(f"{short}.")


def same_version(one: Value, other: Value) -> bool:
    """Tell whether two versions may be one: 2.4.0 and 2.4.0+cu121."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    if "+" in one and "+" in other:
        return one == other
    return one.partition("+")[0] == other.partition("+")[0]


def same_machine(one: Value, other: Value) -> bool:
    """Tell whether two names are of one architecture: AMD64 and x86_64."""
    return one == other or any(one in same and other in same for same in SAME_MACHINE)


def same_path(one: Value, other: Value) -> bool:
    """Tell whether two paths are one, spelled as either system does."""
    return _path(one) == _path(other)


def _path(value: Value) -> str:
    return re.sub(r"[\\/]+", "/", str(value)).rstrip("/").lower()


def finer(one: Value, other: Value) -> Value:
    """Return the one of two agreeing values that says more."""
    if (
        isinstance(one, str)
        and isinstance(other, str)
        and len(other) > len(one)
        and other.startswith(one)
    ):
        return other
    return one


def _finest(
    chosen: Value, others: Iterable[Value], compatible: Callable[[Value, Value], bool]
) -> Value:
    """Return *chosen* said as exactly as any statement that agrees with it."""
    if compatible in (same_prefix, same_version):
        for other in others:
            if compatible(chosen, other):
                chosen = finer(chosen, other)
    elif compatible is same_path:
        # pip prints paths in lower case on Windows.
        return min((str(o) for o in others if compatible(chosen, o)), default=chosen)
    return chosen


_COMPATIBLE: Mapping[str, Callable[[Value, Value], bool]] = {
    "platform.machine": same_machine,
    "interpreter.version": same_prefix,
    "torch.version": same_version,
}
