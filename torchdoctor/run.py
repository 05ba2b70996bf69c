"""Put facts before checks, each after those it leans on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from torchdoctor.facts import Facts, Unknown
from torchdoctor.model import CannotTell, Finding, Outcome, Status
from torchdoctor.registry import Check


def run(
    checks: Mapping[str, Check],
    facts: Facts,
    *,
    order: Sequence[str] | None = None,
    look: Callable[[Check, Facts], Outcome] | None = None,
    known: Mapping[str, Outcome] | None = None,
) -> tuple[Outcome, ...]:
    """Run every check on *facts* and return one outcome for each, in the order they ran.

    *order* is that of :func:`in_order`, where it is known; *look* stands in for :func:`looked`,
    and is not asked for what is *known* of a check.
    """
    known = known or {}
    outcomes: dict[str, Outcome] = {}
    in_the_way: set[str] = set()
    for name in order or in_order(checks):
        check = checks[name]
        if check.after and not in_the_way.isdisjoint(check.after):
            first = next(filter(in_the_way.__contains__, check.after))
            outcome = Outcome(name, "moot", reason=f"waits for {first}")
        else:
            outcome = known.get(name) or (look or looked)(check, facts)
        if outcome.findings:
            if check.echoes:
                outcome = _news(outcome, outcomes.values())
            if any(finding.severity == "error" for finding in outcome.findings):
                in_the_way.add(name)
        outcomes[name] = outcome
    return tuple(outcomes.values())


def in_order(checks: Mapping[str, Check]) -> tuple[str, ...]:
    """Return the names of *checks*, each after those that it names in AFTER; echoes come last."""
    graph = {name: [a for a in check.after if a in checks] for name, check in checks.items()}
    for name in (n for n, check in checks.items() if check.echoes):
        graph[name] = [other for other, check in checks.items() if not check.echoes]
    return tuple(TopologicalSorter(graph).static_order())


def looked(check: Check, facts: Facts, whole: Facts | None = None) -> Outcome:
    """Return what *check* alone says of *facts*; never raises.

    *whole* stands in for *facts* where the check asks for all of them.
    """
    start = time.perf_counter()
    whole = whole or facts
    given: dict[str, object] = {}
    lacking: list[str] = []
    for name in check.reads:
        given[name] = value = whole if name == "facts" else getattr(facts, name)
        if isinstance(value, Unknown) and name not in check.bears_unknown:
            lacking.append(f"{name}: {value.reason}")
    found: list[Finding] = []
    status: Status = "unknown" if lacking else "clear"
    reason = "; ".join(lacking)
    if not lacking:
        try:
            for finding in check.run(**given):  # what it found before it fails, counts
                found.append(finding.of(check.family))  # noqa: PERF401 - as above
        except CannotTell as answer:
            status, reason = "unknown", str(answer)
        except Exception:  # noqa: BLE001 - a broken check must not hide the other answers
            import traceback  # noqa: PLC0415 - for a crash only

            status, reason = "crashed", traceback.format_exc()
    if found and status != "crashed":
        status = "found"
    return Outcome(check.name, status, tuple(found), reason, time.perf_counter() - start)


def _news(outcome: Outcome, before: Iterable[Outcome]) -> Outcome:
    """Return *outcome* without findings of a name that one *before* has.

    Nor is a message said to be unexplained that another finding stands on.
    """
    found = [finding for other in before for finding in other.findings]
    known = {finding.name for finding in found}
    used = {item for finding in found for item in finding.evidence if item.fact == "symptoms"}
    kept = tuple(
        finding
        for finding in outcome.findings
        if finding.name not in known and not used.intersection(finding.evidence)
    )
    status = outcome.status if kept or outcome.status != "found" else "clear"
    return replace(outcome, status=status, findings=kept)
