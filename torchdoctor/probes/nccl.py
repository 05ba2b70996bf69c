"""Have NCCL choose the network interface by which its ranks would meet; no GPU is needed for that.

Its source is piped to the interpreter under test, with ``{"path": "..."}`` as its argument: the
libnccl to ask, or an empty text for the one that torch would take. One JSON object a line; the
last one has ``done``. NCCL is loaded into this process and ncclGetUniqueId is called, which reads
NCCL's variables and conf files, looks at the interfaces and opens a socket. torch is not imported.

Sources: NCCL src/bootstrap.cc and src/include/nccl.h.in.
"""

from __future__ import annotations

import os
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

CHANNEL = os.dup(1)
os.dup2(2, 1)  # NCCL prints to the standard output

import ctypes  # noqa: E402
import json  # noqa: E402
import tempfile  # noqa: E402

IN_ENVIRONMENT = ("nvidia/nccl/lib/libnccl.so.2", "../../libnccl.so.2")
"""Where a wheel puts it, and where conda does, below the folders that are imported from."""
LONGEST = 16 * 1024
ID_BYTES = 128


def say(**what: object) -> None:
    """Write one line of the answer."""
    os.write(CHANNEL, (json.dumps(what) + "\n").encode("ascii", "backslashreplace"))


def found(path: str) -> str:
    """Return the library to ask: *path*, or the first one of the environment."""
    places = [path] if path else [os.path.join(e, p) for e in sys.path for p in IN_ENVIRONMENT]
    return next((os.path.normpath(place) for place in places if os.path.isfile(place)), "")


def ask(path: str) -> dict[str, object]:
    """Return the version of the library, what it answered, and what it logged on the way."""
    log = tempfile.TemporaryFile(dir=".")  # noqa: SIM115 - it goes with this process
    os.environ["NCCL_DEBUG"] = "INFO"
    os.environ["NCCL_DEBUG_SUBSYS"] = "INIT,ENV,NET,BOOTSTRAP"
    os.environ["NCCL_DEBUG_FILE"] = "/proc/self/fd/%d" % log.fileno()
    library = ctypes.CDLL(path)
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    say(version=number.value)
    code = library.ncclGetUniqueId(ctypes.create_string_buffer(ID_BYTES))
    said = b""
    if hasattr(library, "ncclGetLastError"):
        library.ncclGetLastError.restype = ctypes.c_char_p
        said = library.ncclGetLastError(None) or b""
    ctypes.CDLL(None).fflush(None)  # NCCL's own file has lines in hand
    log.seek(0)
    text = log.read(LONGEST).decode("utf-8", "backslashreplace")
    return {"code": code, "said": said.decode("utf-8", "backslashreplace"), "log": text}


def main() -> None:
    """Find the library, and ask it."""
    errors = {}
    try:
        path = found(json.loads(sys.argv[1])["path"])
        say(path=path)
        if path:
            say(**ask(path))
    except BaseException as failure:
        errors["nccl"] = "%s: %s" % (type(failure).__name__, str(failure)[:400])
    say(errors=errors, done=True)
    os._exit(0)  # NCCL's thread of the bootstrap waits for ranks


if __name__ == "__main__":
    main()
