"""Steps for environments that conda, mamba or pixi own, where pip may have been at work too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torchdoctor import effects, installers, shells, steps
from torchdoctor.facts import Build, Conda, CondaPackage, Facts, Interpreter, Unknown
from torchdoctor.model import Effect, Layer, Step


def channel(text: str) -> str:
    """Return the short name of a channel: defaults, pytorch, conda-forge, nvidia.

    conda-meta has it as an address with the platform, ``conda list`` as the short name.
    """
    parts = [part for part in text.partition("://")[2].split("/") if part] or [text]
    if "pkgs" in parts or text.startswith("pkgs/") or parts == ["anaconda"]:
        return "defaults"
    return parts[1] if "://" in text and len(parts) > 1 else parts[0]


def install(
    facts: Facts,
    *specs: str,
    why: str,
    effect: Effect,
    again: bool = False,
    cost: int | None = None,
) -> Step:
    """Return the step that installs match specifications; *again* also when they are there."""
    tool = _tool(facts)
    start = (tool, "install", "-y", *(("--force-reinstall",) if again else ()), *_prefix(facts))
    if tool == "pixi":
        start = ("pixi", "add")
    return Step(
        name=steps.slug("conda-install", *(spec.replace("::", "-") for spec in specs)),
        title=f"Install {' and '.join(specs)} with {tool}",
        why=why,
        layer=Layer.PACKAGES,
        cost=steps.COMPANION if cost is None else cost,
        effect=effect,
        commands=shells.in_all([(*start, *specs)]),
        needs=("network",),
    )


def remove(facts: Facts, *names: str, why: str, effect: Effect) -> Step:
    """Return the step that removes packages, and nothing that depends on them."""
    return Step(
        name=steps.slug("conda-remove", *names),
        title=f"Remove {' and '.join(names)} with {_tool(facts)}",
        why=why,
        layer=Layer.PACKAGES,
        cost=steps.SMALL,
        effect=effect,
        commands=shells.in_all([_removal(facts, names)]),
        deletes=True,
    )


def keep_pip(facts: Facts, versions: Mapping[str, str], records: tuple[str, ...]) -> Step:
    """Return the step that ends conda's claim by *records* and reinstalls pip's *versions*."""
    pip = steps.by_pip(facts).interpreter
    torch = facts.torch if isinstance(facts.torch, Build) and "torch" in versions else None
    return Step(
        name="keep-pip-torch",
        title=f"Take {' and '.join(records)} out of conda, reinstall "
        f"{' and '.join(f'{n} {v}' for n, v in versions.items())} by pip",
        why="Removing conda's record takes shared files along, so pip's copy is put back whole.",
        layer=Layer.PACKAGES,
        cost=steps.REINSTALL + 1,
        effect=effects.then(
            effects.packages(versions, build=torch),
            _installed_by("pip", frozenset(versions)),
            without_records(frozenset(records)),
        ),
        commands=installers.join(
            shells.in_all([_removal(facts, records)]),
            *steps.write_again(facts, pip, versions),
        ),
        needs=("network",),
        deletes=True,
    )


def keep_conda(facts: Facts, records: Mapping[str, CondaPackage]) -> Step:
    """Return the step that uninstalls pip's copies and has conda put back its *records*."""
    specs = [f"{channel(r.channel)}::{r.name}={r.version}" for r in records.values()]
    names = tuple(records)
    back = install(facts, *specs, why="", effect=effects.untried, again=True)
    pip = steps.by_pip(facts).interpreter
    return replace(
        back,
        name="keep-conda-torch",
        title=f"Uninstall {' and '.join(names)} by pip, have conda put back {' and '.join(specs)}",
        why="pip's copy goes, and conda's files, which pip overwrote, come back.",
        cost=steps.REINSTALL + 2,
        effect=effects.then(
            effects.packages({name: record.version for name, record in records.items()}),
            _installed_by("conda", frozenset(names)),
            without_records(frozenset(names), channel_only="pypi"),
        ),
        commands=installers.join(installers.uninstall(pip, names), back.commands),
        deletes=True,
    )


def keep_record(facts: Facts, kept: CondaPackage, gone: tuple[str, ...], *, why: str) -> Step:
    """Return the step that removes conda's records *gone*, and has it put *kept* back whole."""
    spec = f"{channel(kept.channel)}::{kept.name}={kept.version}"
    back = install(facts, spec, why=why, effect=effects.untried, again=True)
    return replace(
        back,
        name="keep-one-record",
        title=f"Remove {' and '.join(gone)} from conda, have it put back {spec}",
        cost=steps.REINSTALL,
        effect=effects.then(effects.untried, without_records(frozenset(gone))),
        commands=installers.join(shells.in_all([_removal(facts, gone)]), back.commands),
        deletes=True,
    )


def without_records(gone: frozenset[str], *, channel_only: str | None = None) -> Effect:
    """Return the effect of conda's records called *gone* (of one channel only) being away."""

    def effect(facts: Facts) -> Facts:
        if not isinstance(facts.conda, Conda):
            return facts
        left = tuple(
            package
            for package in facts.conda.packages
            if package.name not in gone or channel_only not in (None, package.channel)
        )
        torch_files = facts.conda.torch_files if channel_only else 0
        conda = replace(facts.conda, packages=left, torch_files=torch_files)
        return effects.untried(facts).but(conda=conda)

    return effect


def changed(**fields: Mapping[str, str]) -> Effect:
    """Return the effect on conda's records: a field of CondaPackage -> {name: new value}."""

    def effect(facts: Facts) -> Facts:
        if not isinstance(facts.conda, Conda):
            return effects.untried(facts)
        packages = tuple(
            replace(package, **{k: new[package.name] for k, new in fields.items()})
            if all(package.name in new for new in fields.values())
            else package
            for package in facts.conda.packages
        )
        conda = replace(facts.conda, packages=packages)
        return effects.untried(facts).but(conda=conda)

    return effect


def _installed_by(installer: str, names: frozenset[str]) -> Effect:
    def effect(facts: Facts) -> Facts:
        if isinstance(facts.distributions, Unknown):
            return facts
        now = tuple(
            replace(d, installer=installer) if d.name in names else d for d in facts.distributions
        )
        return facts.but(distributions=now)

    return effect


def _removal(facts: Facts, names: tuple[str, ...]) -> tuple[str, ...]:
    tool = _tool(facts)
    if tool == "pixi":
        return ("pixi", "remove", *names)
    return (tool, "remove", "-y", "--force", *_prefix(facts), *names)


def _tool(facts: Facts) -> str:
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.installer in steps.CONDA:
        return facts.interpreter.installer
    return "conda"


def _prefix(facts: Facts) -> tuple[str, ...]:
    if not isinstance(facts.interpreter, Interpreter) or facts.interpreter.redacted:
        return ()
    return ("-p", facts.interpreter.prefix)
