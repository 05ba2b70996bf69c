"""Checks run again on other facts say what a fresh run says, and only those run that must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace

from tests import plan_worlds
from tests.checks import make
from torchdoctor.facts import Facts, Platform, Unknown
from torchdoctor.model import CannotTell, Finding, Layer, Step
from torchdoctor.registry import Check
from torchdoctor.replay import Replay
from torchdoctor.run import run

RUNS: Counter[str] = Counter()


def says_the_system(platform: Platform) -> Iterator[Finding]:
    RUNS["system"] += 1
    yield Finding("system", "error", platform.system, ())


def says_the_driver(facts: Facts) -> Iterator[Finding]:
    RUNS["driver"] += 1
    if isinstance(facts.driver, Unknown):
        raise CannotTell("the driver is unknown")
    yield Finding("driver", "error", repr(facts.driver), ())


def a_check(name: str, look: object, *reads: str) -> Check:
    return Check(name, "test", "", reads, frozenset(), (), (name,), look)  # type: ignore[arg-type]


def replay() -> Replay:
    RUNS.clear()
    system = a_check("system", says_the_system, "platform")
    driver = a_check("driver", says_the_driver, "facts")
    return Replay({"system": system, "driver": driver})


def test_only_checks_that_read_what_changed_run_again() -> None:
    again = replay()
    facts = Facts(platform=make.linux(), driver=make.driver())
    again.run(facts)
    again.run(replace(facts, variables={"A": "1"}))
    assert RUNS == {"system": 1, "driver": 1}
    again.run(replace(facts, platform=make.windows()))
    assert RUNS == {"system": 2, "driver": 1}
    other = again.run(replace(facts, driver=make.driver("470.1")))
    assert RUNS == {"system": 2, "driver": 2}
    assert "470.1" in other[1].findings[0].summary
    again.run(facts)
    assert RUNS == {"system": 2, "driver": 2}


def test_an_equal_fact_is_the_same_fact() -> None:
    again = replay()
    again.run(Facts(platform=make.linux(), driver=make.driver()))
    again.run(Facts(platform=make.linux(), driver=make.driver()))
    assert RUNS == {"system": 1, "driver": 1}


def test_facts_that_a_check_made_others_of_are_ordinary_facts() -> None:
    made: list[Facts] = []

    def look(facts: Facts) -> Iterator[Finding]:
        made.append(replace(facts, variables={}))
        yield from ()

    Replay({"a": a_check("a", look, "facts")}).run(Facts(platform=make.linux()))
    assert made == [Facts(platform=make.linux(), variables={})]
    assert type(made[0]) is Facts
    assert {f.name for f in fields(made[0])} == {f.name for f in fields(Facts)}


def test_of_facts_that_a_check_changed_only_what_is_read_counts() -> None:
    def look(facts: Facts) -> Iterator[Finding]:
        RUNS["a"] += 1
        there = facts.but(platform=make.windows())
        yield Finding("a", "error", f"{there.platform} {there.driver}", ())

    RUNS.clear()
    again = Replay({"a": a_check("a", look, "facts")})
    facts = Facts(platform=make.linux(), driver=make.driver(), variables={})
    first = again.run(facts)
    assert "win32" in first[0].findings[0].summary
    again.run(facts.but(variables={"A": "1"}, platform=make.windows()), facts)
    assert RUNS == {"a": 1}
    other = again.run(facts.but(driver=make.driver("470.1")), facts)
    assert RUNS == {"a": 2}
    assert "470.1" in other[0].findings[0].summary


def test_a_check_may_go_through_all_fields() -> None:
    facts = Facts(platform=make.linux(), variables={"A": "1"})

    def look(facts: Facts) -> Iterator[Finding]:
        said = {name: getattr(facts, name) for name in facts.__slots__}
        yield Finding("a", "error", f"{said['variables']} {len(said)}", ())

    again = Replay({"a": a_check("a", look, "facts")})
    assert again.run(facts)[0].findings[0].summary == f"{{'A': '1'}} {len(fields(Facts))}"
    other = again.run(replace(facts, variables={}), facts)
    assert other[0].findings[0].summary.startswith("{} ")


def test_what_is_told_of_the_first_facts_is_not_asked_again() -> None:
    again = replay()
    facts = Facts(platform=make.linux(), driver=make.driver())
    checks = {
        "system": a_check("system", says_the_system, "platform"),
        "driver": a_check("driver", says_the_driver, "facts"),
    }
    again.told(facts, run(checks, facts))
    RUNS.clear()
    again.run(replace(facts, driver=make.driver("470.1")), facts)
    # What a check that is given all facts has read of them is not known.
    assert RUNS == {"driver": 1}
    again.run(replace(facts, platform=make.windows()), facts)
    assert RUNS == {"driver": 2, "system": 1}


def test_what_a_step_reads_later_counts_as_read() -> None:
    def look(facts: Facts) -> Iterator[Finding]:
        effect = lambda after: replace(after, variables={"A": repr(facts.driver)})  # noqa: E731
        step = Step("one", "one", "", Layer.PACKAGES, 1, effect)
        yield Finding("a", "error", "a", (), (step,))

    again = Replay({"a": a_check("a", look, "facts")})
    old = Facts(platform=make.linux(), driver=make.driver("470.1"))
    new = replace(old, driver=make.driver("580.1"))
    (step,) = again.run(old)[0].findings[0].steps
    assert "470.1" in str(step.effect(old).variables)
    (step,) = again.run(new, old)[0].findings[0].steps
    assert "580.1" in str(step.effect(new).variables)


def test_a_replay_says_what_a_fresh_run_says() -> None:
    again = Replay(plan_worlds.CHECKS)
    for number in range(120):
        name, facts = plan_worlds.world(number)
        assert again.run(facts) == run(plan_worlds.CHECKS, facts), name
