"""Steps that install, reinstall or remove packages, by what owns the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchdoctor import constraints, effects, installers, places
from torchdoctor.facts import Build, Distribution, Facts, Interpreter, Platform, Unknown
from torchdoctor.installers import Package
from torchdoctor.model import Commands, Effect, Layer, Step
from torchdoctor.scale import COMPANION, REINSTALL, SMALL, slug
from torchdoctor.steps.system import by_hand, restart_container
from torchdoctor.tables import builds, platforms

CONDA = ("conda", "mamba", "pixi")
SHOWN = 3
_OF_INDEX = re.compile(r"cpu|cu\d{2,3}|rocm\d{1,2}(?:\.\d{1,2}){1,2}|xpu")
"""Labels that PyTorch's index has a folder for."""


def pip_install(facts: Facts, name: str, version: str, *, why: str, cost: int = COMPANION) -> Step:
    """Return the step that installs one package at one version from the default index.

    *version* may be a full specifier (``<2``) or a bare version.
    """
    requirement = f"{name}{version}" if version[:1] in "<>=!~" else f"{name}=={version}"
    line = installers.with_pip(facts.interpreter, "install", requirement)
    landed = version.lstrip("<>=!~").split(",", maxsplit=1)[0]
    if version.startswith("<"):
        landed = _just_below(landed)
    return Step(
        name=slug("install", name, landed),
        title=f"Install {requirement}",
        why=why,
        layer=Layer.PACKAGES,
        cost=cost,
        effect=effects.packages({name: landed}),
        commands=line,
        needs=("network",),
    )


def _just_below(version: str) -> str:
    """Return a version below *version*, as the newest one that ``<version`` may bring."""
    major = int(version.partition(".")[0])
    return f"{major - 1}.99" if major else "0"


def install_requirements(
    facts: Facts, landed: Mapping[str, tuple[str, str]], *, why: str, cost: int = COMPANION
) -> Step:
    """Return the step that installs small packages: name -> (requirement, version it brings)."""
    requirements = [requirement for requirement, _ in landed.values()]
    return Step(
        name=slug("install", *list(landed)[:4]),
        title=f"Install {_some(requirements, ', ')}",
        why=why,
        layer=Layer.PACKAGES,
        cost=cost,
        effect=effects.packages({name: version for name, (_, version) in landed.items()}),
        commands=installers.with_pip(facts.interpreter, "install", *requirements),
        needs=("network",),
    )


def reinstall(facts: Facts, names: Iterable[str], *, why: str, copies: int = 1) -> Step:
    """Return the step that puts back the files of installed distributions, same versions.

    *copies* is how many metadata folders each has; more than one are removed first.
    """
    versions = {d.name: d.version for name in names if (d := owner(facts, name))}
    if (image := constraints.ngc_image(facts)) and "torch" in versions:
        return _new_container(image, versions, facts)
    lines = write_again(facts, tool(facts), versions)
    if copies > 1:
        lines.insert(0, installers.uninstall(tool(facts), versions, times=copies))
    big = "torch" in versions or len(versions) > 2  # noqa: PLR2004 - as long as torch takes
    if foreign := [f"{n} {v}" for n, v in versions.items() if n in effects.FAMILY and _foreign(v)]:
        return by_hand(
            slug("reinstall", *list(versions)[:4]),
            f"Reinstall {_some(foreign, ' and ')} from where it came: no index of PyTorch has it",
            why=why,
            layer=Layer.PACKAGES,
            cost=REINSTALL,
            effect=effects.packages(versions, build=_same_build(facts)),
        )
    return Step(
        name=slug("reinstall", *list(versions)[:4]),
        title=f"Reinstall {_some([f'{n} {v}' for n, v in versions.items()], ' and ')}",
        why=why,
        layer=Layer.PACKAGES,
        cost=(REINSTALL if big else COMPANION) + (copies > 1),
        effect=_in_place(effects.packages(versions, build=_same_build(facts)), facts, versions),
        commands=installers.join(*lines),
        needs=("network",),
        deletes=copies > 1,
    )


def _foreign(version: str) -> bool:
    """Tell whether *version* has a label that no index of PyTorch has a folder for."""
    label = version.partition("+")[2]
    return bool(label) and not _OF_INDEX.fullmatch(label)


def write_again(
    facts: Facts, owned_by: Interpreter | Unknown, versions: Mapping[str, str]
) -> list[Commands]:
    """Return the commands that install name -> version anew, each from the index of its build."""
    groups: dict[tuple[str | None, str | None], list[Package]] = {}
    for name, version in versions.items():
        label = version.partition("+")[2]
        ours = name in effects.FAMILY
        index = index_for(facts, label if ours else None)
        package = Package(name, version, exact=ours and not label)
        groups.setdefault((index, _target(facts, name)), []).append(package)
    return [
        installers.install(owned_by, packages, index=index, reinstall=True, target=target)
        for (index, target), packages in groups.items()
    ]


def _target(facts: Facts, name: str) -> str | None:
    """Return the folder that ``pip install --target`` put *name* into; None for the usual places.

    It is on the path by PYTHONPATH, and pip would write elsewhere by itself.
    """
    found, python = owner(facts, name), facts.interpreter
    if found is None or found.user_site or not found.folder or isinstance(python, Unknown):
        return None
    inside = not python.site_packages or found.folder in python.site_packages
    given = "" if isinstance(facts.variables, Unknown) else facts.variables.get("PYTHONPATH", "")
    named = found.folder in places.entries(given)
    return found.folder if named and not inside and not python.redacted else None


def _in_place(effect: Effect, facts: Facts, names: Iterable[str]) -> Effect:
    """Return *effect* with the packages *names* in the folders that they were put into."""
    targets = {name: target for name in names if (target := _target(facts, name))}
    if not targets:
        return effect

    def there(distribution: Distribution) -> Distribution:
        folder = targets.get(distribution.name, distribution.folder)
        return replace(distribution, folder=folder)

    def changed(now: Facts) -> Facts:
        after = effect(now)
        fields: dict[str, object] = {}
        if not isinstance(after.distributions, Unknown):
            fields["distributions"] = tuple(map(there, after.distributions))
        for name in effects.FAMILY:
            build = getattr(after, name)
            if isinstance(build, Build) and build.distribution:
                fields[name] = replace(build, distribution=there(build.distribution))
        return replace(after, **fields)  # type: ignore[arg-type] # fields of Facts

    return changed


def _some(named: list[str], between: str) -> str:
    """Return the first few of *named*, and how many more there are."""
    more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return f"{between.join(named[:SHOWN])}{more}"


def _new_container(image: str, versions: Mapping[str, str], facts: Facts) -> Step:
    """Return the step that brings back the torch of an NGC image; no package index has it."""
    name = f"{platforms.ngc_image_name()}:{image}-py3"
    return restart_container(
        f"Start the container anew from its image, {name}",
        why="Its torch is part of the image; what is on a package index does not fit it.",
        effect=effects.packages(versions, build=_same_build(facts)),
        bash=(f"docker run --gpus all --ipc=host -it --rm {name}",),
        name="new-container",
    )


def _same_build(facts: Facts) -> Build | None:
    torch = facts.torch
    if not isinstance(torch, Build) or torch.distribution is None:
        return None
    version = torch.distribution.version
    return torch if torch.version.startswith(version) else replace(torch, version=version)


def clean_install(  # noqa: PLR0913 - a step has that many sides
    facts: Facts,
    packages: Iterable[Package],
    *,
    gone: Iterable[str],
    why: str,
    index: str | None = None,
    times: int = 1,
    build: Build | None = None,
) -> Step:
    """Return the step that removes the distributions *gone*, then installs *packages* afresh.

    For packages that wrote into one folder: whatever of it is left after the removal is whole
    only once the right one is put back.
    """
    wanted = tuple(packages)
    removed = tuple(gone)
    big = any(package.name == "torch" for package in wanted)
    return Step(
        name=slug("clean-install", *(p.name for p in wanted[:3])),
        title=f"Uninstall {', '.join(removed)}, then install "
        + ", ".join(f"{p.name} {p.version}" for p in wanted),
        why=why,
        layer=Layer.PACKAGES,
        cost=(REINSTALL if big else COMPANION) + 1,
        effect=effects.packages(
            {p.name: p.version for p in wanted},
            removed=[name for name in removed if name not in {p.name for p in wanted}],
            build=build,
        ),
        commands=installers.join(
            installers.uninstall(tool(facts), removed, times=times),
            installers.install(tool(facts), wanted, index=index, reinstall=True),
        ),
        needs=("network",),
        deletes=True,
    )


def compile_again(facts: Facts, distribution: Distribution, *, why: str) -> Step:
    """Return the step that builds an extension from source against the torch that is there."""
    name, version = distribution.name, distribution.version.partition("+")[0]
    return Step(
        name=slug("compile", name, version),
        title=f"Compile {name} {version} against the installed torch",
        why=why,
        layer=Layer.PACKAGES,
        cost=COMPANION + 1,
        effect=effects.packages({name: version}),
        commands=installers.with_pip(
            facts.interpreter,
            "install",
            *("--no-build-isolation", "--no-deps", "--force-reinstall"),
            *("--no-cache-dir", f"--no-binary={name}", f"{name}=={version}"),
        ),
        needs=("network",),
    )


def uninstall(facts: Facts, name: str, *, why: str) -> Step:
    """Return the step that removes a distribution from the environment."""
    return Step(
        name=slug("uninstall", name),
        title=f"Uninstall {name}",
        why=why,
        layer=Layer.PACKAGES,
        cost=SMALL,
        effect=effects.packages({}, removed=(name,)),
        commands=installers.uninstall(tool(facts), [name]),
        deletes=True,
    )


def owner(facts: Facts, name: str) -> Distribution | None:
    """Return the installed distribution called *name*; for torch, the one that owns it."""
    build = getattr(facts, name, None)
    if isinstance(build, Build) and build.distribution:
        return build.distribution
    if isinstance(facts.distributions, Unknown):
        return None
    found = [d for d in facts.distributions if d.name == name]
    return next((d for d in found if not d.user_site), found[0] if found else None)


def index_for(facts: Facts, tag: str | None) -> str | None:
    """Return the index that carries builds of *tag*; None where the default index does.

    A label such as ``cxx11.abi`` or ``nv24.5`` is of a build from elsewhere, and names no index.
    """
    apple = isinstance(facts.platform, Platform) and facts.platform.system == "darwin"
    return f"{builds.INDEX_ROOT}{tag}" if tag and _OF_INDEX.fullmatch(tag) and not apple else None


def tool(facts: Facts) -> Interpreter | Unknown:
    """Return the interpreter with the installer that torch belongs to.

    A torch that pip put into a conda environment stays pip's: conda would add a second one.
    """
    if isinstance(facts.interpreter, Unknown) or facts.interpreter.installer not in CONDA:
        return facts.interpreter
    torch = owner(facts, "torch")
    by_conda = torch is None or torch.installer in ("", *CONDA)
    return facts.interpreter if by_conda else replace(facts.interpreter, installer="pip")


def by_pip(facts: Facts) -> Facts:
    """Return *facts* with pip as the installer of the environment, to build steps from."""
    if isinstance(facts.interpreter, Unknown):
        return facts
    return facts.but(interpreter=replace(facts.interpreter, installer="pip"))
