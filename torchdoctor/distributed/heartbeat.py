"""What a rank says while it runs: one JSON object a line, in a file of its own."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path

MOST = 1000
"""Events that are kept of one rank."""
LARGEST = 1 << 20
SLOWEST = 6.0
"""More a rank is not believed to be slower than usual."""
STAGE_KINDS = ("enter", "call", "ok", "error")


class Heartbeat:
    """The events of one rank, as far as they have come."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self.events: list[dict[str, object]] = []
        self.stage = ""
        """The last stage that was entered."""
        self.since: float | None = None
        """When this process saw the last event of a stage, in seconds since the epoch."""
        self.slowness = 1.0
        """How many times as long as usual this rank takes, by its import of torch."""

    def read(self) -> None:
        """Take what has come since the last time. A line that is none is left out."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                new = file.read(LARGEST)
        except OSError:
            return
        self._at += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError):
                event = json.loads(line)
                if isinstance(event, dict):
                    self._take(event)

    def _take(self, event: dict[str, object]) -> None:
        if event.get("ev") == "beat":
            if self.events and self.events[-1].get("ev") == "beat":
                self.events.pop()  # the last one says all that they say
        elif event.get("ev") in STAGE_KINDS:
            self.stage = str(event.get("stage"))
            self.since = time.time()
        if isinstance(slowness := event.get("slowness"), int | float):
            self.slowness = max(self.slowness, min(SLOWEST, slowness))
        if len(self.events) < MOST:
            self.events.append(event)
