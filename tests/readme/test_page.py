"""Nothing on the page is out of reach of the tests: each block, command, policy and link."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.readme import page, told
from tests.readme.page import ROOT
from torchdoctor import cli, policy, training

COMMANDS = page.commands()
WORDS = re.compile(r"(?:^|[|;&]\s*|-m )(?:\.venv/bin/)?torchdoctor(?: |$)([^|;&]*)")


def parsed(command: str) -> bool:
    """Say whether the command line of each torchdoctor in *command* is taken."""
    for found in WORDS.finditer(command):
        words = shlex.split(found[1])
        cli._parser(words).parse_args(words)  # noqa: SLF001 - without running it
    return True


def test_every_block_says_what_it_is_and_none_is_hidden_by_indenting() -> None:
    known = {*page.SHELLS, "text", "toml", "yaml", "python"}
    assert {block.language for block in page.blocks()} <= known
    assert not re.findall(r"^ {4,}\S.*$", page.prose(), re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_a_command_is_one(command: str) -> None:
    assert parsed(told.INSTEAD.get(command, (command, ""))[0])


def test_what_stands_within_a_sentence_is_taken_too() -> None:
    assert [parsed(command) for command in page.mentioned()].count(True) > 5


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(Exception, match="--not-one"):
        parsed("cat x | torchdoctor check --not-one")


def test_no_row_outlives_its_command() -> None:
    rows = [*told.INSTEAD, *told.ELSEWHERE, *told.NOT_RUN, *told.NETWORK, *told.FINDS]
    assert [row for row in rows if row not in COMMANDS] == []


def test_no_command_has_two_rows() -> None:
    rows = [*told.INSTEAD, *told.ELSEWHERE, *told.NOT_RUN, *told.NETWORK]
    assert len(rows) == len(set(rows))


def test_each_row_has_a_reason_or_a_file() -> None:
    assert all(why for _, why in told.INSTEAD.values())
    assert all(told.NOT_RUN.values())
    assert [path for path in told.ELSEWHERE.values() if not (ROOT / path).is_file()] == []


def test_ci_takes_the_two_commands_that_install_from_the_page() -> None:
    text = (ROOT / ".ci" / "run").read_text("utf-8")
    found = re.search(r"< <\((grep '\S+.*' README\.md)\)", text)
    assert found
    done = subprocess.run(["bash", "-c", found[1]], cwd=ROOT, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert lines == [command for command in COMMANDS if command.startswith(told.VENV)]
    assert len(lines) == 2


def test_every_link_leads_somewhere() -> None:
    for link in page.links():
        path, _, anchor = link.partition("#")
        assert not path.startswith("http"), "what is not ours is not looked at"
        assert (ROOT / path).exists(), link
        if anchor and not path:
            assert anchor in page.anchors(), link


def test_a_link_that_leads_nowhere_would_be_seen() -> None:
    text = "# One\n[a](#one) and [b](no/such.md)\n```sh\n[c](#in-code)\n```\n"
    assert page.links(text) == ["#one", "no/such.md"]
    assert page.anchors(text) == {"one"}


def test_the_policy_is_read_and_the_step_is_yaml(tmp_path: Path) -> None:
    (toml,) = (block.text for block in page.blocks() if block.language == "toml")
    file = tmp_path / "pyproject.toml"
    file.write_text(toml, "utf-8")
    assert policy.read(str(file)).require
    for block in page.blocks():
        if block.language == "yaml":
            (step,) = yaml.safe_load(block.text)
            action = step["uses"].partition("/torchdoctor/")[2].partition("@")[0]
            given = yaml.safe_load((ROOT / action / "action.yml").read_text("utf-8"))["inputs"]
            assert set(step["with"]) <= set(given)


def test_the_python_is_python_of_names_that_are_there() -> None:
    texts = [block.text for block in page.blocks() if block.language == "python"]
    assert len(texts) == 2
    for text in texts:
        compile(text, "README.md", "exec")
        named = re.search(r"^from torchdoctor\.training import (.*)$", text, re.MULTILINE)
        assert named
        assert set(named[1].split(", ")) <= set(training.__all__)


def test_a_short_command_does_what_the_page_says() -> None:
    assert "torchdoctor explain --search 'shared memory'" in COMMANDS
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "explain", "--search", "shared memory"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "shm-too-small" in done.stdout


def test_commands_are_found_as_a_shell_would_take_them() -> None:
    text = "```sh\na b \\\n    c   # why\n# alone\n\nd 'x # y' z#1\n```\n```text\n$ e\nf\n```\n"
    assert page.commands(text) == ["a b c", "d 'x # y' z#1", "e"]
