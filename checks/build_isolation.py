"""A package that is compiled against torch finds torch while it is built.

How it shows: ``ModuleNotFoundError: No module named 'torch'`` in the middle of ``pip install
flash-attn`` (or of another package with CUDA code), below ``pip-build-env`` or "Getting
requirements to build wheel"; uv: "depends on `torch`, but doesn't declare it as a build
dependency". torch is installed all the same.

Why: pip and uv build in an environment of their own, which holds only what the package declares,
and these packages do not declare torch. Declaring it would not help: they have to be built against
the very torch that they are to run with.

Not to be confused with a torch that is not installed: there ``import torch`` fails at a prompt too.

The fix is ``--no-build-isolation``, with torch, setuptools, wheel and ninja installed before.

Sources: https://github.com/Dao-AILab/flash-attention#installation-and-features,
https://docs.astral.sh/uv/concepts/projects/config/#build-isolation,
https://pip.pypa.io/en/stable/reference/build-system/
"""

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, installers, steps
from torchdoctor.facts import Build, Facts, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "build"
FINDS = ("build-isolation",)


def check(
    symptoms: tuple[Symptom, ...], torch: Build | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    """Read where the module was missing."""
    told = [s for s in symptoms if s.name == "build-without-torch"]
    if not told:
        return
    package = next((s.values["package"] for s in told if s.values.get("package")), None)
    there = f", although torch {torch.version} is installed" if isinstance(torch, Build) else ""
    yield Finding(
        "build-isolation",
        "error",
        f"{package or 'A package'} is built in an environment of its own, in which there is no "
        f"torch{there}.",
        (Evidence("symptoms", told[0].text.strip()[:300], told[0].source),),
        (_step(package, facts),),
        confidence="certain" if package or there else "likely",
    )


def _step(package: str | None, facts: Facts) -> Step:
    step = steps.by_hand(
        "build-without-isolation",
        f"Build {package or 'the package'} with --no-build-isolation, after torch is installed",
        why="It is then compiled against the torch of this environment.",
        layer=Layer.PACKAGES,
        cost=steps.COMPANION,
        effect=effects.settled("build-without-torch"),
    )
    tools = installers.with_pip(facts.interpreter, "install", "setuptools", "wheel", "ninja")
    options = ("install", "--no-build-isolation")
    build = installers.with_pip(facts.interpreter, *options, package or "PACKAGE")
    return replace(step, commands=installers.join(tools, build), needs=("network",))
