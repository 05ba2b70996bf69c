"""A word that is mistyped is answered with the one that was meant."""

from __future__ import annotations

import json

import pytest

from torchdoctor import cli


def told(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Return the one line that *line* is refused with."""
    assert cli.main(line.split()) == 2
    (said,) = capsys.readouterr().err.splitlines()
    return said


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("chekc", "check"),
        ("check --expcet cuda", "--expect"),
        ("check --exp cuda", "--expect"),
        ("check --format jsn", "json"),
        ("compare --fromat json a b", "--format"),
        ("completion power", "powershell"),
        ("--verson", "--version"),
        ("check --only vc-runtme", "vc-runtime"),
        ("explain driver-to-old", "driver-too-old"),
    ],
)
def test_what_may_be_meant_is_named(
    line: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = told(capsys, line).partition("did you mean ")[2]
    assert meant in said.partition("?")[0].split(" or ")


@pytest.mark.parametrize("line", ["xyzzy", "check --zzzz", "check --format yaml"])
def test_what_is_like_nothing_is_not_guessed(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean" not in told(capsys, line)


def test_the_help_that_is_named_is_that_of_the_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "check --expcet x").endswith("see: torchdoctor check --help")
    assert told(capsys, "chekc").endswith("see: torchdoctor --help")


def test_a_program_is_told_in_its_own_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--expcet", "x", "--format", "json"]) == 2
    said = json.loads(capsys.readouterr().out)["error"]
    assert said["kind"] == "usage"
    assert "did you mean --expect?" in said["message"]
