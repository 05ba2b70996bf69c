"""The steps of ``torchdoctor install``: to what was chosen, and out where nothing fits."""

from __future__ import annotations

from dataclasses import replace

from torchdoctor import effects, steps
from torchdoctor.choose import Choice, Refusal
from torchdoctor.facts import Build, Facts, Interpreter, items_of
from torchdoctor.model import Layer, Step
from torchdoctor.tables import builds


def step_for(facts: Facts, choice: Choice, why: str) -> Step:
    """Return the step that installs *choice*, into a new environment where that is needed."""
    python = choice.python
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.externally_managed:
        python = python or facts.interpreter.tag
    if python:
        return steps.new_environment(facts, python, choice, why=why)
    step = steps.change_build(facts, choice, why=why)
    return step if choice.release else replace(step, effect=effects.untried)


def of_installer(facts: Facts, installer: str) -> Facts:
    """Return *facts* with *installer* in charge; where it is not, its own environment is meant."""
    now = facts.interpreter
    if isinstance(now, Interpreter):
        if now.installer == installer:
            return facts
        # pip and uv serve any environment; the others have one of their own, which is not this.
        own = installer in ("pip", "uv")
        fresh = {} if own else {"torch": None, "distributions": ()}
        return replace(
            facts,
            **fresh,  # type: ignore[arg-type] # fields of Facts
            interpreter=replace(
                now,
                installer=installer,
                redacted=now.redacted or not own,
                externally_managed=now.externally_managed and own,
                has_pip=now.has_pip or installer == "pip",
            ),
        )
    tag = "3.12"
    made = Interpreter("", f"{tag}.0", "", "", "other", installer=installer, redacted=True)
    return facts.but(interpreter=made)


def way_out(facts: Facts, refusal: Refusal) -> list[Step]:
    """Return the steps of the smallest relaxation, in order."""
    choice = refusal.choice
    if choice is None:
        return []
    found: list[Step] = []
    given = listed([change.says for change in refusal.relaxation])
    why = f"W{given[1:]} it fits." if given.startswith("with") else f"With {given} it fits."
    for change in refusal.relaxation:
        if change.kind == "driver":
            cuda = builds.cuda_of(choice.tag)
            found.append(steps.upgrade_driver(facts, change.value, cuda, why=f"{change.says}."))
        if change.kind == "system":
            found.append(
                steps.by_hand(
                    "use-a-newer-system",
                    f"Use {change.says}",
                    why="The system's own libraries cannot be replaced inside it.",
                    layer=Layer.RUNTIME,
                    cost=steps.ENVIRONMENT,
                    effect=effects.change(platform=refusal.facts.platform),
                )
            )
    here = facts.interpreter
    if any(change.kind == "environment" for change in refusal.relaxation) and not choice.python:
        python = here.tag if isinstance(here, Interpreter) else "3.12"
        return [*found, steps.new_environment(facts, python, choice, why=why)]
    return [*found, step_for(facts, choice, why)]


def is_installed(facts: Facts, choice: Choice) -> bool:
    """Tell whether all of *choice* is there already."""
    torch = facts.torch
    if not isinstance(torch, Build) or choice.python or not choice.release:
        return False
    if (torch.public, torch.tag) != (choice.release, choice.tag):
        return False
    known = items_of(facts.distributions)
    have = {d.name: d.version.partition("+")[0] for d in known}
    rest = {n: v.partition("+")[0] for n, v in choice.versions.items() if n != "torch"}
    return all(have.get(name) == version for name, version in rest.items())


def listed(words: list[str]) -> str:
    """Return *words* as a sentence lists them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
