"""Run the reference harness as it takes to prove that this machine trains right.

Four runs: all ranks from beginning to end; one rank alone, for the time it takes; one rank with
the samples of all; and all ranks once more from the checkpoint in the middle. Nothing here imports
torch; a run that fails or hangs is an answer, with the first failure in its ``run.json``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from torchdoctor import child, resource
from torchdoctor.background import Background
from torchdoctor.model import DoctorError

FILES = ("__init__.py", "data.py", "engine.py", "events.py", "launch.py", "state.py", "train.py")
ROUNDS = 10
"""Steps with and without the other ranks that are timed against each other."""
LARGEST = 64 << 20
"""Bytes of a record; a longer one is none of ours."""
PATIENCE = 60.0
"""Seconds beyond its limit that a run has to end its ranks and write its record."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of the harness."""

    nproc: int = 2
    steps: int = 20
    batch: int = 32
    accumulate: int = 1
    amp: str = "off"
    sync_bn: bool = False
    width: int = 512
    workers: int = 0
    device: str = "auto"
    timeout: float = 60.0
    """Seconds that a rank waits for another."""

    @property
    def middle(self) -> int:
        """Return the step after which a checkpoint is written, to go on from."""
        return max(self.steps // 2, 1)

    @property
    def dtype(self) -> str:
        """Return the type in which weights are kept: the exacter one where nothing rounds."""
        return "float64" if self.amp == "off" else "float32"


@dataclass(frozen=True, slots=True)
class Trained:
    """One run: its record, and what each rank reports; empty where there is none."""

    record: Mapping[str, object] = field(default_factory=dict)
    ranks: Sequence[Mapping[str, object]] = ()

    @property
    def done(self) -> bool:
        """Return whether it came to its end, and every rank has reported."""
        return self.record.get("outcome") == "done" and all(self.ranks) and bool(self.ranks)


@dataclass(frozen=True, slots=True)
class Proof:
    """The runs; None for one that was not begun, since an earlier one failed."""

    wish: Wish
    whole: Trained
    single: Trained | None = None
    """One rank with as many samples as each of them had."""
    alone: Trained | None = None
    """One rank with the samples of all."""
    resumed: Trained | None = None


def eject(folder: Path) -> tuple[Path, ...]:
    """Write the harness to *folder*, which must be new or empty; return its files.

    Raises:
        DoctorError: the folder has something in it, or a name that Python cannot import.

    """
    if not folder.name.isidentifier():
        raise DoctorError(
            f"--eject {folder}: the last part has to be a name that Python can import.",
            kind="usage",
        )
    if folder.is_dir() and any(folder.iterdir()):
        raise DoctorError(f"--eject {folder}: the folder is not empty.", kind="usage")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = resource.read_text("training", "harness", name)
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DoctorError(f"--eject {folder}: {error.strerror or error}.", kind="usage") from error
    return tuple(folder / name for name in FILES)


def prove(wish: Wish, python: str, environ: Mapping[str, str], folder: Path, limit: float) -> Proof:
    """Run the harness with *python*, in *folder*, each run for at most *limit* seconds.

    Never raises for what a run does.
    """
    harness = folder / "harness"
    eject(harness)
    go = partial(_run, python, environ, folder, limit)
    whole = go("whole", wish, ROUNDS)
    if not whole.done:
        return Proof(wish, whole)
    single = go("single", replace(wish, nproc=1), 0)
    (folder / "resumed").mkdir()
    _middle_only(folder / "whole" / "checkpoints", folder / "resumed" / "checkpoints", wish.middle)
    together = replace(wish, nproc=1, batch=wish.batch * wish.nproc)
    beside = Background(partial(go, "alone", together, 0))  # neither of these two is timed
    resumed = go("resumed", wish, 0)
    return Proof(wish, whole, single, beside.result(), resumed)


def _middle_only(source: Path, target: Path, step: int) -> None:
    target.mkdir()
    for path in source.glob(f"step-{step:08}.*"):
        shutil.copy2(path, target / path.name)


def _run(  # noqa: PLR0913, PLR0917 - what all runs share, and what is this one's
    python: str,
    environ: Mapping[str, str],
    folder: Path,
    limit: float,
    name: str,
    wish: Wish,
    rounds: int,
) -> Trained:
    words = [
        *("--steps", str(wish.steps), "--batch", str(wish.batch), "--amp", wish.amp),
        *("--accumulate", str(wish.accumulate), "--width", str(wish.width)),
        *("--workers", str(wish.workers), "--dtype", wish.dtype, "--device", wish.device),
        *("--save-every", str(wish.middle), "--timeout", f"{wish.timeout:g}"),
        *("--measure", str(rounds), *(["--sync-bn"] if wish.sync_bn else [])),
    ]
    command = [
        *(python, "-B", str(folder / "harness" / "launch.py"), "--nproc", str(wish.nproc)),
        *("--dir", str(folder / name), "--limit", f"{limit:g}", "--", *words),
    ]
    ran = child.run(command, timeout=limit + PATIENCE, folder=str(folder), environ=environ)
    record = read(folder / name / "run.json")
    if not record or record.get("outcome") == "running":
        said = ran.reason or ran.stderr.text.strip()[-2000:] or f"exit code {ran.exit_code}"
        failure = {"rank": None, "kind": "launcher", "message": said}
        record = {**record, "outcome": "failed", "first_failure": failure}
    ranks = [read(folder / name / f"rank{rank}.json") for rank in range(wish.nproc)]
    return Trained(record, ranks)


def read(path: Path) -> dict[str, object]:
    """Return the JSON object in *path*; an empty one where there is none."""
    try:
        if path.stat().st_size > LARGEST:
            return {}
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
