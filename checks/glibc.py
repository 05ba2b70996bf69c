"""The system's C library is new enough for the installed torch.

How it shows: "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by
.../libtorch_cpu.so)" when torch is imported.

Why: torch 2.7 and newer is built on glibc 2.28 (2018), older wheels on 2.17; some CUDA 12.6 builds
of 2.6.0 need 2.28 already. pip looks at this before it installs, but a copied environment, a moved
disk, ``--platform`` and a shared file system do not. Old clusters (CentOS 7 has 2.17) meet it most.

GLIBCXX and CXXABI in the same sentence are libstdc++, another library with another cure.

The fix is the newest torch that the C library carries, or a newer system or container image; never
replace the C library of a running system. Source: the symbol versions inside the wheels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, gpu, steps
from torchdoctor.facts import Build, Facts, ImportTrial, Platform, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import builds, drivers, releases

FAMILY = "build"
FINDS = ("glibc-too-old",)


def check(
    platform: Platform,
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the system's glibc with what the release was built on."""
    if message := _message(symptoms):
        needed = message.values.get("version", "")
        who = message.values.get("required_by") or message.values.get("library") or "torch"
        evidence = [Evidence("symptoms", message.text or f"GLIBC_{needed}", message.source)]
        summary = f"{who} needs glibc {needed}; {_has(platform)}."
        yield _finding(summary, needed, evidence, platform, facts)
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
    summary = f"torch {torch.version} needs glibc {lowest} or newer; {_has(platform)}."
    yield _finding(summary, lowest, evidence, platform, facts)


def _message(symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    found = gpu.symptom(symptoms, "symbol-version-missing")
    return found if found and found.values.get("namespace") == "GLIBC" else None


def _has(platform: Platform) -> str:
    name = platform.name or "this system"
    return f"{name} has {platform.libc_version}" if platform.libc_version else f"{name} has less"


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
    newer = replace(platform, libc="glibc", libc_version=needed or "2.28")
    found.append(
        steps.by_hand(
            "use-a-newer-system",
            f"Use a system or a container image with glibc {needed} or newer"
            " (2.28: Debian 10, Ubuntu 20.04, RHEL 8; 2.34: RHEL 9, Ubuntu 22.04)",
            why="The C library belongs to the system and cannot be replaced inside it.",
            layer=Layer.RUNTIME,
            cost=steps.ENVIRONMENT + steps.ADMIN,
            effect=effects.change(platform=newer),
        )
    )
    return Finding("glibc-too-old", "error", summary, tuple(evidence), tuple(found))
