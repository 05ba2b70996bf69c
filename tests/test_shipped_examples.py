"""What is shipped for CI works: the action's own steps, the hook, and the examples beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import environments
from tests.scenarios import standins
from torchdoctor import cli
from torchdoctor.commands import check
from torchdoctor.commands.parser import Parser

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / ".github" / "examples"
ACTION = yaml.safe_load((ROOT / ".github/actions/torchdoctor/action.yml").read_text("utf-8"))


class Job:
    """A job of GitHub Actions in which this action runs, as its runner would run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary, self.variables = folder / "summary.md", folder / "env"
        self.temp = folder / "temp"
        self.temp.mkdir()
        for file in (self.summary, self.variables):
            file.write_text("")

    def step(self, step: Mapping[str, Any], inputs: Mapping[str, str]) -> tuple[int, str]:
        def filled(match: re.Match[str]) -> str:
            return inputs.get(match[1], str(ACTION["inputs"][match[1]]["default"]))

        given = {
            k: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", filled, v) for k, v in step["env"].items()
        }
        told = dict(line.split("=", 1) for line in self.variables.read_text().splitlines())
        own = {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ENV": str(self.variables),
            "GITHUB_STEP_SUMMARY": str(self.summary),
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("VIRTUAL", "PYTHON"))}
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.folder,
            env=kept | own | told | given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Make a job in which torchdoctor is installed already: the checkout itself."""
    made = Job(tmp_path)
    program = tmp_path / "torchdoctor"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from torchdoctor.cli import run\nrun()\n"
    )
    program.chmod(0o755)
    made.variables.write_text(f"TORCHDOCTOR={program}\n")
    return made


def environment(folder: Path, *, broken: bool) -> str:
    made = environments.bare(folder / ("broken" if broken else "healthy"))
    code = "raise ImportError('libcudart.so.13: cannot open shared object file')" if broken else ""
    wheel = standins.tiny_torch(folder, "2.13.0+cpu", requires=(), code=code)
    environments.unpack(wheel, made.site)
    return str(made.python)


def test_a_broken_environment_fails_the_job_with_the_diagnosis_in_the_summary(job: Job) -> None:
    given = {"python": environment(job.folder, broken=True)}
    code, said = job.step(ACTION["runs"]["steps"][1], given)
    assert code == 1, said
    assert "::error title=" in said
    summary = job.summary.read_text("utf-8")
    assert summary.startswith("**torchdoctor")
    assert "broken" in summary
    assert "libcudart" in summary


def test_its_healthy_twin_passes_and_fails_where_more_is_expected(job: Job) -> None:
    given = {"python": environment(job.folder, broken=False)}
    step = ACTION["runs"]["steps"][1]
    code, said = job.step(step, given)
    assert code == 0, said
    assert "::error" not in said
    assert "healthy" in job.summary.read_text("utf-8")
    code, said = job.step(step, {**given, "expect": "cuda gpus>=2"})
    assert code == 1
    assert "::error title=" in said
    assert job.step(step, {**given, "expect": "cuda", "fail-on": "never"})[0] == 0


def test_a_wrong_input_is_told(job: Job) -> None:
    code, said = job.step(ACTION["runs"]["steps"][1], {"python": str(job.folder / "gone")})
    assert code == 2
    assert "does not exist" in said


@pytest.mark.network
def test_the_action_installs_what_it_runs(tmp_path: Path) -> None:
    job = Job(tmp_path)
    code, said = job.step(ACTION["runs"]["steps"][0], {"source": str(ROOT)})
    assert code == 0, said
    given = {"python": environment(tmp_path, broken=True)}
    code, said = job.step(ACTION["runs"]["steps"][1], given)
    assert code == 1, said


def test_each_input_of_the_action_is_used_and_described() -> None:
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(ACTION["runs"])))
    assert used == set(ACTION["inputs"])
    assert all(row["description"] for row in ACTION["inputs"].values())


def commands(text: str) -> list[list[str]]:
    """Return the arguments of each torchdoctor check in *text*."""
    words = re.sub(r'["\[\],]', " ", text)
    lines = re.findall(r"(?:\btorchdoctor|\$doctor) +check((?: +[^\s|&;)]+)*)", words)
    return [line.replace("2>&1", "").split() for line in lines]


@pytest.mark.parametrize("file", sorted(EXAMPLES.iterdir()), ids=lambda f: f.name)
def test_each_example_gives_options_that_exist(file: Path) -> None:
    text = file.read_text("utf-8")
    found = commands(text)
    assert found
    parser = Parser()
    check.configure(parser)
    for words in found:
        parser.parse_args([w for w in words if not w.startswith("${")] if "$" in text else words)
    if file.suffix in {".yaml", ".yml"}:
        assert yaml.safe_load(text)


def test_the_prolog_speaks_only_where_something_is_wrong(job: Job, tmp_path: Path) -> None:
    doctor = job.variables.read_text().strip().partition("=")[2]
    prolog = EXAMPLES / "slurm-prolog.sh"
    environ = os.environ | {"TORCHDOCTOR": doctor, "VIRTUAL_ENV": ""}
    healthy = environment(tmp_path, broken=False)
    environ["PATH"] = f"{Path(healthy).parent}{os.pathsep}{environ['PATH']}"
    environ["VIRTUAL_ENV"] = str(Path(healthy).parents[1])
    said = [
        subprocess.run(
            ["bash", str(prolog)],
            env=environ | {"TORCHDOCTOR_EXPECT": expect},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for expect in ("cpu", "cuda")
    ]
    assert said[0] == ""
    assert said[1].startswith("print torchdoctor on ")


def test_the_hook_runs_the_verb_on_the_files_it_is_given(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    program, verb = hook["entry"].split()
    assert (program, verb in cli.VERBS) == ("torchdoctor", True)
    file = tmp_path / "train.py"
    file.write_text(
        "from torch.utils.data import DataLoader\n"
        "from torch.utils.data.distributed import DistributedSampler\n"
        "def make(d):\n    return DataLoader(d, shuffle=True, sampler=DistributedSampler(d))\n"
    )
    words = [sys.executable, "-m", "torchdoctor", verb, str(file)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "sampler-and-shuffle" in done.stdout
