"""Who compiles extensions has a C++ compiler that torch and nvcc take (``--profile build``).

How it shows: ``check --profile build`` asks before a build what a build would say in its middle:
"error: command 'g++' failed: No such file or directory"; "unsupported GNU version! gcc versions
later than 12 are not supported!"; torch's "The current installed version of g++ (13.2.0) is greater
than the maximum required version by CUDA 11.8".

Why: torch calls what CXX names, else c++ (on Windows cl); nvcc calls what CC, -ccbin or NVCC_CCBIN
names, else gcc. Each CUDA toolkit knows the compilers of its time, and its own header refuses newer
ones: CUDA 11.8 takes gcc 11, 12.4 takes 13, 12.8 takes 14. And each torch has extensions compiled
with the C++ of its time: -std=c++20 takes gcc 10 (host-compiler-too-old).

Not to be confused with messages of a build that failed: host-compiler reads those, without the
profile too. A toolkit of another CUDA than torch is toolkit-mismatch, and comes first. Where torch
is a CPU build, nvcc does not matter.

The fix is a compiler; or an older one beside the newer, named for this build. It is not
``-allow-unsupported-compiler``, which may give wrong code; where that is set, nothing is said.

Sources: include/crt/host_config.h of each toolkit; torch/utils/cpp_extension.py;
https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import building, effects, gpu, steps
from torchdoctor.facts import (
    Build,
    BuildTools,
    Compiler,
    Expectation,
    Facts,
    Symptom,
    Toolkit,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step
from torchdoctor.tables import nvcc as table

FAMILY = "system"
FINDS = ("host-compiler-missing", "host-compiler-too-new", "host-compiler-too-old")

STANDARD = "cxx-standard-unknown"


def check(
    expectation: Expectation,
    symptoms: tuple[Symptom, ...] | Unknown,
    build_tools: BuildTools | Unknown,
    toolkits: tuple[Toolkit, ...] | Unknown,
    torch: Build | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Look whether the compilers are there, then ask the table whether nvcc takes them."""
    if said := gpu.symptom(symptoms, STANDARD):
        first = table.first_gcc(said.values["standard"])
        yield Finding(
            "host-compiler-too-old",
            "error",
            f"The C++ compiler does not know C++{said.values['standard']}, with which torch has"
            " extensions compiled.",
            (Evidence("symptoms", said.text.strip()[:300], said.source),),
            (steps.compiling.newer_compiler(first or 13),),
        )
        return
    if not building.asked(expectation):
        return
    if isinstance(build_tools, Unknown):
        raise CannotTell(build_tools.reason)
    compilers = {"cxx": build_tools.cxx, "cc": build_tools.cc}
    known = {name: one for name, one in compilers.items() if isinstance(one, Compiler)}
    missing = {n: one for n, one in known.items() if one.path is None or one.error}
    if missing:
        found = _missing(missing, build_tools, facts)
        if found:
            yield found
        return
    if not known:
        raise CannotTell("neither compiler told its version")
    if torch is not None and (old := _too_old(build_tools)):
        yield old
        return
    yield from _too_new(known, build_tools, toolkits, torch)


def _missing(missing: dict[str, Compiler], tools: BuildTools, facts: Facts) -> Finding | None:
    name, one = next(iter(missing.items()))
    windows = one.command == "cl"
    if windows and tools.visual_studio:
        return None  # setuptools finds the compiler of Visual Studio by itself
    says = f"The usual compiler {one.command} is nowhere on PATH, so no extension can be compiled."
    if one.path:
        says = f"{one.command} does not run ({one.error}), so no extension can be compiled."
    elif one.named_by:
        says = (
            f"{one.named_by} names {one.command}, which is nowhere on PATH, so no extension can be"
            " compiled."
        )
    return Finding(
        "host-compiler-missing",
        "error",
        says,
        (Evidence(f"build_tools.{name}", one.command, one.named_by or "PATH"),),
        tuple(_steps(one, tools, facts, windows=windows)),
    )


def _steps(one: Compiler, tools: BuildTools, facts: Facts, *, windows: bool) -> Iterator[Step]:
    effect = effects.then(building.compilers_there, effects.settled("host-compiler-not-found"))
    others = [name for name in tools.found if name in ("c++", "g++", "gcc", "clang++", "clang")]
    if one.named_by in ("CC", "CXX") and others:
        step = steps.unset_variable(one.named_by, why=f"{', '.join(others)} can be found.")
        yield steps.compiling.with_effect(step, effects.then(step.effect, effect))
    yield steps.compiling.compiler(facts, windows=windows, effect=effect)


def _too_old(tools: BuildTools) -> Finding | None:
    one, standard = tools.cxx, tools.standard
    if isinstance(one, Unknown) or isinstance(standard, Unknown) or one.kind != "gcc":
        return None
    first = table.first_gcc(standard)
    if first is None or not one.version or _number(one) >= first:
        return None
    others = [name.partition("-")[2] for name in tools.found if name.startswith("g++-")]
    there = next((major for major in others if int(major) >= first), "")
    return Finding(
        "host-compiler-too-old",
        "error",
        f"{one.command} {one.version} does not know C++{standard}, with which this torch has"
        f" extensions compiled: that takes gcc {first}.",
        (
            Evidence("build_tools.cxx", f"gcc {one.version}", one.path or one.command),
            Evidence("build_tools.standard", f"-std=c++{standard}", "cpp_extension.py"),
        ),
        (steps.compiling.newer_compiler(first, there=there),),
    )


def _too_new(
    known: dict[str, Compiler],
    tools: BuildTools,
    toolkits: tuple[Toolkit, ...] | Unknown,
    torch: Build | Unknown | None,
) -> Iterator[Finding]:
    if torch is None or tools.unchecked:
        return
    if isinstance(torch, Unknown):
        raise CannotTell(torch.reason)
    cuda, nvcc = building.cuda(torch), building.nvcc(tools, toolkits)
    if cuda is None or nvcc is None:
        return
    if isinstance(nvcc, Unknown) or nvcc.release is None:
        raise CannotTell("the release of nvcc is not known")
    if building.major(nvcc.release) != building.major(cuda):
        return  # build-toolkit says so, and another nvcc takes others
    for name, one in known.items():
        if not one.kind or not one.version:
            continue
        newest = table.newest_compiler(nvcc.release, one.kind)
        if newest is None:
            raise CannotTell(f"CUDA {nvcc.release} is not in the tables of {table.as_of()}")
        if _number(one) > newest:
            yield _refused(name, one, nvcc, newest, tools)
            return


def _number(one: Compiler) -> int:
    """Return what nvcc compares: the major, of Microsoft's the number that it gives itself."""
    first, second, *_ = (*(one.version or "").split("."), "0", "0")
    return int(first) * 100 + int(second) if one.kind == "msvc" else int(first)


def _refused(name: str, one: Compiler, nvcc: Toolkit, newest: int, tools: BuildTools) -> Finding:
    there = f"g++-{newest}" in tools.found
    windows = one.kind == "msvc"
    release = f"{newest // 100}.{newest % 100}.0" if windows else str(newest)
    other = None if one.kind == "gcc" else Compiler(one.command, one.path, one.kind, release)
    return Finding(
        "host-compiler-too-new",
        "error",
        f"nvcc of CUDA {nvcc.release} refuses {one.command} {one.version} as too new (it takes"
        f" {one.kind} up to {newest}), so no CUDA code can be compiled.",
        (
            Evidence(f"build_tools.{name}", f"{one.kind} {one.version}", one.path or one.command),
            Evidence("build_tools.nvcc", str(nvcc.release), nvcc.path or nvcc.source),
        ),
        (steps.compiling.older_compiler(str(newest), windows=windows, there=there, becomes=other),),
    )
