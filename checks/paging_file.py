"""On Windows, the page file can hold what the processes of torch map.

How it shows: "[WinError 1455] The paging file is too small for this operation to complete" while a
DLL of torch is loaded, mostly in the worker processes of a DataLoader and not in the first process.

Why: Windows counts the memory that a DLL may come to write to when it is loaded, and the CUDA
DLLs are large. Every worker of a DataLoader is a new process that imports torch once more, so that
ten workers ask for ten times as much. Nothing of the install is at fault.

The fix is fewer workers, or a larger page file (best: managed by the system).

Sources: https://github.com/pytorch/pytorch/issues/35803,
https://learn.microsoft.com/windows/win32/debug/system-error-codes--1300-1699-
"""

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, steps
from torchdoctor.facts import Symptom
from torchdoctor.model import Commands, Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("paging-file-too-small",)

CODE = "1455"


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Look for the number of the error."""
    told = (s for s in symptoms if s.name == "winerror-dll" and s.values.get("code") == CODE)
    said = next(told, None)
    if said is None:
        return
    file = said.values.get("file", "").replace("\\", "/").rpartition("/")[2]
    yield Finding(
        "paging-file-too-small",
        "error",
        f"The page file of Windows cannot hold {file or 'the DLLs'} once more (WinError {CODE}).",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_steps()),
    )


def _steps() -> Iterator[Step]:
    yield steps.by_hand(
        "fewer-workers",
        "Give the DataLoader fewer workers: num_workers=0 first, then 1 or 2",
        why="Every worker maps the DLLs of torch once more.",
        layer=Layer.SCRIPT,
        cost=steps.VARIABLE,
        effect=effects.settled("winerror-dll"),
    )
    larger = steps.by_hand(
        "enlarge-page-file",
        "Let Windows manage the size of the page file, then restart",
        why="It then grows with what the processes ask for.",
        layer=Layer.RUNTIME,
        cost=steps.SMALL,
        effect=effects.settled("winerror-dll"),
        admin=True,
    )
    managed = "Set-CimInstance -Property @{AutomaticManagedPagefile=$true}"
    line = f"Get-CimInstance Win32_ComputerSystem | {managed}"
    yield replace(larger, commands=Commands(powershell=(line,)), needs=("admin", "reboot"))
