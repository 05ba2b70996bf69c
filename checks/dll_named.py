r"""On Windows, a DLL of torch loads, as far as the message names what is behind it.

How it shows: "[WinError 126] The specified module could not be found. Error loading
...\torch\lib\fbgemm.dll or one of its dependencies"; "Microsoft Visual C++ Redistributable is not
installed".

Why: WinError 126 names the DLL that was to be loaded, and what is absent is mostly one that it
needs. fbgemm.dll of torch 2.4.0 needs libomp140.x86_64.dll, which comes with Visual Studio only.
shm.dll of torch 2.3.0 needs the DLLs of the mkl package, which lie outside the search path after
an install into the user folder. torch looks for the Visual C++ runtime by itself and says so.

A path below ``_MEI...``, ``_internal``, or ``lib\torch\lib`` without site-packages is that of a
frozen program (PyInstaller, cx_Freeze): it has only the files that were put into it, and 126 or 127
there mean that some of torch's were not.

A torch for Intel's GPUs (an xpu build, or one that intel-extension-for-pytorch brought) needs the
oneAPI runtime, which is in packages of its own: 126 of any of its DLLs is mostly that.

Of another DLL, the message alone does not tell what is absent, and nothing is said here.

The fix is the next patch release of torch, or the runtime from Microsoft; never a single DLL from
a download page.

Sources: https://github.com/pytorch/pytorch/issues/131662,
https://github.com/pytorch/pytorch/issues/125109, torch/__init__.py, _load_dll_libraries,
https://github.com/pytorch/pytorch/issues/56362,
https://github.com/marcelotduarte/cx_Freeze/pull/1804,
https://github.com/intel/intel-extension-for-pytorch/issues/653. Windows itself was not at hand:
what 2.3.0 and 2.4.0 lack was seen in the wheels and under Wine, the rest in public reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchdoctor import choose, dlls, gpu, places, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    Windows,
    items_of,
)
from torchdoctor.model import Evidence, Finding, Layer

FAMILY = "files"
FINDS = (
    "libomp140-missing",
    "mkl-dll-not-found",
    "vcredist-missing",
    "frozen-app-missing-dll",
    "xpu-runtime-missing",
)

IPEX = "intel-extension-for-pytorch"
NOT_FOUND, NO_NAME = "126", "127"


@dataclass(frozen=True, slots=True)
class Known:
    """A DLL of one release that needs another one, which is not there."""

    finding: str
    release: str
    mended: str
    needs: str


KNOWN = {
    "fbgemm.dll": Known("libomp140-missing", "2.4.0", "2.4.1", "libomp140.x86_64.dll"),
    "shm.dll": Known("mkl-dll-not-found", "2.3.0", "2.3.1", "the DLLs of the mkl package"),
}


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
    windows: Windows | Unknown | None,
    trial: ImportTrial | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look the DLL up, then what was said of the runtime."""
    if dlls.is_known(windows) or dlls.elsewhere(platform) or trials.works(trial):
        return  # the files say more than the message: dll-closure, vc-runtime
    own = dlls.told(symptoms, trial, NOT_FOUND)
    bundled = own or dlls.told(symptoms, trial, NO_NAME)
    failed = [s for s in symptoms if s.name == "winerror-dll" and s.values.get("code") == NOT_FOUND]
    runtime = gpu.symptom(symptoms, "vc-runtime-not-found", "runtime-dll-not-found")
    if bundled and dlls.is_frozen(bundled.path, trial):
        yield _frozen(bundled)
    elif failed and runtime:
        yield _runtime(runtime, failed[0])
    elif own and own.file and _for_xpu(torch, distributions):
        yield _xpu(own, facts)
    else:
        yield from _of_release(failed, torch, facts)


def _of_release(
    failed: list[Symptom], torch: Build | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    for said in failed:
        file = places.last(said.values.get("file", "")).lower()
        known = KNOWN.get(file)
        if known and (not isinstance(torch, Build) or torch.public == known.release):
            yield _dll(file, known, said, torch, facts)
            return


def _for_xpu(
    torch: Build | Unknown | None, distributions: tuple[Distribution, ...] | Unknown
) -> bool:
    known = items_of(distributions)
    brought = any(d.name == IPEX for d in known)
    return brought or (isinstance(torch, Build) and torch.tag == "xpu")


def _xpu(own: dlls.Told, facts: Facts) -> Finding:
    known = items_of(facts.distributions)
    extension = next((d for d in known if d.name == IPEX), None)
    why = "These packages hold the DLLs of oneAPI that torch for Intel's GPUs is linked to."
    if extension:
        step = dlls.by_hand(
            "install-oneapi-runtime",
            "Install the oneAPI runtime (dpcpp-cpp-rt, mkl-dpcpp) of the release that the notes of "
            f"{extension.name} {extension.version} name",
            why=why,
            powershell=("python -m pip install dpcpp-cpp-rt mkl-dpcpp",),
            cmd=("python -m pip install dpcpp-cpp-rt mkl-dpcpp",),
            layer=Layer.PACKAGES,
        )
    else:
        step = steps.reinstall(facts, ["torch"], why=why)
    return Finding(
        "xpu-runtime-missing",
        "error",
        f"{own.file} of torch for Intel's GPUs needs a DLL that is not found, mostly one of the "
        "oneAPI runtime.",
        (own.evidence,),
        (step,) if extension or steps.owner(facts, "torch") else (),
        confidence="likely",
    )


def _frozen(told: dlls.Told) -> Finding:
    what = "a DLL that it needs" if told.code == NOT_FOUND else "another DLL that fits it"
    return Finding(
        "frozen-app-missing-dll",
        "error",
        f"The frozen program has {told.file} of torch without {what} (WinError {told.code}).",
        (told.evidence,),
        (dlls.bundle("the whole torch package"),),
        confidence="likely",
    )


def _runtime(said: Symptom, failed: Symptom) -> Finding:
    what = said.values.get("file", "The Visual C++ runtime")
    why = "torch and its DLLs are built with Visual C++ and need its runtime."
    return Finding(
        "vcredist-missing",
        "error",
        f"{what} is not on this machine, and the DLLs of torch need it.",
        tuple(Evidence("symptoms", s.text.strip()[:300], s.source) for s in (said, failed)),
        (dlls.vc_redist(why=why),),
    )


def _dll(
    file: str, known: Known, said: Symptom, torch: Build | Unknown | None, facts: Facts
) -> Finding:
    sure = isinstance(torch, Build)
    which = f"torch {known.release}" if sure else f"torch (as {known.release} has it)"
    choice = choose.choose(facts, release=known.mended)
    why = f"From {known.mended} on it does not need {known.needs}."
    return Finding(
        known.finding,
        "error",
        f"{file} of {which} needs {known.needs}, and does not find that.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (steps.change_build(facts, choice, why=why),) if choice else (),
        confidence="certain" if sure else "likely",
    )
