"""Steps that bring a build of torch, its companions, or an environment for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchdoctor import constraints, effects, installers, shells
from torchdoctor.choose import PYTHONS, Choice, choose
from torchdoctor.facts import Build, Facts, Interpreter, Platform, Unknown
from torchdoctor.installers import Package
from torchdoctor.model import Commands, Effect, Layer, Step
from torchdoctor.scale import BUILD, COMPANION, ENVIRONMENT, REINSTALL, slug
from torchdoctor.steps.packages import index_for, tool
from torchdoctor.tables import builds, platforms, releases

NVIDIA_WHEELS = ("nvidia-", "cuda-toolkit", "cuda-bindings")


def install_torch(facts: Facts, *, why: str) -> tuple[Step, ...]:
    """Return the step that brings the build of torch that fits; none when the tables know none.

    Into a new environment where the Python belongs to the system, or has no wheel.
    """
    interpreter = facts.interpreter
    known = interpreter if isinstance(interpreter, Interpreter) else None
    if (choice := choose(facts)) and not (known and known.externally_managed):
        return (change_build(facts, choice, why=why),)
    for python in (*([known.tag] if known else []), *PYTHONS):
        if choice := choose(facts, python=python):
            return (new_environment(facts, python, choice, why=why),)
    return ()


def change_build(facts: Facts, choice: Choice, *, why: str) -> Step:
    """Return the step that brings torch and its companions to *choice*, in one command.

    Wheels of another CUDA major that torch brought go first: they share file names with those
    that come.
    """
    gone = _nvidia_wheels_of_another_major(facts, choice.tag)
    versions = choice.versions
    torch = facts.torch if isinstance(facts.torch, Build) else None
    if torch and torch.distribution and torch.distribution.version == versions["torch"]:
        cost = REINSTALL
    elif torch and torch.public == choice.release:
        cost = BUILD
    else:
        cost = BUILD + 4
    return Step(
        name=slug("install", "torch", versions["torch"]),
        title=f"Install {_described(choice)}{_no_gpu_known(facts, choice)}",
        why=why,
        layer=Layer.PACKAGES,
        cost=cost,
        effect=effects.then(
            effects.packages(versions, removed=gone),
            *(effects.with_variable(name, value) for name, value in choice.variables),
        ),
        commands=installers.join(
            installers.install(tool(facts), choice.packages, index=choice.index, remove_first=gone),
            *_after_torch(tool(facts), choice),
        ),
        needs=("network",),
        deletes=bool(gone),
    )


def _no_gpu_known(facts: Facts, choice: Choice) -> str:
    """Return what to say where a CPU build is taken only because nothing tells of a GPU."""
    open_ = isinstance(facts.torch, Unknown) and isinstance(facts.gpus, Unknown)
    if choice.tag != "cpu" or not open_:
        return ""
    return " (no GPU is told of here; with one, take the index of its build in place of /cpu)"


def _described(choice: Choice) -> str:
    """Return the packages of *choice* with their versions: "torch 2.13.0+cu130 xformers 0.0.35"."""
    named = [f"{p.name} {p.version}" for p in choice.packages]
    named += [f"{b.name} {b.version or b.specifier}" for b in choice.beside]
    return " ".join(name.strip() for name in named)


def _after_torch(interpreter: Interpreter | Unknown, choice: Choice) -> list[Commands]:
    """Return what follows the install of torch: what goes beside it, and its variables."""
    return [
        installers.beside(interpreter, choice.beside, index=choice.index),
        *(shells.assign(name, value) for name, value in choice.variables),
    ]


def _nvidia_wheels_of_another_major(facts: Facts, tag: str) -> tuple[str, ...]:
    if isinstance(facts.distributions, Unknown):
        return ()
    major = tag[2:4] if tag.startswith("cu") else ""
    torch = facts.torch if isinstance(facts.torch, Build) else None
    if torch is None or not torch.cuda or torch.cuda.partition(".")[0] == major:
        return ()
    return tuple(sorted({d.name for d in facts.distributions if d.name.startswith(NVIDIA_WHEELS)}))


def new_environment(facts: Facts, python: str, choice: Choice, *, why: str) -> Step:
    """Return the step that makes a fresh environment with *python* ("3.12") and *choice*.

    uv brings the Python along, so that the step works where that Python is not installed.
    """
    place = ".venv-torch"
    windows = isinstance(facts.platform, Platform) and facts.platform.system == "win32"
    inside = f"{place}\\Scripts\\python.exe" if windows else f"{place}/bin/python"
    made = Interpreter(inside, f"{python}.0", place, "", "uv", installer="uv")
    return Step(
        name=slug("new-environment", f"python-{python}"),
        title=f"Make a new environment with Python {python} and torch {choice.release}"
        + _no_gpu_known(facts, choice),
        why=why,
        layer=Layer.ENVIRONMENT,
        cost=ENVIRONMENT,
        effect=effects.then(
            _fresh_environment(python, inside),
            effects.packages(choice.versions),
        ),
        commands=installers.join(
            shells.in_all([("uv", "venv", "--python", python, place)]),
            installers.install(made, choice.packages, index=choice.index),
            *_after_torch(made, choice),
        ),
        needs=("network",),
    )


def _fresh_environment(python: str, executable: str) -> Effect:
    def effect(facts: Facts) -> Facts:
        if not isinstance(facts.interpreter, Interpreter):
            return facts
        interpreter = replace(
            facts.interpreter,
            version=f"{python}.0",
            executable=executable,
            kind="uv",
            installer="uv",
            bits=64,
            machine="",
            has_pip=False,
            externally_managed=False,
            user_site=None,
        )
        return effects.change(
            interpreter=interpreter,
            distributions=(),
            leftovers=(),
            records={},
            conda=None,
        )(facts)

    return effect


def align(facts: Facts, versions: Mapping[str, str], index: str | None, *, why: str) -> Step:
    """Return the step that brings companions to *versions*, without touching torch."""
    packages = [Package(n, v, exact=index is None and "+" not in v) for n, v in versions.items()]
    said = " and ".join(f"{n} {v}" for n, v in versions.items())
    return Step(
        name=slug("install", *(f"{n}-{v}" for n, v in versions.items())),
        title=f"Install {said}",
        why=why,
        layer=Layer.PACKAGES,
        cost=COMPANION * len(versions),
        effect=effects.packages(versions),
        # Without dependencies: a companion's own pin could pull another torch.
        commands=installers.install(tool(facts), packages, index=index, reinstall=True),
        needs=("network",),
    )


def align_companions(facts: Facts, names: Iterable[str], *, why: str) -> Step | None:
    """Return the step that brings torchvision, torchaudio to the release and build of torch.

    None where one of them does not exist for that build.
    """
    if not isinstance(facts.torch, Build):
        return None
    groups: dict[str | None, dict[str, str]] = {}
    for name in names:
        version = _companion_of(facts.torch, name, facts)
        if version is None:
            return None
        index = index_for(facts, version.partition("+")[2])
        groups.setdefault(index, {})[name] = version
    parts = [align(facts, versions, index, why=why) for index, versions in groups.items()]
    return _as_one(parts) if parts else None


def _companion_of(torch: Build, name: str, facts: Facts) -> str | None:
    """Return the version of a companion, with its label, for the release and build of *torch*."""
    label = (torch.distribution or torch).version.partition("+")[2]
    usual = builds.default_build(torch.public, constraints.key_of(facts) or "")
    if not label and torch.tag and usual not in (None, torch.tag):
        label = torch.tag  # a torch from elsewhere: the default index has another build
    if not label:
        known = zip(constraints.COMPANIONS, releases.companions(torch.public), strict=True)
        return dict(known)[name]
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    found = constraints.companion(name, torch.public, label, key)
    return "+".join(filter(None, found)) if found else None


def _as_one(parts: list[Step]) -> Step:
    first, *more = parts
    return replace(
        first,
        name="-".join((first.name, *(p.name.removeprefix("install-") for p in more))),
        title=" and ".join((first.title, *(p.title.removeprefix("Install ") for p in more))),
        cost=sum(part.cost for part in parts),
        effect=effects.then(*(part.effect for part in parts)),
        commands=installers.join(*(part.commands for part in parts)),
    )


def jetson_wheels(facts: Facts) -> tuple[Step, ...]:
    """Return the step that installs NVIDIA's own torch for a Jetson; none elsewhere.

    None either where PyTorch's own builds fit it, from JetPack 7.2 on.
    """
    if not isinstance(facts.platform, Platform) or not facts.platform.jetson:
        return ()
    row = constraints.jetpack(facts)
    if row and not row.index:
        return ()
    pip = row is not None and platforms.is_index(row.index)
    names = ["torch", *(n for n in effects.FAMILY[1:] if isinstance(getattr(facts, n), Build))]
    commands = (
        installers.install(tool(facts), [Package(n, "") for n in names], index=row.index)
        if row and pip
        else Commands()
    )
    where = row.index if row else "https://pypi.jetson-ai-lab.io"
    which = (
        f"JetPack {row.version} (CUDA {row.cuda}, Python {row.python})" if row else "its JetPack"
    )
    old = facts.torch if isinstance(facts.torch, Build) else Build("")
    cuda = row.cuda if row else "12.6"
    new = replace(old, version=old.public, cuda=cuda, tag="cu" + cuda.replace(".", ""))
    return (
        Step(
            name="install-jetson-wheel",
            title=f"Install NVIDIA's own torch for {which}, from {where}",
            why="PyTorch's own wheels have no code for the GPU of this Jetson.",
            layer=Layer.PACKAGES,
            cost=BUILD,
            effect=effects.change(torch=new),
            commands=commands,
            needs=("network",),
        ),
    )
