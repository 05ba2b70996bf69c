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
from collections.abc import Callable, Mapping, Sequence

LARGEST = 4 << 20
"""Bytes of the record of one rank."""
PATIENCE = 5.0
"""Seconds for one message."""


class Collector:
    """What rank 0 hears of the others."""

    def __init__(
        self,
        world: int,
        *,
        ports: Sequence[int] = (0,),
        word: str = "",
        largest: int = LARGEST,
        keep: Callable[[int, Mapping[str, object]], None] | None = None,
    ) -> None:
        """Listen from now on, on the first of *ports* that is free; 0 is any.

        *word* is what those who may speak know (default: one that nobody can guess). With *keep*
        a record is given to it, forgotten, and answered at once; it is called by several threads.

        Raises:
            OSError: no port is free.

        """
        self._listener = _listening(ports, max(16, world))
        self._largest = largest
        self._keep = keep
        self.word = word or secrets.token_hex(16)
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
            said = json.loads(_line(one, self._largest))
            rank, word, record = said["record"]["rank"], str(said["word"]), said["record"]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            rank, word, record = None, "", {}
        known = isinstance(rank, int) and 0 < rank < self._world
        if not (known and secrets.compare_digest(word.encode(), self.word.encode())):
            one.close()
        elif self._keep is None:
            self._waiting.append(one)
            self.records[rank] = record
        else:
            with contextlib.suppress(OSError), one:
                self._keep(rank, record)
                try:
                    one.sendall(b'{"code": 0}\n')
                finally:  # once all are counted, nobody waits for an answer to be sent
                    self.records[rank] = {}


def _listening(ports: Sequence[int], backlog: int) -> socket.socket:
    dual = socket.has_dualstack_ipv6()
    failed = OSError("no port is named")
    for port in ports:
        try:
            return socket.create_server(
                ("", port),
                family=socket.AF_INET6 if dual else socket.AF_INET,
                backlog=backlog,
                dualstack_ipv6=dual,
            )
        except OSError as error:  # noqa: PERF203 - a few ports
            failed = error
    raise failed


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
            code = json.loads(_line(one, LARGEST))["code"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return code if isinstance(code, int) else None


def _line(one: socket.socket, largest: int) -> bytes:
    got = bytearray()
    while not got.endswith(b"\n") and len(got) <= largest:
        block = one.recv(1 << 16)
        if not block:
            break
        got += block
    return bytes(got)
