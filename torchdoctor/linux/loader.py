"""The dynamic loader of glibc as a function: which file serves which need, and what is missing.

Everything that the search depends on is in :class:`Machine`; nothing here looks at the running
system. A process is a value: :func:`start` gives the one that a program begins with, and
:func:`dlopen` the one after a library was loaded into it, or the reason why it cannot be.

Sources: ld.so(8), dlopen(3); the order of the search, of the versions and of the relocations is
that of glibc's elf/dl-load.c, elf/dl-deps.c, elf/dl-version.c and elf/dl-open.c. What it says is
compared with LD_DEBUG=libs of the real loader in the tests.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from .objects import SharedObject, symbol_hash
from .system import LIBC, glibc

How = Literal[
    "program",
    "loaded",
    "path",
    "LD_PRELOAD",
    "rpath",
    "LD_LIBRARY_PATH",
    "runpath",
    "cache",
    "default",
]
Kind = Literal["missing", "not-whole", "wrong-machine", "executable-stack", "version", "symbol"]

VARIABLES = ("LD_PRELOAD", "LD_LIBRARY_PATH")
"""Those of :data:`How` that a variable of the environment causes."""
REFUSES_EXECUTABLE_STACK = (2, 41)
"""From this glibc on, dlopen does not make the stack executable for a library's sake."""
_STACK_BY_DEFAULT = frozenset(("x86_64", "i386"))
_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")


@dataclass(frozen=True, slots=True)
class File:
    """A file on the disk: what it holds (None when it may not be read), and which one it is."""

    facts: SharedObject | None
    same: str
    """Equal for two paths that lead to one file."""


@dataclass(frozen=True, slots=True)
class Machine:
    """All that the search of one process depends on."""

    files: Mapping[str, File]
    """By the path as the loader spells it; a path that is not in it leads to nothing."""
    program: str
    preload: tuple[str, ...] = ()
    """LD_PRELOAD, taken apart."""
    library_path: tuple[str, ...] = ()
    """LD_LIBRARY_PATH, taken apart; an empty entry is the working folder."""
    cache: Mapping[str, str] = field(default_factory=dict)
    """What /etc/ld.so.cache has for each soname, on this processor."""
    default: tuple[str, ...] = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    subfolders: tuple[str, ...] = ()
    """Below every folder that is searched, these come first: ``glibc-hwcaps/x86-64-v3``."""
    machine: str = "x86_64"
    bits: int = 64


@dataclass(frozen=True, slots=True)
class Loaded:
    """One object of a process, and why it is the one."""

    path: str
    same: str
    facts: SharedObject | None
    how: How
    asked: str
    """The name that led to it."""
    parent: str = ""
    """The path of the object that asked; empty for the program."""


@dataclass(frozen=True, slots=True)
class Process:
    """What is loaded: the objects in their order, the names they go by, the global scope."""

    objects: tuple[Loaded, ...]
    names: Mapping[str, str]
    """Name, soname or path -> ``same`` of the object."""
    everywhere: tuple[str, ...]
    """``same`` of those whose symbols all others may use."""

    def get(self, name: str) -> Loaded | None:
        """Return the object that goes by *name*."""
        same = self.names.get(name)
        return next((o for o in self.objects if o.same == same), None) if same else None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something does not load.

    ``culprit`` is the file that is wrong, or the name of one that is nowhere. For ``symbol`` it is
    the file that asks: which one should have it, no file says.
    """

    kind: Kind
    culprit: str
    chain: tuple[str, ...]
    """Paths, from what was asked for to the culprit; the last but one needs it."""
    names: tuple[str, ...] = ()
    """The versions or symbols that are missing; the first is the one that the message names."""
    detail: str = ""
    version: str = ""
    """The version that the first missing symbol is wanted in, where it is wanted in one."""

    @property
    def message(self) -> str:
        """Return what the loader would say, in its own words as far as they are certain."""
        asks = self.chain[-2] if len(self.chain) > 1 else ""
        match self.kind:
            case "missing":
                reason = "cannot open shared object file: No such file or directory"
            case "version":
                reason = f"version `{self.names[0]}' not found (required by {asks})"
            case "symbol":
                reason = f"undefined symbol: {self._symbol}"
            case "executable-stack":
                reason = "cannot enable executable stack as shared object requires"
            case _:
                reason = self.detail
        return f"{self.culprit}: {reason}"

    @property
    def _symbol(self) -> str:
        return ", version ".join(filter(None, (self.names[0], self.version)))


@dataclass(frozen=True, slots=True)
class Load:
    """What became of one call; without a problem, ``process`` is the one afterwards."""

    process: Process
    problem: Problem | None = None
    also: tuple[Problem, ...] = ()
    """Further problems of the same kind."""
    tried: tuple[Loaded, ...] = ()
    """The objects of the process and of this call, also where it failed."""
    assumed: tuple[str, ...] = ()


class _FailureError(Exception):
    def __init__(self, *problems: Problem) -> None:
        super().__init__()
        self.problems = problems


def start(machine: Machine) -> Load:
    """Return the process that the program of *machine* begins with."""
    call = _Call(machine, Process((), {}, ()))
    try:
        call.begin()
    except _FailureError as failure:
        return call.answer(failure.problems)
    return call.answer(())


def dlopen(
    machine: Machine, process: Process, target: str, *, caller: str = "", everywhere: bool = False
) -> Load:
    """Return what becomes of ``dlopen(target, RTLD_NOW)`` in *process*.

    *target* is a path, or a bare name to be searched for on behalf of *caller*, an object of the
    process (the program when empty). *everywhere* is RTLD_GLOBAL.
    """
    call = _Call(machine, process)
    try:
        call.open(target, caller, everywhere=everywhere)
    except _FailureError as failure:
        return replace(call.answer(failure.problems), process=process)
    return call.answer(())


def add(process: Process, machine: Machine, paths: tuple[str, ...]) -> Process:
    """Return *process* with the files *paths* loaded as well, in a way that is not known."""
    call = _Call(machine, process)
    for path in paths:
        file = machine.files.get(path)
        if file and all(o.same != file.same for o in call.objects):
            call.keep(Loaded(path, file.same, file.facts, "loaded", path), path)
    return call.answer(()).process


class _Call:
    """One start or dlopen, from mapping to binding."""

    def __init__(self, machine: Machine, process: Process) -> None:
        self.machine = machine
        self.objects = list(process.objects)
        self.by_same = {o.same: o for o in self.objects}
        self.names = dict(process.names)
        self.everywhere = list(process.everywhere)
        self.old = frozenset(self.by_same)
        self.assumed: dict[str, None] = {}

    def answer(self, problems: tuple[Problem, ...]) -> Load:
        process = Process(tuple(self.objects), self.names, tuple(self.everywhere))
        return Load(
            process,
            problems[0] if problems else None,
            problems[1:],
            process.objects,
            tuple(self.assumed),
        )

    def keep(self, found: Loaded, name: str) -> Loaded:
        """Take *found* into the process, under *name* and all that it goes by."""
        self.objects.append(found)
        self.by_same[found.same] = found
        self._named(found, name)
        return found

    def _named(self, found: Loaded, name: str) -> None:
        for each in (name, found.path, found.facts.soname if found.facts else None):
            if each:
                self.names.setdefault(each, found.same)

    # ---- the two calls ----

    def begin(self) -> None:
        machine = self.machine
        file = machine.files.get(machine.program)
        if file is None:
            raise _FailureError(Problem("missing", machine.program, (machine.program,)))
        program = Loaded(machine.program, file.same, file.facts, "program", machine.program)
        self.keep(program, machine.program)
        roots = [program]
        interpreter = file.facts.interpreter if file.facts else None
        if interpreter and (loader := machine.files.get(interpreter)):
            own = Loaded(interpreter, loader.same, loader.facts, "program", interpreter)
            self.keep(own, interpreter)
        for name in machine.preload:
            try:
                found = self._map(name, program)
            except _FailureError as failure:  # the loader says so and goes on
                self.assumed[f"LD_PRELOAD: {failure.problems[0].message}"] = None
                continue
            if all(found.same != root.same for root in roots):
                roots.append(found if found.how == "program" else self._preloaded(found))
        order = self._closure(roots)
        self._check_versions(order)
        self.everywhere = [o.same for o in order]

    def _preloaded(self, found: Loaded) -> Loaded:
        changed = replace(found, how="LD_PRELOAD")
        self.objects[self.objects.index(found)] = changed
        self.by_same[found.same] = changed
        return changed

    def open(self, target: str, caller: str, *, everywhere: bool) -> None:
        asks = self.by_same.get(self.names.get(caller, "")) or (
            self.objects[0] if self.objects else None
        )
        root = self._map(target, asks)
        order = self._closure([root])
        self._check_versions(order)
        self._check_symbols(root, order)
        if everywhere:
            self.everywhere += [o.same for o in order if o.same not in self.everywhere]

    # ---- where a name leads ----

    def _map(self, name: str, asks: Loaded | None) -> Loaded:
        """Return the object that *name* leads to; it may be loaded already."""
        if name in self.names:
            return self.by_same[self.names[name]]
        if "/" in name:
            path = self._expanded(name, asks)
            return self._take(path, name, asks, "path")
        for folder, how in self._folders(asks):
            if place := self._in_folder(folder, name):
                return self._take(place, name, asks, how)
        raise _FailureError(Problem("missing", name, (*self._chain(asks), name)))

    def _take(self, path: str, name: str, asks: Loaded | None, how: How) -> Loaded:
        file = self.machine.files.get(path)
        chain = (*self._chain(asks), path)
        if file is None:
            raise _FailureError(Problem("missing", path, chain))
        if known := self.by_same.get(file.same):
            self._named(known, name)
            return known
        facts = file.facts
        if facts is None:
            self.assumed[f"{path} was not looked into"] = None
        elif facts.broken:
            raise _FailureError(Problem("not-whole", path, chain, detail=facts.broken))
        elif how == "path" and not self._fits(facts):
            detail = f"it is for {facts.machine} with {facts.bits} bits"
            raise _FailureError(Problem("wrong-machine", path, chain, detail=detail))
        elif self._needs_stack(facts):
            raise _FailureError(Problem("executable-stack", path, chain))
        parent = asks.path if asks else ""
        return self.keep(Loaded(path, file.same, facts, how, name, parent), name)

    def _needs_stack(self, facts: SharedObject) -> bool:
        libc = self.by_same.get(self.names.get(LIBC, ""))
        release = glibc(libc.facts) if libc else None
        if release is None or release < REFUSES_EXECUTABLE_STACK or not self.old:
            return False
        if facts.executable_stack is None:
            return facts.machine in _STACK_BY_DEFAULT
        return facts.executable_stack

    def _fits(self, facts: SharedObject) -> bool:
        return (facts.machine, facts.bits) == (self.machine.machine, self.machine.bits)

    def _in_folder(self, folder: str, name: str) -> str | None:
        """Return the path of *name* in *folder*, where it is one that the loader takes.

        A file of another processor, and one that may not be read, are passed over; one that is
        damaged is not.
        """
        if folder == _CACHE:
            places = [p for p in (self.machine.cache.get(name),) if p]
        else:
            base = folder.rstrip("/") or folder[:1]
            middles = (*self.machine.subfolders, "")
            places = [posixpath.join(base, middle, name) for middle in middles]
        for path in places:
            file = self.machine.files.get(path)
            if file is None or file.facts is None:
                continue
            if file.facts.broken or self._fits(file.facts):
                return path
        return None

    def _folders(self, asks: Loaded | None) -> Iterator[tuple[str, How]]:
        """Yield the folders that are searched for what *asks* needs, in order."""
        machine = self.machine
        main = self.objects[0] if self.objects else None
        facts = asks.facts if asks else None
        if facts is None or facts.runpath is None:
            seen = set()
            link = asks
            while link and link.same not in seen:
                seen.add(link.same)
                yield from self._listed(link, "rpath")
                link = self.by_same.get(self.names.get(link.parent, ""))
            if main and main.same not in seen:
                yield from self._listed(main, "rpath")
        for folder in machine.library_path:
            yield self._expanded(folder, main), "LD_LIBRARY_PATH"
        if asks:
            yield from self._listed(asks, "runpath")
        if facts and facts.no_default:
            return
        yield _CACHE, "cache"
        for folder in machine.default:
            yield folder, "default"

    def _listed(
        self, owner: Loaded, kind: Literal["rpath", "runpath"]
    ) -> Iterator[tuple[str, How]]:
        """Yield the folders that *owner* itself lists."""
        facts = owner.facts
        if facts is None or (kind == "rpath" and facts.runpath is not None):
            return
        text = facts.rpath if kind == "rpath" else facts.runpath
        if text is None:
            return
        for folder in text.split(":"):
            yield self._expanded(folder, owner), kind

    def _expanded(self, text: str, owner: Loaded | None) -> str:
        """Return *text* with ``$ORIGIN`` and its likes replaced."""
        if "$" not in text:
            return text
        values = {
            "ORIGIN": posixpath.dirname(owner.path) if owner else "",
            "LIB": self.machine.default[0].lstrip("/") if self.machine.default else "lib",
            "PLATFORM": self.machine.machine,
        }
        return _TOKEN.sub(lambda found: values[found[1] or found[2]], text)

    def _chain(self, asks: Loaded | None) -> tuple[str, ...]:
        """Return the paths from what this call was for to *asks*."""
        chain: list[str] = []
        while asks and asks.same not in self.old and asks.path not in chain:
            chain.append(asks.path)
            asks = self.by_same.get(self.names.get(asks.parent, ""))
        return tuple(reversed(chain))

    # ---- the stages ----

    def _closure(self, roots: list[Loaded]) -> list[Loaded]:
        """Map all that *roots* need, the nearest first; return them in that order."""
        order = list(roots)
        seen = {o.same for o in order}
        for owner in order:  # grows while it runs
            for name in owner.facts.needed if owner.facts else ():
                found = self._map(name, owner)
                if found.same not in seen:
                    seen.add(found.same)
                    order.append(found)
        return order

    def _check_versions(self, order: list[Loaded]) -> None:
        """Raise for the first file that lacks a version which a new one asks for."""
        problems: list[Problem] = []
        for owner in order:
            if owner.same in self.old or owner.facts is None:
                continue
            for want in owner.facts.wants:
                source = self.by_same.get(self.names.get(want.file, ""))
                if source is None or source.facts is None or not source.facts.offers:
                    continue  # a library without any versions serves every one
                lacking = tuple(v for v in want.versions if v not in source.facts.offers)
                if lacking:
                    chain = (*self._chain(owner), source.path)
                    problems.append(Problem("version", source.path, chain, lacking))
        if problems:
            raise _FailureError(*problems)

    def _check_symbols(self, root: Loaded, order: list[Loaded]) -> None:
        """Raise for what a new file takes from others that do not have it."""
        scope = dict.fromkeys((*self.everywhere, *(o.same for o in order)))
        facts = [self.by_same[same].facts for same in scope]
        if any(f is None or f.damage for f in facts):
            self.assumed["not every file in the process was looked into"] = None
            return
        tables = [f.defined for f in facts if f is not None]
        problems: list[Problem] = []
        for owner in self._inner_first(root):
            if owner.facts is None:
                continue
            lacking = [n for n in owner.facts.symbols if not _any(tables, symbol_hash(n))]
            lacking += [f"~{h:08x}" for h in owner.facts.more_symbols if not _any(tables, h)]
            if lacking:
                version = owner.facts.versions.get(lacking[0], "")
                chain = self._chain(owner)
                problems.append(
                    Problem("symbol", owner.path, chain, tuple(lacking), version=version)
                )
        if problems:
            raise _FailureError(*problems)

    def _inner_first(self, root: Loaded) -> list[Loaded]:
        """Return the new objects, each after those it needs (but for circles)."""
        order: list[Loaded] = []
        seen = {root.same}
        stack = [(root, iter(self._needs(root)))]
        while stack:
            owner, rest = stack[-1]
            for found in rest:
                if found.same not in seen:
                    seen.add(found.same)
                    stack.append((found, iter(self._needs(found))))
                    break
            else:
                stack.pop()
                if owner.same not in self.old:
                    order.append(owner)
        return order

    def _needs(self, owner: Loaded) -> list[Loaded]:
        if owner.same in self.old or owner.facts is None:
            return []
        return [self.by_same[self.names[name]] for name in owner.facts.needed if name in self.names]


_CACHE = "the cache"


def _any(tables: list[frozenset[int]], value: int) -> bool:
    return any(value in table for table in tables)
