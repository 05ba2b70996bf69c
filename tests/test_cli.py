"""The command line keeps its contract: exit codes, one-line errors, JSON in every case."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

import torchdoctor
from tests import environments
from tests.test_child import alive
from torchdoctor.snapshot import LARGEST

ROOT = Path(__file__).parents[1]
SCHEMA = json.loads((ROOT / "torchdoctor" / "report.schema.json").read_text("utf-8"))


class Ran:
    """What one command printed, and its exit code."""

    def __init__(self, *words: str, cwd: Path, stdin: bytes = b"", **environ: str) -> None:
        kept = {k: v for k, v in os.environ.items() if k not in {"VIRTUAL_ENV", "CONDA_PREFIX"}}
        done = subprocess.run(
            [sys.executable, "-m", "torchdoctor", *words],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env=kept | {"PYTHONPATH": str(ROOT)} | environ,
            check=False,
        )
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8", "replace")
        self.err = done.stderr.decode("utf-8", "replace")

    @property
    def json(self) -> dict[str, object]:
        document: dict[str, object] = json.loads(self.out)
        jsonschema.validate(document, SCHEMA)
        return document

    @property
    def complaint(self) -> str:
        """Return the one line on standard error."""
        assert self.code == 2, self.out + self.err
        assert self.out == ""
        (line,) = self.err.strip().splitlines()
        assert "Traceback" not in line
        return line


def test_the_version_is_printed(tmp_path: Path) -> None:
    ran = Ran("--version", cwd=tmp_path)
    assert (ran.code, ran.out) == (0, f"torchdoctor {torchdoctor.__version__}\n")


def test_no_verb_is_wrong_usage_and_shows_the_help(tmp_path: Path) -> None:
    ran = Ran(cwd=tmp_path)
    assert ran.code == 2
    assert "check" in ran.out


@pytest.mark.parametrize("verb", ["check", "collect", "explain", "list"])
def test_every_verb_has_help(verb: str, tmp_path: Path) -> None:
    ran = Ran(verb, "--help", cwd=tmp_path)
    assert ran.code == 0
    assert f"torchdoctor {verb}" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--fail-on", "sometimes"], "sometimes"),
        (["check", "--nonsense"], "--nonsense"),
        (["check", "--timeout", "soon"], "soon"),
        (["check", "--timeout", "-1"], "-1"),
        (["check", "--only", "no-such-check"], "no-such-check"),
        (["check", "--only", "torch-file"], "did you mean torch-files?"),
        (["check", "--expect", "quantum"], "quantum"),
        (["check", "--expect", "cuda", "--expect", "cpu"], "exclude each other"),
        (["check", "--expect", "gpus"], "gpus"),
        (["explain", "no-such-thing"], "no-such-thing"),
        (["chekc"], "chekc"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    words: list[str], said: str, tmp_path: Path
) -> None:
    assert said in Ran(*words, cwd=tmp_path).complaint


def test_wrong_usage_is_told_in_json_when_json_was_asked_for(tmp_path: Path) -> None:
    ran = Ran("check", "--format", "json", "--only", "no-such-check", cwd=tmp_path)
    assert ran.code == 2
    error = ran.json["error"]
    assert isinstance(error, dict)
    assert error["kind"] == "usage"


def bad_inputs(folder: Path) -> dict[str, str]:
    """Write every kind of input that is none, and return name -> what is said of it."""
    (folder / "empty.json").write_bytes(b"")
    (folder / "rubbish.bin").write_bytes(bytes(range(256)) * 8)
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (folder / "notes.json").write_text("hello\n")
    (folder / "other.json").write_text('{"a": 1}')
    (folder / "newer.json").write_text('{"schema": "torchdoctor.snapshot/9"}')
    (folder / "cut.json").write_text('{"schema": "torchdoctor.snapshot/1", "pro')
    (folder / "folder").mkdir()
    with (folder / "huge.json").open("wb") as file:
        file.write(b'{"schema": "torchdoctor.snapshot/1"')
        file.truncate(200 * 1024 * 1024)
    return {
        "missing.json": "cannot be read",
        "empty.json": "is empty",
        "rubbish.bin": "not a text",
        "picture.png": "a picture",
        "notes.json": "nothing that torchdoctor can use",
        "other.json": "nothing that torchdoctor can use",
        "newer.json": "newer torchdoctor",
        "cut.json": "cut off",
        "folder": "is a folder",
        "huge.json": f"at most {LARGEST >> 20} MB",
    }


def test_bad_input_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    for name, said in bad_inputs(tmp_path).items():
        complaint = Ran("check", name, cwd=tmp_path).complaint
        assert name in complaint
        assert said in complaint, complaint


def test_bad_input_on_standard_input_is_one_line(tmp_path: Path) -> None:
    assert "standard input" in Ran("check", "-", cwd=tmp_path, stdin=b"").complaint


def bad_interpreters(folder: Path) -> dict[str, str]:
    (folder / "text").write_text("no program")
    (folder / "empty").mkdir()
    scripts = {
        "silent": "#!/bin/sh\nexit 0\n",
        "failing": "#!/bin/sh\necho broken >&2\nexit 7\n",
        "echo": "#!/bin/sh\ncat\n",
        "slow": "#!/bin/sh\nsleep 600\n",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        "./nothing": "does not exist",
        "./text": "not executable",
        "./empty": "folder without a Python",
        "./silent": "does not answer as a Python",
        "./failing": "broken",
        "./echo": "does not answer as a Python",
        "./slow": "did not answer within 2 s",
    }


def test_an_interpreter_that_is_none_is_one_line(tmp_path: Path) -> None:
    for name, said in bad_interpreters(tmp_path).items():
        ran = Ran("check", "--python", name, "--timeout", "2", "--no-import", cwd=tmp_path)
        assert name.removeprefix("./") in ran.complaint
        assert said in ran.complaint, ran.complaint


def test_an_interpreter_that_prints_before_it_answers_is_read_all_the_same(tmp_path: Path) -> None:
    talking = tmp_path / "python"
    talking.write_text(
        f'#!/bin/sh\necho "hello, {{world"\necho noise >&2\nexec {sys.executable} "$@"\n'
    )
    talking.chmod(0o755)
    ran = Ran("check", "--python", str(talking), "--no-import", "--format", "json", cwd=tmp_path)
    assert ran.code in (0, 1)
    target = ran.json["target"]
    assert isinstance(target, dict)
    assert target["python"] == ".".join(map(str, sys.version_info[:3]))


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    ran = Ran("check", "--no-import", "--format", "json", "-o", "report.json", cwd=tmp_path)
    assert ran.code in (0, 1)
    assert ran.out == ""
    jsonschema.validate(json.loads((tmp_path / "report.json").read_text()), SCHEMA)
    ran = Ran("check", "--no-import", "-o", "no/such/folder/report.txt", cwd=tmp_path)
    assert ran.code == 2
    assert "cannot be written" in ran.err
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_snapshot_is_judged_as_the_machine_was(tmp_path: Path) -> None:
    live = Ran("check", "--no-import", "--format", "json", cwd=tmp_path)
    Ran("collect", "--no-import", "-o", "s.json", cwd=tmp_path)
    replayed = Ran("check", "s.json", "--format", "json", cwd=tmp_path)
    piped = Ran(
        "check", "-", "--format", "json", cwd=tmp_path, stdin=(tmp_path / "s.json").read_bytes()
    )

    def names(ran: Ran) -> list[object]:
        findings = ran.json["findings"]
        assert isinstance(findings, list)
        return [f["name"] for f in findings]

    assert names(live) == names(replayed) == names(piped)
    assert live.code == replayed.code
    target = replayed.json["target"]
    assert isinstance(target, dict)
    assert target["source"] == "snapshot"


def test_fail_on_decides_the_exit_code_and_the_format_does_not(tmp_path: Path) -> None:
    words = ("check", "--no-import", "--expect", "gpus>=99")
    for form in ("text", "json", "markdown"):
        assert Ran(*words, "--format", form, cwd=tmp_path).code == 1
        assert Ran(*words, "--format", form, "--fail-on", "never", cwd=tmp_path).code == 0


def test_strict_fails_with_3_when_something_could_not_be_told(tmp_path: Path) -> None:
    empty = (
        '{"schema": "torchdoctor.snapshot/1", "tool": {"name": "torchdoctor", "version": "0"}, '
        '"collected_at": "x", "redacted": false, "options": {}, "probes": {}}'
    )
    (tmp_path / "s.json").write_text(empty)
    assert Ran("check", "s.json", cwd=tmp_path).code == 0
    assert Ran("check", "s.json", "--strict", cwd=tmp_path).code == 3
    assert Ran("check", "s.json", "--format", "json", cwd=tmp_path).json["verdict"] == "unknown"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_it_and_every_child(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    marker = f"sleeps-{os.urandom(8).hex()}"
    slow = tmp_path / "python"
    slow.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import time; time.sleep(600)' {marker}\n"
    )
    slow.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "torchdoctor", "check", "--python", str(slow)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_for(lambda: bool(alive(marker)))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err
    wait_for(lambda: not alive(marker))


@pytest.mark.parametrize(
    "work",
    [
        # Python lets go of what is raised in such a callback: it imports with one.
        "thing = Thing(); seen = weakref.ref(thing, sent); del thing; time.sleep(60)",
        "type('C', (), {'x': Thing()})",
    ],
    ids=["where nothing can be raised", "where another error is made of it"],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_is_not_lost(
    number: signal.Signals, code: int, work: str, tmp_path: Path
) -> None:
    script = f"""
import os, sys, time, types, weakref
from torchdoctor import cli

def sent(*_):
    os.kill(os.getpid(), {int(number)})
    sum(range(1000))  # here it is heard

class Thing:
    __set_name__ = sent

def execute(_args):
    {work}
    return 0

kind = types.SimpleNamespace(HELP="", configure=lambda parser: None, execute=execute)
sys.modules["torchdoctor.commands.check"] = kind
sys.argv = ["torchdoctor", "check"]
cli.run()
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_pipe_that_closes_early_is_no_error(tmp_path: Path) -> None:
    shell = f"{sys.executable} -m torchdoctor list | head -n 1"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == ""


def test_a_console_of_another_code_page_shows_the_report(tmp_path: Path) -> None:
    for encoding in ("ascii", "gbk", "cp1252"):
        ran = Ran("check", "--no-import", cwd=tmp_path, PYTHONIOENCODING=encoding)
        assert ran.code in (0, 1), ran.err
        assert ran.out


@pytest.mark.skipif(sys.platform != "linux", reason="they are those of Linux")
def test_shared_objects_are_read_by_an_installed_command_unless_time_matters(
    tmp_path: Path,
) -> None:
    python = environments.copy(tmp_path / "env", whole=False).python
    looks = {"quick": ("--no-import",), "full": ("--no-import", "--verify", "full")}
    for name, words in looks.items():
        where = ("--python", str(python), "-o", f"{name}.json")
        assert Ran("collect", *where, *words, cwd=tmp_path).code == 0
    probes = {name: json.loads((tmp_path / f"{name}.json").read_text())["probes"] for name in looks}
    assert "linux files" not in probes["quick"]
    # -I -S: what an editable install adds to the path by a hook is not there for a child.
    assert probes["full"]["linux files"]["data"]["errors"] == {}
    assert "record" in probes["full"]["linux files"]["data"]


def test_modules_in_the_working_folder_are_not_taken_for_pythons_own(tmp_path: Path) -> None:
    for name in ("random", "argparse", "json", "torch", "rich"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the working folder')")
    assert Ran("list", cwd=tmp_path).code == 0


def test_an_environment_without_pip_gets_commands_that_bring_it(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "v"], cwd=tmp_path, check=True)
    ran = Ran("check", "--python", "v", "--no-import", "--format", "json", cwd=tmp_path)
    assert ran.code == 1
    plan = ran.json["plan"]
    assert isinstance(plan, list)
    first, second = plan[0]["commands"]["bash"]
    assert first.endswith("-m ensurepip --upgrade")
    assert "-m pip install torch==" in second
