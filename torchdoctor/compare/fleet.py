"""Many machines, one after the other, into what differs and what is wrong where."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from torchdoctor import expectation
from torchdoctor.compare.clusters import Clusters, Judge, inert, judge
from torchdoctor.compare.rows import rows
from torchdoctor.compare.sources import Source
from torchdoctor.compare.tally import Difference, Tally
from torchdoctor.facts import Facts
from torchdoctor.model import SEVERITIES, Finding
from torchdoctor.reading import machine

__all__ = ("Fleet", "Found", "judge", "of")

MOST_FINDINGS = 2_000
MOST_UNREAD = 1_000
"""Of each that is kept apart; the numbers stay right beyond it."""


@dataclass(slots=True)
class Found:
    """A finding as the first machine had it, and the numbers of all that have it."""

    finding: Finding
    machines: array[int] = field(default_factory=lambda: array("I"))


@dataclass(slots=True)
class Fleet:
    """What was made of the machines."""

    names: list[str] = field(default_factory=list)
    inputs: tuple[str, ...] = ()
    tally: Tally = field(default_factory=Tally)
    found: dict[str, Found] = field(default_factory=dict)
    unread: list[tuple[str, str]] = field(default_factory=list)
    unread_count: int = 0
    judged: bool = True
    gathered: int = 0
    """How many were gathered from a job that runs on several machines."""
    clusters: Clusters = field(default_factory=Clusters)
    """The machines by what is wrong with them."""

    def take(self, source: Source, judge: Judge | None) -> None:
        """Count one machine, and forget all but the numbers."""
        if source.snapshot is None:
            self.unread_count += 1
            if len(self.unread) < MOST_UNREAD:
                self.unread.append((source.name, source.why))
            return
        facts = machine.read(source.snapshot, expectation.kept(source.snapshot.options))
        if facts == Facts(expectation=facts.expectation, remarks=facts.remarks):
            self.unread_count += 1
            if len(self.unread) < MOST_UNREAD:
                self.unread.append((source.name, f"{source.name} tells nothing of a machine."))
            return
        number = self.tally.add(rows(facts))
        self.names.append(source.name)
        self.gathered += source.snapshot.options.get("seat") is not None
        if judge is not None:
            judged = judge(facts, source.snapshot)
            self._judged(number, judged.findings)
            self.clusters.add(number, judged)

    def _judged(self, number: int, findings: Iterable[Finding]) -> None:
        for finding in findings:
            found = self.found.get(finding.name)
            if found is None:
                if len(self.found) >= MOST_FINDINGS:
                    continue
                found = self.found[finding.name] = Found(inert(finding))
            if not found.machines or found.machines[-1] != number:
                found.machines.append(number)
            if SEVERITIES.index(finding.severity) < SEVERITIES.index(found.finding.severity):
                found.finding = inert(finding)

    def strangers(self, differences: Iterable[Difference], most: int) -> list[tuple[int, int]]:
        """Return the machines that are out of line in most facts, and in how many."""
        counts = Counter(number for d in differences if d.noise is None for number in d.outliers)
        ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        return list(islice(ordered, most))


def of(sources: Iterable[Source], judge: Judge | None) -> Fleet:
    """Return what *sources* come to. One snapshot is in memory at a time.

    *judge* gives the findings of one machine; None leaves them out.
    """
    fleet = Fleet(judged=judge is not None)
    for source in sources:
        fleet.take(source, judge)
    return fleet
