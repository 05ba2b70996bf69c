"""What a run needs in order to go on as if nothing had happened: checkpoints.

A checkpoint is one file beside its SHA-256 (``sha256sum -c`` reads it). It gets its name only
when it is whole and on the disk, and older ones go only after that: whatever ends the run, the
newest file that has a name can be loaded. One that was damaged later is passed over, and said.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
from pathlib import Path
from typing import Any

import torch  # type: ignore[import-not-found,unused-ignore]

KEEP = 3
"""Checkpoints that are kept."""


def random_state() -> dict[str, Any]:
    """Return the state of the random numbers of this process."""
    found = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if torch.cuda.is_available():
        found["cuda"] = torch.cuda.get_rng_state()
    return found


def set_random_state(state: dict[str, Any]) -> None:
    """Go on with the random numbers where *state* was taken."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    torch.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def save(folder: Path, step: int, content: dict[str, Any]) -> Path:
    """Write a checkpoint of *step* to *folder*, whole or not at all; return its path.

    Raises:
        OSError: it cannot be written; those that were there still are.

    """
    folder.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    torch.save(content, buffer)
    raw = buffer.getvalue()
    path = folder / f"step-{step:08}.pt"
    digest = f"{hashlib.sha256(raw).hexdigest()}  {path.name}\n".encode()
    _write(path.with_suffix(".sha256"), digest)
    _write(path, raw)
    for old in names(folder)[KEEP:]:
        old.unlink(missing_ok=True)
        old.with_suffix(".sha256").unlink(missing_ok=True)
    return path


def _write(path: Path, raw: bytes) -> None:
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)  # gives a full disk its room back
        raise


def names(folder: Path) -> list[Path]:
    """Return the checkpoints in *folder*, the newest first."""
    return sorted(folder.glob("step-*.pt"), reverse=True)


def newest(folder: Path) -> tuple[Path | None, list[str]]:
    """Return the newest whole checkpoint, and what was passed over on the way to it."""
    passed: list[str] = []
    for path in names(folder):
        try:
            expected = path.with_suffix(".sha256").read_text("ascii").split()[0]
            if hashlib.sha256(path.read_bytes()).hexdigest() == expected:
                return path, passed
        except (OSError, ValueError, IndexError):
            pass
        passed.append(path.name)
    return None, passed


def load(path: Path, device: torch.device) -> dict[str, Any]:
    """Return the content of a checkpoint, on *device*; nothing in it is executed."""
    content: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
    return content


def digest(*states: object) -> str:
    """Return a hash of all numbers in *states*, bit for bit."""
    found = hashlib.sha256()
    _feed(found, states)
    return found.hexdigest()


def _feed(found: hashlib._Hash, value: object) -> None:
    if isinstance(value, torch.Tensor):
        found.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            found.update(str(key).encode())
            _feed(found, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(found, item)
    else:
        found.update(repr(value).encode())
