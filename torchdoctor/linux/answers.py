"""From the record of a machine to facts: what the loader would do with torch, and why.

The record is what :mod:`.inventory` writes. It may come from anywhere: what is of another shape
raises :class:`Unreadable`, and nothing is guessed in its place.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from torchdoctor.facts import SoFile, SoLoad, Unknown

from . import loader, startup, system
from .inventory import SCHEMA, Search, Searches, objects_of, search
from .loader import VARIABLES, File, Load, Loaded, Machine, Problem
from .objects import NotFacts, from_json, optional, symbol_hash, text, texts, to_json, versions_of
from .startup import Install, Start

MOST = 100_000
MOST_NAMES = 20
MOST_SYMBOLS = 3 * MOST_NAMES
"""What a file looks for in vain, of which a few are told: so many stay in a record."""


class Unreadable(ValueError):  # noqa: N818 - it is an answer, not an error
    """The record is not what the inventory writes."""


def of(record: Mapping[str, object]) -> dict[str, object]:
    """Return fields of :class:`torchdoctor.facts.Linux` from the *record* of a machine.

    Raises Unreadable.
    """
    try:
        return _Whole(record).fields()
    except (NotFacts, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"the record of the shared objects is damaged: {error}") from error


def shortened(record: Mapping[str, object]) -> Mapping[str, object]:
    """Return *record* with fewer missing symbols, as far as it answers the same.

    A library that takes the place of another may lack thousands. Raises Unreadable or NotFacts.
    """
    facts = {key: from_json(value) for key, value in _object(record["objects"]).items()}
    if all(len(f.symbols) + len(f.more_symbols) <= MOST_SYMBOLS for f in facts.values()):
        return record
    cut = {
        key: replace(
            f,
            symbols=f.symbols[:MOST_SYMBOLS],
            versions=versions_of(f.versions, f.symbols[:MOST_SYMBOLS]),
            more_symbols=f.more_symbols[:MOST_SYMBOLS],
        )
        for key, f in facts.items()
    }
    asked = {
        value for f in cut.values() for value in (*map(symbol_hash, f.symbols), *f.more_symbols)
    }
    entries = {key: to_json(replace(f, defined=f.defined & asked)) for key, f in cut.items()}
    short = {**record, "objects": entries}
    return short if of(short) == of(record) else record


class _Whole:
    """A machine made of a record, and what is asked of it."""

    def __init__(self, record: Mapping[str, object]) -> None:
        if record.get("schema") != SCHEMA:
            raise Unreadable("the record of the shared objects is of another schema")
        self.variables = _mapping(record["variables"])
        self.torch = optional(record["torch"])
        self.release = text(record["release"])
        self.prefix = text(record["prefix"])
        self.loaded = texts(record["loaded"])
        self.path = texts(record["path"])
        self.cuda = optional(record["cuda"])
        self.folders = {path: texts(names) for path, names in _object(record["folders"]).items()}
        self.extensions = {
            name: texts(paths) for name, paths in _object(record["extensions"]).items()
        }
        self.machine = Machine(
            files=_files(record),
            program=text(record["program"]),
            cache=_mapping(record["cache"]),
            default=texts(record["default"]),
            subfolders=texts(record["subfolders"]),
            machine=text(record["machine"]),
            bits=_bits(record["bits"]),
        )

    def fields(self) -> dict[str, object]:
        libc = loader.start(self.machine).process.get(system.LIBC)
        release = system.glibc(libc.facts if libc else None)
        known: dict[str, object] = {"glibc": f"{release[0]}.{release[1]}" if release else None}
        if self.torch is None:
            return known
        install = Install(self.torch, self.path, self.cuda, self.folders)
        found = search(
            self.machine, self.variables, self.loaded, install, self.release, self.extensions
        )
        if not found.each:
            reason = Unknown(f"how torch {self.release} starts is not known")
            return known | dict.fromkeys(("torch", "without", "steered", "extensions"), reason)
        return known | self._answers(found)

    def _answers(self, found: Searches) -> dict[str, object]:
        first, last = found.each[0], found.each[-1]
        clean = {o.asked: o for o in objects_of(last)}
        return {
            "torch": self._start(first.torch, clean if first is not last else {}),
            "without": self._start(last.torch, {}),
            "steered": tuple(_steered(first, clean)) if first is not last else (),
            "extensions": (
                {
                    name: tuple(self._extension(path, load, loads) for path, load in loads)
                    for name, loads in first.extensions.items()
                }
                if first.torch.problem is None
                else Unknown("torch itself does not load")
            ),
            "stacks": tuple(
                dict.fromkeys(
                    o.path
                    for o in objects_of(first)
                    if o.facts and o.facts.executable_stack and self._inside(o.path)
                )
            ),
        }

    # ---- answers as facts ----

    def _start(self, start: Start, clean: Mapping[str, Loaded]) -> SoLoad:
        assumed = start.assumed
        if not startup.is_read(self.release):
            assumed = (
                f"torch {self.release} is taken to start as the newest that was read",
                *assumed,
            )
        return self._made(start.named, start.problem, start.tried, clean, assumed)

    def _extension(self, path: str, load: Load, loads: tuple[tuple[str, Load], ...]) -> SoLoad:
        """Return what becomes of *path*; its package may load others of *loads* before it."""
        problem, assumed = load.problem, load.assumed
        if problem and problem.kind == "symbol":
            files = [self.machine.files.get(other) for other, _ in loads if other != path]
            own = [file.facts.defined for file in files if file and file.facts]
            names = tuple(n for n in problem.names if not any(_hash(n) in d for d in own))
            if not names:
                problem, assumed = None, (*assumed, "another file of the package is loaded first")
            else:
                problem = replace(problem, names=names, version=self._version(problem, names[0]))
        return self._made(path, problem, load.tried, {}, assumed)

    def _version(self, problem: Problem, symbol: str) -> str:
        file = self.machine.files.get(problem.culprit)
        return file.facts.versions.get(symbol, "") if file and file.facts else ""

    def _made(
        self,
        named: str,
        problem: Problem | None,
        tried: tuple[Loaded, ...],
        clean: Mapping[str, Loaded],
        assumed: tuple[str, ...],
    ) -> SoLoad:
        if problem is None:
            return SoLoad(assumed=assumed)
        culprit, instead = problem.culprit, ""
        asks = problem.chain[-2] if len(problem.chain) > 1 else ""
        taken = next((o for o in tried if o.path == culprit), None)
        if problem.kind == "symbol":
            asks = culprit
            taken = _lacking(problem, tried, clean)
            culprit = taken.path if taken else culprit
        if taken and (other := _counterpart(taken, clean)) and other.same != taken.same:
            instead = posixpath.normpath(other.path)
        return SoLoad(
            kind=problem.kind,
            named=named,
            culprit=posixpath.normpath(culprit),
            place=self._place(culprit, taken),
            asks=posixpath.normpath(asks) if asks else "",
            chain=tuple(map(posixpath.basename, problem.chain)),
            names=problem.names[:MOST_NAMES],
            message=problem.message,
            instead=instead,
            assumed=assumed,
        )

    def _place(self, culprit: str, taken: Loaded | None) -> str:
        if "/" not in culprit:
            return ""
        if taken and taken.how in VARIABLES:
            return taken.how
        if self.torch and _below(culprit, self.torch):
            return "torch"
        return "environment" if self._inside(culprit) else "system"

    def _inside(self, path: str) -> bool:
        return any(_below(path, folder) for folder in (self.prefix, *self.path) if folder)


def _lacking(
    problem: Problem, tried: tuple[Loaded, ...], clean: Mapping[str, Loaded]
) -> Loaded | None:
    """Return the object that a variable put where another has the symbol that is missing."""
    value = _hash(problem.names[0])
    for taken in tried:
        other = _counterpart(taken, clean)
        if taken.how not in VARIABLES or other is None or other.same == taken.same:
            continue
        if other.facts and value in other.facts.defined:
            return taken
    return None


def _counterpart(taken: Loaded, clean: Mapping[str, Loaded]) -> Loaded | None:
    """Return what serves in *clean* where *taken* does; LD_PRELOAD asks for it by its path."""
    soname = taken.facts.soname if taken.facts else None
    names = (taken.asked, soname or "", posixpath.basename(taken.path))
    return next((clean[name] for name in names if name in clean), None)


def _hash(name: str) -> int:
    return int(name[1:], 16) if name.startswith("~") else symbol_hash(name)


def _steered(first: Search, clean: Mapping[str, Loaded]) -> list[SoFile]:
    found = []
    for taken in objects_of(first):
        other = _counterpart(taken, clean)
        if taken.how in VARIABLES and (other is None or other.same != taken.same):
            instead = posixpath.normpath(other.path) if other else ""
            row = SoFile(taken.asked, posixpath.normpath(taken.path), taken.how, instead)
            if row not in found:
                found.append(row)
    return found


def _below(path: str, folder: str) -> bool:
    return posixpath.normpath(path).startswith(f"{posixpath.normpath(folder).rstrip('/')}/")


# ---- the record ---------------------------------------------------------------------------------


def _files(record: Mapping[str, object]) -> dict[str, File]:
    facts = {key: from_json(value) for key, value in _object(record["objects"]).items()}
    return {
        path: File(facts.get(text(number)), text(number))
        for path, number in _object(record["files"]).items()
    }


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict) or len(value) > MOST:
        raise Unreadable("not an object")
    return value


def _mapping(value: object) -> dict[str, str]:
    return {text(key): text(each) for key, each in _object(value).items()}


def _bits(value: object) -> int:
    if value not in (32, 64):
        raise Unreadable("not a number of bits")
    return 64 if value == 64 else 32  # noqa: PLR2004 - as checked
