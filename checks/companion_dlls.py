r"""On Windows, the compiled parts of torchvision and torchaudio find all that they need.

How it shows: ``Could not load this library: ...\_torchaudio.pyd``, ``operator torchvision::nms does
not exist``, ``Failed to load image Python extension``; torchvision drops the error of Windows.

Why: they call functions of torch's DLLs by their C++ names, which change from release to release,
so each fits its own torch only. libtorchaudio.pyd also needs VCOMP140.DLL, a part of the Visual C++
runtime that neither python.org's Python nor torch brings. The import tables of the files tell.

Versions that do not belong together have a check of their own (trio-misaligned), which explains a
function that is not there. TORCHVISION_WARN_WHEN_EXTENSION_LOADING_FAILS=1 makes torchvision say
what happened.

The fix is the release of the companion that belongs to the installed torch, or the runtime.

Sources: https://github.com/pytorch/vision/issues/7294, https://github.com/pytorch/audio/issues/3282,
the import tables of the wheels. Windows itself was not at hand, and Wine loads such files anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import dlls, places, steps, trials
from torchdoctor.facts import DllLoad, Facts, ImportTrial, Unknown, Windows
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "versions"
FINDS = ("companion-dll-unfit",)
AFTER = ("torch-present",)


def check(
    windows: Windows | None,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Say what the loader would say of their files, once torch is loaded."""
    if windows is None or isinstance(windows.companions, Unknown):
        return
    for name, load in windows.companions.items():
        tried = trials.of_companion(companion_trials, name)
        if load.loads or not load.kind:
            continue
        lost = f"{load.culprit}, which is nowhere"
        few = (
            f"{places.last(load.culprit)} of this torch lacks {load.symbols[0][:60]}"
            + (f" and {len(load.symbols) - 1} more" if len(load.symbols) > 1 else "")
            if load.symbols
            else load.detail
        )
        what = f"needs {lost}" if load.kind == "missing" else f"does not fit: {few}"
        yield Finding(
            "companion-dll-unfit",
            "warning",
            f"{places.last(load.named)} of {name} {what} (WinError {load.error}).",
            (
                Evidence(f"windows.companions.{name}", " -> ".join(load.chain), "import tables"),
                *trials.evidence(tried),
            ),
            tuple(_steps(name, load, facts)),
            confidence="likely" if load.assumed else "certain",
            because_of=("trio-misaligned",),
        )


def _steps(name: str, load: DllLoad, facts: Facts) -> Iterator[Step]:
    if load.kind == "missing" and load.culprit.lower().startswith(("vcomp140", "msvcp140")):
        yield dlls.vc_redist(why=f"{load.culprit} is a part of it.")
    elif (
        step := steps.align_companions(facts, [name], why="It is built for this torch.")
    ) is not None:
        yield step
