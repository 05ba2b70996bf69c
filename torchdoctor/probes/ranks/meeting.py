"""How the ranks meet: the port of rank 0, held before torch is paid for, and the store."""

import errno
import json
import os
import socket
import sys
import time
from datetime import timedelta

from .interfaces import bindable
from .saying import FOLDER, HOST, OPTIONS, PACE, RANK, WORLD, Fault, Stage

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Store = Any

SLOW = 2.0
"""Seconds for one connection; whoever needs more cannot be trained over."""


def port_file() -> str:
    """Return the file by which rank 0 tells the port that it took."""
    return os.path.join(FOLDER, "port")


def bind() -> "socket.socket | None":
    """Return rank 0's socket of the meeting point: held from here on, so that nobody takes it."""
    if OPTIONS["store"] != "own":
        return None
    with Stage("port-bind") as stage:
        port = int(OPTIONS["port"])
        everywhere = not HOST.startswith("127.") and HOST != "localhost"
        dual = everywhere and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        address = "" if everywhere else "127.0.0.1"
        try:
            held = socket.create_server(
                (address, port), family=family, backlog=max(128, WORLD), dualstack_ipv6=dual
            )
        except OSError as error:
            raise Fault(
                "port-refused", "%s:%d: %s" % (HOST, port, error), errno=error.errno, port=port
            ) from error
        taken = held.getsockname()[1]
        stage.fact(port=taken)
        if not port:
            with open(port_file() + ".new", "w") as file:
                file.write(str(taken))
            os.replace(port_file() + ".new", port_file())
        return held


def port_of_rank_0(until: float) -> int:
    """Return the port that was given, or the one that rank 0 has taken."""
    port = int(OPTIONS["port"])
    while not port:
        try:
            with open(port_file()) as file:
                port = int(file.read())
        except (OSError, ValueError):
            if time.monotonic() > until:
                raise Fault("no-port", "rank 0 has taken no port", peer=0) from None
            time.sleep(0.01)
    return port


def reach() -> None:
    """Connect to rank 0 by plain TCP."""
    with Stage("tcp") as stage:
        until = time.monotonic() + PACE.limit()
        port = port_of_rank_0(until)
        took = connected_in(port, until)
        stage.fact(seconds=round(took, 4), port=port)
        if took > SLOW and not quick(port):
            text = "a connection to rank 0 (%s:%d) takes %.1f s" % (HOST, port, took)
            raise Fault("slow", text, peer=0, seconds=round(took, 1))


def connected_in(port: int, until: float) -> float:
    """Connect to rank 0 as soon as it is there; return the seconds that the connection took."""
    while True:
        start = time.monotonic()
        try:
            with socket.create_connection((HOST, port), timeout=max(0.1, until - start)):
                return time.monotonic() - start
        except OSError as error:
            if not isinstance(error, ConnectionRefusedError) or time.monotonic() > until:
                raise unreachable(0, HOST, port, error) from error
            time.sleep(0.02)  # rank 0 may not be there yet


def quick(port: int) -> bool:
    """Tell whether rank 0 is reached in a second: a busy machine is late once, a link always."""
    try:
        with socket.create_connection((HOST, port), timeout=SLOW / 2):
            return True
    except OSError:
        return False


def unreachable(peer: int, host: str, port: int, error: OSError) -> Fault:
    """Return in one word why a connection failed: refused, timeout, or by its number."""
    if isinstance(error, socket.gaierror):
        return Fault("no-address", "%s: %s" % (host, error), peer=peer, host=host)
    late = isinstance(error, socket.timeout) or error.errno == errno.ETIMEDOUT
    why = "refused" if isinstance(error, ConnectionRefusedError) else "unreachable"
    return Fault(
        "timeout" if late else why,
        "rank %d at %s:%d%s: %s" % (peer, host, port, resolved(host), error),
        peer=peer,
        host=host,
        port=port,
        errno=error.errno,
    )


def resolved(host: str) -> str:
    """Return the address that a name stands for, and whether it is one of this very machine."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return ""
    own = not address.startswith("127.") and bindable(address)
    shown = address if address != host else ""
    words = ", ".join(filter(None, (shown, "which is this very machine" if own else "")))
    return " (%s)" % words if words else ""


def open_store(dist: "ModuleType", held: "socket.socket | None") -> "Store":
    """Return the store by which the ranks meet."""
    with Stage("store") as stage:
        port = held.getsockname()[1] if held else port_of_rank_0(time.monotonic())
        given = {
            "timeout": timedelta(seconds=PACE.importing()),
            "wait_for_workers": False,
        }  # type: dict[str, object]
        master = held is not None
        if held is not None:
            if sys.platform == "win32":
                held.close()  # its store can take no socket
            else:
                given["master_listen_fd"] = held.detach()
        stage.call()
        try:
            store = dist.TCPStore(HOST, port, WORLD, master, **given)
        except TypeError:  # torch before 2.0 has no master_listen_fd
            os.close(int(str(given.pop("master_listen_fd"))))
            store = dist.TCPStore(HOST, port, WORLD, master, **given)
    # A launcher's store is there for the next attempt, too.
    return dist.PrefixStore("torchdoctor/%s" % OPTIONS["attempt"], store)


def wait_for_all(store: "Store", key: str, seconds: float) -> None:
    """Wait until every rank has set its *key*; raise who has not."""
    keys = ["%s/%d" % (key, rank) for rank in range(WORLD)]
    try:
        store.wait(keys, timedelta(seconds=seconds))
    except RuntimeError as error:
        # Without the store there is nobody to ask.
        missing = [rank for rank in range(WORLD) if not there(store, keys[rank])]
        if missing:
            text = "ranks that never came to %s: %s (%s)" % (key, missing, error)
            raise Fault("missing", text, missing=missing) from error
        raise


def there(store: "Store", key: str) -> bool:
    """Tell whether *key* is set by now."""
    try:
        store.wait([key], timedelta(milliseconds=100))
    except RuntimeError as error:
        if "imeout" not in str(error):
            raise
        return False
    return True


def check_in(store: "Store") -> None:
    """Wait until every rank is here; one may still be importing."""
    with Stage("check-in") as stage:
        gather = OPTIONS["gather"]
        if gather is not None and RANK == 0:
            store.set("gather", json.dumps(gather))
        store.set("here/%d" % RANK, "1")
        stage.call()
        if gather is not None and RANK != 0:  # first, so that it is known whoever never comes
            store.wait(["gather"], timedelta(seconds=PACE.importing()))
            stage.fact(gather=json.loads(store.get("gather")))
        wait_for_all(store, "here", PACE.importing())
