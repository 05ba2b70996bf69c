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

from collections.abc import Callable, Iterator, Mapping

from torchdoctor import requirements
from torchdoctor.facts import (
    Build,
    Driver,
    Expectation,
    Facts,
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
    wanted = require[name]
    says = f"This machine is not what the policy requires: {name} is {has} (required: {wanted})."
    if none:
        says = f"{name} is {has}, and the policy requires {wanted}; {none}."
    return Finding(
        "policy-unmet",
        "error",
        says,
        (Evidence(name, f"{has} (required: {wanted})", "the policy"),),
        cures,
    )


def _meets(name: str, here: str, required: str) -> bool:
    if name in SIZES:
        from torchdoctor import policy  # noqa: PLC0415 - few checks are given a policy

        return int(here) >= (policy.size(required) or 0)
    return requirements.accepts(required, here) is True


def _here(name: str, facts: Facts) -> str | None:
    """Return what the machine has of what is called *name*: "none" without; None = not told."""
    if name.startswith(PACKAGES):
        return _package(name.removeprefix(PACKAGES), facts)
    told = _TOLD.get(name)
    return told(facts) if told else None


def _package(name: str, facts: Facts) -> str | None:
    if isinstance(facts.distributions, Unknown):
        return None
    wanted = name.lower().replace("_", "-").replace(".", "-")
    return next((d.version for d in facts.distributions if d.name == wanted), NOT_THERE)


def _torch(facts: Facts) -> str | None:
    if isinstance(facts.torch, Unknown):
        return None
    return facts.torch.public if isinstance(facts.torch, Build) else NOT_THERE


def _cuda(facts: Facts) -> str | None:
    if isinstance(facts.torch, Unknown):
        return None
    return (facts.torch.cuda or NOT_THERE) if isinstance(facts.torch, Build) else NOT_THERE


def _python(facts: Facts) -> str | None:
    here = facts.interpreter
    return here.version.split()[0] if isinstance(here, Interpreter) else None


def _driver(facts: Facts) -> str | None:
    if isinstance(facts.driver, Unknown):
        return None
    return (facts.driver.release or NOT_THERE) if isinstance(facts.driver, Driver) else NOT_THERE


def _nccl(facts: Facts) -> str | None:
    return facts.runtime.nccl or NOT_THERE if isinstance(facts.runtime, Runtime) else None


def _shm(facts: Facts) -> str | None:
    return str(facts.limits.shm or 0) if isinstance(facts.limits, Limits) else None


def _gpus(facts: Facts) -> str | None:
    return None if isinstance(facts.gpus, Unknown) else str(len(facts.gpus))


def _gpu_memory(facts: Facts) -> str | None:
    """Return the memory of the GPU that has least; None where one does not tell."""
    if isinstance(facts.gpus, Unknown):
        return None
    told = [gpu.memory for gpu in facts.gpus if gpu.memory is not None]
    return str(min(told, default=0)) if len(told) == len(facts.gpus) else None


def _capability(facts: Facts) -> str | None:
    """Return the capability of the GPU that has least; None where one does not tell."""
    if isinstance(facts.gpus, Unknown):
        return None
    told = [gpu.capability for gpu in facts.gpus if gpu.capability is not None]
    if len(told) < len(facts.gpus):
        return None
    return "{}.{}".format(*min(told)) if told else NOT_THERE


_TOLD: Mapping[str, Callable[[Facts], str | None]] = {
    "torch": _torch,
    "cuda": _cuda,
    "python": _python,
    "driver": _driver,
    "nccl": _nccl,
    "shm": _shm,
    "gpus": _gpus,
    "gpu-memory": _gpu_memory,
    "capability": _capability,
}
"""What the machine has, by the names of a policy: only what is required is looked at."""
