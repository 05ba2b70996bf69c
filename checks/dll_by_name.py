r"""On Windows, the CUDA DLLs of torch get those that they load by name while they run.

How it shows: ``Could not locate cudnn_graph64_9.dll. Please make sure it is in your library
path!``, ``Could not load library cudnn_ops_infer64_8.dll. Error code 126``, ``Could not locate
zlibwapi.dll``, mostly at the first convolution; or, while torch is imported, WinError 126 or 127
naming ``caffe2_nvrtc.dll``, ``c10_cuda.dll`` or a ``cudnn*.dll``.

Why: cuDNN is one DLL that loads its parts by name when they are needed, so no import table shows
them, and neither does torch's import. A wheel of torch for CUDA has all of them in torch\lib, and
zlibwapi.dll, which cuDNN from 8.3 on loads. So a part that is not found is one that was removed or
not unpacked; or another cuDNN, of another program or toolkit, was loaded first, and looks for its
own parts. The latter is also what 127 naming a part of cuDNN is.

``nvrtc: error: failed to open nvrtc-builtins64_116.dll`` is the same of NVRTC, which compiles fused
kernels: wheels have that DLL in torch\lib, conda has it in a package of its own.

A library that was built for another cuDNN than torch's is cudnn-major-mismatch.

The fix is to install torch again, whole; for another cuDNN, to import torch first.

Sources: https://github.com/pytorch/pytorch/issues/46312, https://github.com/cupy/cupy/issues/6226,
https://github.com/pytorch/builder/pull/955, https://github.com/PaddlePaddle/Paddle/issues/68673.
Windows itself was not at hand, and no wheel of torch for CUDA on Windows was opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import dlls, effects, gpu, nvidia, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Confidence, Evidence, Finding, Layer, Step

FAMILY = "files"
FINDS = ("cuda-dll-missing", "import-order-dll-conflict")

_MESSAGE = "cudnn-library-missing"
_NVRTC = re.compile(r"nvrtc-builtins64_(\d\d)(\d)\.dll")
_CUDNN = re.compile(r"cudnn\w*64_(\d+)\.dll")
_CUDA = re.compile(r"(cudnn\w*|caffe2_nvrtc|c10_cuda|torch_cuda\w*|nvrtc\w*|nvtoolsext\w*)\.dll")


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    trial: ImportTrial | Unknown,
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    runtime: Runtime | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which DLL was looked for, and by what."""
    if dlls.elsewhere(platform):
        return
    if builtins := _of_nvrtc(symptoms):
        yield _no_builtins(builtins, facts)
        return
    said = gpu.symptom(symptoms, _MESSAGE)
    library = said.values.get("library", "").rpartition("\\")[2] if said else ""
    if said and library.lower() == "zlibwapi.dll":
        yield _foreign(
            f"{library} was not found: cuDNN loads it by name, and torch brings it beside its own "
            "cuDNN, so another one was probably loaded first",
            Evidence("symptoms", said.text.strip()[:300], said.source),
        )
    elif said and (wanted := _CUDNN.fullmatch(library.lower())):
        own = nvidia.cudnn_major(torch or Unknown(), distributions, runtime, platform)
        if own and own != wanted[1]:
            return  # of another cuDNN than torch's: cudnn-major-mismatch
        yield _missing(
            f"{library} was not found: cuDNN loads it by name, and torch's wheel has it in "
            "torch\\lib",
            (Evidence("symptoms", said.text.strip()[:300], said.source),),
            facts,
            "likely",
        )
    elif not dlls.is_known(windows):
        yield from _of_number(symptoms, trial, facts)


def _of_nvrtc(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return that NVRTC did not find its other DLL."""
    failed = (s for s in symptoms if s.name == "nvrtc-failed")
    return next((s for s in failed if _NVRTC.fullmatch(s.values.get("library", ""))), None)


def _no_builtins(said: Symptom, facts: Facts) -> Finding:
    library = said.values["library"]
    found = _NVRTC.fullmatch(library)
    assert found is not None
    finding = _missing(
        f"{library}, which NVRTC of CUDA {found[1]}.{found[2]} loads by name, was not found; pip's "
        "wheel of torch has it in torch\\lib, conda in cuda-nvrtc",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        facts,
        "likely",
    )
    if finding.steps:
        return finding
    put = dlls.by_hand(
        "bring-nvrtc-builtins",
        f"Bring {library}: conda's package cuda-nvrtc of CUDA {found[1]}.{found[2]}, or torch from "
        "pip, whose wheel has it",
        why="NVRTC loads it the first time that it compiles a kernel.",
        layer=Layer.PACKAGES,
        effect=effects.settled("nvrtc-failed"),
        powershell=(f"conda install -c nvidia cuda-nvrtc={found[1]}.{found[2]}",),
        cmd=(f"conda install -c nvidia cuda-nvrtc={found[1]}.{found[2]}",),
    )
    return replace(finding, steps=(put,))


def _of_number(
    symptoms: tuple[Symptom, ...], trial: ImportTrial | Unknown, facts: Facts
) -> Iterator[Finding]:
    """Judge the numbers of the loader, where the files were not looked into."""
    failed = dlls.told(symptoms, trial, "126", "127")
    if failed is None or not _CUDA.fullmatch(failed.file) or dlls.is_frozen(failed.path, trial):
        return
    if failed.code == "127" and _CUDNN.fullmatch(failed.file):
        yield _foreign(
            f"{failed.file} calls what the rest of cuDNN does not have (WinError 127): the parts "
            "of another cuDNN were probably loaded first",
            failed.evidence,
        )
    elif failed.code == "126":
        yield _missing(
            f"{failed.file} needs a DLL that is not found (WinError 126): another part of CUDA "
            "from torch\\lib, or nvcuda.dll of the driver",
            (failed.evidence, *trials.evidence(trial)),
            facts,
            "possible",
        )


def _missing(
    said: str, seen: tuple[Evidence, ...], facts: Facts, confidence: Confidence
) -> Finding:
    why = "Every part of CUDA and cuDNN is written again, as published."
    return Finding(
        "cuda-dll-missing",
        "error",
        f"{said}.",
        seen,
        (steps.reinstall(facts, ["torch"], why=why),) if steps.owner(facts, "torch") else (),
        confidence=confidence,
        because_of=("cudnn-major-mismatch", "torch-files-missing"),
    )


def _foreign(said: str, seen: Evidence) -> Finding:
    return Finding(
        "import-order-dll-conflict",
        "error",
        f"{said}.",
        (seen,),
        (_first(),),
        confidence="possible",
        because_of=("cudnn-major-mismatch",),
    )


def _first() -> Step:
    cured = effects.settled(_MESSAGE, "winerror-dll")
    return dlls.torch_first("every other package", effect=cured)
