r"""On Windows, torch\lib holds no DLL of another release.

How it shows: ``[WinError 127] The specified procedure could not be found. Error loading
"...\torch\lib\caffe2_detectron_ops.dll"``, also for caffe2_observers.dll or
caffe2_module_test_dynamic.dll.

Why: torch loads every DLL in that folder. One that an upgrade, an unpacked archive or conda left
behind calls functions that the new torch_cpu.dll no longer has. torch's RECORD does not list it.

A file that is listed, and differs, is torch-files-corrupt.

The fix is to remove the file, or to uninstall torch until pip has nothing left, delete the folder
and install again.

Sources: https://github.com/pytorch/pytorch/issues/46592,
https://github.com/pytorch/pytorch/issues/37733. Windows itself was not at hand; of
caffe2_detectron_ops.dll of torch 1.10.2, torch 2.9.1 lacks 122 of the 154 functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor import dlls, places, shells, steps
from torchdoctor.facts import Build, ImportTrial, Platform, Symptom, Unknown, Windows
from torchdoctor.model import Commands, Evidence, Finding, Layer, Step

FAMILY = "files"
FINDS = ("torch-stale-dll",)
AFTER = ("torch-present",)

_GONE = re.compile(r"caffe2_(detectron_ops(_gpu)?|observers|module_test_dynamic)\.dll")
"""Files that no torch from 2.0 on has."""


def check(
    windows: Windows | Unknown | None,
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    r"""Compare what lies in torch\lib with RECORD, or the file that a message names."""
    if dlls.elsewhere(platform) or (windows is None and isinstance(symptoms, Unknown)):
        return
    strangers = windows.strangers if isinstance(windows, Windows) else Unknown()
    load = dlls.failure(windows, trial)
    if not isinstance(strangers, Unknown) and strangers:
        broken = load is not None and places.last(load.named).lower() in strangers
        files = [load.named] if broken and load else list(strangers)
        yield Finding(
            "torch-stale-dll",
            "error" if broken else "note",
            f"{places.last(files[0])} in torch\\lib is not a file of this torch"
            + (f": import torch ends in {dlls.number(load)}." if broken and load else "."),
            tuple(Evidence("windows.strangers", name, "RECORD") for name in strangers[:3]),
            tuple(_steps(files)) if broken else (),
        )
        return
    failed = dlls.told(symptoms, trial, "127")
    release = dlls.release(torch)
    new = release is None or int(release.partition(".")[0] or 0) > 1
    if failed and _GONE.fullmatch(failed.file) and new and not dlls.is_known(windows):
        yield Finding(
            "torch-stale-dll",
            "error",
            f"{failed.file} is of an older torch than the one that loads it.",
            (failed.evidence,),
            tuple(_steps([failed.path])),
            confidence="likely",
        )


def _steps(files: list[str]) -> Iterator[Step]:
    lines = shells.in_all([("del", path) for path in files]).cmd
    yield Step(
        name="remove-stale-dlls",
        title=f"Delete {', '.join(places.last(path) for path in files)} from torch\\lib",
        why="torch loads every DLL in that folder, and no package owns these.",
        layer=Layer.ENVIRONMENT,
        cost=steps.SMALL,
        effect=dlls.mended(strangers=()),
        commands=Commands(
            powershell=tuple(f"Remove-Item -LiteralPath '{path}'" for path in files),
            cmd=lines,
        ),
        deletes=True,
    )
