"""The steps that checks may propose: what to type, what it costs, what it does to the facts.

Cost is one scale for all: 1 for a variable, 2 to 4 for a small package or a file, 8 for a
reinstall of torch, 12 for another build or release of it, 20 for a new environment, 30 and up for
what needs admin rights or a reboot. Steps that need neither admin rights nor a reboot, and change
least, are cheapest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchdoctor import constraints, effects, installers, shells
from torchdoctor.choose import PYTHONS, Choice, choose
from torchdoctor.facts import Build, Distribution, Driver, Facts, Interpreter, Platform, Unknown
from torchdoctor.installers import Package
from torchdoctor.model import Commands, Effect, Layer, Step
from torchdoctor.tables import builds, platforms, releases

VARIABLE, SMALL, COMPANION, REINSTALL, BUILD, ENVIRONMENT = 1, 2, 4, 8, 12, 20
ADMIN = REBOOT = 30

NVIDIA_WHEELS = ("nvidia-", "cuda-toolkit", "cuda-bindings")
CONDA = ("conda", "mamba", "pixi")
DEBIAN_BRANCH = 535
"""The NVIDIA driver of Debian 12; for a newer branch, NVIDIA's own repository is needed."""


def slug(*words: str) -> str:
    """Return *words* as the name of a step."""
    return "-".join(re.findall(r"[a-z0-9]+", "-".join(words).lower()))


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


def reinstall(facts: Facts, names: Iterable[str], *, why: str, copies: int = 1) -> Step:
    """Return the step that puts back the files of installed distributions, same versions.

    *copies* is how many metadata folders each has; more than one are removed first.
    """
    wanted = [d for name in names if (d := owner(facts, name))]
    if (image := constraints.ngc_image(facts)) and any(d.name == "torch" for d in wanted):
        return _new_container(image, {d.name: d.version for d in wanted}, facts)
    groups: dict[str | None, list[Package]] = {}
    for distribution in wanted:
        groups.setdefault(_index_of(facts, distribution), []).append(_as_installed(distribution))
    lines: list[Commands] = []
    if copies > 1:
        lines.append(installers.uninstall(_tool(facts), [d.name for d in wanted], times=copies))
    lines += [
        installers.install(_tool(facts), packages, index=index, reinstall=True)
        for index, packages in groups.items()
    ]
    versions = {d.name: d.version for d in wanted}
    said = " and ".join(f"{n} {v}" for n, v in list(versions.items())[:3])
    more = f" and {len(versions) - 3} more" if len(versions) > 3 else ""  # noqa: PLR2004
    big = "torch" in versions or len(versions) > 2  # noqa: PLR2004
    return Step(
        name=slug("reinstall", *(list(versions)[:4])),
        title=f"Reinstall {said}{more}",
        why=why,
        layer=Layer.PACKAGES,
        cost=(REINSTALL if big else COMPANION) + (copies > 1),
        effect=effects.packages(versions, build=_same_build(facts)),
        commands=installers.join(*lines),
        needs=("network",),
        deletes=copies > 1,
    )


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


def change_build(facts: Facts, choice: Choice, *, why: str) -> Step:
    """Return the step that brings torch and its companions to *choice*, in one command.

    Wheels of another CUDA major that torch brought go first: they share file names with those
    that come.
    """
    gone = _nvidia_wheels_of_another_major(facts, choice.tag)
    versions = choice.versions
    names = described(choice)
    torch = facts.torch if isinstance(facts.torch, Build) else None
    if torch and torch.distribution and torch.distribution.version == versions["torch"]:
        cost = REINSTALL
    elif torch and torch.public == choice.release:
        cost = BUILD
    else:
        cost = BUILD + 4
    return Step(
        name=slug("install", "torch", versions["torch"]),
        title=f"Install {names}",
        why=why,
        layer=Layer.PACKAGES,
        cost=cost,
        effect=effects.then(
            effects.packages(versions, removed=gone),
            *(effects.with_variable(name, value) for name, value in choice.variables),
        ),
        commands=installers.join(
            installers.install(
                _tool(facts), choice.packages, index=choice.index, remove_first=gone
            ),
            *_after_torch(_tool(facts), choice),
        ),
        needs=("network",),
        deletes=bool(gone),
    )


def described(choice: Choice) -> str:
    """Return the packages of *choice* with their versions: "torch 2.13.0+cu130 xformers 0.0.35"."""
    named = [f"{p.name} {p.version}" for p in choice.packages]
    named += [f"{b.name} {b.version or b.specifier}" for b in choice.beside]
    return " ".join(name.strip() for name in named)


def _after_torch(tool: Interpreter | Unknown, choice: Choice) -> list[Commands]:
    """Return what follows the install of torch: what goes beside it, and its variables."""
    return [
        installers.beside(tool, choice.beside, index=choice.index),
        *(shells.assign(name, value) for name, value in choice.variables),
    ]


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
        commands=_without_dependencies(facts, packages, index),
        needs=("network",),
    )


def align_companions(facts: Facts, names: Iterable[str], *, why: str) -> Step | None:
    """Return the step that brings torchvision, torchaudio to the release and build of torch.

    None where one of them does not exist for that build.
    """
    if not isinstance(facts.torch, Build):
        return None
    label = (facts.torch.distribution or facts.torch).version.partition("+")[2] or None
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    plain = dict(zip(constraints.COMPANIONS, releases.companions(facts.torch.public), strict=True))
    groups: dict[str | None, dict[str, str]] = {}
    for name in names:
        version, its = plain[name], None
        if label is not None:
            found = constraints.companion(name, facts.torch.public, label, key)
            version, its = found or (None, None)
        if version is None:
            return None
        full = f"{version}+{its}" if its else version
        groups.setdefault(index_for(facts, its), {})[name] = full
    if not groups:
        return None
    parts = [align(facts, versions, index, why=why) for index, versions in groups.items()]
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        name="-".join((first.name, *(p.name.removeprefix("install-") for p in parts[1:]))),
        title=" and ".join((first.title, *(p.title.removeprefix("Install ") for p in parts[1:]))),
        cost=sum(part.cost for part in parts),
        effect=effects.then(*(part.effect for part in parts)),
        commands=installers.join(*(part.commands for part in parts)),
    )


def uninstall(facts: Facts, name: str, *, why: str, copies: int = 1) -> Step:
    """Return the step that removes a distribution from the environment."""
    return Step(
        name=slug("uninstall", name),
        title=f"Uninstall {name}",
        why=why,
        layer=Layer.PACKAGES,
        cost=SMALL,
        effect=effects.packages({}, removed=(name,)),
        commands=installers.uninstall(_tool(facts), [name], times=copies),
        deletes=True,
    )


def remove_paths(paths: Iterable[str], *, name: str, title: str, why: str) -> Step:
    """Return the step that deletes files or folders; its effect is left to the caller."""
    kept = tuple(paths)
    return Step(
        name=slug(name),
        title=title,
        why=why,
        layer=Layer.ENVIRONMENT,
        cost=SMALL,
        effect=effects.untried,
        commands=Commands(
            bash=shells.in_all([("rm", "-rf", p) for p in kept]).bash,
            powershell=tuple(
                f"Remove-Item -Recurse -Force -LiteralPath '{p}'" for p in kept if "'" not in p
            ),
            cmd=tuple(f'rmdir /s /q "{p}"' for p in kept),
        ),
        deletes=True,
    )


def rename_path(path: str, to: str, *, why: str) -> Step:
    """Return the step that renames a file or folder that is in the way."""
    short = path.replace("\\", "/").rpartition("/")[2]
    return Step(
        name=slug("rename", short),
        title=f"Rename {path} to {to}",
        why=why,
        layer=Layer.SCRIPT,
        cost=SMALL,
        effect=effects.untried,
        commands=Commands(
            bash=shells.in_all([("mv", path, path[: -len(short)] + to)]).bash,
            powershell=(f"Rename-Item -LiteralPath '{path}' '{to}'",),
            cmd=(f'ren "{path}" "{to}"',),
        ),
    )


def unset_variable(variable: str, *, why: str) -> Step:
    """Return the step that takes an environment variable away."""
    return Step(
        name=slug("unset", variable),
        title=f"Unset {variable}, here and where it is set for good",
        why=why,
        layer=Layer.VARIABLES,
        cost=VARIABLE,
        effect=effects.without_variable(variable),
        commands=shells.unset(variable),
    )


def set_variable(variable: str, value: str, *, why: str) -> Step:
    """Return the step that sets an environment variable."""
    return Step(
        name=slug("set", variable),
        title=f"Set {variable}={value}, here and for good",
        why=why,
        layer=Layer.VARIABLES,
        cost=VARIABLE,
        effect=effects.with_variable(variable, value),
        commands=shells.assign(variable, value),
    )


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
        title=f"Make a new environment with Python {python} and torch {choice.release}",
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


def upgrade_driver(facts: Facts, release: str, cuda: str | None, *, why: str) -> Step:
    """Return the step that installs an NVIDIA driver of *release* or newer, and reboots."""
    branch = release.partition(".")[0]
    return Step(
        name="upgrade-driver",
        title=f"Install the NVIDIA driver {release} or newer, then reboot",
        why=why,
        layer=Layer.DRIVER,
        cost=ADMIN + REBOOT,
        effect=effects.driver_becomes(release, cuda),
        commands=driver_commands(facts, branch),
        needs=("admin", "network", "reboot"),
    )


def driver_commands(facts: Facts, branch: str) -> Commands:
    """Return how the system's own packages install an NVIDIA driver of *branch*; empty if none.

    Sources: the distributions' own pages (Ubuntu: ubuntu-drivers; Debian: NvidiaGraphicsDrivers;
    Fedora: rpmfusion Howto/NVIDIA; Arch: NVIDIA). Windows and WSL have no command: the driver
    comes from NVIDIA's page.
    """
    platform = facts.platform
    if isinstance(platform, Unknown) or platform.system != "linux" or platform.wsl:
        return Commands()
    kinds = {platform.distribution, *platform.like}
    if "ubuntu" in kinds:
        lines = [f"sudo ubuntu-drivers install nvidia:{branch}", "sudo reboot"]
    elif "debian" in kinds and int(branch) <= DEBIAN_BRANCH:
        lines = ["sudo apt-get update", "sudo apt-get install -y nvidia-driver", "sudo reboot"]
    elif kinds & {"rhel", "centos", "rocky", "almalinux", "ol"}:
        lines = ["sudo dnf module install -y nvidia-driver:latest-dkms", "sudo reboot"]
    elif "fedora" in kinds:
        lines = ["sudo dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda", "sudo reboot"]
    elif "arch" in kinds:
        lines = ["sudo pacman -Syu --needed nvidia", "sudo reboot"]
    elif kinds & {"suse", "opensuse", "sles"}:
        lines = ["sudo zypper install -y nvidia-open-driver-G06-signed", "sudo reboot"]
    else:
        return Commands()
    return Commands(bash=tuple(lines))


def reboot(*, why: str) -> Step:
    """Return the step that reboots, after which kernel module and driver library are one."""

    def effect(after: Facts) -> Facts:
        if not isinstance(after.driver, Driver):
            return effects.untried(after)
        release = after.driver.library or after.driver.release
        return effects.driver_becomes(release, after.driver.cuda)(after)

    return Step(
        name="reboot",
        title="Reboot",
        why=why,
        layer=Layer.DRIVER,
        cost=REBOOT,
        effect=effect,
        commands=Commands(
            bash=("sudo reboot",),
            powershell=("Restart-Computer",),
            cmd=("shutdown /r /t 0",),
        ),
        needs=("admin", "reboot"),
    )


def by_hand(  # noqa: PLR0913 - a step has that many sides
    name: str,
    title: str,
    *,
    why: str,
    layer: Layer,
    cost: int,
    effect: Effect,
    bash: tuple[str, ...] = (),
    admin: bool = False,
) -> Step:
    """Return a step of the operating system, with its bash commands if there are any."""
    return Step(
        name=name,
        title=title,
        why=why,
        layer=layer,
        cost=cost + (ADMIN if admin else 0),
        effect=effect,
        commands=Commands(bash=bash),
        needs=("admin",) if admin else (),
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
    """Return the index that carries builds of *tag*; None where the default index does."""
    apple = isinstance(facts.platform, Platform) and facts.platform.system == "darwin"
    return f"{builds.INDEX_ROOT}{tag}" if tag and not apple else None


def _index_of(facts: Facts, distribution: Distribution) -> str | None:
    label = distribution.version.partition("+")[2]
    if not label or distribution.name not in effects.FAMILY:
        return None
    return index_for(facts, label)


def _as_installed(distribution: Distribution) -> Package:
    bare = "+" not in distribution.version
    return Package(
        distribution.name,
        distribution.version,
        exact=bare and distribution.name in effects.FAMILY,
    )


def _same_build(facts: Facts) -> Build | None:
    torch = facts.torch
    if not isinstance(torch, Build) or torch.distribution is None:
        return None
    version = torch.distribution.version
    return torch if torch.version.startswith(version) else replace(torch, version=version)


def _without_dependencies(facts: Facts, packages: list[Package], index: str | None) -> Commands:
    """Return an install that leaves torch alone: a companion's own pin could pull another one."""
    return installers.install(_tool(facts), packages, index=index, reinstall=True)


def _nvidia_wheels_of_another_major(facts: Facts, tag: str) -> tuple[str, ...]:
    if isinstance(facts.distributions, Unknown):
        return ()
    major = tag[2:4] if tag.startswith("cu") else ""
    torch = facts.torch if isinstance(facts.torch, Build) else None
    if torch is None or not torch.cuda or torch.cuda.partition(".")[0] == major:
        return ()
    return tuple(sorted({d.name for d in facts.distributions if d.name.startswith(NVIDIA_WHEELS)}))


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


def _just_below(version: str) -> str:
    """Return a version below *version*, as the newest one that ``<version`` may bring."""
    major = int(version.partition(".")[0])
    return f"{major - 1}.99" if major else "0"


def restart_container(
    title: str, *, why: str, effect: Effect, bash: tuple[str, ...] = (), name: str = ""
) -> Step:
    """Return the step that starts the container anew, with other options or on a mended host."""
    return Step(
        name=name or "restart-container",
        title=title,
        why=why,
        layer=Layer.RUNTIME,
        cost=BUILD,
        effect=effect,
        commands=Commands(bash=bash),
        needs=("restart-container",),
    )


def _tool(facts: Facts) -> Interpreter | Unknown:
    """Return the interpreter with the installer that torch belongs to.

    A torch that pip put into a conda environment stays pip's: conda would add a second one.
    """
    return by_pip(facts).interpreter if pip_in_conda(facts, "torch") else facts.interpreter


def pip_in_conda(facts: Facts, name: str) -> bool:
    """Tell whether conda owns the environment, and pip (or uv) the distribution *name* in it."""
    if isinstance(facts.interpreter, Unknown) or facts.interpreter.installer not in CONDA:
        return False
    distribution = owner(facts, name)
    return distribution is not None and distribution.installer not in ("", *CONDA)


def by_pip(facts: Facts) -> Facts:
    """Return *facts* with pip as the installer of the environment, to build steps from."""
    if isinstance(facts.interpreter, Unknown):
        return facts
    return replace(facts, interpreter=replace(facts.interpreter, installer="pip"))


def install_requirements(
    facts: Facts, landed: Mapping[str, tuple[str, str]], *, why: str, cost: int = COMPANION
) -> Step:
    """Return the step that installs small packages: name -> (requirement, version it brings)."""
    requirements = [requirement for requirement, _ in landed.values()]
    first = list(landed)[:3]
    more = f" and {len(landed) - 3} more" if len(landed) > 3 else ""  # noqa: PLR2004
    return Step(
        name=slug("install", *list(landed)[:4]),
        title=f"Install {', '.join(landed[name][0] for name in first)}{more}",
        why=why,
        layer=Layer.PACKAGES,
        cost=cost,
        effect=effects.packages({name: version for name, (_, version) in landed.items()}),
        commands=installers.with_pip(facts.interpreter, "install", *requirements),
        needs=("network",),
    )


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
            installers.uninstall(_tool(facts), removed, times=times),
            installers.install(_tool(facts), wanted, index=index, reinstall=True),
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
        installers.install(_tool(facts), [Package(n, "") for n in names], index=row.index)
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
