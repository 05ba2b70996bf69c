r"""On Windows, the DLLs of torch start, or it is known what stops them.

How it shows: ``[WinError 1114] A dynamic link library (DLL) initialization routine failed`` where
the Visual C++ runtime is new enough and no other package has loaded an older one.

Why: 1114 says only that code in some DLL gave up while it started. For torch 2.9 to 2.14 one cause
is proven (vcredist-too-old, import-order-dll-conflict), and it can be read off the files. For any
other torch, or with a new runtime, it is another one, which the number does not tell: a driver, a
virus scanner that injects code, a processor without the instructions, too little memory.

There is no fix to name yet. ``python -X faulthandler -c "import torch"`` prints where it died, and
the event log (Application, Event 1000) the faulting module. To choose the discrete GPU for the
program, an advice that is often copied, does nothing for it.

Sources: https://github.com/pytorch/pytorch/pull/196987. Windows itself was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import dlls, trials
from torchdoctor.facts import Build, DllLoad, ImportTrial, Platform, Symptom, Unknown, Windows
from torchdoctor.model import Finding
from torchdoctor.tables import windows as table

FAMILY = "system"
FINDS = ("dll-init-failed",)
AFTER = ("torch-present", "torch-files", "vc-runtime", "import-order", "dll-path")


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    """Say so where 1114 was seen and nothing explains it."""
    failed = dlls.told(symptoms, trial, "1114")
    if failed is None or dlls.elsewhere(platform):
        return
    load = windows.torch if isinstance(windows, Windows) else Unknown()
    release = dlls.release(torch)
    if isinstance(load, DllLoad):
        why = "the DLLs and the Visual C++ runtime fit each other"
        if not load.loads:
            return
    elif release and table.needs(release) is None:
        why = f"torch {release} is not known to need a newer Visual C++ runtime"
    else:
        return
    yield Finding(
        "dll-init-failed",
        "error",
        f"{failed.file or 'A DLL of torch'} dies while it starts, and the reason is not known: "
        f'{why}; python -X faulthandler -c "import torch" shows where.',
        (failed.evidence, *trials.evidence(trial)),
        confidence="possible",
    )
