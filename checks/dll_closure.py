r"""On Windows, every DLL that torch needs is there, whole, and has what is called in it.

How it shows: ``[WinError 126]``, ``127``, ``182`` or ``193``. The DLL that the message names is the
one that torch asked for. What is wrong is mostly another one, which that one needs: shm.dll is
named for everything that torch_cpu.dll lacks.

Why: a file was left out, removed by a virus scanner or cut off; a library that torch expects from
elsewhere is not installed; or the file that is found is of another release. The import tables of
the files tell which, and the chain leads from the named file to the one that is wrong.

The Visual C++ runtime has a check of its own, and so have DLLs that another program puts in the
way. The number tells the kind: 126 a file, 127 a name in it, 182 an ordinal, 193 no whole file or
one for another processor.

The fix depends on whose file it is: reinstall torch for its own, the next patch release where a
release was published with a need that no package serves, never a single DLL from a download page.

Sources: https://github.com/pytorch/pytorch/issues/131662,
https://github.com/pytorch/pytorch/issues/125109,
https://learn.microsoft.com/windows/win32/debug/pe-format. Windows itself was not at hand: missing
files were seen under Wine, 127, 182 and cut dependencies were not (its loader is laxer there).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, dlls, effects, places, steps
from torchdoctor.facts import (
    Build,
    DllLoad,
    Facts,
    ImportTrial,
    Interpreter,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Finding, Step
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = (
    "libomp140-missing",
    "mkl-dll-not-found",
    "xpu-runtime-missing",
    "frozen-app-missing-dll",
    "dll-missing",
    "dll-symbol-missing",
    "dll-wrong-machine",
    "torch-files-missing",
    "torch-files-corrupt",
    "python-micro-too-old",
)
AFTER = ("torch-present", "torch-files")

_RUNTIME = ("msvcp140", "vcruntime140", "concrt140", "vcomp140")
_XPU = re.compile(r"(sycl|ur_|pi_|libmmd|svml_dispmd|tcm|umf|dnnl|pti)", re.IGNORECASE)
_PYTHON = re.compile(r"python3\d+t?\.dll", re.IGNORECASE)


_BECAUSE_OF = {
    "no-symbol": ("torch-stale-dll",),
    "wrong-machine": ("python-32bit", "interpreter-emulated"),
    "missing": ("wrong-interpreter",),
}


def check(
    windows: Windows | None,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    interpreter: Interpreter | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Name the file that stops the import, and whose it is."""
    load = dlls.failure(windows, trial)
    if load is None or load.kind == "old-runtime" or _of_others(load):
        return
    name, said = _named(load, torch, interpreter)
    yield Finding(
        name,
        dlls.severity(trial),
        f"{said}: import torch ends in {dlls.number(load)}.",
        dlls.evidence(load, trial),
        tuple(_steps(name, load, facts)),
        confidence=dlls.confidence(load, symptoms, trial),
        because_of=_BECAUSE_OF.get(load.kind, ()),
    )


def _of_others(load: DllLoad) -> bool:
    """Tell whether the runtime, or a file in the way, is the subject of another check."""
    culprit = places.last(load.culprit).lower()
    if load.kind == "missing":
        return culprit.startswith(_RUNTIME)
    if _PYTHON.fullmatch(culprit):
        return False
    return load.place in ("application", "path") or (
        load.kind == "no-symbol" and load.place in ("registered", "package", "loaded")
    )


def _named(
    load: DllLoad, torch: Build | Unknown | None, interpreter: Interpreter | Unknown
) -> tuple[str, str]:
    """Return the finding and the sentence for what stops the import."""
    match load.kind:
        case "no-extension":
            return "torch-files-missing", "The compiled part of torch, _C*.pyd, is not there"
        case "not-whole":
            return "torch-files-corrupt", f"{load.culprit} is no whole file ({load.detail})"
        case "wrong-machine":
            return "dll-wrong-machine", f"{load.culprit} does not fit: {load.detail}"
        case "no-symbol":
            return _without_symbol(load, interpreter)
        case _:
            return _absent(load, torch.tag if isinstance(torch, Build) else None)


def _without_symbol(load: DllLoad, interpreter: Interpreter | Unknown) -> tuple[str, str]:
    some, asks = ", ".join(load.symbols[:2]), _asks(load)
    if not _PYTHON.fullmatch(places.last(load.culprit)):
        return "dll-symbol-missing", f"{load.culprit} lacks {some}, which {asks} calls"
    version = f" {interpreter.version}" if isinstance(interpreter, Interpreter) else ""
    said = f"Python{version} ({load.culprit}) lacks {some}, which {asks} calls"
    return "python-micro-too-old", said


def _absent(load: DllLoad, tag: str | None) -> tuple[str, str]:
    low, needs = load.culprit.lower(), f"{_asks(load)} needs {load.culprit}"
    if low == "libomp140.x86_64.dll":
        return "libomp140-missing", f"{needs}, which comes with Visual Studio only"
    if low.startswith("mkl_"):
        return "mkl-dll-not-found", f"{needs}, and torch does not look where it is"
    if tag == "xpu" and _XPU.match(low):
        return "xpu-runtime-missing", f"{needs} of the oneAPI runtime"
    if dlls.is_frozen(load.named):
        return "frozen-app-missing-dll", f"The frozen program was built without {load.culprit}"
    if libraries.suppliers(low) == ("torch",) or low in ("shm.dll", "asmjit.dll"):
        return "torch-files-missing", f"{needs}, a file of torch that is not there"
    return "dll-missing", f"{needs}, which is nowhere that the loader looks"


def _asks(load: DllLoad) -> str:
    return load.chain[-2] if len(load.chain) > 1 else "torch"


def _steps(name: str, load: DllLoad, facts: Facts) -> Iterator[Step]:
    owner = steps.owner(facts, "torch")
    if name == "mkl-dll-not-found" and owner and not owner.user_site:
        mkl = steps.pip_install(
            facts, "mkl", "2021.4.0", why="torch 2.3 on Windows takes MKL from this package."
        )
        yield replace(mkl, effect=effects.then(mkl.effect, dlls.mended()))
    release = {"libomp140-missing": "2.4.1", "mkl-dll-not-found": "2.3.1"}.get(name)
    known = facts.torch if isinstance(facts.torch, Build) else None
    if release and known and known.public.startswith(release[:4]) and known.public != release:
        choice = choose.choose(facts, release=release)
        why = f"From {release} on it no longer needs that file, or looks where it is."
        if choice:
            yield steps.change_build(facts, choice, why=why)
    if name in ("torch-files-missing", "torch-files-corrupt", "dll-symbol-missing"):
        if load.place in ("torch", "") and steps.owner(facts, "torch"):
            yield steps.reinstall(
                facts, ["torch"], why="Every file of torch is written again, as published."
            )
        return
    if name == "xpu-runtime-missing" and steps.owner(facts, "torch"):
        yield steps.reinstall(
            facts, ["torch"], why="The packages of the oneAPI runtime come with the xpu build."
        )
    if name == "python-micro-too-old" and (choice := choose.choose(facts)):
        tag = facts.interpreter.tag if isinstance(facts.interpreter, Interpreter) else "3.12"
        yield steps.new_environment(
            facts, tag, choice, why="The newest patch release of this Python has those names."
        )
    if name == "frozen-app-missing-dll":
        yield dlls.bundle(load.culprit)
