"""A copied or mounted Windows installation, read into the facts of that machine.

What only a running system has stays unknown, and that is said: the registry (installed runtimes,
KnownDLLs, long paths, policies, the edition), memory, what is loaded, whether an import works, and
PATH, whose folders can be given. What the loader would do is worked out from the files.
"""

from __future__ import annotations

import csv
import importlib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from typing import Any, cast

from torchdoctor import effects
from torchdoctor.facts import (
    Build,
    Distribution,
    DllLoad,
    Expectation,
    Facts,
    Interpreter,
    Leftover,
    Module,
    Platform,
    Record,
    Unknown,
    Windows,
)
from torchdoctor.reading.builds import tag_of

Found = Any
"""What torchdoctor.windows.layout finds; in a checkout, no checker sees it by that name."""
MOST = 100
NEVER = Unknown("a folder is looked at, not a running system")
_OF_REGISTRY = ("registered", "edition", "build", "long_paths", "policy")
_OF_PROCESS = ("commit_limit", "commit_available", "loaded", "status")
REMARK = (
    "the registry of that machine (installed runtimes, KnownDLLs, long paths, policies, edition): "
    "the files alone were judged"
)
NO_PATH = "PATH of that machine is not in its files: name its folders with --path-dir"


def read(
    root: str,
    *,
    system32: str | None = None,
    python: str | None = None,
    path: tuple[str, ...] = (),
    expectation: Expectation | None = None,
) -> Facts:
    """Return the facts of the Windows installation below *root*.

    Raises:
        DoctorError: there is no torch in it, there are several, or a folder is not there.

    """
    layout = _windows("layout")
    found = layout.find(layout.Given(root, system32, python, path))
    record = _windows("inventory").take(found.layout)
    fields = _windows("answers").of(record)
    installed = tuple(_distributions(found))
    interpreter = _interpreter(found, record)
    if not found.system:
        why = Unknown("no System32 was found; name it with --system32")
        fields |= dict.fromkeys(("torch", "renewed", "after", "companions", "needs"), why)
    known: dict[str, object] = {
        "platform": Platform("win32", _machine(record), name="Windows (a folder)", emulated=False),
        "interpreter": interpreter,
        "distributions": installed,
        "leftovers": tuple(
            Leftover(name, found.site_path) for name in _names(found.site) if name[:1] == "~"
        ),
        "records": {d.name: r for d in installed if (r := _record(found, d))},
        "windows": Windows(**_known_of_windows(fields, path), headers=_headers(found)),
        "remarks": (REMARK, *(() if path else (NO_PATH,))),
        "trial": NEVER,
    }
    for name in effects.FAMILY:
        known[name] = _build(name, found, installed)
    known["modules"] = {
        name: Module(name, rf"{found.site_path}\{name}\__init__.py", found.site_path)
        if known[name]
        else None
        for name in effects.FAMILY
    }
    return Facts(expectation=expectation or Expectation(), **known)  # type: ignore[arg-type]


def _known_of_windows(fields: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - fields of Windows
    """Return *fields*, with what no file tells as unknown.

    Where PATH could still have what is missing, the answer says so.
    """
    registry = Unknown("the registry of a folder is not read")
    unknown = {**dict.fromkeys(_OF_REGISTRY, registry), **dict.fromkeys(_OF_PROCESS, NEVER)}
    load = fields["torch"]
    if not path and isinstance(load, DllLoad) and load.kind == "missing":
        unsure = replace(load, assumed=(*load.assumed, NO_PATH))
        return {**unknown, **fields, "torch": unsure}
    return {**unknown, **fields}


def _windows(name: str) -> Any:  # noqa: ANN401 - one file, two names in a checkout
    return importlib.import_module(f"torchdoctor.windows.{name}")


def _machine(record: dict[str, object]) -> str:
    """Return the processor as Windows says it, by the interpreter's DLL."""
    facts = _python_facts(record)
    return {"x64": "AMD64", "arm64": "ARM64", "x86": "x86"}.get(str(facts.get("machine")), "AMD64")


def _python_facts(record: dict[str, object]) -> dict[str, object]:
    name = str(record["python"]).lower()
    for folder in cast("list[dict[str, Any]]", record["folders"]):
        for file in folder["files"]:
            if name and file["name"].lower() == name:
                return cast("dict[str, object]", file)
    return {}


def _interpreter(found: Found, record: dict[str, object]) -> Interpreter | Unknown:
    facts = _python_facts(record)
    layout = found.layout
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", str(facts.get("version", "")))
    by_name = re.match(r"python(\d)(\d+)", layout.python, re.IGNORECASE)
    if numbers:  # the third number of the file is micro * 1000 + level
        version = f"{numbers[1]}.{numbers[2]}.{int(numbers[3]) // 1000}"
    elif by_name:
        version = f"{by_name[1]}.{by_name[2]}"
    else:
        return Unknown("no python3*.dll was found beside python.exe")
    conda = os.path.isdir(os.path.join(found.prefix, "conda-meta"))  # noqa: PTH112, PTH118
    store = "pythonsoftwarefoundation" in layout.exec_prefix.lower()
    scripts = "\\Scripts" if found.is_venv else ""
    return Interpreter(
        executable=rf"{layout.exec_prefix}{scripts}\python.exe",
        version=version,
        prefix=layout.exec_prefix,
        base_prefix=layout.base_exec_prefix,
        kind="venv" if found.is_venv else "conda" if conda else "store" if store else "system",
        machine=_machine(record),
        bits=32 if facts.get("machine") == "x86" else 64,
        site_packages=(found.site_path,),
        user_site=found.site_path if layout.userbase else None,
        installer="conda" if conda else "pip",
    )


def _distributions(found: Found) -> Iterator[Distribution]:
    seen: set[str] = set()
    for one in metadata.distributions(path=[found.site]):
        try:
            distribution = _distribution(one, found)
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            continue  # metadata that is none
        if distribution and distribution.name not in seen:
            seen.add(distribution.name)
            yield distribution


def _distribution(one: metadata.Distribution, found: Found) -> Distribution | None:
    said = one.metadata
    name, version = str(said["Name"] or ""), str(said["Version"] or "")
    if not (name and version):
        return None
    normal = re.sub(r"[-_.]+", "-", name).lower()
    folder = str(getattr(one, "_path", "")).replace(os.sep, "/").rpartition("/")[2]
    return Distribution(
        normal,
        version,
        found.site_path,
        folder,
        installer=(one.read_text("INSTALLER") or "").strip(),
        requires=tuple(one.requires or ()) if normal in effects.FAMILY else (),
        user_site=found.layout.userbase is not None,
        wheel_tags=tuple(re.findall(r"(?m)^Tag: (\S+)", one.read_text("WHEEL") or "")),
    )


def _build(name: str, found: Found, installed: tuple[Distribution, ...]) -> Build | None:
    folder = os.path.join(found.site, name)  # noqa: PTH118
    if not os.path.isdir(folder):  # noqa: PTH112
        return None
    owner = next((d for d in installed if d.name == name), None)
    version = _windows("layout").version_of(folder) or (owner.version if owner else "")
    text = _text(os.path.join(folder, "version.py"))  # noqa: PTH118
    said = {
        key: value or None
        for key, value in re.findall(r"(?m)^(cuda|hip|xpu)\b[^=\n]*=\s*['\"]?([\d.]*)", text)
    }
    return Build(
        version,
        cuda=said.get("cuda"),
        hip=said.get("hip"),
        xpu=said.get("xpu"),
        origin=rf"{found.site_path}\{name}",
        tag=tag_of(version, {**said, "__version__": version}, None),
        distribution=owner,
    )


def _record(found: Found, distribution: Distribution) -> Record | None:
    """Compare the sizes in RECORD with the disk, for torch and its companions."""
    if distribution.name not in effects.FAMILY:
        return None
    path = os.path.join(found.site, distribution.metadata, "RECORD")  # noqa: PTH118
    try:
        with open(path, encoding="utf-8", errors="replace", newline="") as file:  # noqa: PTH123
            rows = [(row[0], row[2]) for row in csv.reader(file) if len(row) > 2]  # noqa: PLR2004
    except (OSError, csv.Error):
        return None
    missing, altered = [], []
    for name, size in rows:
        if name.startswith(("..", "/")) or name.endswith(".pyc"):
            continue
        try:
            real = os.path.getsize(os.path.join(found.site, *name.split("/")))  # noqa: PTH118, PTH202
        except OSError:
            missing.append(name)
            continue
        if size.isdigit() and int(size) != real:
            altered.append(name)
    return Record(
        distribution.name,
        len(rows),
        tuple(missing[:MOST]),
        len(missing),
        tuple(altered[:MOST]),
        len(altered),
    )


def _headers(found: Found) -> bool | None:
    if found.python is None:
        return None
    base = found.python.disk
    return all(
        os.path.exists(os.path.join(base, *parts))  # noqa: PTH110, PTH118
        for parts in (("Include", "Python.h"), ("libs",))
    ) or all(
        os.path.exists(os.path.join(base, *parts))  # noqa: PTH110, PTH118
        for parts in (("include", "Python.h"), ("libs",))
    )


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []


def _text(path: str, most: int = 1 << 20) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read(most)
    except OSError:
        return ""
