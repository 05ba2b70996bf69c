"""The line on a terminal that says how far something is."""

from __future__ import annotations

import io

import pytest

from torchdoctor.commands import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_and_left_as_it_was() -> None:
    terminal = Terminal()
    with progress.shown("Comparing files", terminal) as tell:
        tell([500_000_000, 2_000_000_000])
        tell([2_000_000_000, 2_000_000_000])
    first, second, blank, rest = terminal.getvalue().split("\r")[1:]
    assert "#######  " in first
    assert first.endswith("25 % of 2.0 GB")
    assert second.endswith("100 % of 2.0 GB")
    assert (blank.strip(), rest) == ("", "")
    assert len(blank) == len(second)


def test_a_log_and_a_terminal_that_was_told_nothing_hold_nothing() -> None:
    log, terminal = io.StringIO(), Terminal()
    with progress.shown("Comparing files", log) as tell:
        tell([1, 2])
    with progress.shown("Comparing files", terminal):
        pass
    assert log.getvalue() == terminal.getvalue() == ""


def test_a_place_is_named() -> None:
    assert progress.line("looking at", {"at": "2 of 3"}) == "looking at 2 of 3"


@pytest.mark.parametrize(
    "far", [None, {}, {"at": 2}, "half", [], [1], [2, 1], [0, 0], [-1, 5], ["1", "2"]]
)
def test_what_is_no_progress_is_not_shown(far: object) -> None:
    assert progress.line("Comparing files", far) == ""
