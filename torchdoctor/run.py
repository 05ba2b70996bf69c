"""Put facts before checks, each after those it leans on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import TopologicalSorter

from torchdoctor.facts import Facts, Unknown
from torchdoctor.model import CannotTell, Finding, Outcome
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
        if check.after and (first := next(filter(in_the_way.__contains__, check.after), None)):
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

    def outcome(status: str, findings: tuple[Finding, ...] = (), reason: str = "") -> Outcome:
        spent = time.perf_counter() - start
        return Outcome(check.name, status, findings, reason, spent)  # type: ignore[arg-type]

    given: dict[str, object] = {}
    lacking: list[str] = []
    for name in check.reads:
        value = (whole or facts) if name == "facts" else getattr(facts, name)
        if isinstance(value, Unknown) and name not in check.bears_unknown:
            lacking.append(f"{name}: {value.reason}")
        given[name] = value
    if lacking:
        return outcome("unknown", reason="; ".join(lacking))
    found: list[Finding] = []
    try:
        found.extend(f.of(check.family) for f in check.run(**given))
    except CannotTell as answer:
        return outcome("found" if found else "unknown", tuple(found), str(answer))
    except Exception:  # noqa: BLE001 - a broken check must not hide the other answers
        import traceback  # noqa: PLC0415 - for a crash only

        return outcome("crashed", tuple(found), traceback.format_exc())
    return outcome("found" if found else "clear", tuple(found))


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
