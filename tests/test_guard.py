"""``guard`` says what a command did to torch, whether it still works, and the way back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import environments, wheels
from tests.scenarios import standins

ROOT = Path(__file__).parents[1]
INSTALL = [wheels.UV, "pip", "install", "--quiet", "--offline", "--no-index", "--python"]


class Guarded:
    """An environment with a torch, and a folder of wheels to install from."""

    def __init__(self, folder: Path) -> None:
        self.environment = environments.bare(folder / "env")
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        for version in ("2.13.0+cpu", "2.11.0+cpu"):
            standins.tiny_torch(self.wheels, version, requires=())
        needs = ("torch==2.11.0",)
        environments.wheel(self.wheels, "pulls-torch", "1.0", {"pulls.py": ""}, requires=needs)
        environments.wheel(self.wheels, "harmless", "1.0", {"harmless.py": ""})
        subprocess.run([*self.install("torch==2.13.0+cpu")], check=True)

    def install(self, *what: str) -> list[str]:
        python = str(self.environment.python)
        return [*INSTALL, python, "--find-links", str(self.wheels), *what]

    def torchdoctor(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "torchdoctor", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )

    def guard(self, *command: str) -> tuple[int, dict[str, Any]]:
        words = ["guard", "--python", str(self.environment.python), "--format", "json"]
        done = self.torchdoctor(*words, "--", *command)
        return done.returncode, json.loads(done.stdout[done.stdout.index("{") :])


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


def test_a_torch_that_was_replaced_is_named_with_the_way_back(guarded: Guarded) -> None:
    code, report = guarded.guard(*guarded.install("pulls-torch"))
    said = report["data"]["guard"]
    assert (code, said["exit_status"]) == (0, 0)
    changes = {row["fact"]: (row["before"], row["after"]) for row in said["changes"]}
    assert changes["torch.version"] == ("2.13.0+cpu", "2.11.0+cpu")
    assert changes["packages.pulls-torch"] == ("none", "1.0")
    back = " && ".join(said["way_back"])
    assert "torch==2.13.0+cpu" in back
    assert "uninstall" in back
    assert "pulls-torch" in back


def test_a_command_that_breaks_torch_fails(guarded: Guarded) -> None:
    broken = guarded.environment.site / "torch" / "__init__.py"
    code, report = guarded.guard(sys.executable, "-c", f"open({str(broken)!r}, 'w').write('1/0')")
    assert code == 1
    assert report["data"]["guard"]["before"]["verdict"] == "healthy"
    assert report["verdict"] == "broken"
    assert report["data"]["guard"]["way_back"] == []


def test_a_harmless_command_says_so(guarded: Guarded) -> None:
    words = ["guard", "--python", str(guarded.environment.python), "--"]
    done = guarded.torchdoctor(*words, *guarded.install("harmless"))
    assert done.returncode == 0
    assert "packages.harmless from none to 1.0" in done.stdout
    assert "PyTorch works as before." in " ".join(done.stdout.split())
    done = guarded.torchdoctor(*words, "echo", "its own output")
    assert "its own output" in done.stdout
    assert "changed nothing that belongs to torch" in " ".join(done.stdout.split())


def test_a_command_that_fails_is_told_and_fails(guarded: Guarded) -> None:
    code, report = guarded.guard(sys.executable, "-c", "raise SystemExit(7)")
    assert (code, report["data"]["guard"]["exit_status"]) == (1, 7)
    assert report["verdict"] == "healthy"


@pytest.mark.parametrize("command", [(), ("--",), ("--", "no-such-program-at-all")])
def test_no_command_is_wrong_usage(tmp_path: Path, command: tuple[str, ...]) -> None:
    python = str(environments.bare(tmp_path / "env").python)
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "guard", "--python", python, *command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_lock_is_written_and_checked(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "torchdoctor.lock"
    at = ["--python", str(guarded.environment.python)]
    done = guarded.torchdoctor("lock", *at, "-o", str(file))
    assert done.returncode == 0, done.stderr
    assert guarded.torchdoctor("check", *at, "--lock", str(file)).returncode == 0
    subprocess.run(guarded.install("torch==2.11.0+cpu"), check=True)
    done = guarded.torchdoctor("check", *at, "--lock", str(file), "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert [f["name"] for f in report["findings"]] == ["lock-packages-unmet"]
    (step,) = report["plan"]
    assert "torch==2.13.0+cpu" in step["commands"]["bash"][-1]
    assert report["after_plan"]["verdict"] == "healthy"


def test_a_broken_environment_is_not_locked(guarded: Guarded, tmp_path: Path) -> None:
    guarded.environment.write("torch/__init__.py", "1/0")
    file = tmp_path / "x.lock"
    at = ["lock", "--python", str(guarded.environment.python), "-o", str(file)]
    done = guarded.torchdoctor(*at)
    assert (done.returncode, file.exists()) == (1, False)
    assert "nothing was locked" in done.stderr
    assert guarded.torchdoctor(*at, "--anyway").returncode == 0
    assert file.exists()
