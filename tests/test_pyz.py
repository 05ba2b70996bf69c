"""torchdoctor.pyz is the same bytes each time, and does on every Python what the command does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import standins
from tests.scenarios.test_pythons import interpreter
from tests.windows import shipped

ROOT = Path(__file__).parents[1]
CASE = ROOT / "tests" / "corpus" / "001-win1114-redist-1436" / "input.txt"
pytestmark = [pytest.mark.network, pytest.mark.xdist_group("pyz")]


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the file into a folder whose name is a trap."""
    return shipped.pyz(tmp_path_factory.mktemp("a b") / "环境" / "torchdoctor.pyz")


def said(*command: str | Path, cwd: Path, path: str = "") -> dict[str, object]:
    """Return the report in JSON that *command* prints."""
    kept = {k: v for k, v in os.environ.items() if k not in {"VIRTUAL_ENV", "CONDA_PREFIX"}}
    done = subprocess.run(
        [*command, "--format", "json"],
        cwd=cwd,
        capture_output=True,
        env={**kept, "PYTHONPATH": path} if path else kept,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr.decode()
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


@pytest.mark.sample
def test_the_same_sources_make_the_same_bytes(tmp_path: Path, pyz: Path) -> None:
    copy = tmp_path / "elsewhere"
    for name in ("torchdoctor", "checks", "windows", ".ci"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    again = copy / "dist" / "torchdoctor.pyz"
    subprocess.run([sys.executable, str(copy / ".ci" / "pyz")], check=True, umask=0o077)
    assert again.read_bytes() == pyz.read_bytes()


@pytest.mark.sample
def test_it_holds_no_machine_code_and_no_tests(pyz: Path) -> None:
    names = zipfile.ZipFile(pyz).namelist()
    assert "torchdoctor/checks/torch_present.py" in names
    assert "torchdoctor/windows/pe.py" in names
    assert "torchdoctor/tables/releases.json" in names
    assert not [n for n in names if n.endswith((".so", ".pyd", ".pyc")) or "tests/" in n]


@pytest.mark.parametrize(
    "version",
    [pytest.param("3.10", marks=pytest.mark.sample), "3.11", "3.12", "3.13", "3.14"],
)
def test_each_python_finds_what_the_command_finds(tmp_path: Path, pyz: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    broken = environments.bare(tmp_path / "env")
    environments.unpack(
        standins.tiny_torch(tmp_path, "2.13.0+cpu", requires=("numpy",)), broken.site
    )
    look = ("check", "--python", str(broken.python))
    by_file = said(python, "-E", pyz, *look, cwd=tmp_path)
    by_command = said(sys.executable, "-m", "torchdoctor", *look, cwd=tmp_path, path=str(ROOT))
    for part in ("verdict", "findings", "plan", "after_plan"):
        assert by_file[part] == by_command[part], part
    assert "dependency-missing" in str(by_file["findings"]) or by_file["findings"]
    text = said(python, "-E", pyz, "check", CASE, cwd=tmp_path)
    assert "vcredist-too-old" in str(text["findings"])


@pytest.mark.sample
def test_an_old_python_is_told_what_to_do(pyz: Path) -> None:
    python = interpreter("3.8")
    if python is None:
        pytest.skip("no Python 3.8 here")
    done = subprocess.run([python, pyz, "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "needs Python 3.10 or newer and this is 3.8" in line
    assert "--python" in line


@pytest.mark.sample
def test_the_version_is_said_from_any_folder(tmp_path: Path, pyz: Path) -> None:
    done = subprocess.run([pyz, "--version"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.startswith(b"torchdoctor ")
