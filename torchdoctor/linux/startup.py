"""What ``import torch`` loads on Linux, in which order: by release, from ``torch_start.toml``.

libtorch_global_deps.so first, for everybody; the nvidia wheels by their paths, where that fails or
to be sure; then torch._C. What each of these calls does is for :mod:`.loader` to say.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from torchdoctor.tables import load as table

from .loader import Load, Loaded, Machine, Problem, Process, dlopen

GLOBAL_DEPS = "libtorch_global_deps.so"
_C = re.compile(r"_C(\.[\w-]+)?\.so")


@dataclass(frozen=True, slots=True)
class Install:
    """Where torch is, and where its start looks."""

    torch: str
    """The folder of the package."""
    path: tuple[str, ...] = ()
    """sys.path."""
    cuda: str | None = None
    """``torch.version.cuda``."""
    folders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names in folders, by path; a folder that is not there is not in it."""


@dataclass(frozen=True, slots=True)
class Start:
    """What ``import torch`` comes to; without a problem, ``process`` is the one afterwards."""

    process: Process
    problem: Problem | None = None
    also: tuple[Problem, ...] = ()
    named: str = ""
    """The path that torch asked for when it failed."""
    preloaded: tuple[str, ...] = ()
    """Paths of the nvidia libraries that torch itself loaded."""
    tried: tuple[Loaded, ...] = ()
    """The objects of the process, also of the call that failed."""
    assumed: tuple[str, ...] = ()


def sequence(release: str) -> Mapping[str, Any] | None:
    """Return the row of ``torch_start.toml`` for torch *release*; None for one older than it."""
    wanted = _numbers(release)
    rows = [row for row in table("torch_start")["release"] if _numbers(row["since"]) <= wanted]
    return rows[-1] if rows else None


def is_read(release: str) -> bool:
    """Tell whether *release* is not newer than those that were read."""
    return _numbers(release) <= _numbers(table("torch_start")["read"])


def _numbers(release: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", release)
    numbers = tuple(int(n) for n in found[0].split(".")[:3]) if found else ()
    return numbers + (0,) * (3 - len(numbers))


def import_torch(
    machine: Machine, process: Process, install: Install, how: Mapping[str, Any]
) -> Start:
    """Return what ``import torch`` comes to in *process*, started as the row *how* says."""
    run = _Run(machine, process, install, how)
    load = run.global_deps()
    if load.problem is None:
        load = dlopen(machine, run.process, run.extension())
        run.named = run.extension()
        run.note(load)
    return Start(
        process=load.process if load.problem is None else process,
        problem=load.problem,
        also=load.also,
        named=run.named if load.problem else "",
        preloaded=tuple(run.preloaded),
        tried=load.tried,
        assumed=tuple(run.assumed),
    )


class _Run:
    def __init__(
        self, machine: Machine, process: Process, install: Install, how: Mapping[str, Any]
    ) -> None:
        self.machine = machine
        self.process = process
        self.install = install
        self.how = how
        self.named = posixpath.join(install.torch, "lib", GLOBAL_DEPS)
        self.preloaded: list[str] = []
        self.assumed: dict[str, None] = {}

    def note(self, load: Load) -> Load:
        self.assumed.update(dict.fromkeys(load.assumed))
        if load.problem is None:
            self.process = load.process
        return load

    def extension(self) -> str:
        """Return the path of torch._C."""
        names = self.install.folders.get(self.install.torch, ())
        name = next((n for n in sorted(names) if _C.fullmatch(n)), "_C.so")
        return posixpath.join(self.install.torch, name)

    def global_deps(self) -> Load:
        """Load libtorch_global_deps.so, and what torch loads with it."""
        path = self.named
        load = self.note(dlopen(self.machine, self.process, path, everywhere=True))
        if load.problem is None:
            self._afterwards()
            return load
        stems = self.how.get("names") or [p.partition(".")[0] for _, p in self._fallback()]
        if not any(stem in load.problem.message for stem in stems):
            return load
        for folder, pattern in self._fallback():
            failed = self._preload(folder, pattern, required=True)
            if failed:
                return failed
        for folder, pattern in self.how.get("optional", ()):
            if failed := self._preload(folder, pattern, required=False):
                return failed
        self.named = path
        return self.note(dlopen(self.machine, self.process, path, everywhere=True))

    def _fallback(self) -> list[tuple[str, str]]:
        new = set(self.how.get("cuda12", ()))
        major = int((self.install.cuda or "0").partition(".")[0] or 0)
        return [
            (folder, pattern)
            for folder, pattern in self.how.get("fallback", ())
            if folder not in new or major >= 12  # noqa: PLR2004 - as the table says
        ]

    def _afterwards(self) -> None:
        """Load what torch loads to be sure; the first failure ends it, and is not told."""
        wanted = self.how.get("after_if")
        paths = (posixpath.normpath(o.path) for o in self.process.objects)
        if wanted is None or not any(wanted in path for path in paths):
            return
        lenient = self.how.get("lenient", False)
        after = self.how["after"]
        rows = [(f, p, not lenient) for f, p in (self._fallback() if after == "all" else after)]
        if after == "all":
            rows += [(f, p, False) for f, p in self.how.get("optional", ())]
        for folder, pattern, required in rows:
            if self._preload(folder, pattern, required=required):
                return

    def _preload(self, folder: str, pattern: str, *, required: bool) -> Load | None:
        """Load the first file that matches; return the failure, if it is one."""
        found = next(self._candidates(folder, pattern), None)
        if found is None:
            if not required:
                return None
            # A ValueError of torch's own; nothing was loaded.
            self.named = pattern
            return Load(self.process, Problem("missing", pattern, (pattern,)))
        load = self.note(dlopen(self.machine, self.process, found))
        if load.problem is None:
            self.preloaded.append(found)
            return None
        self.named = found
        return load

    def _candidates(self, folder: str, pattern: str) -> Iterator[str]:
        major = (self.install.cuda or "").partition(".")[0]
        for entry in self.install.path:
            for place in _filled(self.how.get("places", ()), folder, major):
                path = posixpath.join(entry, place)
                for name in self.install.folders.get(path, ()):
                    if fnmatchcase(name, pattern) and not name.startswith("."):
                        yield posixpath.join(path, name)


def _filled(places: Iterable[str], folder: str, major: str) -> Iterator[str]:
    for place in places:
        if "{cuda}" not in place or major:
            yield place.format(folder=folder, cuda=major)
