"""A record without the symbols and versions that no search in it can find missing.

Which file serves a name depends on variables and folders, but it is always one of the files of the
record that go by this name. What all of these have is found, whichever is taken; what only some of
them have stays, and so does what none has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from posixpath import basename

from .elf import VersionNeed
from .loader import Machine, Process
from .objects import SharedObject, symbol_hash, versions_of
from .system import release


@dataclass(frozen=True, slots=True)
class _Served:
    """What holds for the object that serves a name, whichever it is."""

    choices: tuple[SharedObject, ...]
    """Those that were looked into."""
    defined: frozenset[int] = frozenset()
    needed: tuple[str, ...] = ()


def thin(
    machine: Machine, loaded: Collection[str], starts: Iterable[Process]
) -> dict[str, SharedObject]:
    """Return the facts of each file of *machine*, by its ``same``, without what is never missing.

    *machine* is as it is read from a record: with the files and the cache that are in it. *loaded*
    are paths of files that are in the process in any case, *starts* the processes that searches
    begin with. Of the symbols and versions that a file looks for those stay that some choice of
    files would lack.
    """
    record = _Record(machine, loaded)
    everywhere = record.everywhere(starts)
    kept = {same: record.open(facts, everywhere) for same, facts in record.facts.items()}
    wanted = frozenset(v for facts in kept.values() for want in facts.wants for v in want.versions)
    return {same: replace(f, offers=_offers(f.offers, wanted)) for same, f in kept.items()}


def _offers(offers: frozenset[str], wanted: frozenset[str]) -> frozenset[str]:
    """Return the *wanted* ones of *offers*, and one: that there are any; glibc's its release."""
    newest = sorted(offers, key=lambda name: (release(name) or (0, 0), name))[-1:]
    return (offers & wanted).union(newest)


def _own(machine: Machine) -> tuple[str, ...]:
    """Return the paths of the program and of its loader, which nobody searches for."""
    program = machine.files.get(machine.program)
    interpreter = program.facts.interpreter if program and program.facts else None
    return (machine.program, interpreter or "")


class _Record:
    """The files by the names that they go by."""

    def __init__(self, machine: Machine, loaded: Collection[str]) -> None:
        self.machine = machine
        self.facts: dict[str, SharedObject] = {}
        self.by_name: dict[str, dict[str, SharedObject | None]] = {}
        self.served: dict[str, _Served | None] = {}
        files = machine.files
        unasked = (*loaded, *_own(machine))
        there = {file.same for path in unasked if (file := files.get(path))}
        for path in list(files):
            file = files[path]
            if file.facts is not None:
                self.facts[file.same] = file.facts
            if file.facts is None or file.same in there or self._fits(file.facts):
                soname = file.facts.soname if file.facts else None
                for name in {path, basename(path), soname or path}:
                    self.by_name.setdefault(name, {})[file.same] = file.facts
        for name, path in machine.cache.items():
            file = files.get(path)
            if file and file.same in self.by_name.get(path, {}):
                self.by_name.setdefault(name, {})[file.same] = file.facts

    def _fits(self, facts: SharedObject) -> bool:
        """Tell whether the loader takes it at all; one that is broken ends the search."""
        kind = (self.machine.machine, self.machine.bits)
        return not facts.broken and (facts.machine, facts.bits) == kind

    def _serves(self, name: str) -> _Served | None:
        """Return what serves *name* in every search; None where every search ends there."""
        if name not in self.served:
            self.served[name] = self._served(name)
        return self.served[name]

    def _served(self, name: str) -> _Served | None:
        if "$" in name:  # depends on who asks
            return _Served(())
        found = self.by_name.get(name)
        if not found:
            return None
        choices = tuple(facts for facts in found.values() if facts is not None)
        if not choices:
            return _Served(())
        first, *others = choices
        needed = [n for n in first.needed if all(n in other.needed for other in others)]
        defined = first.defined.intersection(*(other.defined for other in others))
        return _Served(choices, defined, tuple(needed))

    def everywhere(self, starts: Iterable[Process]) -> frozenset[int]:
        """Return what every process offers to all that is loaded into it."""
        scopes = [self._scope(process) for process in starts]
        return scopes[0].intersection(*scopes[1:]) if scopes else frozenset()

    def _scope(self, process: Process) -> frozenset[int]:
        tables = [self.facts[same].defined for same in process.everywhere if same in self.facts]
        return frozenset().union(*tables)

    def open(self, facts: SharedObject, everywhere: frozenset[int]) -> SharedObject:
        """Return *facts* without the symbols and versions that are found in every search."""
        tables = self._tables(facts)
        if tables is None:  # a library that it needs is nowhere: nothing is bound
            return replace(facts, symbols=(), versions={}, more_symbols=(), wants=())
        tables.append(everywhere)

        def is_open(value: int) -> bool:
            return not any(value in table for table in tables)

        symbols = tuple(name for name in facts.symbols if is_open(symbol_hash(name)))
        return replace(
            facts,
            symbols=symbols,
            versions=versions_of(facts.versions, symbols),
            more_symbols=tuple(filter(is_open, facts.more_symbols)),
            wants=tuple(filter(None, map(self._open, facts.wants))),
        )

    def _tables(self, facts: SharedObject) -> list[frozenset[int]] | None:
        """Return what *facts*, and all that it needs, surely offer; None where that cannot load."""
        tables = [facts.defined]
        names = dict.fromkeys(facts.needed)
        queue = list(names)
        for name in queue:  # grows while it runs
            served = self._serves(name)
            if served is None:
                return None
            tables.append(served.defined)
            more = [each for each in served.needed if each not in names]
            names.update(dict.fromkeys(more))
            queue += more
        return tables

    def _open(self, want: VersionNeed) -> VersionNeed | None:
        """Return *want* with the versions that a file which may serve it lacks."""
        if "$" in want.file:
            return want
        served = self._serves(want.file)
        lists = [f.offers for f in served.choices if f.offers] if served else []
        versions = tuple(v for v in want.versions if any(v not in offers for offers in lists))
        return replace(want, versions=versions, weak=()) if versions else None
