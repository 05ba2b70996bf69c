"""From findings to the fewest steps that clear them, in order, proven by replay.

The plan is searched on the facts themselves: take the first finding that stands, try each step
that would cure it, apply the step's effect, run every check again; the cheapest way to facts with
no error and no warning wins. What the checks say of the facts after the last step is what is
shown as remaining.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import count

from torchdoctor import standing
from torchdoctor.facts import Facts
from torchdoctor.model import Finding, Layer, Outcome, Plan, PlannedStep, Step, verdict
from torchdoctor.ranking import findings_of, ranked
from torchdoctor.registry import Check
from torchdoctor.world import State, World, names_of, pending_of, weight_of

__all__ = ["findings_of", "in_order", "make", "ranked"]


def make(checks: Mapping[str, Check], facts: Facts, outcomes: tuple[Outcome, ...]) -> Plan:
    """Return the plan for *facts*, on which *checks* said *outcomes*.

    A finding without steps, or whose steps do not cure it, is in ``remaining``.
    """
    start = State(facts, pending_of(outcomes), outcomes=outcomes)
    if not start.pending:
        return Plan((), verdict(now := findings_of(outcomes)), now, outcomes)
    world = World(_without_echo(checks, outcomes), start)

    def is_new_environment(step: Step) -> bool:
        return step.layer is Layer.ENVIRONMENT and "interpreter" in world.touched(step, facts)

    best = _best(world, start)
    if any(map(is_new_environment, best.steps)):  # that costs most, and hides what would do
        other = _best(world.without(is_new_environment, rested=True), start, best)
        best = min(best, other, key=lambda state: state.worth)
    return _told(world, start, best)


def _best(world: World, start: State, known: State | None = None) -> State:
    """Return the best end that steps from *start* lead to, at which nothing is there anew.

    Where none is better than the end that is *known*, it may be any.
    """
    best = known
    for place, found in enumerate(_search(world, start)):
        whole = _finished(world, start, found)
        end = _shortest(world, start, whole, best, hurried=place > 0)
        # For one that was left out, another may do.
        while (more := _finished(world, start, end)) is not end:
            other = _shortest(world, start, more, best)
            if other.worth >= end.worth:  # the steps in order may do less than they did as found
                break
            end = other
        best = min(best or end, end, key=lambda state: state.worth)
    assert best
    worse = None if best is known else _brings(world, start, best)
    if worse is None:
        return best
    # Another step of that name may bring nothing.
    return _best(world.without(lambda step: step == worse), start, known)


def _brings(world: World, start: State, end: State) -> Step | None:
    """Return the step to *end* that brings a finding which could have been seen, and was not."""
    known = names_of(start.pending) | world.unseen(start)
    if new := names_of(end.pending) - known:
        for place, step in enumerate(end.steps, 1):
            if new & names_of(world.after(start, *end.steps[:place]).pending):
                return step
    return None


def in_order(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return *steps* so that each comes after those it names, else by layer, then as found."""
    names = {step.name for step in steps}
    place = {step.name: (step.layer, i) for i, step in enumerate(steps)}
    sorter = TopologicalSorter({s.name: [a for a in s.after if a in names] for s in steps})
    sorter.prepare()
    by_name = {step.name: step for step in steps}
    ordered: list[Step] = []
    ready: list[str] = []
    while sorter.is_active():
        ready += sorter.get_ready()
        ready.sort(key=place.__getitem__)
        name = ready.pop(0)
        ordered.append(by_name[name])
        sorter.done(name)
    return tuple(ordered)


def _without_echo(checks: Mapping[str, Check], outcomes: Iterable[Outcome]) -> Mapping[str, Check]:
    """Return *checks* such that none repeats, once a step is done, what the step has cured."""
    echoes = {name for name, check in checks.items() if check.echoes}
    known = {
        f.name for outcome in outcomes if outcome.check not in echoes for f in outcome.findings
    }
    return {
        name: replace(check, run=_but(check.run, known)) if name in echoes else check
        for name, check in checks.items()
    }


def _but(
    run: Callable[..., Iterator[Finding]], names: set[str]
) -> Callable[..., Iterator[Finding]]:
    def others(**given: object) -> Iterator[Finding]:
        return (finding for finding in run(**given) if finding.name not in names)

    return others


# ---- the search --------------------------------------------------------------------------------


def _search(world: World, start: State) -> list[State]:
    """Return the cheapest steps that leave the fewest findings, and all that could be shortened.

    The first plans are plain: the cheapest step for each finding. They bound the search, which
    looks at the cheapest beginnings first. A step of one finding may do for another that stands
    before it: that shows when what is not needed is left out of the steps for each.
    """
    plain = _plain(world, start)
    each = plain if world.tired else _each(world, start, plain)
    best = min((start, plain, each), key=lambda state: state.worth)
    hopeless = names_of(best.pending) & names_of(start.pending)
    tie = count()
    queue = [(start.least(), len(start.pending), next(tie), start)]
    while queue and not world.tired:
        least, _, _, state = heapq.heappop(queue)
        if not best.pending and least >= best.cost:
            break
        after = _after(world, state)
        for further in after:
            best = min(best, further, key=lambda s: s.worth)
            if further.pending:
                heapq.heappush(queue, (further.least(), len(further.pending), next(tie), further))
        # What no step could cure at the start is not waited for.
        lasting = not after and names_of(state.pending) <= hopeless
        if lasting and weight_of(state.pending) <= weight_of(best.pending):
            break
    others = {step.name for step in each.steps} != {step.name for step in best.steps}
    as_good = weight_of(each.pending) <= weight_of(best.pending)
    return [best, each] if others and as_good else [best]


def _finished(world: World, start: State, state: State) -> State:
    """Return where further steps lead that leave less, whichever finding they are for.

    The search goes on from the first finding that can be helped, and that may be a dead end.
    """
    further: State | None = state
    while further:
        state = further
        offers = (step for finding in state.pending for step in world.offered(finding))
        offered = {step.name: step for step in offers if step not in state.steps}
        reached = [_with(world, start, state, step) for step in offered.values()]
        less = [r for r in reached if weight_of(r.pending) < weight_of(state.pending)]
        further = min(less, key=lambda s: s.worth, default=None)
    return state


def _with(world: World, start: State, state: State, step: Step) -> State:
    """Return where *step* leads from *state*; one of its name gives way to it.

    A driver that is new enough for one finding may be too old for another.
    """
    if all(taken.name != step.name for taken in state.steps):
        return world.after(state, step)
    return world.after(start, *(step if s.name == step.name else s for s in state.steps))


def _plain(world: World, start: State) -> State:
    """Return where the cheapest step for the first finding leads, and so on till none helps."""
    state = start
    while after := _after(world, state, first=True):
        state = after[0]
    return state


def _each(world: World, start: State, plain: State) -> State:
    """Return where the cheapest steps of all findings lead together, if not to where *plain* is."""
    offers = (step for finding in start.pending for step in world.offered(finding)[:1])
    cheapest = {step.name: step for step in offers}
    if cheapest.keys() == {step.name for step in plain.steps}:
        return plain
    return _plain(world, world.after(start, *in_order(tuple(cheapest.values()))))


def _after(world: World, state: State, *, first: bool = False) -> list[State]:
    """Return where each step leads that helps the first finding that can be helped.

    With *first* it is the cheapest of them alone.
    """
    tried = {step.name for step in state.steps}
    for finding in state.pending:
        reached = []
        for step in world.offered(finding):
            if step.name in tried:
                continue
            tried.add(step.name)
            further = world.after(state, step)
            if _fewer(state.pending, further.pending):  # what it uncovers may stand
                reached.append(further)
                if first:
                    break
        if reached:
            return reached
    return []


def _counted(findings: Iterable[Finding]) -> Counter[str]:
    return Counter(finding.name for finding in findings)


def _fewer(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names that *after* has less often than *before*, in the order of *before*.

    A fault that is told in other words is not cleared.
    """
    had, has = _counted(before), _counted(after)
    return tuple(name for name in had if has[name] < had[name])


# ---- the proof ---------------------------------------------------------------------------------


def _shortest(
    world: World, start: State, found: State, known: State | None, *, hurried: bool = False
) -> State:
    """Put the steps in order, and drop each without which nothing more and nothing else remains.

    What cannot become better than the end that is *known*, or what is *hurried* in a tired world,
    is given up for that one.
    """
    orders = dict.fromkeys((in_order(found.steps), found.steps))
    best = min((world.after(start, *steps) for steps in orders), key=lambda s: weight_of(s.pending))
    again = sorted(best.steps, key=lambda s: -s.cost)
    while again:  # what is needed may be so only for a step that is dropped after it
        kept: list[Step] = []
        left, again = again, []
        for step in left:
            if len(best.steps) > 1 and (shorter := _without(world, start, best, step, found)):
                best, again = shorter, kept.copy()
                continue
            kept.append(step)
            if known and weight_of(best.pending) >= weight_of(known.pending):
                costly = sum(s.cost for s in kept) > known.cost
                if costly or (hurried and world.tired and best.worth >= known.worth):
                    return known
    return best


def _without(world: World, start: State, best: State, step: Step, found: State) -> State | None:
    """Return where the steps to *best* lead without *step*, if it can be left out.

    *found* has the steps as they were found: in order, one may stand before the one that uncovers
    its fault.
    """
    others = tuple(s for s in best.steps if s is not step)
    if world.lasts(others, [*_cured_by(world, start, best, step), *_prevented(world, best, step)]):
        return None
    shorter = world.after(start, *others)
    worse = weight_of(shorter.pending) > weight_of(best.pending)
    if worse or not _counted(shorter.pending) <= _counted(best.pending):
        left = names_of(best.pending)
        world.prevented[step.name] = [f for f in shorter.pending if f.name not in left]
        return None
    as_found = [s for s in found.steps if any(s is other for other in others)]
    idle = (
        not _clears(world, start, best, step)
        or _is_undone(world, step, as_found, start.facts)
        or _all_offered(world, start, as_found)
    )
    return shorter if idle else None


def _prevented(world: World, end: State, step: Step) -> list[Finding]:
    """Return what came up when *step* was left out before, and is not there at *end*."""
    left = names_of(end.pending)
    return [f for f in world.prevented.get(step.name, ()) if f.name not in left]


def _cured_by(world: World, start: State, end: State, step: Step) -> list[Finding]:
    """Return what is gone once *step* of those that lead to *end* is done, and stays gone."""
    before, after = _around(world, start, end, step)
    stays = names_of(after.pending) | names_of(end.pending)
    return [finding for finding in before.pending if finding.name not in stays]


def _is_undone(world: World, step: Step, others: Iterable[Step], facts: Facts) -> bool:
    """Tell whether one of *others* puts something else where *step* puts something."""
    done = world.touched(step, facts)
    return any(standing.undoes(world.touched(other, facts), done) for other in others)


def _all_offered(world: World, start: State, steps: Iterable[Step]) -> bool:
    """Tell whether each step for packages is offered as it is without one that was left out.

    One that was made for what another step brings is of no use without that.
    """
    state, offered = start, list(_offers(start))
    for step in steps:
        if step.layer in {Layer.ENVIRONMENT, Layer.PACKAGES} and step not in offered:
            return False
        state = world.after(state, step)
        offered += _offers(state)
    return True


def _offers(state: State) -> Iterator[Step]:
    return (step for finding in state.pending for step in finding.steps)


def _told(world: World, start: State, end: State) -> Plan:
    """Return the plan that leads to *end*: each step with what it clears, or else prevents."""
    planned: list[PlannedStep] = []
    for step in end.steps:
        names = _clears(world, start, end, step)
        left = names_of(_around(world, start, end, step)[1].pending)  # one of several may be
        planned.append(PlannedStep(step, names, _verify([n for n in names if n not in left])))
    remaining = _all(end)
    return Plan(tuple(planned), verdict(remaining), remaining, end.outcomes)


def _clears(world: World, start: State, end: State, step: Step) -> tuple[str, ...]:
    """Return what *step* of those that lead to *end* clears, or else what it prevents."""
    before, after = _around(world, start, end, step)
    # What a later step undoes is not claimed.
    had, has = _counted(_all(start)), _counted(_all(end))
    fewer = _fewer(_all(before), _all(after))
    if names := tuple(name for name in fewer if not has[name] or has[name] < had[name]):
        return names
    without = world.after(start, *(s for s in end.steps if s is not step))
    return _fewer(without.pending, end.pending)


def _around(world: World, start: State, end: State, step: Step) -> tuple[State, State]:
    """Return what is before and after *step* of those that lead to *end*."""
    place = next(i for i, one in enumerate(end.steps) if one is step)
    before = world.after(start, *end.steps[:place])
    return before, world.after(before, step)


def _all(state: State) -> tuple[Finding, ...]:
    """Return the findings of *state*, also what is only worth knowing."""
    notes = (f for f in findings_of(state.outcomes) if f.severity == "note")
    return ranked((*state.pending, *notes))


def _verify(cleared: Sequence[str]) -> tuple[str, ...]:
    return (f"torchdoctor check --only {','.join(cleared)}",) if cleared else ()
