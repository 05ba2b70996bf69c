"""``torchdoctor lint`` keeps the contract of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.test_cli import Ran
from torchdoctor.lint.rule import all_rules

LOOP = """\
import torch
from torch.utils.data import DataLoader, DistributedSampler
sampler = DistributedSampler(data)
for epoch in range(3):
    for x in DataLoader(data, sampler=sampler):
        opt.zero_grad()
        model(x).backward()
"""
AMP = "import torch\nscaler = torch.cuda.amp.GradScaler()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(LOOP)
    (tmp_path / "amp.py").write_text(AMP)
    return tmp_path


def lint(*words: str, cwd: Path, stdin: bytes = b"") -> Ran:
    return Ran("lint", *words, cwd=cwd, stdin=stdin)


def test_a_report_names_file_line_and_column(folder: Path) -> None:
    ran = lint("--format", "json", cwd=folder)
    report: dict[str, Any] = ran.json
    assert ran.code == 1
    assert report["verdict"] == "broken"
    assert report["target"]["source"] == "script"
    first, second = (f for f in report["findings"] if f["severity"] != "note")
    assert (first["name"], first["family"]) == ("missing-set-epoch", "sampling")
    assert first["location"] == {"file": "train.py", "line": 3, "column": 11}
    assert first["evidence"] == [
        {
            "fact": "script.line",
            "value": "sampler = DistributedSampler(data)",
            "from": "train.py:3:11",
        }
    ]
    assert second["name"] == "deprecated-amp"
    outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
    assert set(outcomes) == {*all_rules(), "scripts-read"}
    assert {n for n, o in outcomes.items() if o == "found"} >= {"missing-set-epoch"}
    assert report["data"]["lint"]["files"] == 2


def test_text_and_markdown_show_the_place(folder: Path) -> None:
    text = lint("train.py", cwd=folder)
    assert text.code == 1
    assert text.out.startswith("This DistributedSampler shuffles")
    assert "  at     train.py:3:11\n" in text.out
    assert "torchdoctor lint train.py --fix" in text.out
    assert "`train.py:3:11`" in lint("--format", "markdown", cwd=folder).out


def test_the_plan_is_what_fix_then_does(folder: Path) -> None:
    before: dict[str, Any] = lint("--format", "json", cwd=folder).json
    (step,) = before["plan"]
    assert step["clears"] == ["deprecated-amp", "missing-set-epoch"] or step["clears"] == [
        "missing-set-epoch",
        "deprecated-amp",
    ]
    assert step["commands"]["bash"] == ["torchdoctor lint . --fix"]
    assert {f["name"]: f["steps"] for f in before["findings"]}["missing-set-epoch"] == [
        "apply-lint-fixes"
    ]
    mode = (folder / "train.py").stat().st_mode
    ran = lint("--fix", "--format", "json", cwd=folder)
    after: dict[str, Any] = ran.json
    assert ran.code == 0
    assert after["verdict"] == before["after_plan"]["verdict"] == "healthy"
    assert after["findings"] == before["after_plan"]["findings"]
    assert after["data"]["lint"]["mended"] == ["amp.py", "train.py"]
    assert "    sampler.set_epoch(epoch)\n" in (folder / "train.py").read_text()
    assert (folder / "train.py").stat().st_mode == mode
    again: dict[str, Any] = lint("--fix", "--format", "json", cwd=folder).json
    assert again["data"]["lint"]["mended"] == []


def test_nothing_is_written_without_fix(folder: Path) -> None:
    lint(cwd=folder)
    assert (folder / "train.py").read_text() == LOOP


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--ignore", "missing-set-epoch"), 0),
        (("--ignore", "sampling"), 0),
        (("--select", "precision"), 0),
        (("--select", "precision", "--fail-on", "warning"), 1),
        (("--select", "sampling,precision"), 1),
        (("--fail-on", "never"), 0),
        (("--exclude", "train.py"), 0),
        (("amp.py",), 0),
    ],
)
def test_rules_files_and_the_bar_are_chosen(
    words: tuple[str, ...], code: int, folder: Path
) -> None:
    assert lint(*words, cwd=folder).code == code


def test_the_project_says_which_rules_are_asked(folder: Path) -> None:
    settings = folder / "pyproject.toml"
    settings.write_text('[tool.torchdoctor.lint]\nignore = ["missing-set-epoch"]\n')
    inner = folder / "src"
    inner.mkdir()
    (inner / "more.py").write_text(LOOP)
    assert lint(cwd=folder).code == 0
    assert lint("more.py", cwd=inner).code == 0
    assert lint("--no-config", cwd=folder).code == 1
    settings.write_text('[tool.torchdoctor.lint]\nexclude = ["train.py", "src"]\n')
    assert lint(cwd=folder).code == 0
    settings.write_text('[tool.torchdoctor.lint]\nselect = ["precision"]\n')
    assert lint(cwd=folder).code == 0
    assert lint("--select", "sampling", cwd=folder).code == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("[tool.torchdoctor.lint]\nselekt = []", "'selekt' is no setting"),
        ("[tool.torchdoctor.lint]\nselect = 3", "select is not a list of names"),
        ("[tool.torchdoctor.lint]\nignore = ['no-such']", "'no-such' is no rule of lint"),
        ("[tool.torchdoctor.lint.per-file-ignores]\n'a' = ['no-such']", "'no-such' is no rule"),
        ("[tool.torchdoctor]\nlint = 3", "it is no table"),
        ("[tool", "cannot be read"),
    ],
)
def test_a_wrong_setting_is_told(settings: str, said: str, folder: Path) -> None:
    (folder / "pyproject.toml").write_text(settings)
    assert said in lint(cwd=folder).complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none.py",), "none.py does not exist"),
        (("--select", "mising-set-epoch"), "did you mean missing-set-epoch?"),
        (("--ignore", "x"), "torchdoctor list names them all"),
    ],
)
def test_wrong_usage_is_told_in_one_line(words: tuple[str, ...], said: str, folder: Path) -> None:
    assert said in lint(*words, cwd=folder).complaint


def test_a_file_that_was_named_and_cannot_be_read_is_exit_code_2(folder: Path) -> None:
    (folder / "bad.py").write_text("import torch.cuda.amp\n(")
    ran = lint("bad.py", "amp.py", cwd=folder)
    assert ran.code == 2
    assert "bad.py: line 2: '(' was never closed" in ran.out
    assert "deprecated-amp" in ran.out
    assert "Traceback" not in ran.out + ran.err
    (folder / "train.py").unlink()
    assert lint(cwd=folder).code == 0, "met in a folder, it is only said"
    assert lint("--strict", cwd=folder).code == 3


def test_standard_input_is_read(tmp_path: Path) -> None:
    ran = lint("-", "--fail-on", "warning", "--fix", cwd=tmp_path, stdin=AMP.encode())
    assert ran.code == 1
    assert "-:2:10" in ran.out


def test_nothing_found_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print(1)\n")
    ran = lint(cwd=tmp_path)
    assert (ran.code, ran.out.splitlines()[0]) == (0, "Nothing was found in 1 file.")


@pytest.mark.parametrize("name", ["missing-set-epoch", "data-parallel"])
def test_a_rule_is_explained_with_its_examples(name: str, tmp_path: Path) -> None:
    said = Ran("explain", name, cwd=tmp_path).out
    assert f"{name}: a finding of the check {name}" in said
    assert "\nBad:\n" in said
    assert "\nGood:\n" in said


def test_the_list_names_every_rule(tmp_path: Path) -> None:
    said = Ran("list", cwd=tmp_path).out
    assert all(f"  {rule.name} ({rule.severity}): " in said for rule in all_rules().values())


def test_the_readme_has_a_row_for_every_rule_and_for_no_other() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    table = readme.partition("| Rule | Severity | What it finds |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    assert rows == [
        f"| `{rule.name}` | {rule.severity} | {rule.title} |" for rule in all_rules().values()
    ]
