"""Print the table of scenes after the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests import environments
from tests.scenarios import trial

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

ROWS = pytest.StashKey[dict[str, trial.Row]]()


@pytest.fixture
def rows(pytestconfig: pytest.Config) -> dict[str, trial.Row]:
    """Return what came of each scene so far in this session."""
    return pytestconfig.stash.setdefault(ROWS, {})


@pytest.fixture(scope="session", autouse=True)
def _no_copies_left() -> Iterator[None]:
    yield
    environments.drop_copies()


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Write the table under the results."""
    if rows := config.stash.get(ROWS, {}):
        terminalreporter.section("scenes")
        terminalreporter.write_line(trial.table(rows.values()))
