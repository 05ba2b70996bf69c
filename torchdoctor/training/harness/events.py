"""What a rank says of itself while it runs, in files of its own: no other process is needed.

``rankN.jsonl`` has one JSON object for each thing that happened; ``rankN.at`` holds the step and
the stage in which the rank is, or was when it died.
"""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path

ROOM = 200
"""Bytes of ``rankN.at``, which is overwritten in place."""
COLLECTIVE = ("backward", "agree", "save", "load", "measure")
"""Stages in which a rank may fail only because another one has."""


class Events:
    """The files of one rank in *folder*."""

    def __init__(self, folder: Path, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.rank, self.stage, self.step = rank, "start", 0
        self._path = folder / f"rank{rank}.jsonl"
        self._at = os.open(folder / f"rank{rank}.at", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def enter(self, stage: str, step: int | None = None) -> None:
        """Note where this rank is now."""
        self.stage, self.step = stage, self.step if step is None else step
        said = {"step": self.step, "stage": stage, "time": time.time()}
        os.write(self._at, json.dumps(said).encode().ljust(ROOM))
        os.lseek(self._at, 0, os.SEEK_SET)

    def say(self, event: str, **more: object) -> None:
        """Note that something has happened."""
        line = {"event": event, "time": time.time(), "rank": self.rank, **more}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def failed(self, error: BaseException) -> None:
        """Note what this rank fails of, and whether it is another one's fault."""
        self.say(
            "failed",
            kind=type(error).__name__,
            message=str(error)[:2000],
            step=self.step,
            stage=self.stage,
            culprit=getattr(error, "rank", None),
            collective=self.stage in COLLECTIVE,
            trace=traceback.format_exc()[-4000:],
        )
