"""What a distribution asks for on the machine under test: its Requires-Dist, markers evaluated."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from torchdoctor.facts import Distribution, Interpreter, Platform

NEWEST = "9999"
"""Stands for the newest release of a package, whichever that is."""
_OS_NAME = {"win32": "nt"}
_PLATFORM_SYSTEM = {"linux": "Linux", "win32": "Windows", "darwin": "Darwin"}


def environment(platform: Platform, interpreter: Interpreter) -> dict[str, str]:
    """Return the marker environment (PEP 508) of the interpreter under test, not of ours."""
    cpython = interpreter.implementation == "cpython"
    return {
        "implementation_name": interpreter.implementation,
        "implementation_version": interpreter.version,
        "os_name": _OS_NAME.get(platform.system, "posix"),
        "platform_machine": platform.machine,
        "platform_python_implementation": "CPython" if cpython else interpreter.implementation,
        "platform_release": platform.kernel or "",
        "platform_system": _PLATFORM_SYSTEM.get(platform.system, platform.system),
        "platform_version": platform.version or "",
        "python_full_version": interpreter.version,
        "python_version": ".".join(interpreter.version.split(".")[:2]),
        "sys_platform": platform.system,
    }


def needed(
    distribution: Distribution, marks: dict[str, str], extras: Iterable[str] = ()
) -> tuple[Requirement, ...]:
    """Return what *distribution* asks for where *marks* hold, with *extras* asked of it.

    Lines that cannot be read, or whose marker cannot be evaluated, are left out.
    """
    wanted = ("", *extras)
    return tuple(
        requirement
        for requirement in map(parse, distribution.requires)
        if requirement and any(_holds(requirement, marks, extra) for extra in wanted)
    )


def closure(
    distribution: Distribution, installed: Iterable[Distribution], marks: dict[str, str]
) -> tuple[Requirement, ...]:
    """Return what *distribution* asks for, and in turn what the installed ones with extras do.

    torch 2.11 and newer ask for ``cuda-toolkit[cublas,...]``, which asks for the nvidia wheels.
    """
    by_name = {d.name: d for d in installed}
    found = list(needed(distribution, marks))
    for requirement in found.copy():
        other = by_name.get(name(requirement))
        if requirement.extras and other:
            found += needed(other, marks, requirement.extras)
    return tuple(found)


@functools.lru_cache(4096)
def parse(text: str) -> Requirement | None:
    """Return a Requires-Dist line as a requirement; None when it is none."""
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def name(requirement: Requirement) -> str:
    """Return the normalised name that *requirement* asks for."""
    return canonicalize_name(requirement.name)


def accepts(specifier: SpecifierSet | str, version: str) -> bool | None:
    """Tell whether *version* is in *specifier*, a prerelease too; None when one is none."""
    if isinstance(specifier, str):
        return _accepts(specifier, version)
    try:
        return specifier.contains(_version(version), prereleases=True)
    except InvalidVersion:
        return None


@functools.lru_cache(4096)
def _accepts(specifier: str, version: str) -> bool | None:
    try:
        return accepts(SpecifierSet(specifier), version)
    except InvalidSpecifier:
        return None


@functools.lru_cache(4096)
def _version(text: str) -> Version:
    return Version(text)


def version_in(specifier: SpecifierSet) -> str:
    """Return a version that *specifier* accepts, as what an installer may bring; "0" if none.

    The lower bound or the pin: ``<14,>=13.0.3`` is 13.0.3, ``==13.1.1.3.*`` is 13.1.1.3. Where
    nothing bounds it, it is newer than all that are known.
    """
    candidates = [s.version.removesuffix(".*") for s in specifier if s.operator != "!="]
    below = [_just_below(s.version) for s in specifier if s.operator in ("<", "<=")]
    return next((v for v in (*candidates, *below, NEWEST, "0") if accepts(specifier, v)), "0")


def unmet(
    requirements: Iterable[Requirement], installed: Iterable[Distribution]
) -> Iterator[tuple[Requirement, Distribution | None]]:
    """Yield each requirement that nothing installed meets, with what is there in its place."""
    by_name: dict[str, list[Distribution]] = {}
    for distribution in installed:
        by_name.setdefault(distribution.name, []).append(distribution)
    for requirement in requirements:
        there = by_name.get(name(requirement), [])
        if not any(accepts(requirement.specifier, d.version) is not False for d in there):
            yield requirement, next(iter(there), None)


def _holds(requirement: Requirement, marks: dict[str, str], extra: str) -> bool:
    try:
        return requirement.marker is None or requirement.marker.evaluate({**marks, "extra": extra})
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return False


def _just_below(version: str) -> str:
    major = version.partition(".")[0]
    return f"{int(major) - 1}.99" if major.isdigit() and int(major) else "0"
