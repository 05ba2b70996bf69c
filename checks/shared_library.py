"""Whether a variable of the loader puts foreign CUDA, cuDNN, NCCL or torch libraries first.

``LD_LIBRARY_PATH``, ``LD_PRELOAD`` and their ``DYLD_`` likes on macOS come before the paths that
are written into torch's own libraries. A CUDA toolkit, a cuDNN or a C++ libtorch on them is loaded
in place of the one torch was built with:
``libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1``,
``cuDNN version incompatibility: compiled against (8, 3, 2) but linked against (8, 0, 3)``,
``module 'torch._C' has no attribute ...``.

Only a message makes it a fault: with the same variable and a torch that works nothing is told.
Two nvidia wheels in one folder (nvidia-wheels-mixed) give the same message for NCCL and cuDNN;
there the library is inside the environment. ``ldd FILE`` decides: it names what is taken.

The fix is to take the folder off the variable. torch needs no toolkit and no cuDNN of the system.

Sources: ld.so(8), dyld(1), https://github.com/pytorch/pytorch/issues/111469,
https://github.com/pytorch/pytorch/issues/80637, https://github.com/pytorch/pytorch/issues/137247
"""

import re
from collections.abc import Iterator, Mapping

from torchdoctor import places, steps, trials
from torchdoctor.facts import (
    Distribution,
    ImportTrial,
    Interpreter,
    Symptom,
    Unknown,
)
from torchdoctor.model import Confidence, Evidence, Finding
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = ("cuda-lib-shadow", "libtorch-shadow")

VARIABLES = (
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
)
_CUDA = re.compile(r"cuda|cudnn|nccl|nvidia|tensorrt|nvjitlink|cublas|cusparse", re.IGNORECASE)
_TORCH = re.compile(r"torch|caffe2|libc10", re.IGNORECASE)
_CUDA_FILE = re.compile(r"lib(cu[a-z]|nccl|nv[A-Z_r])")


def check(
    symptoms: tuple[Symptom, ...],
    variables: Mapping[str, str] | Unknown,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    """Join messages of the loader with the variables that steer it."""
    prefix = interpreter.prefix if isinstance(interpreter, Interpreter) else ""
    foreign = _foreign(variables, prefix)
    seen: set[str] = set()
    for symptom in symptoms:
        kind = _kind(symptom)
        if kind is None or kind in seen:
            continue
        if trials.works(trial) and symptom.name != "cudnn-mismatch":
            continue  # the message is of something else than importing torch
        at_hand = [(v, e) for v, e in foreign if (_TORCH if "torch" in kind else _CUDA).search(e)]
        outside = _outside(symptom, prefix)
        if at_hand or outside:
            confidence: Confidence = "certain" if outside else "likely"
        elif kind == "libtorch-shadow":
            continue  # two installs in one folder give the same messages
        elif foreign:
            at_hand, confidence = foreign, "possible"
        elif isinstance(variables, Unknown) and not _two_majors(distributions):
            at_hand, confidence = [("LD_LIBRARY_PATH", "")], "likely"
        else:
            continue  # no variable steers the loader: the cause is inside the environment
        seen.add(kind)
        yield _finding(kind, symptom, at_hand, outside, confidence, trial)


def _foreign(variables: Mapping[str, str] | Unknown, prefix: str) -> list[tuple[str, str]]:
    """Return (variable, entry) of what the loader is told to take outside the environment."""
    given = {} if isinstance(variables, Unknown) else variables
    return [
        (name, entry)
        for name in VARIABLES
        for entry in places.entries(given.get(name, ""))
        if not places.inside(entry, prefix)
    ]


def _kind(symptom: Symptom) -> str | None:
    """Return which fault a message is a sign of."""
    values = symptom.values
    family = values.get("family")
    file = places.last(values.get("file") or values.get("library") or "")
    of_cuda = {
        "undefined-symbol": family in ("nvjitlink", "nccl", "cudnn", "cuda"),
        "cudnn-mismatch": True,
        "symbol-version-missing": "namespace" not in values and bool(_CUDA_FILE.match(file)),
    }
    of_torch = {
        "undefined-symbol": family == "torch" and libraries.suppliers(file) == ("torch",),
        "name-missing": values.get("module") == "torch._C",
        "dyld-symbol-missing": bool(_TORCH.search(values.get("library", ""))),
    }
    if of_cuda.get(symptom.name):
        return "cuda-lib-shadow"
    return "libtorch-shadow" if of_torch.get(symptom.name) else None


def _outside(symptom: Symptom, prefix: str) -> str | None:
    """Return the captured library when it lies outside the environment."""
    file = symptom.values.get("library") or symptom.values.get("file") or ""
    absolute = file.startswith("/") and bool(prefix)
    in_packages = "-packages/" in file
    return file if absolute and not in_packages and not places.inside(file, prefix) else None


def _two_majors(distributions: tuple[Distribution, ...] | Unknown) -> bool:
    """Tell whether wheels of two CUDA majors share a file, which gives the same messages."""
    if isinstance(distributions, Unknown):
        return False
    names = [d.name for d in distributions if d.name.startswith("nvidia-")]
    return any(libraries.same_files(a, b) for a in names for b in names if a < b)


def _finding(
    kind: str,
    symptom: Symptom,
    at_hand: list[tuple[str, str]],
    outside: str | None,
    confidence: Confidence,
    trial: ImportTrial | Unknown,
) -> Finding:
    names = tuple(dict.fromkeys(v for v, _ in at_hand)) or ("LD_LIBRARY_PATH",)
    entry = outside or next((e for _, e in at_hand if e), "")
    what = "another libtorch" if kind == "libtorch-shadow" else "another CUDA or cuDNN library"
    where = f" from {entry}" if entry else f", probably by {names[0]}"
    wanted = symptom.values.get("symbol") or symptom.values.get("found") or symptom.name
    return Finding(
        kind,
        "error",
        f"The loader takes {what} than the one torch was built with{where}: {wanted}.",
        (
            Evidence("symptoms", symptom.text.strip()[:300], symptom.source),
            *(Evidence(f"variables.{v}", e, "the environment") for v, e in at_hand if e),
            *trials.evidence(trial),
        ),
        tuple(
            steps.unset_variable(name, why="torch brings the libraries that it was built with.")
            for name in names
        ),
        confidence=confidence,
        because_of=("nvidia-wheels-mixed",),
    )
