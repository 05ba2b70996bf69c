"""Look into the DLLs of a running Windows: a probe for torchdoctor's own interpreter.

Its argument is a JSON object: ``path``, folders to put on sys.path. A line before this source sets
``SAID``, JSON as well, which is too long for a command line: ``said``, what the probe of the
interpreter under test answered, and ``after``, what it answered after the user's own imports.
"""

import importlib
import json
import ntpath
import os
import re
import sys
from collections.abc import Mapping
from typing import Any


def layout_of(said: Mapping[str, Any], after: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the layout of the machine that *said* tells of."""
    inventory = importlib.import_module("torchdoctor.windows.inventory")
    python, packages = said["interpreter"], said["packages"]
    root = python["system_root"] or "C:\\Windows"
    base = python["base_executable"] or python["executable"]
    prefixes = dict.fromkeys((python["exec_prefix"], python["base_exec_prefix"]))
    torch = packages["torch"]
    companions = {n: packages[n] for n in ("torchvision", "torchaudio") if packages.get(n)}
    version = re.search(r"__version__\s*=\s*['\"]([^'\"]+)", packages.get("version", ""))
    cuda = re.search(r"(?m)^cuda\b[^=\n]*=\s*['\"](\d+\.\d+)", packages.get("version", ""))
    places = [(ntpath.dirname(base), "application"), (ntpath.join(root, "System32"), "system32")]
    places += [(root, "windows")]
    registered = [str(p) for p in after.get("registered", [])]
    places += [(path, "package") for path in registered]
    loaded = [ntpath.dirname(str(p)) for p in (*said.get("before", ()), *after.get("modules", ()))]
    windows = ntpath.normcase(root)
    places += [
        (path, "package")
        for path in dict.fromkeys(loaded)
        if path and not ntpath.normcase(path).startswith(windows)
    ]
    nvtools = ntpath.join(
        python["nvtools"]
        or ntpath.join(python["program_files"] or "", "NVIDIA Corporation", "NvToolsExt"),
        *("bin", "x64"),
    )
    toolkit = None
    if cuda:
        default = ntpath.join(
            python["program_files"] or "",
            "NVIDIA GPU Computing Toolkit\\CUDA\\v" + cuda[1],
        )
        name = "CUDA_PATH_V" + cuda[1].replace(".", "_")
        toolkit = ntpath.join(python["cuda_paths"].get(name, default), "bin")
    more = [torch, ntpath.join(torch, "lib"), nvtools, toolkit]
    for prefix in prefixes:
        more += [ntpath.join(prefix, "Library", "bin"), ntpath.join(prefix, "bin")]
    if python["userbase"]:
        more.append(ntpath.join(python["userbase"], "Library", "bin"))
    for folder in companions.values():
        more += [folder, ntpath.join(folder, "lib")]
    places += [(path, "package") for path in more if path]
    places += [(path, "path") for path in python["path"] if path]
    here = [(path, role) for path, role in places if os.path.isdir(path)]
    release = version[1] if version else ""
    site = ntpath.dirname(torch)
    names = [release, release.partition("+")[0]]
    records = [ntpath.join(site, "torch-%s.dist-info" % name, "RECORD") for name in names]
    return inventory.Layout(
        places=tuple(inventory.Place(path, role, path) for path, role in here),
        torch=torch,
        release=release,
        exec_prefix=python["exec_prefix"],
        base_exec_prefix=python["base_exec_prefix"],
        python=ntpath.basename(python["python_dll"] or ""),
        userbase=python["userbase"],
        cuda=toolkit,
        nvtools=nvtools,
        companions=companions,
        sites=tuple(inventory.Place(p, "package", p) for p in python["sites"]),
        record=next((r for r in records if os.path.isfile(r)), None),
    )


def main() -> None:
    """Take the record and say it."""
    answers = os.dup(1)
    os.dup2(2, 1)

    def say(**what: object) -> None:
        line = (json.dumps(what) + "\n").encode("ascii")
        while line:
            line = line[os.write(answers, line) :]

    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    sys.path[:] = [*(entry for entry in sys.path if entry), *options.get("path", [])]
    errors = {}
    try:
        given = json.loads(globals()["SAID"])
        layout = layout_of(given["said"], given.get("after") or {})
        say(record=importlib.import_module("torchdoctor.windows.inventory").take(layout))
    except Exception as failure:
        errors["record"] = "%s: %s" % (type(failure).__name__, str(failure)[:400])
    say(errors=errors, done=True)


main()
