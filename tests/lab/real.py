"""Recipes of real packages of gigabytes: old releases, other cuDNNs, extensions of another torch.

They need a package index, and are tried with the markers network and slow.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.lab.installs import with_pip
from tests.lab.recipes import base_site
from tests.scenarios.doctor import Scene
from tests.scenarios.scenario import Scenario

OLD: dict[str, Scenario] = {}
PIP_CACHE = environments.CACHE.parent / "pip"
GXX = shutil.which("g++")


def pip(scene: Scene, verb: str, *words: str) -> None:
    """Run pip of the scene's environment with the index that this process has.

    Raises:
        LookupError: it failed.

    """
    line = [str(scene.environment.python), "-m", "pip", verb, "--quiet", "--no-deps"]
    line += ["--cache-dir", str(PIP_CACHE), *words]
    known = {n: v for n, v in os.environ.items() if n.startswith("PIP_")}
    done = subprocess.run(
        line, env=scene.environ(**known), cwd=scene.work, capture_output=True, check=False
    )
    if done.returncode:
        raise LookupError(f"pip cannot {verb} {words[-1]}: {done.stderr[-300:]!r}")


# ---- old releases -------------------------------------------------------------------------------

REAL = ("1.13.1", "2.2.2", "2.4.1", "2.9.1")
"""Wheels of the default index, without what they depend on: NVIDIA's are gigabytes."""


def without_torch(root: Path, *, whole: bool = True) -> Environment:
    """Make an environment that has all that a torch asks for, but for NVIDIA's wheels and NumPy."""
    environment = with_pip(root, whole=whole)
    for entry in base_site().iterdir():
        known = entry.name.startswith(("torch", "functorch", "numpy", "pip", "_"))
        if entry.is_dir() and not known:
            environments.link_tree(entry, environment.site / entry.name)
    shutil.copy2(base_site() / "typing_extensions.py", environment.site)
    return environment


def of_release(release: str) -> Callable[[Scene], None]:
    """Return what installs the real torch *release* alone."""
    return lambda scene: pip(scene, "install", "--no-compile", f"torch==={release}")


for _release in REAL:
    OLD[f"torch-{_release}"] = Scenario(
        f"torch-{_release}",
        f"torch {_release} of the default index, installed with --no-deps",
        ("nvidia-wheels-missing",),
        shows=("nvidia-",),
        proof="none",
        place=without_torch,
        build=of_release(_release),
        gpu_free=True,
    )

# ---- compiled against another torch -------------------------------------------------------------

NEWER = "2.14.1"
"""A release whose libc10.so has a function that torch 2.13 lacks, and its headers."""
CALLS = {"new": "c10::utils::unset_env(name)", "old": 'c10::utils::set_env(name, "1", true)'}


def compiled_against_newer(scene: Scene, call: str) -> None:
    """Compile torch-scatter's stand-in with the real headers of torch NEWER, and install it."""
    if GXX is None:
        raise LookupError("no g++ to compile with")
    folder = scene.folder / "built"
    pip(scene, "download", "--dest", str(folder), f"torch==={NEWER}")
    with zipfile.ZipFile(next(folder.glob("torch-*.whl"))) as archive:
        for name in archive.namelist():
            if name.startswith(("torch/include/c10/", "torch/include/torch/headeronly/")):
                archive.extract(name, folder)
        archive.extract("torch/lib/libc10.so", folder)
    (folder / "scatter.cpp").write_text(
        f'#include <c10/util/env.h>\nextern "C" void scatter(const char* name) {{ {call}; }}\n',
        encoding="ascii",
    )
    line = [GXX, "-shared", "-fPIC", "-std=c++20", "-I", "torch/include", "scatter.cpp"]
    line += ["torch/lib/libc10.so", "-o", "_scatter.so"]
    subprocess.run(line, cwd=folder, check=True, capture_output=True, timeout=300)
    files: dict[str, str | bytes] = {
        "torch_scatter/__init__.py": "",
        "torch_scatter/_scatter.so": (folder / "_scatter.so").read_bytes(),
    }
    made = environments.wheel(
        folder, "torch-scatter", f"2.1.3+pt{NEWER}", files, tag="py3-none-linux_x86_64"
    )
    environments.unpack(made, scene.environment.site)


OLD["built-for-newer"] = Scenario(
    "built-for-newer",
    f"torch-scatter was compiled for torch {NEWER}, and torch is older",
    ("ext-abi-mismatch",),
    severity="warning",
    shows=("torch-scatter", "unset_env"),
    proof="words",  # it is compiled again, or goes
    build=lambda scene: compiled_against_newer(scene, CALLS["new"]),
)
OLD["built-for-newer-twin"] = Scenario(
    "built-for-newer-twin",
    "the same, and it calls nothing that the older torch lacks",
    build=lambda scene: compiled_against_newer(scene, CALLS["old"]),
)
