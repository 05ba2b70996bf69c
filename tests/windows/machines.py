"""Windows machines put together from facts of real DLLs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from windows.dll_facts import DllFacts, from_json, to_json
from windows.inventory import SCHEMA
from windows.loader import Folder, Machine, Module, Role
from windows.startup import Answer, Install, import_torch, sequence, started

SYSTEM32 = r"C:\Windows\System32"
PYTHON = r"C:\Python311"
SITE = PYTHON + r"\Lib\site-packages"
TORCH = SITE + r"\torch"
LIB = TORCH + r"\lib"
INSTALL = Install(torch=TORCH, exec_prefix=PYTHON, base_exec_prefix=PYTHON)

Files = Mapping[str, DllFacts]


@cache
def facts(kind: str) -> Mapping[str, Files]:
    """Return the facts in facts/*kind*.json: wheel, then file."""
    text = (Path(__file__).parent / "facts" / f"{kind}.json").read_text(encoding="utf-8")
    return {
        key: {file.name.lower(): file for file in map(from_json, rows)}
        for key, rows in json.loads(text).items()
    }


def runtime(version: str) -> Files:
    """Return the VC++ runtime *version* (14.44); nothing for "none"."""
    if version == "none":
        return {}
    return next(files for key, files in facts("runtime").items() if key.startswith(version))


def folder(path: str, role: Role, *files: DllFacts) -> Folder:
    """Return a folder with *files*."""
    return Folder(path, role, {file.name.lower(): file for file in files})


def python() -> Files:
    """Return what lies beside python.exe: no msvcp140.dll."""
    return facts("others")["panda3d 1.10.16"]


def machine(
    torch: str = "2.9.1",
    vc: str = "14.44",
    *,
    lib: Files | None = None,
    system32: Files | None = None,
    application: Files | None = None,
    more: tuple[Folder, ...] = (),
) -> Machine:
    """Return a machine with *torch* and the VC++ runtime *vc*, python.exe running."""
    files = facts("torch")[torch]
    extension = {k: v for k, v in files.items() if k.endswith(".pyd")}
    own = {k: v for k, v in files.items() if k.endswith(".dll")} if lib is None else lib
    folders = (
        Folder(PYTHON, "application", python() if application is None else application),
        Folder(SYSTEM32, "system32", runtime(vc) if system32 is None else system32, complete=False),
        Folder(TORCH, "package", extension),
        Folder(LIB, "package", own),
        *more,
    )
    return started(Machine(folders), "python311.dll")


def loaded(before: Machine, path: str, file: DllFacts) -> Machine:
    """Return *before* with *file* loaded from *path*, as another package does it."""
    return replace(before, loaded={**before.loaded, file.name.lower(): Module(path, file)})


def imported(before: Machine, torch: str = "2.9.1", install: Install = INSTALL) -> Answer:
    """Return what ``import torch`` comes to on *before*."""
    how = sequence(torch)
    assert how is not None
    return import_torch(before, install, how)


def named(answer: Answer) -> str:
    """Return the base name of what the message names."""
    return answer.named.rpartition("\\")[2]


def record(
    before: Machine,
    torch: str = "2.9.1",
    *,
    companions: Mapping[str, list[str]] | None = None,
    strangers: list[str] | None = None,
) -> dict[str, object]:
    """Return what the inventory would write of the folders of *before*."""
    return {
        "schema": SCHEMA,
        "torch": TORCH,
        "release": torch,
        "exec_prefix": PYTHON,
        "base_exec_prefix": PYTHON,
        "userbase": None,
        "cuda": None,
        "nvtools": None,
        "python": "python311.dll",
        "companions": dict(companions or {}),
        "strangers": strangers if strangers is not None else [],
        "longest": 150,
        "folders": [
            {
                "path": one.path,
                "roles": [one.role],
                "complete": one.complete,
                "files": [
                    to_json(file) if file else {"name": name} for name, file in one.files.items()
                ],
            }
            for one in before.folders
        ],
    }
