"""What a plan promises holds on machines with several faults at once, whichever they are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import pytest

from tests import plan_worlds
from torchdoctor import plan, standing
from torchdoctor.facts import DeviceNode, Distribution, Facts, Toolkit, Unknown
from torchdoctor.model import Finding, Outcome, Plan, Step, verdict
from torchdoctor.replay import Replay
from torchdoctor.run import run

SAMPLE, ALL, BATCH = 100, 10_000, 495


def above_note(findings: Iterable[Finding]) -> list[Finding]:
    return [f for f in findings if f.severity != "note"]


def said(findings: Iterable[Finding]) -> list[tuple[str, str, str]]:
    return sorted((f.name, f.severity, f.summary) for f in findings)


def names(findings: Iterable[Finding]) -> Counter[str]:
    return Counter(f.name for f in above_note(findings))


def weight(findings: Iterable[Finding]) -> tuple[int, int]:
    left = above_note(findings)
    return sum(f.severity == "error" for f in left), len(left)


def cost(steps: Iterable[Step]) -> int:
    return sum(step.cost for step in steps)


CHECKS = {name: check for name, check in plan_worlds.CHECKS.items() if not check.echoes}
"""Those that do not only repeat what they were told: a step is no news to them."""


def after(facts: Facts, steps: Iterable[Step]) -> Facts:
    for step in steps:
        facts = step.effect(facts)
    return facts


Look = Callable[[Facts], list[Finding]]


def found_in(facts: Facts) -> list[Finding]:
    """Return what a fresh look finds."""
    return above_note(plan.findings_of(run(CHECKS, facts)))


def looking() -> Look:
    """Return a look that does not ask again what it has asked, for plans to compare with."""
    replay = Replay(CHECKS)
    return lambda facts: above_note(plan.findings_of(replay.run(facts)))


def one_step_each(facts: Facts, look: Look) -> list[Step]:
    """Return the plain plan: the cheapest step of each finding, also of those that come up then."""
    steps: dict[str, Step] = {}
    seen: set[str] = set()
    while new := [f for f in look(after(facts, steps.values())) if f.name not in seen]:
        for finding in new:
            seen.add(finding.name)
            for step in sorted(finding.steps, key=lambda s: s.cost)[:1]:
                steps.setdefault(step.name, step)
    return list(steps.values())


def contradict(steps: list[Step], facts: Facts) -> bool:
    """Tell whether one of *steps* puts something else where another puts something."""
    done = [standing.touched(step, facts) for step in steps]
    return any(standing.undoes(one, other) for one in done for other in done)


def left_by(facts: Facts, steps: list[Step], look: Look) -> list[Finding]:
    """Return what is left after *steps*, with what has no step and is only out of sight."""
    end = after(facts, steps)
    seen = look(end)
    out_of_sight = look(standing.as_tried(facts, end))
    return seen + [f for f in out_of_sight if not f.steps and f.name not in names(seen)]


def hidden(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the findings that checks could have had, which could not tell before."""
    return {
        name
        for outcome in outcomes
        if outcome.status in {"moot", "unknown"} or outcome.reason
        for name in CHECKS[outcome.check].names
    }


def broken_promises(facts: Facts, number: int) -> list[str]:
    """Return every promise that the plan for *facts* does not keep."""
    outcomes = run(CHECKS, facts)
    found = above_note(plan.findings_of(outcomes))
    made = plan.make(CHECKS, facts, outcomes)
    look = looking()
    steps = [planned.step for planned in made.steps]
    end = after(facts, steps)
    fresh = found_in(end)
    left = names(made.remaining)
    broken = {
        "hides what a fresh look finds": hides(facts, made, end, fresh),
        "says that something is left that was not there": left - names(found) - names(fresh),
        "another verdict": made.verdict != verdict(tuple(made.remaining)),
        "leaves what it claims to clear": _kept(facts, made, left, look),
        "adds something": set(left) - set(names(found)) - hidden(outcomes),
        "is worse than doing nothing": weight(made.remaining) > weight(found),
        "has a step that clears nothing": [s.step.name for s in made.steps if not s.clears],
        "leaves what a step of its own would cure": curable(
            made, end, fresh, look, set(names(found)) | hidden(outcomes)
        ),
        "makes a check crash": [o.check for o in made.outcomes if o.status == "crashed"],
        "differs with the order of the checks": _in_another_order(facts, made, number),
    }
    plain = one_step_each(facts, look)
    if weight(made.remaining) >= weight(left_by(facts, plain, look)) and not contradict(
        plain, facts
    ):
        broken["costs more than a step for each"] = cost(steps) > cost(plain)
        broken["is longer than a step for each"] = len(steps) > len(plain)
    return [f"{what}: {value}" for what, value in broken.items() if value]


def _kept(facts: Facts, made: Plan, left: Counter[str], look: Look) -> set[str]:
    """Return what a step claims to clear, and of which as many are left as there ever were.

    Of several that have one name, those count that are about the same.
    """
    stays = set(map(_about, made.remaining))
    seen, most = look(facts), names(look(facts))
    kept = set()
    for planned in made.steps:
        for name in set(planned.clears):
            mine = {_about(f) for f in seen if f.name == name}
            another_is_gone = most[name] > 1 and mine - stays
            if 0 < left[name] >= most[name] and not another_is_gone:
                kept.add(name)
        facts = planned.step.effect(facts)
        seen += look(facts)
        most |= names(look(facts))  # some come up on the way
    return kept


def _about(finding: Finding) -> tuple[str, frozenset[str]]:
    return finding.name, frozenset(item.fact for item in finding.evidence)


def hides(facts: Facts, made: Plan, end: Facts, fresh: list[Finding]) -> set[str]:
    """Return what a fresh look finds and the plan does not say.

    What an import has shown before counts for as long as no step brings another torch.
    """
    unsaid = set(names(fresh)) - set(names(made.remaining))
    now = facts
    for step in (planned.step for planned in made.steps):
        if standing.is_new_torch(standing.touched(step, now)):
            return unsaid
        now = step.effect(now)
    return unsaid & set(names(found_in(standing.as_tried(facts, end))))


def curable(
    made: Plan, end: Facts, fresh: list[Finding], look: Look, before: set[str]
) -> list[str]:
    """Return the steps that a plan leaves out although they cure what is seen, and undo nothing.

    One that brings something which was not there *before* is rightly left out.
    """
    taken = [planned.step for planned in made.steps]
    done: dict[str, str] = {}
    for step in taken:
        done |= standing.touched(step, end)
    return [
        step.name
        for finding in fresh
        if finding.name in names(made.remaining)
        for step in finding.steps
        if step not in taken
        and not standing.undoes(standing.touched(step, end), done)
        and weight(then := look(step.effect(end))) < weight(fresh)
        and set(names(then)) <= before
    ]


def _in_another_order(facts: Facts, made: Plan, number: int) -> str:
    shuffled = list(CHECKS.items())
    random.Random(number).shuffle(shuffled)  # noqa: S311 - no secret
    checks = dict(shuffled)
    again = plan.make(checks, facts, run(checks, facts))
    one = [s.step.name for s in made.steps], said(made.remaining)
    other = [s.step.name for s in again.steps], said(again.remaining)
    return "" if one == other else f"another order of checks: {one[0]} and {other[0]}"


PARTS: dict[str, dict[str, object]] = {
    "platform": {"kernel": "later"},
    "cpu": {"model": "later"},
    "limits": {"cpus": 77.5},
    "driver": {"source": "later"},
    "peers": {"iommu": "later"},
    "interpreter": {"prefix": "later"},
    "windows": {"longest": 77},
    "linux": {"glibc": "later"},
}
"""A part of each fact that no step is for, with a value that no test knows."""
MORE: dict[str, tuple[object, ...]] = {
    "device_nodes": (DeviceNode("/dev/later", allowed=True),),
    "toolkits": (Toolkit("9.9", "/later"),),
    "distributions": (Distribution("later", "1", ""),),
}


def changed(facts: Facts) -> Facts:
    """Return *facts* as a step before may have left them: each in a part, or with one more."""
    now: dict[str, object] = {}
    for name, parts in PARTS.items():
        if (fact := getattr(facts, name)) is not None and not isinstance(fact, Unknown):
            now[name] = replace(fact, **parts)
    for name, more in MORE.items():
        if isinstance(fact := getattr(facts, name), tuple):
            now[name] = (*fact, *more)
    if not isinstance(facts.variables, Unknown):
        now["variables"] = {**facts.variables, "LATER": "1"}
    return replace(facts, **now)  # type: ignore[arg-type] # fields of Facts


def lost(before: Facts, after: Facts) -> Iterator[str]:
    """Yield the facts that no longer have what was *changed* before, and are known."""
    for name, parts in PARTS.items():
        had, has = getattr(before, name), getattr(after, name)
        for part, value in parts.items():
            here = getattr(has, part, Unknown())
            if getattr(had, part, None) == value and not isinstance(here, Unknown):
                yield from [name] * (here != value)
    if before.interpreter is not after.interpreter:
        return  # another environment has other packages
    for name, more in MORE.items():
        had, has = getattr(before, name), getattr(after, name)
        if isinstance(had, tuple) and isinstance(has, tuple) and not {*more} <= {*has}:
            yield name
    had, has = before.variables, after.variables
    if isinstance(had, Mapping) and isinstance(has, Mapping) and "LATER" not in has:
        yield "variables"


def test_a_step_takes_nothing_back_that_an_earlier_one_has_changed() -> None:
    took = set()
    for name, known in plan_worlds.faults():
        facts = Facts(**known)  # type: ignore[arg-type] # fields of Facts
        (outcome,) = run({name: plan_worlds.CHECKS[name]}, facts)
        before = changed(facts)
        steps = (step for finding in outcome.findings for step in finding.steps)
        took |= {(name, s.name, fact) for s in steps for fact in lost(before, s.effect(before))}
    assert not took


def look_at(numbers: range) -> None:
    missed: list[str] = []
    for number in numbers:
        name, facts = plan_worlds.world(number)
        if broken := broken_promises(facts, number):
            missed.append(f"{name}: {broken}")
    assert not missed, "\n".join(missed)


def test_the_worlds_show_the_faults_of_nearly_every_check() -> None:
    shown = {name for name, _ in plan_worlds.faults()}
    assert len(shown) > len(plan_worlds.CHECKS) * 0.9
    assert len(plan_worlds.faults()) > 3 * len(shown)


def test_a_plan_keeps_its_promises_on_a_sample_of_machines() -> None:
    look_at(range(SAMPLE))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(SAMPLE, ALL, BATCH))
def test_a_plan_keeps_its_promises_on_every_machine(start: int) -> None:
    look_at(range(start, min(start + BATCH, ALL)))
