"""Checks are run in order, and one that fails hides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import cast

from torchdoctor.facts import Facts, Platform, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Outcome, Severity
from torchdoctor.registry import Check
from torchdoctor.run import in_order, run


def check(
    name: str,
    look: Callable[..., Iterator[Finding]],
    *,
    reads: tuple[str, ...] = (),
    bears: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
) -> Check:
    return Check(name, "test", "", reads, frozenset(bears), after, (name,), look)


def finds(name: str, severity: str = "error") -> Callable[..., Iterator[Finding]]:
    def look(**_: object) -> Iterator[Finding]:
        yield Finding(name, cast("Severity", severity), "it is so", ())

    return look


def nothing(**_: object) -> Iterator[Finding]:
    return iter(())


def outcomes(*checks: Check, facts: Facts | None = None) -> dict[str, Outcome]:
    by_name = {c.name: c for c in checks}
    return {o.check: o for o in run(by_name, facts or Facts())}


def test_what_is_found_is_found_and_what_is_not_is_clear() -> None:
    result = outcomes(check("a", finds("a")), check("b", nothing))
    assert result["a"].status == "found"
    assert result["a"].findings[0].family == "test"
    assert result["b"].status == "clear"


def test_a_missing_fact_makes_it_unknown_with_the_reason() -> None:
    facts = Facts(platform=Unknown("the probe was killed"))
    result = outcomes(check("a", finds("a"), reads=("platform",)), facts=facts)
    assert (result["a"].status, result["a"].findings) == ("unknown", ())
    assert "the probe was killed" in result["a"].reason


def test_a_check_that_bears_unknown_facts_is_given_them() -> None:
    seen: list[object] = []

    def look(platform: object) -> Iterator[Finding]:
        seen.append(platform)
        return iter(())

    outcomes(check("a", look, reads=("platform",), bears=("platform",)))
    assert isinstance(seen[0], Unknown)


def test_facts_is_all_of_them() -> None:
    seen: list[object] = []

    def look(facts: Facts) -> Iterator[Finding]:
        seen.append(facts)
        return iter(())

    given = Facts(platform=Platform("linux", "x86_64"))
    outcomes(check("a", look, reads=("facts",)), facts=given)
    assert seen == [given]


def test_a_crash_is_an_outcome_and_the_others_still_run() -> None:
    def look(**_: object) -> Iterator[Finding]:
        raise ZeroDivisionError("boom")

    result = outcomes(check("a", look), check("b", finds("b")))
    assert result["a"].status == "crashed"
    assert "boom" in result["a"].reason
    assert result["b"].status == "found"


def test_cannot_tell_is_unknown_and_keeps_what_was_found_before() -> None:
    def half(**_: object) -> Iterator[Finding]:
        yield Finding("a", "warning", "this much is so", ())
        raise CannotTell("the rest is newer than the tables")

    def none(**given: object) -> Iterator[Finding]:
        if not given:
            raise CannotTell("newer than the tables")
        yield Finding("b", "error", "never", ())

    result = outcomes(check("a", half), check("b", none))
    assert result["a"].status == "found"
    assert len(result["a"].findings) == 1
    assert "newer" in result["a"].reason
    assert result["b"].status == "unknown"


def test_a_check_waits_for_an_error_before_it_and_not_for_a_warning() -> None:
    for severity, status in (("error", "moot"), ("warning", "found"), ("note", "found")):
        result = outcomes(check("b", finds("b"), after=("a",)), check("a", finds("a", severity)))
        assert result["b"].status == status, severity
    assert "a" in outcomes(check("b", finds("b"), after=("a",)), check("a", finds("a")))["b"].reason


def test_a_check_does_not_wait_for_one_that_was_left_out() -> None:
    assert outcomes(check("b", finds("b"), after=("a",)))["b"].status == "found"


def test_the_order_is_that_of_after() -> None:
    checks = {c.name: c for c in (check("a", nothing, after=("b",)), check("b", nothing))}
    assert in_order(checks) == ("b", "a")


def test_a_message_is_not_unexplained_where_another_finding_stands_on_it() -> None:
    error = Evidence("symptoms", "RuntimeError: it fails", "train.log")
    other = Evidence("symptoms", "ValueError: so does this", "train.log")

    def explains(**_: object) -> Iterator[Finding]:
        yield Finding("cause", "error", "it is so", (error,))

    def echo(**_: object) -> Iterator[Finding]:
        for said in (error, other):
            yield Finding("message-unexplained", "note", "no check knows it", (said,))

    result = outcomes(check("a", explains), replace(check("b", echo), echoes=True))
    assert [finding.evidence for finding in result["b"].findings] == [(other,)]
