"""Every command of the README is run, as it stands or as tests/readme/told.py has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import environments, wheels
from tests.readme import desk, page, told
from tests.readme.desk import Desk
from tests.readme.page import ROOT

QUICK = "torchdoctor check --no-import"
REAL = re.compile(r"torchrun|shards|train-check|all-reduce|guard|hang PID|/home/you")
"""Of commands that need a torch that works; the others take one that only imports."""
HERE = [c for c in page.commands() if c not in {*told.ELSEWHERE, *told.NOT_RUN, *told.NETWORK}]
LIGHT = [command for command in HERE if not REAL.search(command)]
HEAVY = [command for command in HERE if REAL.search(command)]
NOT_HANDED_ON = ("CONDA", "PYTEST", "PYTHON", "VIRTUAL_ENV")
WRONG = re.compile(r"usage:|see: torchdoctor|torchdoctor \S+ failed|Traceback")


DIES = """
import os, signal, sys, threading, time


def watch():
    while not hasattr(sys.modules.get("torch.distributed"), "DistBackendError"):
        time.sleep(0.01)
    module = sys.modules["torch.distributed"]
    while not hasattr(module, "all_reduce"):
        time.sleep(0.01)

    def dies(*given, **options):
        time.sleep(0.6)
        os.kill(os.getpid(), signal.SIGKILL)

    module.all_reduce = dies


if os.environ.get("RANK") == "1":
    threading.Thread(target=watch, daemon=True).start()
"""
"""Ends rank 1 in its first all_reduce."""


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("desk")
    return desk.filled(desk.lay(folder, desk.small(folder)))


@pytest.fixture(scope="module")
def heavy() -> Iterator[Desk]:
    folder = environments.copies() / "readme"
    folder.mkdir()
    yield desk.filled(desk.lay(folder, desk.real(folder)))
    shutil.rmtree(folder)


def does(at: Desk, command: str, folder: Path) -> None:
    instead = told.INSTEAD.get(command, (command, ""))[0]
    done = at.run(instead, at.copy(folder))
    said = f"$ {instead}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == (1 if command in told.FINDS else 0), said
    assert done.stdout or (folder / instead.split()[-1]).exists(), said
    assert not WRONG.search(done.stderr), said


@pytest.mark.lab
@pytest.mark.sample
def test_a_quick_look_works(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    at = desk.lay(tmp_path / "desk", desk.small(tmp_path / "desk"))
    does(at, QUICK, tmp_path / "here")


@pytest.mark.lab
@pytest.mark.parametrize("command", LIGHT)
def test_a_command_of_the_page_works(light: Desk, tmp_path: Path, command: str) -> None:
    does(light, command, tmp_path / "here")


@pytest.mark.lab
@pytest.mark.parametrize("command", HEAVY)
def test_a_command_of_the_page_works_with_torch(heavy: Desk, tmp_path: Path, command: str) -> None:
    does(heavy, command, tmp_path / "here")


def shape(text: str) -> list[str]:
    """Return the words of *text* without paths, and without numbers that grow with each check."""
    text = re.sub(r"\(\d+ checks replayed: \d+ clear,\s+\d+ unknown\)", "(N checks)", text)
    return text.split()


@pytest.mark.lab
def test_the_sample_is_what_is_printed(tmp_path: Path) -> None:
    (command,) = (c for c in page.samples() if "/home/you" in c)
    folder = environments.copies() / "sample"
    made = desk.real(folder)
    try:
        (made.site / "torchdoctor.pth").unlink()
        made.remove("torch/lib/libc10.so")
        done = subprocess.run(
            [sys.executable, "-c", desk.START, "check", "--python", str(made.root)],
            cwd=tmp_path,
            env=environments.environ(tmp_path, COLUMNS="80"),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 1, done.stderr
    said = done.stdout.replace(str(made.root), "/home/you/venv")
    assert shape(said) == shape(page.samples()[command])


@pytest.mark.lab
def test_the_sample_of_a_rank_that_dies_is_what_is_printed(heavy: Desk, tmp_path: Path) -> None:
    command = "torchdoctor all-reduce"
    assert command in page.samples()
    heavy.environment.write("sitecustomize.py", DIES)
    try:
        done = heavy.run(f"{command} --timeout 200", tmp_path)
    finally:
        heavy.environment.remove("sitecustomize.py")
    assert done.returncode == 1, done.stdout + done.stderr
    printed = [counted(line) for line in done.stdout.splitlines()]
    wanted = [counted(line) for line in page.samples()[command].splitlines()]
    places = [printed.index(line) for line in wanted if line not in {"", "..."}]
    assert places == sorted(places), done.stdout


def counted(line: str) -> str:
    """Return *line* with N for each time, and one space for several."""
    return " ".join(re.sub(r"\d+\.\d+", "N", line).split())


@pytest.mark.lab
def test_the_corpus_is_scored() -> None:
    command = [sys.executable, "-m", "tests.corpus_score", "001"]
    assert "python -m tests.corpus_score" in page.commands()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3].startswith("001-win1114-redist-1436: vcredist-too-old")


@pytest.mark.network
def test_what_installs_something_works_from_a_checkout(tmp_path: Path) -> None:
    tools = Path(sys.executable).parent
    if not (tools / "pipx").exists():
        pytest.skip("no pipx here; it is in the extra dev")
    checkout = tmp_path / "checkout"
    unwanted = shutil.ignore_patterns("__pycache__", ".*_cache", ".cache", ".git", "dist", ".venv")
    shutil.copytree(ROOT, checkout, ignore=unwanted)
    python = environments.bare(tmp_path / "env").python
    places = [python.parent, Path(wheels.UV).parent, tools]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(NOT_HANDED_ON)}
    own = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    environ = {**kept, **own, "PATH": os.pathsep.join([*map(str, places), os.environ["PATH"]])}
    for command in told.NETWORK:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=checkout,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        said = f"$ {command}\n{done.stdout}\n{done.stderr}"
        looks = " check " in command
        assert done.returncode == int(looks), said
        assert ("torch-not-installed" in done.stdout) == looks, said
