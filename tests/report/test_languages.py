"""A report in Chinese: every sentence the code has is translated, and names and values stay."""

# ruff: noqa: RUF001 - the punctuation of Chinese is meant

from __future__ import annotations

import io
import json
import re
import string
import subprocess
import sys
from pathlib import Path

import pytest

from tests import plan_worlds
from tests.report import catalogue, templates
from tests.scenarios.doctor import START
from torchdoctor import cli, locale, plan
from torchdoctor.run import run

KNOWN = catalogue.known()
WANTED = catalogue.wanted()
SAY = locale.speaker(locale.CHINESE).say
CHINESE = re.compile("[\u4e00-\u9fff]")
PROSE = re.compile(r"\b(?:the|is|are|was|which|this|that|with|from|not|and)\b")
ROOT = Path(__file__).parents[2]
CASE = ROOT / "tests/corpus/003-win1114-pyqt5-then-spacy/input.txt"
HOW = "run `python -m tests.report.catalogue` and translate what it prints in torchdoctor/locale"


def holes(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


def test_every_sentence_of_the_code_is_translated() -> None:
    lacking = [text for text in WANTED if not KNOWN.get(text)]
    assert lacking == [], f"{HOW}: {lacking}"


def test_nothing_is_translated_that_nobody_says() -> None:
    assert [text for text in KNOWN if text not in set(WANTED)] == [], HOW


def test_the_templates_are_those_of_the_code() -> None:
    assert catalogue.TEMPLATES.read_text("utf-8") == catalogue.templates_text(), HOW


def test_the_catalogue_is_written_the_same_way_every_time() -> None:
    assert catalogue.PO.read_text("utf-8") == catalogue.po_text(KNOWN, WANTED), HOW


def test_a_translation_has_the_holes_of_what_it_translates() -> None:
    assert [text for text, meant in KNOWN.items() if holes(text) != holes(meant)] == []


def test_options_variables_and_addresses_stay_as_they_are() -> None:
    fixed = re.compile(r"--[a-z][\w-]+|[A-Z]{3,}_[A-Z_]{2,}|`[^`]+`|https?://\S+")
    other = [
        text
        for text, meant in KNOWN.items()
        if sorted(fixed.findall(text)) != sorted(fixed.findall(meant))
    ]
    assert other == []


def test_what_has_words_is_chinese() -> None:
    same = [text for text, meant in KNOWN.items() if text == meant]
    assert [text for text in same if PROSE.search(re.sub(r"\{\w+\}", "", text))] == []
    assert len(same) < len(KNOWN) * 0.06


def test_what_checks_say_of_real_reports_is_said_in_chinese() -> None:
    said: set[str] = set()
    for _, facts in (*plan_worlds.machines(), *map(plan_worlds.world, range(80))):
        outcomes = run(plan_worlds.CHECKS, facts)
        said |= {f.summary for f in plan.findings_of(outcomes) if f.family != "report"}
        planned = [s.step for s in plan.make(plan_worlds.CHECKS, facts, outcomes).steps]
        said |= {text for step in planned for text in (step.title, step.why) if text}
    english = [text for text in said if not CHINESE.search(SAY(text))]
    assert len(said) > 300
    assert len(english) < len(said) * 0.03, english


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        (
            "torch 2.9.1+cu126 has no code for NVIDIA GeForce RTX 5090 (sm_120); it has sm_80.",
            "torch 2.9.1+cu126 没有适用于 NVIDIA GeForce RTX 5090 (sm_120) 的代码；它有 sm_80。",
        ),
        ("Unset CUDA_HOME, here and where it is set for good", "取消设置 CUDA_HOME，"),
        ("After this step nothing else stands in the way (31 checks replayed: 31 clear).", "31 项"),
        ("and 3 more findings (--verbose shows all)", "另有 3 个问题（--verbose 显示全部）"),
        ("/srv/and/the/path is in it.", "/srv/and/the/path 就在其中。"),
    ],
)
def test_a_sentence_is_said_with_its_values(english: str, chinese: str) -> None:
    assert chinese in SAY(english)


@pytest.mark.parametrize("text", ["", "torch", "C:\\a b\\c.dll", "x" * 5000, "{", "{0} %s", "没有"])
def test_what_is_no_sentence_stays(text: str) -> None:
    assert SAY(text) == text


def test_a_message_of_a_program_is_not_translated() -> None:
    told = "OSError: libcudart.so.12: cannot open shared object file: No such file or directory"
    assert told in SAY(f"Importing torch 2.9.1 raises {told}; no check explains it.")


@pytest.mark.parametrize(
    ("asked", "environ", "language"),
    [
        ("zh", {}, "zh_CN"),
        ("en", {"LANG": "zh_CN.UTF-8"}, "en"),
        (None, {"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        (None, {"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        (None, {"LC_MESSAGES": "zh_CN", "LANG": "de_DE.UTF-8"}, "zh_CN"),
        (None, {"LC_ALL": "", "LANG": "zh_SG.GBK"}, "zh_CN"),
        (None, {"LANG": "de_DE.UTF-8"}, "en"),
        (None, {}, "en"),
    ],
)
def test_the_language_is_that_asked_for_else_the_locales(
    asked: str | None, environ: dict[str, str], language: str
) -> None:
    assert locale.chosen(asked, environ) == language


def checked(*options: str, encoding: str = "utf-8", **environ: str) -> str:
    words = [sys.executable, "-c", START, "check", str(CASE), *options]
    clean = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": encoding, **environ}
    done = subprocess.run(words, env=clean, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout.decode(encoding)


def test_a_report_is_chinese_when_the_locale_is() -> None:
    said = checked(LANG="zh_CN.UTF-8")
    for words in ("请这样做", "依据", "不再有其他障碍", "查看对象："):
        assert words in said
    for kept in ("import-order-dll-conflict", "python -c 'import torch, PyQt5'", "symptoms: "):
        assert kept in said
    assert "请这样做" in checked(encoding="gb18030", LANG="zh_CN.GBK")
    assert "Do this" in checked(encoding="cp1252", LANG="zh_CN.UTF-8")
    assert "Do this" in checked("--lang", "en", LANG="zh_CN.UTF-8")


def test_json_is_english_unless_asked() -> None:
    english = json.loads(checked("--format", "json", LANG="zh_CN.UTF-8"))
    chinese = json.loads(checked("--format", "json", "--lang", "zh"))
    assert not CHINESE.search(english["findings"][0]["summary"])
    assert CHINESE.search(chinese["findings"][0]["summary"])
    kept = ("name", "severity", "evidence", "steps", "because_of")
    assert [{k: f[k] for k in kept} for f in english["findings"]] == [
        {k: f[k] for k in kept} for f in chinese["findings"]
    ]
    assert [s["commands"] for s in english["plan"]] == [s["commands"] for s in chinese["plan"]]
    assert english["verdict"] == chinese["verdict"]


def test_markdown_is_said_in_chinese_too() -> None:
    said = checked("--format", "markdown", "--lang", "zh_CN")
    for words in ("#### 发现的问题", "#### 请这样做", ": 故障.", "查看对象："):
        assert words in said


def test_an_unknown_language_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--lang", "tlh", str(CASE)]) == 2
    assert "--lang" in capsys.readouterr().err


def test_a_catalogue_may_be_written_over_several_lines() -> None:
    head, empty = 'msgid ""\nmsgstr "head\\n"\n', 'msgid "e"\nmsgstr ""\n'
    text = f'{head}\nmsgid "a \\"b\\""\nmsgstr "c"\n"d\\n"\n\n{empty}'
    assert locale.catalogue(text) == {'a "b"': "cd\n"}


def test_the_syntax_shows_what_may_fill_a_hole(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text(
        "def check(bad):\n"
        "    more = f' and {len(bad)} more' if bad else ''\n"
        "    yield Finding('name', 'error', f'{bad[0]} is gone{more}.', (Evidence('a b', '')))\n",
        "utf-8",
    )
    found = {t.text: t for t in templates.said_in(file) if t.is_prose}
    assert set(found) == {"{x1} is gone{more}.", " and {len} more"}
    ((_, ways),) = found["{x1} is gone{more}."].ways
    assert {way.text for way in ways} == {" and {len} more", ""}


def test_the_doctor_reads_no_catalogue_for_english() -> None:
    code = (
        "import sys; from torchdoctor import cli; cli.main(['check', sys.argv[1], '--lang=en']); "
    )
    code += "assert 'torchdoctor.report.translate' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(CASE)], cwd=ROOT, check=False)
    assert done.returncode == 0
    assert io.StringIO(locale.speaker("en").say("as it is")).read() == "as it is"
