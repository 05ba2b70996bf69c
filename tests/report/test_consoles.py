"""A report on consoles of other code pages: whole, readable, in what the code page has."""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor import cli

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"
CASES = ("001-win1114-redist-1436", "048-numpy2-torch-222-cpu")
HAS_CHINESE = {"utf-8": True, "gbk": True, "gb18030": True}
CODE_PAGES = ("utf-8", "gbk", "gb18030", "cp1252", "cp437", "ascii")
CHINESE = re.compile("[\u4e00-\u9fff]")
ESCAPE = re.compile(r"\\u[0-9a-f]{4}|&#\d+;|\ufffd")
BOXES = re.compile("[\u2500-\u259f]")


def shown(code_page: str, *words: str) -> tuple[str, str]:
    """Return what a stream of *code_page* gets of ``torchdoctor *words*``, and standard error."""
    raw, told = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding=code_page, errors="strict", newline="\n")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(told):
        code = cli.main(words)
    assert code in (0, 1), told.getvalue()
    out.flush()
    return raw.getvalue().decode(code_page), told.getvalue()


def given(case: str) -> str:
    return str(next((CORPUS / case).glob("input*")))


@pytest.mark.parametrize("code_page", CODE_PAGES)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_report_is_readable_on_every_code_page(code_page: str, language: str) -> None:
    for case in CASES:
        for form in ("text", "markdown"):
            text, told = shown(
                code_page, "check", given(case), "--lang", language, "--format", form
            )
            assert not ESCAPE.search(text)
            assert not BOXES.search(text)
            fits = HAS_CHINESE.get(code_page, False)
            assert bool(CHINESE.search(text)) is (language == "zh" and fits)
            # Who has asked for what cannot be shown is told so, in one line.
            assert told.count("\n") == (language == "zh" and not fits)
            assert told.isascii()


def test_the_marks_are_those_that_the_code_page_has() -> None:
    marks = {page: shown(page, "check", given(CASES[0]))[0] for page in CODE_PAGES}
    assert {page for page, text in marks.items() if "✗ vcredist-too-old" in text} == {
        "utf-8",
        "gb18030",
    }
    assert all("x vcredist-too-old" in marks[page] for page in ("gbk", "cp1252", "cp437", "ascii"))
    assert "error · certain" in marks["cp1252"]
    assert "error - certain" in marks["ascii"]


@pytest.mark.parametrize("code_page", ["gbk", "cp1252", "ascii"])
def test_a_page_says_the_same_in_whatever_way_a_shell_writes_it(code_page: str) -> None:
    words = ("check", given(CASES[0]), "--lang", "zh", "--format", "html")
    whole, told = shown("utf-8", *words)
    other, also_told = shown(code_page, *words)
    assert other.isascii()
    assert CHINESE.search(whole)
    assert html.unescape(other) == html.unescape(whole)
    assert told == also_told == ""


def test_compare_lists_and_explains_on_a_narrow_code_page() -> None:
    both = [given(case) for case in CASES]
    for words in (("compare", *both, *both[:1]), ("explain", "numpy2-abi"), ("list",)):
        for code_page in ("gbk", "cp1252", "ascii"):
            text, _ = shown(code_page, *words)
            assert not ESCAPE.search(text), words


@pytest.mark.parametrize("code_page", ["gbk", "cp1252"])
def test_a_process_of_another_code_page_says_the_same(code_page: str) -> None:
    words = ["check", given(CASES[0]), "--lang", "zh"]
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": f"{code_page}:strict", "COLUMNS": "80"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    text, _ = shown(code_page, *words)
    said = done.stdout.decode(code_page).replace("\r\n", "\n")
    assert sorted(said.split()) == sorted(text.split())
