"""What a step says to type can be typed: in each shell it is the same words, well quoted.

The steps are those of every report of the corpus, of every input that was rebuilt, and of the
facts on which the checks' own tests find something.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from tests import plan_worlds
from tests.corpus_score import cases
from tests.rebuilt_texts import inputs as rebuilt
from torchdoctor import inputs, plan, shells
from torchdoctor.facts import Expectation, Facts, Platform
from torchdoctor.model import Step
from torchdoctor.reading import machine
from torchdoctor.run import run

SHELLS = ("bash", "powershell", "cmd")
Given = tuple[str, str, Step]
"""Where a step comes from, the system there ("" is unknown), and the step."""


def of_texts(texts: Iterator[tuple[str, str]]) -> Iterator[Given]:
    for name, text in texts:
        facts = machine.read(inputs.of_text(text), Expectation())
        findings = plan.findings_of(run(plan_worlds.CHECKS, facts))
        yield from ((name, _system(facts), step) for f in findings for step in f.steps)


def _system(facts: Facts) -> str:
    return facts.platform.system if isinstance(facts.platform, Platform) else ""


@cache
def of_corpus() -> tuple[Given, ...]:
    return tuple(of_texts((case.id, case.file.read_text("utf-8")) for case in cases()))


@cache
def of_rebuilt() -> tuple[Given, ...]:
    return tuple(of_texts((one.cause, one.text) for one in rebuilt()))


@cache
def of_tests() -> tuple[Given, ...]:
    found: list[Given] = []
    for name, known in plan_worlds.faults():
        facts = Facts(**known)  # type: ignore[arg-type]
        check = plan_worlds.CHECKS[name]
        for finding in plan.findings_of(run({name: check}, facts)):
            found += [(name, _system(facts), step) for step in finding.steps]
    return tuple(found)


SOURCES = pytest.mark.parametrize(
    "given",
    [
        of_corpus,
        pytest.param(of_rebuilt, marks=pytest.mark.slow),
        pytest.param(of_tests, marks=pytest.mark.slow),
    ],
    ids=["corpus", "rebuilt", "tests"],
)


def lines(given: tuple[Given, ...], shell: str) -> list[str]:
    """Return every line for *shell*, once."""
    return list(dict.fromkeys(x for *_, step in given for x in getattr(step.commands, shell)))


# ---- words, as each shell reads them -----------------------------------------------------------


def powershell_words(line: str) -> list[str] | None:
    """Return the words of a call of a program; None where a character is read as something else."""
    words = []
    for token in _joined(line.removeprefix("& "), quotes="'\""):
        if token[0] == "'":
            words.append(token[1:-1].replace("''", "'"))
        elif re.search(r"[`$(){};|&<>#@\"']", token):
            return None
        else:
            words.append(token)
    return words


def cmd_words(line: str) -> list[str] | None:
    """Return the words, as cmd and then the program read them; None where cmd reads more."""
    words = []
    for token in _joined(line, quotes='"'):
        if token[0] == '"':
            inside = token[1:-1]
            if '"' in inside or re.search(r"%\w+%", inside):
                return None
            words.append(inside)
        elif re.search(r"[&|<>^()%\"]", token):
            return None
        else:
            words.append(token)
    return words


def _joined(line: str, quotes: str) -> list[str]:
    pattern = "|".join(rf"{q}(?:[^{q}]|{q}{q})*{q}" for q in quotes)
    return re.findall(rf"{pattern}|[^\s{quotes}]+", line)


WORDS = (
    "torch[opt]>=2.1,<3",
    r"C:\Program Files\a b\python.exe",
    "/home/me/it's here/python",
    "100%",
    "$HOME",
    "a&b",
    "(x86)",
    "^lo,docker",
    "a;b",
    "`whoami`",
    "--x=~=2.0",
    "==2.1.*",
    "!=2",
    "@file",
    "#1",
    "$(id)",
    "{a,b}",
    "",
)


def test_any_word_comes_through_in_bash() -> None:
    (line,) = shells.in_all([("printf", "%s\\n", *WORDS)]).bash
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == list(WORDS)


def test_any_word_comes_through_in_the_shells_of_windows() -> None:
    made = shells.in_all([("program", *WORDS)])
    assert powershell_words(made.powershell[0]) == ["program", *WORDS]
    assert cmd_words(made.cmd[0]) == ["program", *WORDS]
    for word in WORDS:  # a value is set to the letter, too
        assigned = shells.assign("NAME", word)
        assert assigned.powershell == ("$env:NAME = '" + word.replace("'", "''") + "'",)
        assert assigned.cmd[0] in (f"set NAME={word}", f'set "NAME={word}"')
        if re.search(r"[&|<>^()%\s]", word):
            assert '"' in assigned.cmd[0]


def test_the_readers_of_this_test_see_what_is_wrong() -> None:
    assert powershell_words("pip install torch>=2") is None
    assert cmd_words("pip install torch>=2") is None
    assert cmd_words('pip install "%PATH%"') is None
    assert powershell_words("pip install 'torch>=2'") == ["pip", "install", "torch>=2"]


# ---- every step --------------------------------------------------------------------------------


@SOURCES
def test_every_line_is_one_that_bash_can_read(given: object) -> None:
    assert callable(given)
    every = lines(given(), "bash")
    for line in every:
        assert "\n" not in line
        assert shlex.split(line), line
    said = subprocess.run(
        ["bash", "-n"], input="\n".join(every), capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stderr) == (0, ""), said.stderr


@SOURCES
def test_a_line_says_the_same_in_each_shell(given: object) -> None:
    assert callable(given)
    compared = 0
    for where, _, step in given():
        commands = step.commands
        if not len(commands.bash) == len(commands.powershell) == len(commands.cmd):
            continue
        for bash, powershell, cmd in zip(
            commands.bash, commands.powershell, commands.cmd, strict=True
        ):
            if _OF_SHELL.match(powershell):
                continue
            words = shlex.split(bash)
            assert powershell_words(powershell) == words, (where, step.name)
            assert cmd_words(cmd) == words, (where, step.name)
            compared += 1
    assert compared > 5


_OF_SHELL = re.compile(r"\$env:|[A-Z]\w+-\w+(?: |$)")
"""Lines that are the shell's own: variables and cmdlets."""


@SOURCES
def test_a_step_for_a_system_has_a_line_for_its_shells(given: object) -> None:
    assert callable(given)
    lacking = {
        (step.name, system)
        for _, system, step in given()
        if step.commands and not _can_be_typed(system, step)
    }
    assert not lacking


def _can_be_typed(system: str, step: Step) -> bool:
    commands = step.commands
    if system == "win32":
        return bool(commands.powershell and (commands.cmd or step.name in FOR_POWERSHELL))
    return not system or bool(commands.bash) or step.name in ON_WINDOWS


FOR_POWERSHELL = frozenset(
    (
        "enlarge-page-file",
        "exclude-torch-from-scan",
        "grant-access-to-torch",
        "install-media-foundation",
        "put-torch-dlls-on-path",
    )
)
"""Steps that nothing but PowerShell can do."""
ON_WINDOWS = frozenset(("convert-to-wsl2", "install-compiler"))
"""Steps for the Windows below a Linux, or that a message of a Windows program asks for."""


@SOURCES
def test_a_step_without_a_command_is_known_and_says_what_to_change(given: object) -> None:
    assert callable(given)
    silent = {step.name: step for *_, step in given() if not step.commands}
    assert not set(silent) - WITHOUT_COMMAND
    for step in silent.values():
        assert len(step.title.split()) > 3, step.title


WITHOUT_COMMAND = frozenset(
    (
        # A line of the script, which only its author finds.
        *("add-main-guard", "drop-shuffle", "fewer-workers", "find-unused-parameters"),
        *("import-torch-first", "init-process-group-first", "less-host-memory"),
        *("load-before-wrapping", "move-tensor-to-gpu", "prepare-before-init"),
        *("run-without-workers", "same-number-of-batches", "set-device", "shard-in-dataset"),
        *("share-the-data", "spawn-before-cuda", "strip-key-prefix", "use-gloo"),
        *("use-parameters-once", "bundle-the-dll", "build-mine-again"),
        # The options of a launcher, a pod or a container, whose command is not known.
        *("ask-gpus-per-node", "take-out-of-mesh", "enlarge-shm", "raise-memory-limit"),
        *("restart-container", "start-container-with-gpus", "raise-memlock", "mend-absent"),
        # A value that nobody here knows; the title says how it is found.
        *("set-gloo-socket-ifname", "set-master-addr", "set-nccl-socket-ifname"),
        "leave-out-of-arch-list",
        # A download page, a system that is not known, or one that is to be replaced.
        *("change-driver-for-p2p", "install-driver", "upgrade-driver", "start-fabric-manager"),
        *("upgrade-macos", "upgrade-libstdcxx", "use-a-glibc-system", "use-a-newer-system"),
        *("take-glibc-image", "pass-the-host-processor-through", "update-python-patch"),
        *("add-python-headers", "install-compiler"),
        *("use-newer-compiler", "use-older-compiler"),
        *("enlarge-page-file-for-program", "install-media-foundation", "allow-torch-dlls"),
        # Which package or which of its builds is not known.
        *("compile-extension-with-cuda", "compile-flash-attn", "install-triton"),
        *("mend-no-distributed", "use-own-environment"),
    )
)
"""Steps that no line does, wherever they are for: their title says what to change, and where."""
