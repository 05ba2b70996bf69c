"""The plan is the cheapest order of steps that clears every finding, and it is proven."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor import plan
from torchdoctor.facts import Facts
from torchdoctor.model import Finding, Layer, Plan, Step
from torchdoctor.registry import Check
from torchdoctor.run import run

# A small world: the variables of the facts are the state of a machine, "bad" is a fault.


def variables(facts: Facts) -> Mapping[str, str]:
    assert isinstance(facts.variables, Mapping)
    return facts.variables


def sets(**changes: str) -> Callable[[Facts], Facts]:
    return lambda facts: replace(facts, variables={**variables(facts), **changes})


def step(
    name: str,
    cost: int = 1,
    layer: Layer = Layer.PACKAGES,
    after: tuple[str, ...] = (),
    **changes: str,
) -> Step:
    return Step(name, name, "", layer, cost, sets(**changes), after=after)


def fault(
    variable: str,
    *steps: Step,
    because_of: tuple[str, ...] = (),
    needs: Mapping[str, str] | None = None,
) -> Check:
    """Return a check that finds *variable* bad, once *needs* hold."""

    def look(facts: Facts) -> Iterator[Finding]:
        now = variables(facts)
        if now.get(variable) == "bad" and all(now.get(k) == v for k, v in (needs or {}).items()):
            yield Finding(variable, "error", f"{variable} is bad", (), steps, because_of=because_of)

    return Check(variable, "test", "", ("facts",), frozenset(), (), (variable,), look)


def planned(checks: list[Check], **state: str) -> Plan:
    by_name = {check.name: check for check in checks}
    facts = Facts(variables=state)
    return plan.make(by_name, facts, run(by_name, facts))


def steps_of(made: Plan) -> list[str]:
    return [s.step.name for s in made.steps]


def test_nothing_found_is_nothing_to_do() -> None:
    made = planned([fault("a", step("fix-a", a="good"))], a="good")
    assert made.steps == ()
    assert made.verdict == "healthy"


def test_one_step_that_cures_two_faults_is_taken_instead_of_two() -> None:
    both = step("both", cost=3, a="good", b="good")
    made = planned(
        [
            fault("a", step("fix-a", cost=2, a="good"), both),
            fault("b", step("fix-b", cost=2, b="good"), both),
        ],
        a="bad",
        b="bad",
    )
    assert steps_of(made) == ["both"]
    assert made.steps[0].clears == ("a", "b")


def test_two_small_steps_are_taken_when_one_big_costs_more() -> None:
    both = step("new-environment", cost=20, a="good", b="good")
    made = planned(
        [fault("a", both, step("fix-a", a="good")), fault("b", both, step("fix-b", b="good"))],
        a="bad",
        b="bad",
    )
    assert steps_of(made) == ["fix-a", "fix-b"]


def test_a_fault_that_shows_only_after_a_step_gets_its_step_too() -> None:
    made = planned(
        [
            fault("a", step("fix-a", a="good")),
            fault("hidden", step("fix-hidden", hidden="good"), needs={"a": "good"}),
        ],
        a="bad",
        hidden="bad",
    )
    assert steps_of(made) == ["fix-a", "fix-hidden"]
    assert made.verdict == "healthy"


def test_a_way_that_uncovers_a_dearer_fault_is_not_taken() -> None:
    made = planned(
        [
            fault("a", step("cheap", cost=1, a="good", b="bad"), step("dear", cost=4, a="good")),
            fault("b", step("fix-b", cost=9, b="good")),
        ],
        a="bad",
        b="good",
    )
    assert steps_of(made) == ["dear"]


def test_a_step_that_only_mends_what_a_needless_one_breaks_is_left_out_with_it() -> None:
    everything = step("everything", cost=9, a="good", b="good", c="good")
    breaks = step("fix-b", cost=2, after=("everything",), a="bad", b="good")
    mends = step("fix-a", cost=6, after=("fix-b",), a="good")
    checks = [fault("a", mends), fault("b", breaks), fault("c", everything)]
    assert steps_of(planned(checks, a="bad", b="bad", c="bad")) == ["everything"]


def test_what_does_for_both_is_taken_although_it_is_offered_for_one() -> None:
    all_of_it = step("new-environment", cost=20, layer=Layer.ENVIRONMENT, a="good", b="good")
    both = step("both", cost=9, a="good", b="good")
    made = planned([fault("a", all_of_it), fault("b", all_of_it, both)], a="bad", b="bad")
    assert steps_of(made) == ["both"]


def test_each_of_several_findings_of_one_name_is_cured_where_one_of_them_stays() -> None:
    cures = {"a": (step("fix-a", a="good"),), "b": (step("fix-b", b="good"),), "c": ()}

    def look(facts: Facts) -> Iterator[Finding]:
        for name, own in cures.items():
            if variables(facts)[name] == "bad":
                yield Finding("many", "error", name, (), own)

    check = Check("many", "test", "", ("facts",), frozenset(), (), ("many",), look)
    made = planned([check], a="bad", b="bad", c="bad")
    assert sorted(steps_of(made)) == ["fix-a", "fix-b"]
    assert [f.summary for f in made.remaining] == ["c"]
    assert [s.verify for s in made.steps] == [(), ()]  # that name is still found
    made = planned([check], a="bad", b="bad", c="good")
    assert [s.verify for s in made.steps] == [(), ("torchdoctor check --only many",)]


def test_a_step_is_kept_that_makes_what_is_left_less_severe() -> None:
    half = step("half", a="worn")

    def look(facts: Facts) -> Iterator[Finding]:
        now = variables(facts)["a"]
        if now != "good":
            yield Finding("a", "error" if now == "bad" else "warning", now, (), (half,))

    worn = Check("a", "test", "", ("facts",), frozenset(), (), ("a",), look)
    made = planned([worn, fault("b", step("fix-b", b="good"))], a="bad", b="bad")
    assert [f.severity for f in made.remaining] == ["warning"]
    assert sorted(steps_of(made)) == ["fix-b", "half"]


def test_a_step_that_does_more_takes_the_place_of_one_of_its_name() -> None:
    old, new = step("upgrade", a="good"), step("upgrade", a="good", b="good")
    new = replace(new, title="to a newer one")
    later = fault("b", new, needs={"a": "good"})  # not to be seen before the first
    made = planned([fault("a", old), later], a="bad", b="bad")
    assert [s.step.title for s in made.steps] == ["to a newer one"]
    assert made.remaining == ()
    assert steps_of(planned([fault("a", old), later], a="bad", b="good")) == ["upgrade"]


def test_a_fault_without_a_step_remains_and_the_others_are_cured() -> None:
    made = planned([fault("a"), fault("b", step("fix-b", b="good"))], a="bad", b="bad")
    assert steps_of(made) == ["fix-b"]
    assert [f.name for f in made.remaining] == ["a"]
    assert made.verdict == "broken"


def test_a_step_that_cures_nothing_is_not_advised() -> None:
    made = planned([fault("a", step("no-op", b="good"))], a="bad")
    assert made.steps == ()
    assert [f.name for f in made.remaining] == ["a"]


def test_steps_stand_in_the_order_of_their_layers() -> None:
    checks = [
        fault("script", step("fix-script", layer=Layer.SCRIPT, script="good")),
        fault("driver", step("fix-driver", layer=Layer.DRIVER, driver="good")),
        fault("package", step("fix-package", layer=Layer.PACKAGES, package="good")),
    ]
    made = planned(checks, script="bad", driver="bad", package="bad")
    assert steps_of(made) == ["fix-driver", "fix-package", "fix-script"]


def test_a_declared_order_wins_over_the_layers() -> None:
    first = step("first", layer=Layer.SCRIPT, a="good")
    second = step("second", layer=Layer.DRIVER, after=("first",), b="good")
    assert [s.name for s in plan.in_order([second, first])] == ["first", "second"]


def test_a_note_gets_no_step() -> None:
    def look(facts: Facts) -> Iterator[Finding]:
        del facts
        yield Finding("n", "note", "worth knowing", (), (step("fix", n="good"),))

    check = Check("n", "test", "", ("facts",), frozenset(), (), ("n",), look)
    assert planned([check]).steps == ()


def test_a_cause_comes_before_what_it_explains() -> None:
    cause = Finding("cause", "warning", "", ())
    effect = Finding("effect", "error", "", (), because_of=("cause",))
    other = Finding("other", "warning", "", ())
    for order in permutations([effect, other, cause]):
        assert [f.name for f in plan.ranked(order)] == ["cause", "effect", "other"]


def test_findings_that_blame_each_other_are_no_endless_loop() -> None:
    one = Finding("one", "error", "", (), because_of=("two",))
    two = Finding("two", "error", "", (), because_of=("one",))
    assert {f.name for f in plan.ranked([one, two])} == {"one", "two"}


NAMES = [f"v{i}" for i in range(6)]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Check], dict[str, str]]:
    pool = [
        step(
            f"s{i}",
            cost=draw(st.integers(1, 9)),
            layer=draw(st.sampled_from(Layer)),
            after=(),
            **dict.fromkeys(draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3)), "good"),
        )
        for i in range(draw(st.integers(1, 6)))
    ]
    checks = []
    for name in NAMES:
        cures = [s for s in pool if variables(s.effect(Facts(variables={}))).get(name) == "good"]
        checks.append(fault(name, *cures))
    return checks, {name: draw(st.sampled_from(["good", "bad"])) for name in NAMES}


@settings(deadline=None)  # other programs may keep the machine busy
@given(worlds(), st.randoms(use_true_random=False))
def test_a_plan_keeps_its_promises(
    world: tuple[list[Check], dict[str, str]], chance: random.Random
) -> None:
    checks, state = world
    made = planned(checks, **state)
    facts = Facts(variables=state)
    found = {n for n in NAMES if state[n] == "bad"}
    cleared: set[str] = set()
    for entry in made.steps:
        facts = entry.step.effect(facts)
        cleared |= set(entry.clears)
    left = {n for n in NAMES if variables(facts).get(n) == "bad"}
    # What it says it clears is clear, what remains is said, and no curable fault remains.
    assert not cleared & left
    assert {f.name for f in made.remaining} == left
    curable = {
        c.name
        for c in checks
        if c.name in found
        and next(iter(c.run(facts=Facts(variables={c.name: "bad"}))), None)
        and next(iter(c.run(facts=Facts(variables={c.name: "bad"})))).steps
    }
    assert left == found - curable
    # It is never dearer than curing each finding by its own cheapest step.
    naive: dict[str, int] = {}
    for check in checks:
        if check.name in curable:
            (finding,) = check.run(facts=Facts(variables={check.name: "bad"}))
            cheapest = min(finding.steps, key=lambda s: s.cost)
            naive[cheapest.name] = cheapest.cost
    assert sum(s.step.cost for s in made.steps) <= sum(naive.values())
    # And it does not depend on the order in which the checks are kept.
    shuffled = checks[:]
    chance.shuffle(shuffled)
    again = planned(shuffled, **state)
    assert sum(s.step.cost for s in again.steps) == sum(s.step.cost for s in made.steps)


@pytest.mark.parametrize("count", [1, 30])
def test_many_findings_of_one_kind_need_one_step(count: int) -> None:
    cure = step("fix-all", all="good")

    def look(facts: Facts) -> Iterator[Finding]:
        if variables(facts).get("all") == "bad":
            for i in range(count):
                yield Finding("many", "error", f"number {i}", (), (cure,))

    check = Check("many", "test", "", ("facts",), frozenset(), (), ("many",), look)
    made = planned([check], all="bad")
    assert steps_of(made) == ["fix-all"]
    assert made.steps[0].clears == ("many",)
