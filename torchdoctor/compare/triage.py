"""What is said of machines with the same fault: the causes, the plan they share, what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from torchdoctor.compare.clusters import Cluster
from torchdoctor.compare.fleet import Fleet
from torchdoctor.compare.tally import Difference
from torchdoctor.report import as_json
from torchdoctor.report.document import Detail, Group, Way
from torchdoctor.report.words import LONG_VALUE, LONGEST, count, one_line

HEADING = "Machines with the same fault"
NAMED = 20
"""Machines of a group that are named."""
FEW = 3
"""The same for people, in one line."""
MOST_GROUPS = 10
"""Groups that people are told of without --verbose."""
MOST_DIFFERENCES = 12
MOST_VALUES = 6
EMPTY = "-"
RARE = "other values"
"""Of a fact with more different values than are told apart."""


def groups(fleet: Fleet, differences: Sequence[Difference]) -> tuple[Group, ...]:
    """Return the groups of *fleet*; *differences* are those of all machines, noise left out."""
    clusters = list(fleet.clusters)
    inside = _inside(clusters, differences)
    return tuple(
        _group(cluster, fleet.names, inside[place]) for place, cluster in enumerate(clusters)
    )


def _group(
    cluster: Cluster,
    names: Sequence[str],
    inside: Sequence[tuple[str, tuple[tuple[str, int], ...]]],
) -> Group:
    ways = sorted(cluster.ways.values(), key=lambda way: -len(way.machines))
    also = sorted(cluster.also.items(), key=lambda row: (-len(row[1]), row[0]))
    return Group(
        cluster.faults,
        cluster.verdict,
        len(cluster.machines),
        tuple(names[number] for number in cluster.machines[:NAMED]),
        tuple(Way(w.plan, len(w.machines), names[w.machines[0]], w.alike) for w in ways),
        cluster.planned,
        tuple((name, len(numbers)) for name, numbers in also),
        tuple(inside[:MOST_DIFFERENCES]),
        max(0, len(inside) - MOST_DIFFERENCES),
        cluster.several,
    )


def _inside(
    clusters: Sequence[Cluster], differences: Iterable[Difference]
) -> list[list[tuple[str, tuple[tuple[str, int], ...]]]]:
    """Return for each of *clusters* the facts in which its own machines differ, values counted."""
    found: list[list[tuple[str, tuple[tuple[str, int], ...]]]] = [[] for _ in clusters]
    cluster_of = {n: place for place, c in enumerate(clusters) for n in c.machines}
    for difference in differences:
        said: dict[int, Counter[str]] = {}
        values = [*([difference.norm] if difference.norm else []), *difference.values]
        for value in values:
            for place, many in Counter(cluster_of[n] for n in value.machines).items():
                said.setdefault(place, Counter())[value.text] += many
        for place, counted in said.items():
            if difference.rare and (left := _unheard(clusters[place], counted)):
                counted[RARE] += left
            if len(counted) > 1:
                found[place].append((difference.fact, tuple(counted.most_common())))
    return found


def _unheard(cluster: Cluster, counted: Counter[str]) -> int:
    return len(cluster.machines) - counted.total()


# ---- for people ------------------------------------------------------------------------------


def details(made: Sequence[Group]) -> Iterator[Detail]:
    """Yield what people are told of the groups *made*, the largest of faulty machines first."""
    for place, group in enumerate(made):
        yield from _told(group, more=place >= MOST_GROUPS)
    if (left := len(made) - MOST_GROUPS) > 0:
        said = f"and {count(left, 'more group')} (--verbose shows all)"
        yield Detail(HEADING, said, drawn=True)


def _told(group: Group, *, more: bool) -> Iterator[Detail]:
    yield Detail(HEADING, f"{title(group)} ({who(group)})", more=more, drawn=True)
    for fault in group.faults:
        said = one_line(fault.finding.summary, LONG_VALUE)
        yield Detail(HEADING, said, more=True, drawn=True)
    for way in group.ways:
        share = count(way.count, "machine") if len(group.ways) > 1 else ""
        yield from _cure(way, share, more=more)
    for text in (_also(group), _differ(group)):
        if text:
            yield Detail(HEADING, text, more=more, drawn=True)


def _cure(way: Way, share: str, *, more: bool) -> Iterator[Detail]:
    if not way.plan.steps:
        return
    titles = "; ".join(one_line(p.step.title, LONG_VALUE) for p in way.plan.steps)
    yield Detail(
        HEADING,
        f"Plan for {share}: {titles}" if share else f"Plan: {titles}",
        more=more,
        drawn=True,
    )
    for planned in way.plan.steps:
        every = planned.step.commands
        for command in every.bash or every.powershell or every.cmd:
            yield Detail(HEADING, f"  {command}", command=True, more=True, drawn=True)


def title(group: Group) -> str:
    """Return how many machines *group* has, and what is wrong with them."""
    return f"{count(group.count, 'machine')}: {what(group)}"


def what(group: Group) -> str:
    """Return what is wrong with the machines of *group*."""
    if group.several:
        return "several faults"
    if group.faults:
        return ", ".join(group.causes)
    return "no fault" if group.verdict == "healthy" else "no fault, but not all can be told"


def who(group: Group) -> str:
    """Return the names of the first machines of *group*, and how many more there are."""
    names = [one_line(name, 60) for name in group.machines[:FEW]]
    left = group.count - len(names)
    return ", ".join(names) + (f" and {left:,} more" if left else "")


def _also(group: Group) -> str:
    said = ", ".join(f"{name} ({many:,})" for name, many in islice(group.also, MOST_VALUES))
    return f"Also found: {said}" if said else ""


def _differ(group: Group) -> str:
    said = [f"{fact} ({spread(values)})" for fact, values in group.differences[:FEW]]
    left = len(group.differences) - len(said) + group.more_differences
    said += [count(left, "more fact")] if left else []
    return f"They differ in {'; '.join(said)}" if said else ""


def spread(values: Iterable[tuple[str, int]]) -> str:
    """Return the first of *values*, each with how many machines have it."""
    told = list(values)
    said = ", ".join(
        f"{one_line(text, 40) or EMPTY}: {many:,}" for text, many in told[:MOST_VALUES]
    )
    return said + (f", and {len(told) - MOST_VALUES} more" if len(told) > MOST_VALUES else "")


# ---- for programs ----------------------------------------------------------------------------


def data(made: Iterable[Group]) -> list[Mapping[str, object]]:
    """Return the groups *made* as data of a report."""
    return [
        {
            "findings": list(group.causes),
            "verdict": group.verdict,
            "count": group.count,
            "machines": list(group.machines),
            "summary": group.faults[0].finding.summary[:LONGEST] if group.faults else "",
            "planned": group.planned,
            "plans": [
                {
                    "count": way.count,
                    "first": way.first,
                    "alike": way.alike,
                    "steps": [as_json.step(planned) for planned in way.plan.steps],
                    "remaining": [f.name for f in way.plan.remaining if f.severity != "note"],
                }
                for way in group.ways
            ],
            "also": [{"finding": name, "count": many} for name, many in group.also],
            "differences": [
                {
                    "fact": fact,
                    "values": [{"value": t, "count": n} for t, n in values[:NAMED]],
                    "more_values": max(0, len(values) - NAMED),
                }
                for fact, values in group.differences
            ],
            "more_differences": group.more_differences,
        }
        for group in made
    ]
