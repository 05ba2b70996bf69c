"""torch's own start, run for real over small libraries in the layout of the wheels.

The functions are taken out of a real torch/__init__.py and run in a real interpreter; which files
are then in the process, /proc/self/maps tells.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.linux import lab
from tests.linux.lab import Library
from torchdoctor.linux import cache, disk, loader, startup, system
from torchdoctor.linux.loader import Machine
from torchdoctor.linux.startup import Install, Start

_FUNCTIONS = ("_get_cuda_dep_paths", "_preload_cuda_lib", "_preload_cuda_deps", "_load_global_deps")
_RUN = """
import ctypes, glob, importlib.util, json, os, platform, sys, types
from typing import Dict, Dict as _Dict, List, Optional
said = json.loads(sys.argv[1])
torch, version = types.ModuleType("torch"), types.ModuleType("torch.version")
version.cuda = said["cuda"]
torch.version = version
sys.modules.update({"torch": torch, "torch.version": version})
__file__ = os.path.join(said["torch"], "__init__.py")
def _running_with_deploy():
    return False
exec(said["code"])
sys.path[:] = said["path"]
answer = None
try:
    _load_global_deps()
    ctypes.CDLL(said["extension"])
except OSError as error:
    answer = str(error)
except ValueError as error:
    answer = str(error).partition(" ")[0]
with open("/proc/self/maps") as maps:
    files = {line.split(None, 5)[-1].strip() for line in maps if ".so" in line}
print(json.dumps([answer, sorted(files)]))
"""


@dataclass(frozen=True)
class Machinery:
    """What is on the disk, and in the environment."""

    libraries: tuple[Library, ...]
    library_path: str | None = None
    cuda: str = "13.0"
    removed: tuple[str, ...] = ()


def code_of(text: str) -> str:
    """Return the functions of the start in *text*, a torch/__init__.py."""
    found = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name in _FUNCTIONS
    ]
    future = "from __future__ import annotations\n"
    return future + "\n".join(ast.unparse(node) for node in found)


def listed(text: str) -> list[tuple[str, str]]:
    """Return every (folder, pattern) of the one list that *text* has, in its order."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(code_of(text))):
        if isinstance(node, ast.Dict):
            pairs = [(k, v) for k, v in zip(node.keys, node.values, strict=True) if k]
        elif isinstance(node, ast.List):
            pairs = [(i.elts[0], i.elts[1]) for i in node.elts if isinstance(i, ast.Tuple)]
        else:
            continue
        found += [row for pair in pairs if (row := _row(*pair))]
    return found


def named(text: str) -> set[tuple[str, str]]:
    """Return every (folder, pattern) that *text* names, in the list or in a call."""
    found = set(listed(text))
    for node in ast.walk(ast.parse(code_of(text))):
        if isinstance(node, ast.Call) and len(node.args) > 1:
            found.add(_row(*node.args[:2]) or ("", ""))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            found.add(_row(node.targets[0].slice, node.value) or ("", ""))
    return found - {("", "")}


def _row(first: ast.AST, second: ast.AST) -> tuple[str, str] | None:
    words = [n.value for n in (first, second) if isinstance(n, ast.Constant)]
    folder, pattern = words if len(words) == 2 else ("", "")
    return (str(folder), str(pattern)) if ".so" in str(pattern) else None


def real(machinery: Machinery, root: Path, code: str) -> tuple[str | None, set[Path]]:
    """Return how the import ended, and which files below *root* were in the process."""
    site = root / "site"
    said = {
        "cuda": machinery.cuda,
        "torch": str(site / "torch"),
        "code": code,
        "path": [str(site)],
        "extension": str(site / "torch" / "_C.so"),
    }
    environ = {"PATH": os.defpath, "LC_ALL": "C", "PYTHONDONTWRITEBYTECODE": "1"}
    if machinery.library_path:
        environ["LD_LIBRARY_PATH"] = machinery.library_path.replace("@", str(root))
    done = subprocess.run(
        [sys.executable, "-S", "-c", _RUN, json.dumps(said)],
        env=environ,
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer, files = json.loads(done.stdout)
    return answer, {Path(f) for f in files if Path(f).is_relative_to(root)}


def interpreter() -> str:
    """Return the path of the loader that this Python runs by."""
    own = disk.OnDisk()[os.path.realpath(sys.executable)].facts
    assert own is not None and own.interpreter  # noqa: PT018
    return own.interpreter


def predicted(machinery: Machinery, root: Path, release: str) -> Start:
    """Return what the pure function says for torch *release*."""
    site = root / "site"
    program = os.path.realpath(sys.executable)
    own = disk.OnDisk()[program].facts
    assert own is not None and own.interpreter  # noqa: PT018
    text = subprocess.run(
        [own.interpreter, "--help"], capture_output=True, text=True, check=False
    ).stdout
    said = system.of_help(text, own.machine)
    entries = cache.parse(Path("/etc/ld.so.cache").read_bytes())
    path = machinery.library_path
    machine = Machine(
        files=disk.OnDisk(lambda p: str(root / p)),
        program=program,
        library_path=tuple(path.replace("@", str(root)).split(":")) if path else (),
        cache=cache.table(entries, own.machine, said.capabilities),
        default=said.default,
        subfolders=said.subfolders,
        machine=own.machine,
        bits=own.bits,
    )
    started = loader.start(machine)
    assert started.problem is None
    install = Install(str(site / "torch"), (str(site),), machinery.cuda, disk.Listed())
    how = startup.sequence(release)
    assert how is not None
    return startup.import_torch(machine, started.process, install, how)


def build(machinery: Machinery, root: Path) -> None:
    """Compile everything below *root*."""
    lab.build_libraries(machinery.libraries, root)
    for name in machinery.removed:
        (root / name).unlink()
