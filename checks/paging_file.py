"""On Windows, the page file can hold what the processes of torch map.

How it shows: "[WinError 1455] The paging file is too small for this operation to complete" while a
DLL of torch is loaded, mostly in the worker processes of a DataLoader and not in the first process.

Why: Windows counts the memory that a DLL may come to write to when it is loaded, and the CUDA
DLLs are large. Every worker of a DataLoader is a new process that imports torch once more, so that
ten workers ask for ten times as much. Nothing of the install is at fault.

Where torch's DLLs and the memory of the machine are known, both are told: how much one process may
come to ask for, which is an estimate from above, and how much can still be committed. Where not
even one process fits, that is told without a message.

The fix is fewer workers, or a larger page file (best: managed by the system).

Sources: https://github.com/pytorch/pytorch/issues/35803,
https://learn.microsoft.com/windows/win32/debug/system-error-codes--1300-1699-,
https://learn.microsoft.com/windows/win32/api/sysinfoapi/ns-sysinfoapi-memorystatusex. Windows
itself was not at hand: the number is read from messages, the sizes were seen under Wine.
"""

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import dlls, effects, steps, trials
from torchdoctor.facts import ImportTrial, Platform, Symptom, Unknown, Windows, items_of
from torchdoctor.model import CannotTell, Commands, Effect, Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("paging-file-too-small",)

CODE = "1455"
GB = 1 << 30


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    """Look for the number of the error, else compare what is left with what torch maps."""
    if dlls.elsewhere(platform):
        return
    known = items_of(symptoms)
    told = (s for s in known if s.name == "winerror-dll" and s.values.get("code") == CODE)
    said = next(told, None)
    sizes = _sizes(windows)
    if said is None:
        if isinstance(symptoms, Unknown) and sizes is None:
            raise CannotTell(symptoms.reason)
        yield from _before_it_fails(sizes, trial)
        return
    file = said.values.get("file", "").replace("\\", "/").rpartition("/")[2]
    yield Finding(
        "paging-file-too-small",
        "error",
        f"The page file of Windows cannot hold {file or 'the DLLs'} once more (WinError {CODE})"
        f"{f': {_estimate(*sizes)}' if sizes else ''}.",
        (Evidence("symptoms", said.text.strip()[:300], said.source), *_evidence(sizes)),
        tuple(_steps()),
    )


def _sizes(windows: Windows | Unknown | None) -> tuple[int, int] | None:
    """Return the bytes that torch's DLLs take in one process, and those that are left."""
    if not isinstance(windows, Windows):
        return None
    takes, left = windows.image_size, windows.commit_available
    return (takes, left) if isinstance(takes, int) and isinstance(left, int) else None


def _estimate(takes: int, left: int) -> str:
    return (
        f"a process of torch takes up to {takes / GB:.1f} GB for its DLLs, and {left / GB:.1f} GB "
        f"are left, enough for {left // max(takes, 1)} of them"
    )


def _evidence(sizes: tuple[int, int] | None) -> tuple[Evidence, ...]:
    if sizes is None:
        return ()
    return (
        Evidence("windows.image_size", str(sizes[0]), "SizeOfImage of torch's DLLs"),
        Evidence("windows.commit_available", str(sizes[1]), "GlobalMemoryStatusEx"),
    )


def _before_it_fails(
    sizes: tuple[int, int] | None, trial: ImportTrial | Unknown
) -> Iterator[Finding]:
    if sizes is None or sizes[1] >= sizes[0]:
        return
    said = _estimate(*sizes)
    yield Finding(
        "paging-file-too-small",
        "note" if trials.works(trial) else "warning",
        f"{said[0].upper()}{said[1:]}: Windows may refuse to load them (WinError {CODE}).",
        _evidence(sizes),
        tuple(_steps()),
        confidence="possible",
    )


def _enough() -> Effect:
    """Return the effect of there being room again; how much is seen when it is tried."""
    room = dlls.becomes(commit_available=effects.TO_TRY)
    return effects.then(effects.settled("winerror-dll"), room)


def _steps() -> Iterator[Step]:
    yield steps.by_hand(
        "fewer-workers",
        "Give the DataLoader fewer workers: num_workers=0 first, then 1 or 2",
        why="Every worker maps the DLLs of torch once more.",
        layer=Layer.SCRIPT,
        cost=steps.VARIABLE,
        effect=_enough(),
    )
    larger = steps.by_hand(
        "enlarge-page-file",
        "Let Windows manage the size of the page file, then restart",
        why="It then grows with what the processes ask for.",
        layer=Layer.RUNTIME,
        cost=steps.SMALL,
        effect=_enough(),
        admin=True,
    )
    managed = "Set-CimInstance -Property @{AutomaticManagedPagefile=$true}"
    line = f"Get-CimInstance Win32_ComputerSystem | {managed}"
    yield replace(larger, commands=Commands(powershell=(line,)), needs=("admin", "reboot"))
