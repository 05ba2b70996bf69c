"""Which interpreter is looked at: the one that the user's own ``python`` is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from torchdoctor.model import DoctorError

INSIDE = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")


def given(path: str) -> str:
    """Return the interpreter that ``--python PATH`` names: a program, a name or a prefix.

    Raises:
        DoctorError: there is none.

    """
    place = Path(path)
    if place.is_dir():
        if python := inside(Path(os.path.abspath(path))):  # noqa: PTH100 - links are kept
            return python
        raise DoctorError(
            f"{path} is a folder without a Python (no bin/python, no python.exe); "
            "give the interpreter itself or the folder of an environment.",
            file=path,
            kind="usage",
        )
    if os.sep not in path and (os.altsep or os.sep) not in path and (found := shutil.which(path)):
        return found
    if not place.exists():
        raise DoctorError(
            f"{path} does not exist; give the path of a Python interpreter.",
            file=path,
            kind="usage",
        )
    if not os.access(place, os.X_OK):
        raise DoctorError(
            f"{path} is not executable, so no interpreter; give the path of a Python.",
            file=path,
            kind="usage",
        )
    return str(Path(os.path.abspath(path)))  # noqa: PTH100 - resolve() would leave the venv


def active(environ: Mapping[str, str]) -> str:
    """Return the interpreter of the active environment; our own when none is active.

    A virtual or conda environment that is switched on decides (the one that comes first on PATH
    when both are). Else, where torchdoctor is a tool of its own (pipx, uv tool), the ``python``
    that a user's command would find; else the interpreter that runs torchdoctor.
    """
    folders = environ.get("PATH", "").split(os.pathsep)
    prefixes = [environ[v] for v in ("VIRTUAL_ENV", "CONDA_PREFIX") if environ.get(v)]
    for prefix in sorted(prefixes, key=lambda p: _place_on_path(p, folders)):
        if found := inside(Path(prefix)):
            return found
    if _is_tool(Path(sys.prefix)):
        for name in ("python", "python3"):
            found = shutil.which(name, path=environ.get("PATH"))
            if found and not found.startswith(sys.prefix):
                return found
    return sys.executable


def inside(prefix: Path) -> str | None:
    """Return the interpreter of the environment in the folder *prefix*; None if it has none."""
    return next((str(prefix / p) for p in INSIDE if (prefix / p).is_file()), None)


def _place_on_path(prefix: str, folders: list[str]) -> int:
    return next((i for i, f in enumerate(folders) if f.startswith(prefix)), len(folders))


def _is_tool(prefix: Path) -> bool:
    """Tell whether torchdoctor has an environment to itself, made by pipx or uv."""
    receipts = ("pipx_metadata.json", "uv-receipt.toml")
    return any((prefix / name).is_file() for name in receipts) or "archive-v0" in prefix.parts
