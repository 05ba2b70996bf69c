r"""On Windows, a DLL of torch loads, as far as the message names what is behind it.

How it shows: "[WinError 126] The specified module could not be found. Error loading
...\torch\lib\fbgemm.dll or one of its dependencies"; "Microsoft Visual C++ Redistributable is not
installed".

Why: WinError 126 names the DLL that was to be loaded, and what is absent is mostly one that it
needs. fbgemm.dll of torch 2.4.0 needs libomp140.x86_64.dll, which comes with Visual Studio only.
shm.dll of torch 2.3.0 needs the DLLs of the mkl package, which lie outside the search path after
an install into the user folder. torch looks for the Visual C++ runtime by itself and says so.

Of another DLL, the message alone does not tell what is absent, and nothing is said here.

The fix is the next patch release of torch, or the runtime from Microsoft; never a single DLL from
a download page.

Sources: https://github.com/pytorch/pytorch/issues/131662,
https://github.com/pytorch/pytorch/issues/125109, torch/__init__.py, _load_dll_libraries
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchdoctor import choose, dlls, gpu, places, steps, trials
from torchdoctor.facts import Build, Facts, ImportTrial, Platform, Symptom, Unknown, Windows
from torchdoctor.model import Evidence, Finding

FAMILY = "files"
FINDS = ("libomp140-missing", "mkl-dll-not-found", "vcredist-missing")

NOT_FOUND = "126"


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
    facts: Facts,
) -> Iterator[Finding]:
    """Look the DLL up, then what was said of the runtime."""
    if dlls.is_known(windows):
        return  # the files say more than the message: dll-closure, vc-runtime
    if isinstance(platform, Platform) and platform.system != "win32":
        return
    failed = [s for s in symptoms if s.name == "winerror-dll" and s.values.get("code") == NOT_FOUND]
    if not failed or trials.works(trial):
        return
    if runtime := gpu.symptom(symptoms, "vc-runtime-not-found", "runtime-dll-not-found"):
        yield _runtime(runtime, failed[0])
        return
    for said in failed:
        file = places.last(said.values.get("file", "")).lower()
        known = KNOWN.get(file)
        if known and (not isinstance(torch, Build) or torch.public == known.release):
            yield _dll(file, known, said, torch, facts)
            return


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
