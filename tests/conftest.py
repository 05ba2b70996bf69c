"""How a test puts facts before a check."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

import pytest

from torchdoctor import plan
from torchdoctor.facts import Facts
from torchdoctor.model import Finding, Outcome, Plan
from torchdoctor.registry import Check, all_checks, load
from torchdoctor.run import run


def pytest_xdist_auto_num_workers() -> int:
    """Return one more than there are cores: many tests wait for a deadline that is promised."""
    return (os.cpu_count() or 1) + 1


def pytest_configure() -> None:
    """Take interrupts: what was started in the background ignores them, and so do its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


Judge = Callable[..., Outcome]
Planner = Callable[..., Plan]


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Check:
    """Return the check that this test file is named for."""
    return load(request.path.stem.removeprefix("test_"))


@pytest.fixture
def judge(check: Check) -> Judge:
    """Run that check on facts made in the test."""

    def one(**known: object) -> Outcome:
        facts = Facts(**known)  # type: ignore[arg-type]
        before = repr(facts)
        (outcome,) = run({check.name: check}, facts)
        assert repr(facts) == before, "a check only reads"
        return outcome

    return one


@pytest.fixture
def cure(check: Check) -> Planner:
    """Plan with that check alone on facts made in the test."""

    def make(**known: object) -> Plan:
        facts = Facts(**known)  # type: ignore[arg-type]
        checks = {check.name: check}
        outcomes = run(checks, facts)
        made = plan.make(checks, facts, outcomes)
        crashed = [o.reason for o in (*outcomes, *made.outcomes) if o.status == "crashed"]
        assert crashed == []
        return made

    return make


@pytest.fixture(scope="session")
def checks() -> dict[str, Check]:
    """Return every check by its name."""
    return all_checks()


def names(findings: Sequence[Finding]) -> list[str]:
    """Return the names of *findings*."""
    return [finding.name for finding in findings]
