"""Every Python from 3.8 up is a Python under test; the doctor itself stays in its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import doctor, standins
from tests.scenarios.doctor import Scene

# The newest torch for that Python, and the NumPy that fits it.
RELEASES = {
    "3.8": "2.4.1",
    "3.9": "2.8.0",
    "3.10": "2.13.0",
    "3.11": "2.13.0",
    "3.12": "2.13.0",
    "3.13": "2.13.0",
    "3.14": "2.13.0",
}
TESTED = ("3.8", "3.10", "3.12", "3.13", "3.14")


@cache
def interpreter(version: str) -> str | None:
    """Return a Python *version* of this machine: of pyenv, or on PATH."""
    root = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found = sorted(root.glob(f"versions/{version}.*/bin/python{version}"))
    on_path = shutil.which(f"python{version}")
    for candidate in [*map(str, found), *([on_path] if on_path else [])]:
        asked = subprocess.run(
            [candidate, "-c", "import venv, ssl, sys; print(sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.stdout.strip() == str(tuple(map(int, version.split(".")))):
            return candidate
    return None


def machine(tmp_path: Path, version: str) -> Scene:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    return Scene(tmp_path, environments.bare(tmp_path / "env", python))


@pytest.mark.parametrize("version", TESTED)
def test_an_environment_of_this_python_is_healthy(tmp_path: Path, version: str) -> None:
    scene = machine(tmp_path, version)
    wheel = standins.tiny_torch(tmp_path, f"{RELEASES[version]}+cpu", requires=())
    environments.unpack(wheel, scene.environment.site)
    answer = doctor.check(scene)
    assert answer.faults == []
    assert answer.report["verdict"] == "healthy"
    assert re.match(re.escape(version) + r"\.\d", answer.report["target"]["python"])
    assert "unknown" not in {
        outcome for name, outcome in answer.outcomes().items() if "python" in name
    }


@pytest.mark.parametrize("version", TESTED)
def test_a_torch_without_wheels_for_this_python_is_named(tmp_path: Path, version: str) -> None:
    newer = {
        "3.8": "2.13.0",
        "3.10": "2.15.0",
        "3.12": "2.1.2",
        "3.13": "2.4.1",
        "3.14": "2.8.0",
    }[version]
    scene = machine(tmp_path, version)
    code = "raise ImportError('cannot import name _C')\n"
    wheel = standins.tiny_torch(tmp_path, f"{newer}+cpu", requires=(), code=code)
    environments.unpack(wheel, scene.environment.site)
    answer = doctor.check(scene)
    assert "python-not-supported" in {fault["name"] for fault in answer.faults}


@pytest.mark.parametrize("version", TESTED)
def test_an_environment_without_torch_says_how_to_install_it(tmp_path: Path, version: str) -> None:
    scene = machine(tmp_path, version)
    answer = doctor.check(scene)
    assert answer.report["verdict"] == "broken"
    assert any("torch" in line and "install" in line for line in answer.commands)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.10", "3.12", "3.13"])
def test_a_real_torch_of_this_python_is_healthy(tmp_path: Path, version: str) -> None:
    """Install the CPU build, or, where pip finds none, 5 GB of the CUDA build."""
    scene = machine(tmp_path, version)
    python = str(scene.environment.python)
    target = str(scene.environment.site)
    subprocess.run([python, "-m", "ensurepip"], check=True, capture_output=True)
    command = [python, "-m", "pip", "install", "--quiet", "--target", target]
    command += [environments.REQUIREMENT, "numpy", *environments.PIP_OPTIONS]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    answer = doctor.check(scene)
    assert answer.faults == []
    assert answer.report["verdict"] == "healthy"
