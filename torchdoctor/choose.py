"""Which build of torch, torchvision and torchaudio fits this machine.

A build fits when it was published for the system and the Python, its C library is not newer than
the system's, the driver runs its CUDA (minor-version compatibility counted in), and it has
machine code for every GPU. Among those that fit, the release that is there now is kept where it
can be, then the newest is taken; within a release the build that is there now, then the highest
CUDA that the driver supports in full, then the lowest that it runs at all. Facts that are unknown
constrain nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torchdoctor.facts import Build, Driver, Facts, Gpu, Interpreter, Platform, Unknown
from torchdoctor.installers import Package
from torchdoctor.tables import builds, drivers, gpus, neighbours, releases

Accelerator = Literal["cpu", "cuda", "rocm", "xpu"]


@dataclass(frozen=True, slots=True)
class Choice:
    """A set that fits: what to install, and the index to take it from (None: the default)."""

    release: str
    tag: str
    packages: tuple[Package, ...]
    index: str | None

    @property
    def versions(self) -> dict[str, str]:
        """Return name -> version of what is installed."""
        return {package.name: package.version for package in self.packages}


def choose(
    facts: Facts,
    *,
    accelerator: Accelerator | None = None,
    release: str | None = None,
    python: str | None = None,
) -> Choice | None:
    """Return the best set that fits, or None when the tables know none.

    *accelerator* is what it must run on; None takes what the machine has. *release* is a torch
    release that must be kept. *python* stands in for the interpreter's ("3.12").
    """
    kind = accelerator or wanted(facts)
    now = facts.torch if isinstance(facts.torch, Build) else None
    for candidate in _releases(now, release):
        if python is None and not python_fits(facts, candidate):
            continue
        if python is not None and not _has_python(candidate, _key(facts), python):
            continue
        if not libc_fits(facts, candidate):
            continue
        for build in _builds(facts, candidate, kind, now):
            if not _libc_fits_build(facts, candidate, build.tag):
                continue
            if kind != "cuda" or (driver_fits(facts, build) and gpus_fit(facts, candidate, build)):
                return at(facts, candidate, build.tag)
    return None


def with_python(facts: Facts) -> tuple[str, Choice] | None:
    """Return the newest Python for which a set fits here, with that set; None if there is none."""
    known = {p for r in releases.torch_releases() for p in r.pythons.get(_key(facts) or "", ())}
    plain = [p for p in known if p.replace(".", "").isdigit()]
    for python in sorted(plain, key=_numbers, reverse=True):
        if choice := choose(facts, python=python):
            return python, choice
    return None


def wanted(facts: Facts) -> Accelerator:
    """Return what torch is to run on here: what was expected, else what the machine has."""
    if facts.expectation.accelerator in ("cpu", "cuda", "rocm", "xpu"):
        return facts.expectation.accelerator
    if not isinstance(facts.gpus, Unknown):
        vendors = {gpu.vendor for gpu in facts.gpus}
        if "nvidia" in vendors and isinstance(facts.driver, Driver):
            return "cuda"
        if "amd" in vendors and _key(facts) == "linux_x86_64":
            return "rocm"
    elif isinstance(facts.torch, Build) and (kind := _kind(facts.torch.tag)):
        return kind
    elif isinstance(facts.driver, Unknown):  # nothing tells: what the default index would bring
        key = _key(facts) or "linux_x86_64"
        default = builds.default_build(releases.newest("torch"), key)
        return builds.kind_of(default) if default else "cpu"
    return "cpu"


def _kind(tag: str | None) -> Accelerator | None:
    try:
        return builds.kind_of(tag) if tag else None
    except ValueError:  # a build of somebody's own
        return None


def at(facts: Facts, release: str, tag: str) -> Choice:
    """Return the set of *release* in the build *tag*, with the companions that are installed."""
    labelled = _key(facts) not in ("macos_arm64", "macos_x86_64")
    versions = {"torch": release}
    companions = dict(zip(("torchvision", "torchaudio"), releases.companions(release), strict=True))
    for name, companion in companions.items():
        present = getattr(facts, name)
        if isinstance(present, Build) and companion:
            versions[name] = companion
    packages = tuple(
        Package(name, f"{version}+{tag}") if labelled else Package(name, version, exact=True)
        for name, version in versions.items()
    )
    return Choice(release, tag, packages, f"{builds.INDEX_ROOT}{tag}" if labelled else None)


def python_fits(facts: Facts, release: str) -> bool:
    """Tell whether *release* was published for the interpreter; True when that is unknown."""
    if isinstance(facts.interpreter, Unknown):
        return True
    return _has_python(release, _key(facts), facts.interpreter.tag)


def libc_fits(facts: Facts, release: str) -> bool:
    """Tell whether the system's C library is new enough for *release*; True when unknown."""
    platform = facts.platform
    if isinstance(platform, Unknown) or platform.libc != "glibc" or not platform.libc_version:
        return True
    known = releases.torch_release(release)
    needed = known.glibc.get(_key(facts) or "") if known else None
    return needed is None or drivers.compare(platform.libc_version, needed) >= 0


def _libc_fits_build(facts: Facts, release: str, tag: str) -> bool:
    """Tell apart the builds of 2.6.0, of which those with the new C++ ABI need glibc 2.28."""
    platform = facts.platform
    if release != "2.6.0" or _key(facts) != "linux_x86_64" or isinstance(platform, Unknown):
        return True
    if platform.libc != "glibc" or not platform.libc_version:
        return True
    old = neighbours.cxx11_abi(release, tag) is False
    return old or drivers.compare(platform.libc_version, "2.28") >= 0


def driver_fits(facts: Facts, build: builds.Build) -> bool:
    """Tell whether the driver runs the CUDA of *build*; True when the driver is unknown."""
    if not isinstance(facts.driver, Driver) or not facts.driver.release or not build.cuda:
        return True
    wsl = isinstance(facts.platform, Platform) and facts.platform.wsl
    key = "win_amd64" if wsl else _key(facts) or "linux_x86_64"
    needed = drivers.minimum_driver(build.cuda, key)
    return needed is None or drivers.compare(facts.driver.release, needed) >= 0


def gpus_fit(facts: Facts, release: str, build: builds.Build) -> bool:
    """Tell whether *build* has code for every GPU here; True when no GPU is known."""
    capabilities = [gpu.capability for gpu in _nvidia(facts) if gpu.capability]
    if not capabilities:
        return True
    archs = gpus.arch_list(release, build.tag, _key(facts) or "linux_x86_64")
    if archs is None:
        return False
    return all(gpus.runs(archs.sm, archs.ptx, c, cuda=build.cuda) is True for c in capabilities)


def _nvidia(facts: Facts) -> Iterator[Gpu]:
    if not isinstance(facts.gpus, Unknown):
        yield from (gpu for gpu in facts.gpus if gpu.vendor == "nvidia")


def _key(facts: Facts) -> str | None:
    if not isinstance(facts.platform, Platform):
        return None
    machine = facts.platform.machine
    if isinstance(facts.interpreter, Interpreter) and facts.platform.system == "darwin":
        built_for = facts.interpreter.machine.rpartition("-")[2]
        machine = machine if built_for in ("", "universal2") else built_for
    return releases.platform_key(facts.platform.system, machine)


def _has_python(release: str, key: str | None, tag: str) -> bool:
    known = releases.torch_release(release)
    if known is None or key is None:
        return True
    return any(_python_matches(entry, tag) for entry in known.pythons.get(key, ()))


def _python_matches(entry: str, tag: str) -> bool:
    if entry in ("any", tag):
        return True
    if not entry.endswith("+") or tag.endswith("t"):
        return False
    return _numbers(tag) >= _numbers(entry[:-1])


def _numbers(tag: str) -> tuple[int, ...]:
    return tuple(int(part) for part in tag.split(".") if part.isdigit())


def _releases(now: Build | None, kept: str | None) -> Iterator[str]:
    if kept is not None:
        yield kept
        return
    if now is not None and releases.torch_release(now.public):
        yield now.public
    yield from (r.version for r in releases.torch_releases() if not now or r.version != now.public)


def _builds(facts: Facts, release: str, kind: Accelerator, now: Build | None) -> list[builds.Build]:
    found = [b for b in builds.builds(release, _key(facts) or "linux_x86_64") if b.kind == kind]
    current = now.tag if now else None
    newest = _cuda_of_driver(facts)

    def best_first(build: builds.Build) -> tuple[bool, bool, tuple[int, ...]]:
        numbers = _numbers(build.cuda or build.tag.removeprefix("rocm"))
        in_full = newest is None or build.kind != "cuda" or numbers <= newest
        order = tuple(-number for number in numbers) if in_full else numbers
        return (build.tag != current, not in_full, order)

    return sorted(found, key=best_first)


def _cuda_of_driver(facts: Facts) -> tuple[int, ...] | None:
    """Return the newest CUDA that the driver supports in full; None when that is unknown."""
    if not isinstance(facts.driver, Driver) or not facts.driver.release:
        return None
    key = _key(facts) or "linux_x86_64"
    cuda = facts.driver.cuda or drivers.cuda_of_driver(facts.driver.release, key)
    return _numbers(cuda) if cuda else None
