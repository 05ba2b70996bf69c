"""Whole reports in Chinese: no sentence of ours is left in English, whatever the input.

What the user's own text says, names, commands and versions stay as they are; so a run of English
words counts where it is prose and stands neither in the input nor in a translation.
"""

# ruff: noqa: RUF001 - the punctuation of Chinese is meant

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests import plan_worlds
from tests.corpus_score import cases
from tests.lint.scripts import samples
from tests.near_miss_texts import near_misses
from tests.rebuilt_texts import inputs as rebuilt
from tests.report import catalogue, templates
from torchdoctor import cli, inputs, locale, plan
from torchdoctor.facts import Expectation, Facts
from torchdoctor.lint import looking
from torchdoctor.lint.rule import all_rules
from torchdoctor.model import REPORTED
from torchdoctor.reading import machine
from torchdoctor.report import document, words
from torchdoctor.report.translate import translated
from torchdoctor.run import run

SPEAKER = locale.speaker(locale.CHINESE)
SAY = SPEAKER.say
_RUN = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z'/-]*(?:[ ,:;]+[A-Za-z][\w'().=/-]*)+")
_PROSE = re.compile(
    r"(?<![A-Za-z0-9_./\\-])(?:the|a|an|it|is|has|have|of|and|to|for|in|that|which|not|with|are|"
    r"this|was|be|from|by|on|its|no|or|than|as|does|do)(?![A-Za-z0-9_/\\(=-]|\.\w)"
)
_EXCEPTION = re.compile(r"\b\w*(?:Error|Exception|Warning)\b:? .*")


@cache
def decided() -> str:
    """Return what a translator left in English, and what the code knows of the texts of others."""
    return " ".join([*catalogue.known().values(), *templates.quoted()]).casefold()


def english_left(said: str, given: str) -> Iterator[str]:
    """Yield each run of English prose in *said* that does not stand in *given*."""
    given = " ".join(given.split()).casefold()
    for found in _RUN.finditer(said):
        words_left = _not_in(_EXCEPTION.sub("", found[0]).split(), given)
        if _PROSE.search(" ".join(words_left)) and found[0].casefold() not in decided():
            yield found[0]


def _not_in(run_of_words: list[str], given: str) -> list[str]:
    """Return the words but for those of which two or more in a row stand in *given*."""
    left, at = [], 0
    while at < len(run_of_words):
        end = len(run_of_words)
        while end > at + 1 and _bare(run_of_words[at:end]) not in given:
            end -= 1
        if end == at + 1:
            left.append(run_of_words[at])
        at = end
    return left


def _bare(some: list[str]) -> str:
    return " ".join(some).strip(".,;:()'").casefold()


def chinese(facts: Facts) -> Iterator[str]:
    """Yield all that a report on *facts* says in Chinese, but for evidence and commands."""
    outcomes = run(plan_worlds.CHECKS, facts)
    findings = plan.findings_of(outcomes)
    english = document.build(
        target=document.Target("text"),
        findings=findings,
        outcomes=outcomes,
        plan=plan.make(plan_worlds.CHECKS, facts, outcomes),
        facts=facts,
    )
    report = translated(english, SAY)
    own = [f for f in (*report.findings, *report.plan.remaining) if f.family != REPORTED]
    yield from (f.summary for f in own)
    if all(f.family != REPORTED for f in findings):
        yield report.headline
    steps = [s.step for s in report.plan.steps]
    yield from (text for step in steps for text in (step.title, step.why))
    alternatives = (step for f in own for step in f.steps)
    yield from (SAY(text) for step in alternatives for text in (step.title, step.why))
    yield from report.remarks
    ran = [o for o in (*report.outcomes, *report.plan.outcomes) if o.status != "crashed"]
    yield from (o.reason for o in ran)
    grave = [f.finding for f in english.faults if f.finding.severity != "note"]
    yield SAY(words.outlook(english, grave, 400))
    yield words.untold(report.outcomes, SAY)


def left_in_texts(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Return what is left in the reports on *texts*: the name of the text, what, and where."""
    return [
        (name, run_left, said)
        for name, text in texts
        for said in set(chinese(machine.read(inputs.of_text(text), Expectation())))
        for run_left in english_left(said, text)
    ]


@pytest.mark.slow
def test_reports_on_rebuilt_inputs_leave_nothing_in_english() -> None:
    texts = [(one.cause, one.text) for one in rebuilt()]
    assert len(texts) > 20
    assert left_in_texts(texts) == []


@pytest.mark.slow
@pytest.mark.sample
def test_reports_on_a_few_rebuilt_inputs_leave_nothing_in_english() -> None:
    assert left_in_texts((one.cause, one.text) for one in rebuilt()[::9]) == []


@pytest.mark.slow
def test_reports_on_the_corpus_leave_nothing_in_english() -> None:
    texts = [(case.id, case.file.read_text("utf-8")) for case in cases()]
    assert len(texts) > 100
    assert left_in_texts(texts) == []


@pytest.mark.slow
def test_reports_on_near_misses_leave_nothing_in_english() -> None:
    assert left_in_texts((one.id, one.text) for one in near_misses()) == []


@pytest.mark.slow
def test_reports_on_all_faults_that_the_tests_know_leave_nothing_in_english() -> None:
    found = [
        (name, run_left, said)
        for name, known in plan_worlds.faults()
        for said in set(chinese(Facts(**known)))  # type: ignore[arg-type]
        for run_left in english_left(said, repr(known))
    ]
    assert found == []


def test_what_lint_says_is_said_in_chinese(tmp_path: Path) -> None:
    rules = all_rules()
    found: dict[str, str] = {}
    for number, sample in enumerate(s for s in samples() if s.fires):
        file = tmp_path / f"script_{number}.py"
        file.write_text(sample.code, "utf-8")
        for one in looking.look([str(file)], rules).findings():
            found[one.name] = SAY(one.summary)
            assert list(english_left(found[one.name], sample.code)) == []
    assert set(found) == set(rules)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--no-set-epoch"],
        ["--sampler", "none"],
        ["--sampler-drop-last", "--epochs", "3"],
        ["--prepare", "accelerate", "--length", "41"],
        ["--stream", "--workers", "2"],
        ["--length", "1", "--sampler-drop-last"],
        ["--labels", "cycle:2", "--no-shuffle"],
        ["--resume-from", "4:2"],
        ["--prepare", "accelerate", "--no-even-batches", "--length", "35"],
    ],
    ids=" ".join,
)
def test_what_shards_says_is_said_in_chinese(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["shards", "--lang", "zh", *options])
    said = capsys.readouterr().out
    assert re.search("[\u4e00-\u9fff]", said)
    assert list(english_left(said, "shards.")) == []


def test_what_is_left_in_english_is_found() -> None:
    given = "OSError: libx.so: cannot open shared object file: No such file or directory"
    assert list(english_left("导入时抛出 cannot open shared object file。", given)) == []
    assert list(english_left("这里 is not what it was。", given)) == ["is not what it was"]
    assert list(english_left("运行 torchdoctor check，用 CUDA Runtime 12.8。", given)) == []


def test_every_text_that_is_never_said_stands_in_the_code() -> None:
    """A line of not_said.txt that the code no longer has would hide a sentence one day."""
    assert sorted(templates.quoted() - templates.texts()) == [], "run tests.report.catalogue"
