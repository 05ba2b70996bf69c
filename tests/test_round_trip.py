"""What torchdoctor or collect_env says of a machine, pasted elsewhere, gets the same answer.

Real environments are looked at; the text is written as a user would get it; ``check`` reads it.
"""

from __future__ import annotations

import base64
import gc
import json
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.report import samples
from tests.scenarios import doctor, trial
from tests.scenarios.catalogue import SCENARIOS
from tests.scenarios.doctor import HAS_DRIVER, Answer, Scene
from torchdoctor import block, cli, expectation, inputs, plan
from torchdoctor.child import Run, Stream
from torchdoctor.facts import Expectation
from torchdoctor.model import DoctorError
from torchdoctor.reading import machine
from torchdoctor.reading.pasted import embedded
from torchdoctor.registry import all_checks
from torchdoctor.report import markdown
from torchdoctor.run import run
from torchdoctor.snapshot import LARGEST, Snapshot, dump

REPORTS = ("s7", "s11", "r3")
"""Scenes whose reports go round in the default tier: a plan of two steps, files, a warning."""
MORE_REPORTS = (
    *("s0", "s1", "s4", "s5", "s6", "s6 quiet", "s9", "s10", "s12", "s16", "s17", "r5", "r7"),
    *("r8", "r9", "t s11"),
)
PAGES = {
    "text 40": ("text", {"COLUMNS": "40"}),
    "text 80": ("text", {"COLUMNS": "80"}),
    "text 120": ("text", {"COLUMNS": "120"}),
    "text ASCII": ("text", {"COLUMNS": "80", "PYTHONIOENCODING": "ascii"}),
    "markdown": ("markdown", {}),
}
COLLECT_ENV = ("s5", "s17", "t s11")
"""Scenes whose collect_env goes round in the default tier."""
MORE_COLLECT_ENV = ("s0", "s7", "s8", "s9", "s12", "s13", "r2", "r9", "t2", "t9")
"""The others.

Left out, as torch does not import there, and collect_env neither: s1, s2, s3, s11, r4, r5, r8. Left
out, as the text does not hold what decides: s4 and r7 (what is in the working folder), r6 and s10
(that there are two copies of torch; pip lists one), r1 (which build torchvision is; its version
has no label), r3 (the leftover folder), s15 and s16 (that nvidia-smi failed, and how), s6 (what
was expected of the machine).
"""


def marked(few: tuple[str, ...], more: tuple[str, ...]) -> list[Any]:
    sample = [pytest.mark.lab, pytest.mark.sample]
    return [
        *(pytest.param(key, marks=sample) for key in few),
        *(pytest.param(key, marks=pytest.mark.lab) for key in more),
    ]


@contextmanager
def scene_of(key: str) -> Iterator[Scene]:
    scenario = SCENARIOS[key]
    if scenario.gpu_free and HAS_DRIVER:
        pytest.skip("needs a machine without an NVIDIA driver")
    folder = trial.place(f"round {key}")
    try:
        yield trial.set_up(scenario, folder, whole=False)
    except LookupError as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _no_copies_left() -> Iterator[None]:
    yield
    environments.drop_copies()


def page(scene: Scene, form: str, *arguments: str, **variables: str) -> str:
    """Return what ``torchdoctor check`` prints of *scene* in the format *form*."""
    done = subprocess.run(
        doctor.command(scene, form, *arguments),
        cwd=scene.work,
        env=scene.environ(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout.decode()


def checked(path: Path) -> Answer:
    """Return the answer of ``torchdoctor check`` on the file *path*."""
    out = path.with_suffix(".json")
    code = cli.main(["check", str(path), "--format", "json", "--output", str(out)])
    gc.enable()  # which a process that ends soon can do without
    report = json.loads(out.read_text(encoding="utf-8"))
    return Answer(code, report, 0.0)


def checked_from_a_pipe(text: str) -> Answer:
    """Return the answer of ``torchdoctor check -`` on *text*."""
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "check", "-", "--format", "json"],
        cwd=environments.CHECKOUT,
        input=text.encode(),
        capture_output=True,
        check=False,
        timeout=300,
    )
    report = json.loads(done.stdout)
    assert "error" not in report, report["error"]
    return Answer(done.returncode, report, 0.0)


def first(answer: Answer) -> str | None:
    """Return the name of what is to be fixed first; where there is nothing, of the first note."""
    return next((f["name"] for f in (*answer.faults, *answer.findings)), None)


def rows(answer: Answer) -> list[tuple[str, str, str]]:
    return [(f["name"], f["severity"], f["confidence"]) for f in answer.findings]


# ---- our own reports of real environments -------------------------------------------------------


@pytest.mark.parametrize("key", marked(REPORTS, MORE_REPORTS))
def test_our_own_report_is_read_back(key: str, tmp_path: Path) -> None:
    with scene_of(key) as scene:
        arguments = SCENARIOS[key].arguments
        live = doctor.check(scene, *arguments)
        pages = {
            name: page(scene, form, *arguments, **variables)
            for name, (form, variables) in PAGES.items()
        }
    for name, text in pages.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text, encoding="utf-8")
        again = checked(path)
        assert first(again) == first(live), (name, text)
        if name == "markdown":
            assert rows(again) == rows(live)
            steps = [step["step"] for step in live.report["plan"]]
            assert [step["step"] for step in again.report["plan"]] == steps
            assert again.report["verdict"] == live.report["verdict"]
            assert again.report["after_plan"]["verdict"] == live.report["after_plan"]["verdict"]
        else:
            assert rows(again)[:1] == [row for row in rows(live) if row[0] == first(live)][:1]


def test_markdown_names_neither_user_nor_home(tmp_path: Path) -> None:
    environment = environments.bare(tmp_path / "env")
    scene = Scene(tmp_path, environment)
    home = tmp_path / "home" / "someone-special"
    home.mkdir(parents=True)
    (home / "work").mkdir()
    scene.variables.update(HOME=str(home), USER="someone-special")
    scene.stay_in(str(home / "work"))
    text = page(scene, "markdown")
    assert "torch-not-installed" in text
    assert "-----BEGIN TORCHDOCTOR SNAPSHOT" in text
    shown, (snapshot,) = embedded.take(text, "t")
    assert snapshot.redacted
    for content in (shown, dump(snapshot)):
        assert "someone-special" not in content


@pytest.mark.parametrize("words", [["cuda"], ["cuda>=12.6", "gpus>=2"], ["cpu"], []])
def test_what_was_expected_of_a_machine_goes_along(words: list[str]) -> None:
    expected = expectation.read(words)
    kept = expectation.kept({"expect": list(expectation.words(expected))})
    assert kept == expected


@pytest.mark.parametrize("said", [None, "cuda", ["/etc/passwd"], [5], ["cuda", "cpu"], {}])
def test_an_expectation_that_is_none_is_left_out(said: object) -> None:
    assert expectation.kept({"expect": said}) == Expectation()


# ---- collect_env in real environments -----------------------------------------------------------


@pytest.mark.parametrize("key", marked(COLLECT_ENV, MORE_COLLECT_ENV))
def test_collect_env_leads_to_the_same_first_finding(key: str) -> None:
    with scene_of(key) as scene:
        arguments = SCENARIOS[key].arguments
        live = doctor.check(scene, *arguments)
        done = subprocess.run(
            [str(scene.environment.python), "-m", "torch.utils.collect_env"],
            cwd=scene.work,
            env=scene.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
    text = done.stdout.decode(errors="replace")
    assert "PyTorch version" in text, text
    again = checked_from_a_pipe(text)
    if not live.faults:
        assert again.faults == [], text
        return
    assert first(again) == first(live), text


# ---- the snapshot in a text ---------------------------------------------------------------------


def snapshot(text: str = "Linux") -> Snapshot:
    return Snapshot(
        "2026-11-29T14:28:44Z",
        {"host": Run(("x",), "answered", 0, stdout=Stream(text, len(text)), data={"a": [1]})},
        {"import_torch": True},
        redacted=True,
    )


MANGLED: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "quoted twice": lambda text: "\n".join(f"> > {line}" for line in text.split("\n")),
    "quoted, no blank": lambda text: "\n".join(f">{line}" for line in text.split("\n")),
    "indented": lambda text: "\n".join(f"    {line}" for line in text.split("\n")),
    "fenced": lambda text: f"```\n{text}```\n",
    "wrapped": lambda text: "\n".join(
        line[i : i + 60] for line in text.split("\n") for i in range(0, len(line) or 1, 60)
    ),
    "in prose": lambda text: f"Hello,\n\nhere it is:\n{text}\nThanks, me\n",
    "escaped": lambda text: text.replace("+", "&#43;").replace("=", "&#x3D;"),
    "trailing blanks": lambda text: text.replace("\n", "  \n"),
    "coloured": lambda text: "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n")),
}


@pytest.mark.parametrize("how", MANGLED)
def test_a_snapshot_is_found_in_a_text(how: str) -> None:
    given = snapshot("\n".join(f"line {n} {n * n}" for n in range(300)))
    rest, found = embedded.take(MANGLED[how](block.wrap(given)), "t")
    assert found == (given,)
    assert embedded.damage(rest) == ()
    assert "BEGIN" not in rest


def test_the_prose_around_a_snapshot_still_counts(tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    error = "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory"
    path.write_text(f"It says\n\n{block.wrap(snapshot())}\n```\n{error}\n```\n", encoding="utf-8")
    taken = inputs.read([str(path)])
    assert {"host", f"text {path}"} == set(taken.probes)
    facts = machine.read(taken, Expectation())
    assert isinstance(facts.symptoms, tuple)
    assert any("libcudnn.so.9" in symptom.text for symptom in facts.symptoms)


def test_a_text_of_another_machine_is_said_beside_a_snapshot(tmp_path: Path) -> None:
    here = "{}.{}".format(*sys.version_info)
    snap, alike, other = (tmp_path / name for name in ("s.json", "alike.log", "other.log"))
    assert cli.main(["collect", "--no-import", "-o", str(snap), "--python", sys.executable]) == 0
    gc.enable()  # which a process that ends soon can do without
    alike.write_text(f"Platform: Linux\nPython version: {here}\n", encoding="utf-8")
    other.write_text(
        'File "C:\\app\\main.py", line 1\nPython version: 3.4.1\n'
        "OSError: [WinError 1114] A dynamic link library (DLL) initialization routine failed.\n",
        encoding="utf-8",
    )
    both = [
        machine.read(inputs.read([str(snap), str(log)]), Expectation()) for log in (alike, other)
    ]
    said = [[r for r in facts.remarks if "another machine" in r] for facts in both]
    assert said[0] == []
    assert [r.partition(":")[0] for r in said[1]] == ["platform.system", "interpreter.version"]


def test_the_same_snapshot_twice_is_one_and_another_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "thread.txt"
    once = block.wrap(snapshot())
    path.write_text(once + MANGLED["quoted"](once), encoding="utf-8")
    assert "host" in inputs.read([str(path)]).probes
    path.write_text(once + block.wrap(snapshot("another")), encoding="utf-8")
    with pytest.raises(DoctorError, match="second snapshot"):
        inputs.read([str(path)])


def _damaged() -> dict[str, str]:
    whole = block.wrap(snapshot("\n".join(f"{n * 7919}" for n in range(900))))
    rows = whole.splitlines()
    bomb = block.wrap(snapshot("0" * (LARGEST + 100)))
    return {
        "a row is missing": "\n".join([*rows[:3], *rows[4:]]),
        "a letter is another": whole.replace(rows[5], rows[5][:-1] + "AB"[rows[5][-1] == "A"]),
        "cut off": "\n".join(rows[:8]),
        "cut within": "\n".join([*rows[:8], rows[-1]]),
        "rubbish in it": "\n".join([*rows[:4], "what is this?", *rows[4:]]),
        "no schema": whole.replace(" torchdoctor.snapshot/1", ""),
        "nothing in it": "\n".join([rows[0], rows[-1]]),
        "another schema": _of_schema_9(),
        "a bomb": bomb,
    }


def _of_schema_9() -> str:
    raw = dump(snapshot()).replace("torchdoctor.snapshot/1", "torchdoctor.snapshot/9")
    packed = base64.b64encode(zlib.compress(raw.encode())).decode()
    return f"{block.BEGIN} torchdoctor.snapshot/9-----\n{packed}\n{block.END}\n"


@pytest.mark.parametrize("how", _damaged())
def test_a_damaged_snapshot_is_said_in_one_line(how: str, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(f"Hello\n\n{_damaged()[how]}\nPyTorch version: 2.4.0\n", encoding="utf-8")
    facts = machine.read(inputs.read([str(path)]), Expectation())
    (remark,) = facts.remarks
    assert "snapshot" in remark
    assert "\n" not in remark
    alone = tmp_path / "alone.txt"
    alone.write_text(_damaged()[how], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "check", str(alone)],
        cwd=environments.CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "snapshot" in done.stderr


def test_a_report_whose_snapshot_is_damaged_is_still_read() -> None:
    text = markdown.render(samples.broken()) + "\n" + _damaged()["a row is missing"]
    facts = machine.read(inputs.of_text(text), Expectation())
    names = [f.name for f in plan.findings_of(run(all_checks(), facts))]
    assert names[0] == "vcredist-too-old"
    assert len(facts.remarks) == 1


def test_a_snapshot_in_a_long_log_is_found(tmp_path: Path) -> None:
    given = snapshot("\n".join(f"{n * 7919}" for n in range(3000)))
    noise = "".join(f"{n} nothing to see here\n" for n in range(200_000))
    path = tmp_path / "log.txt"
    path.write_text(noise + block.wrap(given) + noise, encoding="utf-8")
    assert inputs.read([str(path)]).probes["host"] == given.probes["host"]
