"""What ``import torch`` loads on Windows, in which order, and what its error message will name.

The start-up sequence is torch's own, by release (``startup.toml``); what each call does is for
:mod:`.loader` to say. The DLL in the message is the one that torch asked for, mostly not the one
that is wrong: that is the culprit, and the chain leads from one to the other.
"""

from __future__ import annotations

import ntpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from .loader import (
    DEFAULT_DIRS,
    LOAD_DIR,
    MISSING,
    Folder,
    Load,
    Machine,
    Module,
    Problem,
    find,
    load,
    normal,
)
from .redist import MSVCP
from .tables import load as table

_C = re.compile(r"_c(\.[\w-]+)?\.pyd")


@dataclass(frozen=True, slots=True)
class Sequence:
    """How one release of torch starts; see ``startup.toml``."""

    since: str
    register: tuple[str, ...]
    preload: tuple[str, ...]
    except_on: Mapping[str, str]
    hint: str
    certain: bool = True
    """False for a release newer than those read."""


@dataclass(frozen=True, slots=True)
class Install:
    """Where the interpreter and torch are, as Windows paths.

    ``cuda`` and ``nvtools`` are the folders that torch's start works out for a CUDA build, where
    they exist.
    """

    torch: str
    exec_prefix: str
    base_exec_prefix: str
    userbase: str | None = None
    cuda: str | None = None
    nvtools: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What ``import torch`` comes to.

    ``error`` is 0 when it loads, a Windows error number, or None for an ImportError without one.
    ``named`` is the path that the message names ("" when nothing is); ``problem`` has culprit and
    chain; ``others`` stop the same call in the same way.
    """

    error: int | None
    named: str
    problem: Problem | None
    others: tuple[Problem, ...]
    hint: bool
    """Whether "Microsoft Visual C++ Redistributable is not installed" is printed."""
    msvcp: Module | None
    """The msvcp140.dll that the process had at the end."""
    by_path: tuple[str, ...]
    """DLLs that loaded in the second try only, for which PATH is searched."""
    machine: Machine
    assumed: tuple[str, ...] = ()
    depends_on_order: bool = field(default=False)
    """Whether it comes out otherwise when registered folders are searched the other way round."""

    @property
    def loads(self) -> bool:
        """Return whether torch is imported."""
        return self.error == 0

    @property
    def culprit(self) -> str:
        """Return what is wrong: a path, or the bare name of what is missing; "" when nothing."""
        return self.problem.culprit if self.problem else ""

    @property
    def chain(self) -> tuple[str, ...]:
        """Return the base names from what the message names to the culprit."""
        return self.problem.chain if self.problem else ()


def application_folder(executable: str, base_executable: str | None = None) -> str:
    """Return the folder of the program that really runs.

    The python.exe of a venv only starts the one it was made from (``sys._base_executable``), so
    DLLs beside it are not in the application's folder. A conda environment has a python.exe of
    its own. Source: PC/venvlauncher.c and Lib/venv/__init__.py of CPython.
    """
    return ntpath.dirname(base_executable or executable)


def sequence(release: str) -> Sequence | None:
    """Return how torch *release* starts; None for one older than the table."""
    wanted = _numbers(release)
    whole = table("startup")
    rows = [row for row in whole["release"] if _numbers(row["since"]) <= wanted]
    if not rows:
        return None
    row = rows[-1]
    return Sequence(
        since=row["since"],
        register=tuple(row["register"]),
        preload=tuple(row["preload"]),
        except_on=row["except_on"],
        hint=row["hint"],
        certain=wanted <= _numbers(whole["read"]),
    )


def _numbers(release: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", release)
    numbers = tuple(int(n) for n in found[0].split(".")[:4]) if found else ()
    return numbers + (0,) * (4 - len(numbers))


def started(machine: Machine, interpreter: str) -> Machine:
    """Return *machine* once python.exe runs: *interpreter* (python311.dll) and its needs loaded."""
    return load(machine, interpreter, 0).machine


def import_torch(machine: Machine, install: Install, how: Sequence) -> Answer:
    """Return what ``import torch`` comes to in a process on *machine*.

    What the process registered or loaded before is part of *machine*.
    """
    answer = _import_torch(machine, install, how)
    other = _import_torch(replace(machine, newest_first=not machine.newest_first), install, how)
    differs = (answer.error, answer.named, answer.culprit) != (
        other.error,
        other.named,
        other.culprit,
    )
    return replace(answer, depends_on_order=differs)


def _import_torch(machine: Machine, install: Install, how: Sequence) -> Answer:
    assumed: dict[str, None] = {}
    if not how.certain:
        assumed[f"this torch is newer than those read; taken to start as {how.since} does"] = None
    folders = tuple(_registered(machine, install, how))
    for folder in folders:
        machine = machine.register(folder.path)
    machine, hint = _preload(machine, how)
    by_path: list[str] = []

    def answer(named: str, result: Load) -> Answer:
        assumed.update(dict.fromkeys(result.assumed))
        problems = result.problems
        return Answer(
            error=problems[0].error if problems else 0,
            named=named if problems else "",
            problem=problems[0] if problems else None,
            others=problems[1:],
            hint=hint,
            msvcp=result.machine.loaded.get(MSVCP) or find(result.machine, MSVCP),
            by_path=tuple(by_path),
            machine=result.machine,
            assumed=tuple(assumed),
        )

    home = machine.folder(ntpath.join(install.torch, "lib"))
    result = Load(0, (), machine)
    for name in sorted(home.files, key=str.upper) if home else ():  # as NTFS sorts
        if home is None or not name.endswith(".dll"):
            continue
        path = _path(home, name)
        result = load(machine, path)
        if result.error == MISSING:
            result = load(_patched(machine, folders), path, 0)
            if not result.error:
                by_path.append(path)
        if result.problems:
            return answer(path, replace(result, machine=machine))
        assumed.update(dict.fromkeys(result.assumed))
        machine = replace(machine, loaded=result.machine.loaded)
    path, result = _extension(machine, install)
    return answer(path, result)


def _registered(machine: Machine, install: Install, how: Sequence) -> Iterator[Folder]:
    """Yield the folders that torch registers, in its order."""
    base = install.base_exec_prefix
    places = {
        "torch": install.torch,
        "exec_prefix": install.exec_prefix,
        "base_exec_prefix": base if normal(base) != normal(install.exec_prefix) else None,
        "userbase": install.userbase,
    }
    found: list[Folder] = []
    for template in how.register:
        key, rest = template[1:].split("}", 1)
        place = places[key]
        if place is not None and (folder := machine.folder(place + rest)):
            found.append(folder)
    yield from found
    names = {name for folder in found for name in folder.files}
    if install.nvtools and "nvtoolsext64_1.dll" not in names:
        yield from filter(None, [machine.folder(install.nvtools)])
    if install.cuda and not any(re.fullmatch(r"cudart64.*\.dll", name) for name in names):
        yield from filter(None, [machine.folder(install.cuda)])


def _preload(machine: Machine, how: Sequence) -> tuple[Machine, bool]:
    """Load the runtime as torch does, by name; return whether the hint is printed."""
    for name in how.preload:
        if how.except_on.get(name) == machine.machine:
            continue
        result = load(machine, name, DEFAULT_DIRS)
        if result.error:
            return machine, True
        machine = result.machine
    return machine, False


def _patched(machine: Machine, folders: tuple[Folder, ...]) -> Machine:
    """Return *machine* with torch's folders in front of PATH."""
    front = tuple(replace(folder, role="path") for folder in folders)
    return replace(machine, folders=(*front, *machine.folders))


def _path(folder: Folder, name: str) -> str:
    facts = folder.files[name]
    return ntpath.join(folder.path, facts.name if facts else name)


def _extension(machine: Machine, install: Install) -> tuple[str, Load]:
    """Return what ``import torch._C`` loads, and what becomes of it."""
    home = machine.folder(install.torch)
    if home is None:
        return "", Load(0, (), machine, ("torch._C was not looked for",))
    name = next((n for n in sorted(home.files) if _C.fullmatch(n)), None)
    if name is None:
        if not home.complete:
            return "", Load(0, (), machine, ("torch._C was not looked for",))
        path = ntpath.join(install.torch, "_C")
        lost = Problem("no-extension", None, path, ("torch._C",), detail="there is no _C*.pyd")
        return path, Load(0, (lost,), machine)
    path = _path(home, name)
    return path, load(machine, path, LOAD_DIR | DEFAULT_DIRS)
