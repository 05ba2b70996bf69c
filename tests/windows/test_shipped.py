"""What looks at Windows is in the archive that is shipped, and runs from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.windows import disk, shipped

NEEDED = {
    f"torchdoctor/windows/{name}"
    for name in (
        *("__init__.py", "probe.py", "files.py"),
        *("pe.py", "dll_facts.py", "loader.py", "redist.py", "startup.py"),
        *("inventory.py", "layout.py", "answers.py", "tables.py"),
        *("runtime.toml", "startup.toml", "system.toml"),
    )
}


def run(archive: Path, folder: Path, *arguments: str) -> str:
    """Run *arguments* with torchdoctor from *archive*, and from nowhere else."""
    environ = {n: v for n, v in os.environ.items() if not n.startswith("PYTHON")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout


def judged(archive: Path, folder: Path) -> list[str]:
    root = folder / "windows"
    disk.installation(root, disk.OLD)
    text = run(
        archive,
        folder,
        *("-m", "torchdoctor", "check", "--root", str(root), "--format", "json"),
    )
    return [finding["name"] for finding in json.loads(text)["findings"]]


PROBES = """
import sys, torchdoctor
from torchdoctor.resource import read_text
assert torchdoctor.__file__.startswith(sys.argv[1]), torchdoctor.__file__
for name in ("probe.py", "files.py"):
    compile(read_text("windows", name), name, "exec")
import torchdoctor.windows.inventory
print(torchdoctor.windows.inventory.SCHEMA)
"""
"""What collect does on Windows before it starts a child, and what the child imports."""


@pytest.mark.network
@pytest.mark.sample
@pytest.mark.xdist_group("pyz")
def test_the_one_file_has_what_windows_needs_and_works(tmp_path: Path) -> None:
    archive = shipped.pyz(tmp_path / "torchdoctor.pyz")
    with zipfile.ZipFile(archive) as file:
        assert set(file.namelist()) >= NEEDED
    assert judged(archive, tmp_path) == ["vcredist-too-old"]
    assert run(archive, tmp_path, "-c", PROBES, str(archive)) == "1\n"


def test_every_file_of_the_windows_part_is_named_here() -> None:
    own = {path.name for path in (shipped.ROOT / "windows").iterdir() if path.is_file()}
    assert {name.rpartition("/")[2] for name in NEEDED} == own


@pytest.mark.network
def test_the_wheel_that_is_built_has_the_same_files_and_works(tmp_path: Path) -> None:
    wheel = shipped.wheel(tmp_path)
    one_file = shipped.pyz(tmp_path / "torchdoctor.pyz")
    with zipfile.ZipFile(wheel) as built, zipfile.ZipFile(one_file) as told:
        own = {name for name in built.namelist() if ".dist-info/" not in name}
        manual = {name for name in own if name.endswith(".data/data/share/man/man1/torchdoctor.1")}
        assert len(manual) == 1
        assert own - manual == {n for n in told.namelist() if n.startswith("torchdoctor/")}
    assert judged(wheel, tmp_path) == ["vcredist-too-old"]
    assert run(wheel, tmp_path, "-c", PROBES, str(wheel)) == "1\n"
