"""Loads of small DLLs spread over the folders at random: what the model says of each.

Each trial has names of its own, so that all of them fit into one process.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tests.windows.wine import box, cases
from tests.windows.wine.cases import Outcome, Prediction
from tests.windows.writer import Dll, write
from windows.dll_facts import OnDisk
from windows.loader import (
    ALTERED,
    DEFAULT_DIRS,
    LOAD_DIR,
    Folder,
    Machine,
    Problem,
    Role,
    load,
    normal,
)
from windows.startup import started

FLAGS = (LOAD_DIR | DEFAULT_DIRS, DEFAULT_DIRS, 0, ALTERED)
PLACES: Mapping[str, Role] = {
    "home": "application",
    "system32": "system32",
    "working": "working",
    "path": "path",
    "lib": "package",
    "one": "package",
    "two": "package",
}


@dataclass(frozen=True)
class Trial:
    """One load; *registers* and *first* (loaded before, by its path) are by place."""

    number: int
    flags: int
    bare: bool
    """The target is a name, not a path."""
    registers: tuple[str, ...]
    first: str | None
    files: Mapping[tuple[str, str], bytes]
    """What to write, by place and name."""

    @property
    def names(self) -> tuple[str, str, str]:
        """Return the names of the target, of what it needs, and of what that needs."""
        return tuple(f"{kind}{self.number}.dll" for kind in ("top", "dep", "deep"))  # type: ignore[return-value]


def trial(number: int) -> Trial:
    """Return the trial *number*, always the same."""
    rng = random.Random(number)  # noqa: S311 - the same each time
    flags = rng.choice(FLAGS)
    bare = rng.random() < (0.1 if flags & LOAD_DIR else 0.3)  # with that flag, it is refused
    registers = tuple(rng.sample(("one", "two"), rng.choice((0, 1, 2, 2))))
    empty = Trial(number, flags, bare, registers, None, {})
    top, dep, deep = empty.names
    deeper = rng.random() < 0.4
    homes = rng.sample(sorted(PLACES), rng.choice((1, 1, 2, 3, 4)))
    files = {(rng.choice(homes) if bare else "lib", top): write(Dll(imports={dep: ["f"]}))}
    for place in homes:
        alone = len(homes) == 1 and place != "system32"
        files[place, dep] = _dependency(rng, deep if deeper else None, alone=alone)
    if deeper:
        for place in rng.sample(sorted(PLACES), rng.choice((0, 1, 2, 3))):
            files[place, deep] = write(Dll(exports=["g"]))
    first = rng.choice(homes) if rng.random() < 0.2 else None
    if first:
        files[first, dep] = write(Dll(exports=["f"]))
    return replace(empty, files=files, first=first)


def _dependency(rng: random.Random, needs: str | None, *, alone: bool) -> bytes:
    """Return a DLL, now and then one with a fault.

    One for another processor has no second copy, and is not in System32: Windows would go on to
    that copy and emulate this one, Wine does neither.
    """
    plain = Dll(exports=["f", "other"], imports={needs: ["g"]} if needs else {})
    data = write(plain)
    luck = rng.random()
    if luck < 0.12 and alone:
        return write(replace(plain, machine="arm64"))
    if luck < 0.18:
        return data[:700]
    if luck < 0.26:
        return write(replace(plain, exports=["other"]))
    return data


@dataclass(frozen=True)
class Field:
    """The folders that the trials are played on, by place."""

    folders: Mapping[str, Path]

    def windows(self, place: str) -> str:
        """Return the folder *place* as Windows names it."""
        if place == "system32":
            return cases.SYSTEM32
        return box.windows_path(self.folders[place])

    def target(self, one: Trial) -> str:
        """Return what the trial *one* asks for."""
        name = one.names[0]
        return name if one.bare else self.windows("lib") + "\\" + name

    def lay(self, one: Trial) -> None:
        """Write the files of *one*."""
        for (place, name), data in one.files.items():
            (self.folders[place] / name).write_bytes(data)

    def asked(self, one: Trial) -> dict[str, object]:
        """Return *one* as the program under Wine takes it."""
        first = [] if one.first is None else [self.windows(one.first) + "\\" + one.names[1]]
        return {
            "registers": [self.windows(place) for place in one.registers],
            "first": first,
            "target": self.target(one),
            "flags": one.flags,
            "modules": list(one.names),
        }

    def machine(self) -> Machine:
        """Return the machine, once all trials are laid out."""
        folders = tuple(
            Folder(
                self.windows(place),
                role,
                OnDisk(str(self.folders[place])),
                complete=place != "system32",
            )
            for place, role in PLACES.items()
        )
        return started(Machine(folders), box.INTERPRETER)

    def predict(self, one: Trial, machine: Machine) -> tuple[Prediction, Mapping[str, str]]:
        """Return what comes of *one*, and which files it takes under Wine where it loads."""
        for place in one.registers:
            machine = machine.register(self.windows(place))
        if one.first is not None:
            machine = load(machine, self.windows(one.first) + "\\" + one.names[1]).machine
        taken: dict[str, str] = {}

        def judge(machine: Machine) -> tuple[Outcome, Problem | None]:
            result = load(machine, self.target(one), one.flags)
            loaded = result.machine.loaded
            taken.clear()
            taken.update({n: normal(loaded[n].path) for n in one.names if n in loaded})
            return Outcome(result.error), result.problems[0] if result.problems else None

        return cases.translated(machine, judge), taken
