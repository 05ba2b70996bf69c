"""What a snapshot holds of the shared objects of a machine: enough to search them again.

The searches are run once on the disk, and every file that they asked for is kept, by its facts.
Symbols that a choice of files may lack are kept as hashes, and by name where one is missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import cache, loader, objects, startup, system, thin
from .disk import Listed, OnDisk
from .loader import Loaded, Machine
from .startup import Install, Start

SCHEMA = 1
CACHE = "/etc/ld.so.cache"
LARGEST_CACHE = 16 << 20
LARGEST_METADATA = 1 << 20
LARGEST_RECORD = 32 << 20
MOST_FILES = 400
"""Compiled files of other packages that are looked into, at most."""
_NEEDS_TORCH = re.compile(r"(?mi)^Requires-Dist:\s*torch(?![\w.-])")
_NAME = re.compile(r"(?mi)^Name:\s*(\S+)")
_OF_TORCH = re.compile(r"lib(torch|c10|caffe2)")


class NotGlibc(ValueError):  # noqa: N818 - it says what the machine is not
    """The interpreter is not loaded by the loader of glibc."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A machine to look at: what the loader depends on, and where torch is."""

    program: str
    variables: Mapping[str, str]
    """LD_LIBRARY_PATH and LD_PRELOAD, where they are set."""
    loaded: tuple[str, ...]
    path: tuple[str, ...]
    torch: str | None
    release: str
    cuda: str | None
    help: str
    cwd: str
    prefix: str


def layout(said: Mapping[str, Any], help_text: str, cwd: str) -> Layout:
    """Return the layout that the probe of the interpreter tells of in *said*."""
    program, packages = said["program"], said["packages"]
    text = str(packages.get("version") or "")
    version = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", text)
    cuda = re.search(r"(?m)^cuda\b[^=\n]*=\s*['\"](\d+\.\d+)", text)
    return Layout(
        program=str(program["path"]),
        variables={str(k): str(v) for k, v in program["variables"].items()},
        loaded=tuple(map(str, said.get("loaded") or ())),
        path=tuple(map(str, packages["path"])),
        torch=packages["torch"],
        release=version[1] if version else "",
        cuda=cuda[1] if cuda else None,
        help=help_text,
        cwd=cwd,
        prefix=str(program["prefix"]),
    )


def take(where: Layout) -> dict[str, object]:
    """Return the record of *where*; what :func:`.answers.of` reads.

    Raises NotGlibc.
    """
    files = OnDisk(lambda path: os.path.join(where.cwd, path))  # noqa: PTH118 - plain text
    folders = Listed()
    own = files.get(where.program)
    kind = own.facts if own and own.facts else objects.SharedObject()
    if "musl" in (kind.interpreter or ""):
        raise NotGlibc("the loader of musl searches in a way of its own")
    said = system.of_help(where.help, kind.machine)
    machine = Machine(
        files=files,
        program=where.program,
        cache=_cache(kind.machine, said.capabilities),
        default=said.default,
        subfolders=said.subfolders,
        machine=kind.machine,
        bits=kind.bits,
    )
    loader.start(machine)  # the C library is to be known in any case
    extensions: dict[str, tuple[str, ...]] = {}
    searches = Searches(())
    if where.torch is not None:
        install = Install(where.torch, where.path, where.cuda, folders)
        extensions = _extensions(where)
        searches = search(
            machine, where.variables, where.loaded, install, where.release, extensions
        )
    return {
        "schema": SCHEMA,
        "program": where.program,
        "prefix": where.prefix,
        "machine": kind.machine,
        "bits": kind.bits,
        "variables": dict(where.variables),
        "default": list(said.default),
        "subfolders": list(said.subfolders),
        "loaded": list(where.loaded),
        "torch": where.torch,
        "release": where.release,
        "cuda": where.cuda,
        "path": list(where.path),
        "folders": {p: [n for n in names if ".so" in n] for p, names in folders.items()},
        "extensions": {name: list(paths) for name, paths in extensions.items()},
        **_files(files, steered(machine, where.variables), where.loaded, searches),
    }


# ---- the searches ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Search:
    """One import of torch, and the extensions after it."""

    torch: Start
    extensions: Mapping[str, tuple[tuple[str, loader.Load], ...]]
    """By package: (path, what became of it)."""


@dataclass(frozen=True, slots=True)
class Searches:
    """As it is; and, where a variable steers the loader, as it would be without."""

    each: tuple[Search, ...]


def search(  # noqa: PLR0913, PLR0917 - what a search depends on
    machine: Machine,
    variables: Mapping[str, str],
    loaded: Iterable[str],
    install: Install,
    release: str,
    extensions: Mapping[str, Iterable[str]],
) -> Searches:
    """Return what an import of torch comes to, with the *variables*, and without them."""
    how = startup.sequence(release)
    if how is None:
        return Searches(())
    machines = steered(machine, variables)
    found = []
    first = machines[0]
    by_variable = {o.same for o in loader.start(first).process.objects if o.how in loader.VARIABLES}
    for one in machines:
        process = loader.start(one).process
        before = (path for path in loaded if one is first or not _by(first, path, by_variable))
        process = loader.add(process, one, tuple(before))
        torch = startup.import_torch(one, process, install, how)
        after = {
            name: tuple((path, loader.dlopen(one, torch.process, path)) for path in paths)
            for name, paths in extensions.items()
            if torch.problem is None
        }
        found.append(Search(torch, after))
    return Searches(tuple(found))


def steered(machine: Machine, variables: Mapping[str, str]) -> list[Machine]:
    """Return *machine* with the *variables*; and, where that makes another, without."""
    first = replace(machine, **entries(variables))
    return [first] if first == machine else [first, machine]


def _by(machine: Machine, path: str, known: Container[str]) -> bool:
    """Tell whether a variable led to *path*, or may have; *known* are files that it did lead to."""
    folders = tuple(f"{folder.rstrip('/')}/" for folder in machine.library_path if folder)
    file = machine.files.get(path)
    return path.startswith(folders) or (file is not None and file.same in known)


def entries(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return LD_LIBRARY_PATH and LD_PRELOAD, taken apart as the loader does."""
    path, preload = variables.get("LD_LIBRARY_PATH", ""), variables.get("LD_PRELOAD", "")
    return {
        "library_path": tuple(re.split("[:;]", path)) if path else (),
        "preload": tuple(filter(None, re.split("[: ]", preload))),
    }


def objects_of(searched: Search) -> Iterator[Loaded]:
    """Yield every object that a search came to, also of what failed."""
    yield from searched.torch.process.objects
    yield from searched.torch.tried
    for loads in searched.extensions.values():
        for _, load in loads:
            yield from load.tried


# ---- what is kept ------------------------------------------------------------------------------


def _files(
    files: OnDisk, machines: list[Machine], loaded: tuple[str, ...], searches: Searches
) -> dict[str, object]:
    """Return the files that were asked for, and what is to be known of each."""
    starts = [loader.start(machine).process for machine in machines]
    found = {path: file for path, file in files.asked.items() if file}
    needed = {name for file in found.values() if file.facts for name in file.facts.needed}
    known = machines[0].cache
    asked_for = sorted(needed.union(machines[0].preload))
    table = {name: known[name] for name in asked_for if name in known}
    facts = thin.thin(replace(machines[0], files=found, cache=table), loaded, starts)
    asked = frozenset(objects.symbol_hash(n) for f in facts.values() for n in f.symbols)
    offered: set[int] = set()
    for each in facts.values():
        offered |= each.defined & asked
    missing = set(asked - offered)
    for one in searches.each:
        problems = [one.torch.problem, *one.torch.also]
        problems += [
            p for loads in one.extensions.values() for _, x in loads for p in (x.problem, *x.also)
        ]
        missing |= {objects.symbol_hash(n) for p in problems if p for n in p.names}
    numbers = {same: str(i) for i, same in enumerate(dict.fromkeys(f.same for f in found.values()))}
    return {
        "cache": table,
        "files": {path: numbers[file.same] for path, file in found.items()},
        "objects": {
            numbers[same]: objects.to_json(objects.small(f, named=missing, asked=asked))
            for same, f in facts.items()
        },
    }


def _cache(machine: str, folders: tuple[str, ...]) -> dict[str, str]:
    try:
        with open(CACHE, "rb") as file:  # noqa: PTH123 - one of hundreds of files here
            return cache.table(cache.parse(file.read(LARGEST_CACHE)), machine, folders)
    except (OSError, cache.NotCache):
        return {}


# ---- other packages ----------------------------------------------------------------------------


def _extensions(where: Layout) -> dict[str, tuple[str, ...]]:
    """Return the compiled files that need torch's, by the name of their package."""
    found: dict[str, tuple[str, ...]] = {}
    left = MOST_FILES
    for folder in dict.fromkeys(where.path):
        if folder.endswith("/lib-dynload"):  # the standard library's own
            continue
        for name, paths in _candidates(os.path.join(where.cwd, folder)):  # noqa: PTH118
            some = paths[:left]
            left -= len(some)
            mine = tuple(filter(_needs_torch, some))
            if mine:
                found.setdefault(name, mine)
    return found


def _needs_torch(path: str) -> bool:
    try:
        return any(map(_OF_TORCH.match, objects.read(path).needed))
    except (OSError, ValueError):
        return False


def _candidates(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (package, compiled files) of what may need torch in *folder*."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names only
    except OSError:
        return
    claimed: set[str] = set()
    for name in names:
        if not name.endswith(".dist-info"):
            continue
        info = os.path.join(folder, name)  # noqa: PTH118
        metadata = _text(os.path.join(info, "METADATA"), LARGEST_METADATA)  # noqa: PTH118
        title = _NAME.search(metadata)
        wants = bool(_NEEDS_TORCH.search(metadata.partition("\n\n")[0]))
        if not title or title[1] == "torch" or not (wants or _is_compiled(title[1])):
            continue
        record = _text(os.path.join(info, "RECORD"), LARGEST_RECORD)  # noqa: PTH118
        rows = re.findall(r"(?m)^\"?([^\",\n]+\.so(?:\.\d+)*)\"?,", record)
        paths = [os.path.join(folder, row) for row in rows if not row.startswith("/")]  # noqa: PTH118
        claimed |= set(paths)
        if paths:
            yield title[1].lower().replace("_", "-"), paths
    for name in names:  # what somebody built into the folder itself
        path = os.path.join(folder, name)  # noqa: PTH118
        if name.endswith(".so") and path not in claimed:
            yield name.partition(".")[0].lower().replace("_", "-"), [path]


def _is_compiled(name: str) -> bool:
    from torchdoctor.tables import neighbours  # noqa: PLC0415 - read where torch is there only

    return name.lower().replace("_", "-") in neighbours.compiled()


def _text(path: str, most: int) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(most).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
