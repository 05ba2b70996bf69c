"""Every interpreter on a machine, and whether it would find a torch."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from torchdoctor.interpreters import inside
from torchdoctor.tables import load
from torchdoctor.values import dataclass

PROGRAM = re.compile(r"python(3(\.\d+)?)?(\.exe)?", re.IGNORECASE)
DEEPEST = 4
"""Levels below a folder that is searched."""
MOST_FOLDERS = 20_000
LONGEST = 1 << 20
"""Bytes of a file that is read."""
MARKS = ("pyvenv.cfg", "conda-meta")
"""What an environment has in its folder."""
SKIPPED = frozenset({"node_modules", ".git", "__pycache__", "site-packages", "proc", "sys"})
SITES = (
    "lib/python3*/site-packages",
    "lib/python3/dist-packages",
    "local/lib/python3*/dist-packages",
    "Lib/site-packages",
)
"""Folders of packages below a prefix: of venv, Debian, Debian's local ones, Windows."""


@dataclass(frozen=True, slots=True)
class Found:
    """An interpreter, and who told of it."""

    python: str
    told_by: tuple[str, ...]
    torch: tuple[str, ...]
    """The folders with a torch that it would look into; empty when there is none."""


def find(environ: Mapping[str, str], folders: Sequence[Path], here: Path) -> tuple[Found, ...]:
    """Return the interpreters that the tools keep where they say, and those below *folders*.

    Relative places are those of *here*. Two names of one environment are one. Nothing is run.
    """
    told: dict[Path, tuple[Path, dict[str, None]]] = {}
    for python, by in _told(environ, folders, here):
        told.setdefault(_identity(python), (python, {}))[1][by] = None
    return tuple(
        Found(str(python), tuple(by), tuple(map(str, torches(python, environ))))
        for python, by in told.values()
    )


def torches(python: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders of a torch that *python* would find: its own, then the user site's."""
    prefixes = (python.parent.parent, python.parent)
    own = chain.from_iterable(sorted(p.glob(site)) for p in prefixes for site in SITES)
    for site in dict.fromkeys([*own, *_user_sites(python, environ)]):
        if (site / "torch" / "__init__.py").is_file() or any(site.glob("torch-*.*-info")):
            yield site / "torch"


def _user_sites(python: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the user's own folders of packages, unless *python* is an environment's."""
    isolated = any((p / MARKS[0]).is_file() for p in (python.parent.parent, python.parent))
    version = None if isolated else _version(python)
    if version is None:
        return
    base = environ.get("PYTHONUSERBASE") or str(_home(environ) / ".local")
    yield Path(base, "lib", f"python{version}", "site-packages")
    if roaming := environ.get("APPDATA"):
        yield Path(roaming, "Python", f"Python{version.replace('.', '')}", "site-packages")


def _version(python: Path) -> str | None:
    """Return "3.11" for an interpreter whose file, library or folder says so."""
    real = python.resolve()
    if match := re.search(r"python(3\.\d+)", real.name):
        return match[1]
    if libraries := sorted(real.parent.parent.glob("lib/python3.*")):
        return libraries[-1].name.removeprefix("python")
    match = re.search(r"Python(3)(\d+)$", str(real.parent))
    return f"{match[1]}.{match[2]}" if match else None


# ---- where they are ------------------------------------------------------------------------------


def _told(
    environ: Mapping[str, str], folders: Iterable[Path], here: Path
) -> Iterator[tuple[Path, str]]:
    """Yield interpreters, each with who told of it."""
    for folder in filter(None, environ.get("PATH", "").split(os.pathsep)):
        for path in _entries(Path(folder)):
            if PROGRAM.fullmatch(path.name):
                yield path, "PATH"
    table = load("environments")
    prefixes = [
        *((p, row["of"]) for row in table["place"] for p in _all(row["patterns"], environ, here)),
        *((Path(line), "conda") for line in _lines(_all(table["conda"]["lists"], environ, here))),
        *((prefix, str(folder)) for folder in folders for prefix in _below(folder)),
    ]
    for prefix, by in prefixes:
        if python := inside(prefix):
            yield Path(python), by
    for kernel in _all(table["jupyter"]["kernels"], environ, here):
        if found := _of_kernel(kernel / "kernel.json"):
            yield found, f"Jupyter kernel {kernel.name}"


def _all(patterns: Iterable[str], environ: Mapping[str, str], here: Path) -> Iterator[Path]:
    """Yield what is there of *patterns*, which begin with a variable, ``~``, ``.`` or the root."""
    for pattern in patterns:
        first, _, rest = pattern.partition("/")
        start = {"~": _home(environ), ".": here, "": Path("/")}.get(first)
        if start is None and environ.get(first[1:]):
            start = Path(environ[first[1:]])
        if start is not None:
            yield from sorted(start.glob(rest)) if rest else (start,)


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _lines(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        yield from filter(None, map(str.strip, _read(file).splitlines()))


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            return opened.read(LONGEST)
    except OSError:
        return ""


def _of_kernel(file: Path) -> Path | None:
    """Return the interpreter that a kernel of Jupyter is started with."""
    try:
        program = Path(json.loads(_read(file))["argv"][0])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    known = program.is_absolute() and PROGRAM.fullmatch(program.name) and program.is_file()
    return program if known else None


def _below(folder: Path) -> Iterator[Path]:
    """Yield the folders below *folder*, itself too, that are environments."""
    left, seen = [(folder, 0)], 0
    while left and seen < MOST_FOLDERS:
        place, depth = left.pop()
        seen += 1
        entries = _entries(place)
        if any(entry.name in MARKS for entry in entries):
            yield place
            entries = [entry for entry in entries if entry.name == "envs"]
        if depth < DEEPEST:
            left += [
                (entry, depth + 1)
                for entry in reversed(entries)
                if entry.name not in SKIPPED and entry.is_dir() and not entry.is_symlink()
            ]


def _identity(python: Path) -> Path:
    """Return what two names of one environment share: its prefix, or the file itself."""
    folder = python.absolute().parent
    for prefix in (folder.parent, folder):
        if any((prefix / mark).exists() for mark in MARKS):
            return prefix.resolve()
    return python.resolve()
