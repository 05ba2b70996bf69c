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
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from itertools import count

from torchdoctor import standing
from torchdoctor.facts import Facts
from torchdoctor.model import (
    CONFIDENCES,
    REPORTED,
    SEVERITIES,
    Finding,
    Layer,
    Outcome,
    Plan,
    PlannedStep,
    Step,
    verdict,
)
from torchdoctor.registry import Check
from torchdoctor.replay import Replay

MOST_STATES = 200
"""How many sets of facts are looked at before the best one so far is taken."""


def findings_of(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """Return all findings in *outcomes*, the first to look at first."""
    return ranked([f for outcome in outcomes for f in outcome.findings])


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return *findings* in order: errors first, a cause before what it explains.

    A finding that explains another is as severe, for the order, as what it explains. Ties go by
    the layer of the first step, by confidence, then by name.
    """
    weight = {id(f): SEVERITIES.index(f.severity) for f in findings}
    by_name: dict[str, list[Finding]] = {}
    for finding in findings:
        by_name.setdefault(finding.name, []).append(finding)
    for _ in findings:  # as many rounds as the longest chain can need
        for finding in findings:
            for cause in (c for name in finding.because_of for c in by_name.get(name, ())):
                weight[id(cause)] = min(weight[id(cause)], weight[id(finding)])
    depth = {id(f): _depth(f, by_name, ()) for f in findings}

    def key(finding: Finding) -> tuple[int, int, int, int, str, str]:
        layer = finding.steps[0].layer if finding.steps else Layer.SCRIPT
        return (
            weight[id(finding)],
            depth[id(finding)],
            layer,
            CONFIDENCES.index(finding.confidence),
            finding.name,
            finding.summary,
        )

    ordered = sorted(findings, key=key)
    # Those of a report had all their facts when they were put in order.
    told = iter([finding for finding in findings if finding.family == REPORTED])
    return tuple(next(told) if finding.family == REPORTED else finding for finding in ordered)


def _depth(finding: Finding, by_name: Mapping[str, list[Finding]], seen: tuple[str, ...]) -> int:
    causes = [name for name in finding.because_of if name in by_name and name not in seen]
    here = (*seen, finding.name)
    return max((1 + _depth(c, by_name, here) for n in causes for c in by_name[n]), default=0)


def make(checks: Mapping[str, Check], facts: Facts, outcomes: tuple[Outcome, ...]) -> Plan:
    """Return the plan for *facts*, on which *checks* said *outcomes*.

    A finding without steps, or whose steps do not cure it, is in ``remaining``.
    """
    start = _State(facts, _pending(outcomes), outcomes=outcomes)
    if not start.pending:
        return Plan((), verdict(now := findings_of(outcomes)), now, outcomes)
    world = _World(_without_echo(checks, outcomes), start)
    return _shortest(world, start, _search(world, start))


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


def _pending(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    return tuple(f for f in findings_of(outcomes) if f.severity != "note")


# ---- the search --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _State:
    """Where some steps lead."""

    facts: Facts
    pending: tuple[Finding, ...]
    steps: tuple[Step, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    standing: tuple[Finding, ...] = ()
    """Those of ``pending`` that the checks do not see any more, but that no step has cured."""
    cured: tuple[tuple[Finding, Mapping[str, str]], ...] = ()
    """Those that were cured, with what the step for them put in place."""

    @property
    def worth(self) -> tuple[int, int, int, int]:
        """Return what is to be as small as can be, the weightiest first."""
        return (*_left(self.pending), self.cost, len(self.steps))

    @property
    def cost(self) -> int:
        """Return what the steps cost together."""
        return sum(step.cost for step in self.steps)

    def least(self) -> int:
        """Return the cost that no plan by this way can be below."""
        taken = {step.name for step in self.steps}
        more = (s.cost for f in self.pending for s in f.steps if s.name not in taken)
        return self.cost + min(more, default=0)


class _World:
    """What becomes of a machine: each way is gone once, whoever asks where it leads."""

    def __init__(self, checks: Mapping[str, Check], start: _State) -> None:
        self._replay = Replay(checks)
        self._makers: dict[str, list[Check]] = {}
        for check in checks.values():
            for name in check.names:
                self._makers.setdefault(name, []).append(check)
        self._start = start.facts
        self._known: dict[tuple[int, ...], _State] = {}

    def after(self, state: _State, *steps: Step) -> _State:
        """Return where *steps*, one after the other, lead from *state*."""
        for step in steps:
            way = (*state.steps, step)
            key = tuple(map(id, way))
            if key not in self._known:
                self._known[key] = self._one(state, step, way)
            state = self._known[key]
        return state

    def _one(self, state: _State, step: Step, way: tuple[Step, ...]) -> _State:
        facts = step.effect(state.facts)
        outcomes = self._replay.run(facts)
        seen = _pending(outcomes)
        tried = standing.as_tried(self._start, facts)
        done = standing.touched(step, state.facts)
        if not standing.is_new_torch(done):  # what an import showed holds on
            old = _names(state.pending)
            seen = tuple(f for f in seen if f.name in old or self._finds(f, tried))
        names = _names(seen)
        undone = [f for f, before in state.cured if standing.undoes(done, before)]
        gone = [f for f in (*state.pending, *undone) if f.name not in names]
        stand = standing.standing(gone, step, state.facts, tried, self._finds)
        open_ones = names | _names(stand)
        return _State(
            facts,
            pending=ranked((*seen, *stand)) if stand else seen,
            steps=way,
            outcomes=outcomes,
            standing=stand,
            cured=(
                *((f, before) for f, before in state.cured if f not in undone),
                *((f, done) for f in gone if f.name not in open_ones),
            ),
        )

    def _finds(self, finding: Finding, facts: Facts) -> bool:
        return any(
            other.name == finding.name
            for check in self._makers.get(finding.name, ())
            for other in self._replay.look(check, facts).findings
        )


def _left(pending: Sequence[Finding]) -> tuple[int, int]:
    """Return how many errors are left, and how many findings at all."""
    return sum(f.severity == "error" for f in pending), len(pending)


def _search(world: _World, start: _State) -> _State:
    """Return the cheapest steps that leave the fewest findings.

    The first plans are plain: the cheapest step for each finding. They bound the search, which
    looks at the cheapest beginnings first.
    """
    plain = (start, _plain(world, start), _plain(world, _each(world, start)))
    best = min(plain, key=lambda state: state.worth)
    hopeless = _names(best.pending) & _names(start.pending)
    tie = count()
    queue = [(start.least(), len(start.pending), next(tie), start)]
    for _ in range(MOST_STATES):
        if not queue:
            break
        least, _, _, state = heapq.heappop(queue)
        if not best.pending and least >= best.cost:
            break
        after = _after(world, state)
        for further in after:
            best = min(best, further, key=lambda s: s.worth)
            if further.pending:
                heapq.heappush(queue, (further.least(), len(further.pending), next(tie), further))
        # What no step could cure at the start is not waited for.
        lasting = not after and _names(state.pending) <= hopeless
        if lasting and _left(state.pending) <= _left(best.pending):
            break
    return best


def _plain(world: _World, start: _State) -> _State:
    """Return where the cheapest step for the first finding leads, and so on till none helps."""
    state = start
    while after := _after(world, state, first=True):
        state = after[0]
    return state


def _each(world: _World, start: _State) -> _State:
    """Return where the cheapest steps of all findings lead together."""
    cheapest = (min(f.steps, key=lambda s: s.cost) for f in start.pending if f.steps)
    return world.after(start, *in_order(tuple({s.name: s for s in cheapest}.values())))


def _after(world: _World, state: _State, *, first: bool = False) -> list[_State]:
    """Return where each step leads that helps the first finding that can be helped.

    With *first* it is the cheapest of them alone.
    """
    tried = {step.name for step in state.steps}
    for finding in state.pending:
        reached = []
        for step in sorted(finding.steps, key=lambda s: s.cost):
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


def _names(findings: Iterable[Finding]) -> set[str]:
    return set(_names_of(findings))


def _names_of(findings: Iterable[Finding]) -> list[str]:
    return [finding.name for finding in findings]


def _fewer(before: Sequence[Finding], after: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names that *after* has less often than *before*, in the order of *before*.

    A fault that is told in other words is not cleared.
    """
    had, has = Counter(f.name for f in before), Counter(f.name for f in after)
    return tuple(name for name in had if has[name] < had[name])


# ---- the proof ---------------------------------------------------------------------------------


def _shortest(world: _World, start: _State, found: _State) -> Plan:
    """Put the steps in order, and drop each without which nothing more and nothing else remains."""
    orders = dict.fromkeys((in_order(found.steps), found.steps))
    best = min((world.after(start, *steps) for steps in orders), key=lambda s: _left(s.pending))
    if len(best.steps) > 1:
        for step in sorted(best.steps, key=lambda s: -s.cost):
            others = tuple(s for s in best.steps if s is not step)
            shorter = world.after(start, *others)
            fewer = _names(shorter.pending) <= _names(best.pending)
            # As they were found: in order, a step may stand before the one that uncovers its fault.
            as_found = [s for s in found.steps if any(s is other for other in others)]
            if fewer and (
                _is_undone(step, as_found, start.facts) or _all_offered(world, start, as_found)
            ):
                best = shorter
    return _told(world, start, best)


def _is_undone(step: Step, others: Iterable[Step], facts: Facts) -> bool:
    """Tell whether one of *others* puts something else where *step* puts something."""
    done = standing.touched(step, facts)
    return any(standing.undoes(standing.touched(other, facts), done) for other in others)


def _all_offered(world: _World, start: _State, steps: Iterable[Step]) -> bool:
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


def _offers(state: _State) -> Iterator[Step]:
    return (step for finding in state.pending for step in finding.steps)


def _told(world: _World, start: _State, end: _State) -> Plan:
    """Return the plan that leads to *end*: each step with what it clears, or else prevents."""
    state = start
    planned: list[PlannedStep] = []
    # What a later step undoes is not claimed.
    had, has = Counter(_names_of(_all(start))), Counter(_names_of(_all(end)))
    for step in end.steps:
        before, state = state, world.after(state, step)
        fewer = _fewer(_all(before), _all(state))
        names = tuple(name for name in fewer if not has[name] or has[name] < had[name])
        if not names:
            without = world.after(start, *(s for s in end.steps if s is not step))
            names = _fewer(without.pending, end.pending)
        planned.append(PlannedStep(step, names, _verify(names)))
    left = _all(end)
    return Plan(tuple(planned), verdict(left), left, end.outcomes)


def _all(state: _State) -> tuple[Finding, ...]:
    """Return the findings of *state*, also what is only worth knowing."""
    notes = (f for f in findings_of(state.outcomes) if f.severity == "note")
    return ranked((*state.pending, *notes))


def _verify(cleared: Sequence[str]) -> tuple[str, ...]:
    return (f"torchdoctor check --only {','.join(cleared)}",) if cleared else ()
