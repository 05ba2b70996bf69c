r"""On Windows, the Visual C++ runtime is there, and new enough for this torch.

How it shows: ``Microsoft Visual C++ Redistributable is not installed``, ``[WinError 126] ... Error
loading "...\torch\lib\c10.dll"``, or ``[WinError 1114] A dynamic link library (DLL)
initialization routine failed``; before torch 1.6 nothing but "DLL load failed: The specified module
could not be found" (https://github.com/pytorch/pytorch/issues/32916). With an old runtime, torch
from 2.15 on says 126 for shm.dll, and prints no hint.

Why: torch 2.9 to 2.14 locks mutexes while its DLLs start. msvcp140.dll up to 14.36 faults on that,
14.39 does not; of what is in between nothing is known, and nothing is said. From 2.14.1 on torch
also needs VCRUNTIME140_THREADS.dll, which 14.34 lacks and 14.40 has. The Python of python.org
brings vcruntime140.dll, but no msvcp140.dll.

What counts is the file that the loader takes, not what the registry says of an installer. So the
DLLs are read where they are at hand, and the registry alone never clears anything. When System32 is
in order and the old copy lies beside python.exe, it is path-dll-conflict; when another package has
loaded one, import-order-dll-conflict. An older torch hides the fault, a newer one changes its
message: the runtime comes first.

The fix is the newest redistributable from Microsoft, never a DLL from a download page.

Sources: https://github.com/pytorch/pytorch/pull/196987,
https://github.com/microsoft/STL/issues/4730, https://github.com/pytorch/pytorch/pull/39841,
https://learn.microsoft.com/cpp/windows/latest-supported-vc-redist. Windows itself was not at hand:
the cause was reproduced with the real files under Wine.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import dlls, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    DllLoad,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    Windows,
    items_of,
)
from torchdoctor.model import Confidence, Evidence, Finding
from torchdoctor.tables import windows as table

FAMILY = "system"
FINDS = ("vcredist-missing", "vcredist-too-old")

WHY = "torch and its DLLs need this runtime, and the newest one serves every release."
_PARTS = ("msvcp140", "vcruntime140", "concrt140", "vcomp140")
_FIRST = ("c10.dll", "asmjit.dll", "caffe2_detectron_ops.dll", "caffe2_module_test_dynamic.dll")
"""What torch loads first, by release: named when the runtime is not there."""
HINTS_SINCE = (1, 6)
"""The release from which on torch names the DLL, and says when the runtime is not there."""


def check(
    windows: Windows | Unknown | None,
    torch: Build | Unknown | None,
    platform: Platform | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
) -> Iterator[Finding]:
    """Judge the files where they are known, else the versions, else the message."""
    if dlls.elsewhere(platform) or (windows is None and isinstance(symptoms, Unknown)):
        return
    load = dlls.failure(windows, trial)
    if load:
        yield from _of_files(load, windows, symptoms, trial)
    elif not dlls.is_known(windows) and not trials.works(trial):
        yield from _of_versions(windows, torch, symptoms, trial, distributions)


def _of_files(
    load: DllLoad,
    windows: Windows | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    own = load.kind == "old-runtime" and load.place == "system32"
    lost = load.kind == "missing" and load.culprit.lower().startswith(_PARTS)
    if not (own or lost):
        return
    has = dlls.runtime(windows)
    version = has.version if has and has.version else None
    if own or (version and load.culprit.lower() != dlls.MSVCP):
        where = load.culprit if own else f"it has no {load.culprit}"
        name = "vcredist-too-old"
        said = f"The Visual C++ runtime {version or ''} is too old for this torch ({where})"
    else:
        name = "vcredist-missing"
        said = f"{load.culprit} of the Visual C++ runtime is nowhere that the loader looks"
    registry = ""
    if isinstance(windows, Windows) and not isinstance(windows.needs, Unknown):
        deceived = next((n for n in windows.needs if n.contradicts_registry), None)
        registry = f", although the registry has {deceived.registered}" if deceived else ""
    yield Finding(
        name,
        dlls.severity(trial),
        f"{said.replace('  ', ' ')}{registry}: import torch ends in {dlls.number(load)}.",
        dlls.evidence(load, trial),
        (dlls.vc_redist(why=WHY),),
        confidence=dlls.confidence(load, symptoms, trial, windows),
    )


def _of_versions(
    windows: Windows | Unknown | None,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
) -> Iterator[Finding]:
    release = dlls.release(torch)
    need = table.needs(release) if release else None
    has = dlls.runtime(windows)
    failed = dlls.told(symptoms, trial, "1114", "126")
    judged = bool(need and has and has.version and not dlls.is_own(has))
    old = bool(judged and need and has and has.version and need.lacks(has.version))
    unsure = bool(judged and need and has and not old and not need.is_met(has.version or ""))
    if need and has and has.version and old:
        where = has.path or "a list of programs"
        yield Finding(
            "vcredist-too-old",
            "error" if failed else "warning",
            f"The Visual C++ runtime is {has.version}, and torch {release} needs {need.at_least} "
            f"or newer: {need.why}.",
            (
                Evidence("windows.registered", has.version, where),
                *((failed.evidence,) if failed else ()),
            ),
            (dlls.vc_redist(why=WHY),),
            confidence="certain" if failed and failed.code == need.code else "likely",
        )
    elif release and _is_nowhere(windows):
        yield Finding(
            "vcredist-missing",
            "error" if failed else "warning",
            "msvcp140.dll of the Visual C++ runtime is neither in System32 nor beside python.exe, "
            f"and torch {release} needs it.",
            (Evidence("windows.copies", "none in System32", "the folders"),),
            (dlls.vc_redist(why=WHY),),
            confidence="likely",
        )
    elif failed and _is_mute(failed, release) and not has:
        yield _guess(
            "vcredist-missing",
            f"A DLL that torch {release} needs is not found, and this release does not say which: "
            "mostly vcruntime140_1.dll or msvcp140.dll of the Visual C++ runtime",
            failed,
            "possible",
        )
    elif failed and failed.code == "1114" and not (release and not need) and (unsure or not has):
        carrier = bool(dlls.carriers(distributions, symptoms))
        yield _guess(
            "vcredist-too-old",
            f"{failed.file or 'A DLL of torch'} dies while it starts, as from torch 2.9 on it does "
            "with a Visual C++ runtime of 14.36 or before",
            failed,
            "possible" if carrier or unsure else "likely",
            ("import-order-dll-conflict",) if carrier else (),
        )
    elif failed and failed.code == "126" and failed.file in _FIRST and not _hinted(symptoms):
        first = failed.file.startswith("caffe2")
        yield _guess(
            "vcredist-missing",
            f"{failed.file} is the first DLL that torch loads, and something that it needs is not "
            "there: mostly msvcp140.dll of the Visual C++ runtime",
            failed,
            "possible" if first else "likely",
        )


def _is_mute(failed: dlls.Told, release: str | None) -> bool:
    """Tell whether *release* is one that neither names a DLL nor looks for the runtime itself."""
    numbers = (release or "").split(".")[:2]
    if failed.code != "126" or failed.file or not all(n.isdigit() for n in numbers):
        return False
    return tuple(map(int, numbers)) < HINTS_SINCE


def _is_nowhere(windows: Windows | Unknown | None) -> bool:
    """Tell whether all folders were looked at and none that torch searches has msvcp140.dll."""
    if not isinstance(windows, Windows) or isinstance(windows.copies, Unknown):
        return False
    return not any(c.role != "package" or "\\library\\" in c.path.lower() for c in windows.copies)


def _guess(
    name: str,
    said: str,
    failed: dlls.Told,
    confidence: Confidence,
    because_of: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        name,
        "error",
        f"{said}.",
        (failed.evidence,),
        (dlls.vc_redist(why=WHY),),
        confidence=confidence,
        because_of=because_of,
    )


def _hinted(symptoms: tuple[Symptom, ...] | Unknown) -> bool:
    """Tell whether torch itself said that the runtime is not there; dll-named has that."""
    known = items_of(symptoms)
    return any(s.name in ("vc-runtime-not-found", "runtime-dll-not-found") for s in known)
