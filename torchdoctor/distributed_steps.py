"""What checks of distributed runs share: their evidence, and steps in launchers and scripts.

Such a step has an effect on what was printed and on the variables it sets, and on nothing else: a
script that was mended makes no GPU work that did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchdoctor import effects, shells, steps
from torchdoctor.facts import Facts, Nccl, Symptom, Unknown
from torchdoctor.model import Commands, Effect, Evidence, Layer, Step
from torchdoctor.scale import SMALL

LONGEST = 300
INTERFACE_IS_WRONG = (
    "gloo-interface-unknown",
    "nccl-no-interface",
    "nccl-address-family",
    "nccl-connect-failed",
)
"""Messages that end once the interface is named by which the nodes reach each other."""


def told(symptoms: Iterable[Symptom] | Unknown, *names: str) -> tuple[Symptom, ...]:
    """Return the symptoms that are called one of *names*, in the order of the text."""
    if isinstance(symptoms, Unknown):
        return ()
    return tuple(symptom for symptom in symptoms if symptom.name in names)


def first(symptoms: Iterable[Symptom] | Unknown, *names: str) -> Symptom | None:
    """Return the first symptom that is called one of *names*."""
    return next(iter(told(symptoms, *names)), None)


def seen(*symptoms: Symptom | None) -> tuple[Evidence, ...]:
    """Return *symptoms* as evidence, each with the line that was printed; None is left out."""
    each = [
        Evidence("symptoms", s.text.strip()[:LONGEST] or s.name, s.source)
        for s in symptoms
        if s is not None
    ]
    return tuple(dict.fromkeys(each))


def variable(variables: Mapping[str, str] | Unknown, name: str) -> str | None:
    """Return what the variable *name* is set to; None where it is not, or nothing is known."""
    return None if isinstance(variables, Unknown) else variables.get(name)


def value(name: str, what: str) -> Evidence:
    """Return the variable *name*, set to *what*, as evidence."""
    return Evidence(f"variables.{name}", what or "(empty)", "the environment")


def in_script(  # noqa: PLR0913 - a step has that many sides
    name: str,
    title: str,
    *,
    why: str,
    settles: Iterable[str],
    bash: tuple[str, ...] = (),
    cost: int = SMALL,
) -> Step:
    """Return a change to the training script, after which the messages *settles* are gone."""
    return Step(
        name=name,
        title=title,
        why=why,
        layer=Layer.SCRIPT,
        cost=cost,
        effect=effects.settled(*settles),
        commands=Commands(bash=bash),
    )


def in_launch(  # noqa: PLR0913 - a step has that many sides
    name: str,
    title: str,
    *,
    why: str,
    settles: Iterable[str],
    bash: tuple[str, ...] = (),
    cost: int = SMALL,
) -> Step:
    """Return a change to how the job is started, after which the messages *settles* are gone."""
    step = in_script(name, title, why=why, settles=settles, bash=bash, cost=cost)
    return replace(step, layer=Layer.LAUNCHER)


def assign(name: str, what: str, *, why: str, settles: Iterable[str], title: str = "") -> Step:
    """Return the step that sets the variable *name* on every node."""
    open_ = "<" in what
    return replace(
        steps.set_variable(name, what, why=why),
        title=title or f"Set {name}={what} on every node, before the job starts",
        # What is to be filled in is not known here, and it is not what stands there now.
        effect=effects.then(effects.settled(*settles), _variables({name: None if open_ else what})),
        commands=Commands() if open_ else shells.assign(name, what),
    )


def find_interface(name: str, *, why: str, settles: Iterable[str] = INTERFACE_IS_WRONG) -> Step:
    """Return the step that sets *name* to the interface between the nodes, which nobody knows."""
    return assign(
        name,
        "<interface>",
        why=why,
        settles=settles,
        title=f"Set {name} to the interface by which the nodes reach each other: the one that"
        " `ip route get MASTER_ADDR` names after dev",
    )


def unset(name: str, *, why: str, settles: Iterable[str]) -> Step:
    """Return the step that takes the variable *name* away on every node."""
    return replace(
        steps.unset_variable(name, why=why),
        title=f"Unset {name} on every node, before the job starts",
        effect=effects.then(effects.settled(*settles), _variables({name: None})),
    )


def _variables(changes: Mapping[str, str | None]) -> Effect:
    def effect(facts: Facts) -> Facts:
        if isinstance(facts.variables, Unknown):
            return facts
        whole = {**facts.variables, **changes}
        now = facts.but(variables={k: v for k, v in whole.items() if v is not None})
        asked = isinstance(now.nccl, Nccl) and any(name.startswith("NCCL_") for name in changes)
        return replace(now, nccl=effects.TO_TRY) if asked else now

    return effect
