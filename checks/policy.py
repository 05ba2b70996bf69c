"""The machine has what the project's policy requires (``--policy``).

How it shows: a job is started on a machine that was never meant for it, and fails hours later, or
is slow, or gives other numbers.

Why: what a project needs (a torch, a driver, so many GPUs with so much memory) is written down in
``[tool.torchdoctor.require]`` of pyproject.toml or in torchdoctor.toml, and this machine has less.

How to tell: the finding names each thing that is required and what is here. What could not be told
is not held against the machine; ``--strict`` fails for that, too.

The fix is to install what is asked for: another build of torch, another Python, a package, the
driver; each is proposed. More or other GPUs no command brings: use another machine or image, or
change the policy.
Source: the file given with ``--policy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion

from torchdoctor.facts import (
    Build,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Interpreter,
    Limits,
    Runtime,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding

FAMILY = "system"
FINDS = ("policy-unmet",)

PACKAGES = "packages."
SIZES = ("gpu-memory", "shm")
NOT_THERE = "none"
GIB = 1 << 30


def check(expectation: Expectation, facts: Facts) -> Iterator[Finding]:
    """Hold each requirement against the facts."""
    unmet: dict[str, str] = {}
    untold: list[str] = []
    for name, required in expectation.require.items():
        here = _here(name, facts)
        if here is None:
            untold.append(name)
        elif not _meets(name, here, required):
            unmet[name] = f"{int(here) / GIB:.1f} GiB" if name in SIZES else here
    yield from (_finding(name, has, expectation.require, facts) for name, has in unmet.items())
    if untold:
        raise CannotTell(f"nobody told of {', '.join(untold)}, which the policy requires")


def _finding(name: str, has: str, require: Mapping[str, str], facts: Facts) -> Finding:
    from torchdoctor.steps import required  # noqa: PLC0415 - few machines are held to a policy

    cures, none = required.steps(name, require, facts)
    said = f"{name} is {has} (required: {require[name]})"
    return Finding(
        "policy-unmet",
        "error",
        f"This machine is not what the policy requires: {said}{f'; {none}' if none else ''}.",
        (Evidence(name, f"{has} (required: {require[name]})", "the policy"),),
        cures,
    )


def _meets(name: str, here: str, required: str) -> bool:
    if name in SIZES:
        from torchdoctor import policy  # noqa: PLC0415 - few checks are given a policy

        return int(here) >= (policy.size(required) or 0)
    try:
        return SpecifierSet(required).contains(here, prereleases=True)
    except InvalidVersion:
        return False


def _here(name: str, facts: Facts) -> str | None:
    """Return what the machine has of what is called *name*: "none" without; None = not told."""
    if name.startswith(PACKAGES):
        return _package(name.removeprefix(PACKAGES), facts)
    told = _told(facts)
    return told.get(name)


def _package(name: str, facts: Facts) -> str | None:
    if isinstance(facts.distributions, Unknown):
        return None
    wanted = name.lower().replace("_", "-").replace(".", "-")
    return next((d.version for d in facts.distributions if d.name == wanted), NOT_THERE)


def _told(facts: Facts) -> Mapping[str, str]:
    """Return all that is told of the machine, by the names of a policy."""
    told: dict[str, str | None] = {}
    build, driver, runtime = facts.torch, facts.driver, facts.runtime
    if not isinstance(build, Unknown):
        told["torch"] = build.public if isinstance(build, Build) else NOT_THERE
        told["cuda"] = (build.cuda or NOT_THERE) if isinstance(build, Build) else NOT_THERE
    if isinstance(facts.interpreter, Interpreter):
        told["python"] = facts.interpreter.version.split()[0]
    if not isinstance(driver, Unknown):
        told["driver"] = (driver.release or NOT_THERE) if isinstance(driver, Driver) else NOT_THERE
    if isinstance(runtime, Runtime):
        told["nccl"] = runtime.nccl or NOT_THERE
    if isinstance(facts.limits, Limits):
        told["shm"] = str(facts.limits.shm or 0)
    told |= _of_gpus(facts)
    return {name: value for name, value in told.items() if value is not None}


def _of_gpus(facts: Facts) -> dict[str, str | None]:
    """Return the number of GPUs, and what the least of them has."""
    listed = facts.gpus
    if isinstance(listed, Unknown):
        return {}
    gpus: tuple[Gpu, ...] = listed
    memory = [gpu.memory for gpu in gpus if gpu.memory is not None]
    capability = [gpu.capability for gpu in gpus if gpu.capability is not None]
    whole = len(gpus)
    return {
        "gpus": str(whole),
        "gpu-memory": str(min(memory)) if len(memory) == whole > 0 else None if whole else "0",
        "capability": "{}.{}".format(*min(capability))
        if len(capability) == whole > 0
        else None
        if whole
        else NOT_THERE,
    }
