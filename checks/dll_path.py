r"""On Windows, torch gets its own DLLs and the system's, not other ones of the same name.

How it shows: ``[WinError 1114]``, ``127`` or ``193`` although the newest Visual C++ runtime is
installed. The registry says new, the file that wins is old.

Why: the folder of python.exe (for a virtual environment, of the Python that it was made from) comes
before System32. A conda environment, or a program that embeds Python (QGIS, MATLAB, Blender), keeps
an msvcp140.dll there which no installer of Microsoft touches. One of 14.36 or before is too old for
torch 2.9 to 2.14, one of 14.39 was seen to do.

Folders on PATH are searched only after the strict search has ended with 126. So PATH is never
blamed where the DLLs resolve without it; where a DLL of torch loads only because of PATH, that is
told as a note, as it ends when PATH changes.

The fix is a new runtime in that folder: for conda its own package, else an update of the program,
or an environment of its own for torch.

Sources:
https://learn.microsoft.com/windows/win32/dlls/dynamic-link-library-search-order,
https://github.com/pytorch/pytorch/issues/126507. Windows itself was not at hand; that order is
documented, and was seen under Wine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import conda_steps, dlls, effects, places, steps, trials
from torchdoctor.facts import (
    Build,
    Conda,
    DllLoad,
    Facts,
    ImportTrial,
    Interpreter,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Effect, Evidence, Finding, Step
from torchdoctor.tables import windows as table

FAMILY = "system"
FINDS = ("path-dll-conflict",)

_KINDS = ("old-runtime", "no-symbol", "not-whole", "wrong-machine")


def check(
    windows: Windows | None,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    interpreter: Interpreter | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Ask where the file lies that stops torch."""
    if windows is None:
        return
    load = dlls.failure(windows, trial)
    by_python = places.last(load.culprit).lower().startswith("python3") if load else False
    if load and load.kind in _KINDS and load.place in ("application", "path") and not by_python:
        name = places.last(load.culprit)
        yield Finding(
            "path-dll-conflict",
            dlls.severity(trial),
            f"{load.culprit} is taken for {name}, as its folder comes before System32, and torch "
            f"cannot work with it ({load.detail or 'it lacks what torch calls'}): import torch "
            f"ends in {dlls.number(load)}.",
            dlls.evidence(load, trial),
            tuple(_steps(load.culprit, interpreter, facts, old=load.kind == "old-runtime")),
            confidence=dlls.confidence(load, symptoms, trial, windows),
        )
    elif isinstance(windows.torch, DllLoad) and windows.torch.loads and windows.torch.by_path:
        files = [places.last(path) for path in windows.torch.by_path]
        working = "works" if trials.works(trial) else "would work"
        yield Finding(
            "path-dll-conflict",
            "note",
            f"{files[0]} finds what it needs on PATH only: torch {working} as long as PATH stays "
            "as it is.",
            tuple(
                Evidence("windows.torch.by_path", path, "the search order")
                for path in windows.torch.by_path[:3]
            ),
        )
    elif not dlls.is_known(windows) and (told := _of_versions(windows, torch, symptoms, trial)):
        path, found = told
        yield replace(found, steps=tuple(_steps(path, interpreter, facts, old=True)))


def _of_versions(
    windows: Windows,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
) -> tuple[str, Finding] | None:
    """Return the copy that is too old for *torch*, with its finding, where no file was tried."""
    has, release = dlls.runtime(windows), dlls.release(torch)
    need = table.needs(release) if release else None
    if not (need and has and has.version and dlls.is_own(has)) or trials.works(trial):
        return None
    failed = dlls.told(symptoms, trial, need.code)
    old = need.lacks(has.version)
    if not old and (failed is None or need.is_met(has.version)):
        return None
    return has.path, Finding(
        "path-dll-conflict",
        "error" if failed else "warning",
        f"{has.path} is {has.version} and is taken for {dlls.MSVCP}, and torch {release} needs "
        f"{need.at_least} or newer: {need.why}.",
        (
            Evidence("windows.copies", has.version, has.path),
            *((failed.evidence,) if failed else ()),
        ),
        confidence=("certain" if old else "possible") if failed else "likely",
    )


def _steps(
    culprit: str, interpreter: Interpreter | Unknown, facts: Facts, *, old: bool
) -> Iterator[Step]:
    conda = isinstance(facts.conda, Conda) or (
        isinstance(interpreter, Interpreter) and interpreter.kind == "conda"
    )
    if conda and old:
        package = "vc14_runtime"
        if isinstance(facts.conda, Conda) and facts.conda.get("vs2015_runtime"):
            package = "vc14_runtime" if facts.conda.get("vc14_runtime") else "vs2015_runtime"
        yield conda_steps.install(
            facts,
            f"{package}>=14.40",
            why="conda's own runtime lies beside python.exe and comes before System32's.",
            effect=_elsewhere(),
        )
        return
    yield dlls.by_hand(
        "use-own-environment",
        f"Run torch in an environment of its own, or update the program that put {culprit} there",
        why="The folder of the program comes first in every search.",
        cost=steps.ENVIRONMENT,
        effect=_elsewhere(),
    )


def _elsewhere() -> Effect:
    """Return the effect of that folder having no such file, or a new one."""
    return dlls.mended(needs=effects.TO_TRY, copies=effects.TO_TRY)
