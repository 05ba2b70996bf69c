"""A new environment is taken when it costs less than the steps that it takes the place of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from tests import plan_worlds
from tests.checks import make
from torchdoctor import plan
from torchdoctor.facts import Conda, CondaPackage, Facts
from torchdoctor.model import Finding, Plan
from torchdoctor.registry import Check, all_checks
from torchdoctor.run import run

CHECKS = all_checks()
FRESH = "new-environment"
NO_WHEEL = make.symptom(
    "no-wheel-found", "log", requirement="torch==2.1.2+cu121", versions="2.2.0, 2.3.0, 2.4.1"
)
MIXED = Facts(
    platform=make.linux(),
    # A Python for which no wheel of that torch was published.
    interpreter=make.interpreter("3.12.1", kind="conda", installer="conda"),
    conda=Conda((CondaPackage("pytorch", "2.2.0", "py3.12_cpu", "pytorch"),), "/env", 9000),
    distributions=(make.dist("torch", "2.0.1+cu118"),),
    torch=make.build("2.0.1+cu118"),
    torchvision=None,
    torchaudio=None,
    variables={},
)


def made(facts: Facts, checks: Mapping[str, Check] = CHECKS) -> Plan:
    return plan.make(checks, facts, run(checks, facts))


def cost(one: Plan) -> int:
    return sum(planned.step.cost for planned in one.steps)


def names(one: Plan) -> list[str]:
    return [planned.step.name for planned in one.steps]


def left(one: Plan) -> list[str]:
    return [f.name for f in one.remaining if f.severity != "note"]


def without_fresh_ones() -> dict[str, Check]:
    """Return the checks without the advice to make a new environment."""

    def cut(run: Callable[..., Iterator[Finding]]) -> Callable[..., Iterator[Finding]]:
        def others(**known: object) -> Iterator[Finding]:
            for finding in run(**known):
                kept = tuple(s for s in finding.steps if not s.name.startswith(FRESH))
                yield replace(finding, steps=kept)

        return others

    return {name: replace(check, run=cut(check.run)) for name, check in CHECKS.items()}


def test_a_new_environment_beats_the_steps_that_it_takes_the_place_of() -> None:
    facts = replace(MIXED, symptoms=(NO_WHEEL,))
    one, other = made(facts), made(facts, without_fresh_ones())
    assert names(one)[0].startswith(FRESH)
    assert len(names(one)) == 1
    assert {"python-not-supported", "conda-pip-mix"} <= set(one.steps[0].clears)
    assert left(one) == left(other) == []
    assert len(names(other)) > 1
    assert cost(one) < cost(other)


def test_it_is_not_taken_for_what_a_smaller_step_cures() -> None:
    assert not names(made(replace(MIXED, symptoms=())))[0].startswith(FRESH)


def worth(one: Plan) -> tuple[int, int, int, int]:
    errors = sum(f.severity == "error" for f in one.remaining)
    return errors, len(left(one)), cost(one), len(one.steps)


@pytest.mark.parametrize(
    "numbers", [range(60), pytest.param(range(60, 3000), marks=pytest.mark.slow)]
)
def test_wherever_it_is_taken_every_plan_without_it_leaves_more_or_costs_more_or_is_longer(
    numbers: range,
) -> None:
    without = without_fresh_ones()
    taken = 0
    for number in numbers:
        name, facts = plan_worlds.world(number)
        one = made(facts)
        if any(step.startswith(FRESH) for step in names(one)):
            other = made(facts, without)
            assert worth(one) < worth(other), (name, names(one), names(other))
            taken += 1
    assert taken
