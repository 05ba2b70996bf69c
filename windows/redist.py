"""The VC++ runtime that a set of files needs, against the one that they would get.

What is needed is read off the files: which DLLs of the runtime they import, how their mutexes are
built, and which linker made them. What they get is the file that wins in the loader's search, and
only that: the registry says what an installer once wrote, so it explains and never decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .dll_facts import DllFacts, Version
from .tables import load

MSVCP = "msvcp140.dll"
_TOOLSET = 14
"""The major number of linkers whose minor number is the runtime's; others (clang, gcc) count
otherwise. 14.0 asks for nothing: it is Visual Studio 2015, and what other linkers write."""

State = Literal["met", "older", "absent", "unknown"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that files ask of the runtime.

    ``present``: the DLL has to be there. ``mutex``: it must not be too old (:func:`bears_mutex`),
    or code that locks a mutex while it starts dies. ``rule``: Microsoft's rule that the runtime be
    no older than the newest toolset; older ones mostly work, so it only warns.
    """

    kind: Literal["present", "mutex", "rule"]
    dll: str
    files: tuple[str, ...]
    """Who asks, as the files were named to :func:`requirements`."""
    at_least: Version | None = None
    """For ``present``: the lowest VC++ that carries the DLL."""
    redistributable: bool = True
    """False for a DLL that no redistributable carries."""
    inference: str = ""


@dataclass(frozen=True, slots=True)
class Registered:
    """What the registry says of one redistributable: in which view, for which processor."""

    view: Literal["64", "32"]
    architecture: str
    """x64, x86, arm64: the subkey of VisualStudio\\14.0\\VC\\Runtimes."""
    version: Version
    installed: bool = True


@dataclass(frozen=True, slots=True)
class Winner:
    """The file that a DLL's name leads to in a process; ``version`` is None when it has none."""

    path: str
    version: Version | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A requirement, what became of it, and the file that decided."""

    requirement: Requirement
    state: State
    winner: Winner | None = None
    registered: Version | None = None
    """The newest version that the registry has for this processor, for whoever explains."""

    @property
    def contradicts_registry(self) -> bool:
        """Return whether the registry alone would have said that all is well."""
        at_least = self.requirement.at_least
        return (
            self.state in {"older", "absent"}
            and self.registered is not None
            and (at_least is None or self.registered >= at_least)
        )


def constexpr_mutex(facts: DllFacts) -> bool:
    """Return whether *facts* are of a module whose mutexes no call sets up."""
    need = facts.needs_from(MSVCP)
    row = load("runtime")["constexpr_mutex"]
    return (
        need is not None
        and not set(row["calls"]).isdisjoint(need.names)
        and row["without"] not in need.names
    )


@cache
def mutex_at_least() -> Version:
    """Return the oldest version of msvcp140.dll that such modules were seen to start on."""
    return version(load("runtime")["constexpr_mutex"]["at_least"])


@cache
def mutex_faults_to() -> Version:
    """Return the newest version of msvcp140.dll that such modules were seen to fault on."""
    return version(load("runtime")["constexpr_mutex"]["faults_to"])


def bears_mutex(found: Version) -> bool | None:
    """Return whether msvcp140.dll *found* bears such modules; None where nobody has seen it."""
    if found >= mutex_at_least():
        return True
    last = mutex_faults_to()
    return False if found[: len(last)] <= last else None


def version(text: str) -> Version:
    """Return the version *text*, as numbers."""
    return tuple(map(int, text.split(".")))


def of_runtime(dll: str) -> bool:
    """Return whether *dll* is a part of the VC++ runtime, or passes for one."""
    return dll.lower() in _rows()


@cache
def _rows() -> Mapping[str, Mapping[str, object]]:
    return {row["name"]: row for row in load("runtime")["dll"]}


def requirements(files: Mapping[str, DllFacts]) -> tuple[Requirement, ...]:
    """Return what *files*, by path, ask of the VC++ runtime: the DLLs, the mutex, the rule."""
    askers: dict[str, list[str]] = {}
    mutexes: list[str] = []
    newest: Version = ()
    newest_files: list[str] = []
    for path, facts in sorted(files.items()):
        if of_runtime(facts.name):
            continue  # the runtime needs itself
        wanted = [need.dll.lower() for need in facts.needs if of_runtime(need.dll)]
        for dll in wanted:
            askers.setdefault(dll, []).append(path)
        if constexpr_mutex(facts):
            mutexes.append(path)
        linker = facts.linker or (0, 0)
        if wanted and linker[0] == _TOOLSET and linker[1]:
            if linker > newest:
                newest, newest_files = linker, []
            if linker == newest:
                newest_files.append(path)
    found = [_present(dll, tuple(paths)) for dll, paths in sorted(askers.items())]
    if mutexes:
        found.append(Requirement("mutex", MSVCP, tuple(mutexes), mutex_at_least()))
    if newest and MSVCP in askers:
        found.append(Requirement("rule", MSVCP, tuple(newest_files), newest))
    return tuple(found)


def _present(dll: str, files: tuple[str, ...]) -> Requirement:
    row = _rows()[dll]
    since = row.get("since")
    return Requirement(
        "present",
        dll,
        files,
        version(str(since)) if since else None,
        redistributable=row.get("redistributable", True) is True,
        inference=str(row.get("inference", "")),
    )


def redistributable(wanted: Iterable[Requirement]) -> Version | None:
    """Return the lowest VC++ that meets all of *wanted*; None when any will do.

    The rule of the newest toolset counts here: to install less would be bad advice.
    """
    return max((r.at_least for r in wanted if r.redistributable and r.at_least), default=None)


def judge(
    wanted: Iterable[Requirement],
    winners: Mapping[str, Winner | None],
    registry: Iterable[Registered] = (),
    *,
    architecture: str = "x64",
) -> tuple[Judged, ...]:
    """Return what becomes of each requirement.

    *winners* has, by lower-case name, the file that wins the search; None when there is none. A
    name that is not in it was not looked for.
    """
    known = [r.version for r in registry if r.installed and r.architecture == architecture]
    registered = max(known, default=None)
    return tuple(Judged(r, *_state(r, winners), registered) for r in wanted)


def _state(
    requirement: Requirement, winners: Mapping[str, Winner | None]
) -> tuple[State, Winner | None]:
    if requirement.dll not in winners:
        return "unknown", None
    winner = winners[requirement.dll]
    if winner is None:
        return "absent", None
    if requirement.kind == "present":
        return "met", winner
    if winner.version is None:
        return "unknown", winner
    if requirement.kind == "mutex":
        bears = bears_mutex(winner.version)
        return ("unknown" if bears is None else "met" if bears else "older"), winner
    assert requirement.at_least is not None
    return ("met" if winner.version >= requirement.at_least else "older"), winner
