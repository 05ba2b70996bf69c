"""Machines with the same fault, one after the other, in bounded memory.

Two machines have the same fault where the same root causes are found on them: of errors, and
where there is none, of warnings. What a root cause explains is no cause of its own, so one symptom
with two causes makes two clusters; and a warning beside an error makes no third.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from torchdoctor import diagnosis
from torchdoctor.facts import Facts
from torchdoctor.model import Finding, Plan, PlannedStep, Verdict
from torchdoctor.model import verdict as verdict_of
from torchdoctor.report.document import Fault, folded
from torchdoctor.snapshot import Snapshot

MOST = 2_000
"""Clusters that are kept apart; the numbers stay right beyond it."""
PLANNED = 20
"""Machines of one cluster for which a plan is made."""
MOST_ALSO = 200
"""Other findings of one cluster that are counted."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is said of one machine."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    plan: Callable[[], Plan]


@dataclass(slots=True)
class Way:
    """A plan, as the first machine has it, and the numbers of the machines that have the same."""

    plan: Plan
    machines: array[int] = field(default_factory=lambda: array("I"))
    alike: bool = True
    """Whether each of them has the same commands to the letter."""


@dataclass(slots=True)
class Cluster:
    """Machines with the same root causes; those without any have none."""

    faults: tuple[Fault, ...]
    """As the first of the machines has them, the first to fix first."""
    verdict: Verdict
    machines: array[int] = field(default_factory=lambda: array("I"))
    also: dict[str, array[int]] = field(default_factory=dict)
    """What else is found on some of them."""
    ways: dict[tuple[str, ...], Way] = field(default_factory=dict)
    """By the names of their steps."""
    several: bool = False
    """Whether these are the machines of many causes that were one too many to keep apart."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Return the names of the root causes."""
        return tuple(dict.fromkeys(fault.finding.name for fault in self.faults))

    @property
    def planned(self) -> int:
        """Return for how many of the machines a plan was made."""
        return sum(len(way.machines) for way in self.ways.values())


class Clusters:
    """The clusters so far."""

    def __init__(self) -> None:
        """Begin with none."""
        self._kept: dict[tuple[str, ...], Cluster] = {}

    def __iter__(self) -> Iterator[Cluster]:
        """Give them, the largest of faulty machines first, those without a fault last."""
        return iter(
            sorted(
                self._kept.values(),
                key=lambda c: (not c.faults, -len(c.machines), c.several, c.causes, c.verdict),
            )
        )

    def add(self, number: int, judged: Judged) -> None:
        """Count the machine *number*."""
        grave = [f for f in folded(judged.findings) if f.finding.severity != "note"]
        worst = [f for f in grave if f.finding.severity == "error"] or grave
        key = tuple(sorted({fault.finding.name for fault in worst})) or ("", judged.verdict)
        cluster = self._kept.get(key)
        if cluster is None:
            several = len(self._kept) >= MOST
            key = ("several",) if several else key
            bare = tuple(_bare(fault) for fault in worst) if not several else ()
            fresh = Cluster(bare, judged.verdict, several=several)
            cluster = self._kept.setdefault(key, fresh)
        cluster.machines.append(number)
        for name in dict.fromkeys(f.finding.name for f in grave):
            if name in cluster.causes or cluster.several:
                continue
            if name in cluster.also or len(cluster.also) < MOST_ALSO:
                cluster.also.setdefault(name, array("I")).append(number)
        if cluster.faults and cluster.planned < PLANNED:
            _planned(cluster, number, judged.plan())


def _planned(cluster: Cluster, number: int, plan: Plan) -> None:
    key = tuple(planned.step.name for planned in plan.steps)
    way = cluster.ways.get(key)
    if way is None:
        steps = tuple(replace(p, step=replace(p.step, effect=_none)) for p in plan.steps)
        left = tuple(map(inert, plan.remaining))
        way = cluster.ways[key] = Way(Plan(steps, plan.verdict, left))
    else:
        way.alike = way.alike and _typed(way.plan.steps) == _typed(plan.steps)
    way.machines.append(number)


def _typed(steps: tuple[PlannedStep, ...]) -> list[object]:
    return [planned.step.commands for planned in steps]


def _bare(fault: Fault) -> Fault:
    return Fault(inert(fault.finding), tuple(map(inert, fault.consequences)))


def inert(finding: Finding) -> Finding:
    """Return *finding* with steps that no longer hold on to the facts of its machine."""
    return replace(finding, steps=tuple(replace(s, effect=_none) for s in finding.steps))


def _none(facts: Facts) -> Facts:
    """Take the place of an effect, which would keep a whole machine in memory."""
    return facts


Judge = Callable[[Facts, Snapshot], Judged]


def judge() -> Judge:
    """Return what judges a machine by all the checks."""
    from torchdoctor import plan  # noqa: PLC0415 - only where machines are judged
    from torchdoctor.registry import all_checks  # noqa: PLC0415
    from torchdoctor.run import in_order, run  # noqa: PLC0415

    checks = all_checks()
    order = in_order(checks)

    def judged(facts: Facts, snapshot: Snapshot) -> Judged:
        outcomes = run(checks, facts, order=order)
        findings = plan.findings_of(outcomes)
        look = diagnosis.Look(facts, snapshot, live=False)
        untold = diagnosis.essential_unknown(look)
        return Judged(
            findings,
            verdict_of(findings, essential_unknown=untold),
            partial(plan.make, checks, facts, outcomes),
        )

    return judged
