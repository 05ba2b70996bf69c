"""``check --watch`` looks again while somebody repairs, and ends when nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import standins

ROOT = Path(__file__).parents[1]


def watch(python: Path, *more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "-m", "torchdoctor", "check", "--python", str(python), *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def test_it_ends_when_what_was_wrong_is_mended(tmp_path: Path) -> None:
    environment = environments.bare(tmp_path / "env")
    with watch(environment.python, "--watch", "0.2") as watching:
        assert watching.stdout is not None
        seen = [next(watching.stdout)]
        while not seen[-1].startswith("More:"):
            seen.append(next(watching.stdout))
        assert "torch-not-installed" in "".join(seen)
        wheel = standins.tiny_torch(tmp_path, "2.13.0+cpu", requires=())
        environments.unpack(wheel, environment.site)
        rest = watching.stdout.read()
        assert watching.wait() == 0
    assert "PyTorch works here: torch 2.13.0+cpu" in rest
    assert rest.count("torch-not-installed") <= 1, "what is the same is not said again"


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupt_ends_it(tmp_path: Path) -> None:
    environment = environments.bare(tmp_path / "env")
    with watch(environment.python, "--watch") as watching:
        assert watching.stdout is not None
        next(watching.stdout)
        watching.send_signal(signal.SIGINT)
        assert watching.wait() == 130


@pytest.mark.parametrize("more", [["x.json"], ["--format", "json"], ["-o", "x"]])
def test_what_has_no_terminal_cannot_be_watched(tmp_path: Path, more: list[str]) -> None:
    (tmp_path / "x.json").write_text("{}")
    with watch(Path(sys.executable), "--watch", "1", *more) as watching:
        assert watching.stderr is not None
        said = watching.stdout.read() if watching.stdout else ""
        assert "--watch looks at this machine" in watching.stderr.read() + said
        assert watching.wait() == 2
