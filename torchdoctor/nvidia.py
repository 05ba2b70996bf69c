"""Which nvidia wheels a torch on Linux asks for, and which libraries a message says are absent."""

from __future__ import annotations

import re

from packaging.requirements import Requirement

from torchdoctor import gpu, requirements
from torchdoctor.facts import (
    Build,
    Distribution,
    Interpreter,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.tables import libraries, releases

LIBRARIES = ("nvidia-", "cuda-toolkit")
HELPERS = ("triton", "pytorch-triton", "cuda-bindings")
"""What torch imports only when it compiles."""


def asked(
    torch: Build | None,
    distributions: tuple[Distribution, ...],
    platform: Platform,
    interpreter: Interpreter,
    gone: frozenset[str] = frozenset(),
) -> dict[str, Requirement]:
    """Return name -> requirement of the wheels that *torch* takes libraries and triton from.

    By its metadata; where that names none and a library of *gone* is absent, by the table of the
    plain wheel. Empty on other systems, where torch brings its own.
    """
    if torch is None or torch.distribution is None or platform.system != "linux":
        return {}
    marks = requirements.environment(platform, interpreter)
    wanted = requirements.closure(torch.distribution, distributions, marks)
    found = [r for r in wanted if r.name.startswith((*LIBRARIES, *HELPERS))]
    found = found or _by_table(torch, platform, gone)
    return {requirements.name(requirement): requirement for requirement in found}


def absent(symptoms: tuple[Symptom, ...] | Unknown) -> frozenset[str]:
    """Return the libraries that could not be opened, by their file names."""
    told = items_of(symptoms)
    found = (s.values.get("library", "") for s in told if s.name == "shared-library-missing")
    return frozenset(library.rpartition("/")[2] for library in found if library)


def cudnn_major(
    torch: Build | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    runtime: Runtime | Unknown,
    platform: Platform | Unknown,
) -> str | None:
    """Return the major of the cuDNN of *torch*: as it says, by its wheels, by the tables."""
    if isinstance(runtime, Runtime) and runtime.cudnn:
        return runtime.cudnn.partition(".")[0]
    known = items_of(distributions)
    for distribution in known:
        if distribution.name.startswith("nvidia-cudnn-cu"):
            return distribution.version.partition(".")[0]
    release = releases.torch_release(torch.version) if isinstance(torch, Build) else None
    if release is None:
        return None
    for key in (*gpu.platform_keys(platform), "linux_x86_64"):
        for name, pin in release.nvidia_pins.get(key, {}).items():
            if found := name.startswith("nvidia-cudnn-cu") and re.search(r"\d+", pin):
                return found[0]
    return None


def _by_table(torch: Build, platform: Platform, gone: frozenset[str]) -> list[Requirement]:
    known = releases.torch_release(torch.version)
    if known is None or "+" in (torch.distribution or torch).version:
        return []
    if not any(libraries.suppliers(library) not in ((), ("torch",)) for library in gone):
        return []
    pins = [known.nvidia_pins.get(key, {}) for key in gpu.platform_keys(platform)]
    return [Requirement(f"{name}{pin}") for name, pin in next(filter(None, pins), {}).items()]
