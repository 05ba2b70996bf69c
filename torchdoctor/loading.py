"""What is known of shared objects of Linux that do not load: what the files say.

For the checks. What was tried counts more than what was worked out: where torch was imported,
nothing is said to stand in its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchdoctor import places, trials
from torchdoctor.facts import ImportTrial, Linux, SoLoad, Unknown
from torchdoctor.model import Confidence, Evidence

VARIABLES = ("LD_PRELOAD", "LD_LIBRARY_PATH")
OF_TORCH = re.compile(r"lib(torch|c10|caffe2|shm\.)")
OF_CUDA = re.compile(r"lib(cu[a-z]|nccl|nv[A-Z_rsjt])")
TORCH_SYMBOL = re.compile(r"_Z\w{0,6}(?:2at|3c10|5torch|6caffe2)|(?:aoti_)?torch_")
_NEW_ABI = re.compile(r"__cxx11|B5cxx11")
_OLD_ABI = re.compile(r"(?:E|RK|R|PK|P)Ss")


def failure(linux: Linux | Unknown | None, trial: ImportTrial | Unknown) -> SoLoad | None:
    """Return what stops ``import torch``, as the files say; None where nothing does."""
    if not isinstance(linux, Linux) or trials.works(trial):
        return None
    load = linux.torch
    return load if isinstance(load, SoLoad) and not load.loads else None


def loads_without(linux: Linux | Unknown | None) -> bool:
    """Tell whether torch would load if no variable steered the loader."""
    known = isinstance(linux, Linux) and isinstance(linux.without, SoLoad)
    return known and linux.without.loads  # type: ignore[union-attr]


def failing_extensions(linux: Linux | Unknown | None) -> Iterator[tuple[str, SoLoad]]:
    """Yield (package, what stops it) of the compiled files that need torch's."""
    if isinstance(linux, Linux) and not isinstance(linux.extensions, Unknown):
        for name, loads in linux.extensions.items():
            yield from ((name, load) for load in loads if not load.loads)


def confidence(load: SoLoad, trial: ImportTrial | Unknown) -> Confidence:
    """Return how sure *load* is: less where something was assumed, least where it was seen else."""
    if isinstance(trial, ImportTrial) and trials.failed(trial):
        said = f"{trial.error.message if trial.error else ''} {trial.output}"
        named = places.last(load.culprit), places.last(load.asks), *load.names[:1]
        return "certain" if any(word and word in said for word in named) else "possible"
    return "likely" if load.assumed else "certain"


def evidence(load: SoLoad, fact: str = "linux.torch") -> tuple[Evidence, ...]:
    """Return what *load* stands on, what the loader says first."""
    found = [Evidence(fact, load.message, "the files, searched as the loader does")]
    if len(load.chain) > 1:
        found.append(Evidence(f"{fact}.chain", " -> ".join(load.chain), "DT_NEEDED"))
    if load.instead:
        found.append(Evidence(f"{fact}.instead", load.instead, f"without {load.place}"))
    return tuple(found)


def steered(linux: Linux | Unknown | None, pattern: re.Pattern[str]) -> tuple[Evidence, ...]:
    """Return the files that match *pattern* and are taken because of a variable."""
    if not isinstance(linux, Linux) or isinstance(linux.steered, Unknown):
        return ()
    return tuple(
        Evidence("linux.steered", f"{f.path}, not {f.instead}" if f.instead else f.path, f.how)
        for f in linux.steered
        if pattern.match(f.name) or pattern.match(places.last(f.path))
    )


def needs_torch(load: SoLoad) -> bool:
    """Tell whether *load* fails for a symbol, or a file, of torch itself."""
    if load.kind == "symbol":
        return any(map(TORCH_SYMBOL.match, load.names))
    return load.kind == "missing" and bool(OF_TORCH.match(load.culprit))


def abi(load: SoLoad) -> str:
    """Return which C++ ABI the file that asks was compiled for, "new" or "old"; "" = not told."""
    if load.kind != "symbol":
        return ""
    if any(map(_NEW_ABI.search, load.names)):
        return "new"
    old = (n for n in load.names if n.startswith("_Z"))
    return "old" if any(map(_OLD_ABI.search, old)) else ""
