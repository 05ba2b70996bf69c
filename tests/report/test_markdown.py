"""The report for an issue: what it says, and that no fact breaks out of it."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.report import samples
from torchdoctor.child import Run, Stream
from torchdoctor.model import Commands, Evidence, PlannedStep
from torchdoctor.report import markdown, words
from torchdoctor.report.document import Detail, Report, failure
from torchdoctor.snapshot import Snapshot

if TYPE_CHECKING:
    from markdown_it.token import Token

HOSTILE = [
    "</details><script>alert(1)</script>",
    "```\n# owned\n```",
    "`` ` ``` x",
    "~~~\n~~~",
    "[a](http://example.org) ![b](c)",
    "@someone closes #1, GH-2",
    "<!-- ",
    "- x\n1. y\n> z\n===\n---",
    "* **b** _i_ __c__ | a | b |",
    "&lt;b&gt; &#60;",
    "1. one",
    "\\",
    "$a$ $$b$$",
    "-----END TORCHDOCTOR SNAPSHOT-----",
]
TEXTS = samples.TEXTS | st.sampled_from(HOSTILE)
ALLOWED_HTML = re.compile(r"</?details>|<summary>[^<]*</summary>|\s")


def snapshot(text: str = "") -> Snapshot:
    run = Run((), "answered", stdout=Stream(text, len(text)))
    return Snapshot("2026-11-29T14:28:44Z", {"host": run}, {"cwd": "/"}, redacted=True)


def tokens(text: str) -> list[Token]:
    found = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        found += [token, *(token.children or ())]
    return found


def is_whole(text: str, report: Report) -> None:
    """Assert that *text* has the structure that its report gives it, and no other."""
    assert len(text.encode()) <= markdown.LARGEST
    every = tokens(text)
    html = "".join(t.content for t in every if t.type in ("html_block", "html_inline"))
    assert not ALLOWED_HTML.sub("", html)
    kinds = {t.type for t in every}
    assert not kinds & {"link_open", "image", "table_open", "blockquote_open", "hr", "code_block"}
    headings = [every[i + 1].content for i, t in enumerate(every) if t.type == "heading_open"]
    own = {"Findings": bool(report.findings), "Do this": bool(report.plan.steps)}
    assert headings == [name for name, there in own.items() if there]
    fences = [t.content for t in every if t.type == "fence" and "SNAPSHOT" not in t.content]
    lines = [line for fence in fences for line in fence.splitlines()]
    commands = [
        line
        for planned in report.plan.steps
        for line in (*planned.step.commands.bash, *planned.verify)
    ]
    other = [p.step.commands for p in report.plan.steps if not p.step.commands.bash]
    if not any(other):
        assert lines == [c for c in commands if c.isprintable() and c.strip()]
    assert not re.search(r"(?<![`\w])[@#](?=\w)", _without_code(every))


def _without_code(every: list[Token]) -> str:
    return "\n".join(t.content for t in every if t.type == "text")


def test_a_broken_machine() -> None:
    text = markdown.render(samples.broken())
    assert text.startswith("**torchdoctor 0.1.0: broken.** C:\\\\Windows\\\\System32")
    assert "- **vcredist-too-old** (error · certain): C:\\\\Windows" in text
    assert "  - trial.error: `WinError 1114, names c10.dll` (import trial, 1.9 s)" in text
    assert "  - because of: `vcredist-too-old`" in text
    assert (
        "1. **Install the current VC++ x64 redistributable** (admin, network)\n\n"
        "   c10.dll of torch 2.9.1 calls into a msvcp140.dll of 14.40 or newer.\n\n"
        f"   ```bash\n   {samples.WINGET}\n   ```\n\n"
        "   then\n\n   ```bash\n   torchdoctor check --only vc-runtime\n   ```\n"
    ) in text
    assert (
        "2. **Install the torch, torchvision and torchaudio that fit each other** (deletes" in text
    )
    assert "After these steps nothing else stands in the way (31 checks replayed" in text
    assert "\nNot told: shm (the check crashed: ValueError: no such limit);" in text
    assert "\nLooked at: this machine (live, Debian GNU/Linux 12 (bookworm), Python 3.11.7" in text
    assert "<details>" not in text
    is_whole(text, samples.broken())


def test_a_healthy_machine_says_how_many_checks_were_clear() -> None:
    text = markdown.render(samples.healthy())
    assert text.startswith("**torchdoctor 0.1.0: healthy.** PyTorch works here: torch 2.13.0+cpu")
    assert "29 checks: 27 clear, 2 unknown." in text


def test_the_snapshot_is_folded_away_in_short_lines() -> None:
    text = markdown.render(replace(samples.healthy(), snapshot=snapshot("x" * 5000)))
    block = text[text.index("<details>") :]
    assert "\n-----BEGIN TORCHDOCTOR SNAPSHOT torchdoctor.snapshot/1-----\n" in block
    assert block.endswith("-----END TORCHDOCTOR SNAPSHOT-----\n```\n\n</details>\n")
    assert max(map(len, block.splitlines())) < 100


def test_a_snapshot_that_does_not_fit_is_left_out_and_that_is_said() -> None:
    noise = "".join(random.Random(1).choices("0123456789abcdef", k=200_000))  # noqa: S311 - rubbish
    text = markdown.render(replace(samples.broken(), snapshot=snapshot(noise)))
    assert "SNAPSHOT" not in text
    assert "The snapshot of this machine is left out" in text
    assert "vcredist-too-old" in text


def test_what_is_longer_than_github_takes_ends_at_a_whole_part() -> None:
    many = tuple(samples.finding(f"finding-{n}", summary="w " * 1900) for n in range(60))
    report = replace(samples.broken(), findings=many)
    text = markdown.render(report, verbose=True)
    assert text.endswith(f"{markdown.LEFT_OUT}\n")
    assert 60_000 < len(text.encode()) <= markdown.LARGEST


def test_a_command_that_cannot_be_shown_is_said_not_altered() -> None:
    step = samples.step("s", "echo \x1b[2J", "echo ok")
    report = samples.broken()
    report = replace(report, plan=replace(report.plan, steps=(PlannedStep(step, (), ()),)))
    text = markdown.render(report)
    assert "\x1b" not in text
    assert markdown.UNSHOWN in text
    assert "   echo ok\n" in text


def test_where_there_is_no_command_for_the_shell_another_is_named() -> None:
    step = samples.step("s", commands=Commands(bash=("export A=1",)))
    report = samples.broken()
    report = replace(report, plan=replace(report.plan, steps=(PlannedStep(step, (), ()),)))
    text = markdown.render(report, shell="powershell")  # noqa: S604 - a word
    assert "There is no command for powershell. In another shell:\n\n   ```text\n" in text


def test_details_of_a_verb_are_a_list_and_code() -> None:
    details = (Detail("Why", "# because"), Detail("Why", "pip list", command=True))
    text = markdown.render(replace(samples.healthy(), details=details))
    assert "#### Why\n\n- \\# because\n\n```text\npip list\n```\n" in text


def test_a_failure_is_one_line() -> None:
    report = failure("input", "it is a *picture*", "x.png")
    text = markdown.render(report)
    assert text.count("\n") == 1
    assert "x.png: it is a \\*picture\\*" in text


def test_the_value_of_a_fact_is_code_whatever_is_in_it() -> None:
    for value in (*HOSTILE, "`", "a`", "``", " "):
        finding = samples.finding(evidence=(Evidence("f", value, ""),))
        text = markdown.render(replace(samples.broken(), findings=(finding,)))
        code = [t.content for t in tokens(text) if t.type == "code_inline"]
        assert code == ([" ".join(value.split())] if value.strip() else []), value


@given(samples.reports(samples.KEBABS), st.booleans())
@settings(max_examples=80, deadline=None)
def test_no_fact_breaks_out(report: Report, verbose: bool) -> None:  # noqa: FBT001
    text = markdown.render(replace(report, snapshot=snapshot("x")), verbose=verbose)
    is_whole(text, _shown(report, verbose=verbose))


@given(st.lists(TEXTS.filter(bool), min_size=8, max_size=8))
@settings(max_examples=80, deadline=None)
def test_no_hostile_text_breaks_out_wherever_it_stands(texts: list[str]) -> None:
    title, why, summary, fact, value, source, name, cause = texts
    step = samples.step("s", "pip list", title=title, why=why)
    finding = samples.finding(
        name, summary=summary, evidence=(Evidence(fact, value, source),), because_of=(cause, name)
    )
    report = samples.broken()
    plan = replace(report.plan, steps=(PlannedStep(step, (), ()),), remaining=(finding,))
    report = replace(
        report,
        findings=(finding, samples.finding(cause)),
        plan=plan,
        headline=summary,
        remarks=(why,),
    )
    is_whole(markdown.render(report), report)


def _shown(report: Report, *, verbose: bool) -> Report:
    few = report.findings if verbose else report.findings[: words.FEW_FAULTS]
    return replace(report, findings=few)


def test_the_check_of_structure_sees_what_breaks_out() -> None:
    report = samples.healthy()
    for bad in ("<b>x</b>", "# heading", "```\nx\n```", "> quote", "@someone", "[a](b)"):
        try:
            is_whole(markdown.render(report) + f"\n\n{bad}\n", report)
        except AssertionError:
            continue
        raise AssertionError(bad)
