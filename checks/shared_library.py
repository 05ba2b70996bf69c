"""Whether a variable of the loader puts foreign CUDA, cuDNN, NCCL or torch libraries first.

``LD_LIBRARY_PATH``, ``LD_PRELOAD`` and their ``DYLD_`` likes on macOS come before the paths that
are written into torch's own libraries. A CUDA toolkit, a cuDNN or a C++ libtorch on them is loaded
in place of the one torch was built with:
``libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1``,
``cuDNN version incompatibility: compiled against (8, 3, 2) but linked against (8, 0, 3)``,
``module 'torch._C' has no attribute ...``.

Only a message makes it a fault, or the files themselves: on Linux they are searched as the loader
does, and what is taken, what would be taken without the variable and what is missing are named.
With the same variable and a torch that works nothing is told. A file with DT_RPATH (those of the
CUDA wheels of 2.14 have it) looks there before LD_LIBRARY_PATH; one with DT_RUNPATH after it.
Two nvidia wheels in one folder (nvidia-wheels-mixed) give the same message for NCCL and cuDNN;
there the library is inside the environment. ``ldd FILE`` decides: it names what is taken.

The fix is to take the folder off the variable. torch needs no toolkit and no cuDNN of the system.

Sources: ld.so(8), dyld(1), https://github.com/pytorch/pytorch/issues/111469,
https://github.com/pytorch/pytorch/issues/80637, https://github.com/pytorch/pytorch/issues/137247
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import loading, places, steps, trials
from torchdoctor.facts import (
    Distribution,
    ImportTrial,
    Interpreter,
    Linux,
    SoLoad,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Confidence, Evidence, Finding, Step
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
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    trial: ImportTrial | Unknown,
    linux: Linux | Unknown | None,
) -> Iterator[Finding]:
    """Search the files as the loader does; join its messages with the variables that steer it."""
    by_files = _by_files(linux, trial)
    if by_files:
        yield by_files
    if isinstance(symptoms, Unknown) and not isinstance(linux, Linux):
        raise CannotTell(symptoms.reason)
    for finding in _by_messages(symptoms, variables, interpreter, distributions, trial, linux):
        if by_files is None or finding.name != by_files.name:
            yield finding


def _by_messages(
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    trial: ImportTrial | Unknown,
    linux: Linux | Unknown | None,
) -> Iterator[Finding]:
    prefix = interpreter.prefix if isinstance(interpreter, Interpreter) else ""
    foreign = _foreign(variables, prefix)
    seen: set[str] = set()
    for symptom in items_of(symptoms):
        kind = _kind(symptom) or _of_libtorch(symptom, foreign)
        if kind is None or kind in seen:
            continue
        if trials.works(trial) and symptom.name != "cudnn-mismatch":
            continue  # the message is of something else than importing torch
        at_hand = [(v, e) for v, e in foreign if (_TORCH if "torch" in kind else _CUDA).search(e)]
        if led := [(v, e) for v, e in foreign if _is_in(symptom, e)]:
            at_hand = led
        outside = _outside(symptom, prefix) or _resolved(kind, symptoms)
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
        files = loading.steered(linux, loading.OF_TORCH if "libtorch" in kind else loading.OF_CUDA)
        yield _finding(
            kind, symptom, at_hand, outside, confidence, (*trials.evidence(trial), *files)
        )


def _by_files(linux: Linux | Unknown | None, trial: ImportTrial | Unknown) -> Finding | None:
    """Return the file that a variable puts in the way, where torch would load without."""
    load = loading.failure(linux, trial)
    if load is None or load.place not in loading.VARIABLES:
        return None
    name = places.last(load.culprit)
    kind = "libtorch-shadow" if loading.OF_TORCH.match(name) else "cuda-lib-shadow"
    if kind == "cuda-lib-shadow" and not loading.OF_CUDA.match(name):
        return None  # a C++ runtime, or what else it may be, has a check of its own
    if not load.instead and not loading.loads_without(linux):
        return None
    than = f" in place of {load.instead}" if load.instead else ""
    return Finding(
        kind,
        "error",
        f"The loader takes {load.culprit} by {load.place}{than}: {_wrong(load)}.",
        (*loading.evidence(load), *trials.evidence(trial)),
        (
            steps.unset_variable(
                load.place, why="torch brings the libraries that it was built with."
            ),
        ),
        confidence=loading.confidence(load, trial),
        because_of=("nvidia-wheels-mixed",),
    )


def _wrong(load: SoLoad) -> str:
    asks = places.last(load.asks)
    match load.kind:
        case "symbol":
            return f"it has no {load.names[0]}, which {asks} calls"
        case "version":
            return f"it has no version {load.names[0]}, which {asks} needs"
        case "not-whole":
            return "it is no whole library"
        case _:
            return f"it does not load ({load.message})"


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


def _is_in(symptom: Symptom, entry: str) -> bool:
    folder = symptom.values.get("file", "").rpartition("/")[0]
    return bool(folder) and places.same(entry, folder)


def _of_libtorch(symptom: Symptom, foreign: list[tuple[str, str]]) -> str | None:
    """Return that a library of torch that a variable leads to is what lacks a name.

    Whatever the name: a libtorch of another release, or for another Python, is not the wheel's.
    """
    file = symptom.values.get("file", "")
    if symptom.name != "undefined-symbol" or "-packages/" in file:
        return None
    own = libraries.suppliers(places.last(file)) == ("torch",)
    led = any(_is_in(symptom, entry) for _, entry in foreign)
    return "libtorch-shadow" if own and led else None


def _outside(symptom: Symptom, prefix: str) -> str | None:
    """Return the captured library when it lies outside the environment."""
    file = symptom.values.get("library") or symptom.values.get("file") or ""
    absolute = file.startswith("/") and bool(prefix)
    in_packages = "-packages/" in file
    return file if absolute and not in_packages and not places.inside(file, prefix) else None


def _resolved(kind: str, symptoms: tuple[Symptom, ...] | Unknown) -> str | None:
    """Return the library of CUDA that ldd shows to be taken from outside every environment."""
    if kind != "cuda-lib-shadow" or isinstance(symptoms, Unknown):
        return None
    taken = [s.values["library"] for s in symptoms if s.name == "library-resolved"]
    return next((file for file in taken if "-packages/" not in file), None)


def _two_majors(distributions: tuple[Distribution, ...] | Unknown) -> bool:
    """Tell whether wheels of two CUDA majors share a file, which gives the same messages."""
    if isinstance(distributions, Unknown):
        return False
    names = [d.name for d in distributions if d.name.startswith("nvidia-")]
    return any(libraries.same_files(a, b) for a in names for b in names if a < b)


def _unset(name: str, file: str | None) -> Step:
    """Return the step for the variable *name*; it may not be what leads to *file*."""
    step = steps.unset_variable(name, why="torch brings the libraries that it was built with.")
    if file is None:
        return step
    folder, last = file.rpartition("/")[0], places.last(file)
    title = f"Take {folder} off {name} (unset it), or remove the package that put {last} there"
    return replace(step, title=title)


def _finding(
    kind: str,
    symptom: Symptom,
    at_hand: list[tuple[str, str]],
    outside: str | None,
    confidence: Confidence,
    more: tuple[Evidence, ...],
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
            *more,
        ),
        tuple(_unset(name, outside if not at_hand else None) for name in names),
        confidence=confidence,
        because_of=("nvidia-wheels-mixed",),
    )
