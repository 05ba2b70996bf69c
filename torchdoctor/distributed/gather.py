"""Bring the records of all ranks to rank 0, where a launcher has started them on several machines.

Rank 0 listens; its worker leaves the port and a word that nobody else knows in the store, so that
whoever has met the others can find it. A rank that has not met them judges by itself.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections.abc import Mapping

LARGEST = 4 << 20
"""Bytes of the record of one rank."""
PATIENCE = 5.0
"""Seconds for one message."""


class Collector:
    """What rank 0 hears of the others."""

    def __init__(self, world: int) -> None:
        """Listen from now on."""
        dual = socket.has_dualstack_ipv6()
        self._listener = socket.create_server(
            ("", 0),
            family=socket.AF_INET6 if dual else socket.AF_INET,
            backlog=max(16, world),
            dualstack_ipv6=dual,
        )
        self.word = secrets.token_hex(16)
        self.port: int = self._listener.getsockname()[1]
        self.records: dict[int, Mapping[str, object]] = {}
        self._waiting: list[socket.socket] = []
        self._world = world
        threading.Thread(target=self._serve, daemon=True).start()

    def wait(self, seconds: float) -> None:
        """Wait until all others were heard, but no longer than *seconds*."""
        until = time.monotonic() + seconds
        while len(self.records) < self._world - 1 and time.monotonic() < until:
            time.sleep(0.02)

    def dismiss(self, code: int) -> None:
        """Tell those that were heard the exit code, and listen no more."""
        self._listener.close()
        for one in self._waiting:
            with contextlib.suppress(OSError), one:
                one.sendall(json.dumps({"code": code}).encode() + b"\n")

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._take, args=(one,), daemon=True).start()

    def _take(self, one: socket.socket) -> None:
        one.settimeout(PATIENCE)
        try:
            said = json.loads(_line(one))
            rank, word, record = said["record"]["rank"], str(said["word"]), said["record"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            rank, word, record = None, "", {}
        known = isinstance(rank, int) and 0 < rank < self._world
        if known and secrets.compare_digest(word.encode(), self.word.encode()):
            self._waiting.append(one)
            self.records[rank] = record
        else:
            one.close()


def send(
    host: str, port: int, word: str, record: Mapping[str, object], patience: float
) -> int | None:
    """Send *record* to rank 0 and wait, for *patience* seconds, for the exit code that it gives.

    None where it cannot be reached, or gives none.
    """
    try:
        with socket.create_connection((host, port), timeout=PATIENCE) as one:
            one.sendall(json.dumps({"word": word, "record": record}).encode() + b"\n")
            one.settimeout(patience)
            code = json.loads(_line(one))["code"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return code if isinstance(code, int) else None


def _line(one: socket.socket) -> bytes:
    got = bytearray()
    while not got.endswith(b"\n") and len(got) <= LARGEST:
        block = one.recv(1 << 16)
        if not block:
            break
        got += block
    return bytes(got)
