"""Every two ranks: a connection, and what goes both ways over it."""

import json
import os
import socket
import threading
import time

from .meeting import SLOW, unreachable, wait_for_all
from .saying import PACE, RANK, WORLD, Fault, Stage

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from typing import Any

    Store = Any

BULK = 64 * 1024
"""Bytes that go both ways between each two ranks: more than one packet of any size."""
CONNECT = 3.0
"""Seconds for a connection, and for what goes over it."""
MOST_PAIRS = 32
"""In a larger world a rank tries some of the others, not all."""


def pairwise(store: "Store", each: "list[dict[str, Any]]") -> None:
    """Connect to the others on the address that their backend gives away, and send both ways."""
    with Stage("pairwise") as stage:
        apart = len({one["network"] for one in each}) > 1
        inside = [r for r, one in enumerate(each) if one["address"].startswith("127.")]
        if apart and inside:
            how = {str(rank): each[rank]["interface"] for rank in inside}
            text = "ranks %s give away a loopback address: %s" % (inside, how)
            raise Fault("loopback", text, ranks=inside, how=how)
        mine = each[RANK]
        listener = socket.create_server((mine["address"], 0), backlog=max(16, WORLD))
        token = ("%032x" % int.from_bytes(os.urandom(16), "big")).encode()
        threading.Thread(target=serve, args=(listener, token), daemon=True).start()
        told = {"port": listener.getsockname()[1], "token": token.decode()}
        store.set("pair/%d" % RANK, json.dumps(told))
        stage.call()
        wait_for_all(store, "pair", PACE.limit())
        tries = [Try(peer, each, json.loads(store.get("pair/%d" % peer))) for peer in partners()]
        for one in tries:
            one.join()
        # The others may still be connecting to this rank.
        store.set("paired/%d" % RANK, "1")
        bad = [dict(one.fault.said, message=str(one.fault)) for one in tries if one.fault]
        stage.fact(seconds={str(one.peer): one.seconds for one in tries if not one.fault})
        wait_for_all(store, "paired", PACE.limit())
        listener.close()
        if bad:
            raise Fault("links", "; ".join(str(one["message"]) for one in bad), links=bad)


def partners() -> "list[int]":
    """Return the ranks that this one tries: all, or in a large world those 1, 2, 4 ... further."""
    if WORLD <= MOST_PAIRS:
        return [rank for rank in range(WORLD) if rank != RANK]
    steps = [1 << n for n in range(WORLD.bit_length()) if 1 << n < WORLD]
    return sorted({(RANK + step) % WORLD for step in steps} - {RANK})


def serve(listener: socket.socket, token: bytes) -> None:
    """Answer whoever connects, until the listener is closed."""
    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(one, token), daemon=True).start()


def answer(one: socket.socket, token: bytes) -> None:
    """Take what is sent, then say who this is and send as much."""
    try:
        with one:
            one.settimeout(PACE.limit())
            if len(receive(one, BULK)) == BULK:
                one.sendall(token + b"\0" * BULK)
    except OSError:
        pass


def receive(one: socket.socket, size: int) -> bytes:
    """Return *size* bytes, or fewer where the other side ends."""
    got = bytearray()
    while len(got) < size:
        block = one.recv(min(1 << 16, size - len(got)))
        if not block:
            break
        got += block
    return bytes(got)


class Try(threading.Thread):
    """One connection to another rank, and what became of it."""

    def __init__(self, peer: int, each: "list[dict[str, Any]]", told: "dict[str, Any]") -> None:
        super().__init__(daemon=True)
        self.peer = peer
        self.host = str(each[peer]["address"])
        self.told = told
        self.seconds = 0.0
        self.fault = None  # type: Fault | None
        self.start()

    def run(self) -> None:
        """Connect, send, receive; once more where it was slow: a busy machine is so for once."""
        self.once()
        if self.fault is not None and self.fault.said["why"] == "slow":
            self.fault = None
            self.once()

    def once(self) -> None:
        """Connect, send, receive, and keep how that went."""
        limit = PACE.limit(CONNECT)
        begin = time.monotonic()
        port = int(self.told["port"])
        try:
            one = socket.create_connection((self.host, port), timeout=limit)
        except OSError as error:
            self.fault = unreachable(self.peer, self.host, port, error)
            return
        try:
            with one:
                one.settimeout(limit)
                one.sendall(b"\0" * BULK)
                got = receive(one, 32 + BULK)
        except OSError as error:
            where = "rank %d at %s:%d" % (self.peer, self.host, port)
            text = "%s is connected, and %d bytes do not come through: %s" % (where, BULK, error)
            self.fault = Fault("stalled", text, peer=self.peer, host=self.host, port=port)
            return
        self.seconds = round(time.monotonic() - begin, 4)
        if got[:32].decode("ascii", "replace") != self.told["token"]:
            text = "%s:%d is answered by somebody else than rank %d" % (self.host, port, self.peer)
            self.fault = Fault("stranger", text, peer=self.peer, host=self.host, port=port)
        elif self.seconds > SLOW:
            text = "%d bytes to rank %d and back take %.1f s" % (BULK, self.peer, self.seconds)
            self.fault = Fault("slow", text, peer=self.peer, seconds=self.seconds)
