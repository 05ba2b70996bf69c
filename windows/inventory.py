"""What lies in the folders that matter to ``import torch``: a record of raw facts, for JSON.

The same for a running Windows and for a copied one: each folder has the path that Windows knows it
by and the place where it can be read. Only what the loader could come by is looked into: the files
of torch and its companions, what they need, and the VC++ runtime wherever it lies. Nothing is
judged here. The DLLs themselves are never part of the record.
"""

from __future__ import annotations

import csv
import ntpath
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from . import dll_facts
from .dll_facts import DllFacts, OnDisk
from .redist import MSVCP, of_runtime
from .tables import load as table

SCHEMA = 1
LONGEST_NAME = 40
MOST_FOLDERS = 20_000
"""No more folders of site-packages are walked through for copies of the runtime."""
DEEPEST = 5
_COMPILED = (".pyd", ".dll")
_SYSTEM = ("kernel32.dll", "ntdll.dll")
"""A System32 that has these was copied whole."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder: its path on Windows, the part it plays for the loader, where to read it."""

    path: str
    role: str
    disk: str


@dataclass(frozen=True, slots=True)
class Layout:
    """Which folder of a machine is which. Paths are those of Windows; *places* says where.

    ``python`` is the name of the interpreter's DLL (python311.dll).
    """

    places: tuple[Place, ...]
    torch: str
    release: str
    exec_prefix: str
    base_exec_prefix: str
    python: str = ""
    userbase: str | None = None
    cuda: str | None = None
    nvtools: str | None = None
    companions: Mapping[str, str] = field(default_factory=dict)
    """Folders of torchvision and torchaudio."""
    sites: tuple[Place, ...] = ()
    """site-packages folders, to be searched for copies of the runtime."""
    record: str | None = None
    """Where torch's RECORD can be read."""


def take(layout: Layout) -> dict[str, object]:
    """Return the record of the machine that *layout* describes. Raises nothing for bad files."""
    carriers = tuple(_carriers(layout))
    looking = _Looking((*layout.places, *carriers))
    own = ntpath.join(layout.torch, "lib")
    starts = [*looking.all_of(own), *looking.named(layout.torch, lambda n: n.startswith("_c."))]
    companions: dict[str, list[str]] = {}
    for name, folder in layout.companions.items():
        for place in (folder, ntpath.join(folder, "lib")):
            files = looking.named(place, _is_compiled)
            companions.setdefault(name, []).extend(ntpath.join(place, f) for f in files)
            starts += files
    starts += [row["name"] for row in table("runtime")["dll"]]
    starts += [layout.python] if layout.python else []
    looking.follow(starts)
    return {
        "schema": SCHEMA,
        "torch": layout.torch,
        "release": layout.release,
        "exec_prefix": layout.exec_prefix,
        "base_exec_prefix": layout.base_exec_prefix,
        "userbase": layout.userbase,
        "cuda": layout.cuda,
        "nvtools": layout.nvtools,
        "python": layout.python,
        "companions": companions,
        "folders": looking.folders(),
        "strangers": strangers(layout.record, looking.all_of(own)),
        "longest": longest(layout),
    }


def _is_compiled(name: str) -> bool:
    return name.endswith(_COMPILED) and "ffmpeg" not in name  # those are tried in silence


class _Looking:
    """Folders of a machine, listed once; files are read as they are asked for."""

    def __init__(self, places: Iterable[Place]) -> None:
        self.roles: dict[str, list[str]] = {}
        self.files: dict[str, OnDisk] = {}
        self.paths: dict[str, str] = {}
        for place in places:
            key = ntpath.normcase(place.path)
            if place.role not in self.roles.setdefault(key, []):
                self.roles[key].append(place.role)
            if key not in self.files:
                self.paths[key] = place.path
                self.files[key] = OnDisk(place.disk)
        self.wanted: set[str] = set()
        self.whole: set[str] = set()

    def all_of(self, folder: str) -> list[str]:
        """Return all DLLs in *folder*, and keep them all."""
        return self.named(folder, lambda name: name.endswith(".dll"))

    def named(self, folder: str, test: object) -> list[str]:
        """Return the files in *folder* that pass *test*."""
        assert callable(test)
        key = ntpath.normcase(folder)
        self.whole.add(key)
        return [name for name in self.files.get(key, ()) if test(name)]

    def follow(self, starts: Iterable[str]) -> None:
        """Read *starts* and all that they need, in every folder that has it."""
        system = table("system")
        parts = {*system["known_dlls"], *system["parts"], *system["optional"]}
        waiting = [name.lower() for name in starts]
        for name in waiting:  # grows while it runs
            if name in self.wanted:
                continue
            self.wanted.add(name)
            if name in parts or name.startswith(("api-ms-win-", "ext-ms-")):
                continue
            for files in self.files.values():
                facts = files.get(name)
                waiting += [need.dll.lower() for need in facts.needs] if facts else []

    def folders(self) -> list[dict[str, object]]:
        """Return the folders with what is wanted of them."""
        read = {
            key: {name: self._kept(key, name) for name in files if self._matters(key, name)}
            for key, files in self.files.items()
        }
        asked = frozenset(
            value
            for files in read.values()
            for facts in files.values()
            if facts
            for need in facts.needs
            for value in (*map(dll_facts.hashed, need.names), *need.hashes)
        )
        return [
            {
                "path": self.paths[key],
                "roles": self.roles[key],
                "complete": self._complete(key),
                "files": [
                    dll_facts.to_json(dll_facts.small(f, longest=LONGEST_NAME, offers=asked))
                    if f
                    else {"name": name}
                    for name, f in sorted(files.items())
                ],
            }
            for key, files in read.items()
        ]

    def _matters(self, key: str, name: str) -> bool:
        return name in self.wanted or (key in self.whole and name.endswith(_COMPILED))

    def _kept(self, key: str, name: str) -> DllFacts | None:
        known = self.files[key]
        return known[name] if name in self.wanted and known.was_read(name) else None

    def _complete(self, key: str) -> bool:
        if "system32" not in self.roles[key]:
            return True
        return all(name in self.files[key] for name in _SYSTEM)


def _carriers(layout: Layout) -> Iterator[Place]:
    """Yield the folders of packages that have a VC++ runtime of their own."""
    torch = ntpath.normcase(layout.torch)
    count = 0
    for site in layout.sites:
        for folder, below, names in os.walk(site.disk):
            count += 1
            if count > MOST_FOLDERS:
                return
            inner = os.path.relpath(folder, site.disk)
            parts = [] if inner == "." else inner.split(os.sep)  # noqa: PTH206
            path = ntpath.join(site.path, *parts)
            deep = len(parts) >= DEEPEST
            below[:] = [] if deep or ntpath.normcase(path) == torch else sorted(below)
            if parts and any(name.lower() == MSVCP for name in names):
                yield Place(path, "package", folder)


def longest(layout: Layout) -> int | None:
    """Return how long the longest path of torch's files is on Windows; None without a RECORD."""
    names = _recorded(layout.record)
    site = ntpath.dirname(layout.torch)
    return max((len(site) + 1 + len(name) for name in names or ()), default=None)


def strangers(record: str | None, files: Iterable[str]) -> list[str] | None:
    r"""Return those of *files* in torch\lib that RECORD does not list; None without a RECORD."""
    names = _recorded(record)
    if names is None:
        return None
    listed = {name.lower() for name in names}
    return [f for f in files if f"torch/lib/{f}" not in listed and not of_runtime(f)]


def _recorded(record: str | None) -> list[str] | None:
    if record is None:
        return None
    try:
        with open(record, encoding="utf-8", errors="replace", newline="") as file:  # noqa: PTH123
            return [row[0] for row in csv.reader(file) if row]
    except (OSError, csv.Error):
        return None
