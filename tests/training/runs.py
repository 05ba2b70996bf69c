"""Runs of the ejected harness, with data of the test's own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import environments
from tests.training import jobs
from torchdoctor.training import proving

SMALL = ("--width", "32", "--batch", "4", "--dtype", "float64", "--save-every", "5")


@dataclass(frozen=True)
class Ran:
    """How a run ended."""

    code: int
    folder: Path
    said: str

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "run.json").read_text())
        return found

    @property
    def first(self) -> dict[str, Any]:
        found: dict[str, Any] = self.record["first_failure"]
        return found

    @property
    def notes(self) -> list[tuple[str, object]]:
        return [
            (note["event"], note.get("name", note.get("step"))) for note in self.record["notes"]
        ]

    def rank(self, number: int) -> dict[str, Any]:
        return proving.read(self.folder / f"rank{number}.json")

    @property
    def checkpoints(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "checkpoints").glob("step-*.pt"))


def harness(folder: Path, more: str = "") -> Path:
    """Eject the harness below *folder*, with *more* at the end of its data.py."""
    place = folder / "mine"
    if not place.exists():
        proving.eject(place)
    with (place / "data.py").open("a") as file:
        file.write(more)
    return place


def command(place: Path, run: Path, *words: str, nproc: int = 2) -> list[str]:
    launch = [jobs.python(), "-B", str(place / "launch.py"), "--nproc", str(nproc)]
    return [*launch, "--dir", str(run), "--limit", "180", "--", *SMALL, *words]


def environ(folder: Path) -> Mapping[str, str]:
    return environments.environ(folder, OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")


def run(place: Path, run: Path, *words: str, nproc: int = 2, before: Sequence[str] = ()) -> Ran:
    """Run the harness in *place* to its end."""
    done = subprocess.run(
        [*before, *command(place, run, *words, nproc=nproc)],
        cwd=place.parent,
        env=environ(place.parent),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Ran(done.returncode, run, done.stdout + done.stderr)
