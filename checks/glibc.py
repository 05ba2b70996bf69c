"""The system's C library is new enough for the installed torch.

How it shows: "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by
.../libtorch_cpu.so)" when torch is imported.

Why: torch 2.7 and newer is built on glibc 2.28 (2018), older wheels on 2.17; some CUDA 12.6 builds
of 2.6.0 need 2.28 already. pip looks at this before it installs, but a copied environment, a moved
disk, ``--platform`` and a shared file system do not. Old clusters (CentOS 7 has 2.17) meet it most.

On Linux the files tell it without a message: the versions that each compiled file asks for, and
those that the C library defines. A file of another package (flash-attn is built on new systems) is
a warning: torch itself works.

GLIBCXX and CXXABI in the same sentence are libstdc++, another library with another cure.

The fix is the newest torch that the C library carries, or a newer system or container image; never
replace the C library of a running system. Of another package: a wheel that was built on an
older system, or compiling it here. Sources: the symbol versions inside the wheels;
https://github.com/Dao-AILab/flash-attention/blob/main/setup.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, gpu, installers, loading, places, shells, steps
from torchdoctor.facts import (
    Build,
    Facts,
    ImportTrial,
    Linux,
    Platform,
    SoLoad,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import builds, drivers, releases

FAMILY = "build"
FINDS = ("glibc-too-old",)

OF_TORCH = ("torch", "torchvision", "torchaudio", "triton")
DOWNLOADS = {"flash-attn": "FLASH_ATTENTION_FORCE_BUILD"}
"""Packages whose setup.py takes a wheel from their own page unless the variable is TRUE."""


def check(
    platform: Platform,
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    linux: Linux | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the system's glibc with what the release was built on."""
    yield from _of_extensions(linux, platform, facts)
    if message := _message(symptoms):
        needed = message.values.get("version", "")
        who = message.values.get("required_by") or message.values.get("library") or "torch"
        evidence = [Evidence("symptoms", message.text or f"GLIBC_{needed}", message.source)]
        summary = f"{who} needs glibc {needed}; {_has(platform, linux)}."
        package = places.package_of(message.values.get("required_by", ""))
        if package and package not in OF_TORCH and not package.startswith("nvidia"):
            yield _of_package(package, summary, needed, evidence, facts)
        else:
            yield _finding(summary, needed, evidence, platform, facts)
        return
    if (load := loading.failure(linux, trial)) and _of_libc(load):
        needed = load.names[0].removeprefix("GLIBC_")
        who = places.last(load.asks) or "torch"
        summary = f"{who} needs glibc {needed}; {_has(platform, linux)}."
        yield _finding(summary, needed, list(loading.evidence(load)), platform, facts)
        return
    if not isinstance(torch, Build) or platform.libc != "glibc" or not platform.libc_version:
        return
    if isinstance(trial, ImportTrial) and trial.outcome == "imported":
        return
    if torch.distribution and torch.distribution.installer == "conda":
        return  # conda's solver asks for the C library itself, and its builds need an older one
    release = releases.torch_release(torch.public)
    if release is None:
        raise CannotTell(f"torch {torch.version} is not in the tables of releases")
    key = releases.platform_key(platform.system, platform.machine)
    lowest = builds.glibc(torch.public, torch.tag or "", key or "") or release.glibc.get(key or "")
    if lowest is None or drivers.compare(platform.libc_version, lowest) >= 0:
        return
    evidence = [Evidence("platform.libc_version", platform.libc_version, "the interpreter")]
    summary = f"torch {torch.version} needs glibc {lowest} or newer; {_has(platform, linux)}."
    yield _finding(summary, lowest, evidence, platform, facts)


def _of_libc(load: SoLoad) -> bool:
    return load.kind == "version" and load.names[0].startswith("GLIBC_")


def _of_extensions(
    linux: Linux | Unknown | None, platform: Platform, facts: Facts
) -> Iterator[Finding]:
    """Yield the packages of which a compiled file asks for more than the C library has."""
    seen = set()
    for name, load in loading.failing_extensions(linux):
        if name in seen or not _of_libc(load):
            continue
        seen.add(name)
        needed = load.names[0].removeprefix("GLIBC_")
        why = "It is then compiled on this system, for its C library."
        owner = steps.owner(facts, name)
        cures = [steps.compile_again(facts, owner, why=why)] if owner else []
        yield Finding(
            "glibc-too-old",
            "warning",
            f"{places.last(load.asks)} of {name} needs glibc {needed}; {_has(platform, linux)}.",
            loading.evidence(load, f"linux.extensions.{name}"),
            (*cures, _newer_system(needed)),
        )


def _of_package(
    package: str,
    summary: str,
    needed: str,
    evidence: list[Evidence],
    facts: Facts,
) -> Finding:
    """Return what is wrong with a package beside torch: another torch would not change it."""
    if owner := steps.owner(facts, package):
        why = "It is then compiled on this system, for its C library."
        cure = steps.compile_again(facts, owner, why=why)
        if package in DOWNLOADS:
            variable = shells.assign(DOWNLOADS[package], "TRUE")
            cure = replace(cure, commands=installers.join(variable, cure.commands))
    else:
        cure = steps.by_hand(
            steps.slug("compile", package),
            f"Install a wheel of {package} that is built on an older system (manylinux), or"
            " compile it here",
            why="It then asks for no more than the C library of this system has.",
            layer=Layer.PACKAGES,
            cost=steps.COMPANION + 1,
            effect=effects.settled("symbol-version-missing"),
        )
    return Finding(
        "glibc-too-old",
        "warning",
        f"{summary.rstrip('.')}; torch itself is not concerned.",
        tuple(evidence),
        (cure, _newer_system(needed)),
    )


def _message(symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    found = gpu.symptom(symptoms, "symbol-version-missing")
    return found if found and found.values.get("namespace") == "GLIBC" else None


def _has(platform: Platform, linux: Linux | Unknown | None) -> str:
    name = platform.name or "this system"
    by_files = linux.glibc if isinstance(linux, Linux) and isinstance(linux.glibc, str) else None
    release = platform.libc_version or by_files
    return f"{name} has {release}" if release else f"{name} has less"


def _finding(
    summary: str, needed: str, evidence: list[Evidence], platform: Platform, facts: Facts
) -> Finding:
    found: list[Step] = []
    if platform.libc_version:
        if choice := choose.choose(facts):
            why = f"torch {choice.release} runs on glibc {platform.libc_version}."
            found.append(steps.change_build(facts, choice, why=why))
        elif another := choose.with_python(facts):
            why = f"torch {another[1].release} runs on glibc {platform.libc_version}."
            found.append(steps.new_environment(facts, *another, why=why))
    found.append(_newer_system(needed))
    return Finding("glibc-too-old", "error", summary, tuple(evidence), tuple(found))


def _newer_system(needed: str) -> Step:
    return steps.by_hand(
        "use-a-newer-system",
        f"Use a system or a container image with glibc {needed} or newer"
        " (2.28: Debian 10, Ubuntu 20.04, RHEL 8; 2.34: RHEL 9, Ubuntu 22.04)",
        why="The C library belongs to the system and cannot be replaced inside it.",
        layer=Layer.RUNTIME,
        cost=steps.ENVIRONMENT + steps.ADMIN,
        effect=effects.altered("platform", libc="glibc", libc_version=needed or "2.28"),
    )
