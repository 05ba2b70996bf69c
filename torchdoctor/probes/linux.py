"""Look at what the dynamic loader has given the interpreter that runs this, and where torch is.

Its source is piped to the interpreter under test; it takes no argument.

One JSON object a line; the last one has ``done``. What fails is told under ``errors``, by the name
of what was looked at. torch is not imported, nothing is written.
"""

from __future__ import annotations

import os
import sys

if sys.path and sys.path[0] == "":
    del sys.path[0]

CHANNEL = os.dup(1)
os.dup2(2, 1)

import ctypes  # noqa: E402, F401 - torch's start loads it before anything of its own
import json  # noqa: E402

MOST = 4096
COLUMNS = 6

errors = {}  # type: dict[str, str]


def say(**what: object) -> None:
    """Write one line of the answer."""
    line = (json.dumps(what) + "\n").encode("ascii", "backslashreplace")
    while line:
        line = line[os.write(CHANNEL, line) :]


def tell(name: str, look) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    """Say under *name* what *look* returns; a failure is told."""
    try:
        say(**{name: look()})
    except BaseException as failure:
        errors[name] = "%s: %s" % (type(failure).__name__, str(failure)[:400])


def loaded() -> list[str]:
    """Return the files that are mapped, in the order of the map, each once."""
    seen = {}  # type: dict[str, None]
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            words = line.rstrip(b"\n").split(None, 5)
            if len(words) == COLUMNS and words[5].startswith(b"/") and b".so" in words[5]:
                seen[os.fsdecode(words[5])] = None
    return list(seen)[:MOST]


def program() -> dict[str, object]:
    """Return which program runs, and the variables of the loader."""
    names = ("LD_LIBRARY_PATH", "LD_PRELOAD")
    return {
        "path": os.readlink("/proc/self/exe"),
        "prefix": sys.prefix,
        "base_prefix": sys.base_prefix,
        "variables": {name: os.environ[name] for name in names if name in os.environ},
    }


def packages() -> dict[str, object]:
    """Return the folder of torch, and its version.py; nothing of it is imported."""
    from importlib.util import find_spec

    told = {"path": [str(e) for e in sys.path][:MOST]}  # type: dict[str, object]
    spec = find_spec("torch")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    told["torch"] = str(places[0]) if places else None
    if places:
        with open(os.path.join(str(places[0]), "version.py"), "rb") as file:
            told["version"] = file.read(4096).decode("utf-8", "replace")
    return told


def main() -> None:
    """Look at one thing after the other and say each at once."""
    for look in (program, loaded, packages):
        tell(look.__name__, look)
    say(errors=errors, done=True)


main()
os._exit(0)  # nothing of the environment may print at the end, or hang
