"""Another library in the process needs the cuDNN major that torch brings.

How it shows: "Could not load library libcudnn_ops_infer.so.8" from CTranslate2 (faster-whisper,
WhisperX) or ONNX Runtime beside a newer torch; "Unable to load any of {libcudnn_ops.so.9.1.0 ...}"
beside an older one. torch itself works.

Why: up to 2.3 torch brings cuDNN 8, from 2.4 on cuDNN 9, and a library that was built for the other
major finds none. CTranslate2 needs cuDNN 9 from 4.5.0 on.

Not to be confused with torch's own cuDNN that is absent or of a wrong minor version: then the
library that is named has torch's major.

The fix is the release of the other library for this cuDNN; torch stays as it is.

Sources: https://github.com/SYSTRAN/faster-whisper/issues/1086,
https://github.com/OpenNMT/CTranslate2/releases/tag/v4.5.0, METADATA of the torch wheels
"""

import re
from collections.abc import Iterator, Mapping

from torchdoctor import nvidia, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step

FAMILY = "versions"
FINDS = ("cudnn-major-mismatch",)

CTRANSLATE2: Mapping[str, str] = {"8": "4.4.0", "9": ">=4.5"}
"""The releases of CTranslate2 for each cuDNN major."""
FASTER_WHISPER = ("ctranslate2", "faster-whisper", "whisperx")


def check(
    symptoms: tuple[Symptom, ...],
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    runtime: Runtime | Unknown,
    platform: Platform | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the major of the library that was not found with the one of torch."""
    said = next((s for s in symptoms if s.name in NAMES and _wanted(s)), None)
    if said is None or torch is None:
        return
    wanted = _wanted(said)
    has = nvidia.cudnn_major(torch, distributions, runtime, platform)
    old = wanted == "8" and "_infer" in said.values.get("library", "")
    if has is None and not old:
        raise CannotTell("which cuDNN torch brings is not known")
    if has == wanted:
        return
    brings = f"torch brings cuDNN {has}" if has else "no cuDNN 8 is to be found"
    yield Finding(
        "cudnn-major-mismatch",
        "error",
        f"A library in the process needs cuDNN {wanted} ({said.values['library'].rstrip('.')}), "
        f"and {brings}.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_steps(has or "9", distributions, facts)),
        confidence="certain" if has else "possible",
    )


NAMES = ("cudnn-library-missing", "shared-library-missing")


def _wanted(symptom: Symptom) -> str | None:
    """Return the cuDNN major of the library that a message names."""
    library = symptom.values.get("library", "").rpartition("/")[2]
    found = re.match(r"libcudnn\w*\.so\.(\d+)", library) or re.match(
        r"cudnn\w*64_(\d+)\.dll", library
    )
    return found[1] if found else None


def _steps(
    has: str, distributions: tuple[Distribution, ...] | Unknown, facts: Facts
) -> Iterator[Step]:
    known = items_of(distributions)
    whole = any(d.metadata for d in known)  # they were looked for; a pasted list may be a part
    here = not whole or any(d.name in FASTER_WHISPER for d in known)
    if here and (fitting := CTRANSLATE2.get(has)):
        why = f"It is built for cuDNN {has}, which this torch brings."
        yield steps.pip_install(facts, "ctranslate2", fitting, why=why)
