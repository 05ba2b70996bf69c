"""The line on a terminal that says how far something is."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

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


def test_who_waits_for_more_than_a_moment_is_told_for_how_long() -> None:
    terminal, log = Terminal(), io.StringIO()
    for stream, soon in ((terminal, 0.01), (log, 0.01)):
        with progress.waiting("Looking", stream, soon=soon):
            time.sleep(0.1)
    said, blank, rest = terminal.getvalue().split("\r")[1:]
    assert said == "Looking (0 s)"
    assert (blank.strip(), rest, log.getvalue()) == ("", "", "")


def test_what_is_done_at_once_is_not_told() -> None:
    terminal = Terminal()
    with progress.waiting("Looking", terminal, soon=60):
        pass
    assert list(progress.counted("abc", "Read so far:", terminal)) == ["a", "b", "c"]
    assert terminal.getvalue() == ""


def test_an_error_takes_the_line_away_too() -> None:
    terminal = Terminal()

    def fail() -> None:
        with progress.waiting("Looking", terminal, soon=0.01):
            time.sleep(0.05)
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    assert terminal.getvalue().endswith("\r")


def test_what_comes_one_after_the_other_is_counted() -> None:
    terminal = Terminal()
    assert list(progress.counted("ab", "Read so far:", terminal, soon=0)) == ["a", "b"]
    assert terminal.getvalue().split("\r")[1] == "Read so far: 0"


@pytest.mark.slow
@pytest.mark.parametrize("more", [pytest.param((), marks=pytest.mark.sample), ("--quiet",)])
def test_a_look_that_takes_long_says_so_on_a_terminal_unless_it_is_to_be_quiet(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 1.6\nexec "{sys.executable}" "$@"\n', "utf-8")
    slow.chmod(0o755)
    ours, theirs = pty.openpty()
    words = ["check", "--no-import", "--format", "json", "--python", str(slow), *more]
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", *words],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        said = os.read(ours, 4096).decode()
    except OSError:  # nothing was said
        said = ""
    os.close(ours)
    assert done.stdout.startswith(b"{")
    assert bool(re.search(r"Looking at this machine \(\d s\)", said)) is not bool(more)
