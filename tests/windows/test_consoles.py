"""Windows' own CPython says a report in the code page of its Windows, and on its console."""

from __future__ import annotations

import contextlib
import os
import re
import select
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.windows.test_wine import CHECKOUT, OWN
from tests.windows.wine import box, cases

pty = pytest.importorskip("pty", reason="needs a pseudo terminal")
pytestmark = [pytest.mark.wine, pytest.mark.xdist_group("wine")]

CASE = next((CHECKOUT / "tests" / "corpus" / "001-win1114-redist-1436").glob("input*"))
CHINESE = re.compile("[\u4e00-\u9fff]")
ESCAPE = re.compile(r"\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\ufffd")
TO_FILES = """
import subprocess, sys
folder, case = sys.argv[1:]
for language, form in (("en", "text"), ("zh", "text"), ("zh", "html")):
    with open(f"{folder}/{language}.{form}", "wb") as out:
        subprocess.run(
            [sys.executable, "-m", "torchdoctor", "check", case, "--lang", language,
             "--format", form], stdout=out, stdin=subprocess.DEVNULL)
with open(f"{folder}/encoding", "wb") as out:
    code = "import sys; print(sys.stdout.encoding)"
    subprocess.run([sys.executable, "-c", code], stdout=out, stdin=subprocess.DEVNULL)
"""
"""Run in Windows: what is redirected is written in the code page of the system."""
CODE_PAGES = {
    "gbk": {"LC_ALL": "zh_CN.UTF-8"},
    "cp1252": {"LC_ALL": "C"},
    "utf-8": {"LC_ALL": "C", "PYTHONUTF8": "1"},
}
"""What makes Wine a Windows of that code page."""
LIMIT = 240.0


@pytest.fixture(scope="module")
def wine() -> Iterator[box.Box]:
    """Start Wine in a prefix of its own; skip where it is not to be had."""
    try:
        box.libraries(*OWN)
        with box.started() as running:
            yield running
    except box.Unavailable as reason:
        pytest.skip(str(reason))


def home(folder: Path) -> Path:
    """Return a folder with a Windows CPython."""
    place = folder / "home"
    place.mkdir()
    cases.link_python(place)
    return place


def path() -> str:
    return ";".join(map(box.windows_path, (CHECKOUT, box.libraries(*OWN))))


@pytest.mark.parametrize("code_page", ["gbk", "cp1252", "utf-8"])
def test_what_is_redirected_is_readable_in_the_code_page_of_the_system(
    code_page: str, wine: box.Box, tmp_path: Path
) -> None:
    done = wine.execute(
        home(tmp_path),
        *("-c", TO_FILES, box.windows_path(tmp_path), box.windows_path(CASE)),
        timeout=LIMIT,
        PYTHONPATH=path(),
        **CODE_PAGES[code_page],
    )
    assert done.outcome == "answered", done
    assert (tmp_path / "encoding").read_text("ascii").strip() == code_page
    read = {p.name: p.read_bytes().decode(code_page) for p in tmp_path.glob("??.*")}
    assert len(read) == 3
    assert not any(ESCAPE.search(text.replace(r"\user\venv", "")) for text in read.values())
    assert bool(CHINESE.search(read["zh.text"])) is (code_page != "cp1252")
    assert not CHINESE.search(read["en.text"])
    assert "vcredist-too-old" in read["zh.text"]
    if code_page != "utf-8":
        assert read["zh.html"].isascii()


@pytest.mark.parametrize("code_page", ["936", "1252", "65001"])
def test_a_console_shows_chinese_whatever_its_code_page(
    code_page: str, wine: box.Box, tmp_path: Path
) -> None:
    python = str(home(tmp_path) / "python.exe").replace("/", "\\")
    words = f"-m torchdoctor check {box.windows_path(CASE)} --lang zh"
    environ = wine.environ(PYTHONPATH=path(), TERM="xterm", LC_ALL="C.UTF-8")
    command = [wine.wine, "cmd", "/c", f"chcp {code_page} & Z:{python} {words}"]
    text = on_console(command, environ, tmp_path)
    assert f"Active code page: {code_page}" in text
    assert "Visual C++ 运行时是 14.36" in text
    assert "✗ vcredist-too-old" in text
    assert not ESCAPE.search(text.replace(r"\user\venv", ""))


def on_console(command: list[str], environ: dict[str, str], folder: Path) -> str:
    """Return what *command* shows on a terminal, without what moves its cursor."""
    child, ours = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is wanted
    raw, end = b"", time.monotonic() + LIMIT
    with contextlib.suppress(OSError):  # how Linux says that it was closed
        while time.monotonic() < end:
            if select.select([ours], [], [], 1)[0]:
                raw += os.read(ours, 65536)
    os.close(ours)
    os.waitpid(child, 0)
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", raw.decode("utf-8"))
