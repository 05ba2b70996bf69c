from __future__ import annotations

import errno
import io
import os
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.report.printing import Terminal, encodable, terminal, write

ENCODINGS = ["ascii", "cp1252", "gbk", "utf-8", "cp437", "shift_jis", "no-such-code"]


class Console(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class Full(io.StringIO):
    """A file on a disk that has no space left."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "no space left", text[:1])


def stream(encoding: str, kind: type[io.TextIOWrapper] = io.TextIOWrapper) -> io.TextIOWrapper:
    return kind(io.BytesIO(), encoding=encoding, newline="\n")


def written(text: str, encoding: str) -> str:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    write(text, out)
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "✗ a · 路径 …"),
        ("gbk", "x a · 路径 …"),
        ("cp1252", "x a · \\u8def\\u5f84 …"),
        ("ascii", "x a - \\u8def\\u5f84 ..."),
    ],
)
def test_each_character_falls_back_on_its_own(encoding: str, shown: str) -> None:
    assert written("✗ a · 路径 …", encoding) == f"{shown}\n"


def test_a_lone_surrogate_is_printed_as_an_escape() -> None:
    assert written("a\udc80", "utf-8") == "a\\udc80\n"


@given(st.text(st.characters()), st.sampled_from(ENCODINGS))
def test_nothing_fails_to_be_written(text: str, encoding: str) -> None:
    shown = encodable(text, encoding)
    shown.encode("ascii" if encoding == "no-such-code" else encoding)
    assert encodable(text, "ascii").isascii()


def test_a_missing_stream_gets_nothing() -> None:
    write("x", None)


def test_a_stream_without_an_encoding_takes_everything() -> None:
    out = io.StringIO()
    write("✗\n", out)
    assert out.getvalue() == "✗\n"


def test_a_reader_that_has_gone_is_no_error() -> None:
    code = (
        "import sys; from torchdoctor.report.printing import write; "
        "write('x\\n' * 10**6, sys.stdout)"
    )
    reading, writing = os.pipe()
    os.close(reading)
    answer = subprocess.run(
        [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_a_full_disk_is_an_error() -> None:
    with pytest.raises(OSError, match="no space"):
        write("x", Full())


def test_a_pipe_is_eighty_columns_without_colour() -> None:
    assert terminal(stream("utf-8"), {}) == Terminal(80, colour=False, unicode=True)


def test_a_real_terminal_tells_its_width() -> None:
    _, end = pytest.importorskip("pty", reason="needs a pseudo terminal").openpty()
    code = (
        "import os, sys; from torchdoctor.report.printing import terminal; "
        "print(terminal(sys.stdout, {'TERM': 'xterm'}), file=sys.stderr)"
    )
    resize = pytest.importorskip("termios").TIOCSWINSZ
    pytest.importorskip("fcntl").ioctl(end, resize, struct.pack("HHHH", 24, 97, 0, 0))
    answer = subprocess.run(
        [sys.executable, "-c", code], stdout=end, stderr=subprocess.PIPE, check=True, text=True
    )
    assert answer.stderr == "Terminal(width=97, colour=True, unicode=True, encoding='utf-8')\n"


@pytest.mark.parametrize(
    ("asked", "width"),
    [("60", 60), ("5", 40), ("9999", 120), ("9" * 5000, 120), ("0", 80), ("-3", 80), ("x", 80)],
)
def test_a_width_that_is_asked_for_is_bounded(asked: str, width: int) -> None:
    assert terminal(stream("utf-8"), {"COLUMNS": asked}).width == width


@pytest.mark.parametrize(
    ("environ", "colour"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_on_a_terminal(environ: dict[str, str], *, colour: bool) -> None:
    assert terminal(stream("utf-8", Console), environ, windows=False).colour is colour


def test_colour_in_a_pipe_has_to_be_forced() -> None:
    assert not terminal(stream("utf-8"), {"TERM": "xterm"}).colour
    assert terminal(stream("utf-8"), {"FORCE_COLOR": "1"}).colour
    assert not terminal(stream("utf-8"), {"FORCE_COLOR": "0"}).colour


def test_a_windows_console_has_to_be_known_to_understand_colour() -> None:
    console = stream("utf-8", Console)
    assert not terminal(console, {}, windows=True).colour
    assert terminal(console, {"WT_SESSION": "x"}, windows=True).colour


@pytest.mark.parametrize(
    ("encoding", "unicode"), [("utf-8", True), ("gbk", True), ("cp1252", True), ("ascii", False)]
)
def test_only_an_ascii_stream_is_kept_to_ascii(encoding: str, *, unicode: bool) -> None:
    assert terminal(stream(encoding), {}).unicode is unicode


def test_a_closed_stream_is_no_terminal() -> None:
    out = stream("utf-8")
    out.close()
    assert terminal(out, {}) == Terminal(80, colour=False, unicode=True)
    assert terminal(None, {}) == Terminal(80, colour=False, unicode=True)
