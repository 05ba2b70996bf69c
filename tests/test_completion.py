"""Shells complete verbs, options, choices and names; nothing that is completed is made up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchdoctor.cli import VERBS
from torchdoctor.commands.completion import SHELLS
from torchdoctor.registry import all_checks

ROOT = Path(__file__).parents[1]


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """Make a folder with the command in it, as an installation has it."""
    program = tmp_path / "bin" / "torchdoctor"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from torchdoctor.cli import run\nrun()\n"
    )
    program.chmod(0o755)
    return program.parent


def offered(folder: Path, line: str) -> set[str]:
    """Return what is offered after *line*, as a shell asks for it."""
    answer = folder / "answer"
    environ = {
        **os.environ,
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_IFS": "\n",
        "ARGCOMPLETE_USE_TEMPFILES": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    answer.write_text("")
    subprocess.run([folder / "torchdoctor"], env=environ, check=True, capture_output=True)
    return {word.strip() for word in answer.read_text("utf-8").split("\n")} - {""}


@pytest.mark.parametrize(
    ("line", "some", "none"),
    [
        ("torchdoctor ", set(VERBS), {"--all-reduce"}),
        ("torchdoctor ch", {"check"}, {"collect"}),
        ("torchdoctor check --f", {"--format", "--fail-on"}, {"--lang"}),
        ("torchdoctor check --format ", {"json", "html", "markdown"}, {"error"}),
        ("torchdoctor check --fail-on=", {"--fail-on=error", "--fail-on=never"}, {"json"}),
        ("torchdoctor explain vcredist-", {"vcredist-too-old", "vcredist-missing"}, {"driver"}),
        ("torchdoctor check --only driver-t", {"driver-too-old"}, {"driver"}),
        ("torchdoctor check --skip driver,numpy-", {"driver,numpy-abi"}, {"numpy-abi"}),
        ("torchdoctor completion ", set(SHELLS), {"check"}),
        ("torchdoctor check 'open", set(), {"--format"}),
    ],
)
def test_what_may_come_next_is_offered(
    bin_folder: Path, line: str, some: set[str], none: set[str]
) -> None:
    found = offered(bin_folder, line)
    assert some <= found
    assert not none & found


def test_each_name_that_is_offered_can_be_explained(bin_folder: Path) -> None:
    found = offered(bin_folder, "torchdoctor explain ")
    assert found >= {name for check in all_checks().values() for name in check.names}


TYPED = {
    "bash": """
        source <(torchdoctor completion bash)
        COMP_LINE="torchdoctor check --form" COMP_POINT=24 COMP_TYPE=9 COMP_CWORD=2
        COMP_WORDS=(torchdoctor check --form)
        _python_argcomplete torchdoctor
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "fish": """
        torchdoctor completion fish | source
        complete -C "torchdoctor check --form"
    """,
    "zsh": """
        autoload -U compinit && compinit -u -D
        source <(torchdoctor completion zsh)
        whence -w _python_argcomplete >/dev/null && print -r -- --format
        [[ ${_comps[torchdoctor]} == _python_argcomplete ]] || print missing
    """,
}


@pytest.mark.parametrize("shell", TYPED)
def test_the_shell_itself_takes_it(bin_folder: Path, shell: str) -> None:
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"there is no {shell} here")
    options = ["-f"] if shell == "zsh" else []
    done = subprocess.run(
        [program, *options, "-c", TYPED[shell]],
        env={**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "--format" in done.stdout, done.stderr
    assert "missing" not in done.stdout


def test_powershell_gets_a_completer(bin_folder: Path) -> None:
    done = subprocess.run(
        [bin_folder / "torchdoctor", "completion", "powershell"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Register-ArgumentCompleter -Native -CommandName torchdoctor" in done.stdout
