"""Cases: laid out as folders, predicted by the loader model, translated to Wine, run, compared."""

from __future__ import annotations

import functools
import re
import shutil
import struct
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.windows.wine import box
from torchdoctor.child import Run
from windows.dll_facts import DllFacts, OnDisk, hashed, ranges
from windows.loader import Folder, Machine, Module, Problem, base, load, normal
from windows.startup import Answer, Install, import_torch, sequence, started

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
SYSTEM32 = r"C:\windows\system32"
ENDED = -1
"""Stands for an error number where the process ended at once."""
SECONDS = 200.0
"""An import that takes longer is none."""


@dataclass(frozen=True)
class Case:
    """One machine, and what is done on it.

    ``files`` are changes, by path below the case's folder: ``site`` has torch and *packages*,
    ``home`` is the folder of python.exe, ``path`` is on PATH. ``before`` and ``after`` are what
    the program does before and after it imports torch.
    """

    name: str
    torch: str
    runtime: str
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[Mapping[str, Any], ...] = ()
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Case:
        """Return the case that *row* of a table or of JSON describes."""
        many = {key: tuple(row[key]) for key in ("packages", "before", "after") if key in row}
        return cls(**{**row, **many})


@dataclass(frozen=True)
class Outcome:
    """What an import comes to: 0, a Windows error number, or None for an error without one."""

    error: int | None
    named: str = ""
    """The base name of the file in the message, in lower case."""
    hint: bool = False
    """Whether torch says that the VC++ Redistributable is not installed."""
    msvcp: str = ""
    """Which msvcp140.dll the process has, where all went well."""


@dataclass(frozen=True)
class Prediction:
    """What the model says of Windows, what that comes to under Wine, and why."""

    windows: Outcome
    wine: Outcome
    kind: str = ""
    chain: tuple[str, ...] = ()
    translated: tuple[str, ...] = ()
    """The differences of Wine that came into it."""
    others: tuple[int, ...] = ()
    """Errors that Wine may give instead, naming the same file as Windows."""

    def agrees(self, seen: Outcome) -> bool:
        """Return whether *seen* under Wine is what was predicted."""
        other = seen.error in self.others and seen.named == self.windows.named
        return seen == self.wine or other


@functools.cache
def table(name: str) -> Any:
    """Return the parsed table ``name.toml`` of this folder."""
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


def matrix() -> list[Case]:
    """Return the releases of torch, each with every runtime."""
    rows = table("cases")["matrix"]
    return [
        Case(f"torch {torch}, VC++ {runtime}", torch, runtime)
        for torch in rows["torch"]
        for runtime in rows["runtime"]
    ]


def others() -> list[Case]:
    """Return the cases that are described one by one."""
    return [Case.of(row) for row in table("cases")["case"]]


def all_of_them() -> list[Case]:
    """Return all of them, those with one runtime after each other."""
    return sorted([*matrix(), *others()], key=lambda case: case.runtime)


# ---- laid out ----


@dataclass(frozen=True)
class Layout:
    """The folders of a case."""

    site: Path
    home: Path
    path: Path
    runtime: Path | None

    def place(self, name: str) -> Path:
        """Return where *name*, as a case gives it, is."""
        top, _, rest = name.partition("/")
        return {"site": self.site, "home": self.home, "path": self.path}[top] / rest


@contextmanager
def laid_out(case: Case) -> Iterator[Layout]:
    """Lay *case* out in a temporary folder: links to what is unpacked, and its changes."""
    with tempfile.TemporaryDirectory(prefix="torchdoctor-case-") as name:
        folder = Path(name)
        layout = Layout(
            folder / "site",
            folder / "home",
            folder / "path",
            None if case.runtime == "none" else box.runtime(case.runtime),
        )
        for place in (layout.site, layout.home, layout.path):
            place.mkdir()
        for spec in (f"torch {case.torch}", *case.packages):
            _merge(box.unpacked(spec), layout.site)
        link_python(layout.home)
        for file, change in case.files.items():
            _change(layout.place(file), change)
        yield layout


def link_python(home: Path) -> None:
    """Make the folder *home* one of a CPython of its own."""
    _merge(box.python(), home)
    program = home / "python.exe"
    program.unlink()  # Windows' idea of where a program lies must not follow a link
    shutil.copy(box.python() / "python.exe", program)


def _merge(source: Path, into: Path) -> None:
    """Link everything in *source* into the folder *into*, sharing folders that are in both."""
    for path in source.iterdir():
        place = into / path.name
        if path.is_dir() and place.is_dir():
            _own(place)
            _merge(path, place)
        elif not place.exists():
            place.symlink_to(path.resolve())


def _own(folder: Path) -> None:
    """Make the link *folder* a folder of links."""
    if folder.is_symlink():
        target = folder.resolve()
        folder.unlink()
        folder.mkdir()
        _merge(target, folder)


def _change(place: Path, change: str) -> None:
    """Change the file *place*: "gone", "empty", "cut 500", "arm64", "from SPEC MEMBER"."""
    for parent in reversed(place.parents):
        if parent.is_symlink():
            _own(parent)
    place.parent.mkdir(parents=True, exist_ok=True)
    word, _, rest = change.partition(" ")
    if word == "from":
        name, version, member = rest.split(" ")
        data = _member(f"{name} {version}", member)
    else:
        data = place.read_bytes()
    place.unlink(missing_ok=True)
    if word == "cut":
        data = data[: int(rest)]
    elif word == "empty":
        data = b""
    elif word == "arm64":
        start = struct.unpack_from("<I", data, 0x3C)[0] + 4
        data = data[:start] + struct.pack("<H", 0xAA64) + data[start + 2 :]
    elif word not in {"from", "gone"}:
        raise ValueError(change)
    if word != "gone":
        place.write_bytes(data)


def _member(spec: str, member: str) -> bytes:
    """Return the file *member* of a wheel; a bare name is that of the first file so called."""
    with zipfile.ZipFile(box.wheel(spec)) as archive:
        names = archive.namelist()
        return archive.read(next(n for n in names if n == member or n.endswith("/" + member)))


# ---- predicted ----


Judge = Callable[[Machine], tuple[Outcome, Problem | None]]


def predict(case: Case, layout: Layout) -> Prediction:
    """Return what the model says of *case*."""
    return translated(_machine(case, layout), functools.partial(_outcome, case, layout))


def translated(machine: Machine, judge: Judge) -> Prediction:
    """Return what *judge* says of Windows on *machine*, and what that comes to under Wine."""
    on_windows, problem = judge(machine)
    on_wine, names, others = on_windows, [], []
    cause = problem
    while cause is not None and (row := _difference(cause)):
        names.append(row["name"])
        others += row.get("others", ())
        if row["wine"]:
            on_wine = replace(on_wine, error=row["wine"])
            break
        # It loads, with a stand-in for what is not there: so give that, and go on.
        machine = _offering(machine, cause)
        on_wine, cause = judge(machine)
    return Prediction(
        windows=on_windows,
        wine=on_wine,
        kind=problem.kind if problem else "",
        chain=problem.chain if problem else (),
        translated=tuple(dict.fromkeys(names)),
        others=tuple(dict.fromkeys(others)),
    )


def _difference(problem: Problem) -> Mapping[str, Any] | None:
    """Return the row of differences.toml that *problem* falls under."""
    for row in table("differences")["difference"]:
        inner = row.get("dependency")
        if problem.kind in row["kinds"] and inner in {None, len(problem.chain) > 1}:
            found: Mapping[str, Any] = row
            return found
    return None


def _machine(case: Case, layout: Layout) -> Machine:
    """Return the machine with python.exe running and all done that comes before torch."""
    system32 = Folder(SYSTEM32, "system32", _files(layout.runtime), complete=False)
    packages = [layout.site / "torch", layout.site / "torch" / "lib"]
    for step in case.before:
        packages += [layout.place(name) for name in step.get("registers", ())]
        packages += [layout.place(name).parent for name in step.get("loads", ())]
    packages += [layout.place(name).parent for name in case.after]
    packages.append(layout.home / "Library" / "bin")
    folders = [
        Folder(box.windows_path(layout.home), "application", _files(layout.home)),
        system32,
        Folder(box.windows_path(layout.path), "path", _files(layout.path)),
    ]
    folders += [
        Folder(box.windows_path(place), "package", _files(place))
        for place in dict.fromkeys(packages)
        if place.is_dir()
    ]
    machine = started(Machine(tuple(folders)), box.INTERPRETER)
    for step in case.before:
        for name in step.get("registers", ()):
            machine = machine.register(box.windows_path(layout.place(name)))
        for name in step.get("loads", ()):
            result = load(machine, box.windows_path(layout.place(name)))
            assert not result.error, result.problems
            machine = result.machine
    return machine


def _files(folder: Path | None) -> Mapping[str, DllFacts | None]:
    return OnDisk(str(folder)) if folder else {}


def _outcome(case: Case, layout: Layout, machine: Machine) -> tuple[Outcome, Problem | None]:
    """Return what comes of *case* on Windows, and the problem where there is one."""
    home = box.windows_path(layout.home)
    how = sequence(case.torch)
    assert how is not None
    install = Install(box.windows_path(layout.site / "torch"), home, home)
    answer = import_torch(machine, install, how)
    if not answer.loads:
        named = "" if answer.error is None else base(answer.named)
        return Outcome(answer.error, named, answer.hint), answer.problem
    machine = answer.machine
    for name in case.after:
        result = load(machine, box.windows_path(layout.place(name)))
        if result.error:
            return Outcome(result.error, base(name), answer.hint), result.problems[0]
        machine = result.machine
    return Outcome(0, "", answer.hint, _msvcp(answer)), None


def _msvcp(answer: Answer) -> str:
    return normal(answer.msvcp.path) if answer.msvcp else ""


def _offering(machine: Machine, problem: Problem) -> Machine:
    """Return *machine* with the culprit of *problem* offering what it lacks."""

    def more(facts: DllFacts) -> DllFacts:
        names = [s for s in problem.symbols if s[0] not in "~#"]
        known = [int(s[1:], 16) for s in problem.symbols if s[0] == "~"]
        numbers = [int(s[1:]) for s in problem.symbols if s[0] == "#"]
        numbers += [n for first, last in facts.ordinals for n in range(first, last + 1)]
        exports = facts.exports | set(map(hashed, names)) | set(known)
        return replace(facts, exports=exports, ordinals=ranges(set(numbers)))

    def file(folder: Folder) -> Folder:
        name = base(problem.culprit)
        facts = folder.files.get(name)
        if facts is None or normal(folder.path) != normal(problem.culprit.rpartition("\\")[0]):
            return folder
        return replace(folder, files={**folder.files, name: more(facts)})

    loaded = {
        name: Module(module.path, more(module.facts))
        if module.facts and normal(module.path) == normal(problem.culprit)
        else module
        for name, module in machine.loaded.items()
    }
    return replace(machine, folders=tuple(map(file, machine.folders)), loaded=loaded)


# ---- run ----


def run(case: Case, layout: Layout, wine: box.Box) -> Run:
    """Run *case* under Wine."""
    wine.put(case.runtime)
    before = []
    for step in case.before:
        done = {"import": step["import"]} if "import" in step else {}
        if not done:
            before += [
                {"register": box.windows_path(layout.place(name))}
                for name in step.get("registers", ())
            ]
            done = {"load": box.windows_path(layout.place(step["loads"][0]))}
        before.append(done)
    after = [box.windows_path(layout.place(name)) for name in case.after]
    sites = (layout.site, box.libraries(*box.DEPENDENCIES))
    return wine.run(
        layout.home,
        {"before": before, "after": after, "whole": not case.after},
        SECONDS,
        PYTHONPATH=";".join(map(box.windows_path, sites)),
        WINEPATH=box.windows_path(layout.path),
    )


def seen(done: Run) -> Outcome:
    """Return what came of the run *done*. Raises AssertionError when that cannot be told."""
    assert "before" not in done.data, done.data
    hint = "Redistributable is not installed" in done.stdout.text
    if done.outcome == "failed" and done.data:
        return Outcome(ENDED, base(str(done.data.get("trying", ""))), hint)
    assert done.outcome == "answered", done
    error = done.data.get("error")
    if error is None:
        return Outcome(0, "", hint, normal(str(done.data["msvcp"])))
    assert isinstance(error, dict)
    text, number = str(error["text"]), error["winerror"]
    if number is None and ("DLL load failed" in text or error["type"] == "FileNotFoundError"):
        number = 126  # the only error that these are raised for without a number
    named = re.search(r'Error loading "([^"]+)"', text)
    path = named[1] if named else str(done.data.get("trying") or error["path"] or "")
    return Outcome(number, base(path), hint)
