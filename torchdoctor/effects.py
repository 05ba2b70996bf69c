"""What a step does to the facts. Pure: facts in, facts out; never a word about findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from torchdoctor.facts import (
    AllReduce,
    Build,
    Distribution,
    Driver,
    Facts,
    Interpreter,
    Limits,
    Linux,
    Module,
    Record,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Effect
from torchdoctor.tables import symptoms as messages

TO_TRY = Unknown("has to be tried again after the plan")
FAMILY = ("torch", "torchvision", "torchaudio")
CONDA = ("conda", "mamba", "pixi")
LASTING = frozenset(
    (
        "reported",
        "build-without-torch",
        "host-compiler-refused",
        "cuda-virtual-package",
        "container-runtime-unknown",
        "container-toolkit-failed",
    )
)
"""Messages that another install of torch, or another variable, does not make untrue; with those
that their own table calls lasting."""
SHM_IS_FULL = ("shm-no-space", "loader-bus-error", "shm-segment-failed", "exit-code")
"""Messages of which a larger /dev/shm may be the end."""
DIES_WHILE_IT_STARTS = ("1114", "998")
"""Numbers of Windows for a DLL that dies so. The reason is mostly the Visual C++ runtime, which no
install of torch changes."""


def then(*effects: Effect) -> Effect:
    """Return the effect of doing *effects* one after the other."""

    def all_of_them(facts: Facts) -> Facts:
        for effect in effects:
            facts = effect(facts)
        return facts

    return all_of_them


def packages(
    installed: Mapping[str, str], *, removed: Iterable[str] = (), build: Build | None = None
) -> Effect:
    """Return the effect of installing name -> version, whole, and of removing others.

    *build* is what torch then is, where it is more than its version tells.
    """
    gone = frozenset(removed)

    def effect(facts: Facts) -> Facts:
        changes: dict[str, object] = dict(_untried(facts))
        if not isinstance(facts.distributions, Unknown):
            changes["distributions"] = _distributions(facts, installed, gone)
        if not isinstance(facts.records, Unknown):
            left = {n: r for n, r in facts.records.items() if n not in gone}
            changes["records"] = left | {
                name: Record(name, files=0) for name in installed if name in left
            }
        modules = facts.modules
        for name in FAMILY:
            if name in installed:
                built = build_of(facts, name, installed, build if name == "torch" else None)
                changes[name] = built
                if not isinstance(modules, Unknown):
                    modules = {**modules, name: _module(name, built)}
            elif name in gone:
                changes[name] = None
                if not isinstance(modules, Unknown):
                    modules = {**modules, name: None}
        changes["modules"] = modules
        if isinstance(facts.windows, Windows):
            changes["windows"] = _dlls_to_try(facts.windows, installed)
        return facts.but(**changes)

    return effect


def _dlls_to_try(windows: Windows, installed: Mapping[str, str]) -> Windows:
    """Return *windows* without what was worked out from the DLLs that are now others."""
    names: tuple[str, ...] = ("companions",) if any(n in installed for n in FAMILY) else ()
    if "torch" in installed:
        names += ("torch", "renewed", "after", "needs", "strangers", "longest")
    return replace(windows, **dict.fromkeys(names, TO_TRY))


def build_of(
    facts: Facts, name: str, installed: Mapping[str, str], known: Build | None = None
) -> Build:
    """Return the build that ``name==installed[name]`` leaves in the environment.

    *known* is the build, where it is more than its version tells; the installer may be another.
    """
    version = installed[name]
    label = version.partition("+")[2] or None
    old = getattr(facts, name)
    origin = old.origin if isinstance(old, Build) and _owned(old) else f"{_site(facts)}/{name}"
    distribution = _distribution(facts, name, version)
    if known is not None:
        return replace(known, distribution=distribution)
    return Build(
        version,
        cuda=cuda_of(label),
        hip=label[4:] if label and label.startswith("rocm") else None,
        origin=origin,
        tag=label,
        distribution=distribution,
    )


def cuda_of(tag: str | None) -> str | None:
    """Return the CUDA release of a build tag: cu126 -> 12.6; None for other tags."""
    if tag and tag.startswith("cu") and tag[2:].isdigit() and len(tag) > 4:  # noqa: PLR2004
        return f"{tag[2:-1]}.{tag[-1]}"
    return None


def without_variable(name: str) -> Effect:
    """Return the effect of unsetting an environment variable."""

    def effect(facts: Facts) -> Facts:
        if isinstance(facts.variables, Unknown):
            return untried(facts)
        left = {k: v for k, v in facts.variables.items() if k != name}
        return facts.but(variables=MappingProxyType(left), **_untried(facts))

    return effect


def with_variable(name: str, value: str) -> Effect:
    """Return the effect of setting an environment variable."""

    def effect(facts: Facts) -> Facts:
        if isinstance(facts.variables, Unknown):
            return untried(facts)
        variables = {**facts.variables, name: value}
        return facts.but(variables=variables, **_untried(facts))

    return effect


def change(**fields: object) -> Effect:
    """Return the effect of the named facts taking these values; what was tried is open again."""

    def effect(facts: Facts) -> Facts:
        return facts.but(**_untried(facts) | fields)

    return effect


def turned(name: str, how: Callable[[Any], object]) -> Effect:
    """Return the effect of *how* on the fact *name* as it is by then, also after other steps.

    What is not known, or is not there, stays so; what was tried is open again.
    """

    def effect(facts: Facts) -> Facts:
        now = getattr(facts, name)
        if now is None or isinstance(now, Unknown):
            return untried(facts)
        return facts.but(**_untried(facts) | {name: how(now)})

    return effect


def altered(name: str, /, **fields: object) -> Effect:
    """Return the effect of the fact *name* taking these values in its fields, and in no other."""
    return turned(name, lambda now: replace(now, **fields))


def larger_shm(size: int) -> Effect:
    """Return the effect of a /dev/shm of *size* bytes, of which all is free."""

    def larger(facts: Facts) -> Facts:
        now = facts.limits if isinstance(facts.limits, Limits) else Limits()
        return facts.but(limits=replace(now, shm=size, shm_free=size))

    return then(settled(*SHM_IS_FULL), larger)


def driver_becomes(release: str | None, cuda: str | None) -> Effect:
    """Return the effect of a working driver of *release* after a reboot."""

    def effect(facts: Facts) -> Facts:
        old = facts.driver if isinstance(facts.driver, Driver) else Driver(release)
        new = replace(
            old,
            release=release,
            cuda=cuda,
            kernel_module=release,
            library=release,
            cuda_library=None,
            error=None,
            code=None,
            hung=False,
            garbage=False,
        )
        return facts.but(driver=new, **_untried(facts))

    return effect


def where(test: Callable[[Facts], bool], effect: Effect) -> Effect:
    """Return *effect*, done only on facts for which *test* holds."""
    return lambda facts: effect(facts) if test(facts) else facts


def untried(facts: Facts) -> Facts:
    """Return *facts* without what was learnt by importing."""
    return facts.but(**_untried(facts))


def settled(*names: str) -> Effect:
    """Return the effect of curing what the messages *names* said; all others stand.

    For a step that has to do with nothing else: to empty a cache makes no GPU work.
    """

    def effect(facts: Facts) -> Facts:
        changes = _untried(facts)
        if not isinstance(facts.symptoms, Unknown):
            changes["symptoms"] = tuple(s for s in facts.symptoms if s.name not in names)
        return facts.but(**changes)

    return effect


def _untried(facts: Facts) -> dict[str, object]:
    tried: dict[str, object] = {
        "trial": TO_TRY,
        "companion_trials": TO_TRY,
        "runtime": TO_TRY,
    }
    changes: dict[str, object] = {
        name: value
        for name, value in tried.items()
        if not isinstance(getattr(facts, name), Unknown)
    }
    if isinstance(facts.all_reduce, AllReduce):
        changes["all_reduce"] = TO_TRY
    if isinstance(facts.linux, Linux):  # worked out from files, paths and variables
        names = ("torch", "without", "steered", "extensions", "stacks")
        changes["linux"] = replace(facts.linux, **dict.fromkeys(names, TO_TRY))
    if not isinstance(facts.symptoms, Unknown):
        # What a report, a compiler or docker said was not said by an import.
        lasting = LASTING | messages.lasting() if facts.symptoms else LASTING
        left = tuple(s for s in facts.symptoms if s.name in lasting or _dies_while_it_starts(s))
        changes["symptoms"] = left if left != facts.symptoms else facts.symptoms
    return changes


def _dies_while_it_starts(symptom: Symptom) -> bool:
    code = symptom.values.get("code")
    return symptom.name == "winerror-dll" and code in DIES_WHILE_IT_STARTS


def _distributions(
    facts: Facts, installed: Mapping[str, str], gone: frozenset[str]
) -> tuple[Distribution, ...]:
    assert not isinstance(facts.distributions, Unknown)
    kept = [d for d in facts.distributions if d.name not in installed and d.name not in gone]
    new = [_distribution(facts, name, version) for name, version in installed.items()]
    return (*kept, *new)


def _distribution(facts: Facts, name: str, version: str) -> Distribution:
    installer = facts.interpreter.installer if isinstance(facts.interpreter, Interpreter) else ""
    torch = facts.torch.distribution if isinstance(facts.torch, Build) else None
    if installer in CONDA and torch and torch.installer not in ("", *CONDA):
        installer = "pip"  # a torch that pip put into a conda environment stays pip's
    known = () if isinstance(facts.distributions, Unknown) else facts.distributions
    # The same version asks for the same packages: a reinstall does not bring what is lacking.
    same = next((d for d in known if d.name == name and d.version == version), None)
    return Distribution(
        name,
        version,
        folder=_site(facts),
        metadata=f"{name.replace('-', '_')}-{version}.dist-info",
        installer=installer,
        requires=same.requires if same else (),
    )


def _site(facts: Facts) -> str:
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.site_packages:
        return facts.interpreter.site_packages[0]
    return "site-packages"


def _owned(build: Build) -> bool:
    return build.distribution is not None and not build.distribution.user_site


def _module(name: str, build: Build) -> Module:
    folder = build.origin.rpartition("/")[0] or build.origin.rpartition("\\")[0]
    return Module(name, f"{build.origin}/__init__.py", folder)


def owned_by(distribution: Distribution) -> Build:
    """Return the build that an installed *distribution* is, as far as its version tells."""
    label = distribution.version.partition("+")[2] or None
    separator = "\\" if "\\" in distribution.folder else "/"
    return Build(
        distribution.version,
        cuda=cuda_of(label),
        hip=label[4:] if label and label.startswith("rocm") else None,
        origin=f"{distribution.folder}{separator}{distribution.name}",
        tag=label,
        distribution=distribution,
    )
