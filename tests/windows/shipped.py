"""torchdoctor as it is shipped: the wheel, and the one file that runs everywhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pyz(place: Path) -> Path:
    """Build the one file that runs everywhere as *place*, by the command for it; return it."""
    command = [sys.executable, str(ROOT / ".ci" / "pyz"), str(place)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
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
