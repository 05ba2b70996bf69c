"""From findings to the fewest steps that clear them, in order, proven by replay.

The plan is searched on the facts themselves: take the first finding that stands, try each step
that would cure it, apply the step's effect, run every check again; the cheapest way to facts with
no error and no warning wins. What the checks say of the facts after the last step is what is
shown as remaining.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import count

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
from torchdoctor.run import run

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
    checks = _without_echo(checks, outcomes)
    found = _search(checks, facts, outcomes)
    return _shortest(checks, facts, in_order(found))


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


def _search(
    checks: Mapping[str, Check], facts: Facts, outcomes: tuple[Outcome, ...]
) -> tuple[Step, ...]:
    """Return the cheapest steps that leave the fewest findings."""
    tie = count()
    queue: list[tuple[int, int, Facts, tuple[Finding, ...], tuple[Step, ...]]] = []
    heapq.heappush(queue, (0, next(tie), facts, _pending(outcomes), ()))
    best: tuple[int, int, tuple[Step, ...]] | None = None
    for _ in range(MOST_STATES):
        if not queue:
            break
        cost, _, now, pending, steps = heapq.heappop(queue)
        if best is None or (len(pending), cost) < best[:2]:
            best = (len(pending), cost, steps)
        if not pending:
            break
        taken = {step.name for step in steps}
        for step in _choices(pending, taken):
            after = step.effect(now)
            left = _pending(run(checks, after))
            if _helps(pending, left):
                entry = (cost + step.cost, next(tie), after, left, (*steps, step))
                heapq.heappush(queue, entry)
    return best[2] if best else ()


def _choices(pending: Sequence[Finding], taken: set[str]) -> tuple[Step, ...]:
    """Return the steps for the first finding that has any left."""
    for finding in pending:
        if steps := tuple(s for s in finding.steps if s.name not in taken):
            return steps
    return ()


def _helps(before: Sequence[Finding], after: Sequence[Finding]) -> bool:
    """Tell whether a step cleared something; what it uncovers may stand."""
    left = {(f.name, f.summary) for f in after}
    return any((f.name, f.summary) not in left for f in before)


def _shortest(checks: Mapping[str, Check], facts: Facts, steps: tuple[Step, ...]) -> Plan:
    """Drop each step without which nothing more remains, then replay what is left."""
    whole = _replay(checks, facts, steps)
    for step in sorted(steps, key=lambda s: -s.cost):
        without = tuple(s for s in steps if s is not step)
        shorter = _replay(checks, facts, without)
        if _worse(shorter) <= _worse(whole):
            steps, whole = without, shorter
    return whole


def _worse(plan: Plan) -> int:
    return sum(f.severity != "note" for f in plan.remaining)


def _replay(checks: Mapping[str, Check], facts: Facts, steps: tuple[Step, ...]) -> Plan:
    outcomes = run(checks, facts)
    findings = findings_of(outcomes)
    planned: list[PlannedStep] = []
    for step in steps:
        facts = step.effect(facts)
        outcomes = run(checks, facts)
        left = findings_of(outcomes)
        kept = {(f.name, f.summary) for f in left}
        cleared = [f.name for f in findings if (f.name, f.summary) not in kept]
        names = tuple(dict.fromkeys(cleared))
        planned.append(PlannedStep(step, names, _verify(names)))
        findings = left
    return Plan(tuple(planned), verdict(findings), findings, outcomes)


def _verify(cleared: Sequence[str]) -> tuple[str, ...]:
    return (f"torchdoctor check --only {','.join(cleared)}",) if cleared else ()
