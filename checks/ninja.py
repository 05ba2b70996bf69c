"""Who compiles extensions of torch has ninja.

How it shows: ``torch.utils.cpp_extension.load`` and ``load_inline`` raise "Ninja is required to
load C++ extensions (pip install ninja to get it)". A setup.py warns "Attempted to use ninja as the
BuildExtension backend but we could not find ninja", and compiles one file after the other.

Why: torch has ninja compile the files of an extension side by side. It calls the program ``ninja``
on PATH, so one in an environment that is not activated does not count.

Not to be confused with ninja in an isolated build: there the environment of the build has to have
it (build-isolation).

The fix is ``pip install ninja``. With ``check --profile build`` it is a note, as most builds go on
without it.

Source: torch/utils/cpp_extension.py, verify_ninja_availability and BuildExtension.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import building, effects, gpu, installers, steps
from torchdoctor.facts import BuildTools, Expectation, Facts, Symptom, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step

FAMILY = "environment"
FINDS = ("ninja-missing",)

NAME = "ninja-not-found"


def check(
    expectation: Expectation,
    symptoms: tuple[Symptom, ...] | Unknown,
    build_tools: BuildTools | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read what torch said, else look for the program."""
    if said := gpu.symptom(symptoms, NAME):
        yield Finding(
            "ninja-missing",
            "error",
            "ninja is not found, and torch's cpp_extension.load compiles nothing without it.",
            (Evidence("symptoms", said.text.strip()[:300], said.source),),
            (_step(facts),),
        )
        return
    if not building.asked(expectation):
        return
    there = build_tools if isinstance(build_tools, Unknown) else build_tools.ninja
    if isinstance(there, Unknown):
        raise CannotTell(there.reason)
    if there is None:
        yield Finding(
            "ninja-missing",
            "note",
            "There is no ninja: a setup.py compiles one file after the other, and"
            " torch.utils.cpp_extension.load raises.",
            (Evidence("build_tools.ninja", "not there", "PATH"),),
            (_step(facts),),
        )


def _step(facts: Facts) -> Step:
    return steps.by_hand(
        "install-ninja",
        "Install ninja",
        why="torch has it compile the files of an extension.",
        layer=Layer.PACKAGES,
        cost=steps.SMALL,
        effect=effects.then(building.becomes(ninja="ninja"), effects.settled(NAME)),
        bash=(command := installers.with_pip(facts.interpreter, "install", "ninja")).bash,
        powershell=command.powershell,
        cmd=command.cmd,
    )
