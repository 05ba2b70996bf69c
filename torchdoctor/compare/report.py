"""What is said of a comparison: the report for people, and the data for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby

from torchdoctor.compare import triage
from torchdoctor.compare.fleet import Fleet, Found
from torchdoctor.compare.rows import LONGEST, NONE
from torchdoctor.compare.tally import ABSENT, Difference, Value
from torchdoctor.model import SEVERITIES, Evidence, Finding
from torchdoctor.report import document
from torchdoctor.report.document import Detail, Group, Report
from torchdoctor.report.words import count, one_line

SCHEMA = "torchdoctor.compare/1"
PAIR = 2
NAMED = 20
"""Machines that are named of those with one value, for programs."""
FEW = 3
"""The same for people."""
FIRST = 12
"""Differences of one subject that are shown without --verbose."""
WIDE = 44
STRANGERS = 10
MOST_VALUES = 20
NCCL = "packages.nvidia-nccl-cu*"
"""Of which the machines of one job need the same version."""


@dataclass(frozen=True, slots=True)
class Same:
    """Differences of one subject that part the machines in the same way."""

    first: Difference
    alike: tuple[Difference, ...] = ()


def build(fleet: Fleet) -> Report:
    """Return the report on *fleet*: of two machines, the second against the first."""
    everything = fleet.tally.differences()
    differences = tuple(d for d in everything if d.noise is None)
    pair = len(fleet.names) == PAIR
    findings = _findings(fleet, differences)
    if pair and fleet.judged:
        differences = _explaining_first(differences, findings)
    groups = triage.groups(fleet, differences) if fleet.judged else ()
    report = document.build(
        target=document.Target("snapshot", inputs=fleet.inputs),
        findings=findings,
        data={"compare": _data(fleet, differences, [d for d in everything if d.noise], groups)},
        headline=_headline(fleet, differences, findings),
        details=_details(fleet, differences, everything, groups),
    )
    return replace(
        report, remarks=tuple(_remarks(fleet)), groups=groups, unread=tuple(fleet.unread)
    )


# ---- findings --------------------------------------------------------------------------------


def of_second(fleet: Fleet) -> tuple[list[Found], list[Found], list[Found]]:
    """Return which findings of two machines are new in the second, gone, and in both."""
    new: list[Found] = []
    gone: list[Found] = []
    kept: list[Found] = []
    for found in fleet.found.values():
        has = tuple(found.machines)
        (new if has == (1,) else gone if has == (0,) else kept).append(found)
    return new, gone, kept


def _findings(fleet: Fleet, differences: Iterable[Difference]) -> tuple[Finding, ...]:
    """Return the findings to report: those that are new in the second, or who has which."""
    of_job = [] if fleet.gathered < len(fleet.names) else list(_of_job(differences, fleet))
    if len(fleet.names) == PAIR:
        new, _, _ = of_second(fleet)
        return (*of_job, *_by_gravity([f.finding for f in new]))
    ordered = sorted(
        (f for f in fleet.found.values() if f.finding.severity != "note"),
        key=lambda f: (SEVERITIES.index(f.finding.severity), -len(f.machines), f.finding.name),
    )
    return (*of_job, *(_of_many(found, fleet) for found in ordered))


def _of_job(differences: Iterable[Difference], fleet: Fleet) -> Iterator[Finding]:
    """Yield what is a fault because these machines are to work together."""
    for difference in differences:
        if not fnmatchcase(difference.fact, NCCL):
            continue
        values = [*([difference.norm] if difference.norm else []), *difference.values]
        told = [value for value in values if value.text not in (ABSENT, NONE)]
        if len(told) > 1:
            said = "; ".join(f"{v.text} on {_who(v.machines, fleet)}" for v in told[:MOST_VALUES])
            yield Finding(
                "nccl-version-differs",
                "error",
                f"The machines of this job have different versions of NCCL: {said}.",
                tuple(Evidence(difference.fact, v.text, _who(v.machines, fleet)) for v in told),
                family="distributed",
            )
            return


def _by_gravity(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda f: SEVERITIES.index(f.severity))


def _of_many(found: Found, fleet: Fleet) -> Finding:
    finding, who = found.finding, found.machines
    named = _who(who, fleet)
    seen = [Evidence("machines", named, "")]
    if len(who) == len(fleet.names):
        said = f"On each of the {len(who):,} machines: {finding.summary}"
    else:
        several = count(len(who), "machine")
        said = f"On {several} of {len(fleet.names):,} ({named}): {finding.summary}"
    return replace(finding, summary=said, evidence=(*seen, *finding.evidence), steps=())


def _explaining_first(
    differences: tuple[Difference, ...], findings: Iterable[Finding]
) -> tuple[Difference, ...]:
    """Return *differences* with those in front that a new finding was read from."""
    named = {seen.fact for finding in findings for seen in finding.evidence}

    def explains(difference: Difference) -> bool:
        fact = difference.fact
        return any(fact == n or fact.startswith(f"{n}.") or n.startswith(f"{fact}.") for n in named)

    return tuple(sorted(differences, key=lambda d: not explains(d)))


# ---- for people ------------------------------------------------------------------------------


def _who(machines: Sequence[int], fleet: Fleet, most: int = FEW) -> str:
    names = [one_line(fleet.names[number], 60) for number in machines[:most]]
    left = len(machines) - len(names)
    return ", ".join(names) + (f" and {left:,} more" if left else "")


def _headline(
    fleet: Fleet, differences: tuple[Difference, ...], findings: Sequence[Finding]
) -> str:
    machines = len(fleet.names)
    if not differences:
        said = f"{machines:,} machines are alike in {count(fleet.tally.facts, 'fact')}."
    elif machines == PAIR:
        said = f"{fleet.names[1]} differs from {fleet.names[0]} in "
        said += f"{count(len(differences), 'fact')}, first of all in {_short(differences[0])}."
    else:
        out = {number for d in differences for number in d.outliers}
        said = f"{machines:,} machines differ in {count(len(differences), 'fact')}"
        said += f"; {len(out):,} of them are not like most." if out else "; none is like most."
    if not fleet.judged:
        return said
    if machines == PAIR:
        _, gone, _ = of_second(fleet)
        parts = [
            f"{count(len(f), 'finding')} {w}" for f, w in ((findings, "new"), (gone, "gone")) if f
        ]
        return f"{said} {' and '.join(parts) or 'No finding is new or gone'}."
    faulty = sum(len(c.machines) for c in fleet.clusters if c.faults or c.several)
    if not faulty:
        return f"{said} None has a fault."
    return f"{said} {faulty:,} of them {'has' if faulty == 1 else 'have'} a fault."


def _short(difference: Difference) -> str:
    values = [*([difference.norm] if difference.norm else []), *difference.values]
    texts = " -> ".join(one_line(v.text, 40) for v in sorted(values, key=lambda v: v.machines)[:2])
    return f"{difference.fact} ({texts})"


def _details(
    fleet: Fleet,
    differences: tuple[Difference, ...],
    everything: Sequence[Difference],
    groups: Sequence[Group],
) -> Iterator[Detail]:
    pair = len(fleet.names) == PAIR
    if pair and fleet.judged:
        yield from _of_findings(fleet)
    if not pair:
        yield from triage.details(groups)
        for number, facts in fleet.strangers(differences, STRANGERS):
            name = one_line(fleet.names[number], 60)
            yield Detail("Least like the others", f"{name}: {count(facts, 'fact')}")
    for subject, group in groupby(sorted(differences, key=_place(differences)), _subject):
        rows = folded(tuple(group))
        for at, row in enumerate(rows):
            yield from _shown(subject, row, fleet, more=at >= FIRST)
        if len(rows) > FIRST:
            left = sum(1 + len(row.alike) for row in rows[FIRST:])
            yield Detail(subject, f"and {count(left, 'more fact')} (--verbose shows all)")
    if noise := [d for d in everything if d.noise]:
        whys = dict.fromkeys(d.noise or "" for d in noise)
        said = f"{count(len(noise), 'fact')} that mean nothing: {'; '.join(whys)}"
        yield Detail("Left out", said, more=True)


def _subject(difference: Difference) -> str:
    return difference.subject


def _place(differences: tuple[Difference, ...]) -> Callable[[Difference], int]:
    """Return the key by which the differences of one subject come together, order kept."""
    first: dict[str, int] = {}
    for at, difference in enumerate(differences):
        first.setdefault(difference.subject, at)
    return lambda difference: first[difference.subject]


def _of_findings(fleet: Fleet) -> Iterator[Detail]:
    _, gone, kept = of_second(fleet)
    for found in _by_gravity([f.finding for f in gone]):
        yield Detail("Gone", f"{found.name}: {found.summary}")
    for found in _by_gravity([f.finding for f in kept if f.finding.severity != "note"]):
        yield Detail("In both", f"{found.name}: {found.summary}")


def folded(differences: tuple[Difference, ...]) -> tuple[Same, ...]:
    """Return *differences* with those together that part the machines in the same way."""
    groups: dict[object, list[Difference]] = {}
    for difference in differences:
        parts = (difference.norm, *difference.values)
        key = tuple(value.machines for value in parts if value is not None)
        groups.setdefault((key, difference.norm is None), []).append(difference)
    return tuple(Same(group[0], tuple(group[1:])) for group in groups.values())


def _shown(subject: str, row: Same, fleet: Fleet, *, more: bool) -> Iterator[Detail]:
    pair = len(fleet.names) == PAIR
    everything = (row.first, *row.alike)
    for at, difference in enumerate(everything):
        hidden = more or (at > 0 and not pair and at >= FEW)
        yield Detail(subject, _line(difference, fleet), more=hidden, table=True)
    left = len(everything) - FEW
    if not pair and left > 0 and not more:
        yield Detail(subject, f"  and {count(left, 'more fact')} in the same way")


def _line(difference: Difference, fleet: Fleet) -> str:
    fact = one_line(difference.fact, 60)
    if len(fleet.names) == PAIR:
        values = [*([difference.norm] if difference.norm else []), *difference.values]
        before = next((v.text for v in values if 0 in v.machines), "?")
        after = next((v.text for v in values if 1 in v.machines), "?")
        return f"{fact:<{WIDE}}  {one_line(before, 60)} -> {one_line(after, 60)}"
    said = [_most(difference.norm, fleet)] if difference.norm else []
    said += [
        f"{one_line(value.text, 50)}: {_who(value.machines, fleet)}"
        for value in difference.values[:FEW]
    ]
    left = len(difference.values) - FEW
    said += [f"{left} more values"] if left > 0 else []
    said += [f"{difference.rare:,} machines with rare values"] if difference.rare else []
    return f"{fact:<{WIDE}}  {'; '.join(said)}"


def _most(norm: Value, fleet: Fleet) -> str:
    share = f"{len(norm.machines):,} of {len(fleet.names):,}"
    return f"{one_line(norm.text, 50)} ({share})"


def _remarks(fleet: Fleet) -> Iterator[str]:
    yield from (one_line(why, LONGEST) for _, why in fleet.unread)
    if (left := fleet.unread_count - len(fleet.unread)) > 0:
        yield f"{left:,} more could not be read."
    if fleet.tally.left_out:
        yield f"{fleet.tally.left_out:,} rows were left out: there are too many different facts."


# ---- for programs ----------------------------------------------------------------------------


def _data(
    fleet: Fleet,
    differences: Iterable[Difference],
    noise: Iterable[Difference],
    groups: Iterable[Group],
) -> dict[str, object]:
    data: dict[str, object] = {
        "schema": SCHEMA,
        "machines": len(fleet.names),
        "facts": fleet.tally.facts,
        "not_read": [{"name": name, "why": why} for name, why in fleet.unread],
        "not_read_count": fleet.unread_count,
        "differences": [_difference(d, fleet) for d in differences],
        "noise": [{"fact": d.fact, "why": d.noise} for d in noise],
        "outliers": [
            {"machine": fleet.names[number], "facts": facts}
            for number, facts in fleet.strangers(fleet.tally.differences(), NAMED)
        ],
    }
    if fleet.judged:
        data["clusters"] = triage.data(groups)
        if len(fleet.names) == PAIR:
            words = zip(("new", "gone", "in_both"), of_second(fleet), strict=True)
            data["findings"] = {word: [f.finding.name for f in group] for word, group in words}
    return data


def _difference(difference: Difference, fleet: Fleet) -> dict[str, object]:
    return {
        "fact": difference.fact,
        "subject": difference.subject,
        "norm": _value(difference.norm, fleet) if difference.norm else None,
        "others": [_value(value, fleet) for value in difference.values[:MOST_VALUES]],
        "more_values": max(0, len(difference.values) - MOST_VALUES),
        "rare": difference.rare,
    }


def _value(value: Value, fleet: Fleet) -> dict[str, object]:
    return {
        "value": value.text,
        "count": len(value.machines),
        "machines": _named(value.machines, fleet),
    }


def _named(machines: Sequence[int], fleet: Fleet) -> list[str]:
    return [fleet.names[number] for number in machines[:NAMED]]
