"""A child that misbehaves is an answer, in time, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from torchdoctor import child
from torchdoctor.child import Run

DONE = 'print(\'{"done": true, "answer": 42}\', flush=True)\n'


def probe(source: str, folder: Path, timeout: float = 20.0) -> Run:
    return child.run_probe(
        source,
        {"given": "x"},
        python=(sys.executable,),
        timeout=timeout,
        folder=str(folder),
        environ=dict(os.environ),
    )


def alive(marker: str) -> list[str]:
    """Return the processes whose command line holds *marker*."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker in line and state != "Z":
                found.append(line)
    return found


def test_an_answer_is_merged_line_by_line(tmp_path: Path) -> None:
    run = probe('print(\'{"a": 1, "b": 1}\')\nprint(\'{"b": 2}\')\n' + DONE, tmp_path)
    assert run.outcome == "answered"
    assert run.data == {"a": 1, "b": 2, "done": True, "answer": 42}
    assert run.exit_code == 0


def test_options_arrive_and_the_folder_is_neutral(tmp_path: Path) -> None:
    source = "import json, os, sys\nprint(json.dumps({'o': sys.argv[1], 'cwd': os.getcwd()}))\n"
    run = probe(source + DONE, tmp_path)
    assert run.data["o"] == '{"given": "x"}'
    assert run.data["cwd"] == str(tmp_path)


def test_what_is_no_answer_is_kept_as_text(tmp_path: Path) -> None:
    run = probe("print('hello')\nprint('{broken')\n" + DONE, tmp_path)
    assert run.stdout.text == "hello\n{broken\n"
    assert run.outcome == "answered"


def test_no_answer_is_a_failure_even_with_exit_code_0(tmp_path: Path) -> None:
    run = probe("print('hello')", tmp_path)
    assert (run.outcome, run.exit_code) == ("failed", 0)


@pytest.mark.parametrize(
    ("source", "signal"),
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    ],
)
def test_a_signal_is_named(source: str, signal: str, tmp_path: Path) -> None:
    run = probe(source, tmp_path)
    assert (run.outcome, run.signal, run.exit_code) == ("failed", signal, None)


def test_a_child_that_never_ends_is_ended_at_its_deadline(tmp_path: Path) -> None:
    start = time.monotonic()
    run = probe(
        'print(\'{"stage": "slow"}\', flush=True)\nimport time; time.sleep(600)', tmp_path, 1
    )
    assert time.monotonic() - start < 1 + 2  # the promise: the deadline and two seconds
    assert run.outcome == "timeout"
    assert run.data == {"stage": "slow"}
    assert "1 s" in run.reason


def test_a_child_that_ignores_sigterm_is_ended_all_the_same(tmp_path: Path) -> None:
    source = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    assert probe(source, tmp_path, 1).outcome == "timeout"


@pytest.mark.parametrize("leave_the_group", ["", "os.setsid()\n    "])
def test_nothing_that_a_child_started_is_left(leave_the_group: str, tmp_path: Path) -> None:
    marker = f"left-{tmp_path.name}-{len(leave_the_group)}"
    source = (
        "import os, sys\n"
        "if os.fork() == 0:\n"
        f"    {leave_the_group}os.execv(sys.executable, [sys.executable, '-c', "
        f"'import time; time.sleep(600)', {marker!r}])\n" + DONE
    )
    start = time.monotonic()
    run = probe(source, tmp_path)
    assert run.outcome == "answered"
    assert time.monotonic() - start < 20  # it did not wait for the one that holds the pipe
    until = time.monotonic() + 5
    while alive(marker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(marker)


def test_a_crash_is_seen_at_once_though_a_grandchild_holds_the_pipe(tmp_path: Path) -> None:
    source = "import ctypes, os, time\nif os.fork() == 0: time.sleep(600)\nctypes.string_at(0)"
    run = probe(source, tmp_path, 30)
    assert (run.outcome, run.signal) == ("failed", "SIGSEGV")
    assert run.seconds < 30  # less than the deadline


def test_a_flood_is_kept_at_its_two_ends(tmp_path: Path) -> None:
    source = (
        "import sys\nsys.stderr.write('first')\n"
        "for _ in range(50): sys.stderr.write('x' * (1 << 20))\n"
        "sys.stderr.write('last')\n" + DONE
    )
    run = probe(source, tmp_path, 60)
    assert run.outcome == "answered"
    assert run.stderr.length == 50 * (1 << 20) + 9
    assert run.stderr.text.startswith("first")
    assert run.stderr.text.endswith("last")
    assert len(run.stderr.text) < 3 * child.KEPT
    assert "bytes left out" in run.stderr.text


def test_closed_streams_are_no_hang(tmp_path: Path) -> None:
    run = probe("import os\nos.close(1)\nos.close(2)\n", tmp_path, 30)
    assert (run.outcome, run.exit_code) == ("failed", 0)


def test_a_child_that_lingers_after_its_answer_has_answered(tmp_path: Path) -> None:
    run = probe(DONE + "import time; time.sleep(600)", tmp_path, 60)
    assert run.outcome == "answered"
    assert run.seconds < 60  # less than the deadline


def test_a_line_without_end_is_no_answer(tmp_path: Path) -> None:
    source = "import sys\nfor _ in range(40): sys.stdout.write('{' * (1 << 20))\nprint()\n" + DONE
    run = probe(source, tmp_path, 60)
    assert run.data["done"] is True


def test_bytes_that_are_no_text_are_shown_as_escapes(tmp_path: Path) -> None:
    run = probe("import os\nos.write(2, b'\\xff\\xfe')\n" + DONE, tmp_path)
    assert run.stderr.text == "\\xff\\xfe"


def test_a_program_that_is_none_is_not_started(tmp_path: Path) -> None:
    run = child.run(["/nonexistent/x"], timeout=5, folder=str(tmp_path), environ={})
    assert run.outcome == "not-started"
    assert "/nonexistent/x" in run.reason


def test_a_plain_command_answers_by_its_exit_code(tmp_path: Path) -> None:
    environ = dict(os.environ)
    good = child.run(
        [sys.executable, "-c", "print(1)"], timeout=20, folder=str(tmp_path), environ=environ
    )
    bad = child.run(
        [sys.executable, "-c", "raise SystemExit(9)"],
        timeout=20,
        folder=str(tmp_path),
        environ=environ,
    )
    assert (good.outcome, good.stdout.text) == ("answered", "1\n")
    assert (bad.outcome, bad.exit_code) == ("failed", 9)
