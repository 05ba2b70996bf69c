"""``explain --search`` finds what words are about, in English and in Chinese."""

from __future__ import annotations

import pytest

from torchdoctor import cli
from torchdoctor.lint import catalogue
from torchdoctor.model import DoctorError
from torchdoctor.registry import all_checks
from torchdoctor.report import explain
from torchdoctor.report.search import MOST, search

CHECKS = {**all_checks(), **catalogue.as_checks()}


def found(*words: str) -> list[str]:
    rows = search(words, CHECKS).splitlines()
    return [row.partition(":")[0] for row in rows if ":" in row and not row.startswith("More")]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("driver", "too", "old"), "driver-too-old"),
        (("sampler", "shuffle"), "sampler-and-shuffle"),
        (("WinError", "1114"), "vcredist-too-old"),
        (("page", "file"), "paging-file-too-small"),
        (("virus scanner",), "antivirus-blocked"),
        (("cpu", "build"), "cpu-only-build"),
        (("页面文件",), "paging-file-too-small"),
        (("进程组未初始化",), "process-group-not-initialised"),
        (("病毒扫描",), "antivirus-blocked"),
        (("共享内存",), "shm-too-small"),
    ],
)
def test_words_lead_to_a_finding(words: tuple[str, ...], name: str) -> None:
    assert name in found(*words)[:5]


def test_what_has_all_the_words_goes_before_what_has_one() -> None:
    assert found("driver", "container")[0] in {
        name for check in CHECKS.values() if "container" in check.explains for name in check.names
    }
    assert len(found("torch")) <= MOST
    assert "and " in search(("torch",), CHECKS)


def test_a_word_that_is_nowhere_gets_one_that_is_near() -> None:
    with pytest.raises(DoctorError, match=r"did you mean .*sampler"):
        search(("smapler",), CHECKS)
    with pytest.raises(DoctorError, match="torchdoctor list"):
        search(("\u4f60\u597d\u5440",), CHECKS)


def test_every_finding_is_explained() -> None:
    for name in {name for check in CHECKS.values() for name in check.names}:
        text = explain.explain(name, CHECKS)
        assert text.startswith(f"{name}: ")
        assert len(text.splitlines()) > 5, name


def test_the_command_line_takes_a_name_or_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--search", "page", "file"]) == 0
    assert "paging-file-too-small" in capsys.readouterr().out
    assert cli.main(["explain"]) == 2
    assert cli.main(["explain", "driver", "--search", "x"]) == 2
    assert "one of them" in capsys.readouterr().err
