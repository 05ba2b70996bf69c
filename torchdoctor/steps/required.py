"""The steps to what a project's policy requires, or why there is none.

Only what a command can change has a step: packages, the build of torch, the Python of the
environment, the driver, shared memory. Whatever the step brings meets the requirement, and so does
what else the policy says of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torchdoctor import choose, constraints, effects, gpu, requirements
from torchdoctor.choose import Choice
from torchdoctor.constraints import Wish
from torchdoctor.facts import Container, Driver, Facts, Interpreter, Platform
from torchdoctor.model import Commands, Layer, Step
from torchdoctor.scale import SMALL
from torchdoctor.steps import builds, packages, system
from torchdoctor.tables import builds as table
from torchdoctor.tables import drivers, releases

GIB = 1 << 30
NO_COMMAND = {
    "gpus": "no command adds a GPU",
    "gpu-memory": "no command adds memory to a GPU",
    "capability": "no command makes another GPU",
    "nccl": "NCCL comes with torch; another release of torch brings another NCCL",
}
Cure = tuple[tuple[Step, ...], str]
"""Steps, any of which is enough, or else why there is none."""
Asked = tuple[str, str, str | None]
"""What of torch, of CUDA, and which Python instead of the interpreter's."""


def steps(name: str, require: Mapping[str, str], facts: Facts) -> Cure:
    """Return the steps to what *require* says of *name*, or why there is none."""
    if name in NO_COMMAND:
        return (), NO_COMMAND[name]
    if name.startswith("packages."):
        return _package(name.removeprefix("packages."), require[name], facts)
    made: Callable[[Mapping[str, str], Facts], Cure] = {
        "torch": _build,
        "cuda": _build,
        "python": _python,
        "driver": _driver,
        "shm": _shm,
    }[name]
    return made(require, facts)


# ---- torch and Python ----------------------------------------------------------------------------


def _build(require: Mapping[str, str], facts: Facts) -> Cure:
    asked = _asked(require)
    found = _chosen(facts, asked)
    if found is None:
        return (), _why_none(facts, asked)
    why = "It is what the policy requires."
    python = facts.interpreter
    if isinstance(python, Interpreter) and python.externally_managed:
        return (builds.new_environment(facts, python.tag, found, why=why),), ""
    return (builds.change_build(facts, found, why=why),), ""


def _asked(require: Mapping[str, str], python: str | None = None) -> Asked:
    return require.get("torch", ""), require.get("cuda", ""), python


@choose.remembered
def _chosen(facts: Facts, asked: Asked) -> Choice | None:
    """Return the best build that meets what is *asked* of torch, CUDA and Python."""
    wish = _wish(asked)
    _, cuda, _ = asked
    for release, tag in choose.fitting(facts, wish):
        if _is_in(cuda, table.cuda_of(tag)):
            return replace(choose.at(facts, release, tag), python=wish.python)
    own = choose.of_jetpack(facts, wish)
    return own if own and _is_in(cuda, table.cuda_of(own.tag)) else None


@choose.remembered
def _why_none(facts: Facts, asked: Asked) -> str:
    """Return why no build meets what is *asked*."""
    _, cuda, _ = asked
    found = choose.decide(facts, _wish(asked))
    if isinstance(found, Choice):
        return f"no build of torch for this machine has a CUDA of {cuda}"
    said = ", ".join(dict.fromkeys(reason.constraint.subject for reason in found.reasons))
    return f"no build of torch does justice to {said}" if said else "no build of torch is that"


def _wish(asked: Asked) -> Wish:
    torch, cuda, python = asked
    return Wish(torch, "cuda" if cuda else None, python, beside=False, keep=True)


def _python(require: Mapping[str, str], facts: Facts) -> Cure:
    for python in _pythons(facts):
        if not _is_in(require["python"], f"{python}.0"):
            continue
        if found := _chosen(facts, _asked(require, python)):
            why = "Its Python is what the policy requires."
            return (builds.new_environment(facts, python, found, why=why),), ""
    return (), "no build of torch fits such a Python on this machine"


def _pythons(facts: Facts) -> tuple[str, ...]:
    """Return the Pythons that torch is built for here: those with most wheels, then the oldest."""
    key = constraints.key_of(facts) or constraints.ANY_PLATFORM
    known = {p for r in releases.torch_releases() for p in r.pythons.get(key, ())}
    others = sorted(known.difference(choose.PYTHONS), key=constraints.numbers)
    return (*choose.PYTHONS, *(p for p in others if p.replace(".", "").isdigit()))


# ---- other packages ------------------------------------------------------------------------------


def _package(name: str, required: str, facts: Facts) -> Cure:
    if name.lower() in effects.FAMILY:
        return (), f"{name} goes with the release of torch; require that one"
    version = _version_in(required)
    if version is None:
        return (), f"which version of {name} meets {required} is not known"
    why = "It is the version that the policy requires."
    landed = {name: (f"{name}{required}", version)}
    return (packages.install_requirements(facts, landed, why=why),), ""


def _version_in(required: str) -> str | None:
    """Return a version that *required* admits and names, or one just below its upper end."""
    asked = [(s.operator, s.version.removesuffix(".*")) for s in SpecifierSet(required)]
    known = [(operator, version) for operator, version in asked if _parsed(version) is not None]
    named = sorted((v for operator, v in known if operator != "!="), key=Version, reverse=True)
    below = [_below(version) for operator, version in known if operator == "<"]
    return next((v for v in (*named, *below) if v and _is_in(required, v)), None)


def _below(version: str) -> str:
    major = Version(version).major
    return f"{major - 1}.99" if major else ""


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _is_in(required: str, version: str | None) -> bool:
    if not required:
        return True
    return version is not None and requirements.accepts(required, version) is True


# ---- the machine ---------------------------------------------------------------------------------


def _driver(require: Mapping[str, str], facts: Facts) -> Cure:
    required = require["driver"]
    version = _version_in(required)
    platform = facts.platform if isinstance(facts.platform, Platform) else None
    here = facts.driver.release if isinstance(facts.driver, Driver) else None
    if version is None or (here and drivers.compare(version, here) < 0):
        return (), "an older driver is no step"
    if platform and platform.jetson:
        return (), "the driver of a Jetson comes with JetPack"
    for card in map(gpu.with_capability, gpu.of_nvidia(facts.gpus)):
        last = drivers.last_driver_branch(card.capability) if card.capability else None
        if last and int(version.partition(".")[0]) > last:
            return (), f"driver {last} is the last one for {card.name}"
    cuda = drivers.cuda_of_driver(version, constraints.driver_key(facts))
    why = "It is the driver that the policy requires; it is installed once, for the whole machine."
    step = system.upgrade_driver(facts, version, cuda, why=why)
    if isinstance(facts.container, Container):
        step = replace(step, title=f"{step.title} (on the host)", commands=Commands())
    return (step,), ""


def _shm(require: Mapping[str, str], facts: Facts) -> Cure:
    from torchdoctor import policy  # noqa: PLC0415 - few machines are held to a policy

    size = policy.size(require["shm"]) or 0
    whole = -(-size // GIB)

    effect = effects.larger_shm(whole * GIB)
    why = "It is the size that the policy requires."
    if isinstance(facts.container, Container):
        title = f"Start the container with --shm-size={whole}g"
        bash = (f"docker run --gpus all --shm-size={whole}g IMAGE",)
        step = system.restart_container(
            title, why=why, effect=effect, bash=bash, name="enlarge-shm"
        )
        return (step,), ""
    if not isinstance(facts.platform, Platform) or facts.platform.system != "linux":
        return (), "there is no /dev/shm to make larger"
    step = system.by_hand(
        "enlarge-shm",
        f"Make /dev/shm {whole} GB large",
        why=why,
        layer=Layer.RUNTIME,
        cost=SMALL,
        effect=effect,
        bash=(f"sudo mount -o remount,size={whole}G /dev/shm",),
        admin=True,
    )
    return (step,), ""
