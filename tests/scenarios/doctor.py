"""Run the doctor on a scene as a user would, and do what its plan says."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import environments
from tests.environments import CHECKOUT, Environment
from tests.scenarios import index

# ``python -m`` would need the checkout as the working folder or on PYTHONPATH, and both are part
# of what is examined.
START = f"import sys; sys.path[0] = {str(CHECKOUT)!r}; from torchdoctor.cli import run; run()"
HAS_DRIVER = Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi") is not None
"""Whether this machine has an NVIDIA driver of its own, beside the ones that scenes pretend."""
SHELL_WORDS = frozenset({"rm", "mv", "unset", "export", "cd", "mkdir", "conda", "hash", "uv"})
"""What a plan may run in a scene, beside the scene's own interpreter."""


@dataclass(frozen=True)
class Scene:
    """A machine made for one test: an environment, a working folder, a home, a PATH."""

    folder: Path
    environment: Environment
    variables: dict[str, str] = field(default_factory=dict)
    mark: str = field(default_factory=lambda: f"SCENE_{uuid.uuid4().hex}")

    _here: list[Path] = field(default_factory=list)

    @property
    def work(self) -> Path:
        """Return the working folder that the doctor is started in."""
        return self._here[-1] if self._here else _made(self.folder / "work")

    def stay_in(self, folder: str) -> None:
        """Make *folder*, relative to the working folder so far, the working folder."""
        self._here.append(self.work / folder)

    @property
    def home(self) -> Path:
        """Return the home folder."""
        return _made(self.folder / "home")

    @property
    def bin(self) -> Path:
        """Return the folder that comes first on PATH."""
        return _made(self.folder / "bin")

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a process on this machine."""
        own = {"TMPDIR": str(_made(self.folder / "tmp")), self.mark: "1"}
        return environments.environ(self.home, [self.bin], **own, **self.variables, **more)

    def left(self) -> list[tuple[int, str]]:
        """Return the processes that were started on this machine and are still there."""
        return list(environments.marked(self.mark))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass(frozen=True)
class Answer:
    """One run of the doctor."""

    code: int
    report: dict[str, Any]
    seconds: float
    stderr: str = ""

    @property
    def findings(self) -> list[dict[str, Any]]:
        """Return all findings, the first to fix first."""
        return list(self.report["findings"])

    @property
    def faults(self) -> list[dict[str, Any]]:
        """Return the findings above a note."""
        return [finding for finding in self.findings if finding["severity"] != "note"]

    @property
    def unexplained(self) -> list[str]:
        """Return the names of the faults that no other fault explains."""
        names = {fault["name"] for fault in self.faults}
        return [f["name"] for f in self.faults if not names & set(f["because_of"])]

    @property
    def commands(self) -> list[str]:
        """Return the plan's command lines for bash, in order."""
        return [line for step in self.report["plan"] for line in step["commands"]["bash"]]

    def get(self, name: str) -> dict[str, Any]:
        """Return the finding called *name*.

        Raises:
            KeyError: there is none; says which there are.

        """
        for finding in self.findings:
            if finding["name"] == name:
                return finding
        raise KeyError(f"{name}; found: {[f['name'] for f in self.findings]}")

    def evidence(self, name: str) -> str:
        """Return what the finding called *name* says and shows, as one text."""
        finding = self.get(name)
        shown = [f"{e['fact']}: {e['value']} ({e['from']})" for e in finding["evidence"]]
        return "\n".join([finding["summary"], *shown])

    def outcomes(self) -> dict[str, str]:
        """Return check -> outcome."""
        return {check["name"]: check["outcome"] for check in self.report["checks"]}


def command(scene: Scene, form: str, *arguments: str) -> list[str]:
    """Return the command line that checks *scene* and reports in the format *form*."""
    words = [sys.executable, "-c", START, "check", "--format", form]
    words += ["--python", str(scene.environment.python), *arguments]
    if HAS_DRIVER and "--expect" not in arguments:
        words += ["--expect", "cpu"]  # the builds in scenes are CPU builds, and meant to be
    return words


def check(scene: Scene, *arguments: str, deadline: float = 300) -> Answer:
    """Run ``torchdoctor check`` on *scene* and return its answer.

    Raises:
        AssertionError: it printed no JSON, or its exit code is not that of its findings.

    """
    line = command(scene, "json", *arguments)
    return _answer(line, scene.work, scene.environ(), deadline)


def elsewhere(scene: Scene, *arguments: str, deadline: float = 300) -> Answer:
    """Run ``torchdoctor collect`` on *scene*, and ``check`` on its bundle in another place.

    Raises:
        AssertionError: one of them failed.

    """
    at = arguments.index("--expect") if "--expect" in arguments else len(arguments)
    looked, expected = arguments[:at], arguments[at : at + 2]
    folder = _made(scene.folder / "another machine")
    bundle = folder / "sent.zip"
    words = [sys.executable, "-c", START, "collect", "--output", str(bundle)]
    words += ["--python", str(scene.environment.python), *looked, *arguments[at + 2 :]]
    done = subprocess.run(
        words,
        cwd=scene.work,
        env=scene.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=deadline,
    )
    assert done.returncode == 0, done.stderr
    words = [sys.executable, "-c", START, "check", "--format", "json", str(bundle)]
    if HAS_DRIVER and not expected:
        expected = ("--expect", "cpu")
    return _answer([*words, *expected], folder, environments.environ(folder), deadline)


def _answer(line: list[str], folder: Path, environ: dict[str, str], deadline: float) -> Answer:
    start = time.monotonic()
    done = subprocess.run(
        line,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=deadline,
    )
    seconds = time.monotonic() - start
    stderr = done.stderr.decode(errors="replace")
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(
            f"no JSON (exit {done.returncode}): {done.stdout[:500]!r}\n{stderr}"
        ) from None
    answer = Answer(done.returncode, report, seconds, stderr)
    crashed = [c for c in report.get("checks", ()) if c["outcome"] == "crashed"]
    assert not crashed, crashed
    assert "error" not in report, report["error"]
    errors = any(finding["severity"] == "error" for finding in answer.findings)
    assert done.returncode == (1 if errors else 0), (done.returncode, answer.unexplained, stderr)
    return answer


def local(line: str, address: str) -> str:
    """Return the command *line* with the public index of torch replaced by ours at *address*."""
    return line.replace(index.PUBLIC, f"{address}/whl/")


def allowed(line: str, scene: Scene) -> bool:
    """Tell whether *line* may be run: our interpreter or a plain tool, on the scene's own paths."""
    words = shlex.split(line, comments=True)
    if not words:
        return True
    own = str(scene.folder)
    paths = [word for word in words if word.startswith("/") or ".." in word]
    inside = all(os.path.normpath(word).startswith(own) for word in paths)
    return inside and (words[0] in SHELL_WORDS or words[0] == str(scene.environment.python))


def carry_out(scene: Scene, lines: Iterable[str], wheels: Callable[[], Iterable[Path]]) -> str:
    """Run command *lines* one after another in bash with a local index; return what they printed.

    Raises:
        AssertionError: a line is not allowed here, or fails.

    """
    said = ""
    with index.serve(wheels) as address:
        own = {
            "PIP_INDEX_URL": f"{address}/pypi/",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INPUT": "1",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_COMPILE": "1",  # it takes longer than all the rest
            "UV_DEFAULT_INDEX": f"{address}/pypi/",
            "UV_CACHE_DIR": str(scene.folder / "uv cache"),
            "UV_LINK_MODE": "copy",
        }
        for line in lines:
            assert allowed(line, scene), f"not run: {line}"
            done = subprocess.run(
                ["bash", "-c", local(line, address)],
                cwd=scene.work,
                env=scene.environ(**own),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=900,
            )
            said += f"$ {line}\n{done.stdout}"
            assert done.returncode == 0, said
    return said


def import_torch(scene: Scene) -> None:
    """Import torch in the scene's interpreter and folder.

    Raises:
        AssertionError: it failed.

    """
    done = subprocess.run(
        [str(scene.environment.python), "-c", "import torch"],
        cwd=scene.work,
        env=scene.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
