"""torchdoctor as it is shipped: one archive with checks and windows inside the package."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def archive(place: Path) -> Path:
    """Write the zip file *place* with what pyproject.toml says that a wheel has; return it."""
    recipe = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    folders = {name: ROOT / path for name, path in recipe["package-dir"].items()}
    with zipfile.ZipFile(place, "w") as file:
        for package in recipe["packages"]:
            above, _, last = package.rpartition(".")
            folder = folders.get(package) or folders[above] / last
            folders[package] = folder
            for pattern in ("*.py", *recipe["package-data"].get(package, ())):
                for path in sorted(folder.glob(pattern)):
                    file.write(path, f"{package.replace('.', '/')}/{path.name}")
    return place


def wheel(folder: Path) -> Path:
    """Build the wheel into *folder*, by the build backend itself; return it."""
    source = folder / "source"  # the backend leaves its own files beside what it builds
    for name in ("torchdoctor", "checks", "windows"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    (found,) = folder.glob("*.whl")
    return found
