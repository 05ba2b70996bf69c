"""What the Windows loader would do, as a pure function of facts: where it looks, what it finds.

:func:`load` answers for one file; :mod:`torchdoctor.windows.startup` puts torch's own start
together from it. Nothing is looked at here: folders, files and what is already loaded are given.

The rules, and where they come from:

- An API set (``api-ms-win-*``) stands for a part of Windows and for no file. A DLL that is loaded
  already answers for its base name, whatever folder it came from. KnownDLLs come from System32.
  Then the folders, in the order that the flags of the call give (:func:`folders_searched`).
  https://learn.microsoft.com/windows/win32/dlls/dynamic-link-library-search-order,
  https://learn.microsoft.com/windows/win32/api/libloaderapi/nf-libloaderapi-loadlibraryexw
- What a DLL needs is searched by its bare name, even when the DLL itself was given by its path.
- A file for another processor is passed over while a search goes on, and is the error (193) when
  nothing better comes. That Windows does so is inference, and each answer that stands on it says
  so; Wine's loader stops there, with 126.
- A bare name with LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR is refused (87): there is no folder to start in.
- First everything is mapped: what is missing is 126, what is no whole file is 193. Then symbols
  are bound: a name that is not there is 127, an ordinal 182. Only then do the DLLs initialise,
  each after those that it needs: 1114. So a missing DLL anywhere hides an old runtime.
"""

from __future__ import annotations

import ntpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from .dll_facts import DllFacts, Need, Version
from .redist import MSVCP, bears_mutex, constexpr_mutex, mutex_at_least, mutex_faults_to
from .tables import load as table

LOAD_DIR = 0x100
"""LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR."""
DEFAULT_DIRS = 0x1000
"""LOAD_LIBRARY_SEARCH_DEFAULT_DIRS: application, registered folders, System32; no PATH."""
ALTERED = 0x8
"""LOAD_WITH_ALTERED_SEARCH_PATH."""

MISSING, NO_NAME, NO_ORDINAL, BAD_IMAGE, INIT_FAILED, NO_PATH = 126, 127, 182, 193, 1114, 87

Role = Literal["application", "system32", "windows", "registered", "working", "path", "package"]
Kind = Literal[
    "missing",
    "not-whole",
    "wrong-machine",
    "no-symbol",
    "old-runtime",
    "no-extension",
    "no-path",
]


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder and the part it plays; one that plays two parts is given twice.

    ``files`` has the DLLs by lower-case name; None for one that nobody looked into. A folder that
    was not listed whole (``complete=False``) says nothing of what it lacks.
    """

    path: str
    role: Role
    files: Mapping[str, DllFacts | None] = field(default_factory=dict)
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Module:
    """A file that is loaded, or would be; ``facts`` is None for a part of Windows."""

    path: str
    facts: DllFacts | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """All that the search of one process depends on.

    ``folders`` with the role ``registered`` are in the order of their registration. In which
    order Windows searches them is not documented; the newest comes first (so it was seen under
    Wine), unless ``newest_first`` is off. ``api_sets`` is the list of the running Windows; None
    takes every such name to be there.
    """

    folders: tuple[Folder, ...]
    machine: str = "x64"
    loaded: Mapping[str, Module] = field(default_factory=dict)
    known_dlls: frozenset[str] | None = None
    api_sets: frozenset[str] | None = None
    newest_first: bool = True

    def folder(self, path: str) -> Folder | None:
        """Return the folder *path*, if it was looked at."""
        wanted = normal(path)
        return next((folder for folder in self.folders if normal(folder.path) == wanted), None)

    def register(self, path: str) -> Machine:
        """Return the machine after ``os.add_dll_directory(path)``; a folder must be there."""
        folder = self.folder(path)
        if folder is None:
            return self
        return replace(self, folders=(*self.folders, replace(folder, role="registered")))


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something does not load.

    Of two files that do not fit each other (``no-symbol``), the culprit is the one that lacks
    something; that the other one is stale may be more likely, which RECORD tells.
    """

    kind: Kind
    error: int | None
    culprit: str
    """The path of the file that is wrong; the bare name of one that is missing."""
    chain: tuple[str, ...]
    """Base names, from the file that was asked for to the culprit; the last but one needs it."""
    symbols: tuple[str, ...] = ()
    """What the culprit does not offer: names, ``#`` ordinals, ``~`` hashes of names."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """What became of one call. ``error`` is 0 when it loads, else the Windows error number.

    ``problems`` are all of the first kind that stops it, nearest first; the first one gives the
    number. ``machine`` is the process afterwards. ``assumed`` says what could not be seen.
    """

    error: int
    problems: tuple[Problem, ...]
    machine: Machine
    assumed: tuple[str, ...] = ()


def normal(path: str) -> str:
    """Return *path* as it compares."""
    return ntpath.normcase(ntpath.normpath(path))


def base(path: str) -> str:
    """Return the base name of *path* in lower case."""
    return ntpath.basename(path).lower()


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


@cache
def _known_dlls() -> frozenset[str]:
    return frozenset(table("system")["known_dlls"])


@cache
def _parts() -> frozenset[str]:
    return _known_dlls() | frozenset(table("system")["parts"])


@cache
def _optional() -> frozenset[str]:
    return frozenset(table("system")["optional"])


def folders_searched(machine: Machine, flags: int, target: str = "") -> tuple[Folder, ...]:
    """Return the folders that a call with *flags* for the path *target* searches, in order."""
    home = machine.folder(ntpath.dirname(target)) if ntpath.dirname(target) else None

    def having(role: Role) -> list[Folder]:
        return [folder for folder in machine.folders if folder.role == role]

    first = [home] if home else []
    if flags & (DEFAULT_DIRS | LOAD_DIR):
        found = first if flags & LOAD_DIR else []
        if flags & DEFAULT_DIRS:
            registered = having("registered")
            found = [
                *found,
                *having("application"),
                *(reversed(registered) if machine.newest_first else registered),
                *having("system32"),
            ]
        return tuple(found)
    start = first if flags & ALTERED and first else having("application")
    return (*start, *having("system32"), *having("windows"), *having("working"), *having("path"))


def load(machine: Machine, target: str, flags: int = LOAD_DIR | DEFAULT_DIRS) -> Load:
    """Return what becomes of ``LoadLibraryExW(target, flags)``; flags 0 is ``LoadLibraryW``.

    *target* is a path, or a bare name to be searched.
    """
    return _Call(machine, target, flags).run()


def find(machine: Machine, name: str, flags: int = DEFAULT_DIRS) -> Module | None:
    """Return the file that the bare *name* leads to; None when there is none that fits."""
    found = _Call(machine, name, flags).look(name)
    return found if isinstance(found, Module) else None


@dataclass(frozen=True, slots=True)
class _Edge:
    """One file that takes something from another."""

    need: Need
    source: Module


class _Call:
    """One call of LoadLibrary, from mapping to initialising."""

    def __init__(self, machine: Machine, target: str, flags: int) -> None:
        self.machine = machine
        self.target = target
        self.flags = flags
        self.folders = folders_searched(machine, flags, target)
        known = machine.known_dlls
        self.known = _known_dlls() if known is None else known
        self.mapped: dict[str, Module] = {}
        self.edges: dict[str, list[_Edge]] = {}
        self.parents: dict[str, Module] = {}
        self.assumed: dict[str, None] = {}

    def run(self) -> Load:
        start = self._start()
        if isinstance(start, Problem):
            return self._answer((start,))
        if start is None:
            return self._answer(())
        for stage in (self._map, self._bind, self._initialise):
            if problems := tuple(stage(start)):
                return self._answer(problems)
        return self._answer(())

    def _answer(self, problems: tuple[Problem, ...]) -> Load:
        assumed = tuple(self.assumed)
        if problems:  # what was mapped is unloaded again
            return Load(problems[0].error or 0, problems, self.machine, assumed)
        loaded = {**self.mapped, **self.machine.loaded}
        return Load(0, (), replace(self.machine, loaded=loaded), assumed)

    def _start(self) -> Module | Problem | None:
        """Return the file that the call is for; None when there is nothing to do for it."""
        name = base(self.target)
        loaded = self.machine.loaded.get(name)
        if not ntpath.dirname(self.target):
            if self.flags & LOAD_DIR:
                why = "a bare name has no folder in which the search could start"
                return Problem("no-path", NO_PATH, self.target, (self.target,), detail=why)
            found = self.look(name)
            if found is None:
                return Problem("missing", MISSING, self.target, (self.target,))
            if isinstance(found, Module) and found.facts and found.facts.broken:
                return self._unfit(found.path, found.facts)
            return None if loaded and found is loaded else found
        if loaded and normal(loaded.path) == normal(self.target):
            return None
        return self._given()

    def _given(self) -> Module | Problem:
        """Return the file that the call gives by its path."""
        name = base(self.target)
        folder = self.machine.folder(ntpath.dirname(self.target))
        if folder is None or name not in folder.files:
            return Problem("missing", MISSING, self.target, (ntpath.basename(self.target),))
        facts = folder.files[name]
        if facts and (facts.broken or not self._runs(facts, folder.role)):
            return self._unfit(self.target, facts)
        return Module(self.target, facts)

    # ---- where a name leads ----

    def look(self, name: str) -> Module | Problem | None:
        """Return the file that *name* leads to, why the only one will not do, or None."""
        name = name.lower()
        if "." not in name:
            name += ".dll"
        if self._is_api_set(name):
            return Module(name)
        if loaded := self.machine.loaded.get(name) or self.mapped.get(name):
            return loaded
        if name in self.known:
            return self._known(name)
        misfit: Problem | None = None
        for folder in self.folders:
            if name in folder.files:
                facts = folder.files[name]
                path = ntpath.join(folder.path, facts.name if facts else name)
                if facts is None or facts.broken or self._runs(facts, folder.role):
                    return self._passing_over(misfit, Module(path, facts))
                misfit = misfit or self._unfit(path, facts)
            elif not folder.complete and (part := self._part(folder, name)):
                return self._passing_over(misfit, part)
        return misfit

    def _passing_over(self, misfit: Problem | None, found: Module) -> Module:
        """Return *found*, which the search came to because it went on after *misfit*."""
        if misfit:
            said = f"{misfit.culprit} is passed over, as {misfit.detail}: {found.path} is taken"
            self.assumed[said] = None
        return found

    def _is_api_set(self, name: str) -> bool:
        if not name.startswith(("api-ms-win-", "ext-ms-")):
            return False
        return self.machine.api_sets is None or name in self.machine.api_sets

    def _known(self, name: str) -> Module:
        home = next((f for f in self.machine.folders if f.role == "system32"), None)
        if home is None:
            return Module(name)
        return Module(ntpath.join(home.path, name), home.files.get(name))

    def _part(self, folder: Folder, name: str) -> Module | None:
        """Return the part of Windows called *name*, if System32 may be taken to have it."""
        if folder.role != "system32" or name not in _parts() | _optional():
            return None
        if name in _optional():
            self.assumed[f"{name} is taken to be there: not every edition of Windows has it"] = None
        return Module(ntpath.join(folder.path, name))

    def _runs(self, facts: DllFacts, role: Role) -> bool:
        # On ARM64, the files of System32 serve emulated x64 programs as well.
        emulated = role == "system32" and facts.machine == "arm64" and self.machine.machine == "x64"
        return facts.machine == self.machine.machine or emulated

    def _unfit(self, path: str, facts: DllFacts) -> Problem:
        """Return why the file *path* cannot be mapped."""
        chain = (ntpath.basename(path),)
        if facts.broken:
            return Problem("not-whole", BAD_IMAGE, path, chain, detail=facts.broken)
        detail = f"it is for {facts.machine}, the process is {self.machine.machine}"
        return Problem("wrong-machine", BAD_IMAGE, path, chain, detail=detail)

    def _chain(self, module: Module) -> tuple[str, ...]:
        """Return the base names from the asked file to *module*."""
        chain = [module]
        while parent := self.parents.get(base(chain[-1].path)):
            chain.append(parent)
        return tuple(ntpath.basename(link.path) for link in reversed(chain))

    # ---- the three stages ----

    def _map(self, start: Module) -> Iterator[Problem]:
        """Map *start* and all that it needs, the nearest first; yield what cannot be."""
        self.mapped[base(start.path)] = start
        waiting = [start]
        failed: set[str] = set()
        for module in waiting:  # grows while it runs
            edges = self.edges.setdefault(base(module.path), [])
            if module.facts is None:
                self.assumed[f"{module.path} was not looked into"] = None
                continue
            if module.facts.damage:
                self.assumed[f"not all of {module.path} could be read"] = None
            for need in module.facts.needs:
                if need.dll.lower() in failed:
                    continue
                found = self._wanted(need.dll)
                if isinstance(found, Problem):
                    failed.add(need.dll.lower())
                    yield replace(found, chain=(*self._chain(module), *found.chain))
                    continue
                edges.append(_Edge(need, found))
                key = base(found.path)
                known = key in self.mapped or key in self.machine.loaded
                if not known and self._is_file(found):
                    self.mapped[key] = found
                    self.parents[key] = module
                    waiting.append(found)

    def _wanted(self, dll: str) -> Module | Problem:
        """Return the file that the needed *dll* leads to, or why it cannot be mapped."""
        found = self.look(dll)
        if found is None:
            return Problem("missing", MISSING, dll, (dll,))
        if isinstance(found, Module) and found.facts and found.facts.broken:
            return self._unfit(found.path, found.facts)
        return found

    def _is_file(self, module: Module) -> bool:
        """Return whether *module* is a file of its own, not a part of Windows taken as read."""
        name = base(module.path)
        windows = _parts() | _optional() | self.known
        return bool(module.facts) or not (name in windows or self._is_api_set(name))

    def _bind(self, start: Module) -> Iterator[Problem]:
        """Yield what a mapped file takes from another that does not offer it."""
        for module in self._inner_first(start):
            for edge in self._edges_of(module):
                facts = edge.source.facts
                if facts is None or facts.damage:
                    continue
                if lacking := facts.lacks(edge.need):
                    error = NO_ORDINAL if lacking[0].startswith("#") else NO_NAME
                    path = edge.source.path
                    chain = (*self._chain(module), ntpath.basename(path))
                    yield Problem("no-symbol", error, path, chain, lacking)

    def _initialise(self, start: Module) -> Iterator[Problem]:
        """Yield which file dies when it initialises; the only way known is an old runtime."""
        for module in self._inner_first(start):
            if module.facts is None or not constexpr_mutex(module.facts):
                continue
            edge = next(e for e in self._edges_of(module) if e.need.dll.lower() == MSVCP)
            path, runtime = edge.source.path, edge.source.facts
            if runtime is None or runtime.version is None:
                self.assumed[f"the version of {path} is not known"] = None
                continue
            bears = bears_mutex(runtime.version)
            has, needs, last = map(_dotted, (runtime.version, mutex_at_least(), mutex_faults_to()))
            if bears is None:
                said = f"{path} is {has}; {needs} is known to do, {last} not to, it is in between"
                self.assumed[said] = None
            elif not bears:
                detail = f"it is {has}, {ntpath.basename(module.path)} needs {needs}"
                chain = (*self._chain(module), ntpath.basename(path))
                yield Problem("old-runtime", INIT_FAILED, path, chain, detail=detail)

    def _edges_of(self, module: Module) -> list[_Edge]:
        return self.edges.get(base(module.path), [])

    def _inner_first(self, start: Module) -> list[Module]:
        """Return the files mapped by this call, each after those it needs (but for circles)."""
        order: list[Module] = []
        seen = {base(start.path)}
        stack = [(start, iter(self._edges_of(start)))]
        while stack:
            module, rest = stack[-1]
            for edge in rest:
                key = base(edge.source.path)
                if key not in seen and self.mapped.get(key) is edge.source:
                    seen.add(key)
                    stack.append((edge.source, iter(self._edges_of(edge.source))))
                    break
            else:
                order.append(module)
                stack.pop()
        return order
