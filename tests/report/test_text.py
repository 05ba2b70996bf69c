from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.report import samples
from torchdoctor.facts import Facts, Unknown
from torchdoctor.model import Commands, Evidence, Outcome, Plan, PlannedStep
from torchdoctor.report import text, words
from torchdoctor.report.document import Report, Target, build, failure

ANSI = re.compile(r"\x1b\[[0-9;]*m")
WIDTHS = pytest.mark.parametrize("width", [40, 80, 120])


def lines(report: Report, **options: Any) -> list[str]:
    return text.render(report, **options).splitlines()


SHELLS: tuple[words.Shell, ...] = ("bash", "powershell", "cmd")


def planned(*commands: str, **parts: object) -> Report:
    step = samples.step("install-torch", *commands, **parts)
    plan = Plan((PlannedStep(step, ("driver-too-old",), ()),))
    return build(target=samples.LIVE, findings=[samples.finding()], plan=plan)


def test_a_healthy_machine_takes_three_lines() -> None:
    assert lines(samples.healthy()) == [
        "PyTorch works here: torch 2.13.0+cpu (Python 3.11.7), CPU.",
        "",
        "29 checks: 27 clear, 2 unknown.",
        "Not told: nccl, peer-access (driver: nvidia-smi is not there).",
    ]


def test_a_broken_machine_reads_from_cause_to_cure() -> None:
    expected = f"""\
C:\\Windows\\System32\\msvcp140.dll is 14.34; c10.dll of torch 2.9.1 needs 14.40 or
newer. And 1 more.

✗ vcredist-too-old                                               error · certain
  seen   trial.error: WinError 1114, names c10.dll  (import trial, 1.9 s)
         torch.imports: _Mtx_lock without _Mtx_init_in_situ  (torch\\lib\\c10.dll)
  then   torch-import-fails: What torch-import-fails says.

! torchvision-of-another-release                                warning · likely
  torchvision 0.19.0 was not built for torch 2.9.1.
  at     requirements.txt:3, rank 1, stage store
  seen   driver.release: 470.57.02  (nvidia-smi)

Do this
1. Install the current VC++ x64 redistributable                  admin · network
   c10.dll of torch 2.9.1 calls into a msvcp140.dll of 14.40 or newer.
     {samples.WINGET}
   then   torchdoctor check --only vc-runtime
2. Install the torch, torchvision and torchaudio that fit each other
   deletes · network
   torchvision 0.19.0 was built against torch 2.4.0.
     {samples.PIP}
   then   torchdoctor check

After these steps nothing else stands in the way (31 checks replayed: 24 clear,
7 unknown).
Note: The machine has a GPU that this build ignores. (gpu-idle)
Not told: shm (the check crashed: ValueError: no such limit); gpu-architecture,
          nccl (waits for torch-imports); driver (driver: not collected).
More: torchdoctor explain vcredist-too-old
"""
    assert text.render(samples.broken(), width=80) == expected


@WIDTHS
def test_only_commands_are_wider_than_the_page(width: int) -> None:
    too_wide = [line for line in lines(samples.broken(), width=width) if cell_len(line) > width]
    assert {line.strip().removeprefix("then   ") for line in too_wide} <= {
        samples.WINGET,
        samples.PIP,
        "torchdoctor check --only vc-runtime",
        "More: torchdoctor explain vcredist-too-old",
    }


@WIDTHS
def test_colour_adds_nothing_but_colour(width: int) -> None:
    coloured = text.render(samples.broken(), width=width, colour=True)
    assert "\x1b[1;31m" in coloured
    assert ANSI.sub("", coloured).splitlines() == lines(samples.broken(), width=width)


def test_no_colour_is_yellow_white_or_black() -> None:
    coloured = text.render(samples.broken(), colour=True, verbose=True)
    codes = {code for found in ANSI.findall(coloured) for code in found[2:-1].split(";")}
    assert codes <= {"0", "1", "31", "32", "35", "36"}


def test_an_ascii_console_gets_ascii_marks() -> None:
    rendered = text.render(samples.broken(), unicode=False)
    assert rendered.isascii()
    assert "x vcredist-too-old" in rendered
    assert "error - certain" in rendered


def test_quiet_is_one_line_with_the_name() -> None:
    rendered = text.render(samples.broken(), quiet=True, width=40)
    assert rendered.startswith("error vcredist-too-old: C:\\Windows\\System32\\msvcp140.dll is")
    assert rendered.count("\n") == 1
    assert lines(samples.healthy(), quiet=True) == lines(samples.healthy())[:1]


def test_verbose_leaves_nothing_out() -> None:
    rendered = text.render(samples.broken(), verbose=True)
    assert "  shm  crashed: Traceback (most recent call last):\n      File x\n" in rendered
    assert "  driver  unknown: driver: not collected\n" in rendered
    assert "Clear: check-0, check-1" in rendered
    assert "Debian GNU/Linux 12" in rendered
    assert rendered.count("seen   driver.release: 470.57.02") == 3


def test_what_could_not_be_told_is_the_first_line_when_it_is_essential() -> None:
    facts = Facts(trial=Unknown("--no-import"))
    report = build(target=samples.LIVE, essential_unknown=True, facts=facts)
    assert lines(report, width=120)[0] == (
        "Cannot tell whether PyTorch works here: the import of torch was not seen (--no-import)."
    )


def test_a_reader_of_a_snapshot_is_told_what_was_looked_at() -> None:
    target = Target("snapshot", ("ill.json",), "Windows 11", "3.12.1", "2026-11-01T00:00:00Z")
    assert (
        "Looked at: ill.json (snapshot, Windows 11, Python 3.12.1, 2026-11-01T00:00:00Z)"
        in lines(build(target=target))
    )


def test_a_fault_that_no_step_cures_is_named() -> None:
    report = build(target=samples.LIVE, findings=[samples.finding("gpu-broken")])
    assert "No command is known that cures gpu-broken." in lines(report)


def test_what_would_remain_is_named() -> None:
    report = planned("true")
    left = samples.finding("gpu-broken")
    report = replace(report, plan=replace(report.plan, verdict="broken", remaining=(left,)))
    rendered = lines(report)
    at = rendered.index("After this step 1 finding would remain:")
    assert rendered[at + 1] == "✗ gpu-broken: What gpu-broken says."


def test_a_plan_that_ends_in_doubt_says_so() -> None:
    report = planned("true")
    report = replace(report, plan=replace(report.plan, verdict="unknown"))
    assert "After this step nothing known stands in the way, but not all can be told." in lines(
        report
    )


def test_each_shell_gets_its_own_commands() -> None:
    commands = Commands(("for-bash",), ("for-powershell",), ("for-cmd",))
    report = planned(commands=commands)
    for name in SHELLS:
        rendered = lines(report, shell=name)
        assert f"     for-{name}" in rendered
        assert sum("for-" in line for line in rendered) == 1


def test_a_shell_without_commands_is_told_so() -> None:
    report = planned(commands=Commands(bash=("sudo true",)))
    rendered = text.render(report, shell="cmd").splitlines()  # noqa: S604 - whose words to use
    at = rendered.index("   There is no command for cmd. In another shell:")
    assert rendered[at + 1] == "     sudo true"


def test_a_command_that_would_have_to_be_altered_is_not_shown() -> None:
    rendered = lines(planned("cd /tmp/x\nrm -rf ~"), width=100)
    assert f"     {text.UNSHOWN}" in rendered
    assert not any("rm -rf" in line for line in rendered)


def test_a_command_that_ascii_lacks_is_not_shown_there() -> None:
    report = planned("/home/José/bin/python -m pip")
    assert "     /home/José/bin/python -m pip" in lines(report)
    assert f"     {text.UNSHOWN}" in lines(report, unicode=False, width=100)
    assert "     /home/José/bin/python -m pip" in lines(report, encoding="cp1252")
    assert f"     {text.UNSHOWN}" in lines(report, encoding="cp1251", width=100)


def test_each_mark_falls_back_where_the_encoding_lacks_it() -> None:
    rendered = text.render(samples.broken(), encoding="gbk")
    rendered.encode("gbk")
    assert "\nx vcredist-too-old" in rendered
    assert "error · certain" in rendered


def test_markup_in_facts_is_text() -> None:
    hostile = samples.finding(
        summary="[red]x[/] :smile:", evidence=(Evidence("[/]", "[bold]", "[link=x]"),)
    )
    rendered = text.render(build(target=samples.LIVE, findings=[hostile]), colour=True)
    assert "[red]x[/] :smile:" in rendered
    assert "[/]: [bold]  ([link=x])" in rendered


def test_escapes_in_facts_are_shown_not_obeyed() -> None:
    hostile = samples.finding(summary="a\x1b[2Jb\u202ec\r\nd")
    rendered = text.render(build(target=samples.LIVE, findings=[hostile]))
    assert rendered.startswith("a\\x1b[2Jb\\u202ec d\n")


def test_ten_thousand_findings_stay_a_page() -> None:
    found = [samples.finding(f"finding-{n}") for n in range(10_000)]
    rendered = lines(build(target=samples.LIVE, findings=found))
    assert len(rendered) < 60
    assert "and 9,988 more findings (--verbose shows all)" in rendered


def test_a_cause_that_hides_nothing_is_named() -> None:
    cause = samples.finding("gpu-idle", "note")
    effect = samples.finding("gpu-wanted", because_of=("gpu-idle", "not-found"))
    assert "  cause  gpu-idle" in lines(build(target=samples.LIVE, findings=[cause, effect]))


def test_a_huge_value_keeps_its_ends() -> None:
    value = "first " + "x" * 1_000_000 + " last"
    report = build(
        target=samples.LIVE, findings=[samples.finding(evidence=(Evidence("a", value, "b"),))]
    )
    rendered = text.render(report)
    assert len(rendered) < 2000
    assert "a: first" in rendered
    assert "last  (b)" in rendered


def test_a_note_alone_is_brief() -> None:
    note = samples.finding("gpu-idle", "note", summary="The GPU is not used.")
    report = build(target=samples.LIVE, findings=[note])
    assert lines(report)[1:] == [
        "",
        "Note: The GPU is not used. (gpu-idle)",
        "More: torchdoctor explain gpu-idle",
    ]


def test_the_checks_that_could_not_tell_are_grouped_by_reason() -> None:
    outcomes = [Outcome(f"check-{n}", "unknown", reason="not collected") for n in range(9)]
    rendered = text.render(build(target=samples.LIVE, outcomes=outcomes), width=120)
    assert (
        "Not told: check-0, check-1, check-2, check-3, check-4, check-5 and 3 more (not collected)."
        in rendered
    )


def test_a_failure_is_its_message() -> None:
    report = failure("input", "it is not a snapshot; run torchdoctor collect", "x.json")
    assert lines(report) == ["x.json: it is not a snapshot; run torchdoctor collect"]
    assert lines(report, quiet=True) == lines(report)


@settings(max_examples=60, deadline=None)
@given(
    samples.reports(samples.TEXTS),
    st.integers(40, 200),
    st.fixed_dictionaries(dict.fromkeys(("colour", "unicode", "verbose"), st.booleans())),
    st.sampled_from(["bash", "powershell", "cmd"]),
)
def test_anything_renders_and_commands_stay_whole(
    report: Report, width: int, options: dict[str, Any], shell: words.Shell
) -> None:
    colour, unicode = options["colour"], options["unicode"]
    rendered = text.render(report, width=width, shell=shell, **options)
    plain = ANSI.sub("", rendered) if colour else rendered
    assert all(c == "\n" or c.isprintable() for c in plain)
    assert unicode or plain.isascii()
    rows = plain.split("\n")
    commands = [c for p in report.plan.steps for c in getattr(p.step.commands, shell)]
    for command in commands:
        if command.isprintable() and (unicode or command.isascii()):
            assert any(re.fullmatch(rf" {{5,}}{re.escape(command)}", row) for row in rows)
    if not report.plan.steps:
        wide = [row for row in rows if cell_len(row) > width]
        assert all(row.startswith("More: ") for row in wide)
