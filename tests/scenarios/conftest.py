"""Print the table of scenes after the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests import environments
from tests.scenarios import trial
from tests.scenarios.catalogue import SCENARIOS

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

ROWS: list[trial.Row] = []
"""What came of each scene, in the order in which they ended, from all processes of the tests."""


@pytest.fixture(scope="session", autouse=True)
def _no_copies_left() -> Iterator[None]:
    yield
    environments.drop_copies()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Take the row of a scene from what its test reports; no process but the first shows it."""
    if report.when == "call":
        properties = report.user_properties
        ROWS.extend(trial.Row(**row) for name, row in properties if name == "scene")  # type: ignore[arg-type]


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Write the table under the results."""
    if ROWS:
        terminalreporter.section("scenes")
        places = list(SCENARIOS)
        rows = sorted(ROWS, key=lambda row: places.index(row.key))
        terminalreporter.write_line(trial.table(rows))
