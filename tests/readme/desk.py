"""What a reader of the README has before him: an environment, a text, snapshots, a script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import environments
from tests.environments import Environment
from tests.hang import make
from tests.readme import page
from tests.readme.page import ROOT
from tests.scenarios import standins
from tests.test_packaging import PROJECT
from tests.windows import disk

ERROR = ROOT / "tests" / "corpus" / "001-win1114-redist-1436" / "input.txt"
TOOLS = Path(pytest.__file__).parents[1]
START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from torchdoctor.cli import run; run()"
TRAIN = """
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_loader(rank=None, world_size=None):
    dataset = TensorDataset(torch.arange(37.0))
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank)
    return DataLoader(dataset, batch_size=4, sampler=sampler)
"""
SHUFFLED = """

def make_another(dataset):
    return DataLoader(dataset, shuffle=True, sampler=DistributedSampler(dataset))
"""


@dataclass(frozen=True)
class Desk:
    """A folder to work in, and the programs that are called by name there."""

    folder: Path
    environment: Environment

    @property
    def environ(self) -> dict[str, str]:
        """Return the environment of a shell in which the environment is active."""
        places = [self.folder / "bin", self.environment.python.parent]
        home = self.folder / "home"
        return environments.environ(home, places, VIRTUAL_ENV=str(self.environment.root))

    def run(self, command: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run *command* by bash in *folder* (default: the desk's own)."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=folder or self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )

    def copy(self, folder: Path) -> Path:
        """Make *folder* what the desk is, for one command; the environment stays the same."""
        apart = {str(self.folder / name) for name in ("env", "bin", "home")}
        shutil.copytree(
            self.folder,
            folder,
            ignore=lambda at, names: [n for n in names if os.path.join(at, n) in apart],  # noqa: PTH118
            symlinks=True,
        )
        (folder / "env").symlink_to(self.environment.root)
        return folder


def lay(folder: Path, environment: Environment) -> Desk:
    """Return a desk in *folder* with the files that the README speaks of, and *environment*."""
    desk = Desk(folder, environment)
    _programs(desk)
    (folder / "home").mkdir()
    shutil.copy(ERROR, folder / "error.log")
    (folder / "src").mkdir()
    for name, text in (("train.py", TRAIN + SHUFFLED), ("src/model.py", "import torch\n")):
        (folder / name).write_text(text, "utf-8")
    (folder / "classes.txt").write_text("\n".join(str(n % 10) for n in range(50_000)), "utf-8")
    (folder / "test_it.py").write_text("def test_plain():\n    pass\n", "utf-8")
    environments.wheel(folder, "x", "1.0", {"x.py": ""})
    (toml,) = (block.text for block in page.blocks() if block.language == "toml")
    (folder / "pyproject.toml").write_text(toml, "utf-8")
    disk.installation(folder / "C")
    _parts(folder / "X")
    _dumps(folder / "DIR")
    return desk


def filled(desk: Desk) -> Desk:
    """Return *desk* with what commands of the README leave for others to read."""
    for line in (
        "torchdoctor collect -o today.json && cp today.json yesterday.json",
        "torchdoctor collect --add error.log -o bundle.zip",
        "torchdoctor lock -o torchdoctor.lock",
        "for n in 1 2 3; do tr -d '\\n' < today.json; echo; done > fleet.jsonl",
    ):
        done = desk.run(line)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    # A machine on which something is wrong: what is read from a snapshot is that machine's.
    sick = Desk(desk.folder, environments.bare(desk.folder / "sick"))
    for name in ("snapshot.json", "sick.zip"):
        assert sick.run(f"torchdoctor collect --python sick -o {name}").returncode == 0
    return desk


def small(folder: Path) -> Environment:
    """Return an environment with a torch that imports and does nothing."""
    made = environments.bare(folder / "env")
    wheel = standins.tiny_torch(folder / "wheels", "2.13.0+cpu", requires=())
    environments.unpack(wheel, made.site)
    return made


def real(folder: Path) -> Environment:
    """Return an environment with a real torch, torchdoctor beside it."""
    made = environments.copy(folder / "env", whole=False)
    # As an editable install has it; what else is on that path is found after the environment's.
    (made.site / "torchdoctor.pth").write_text(f"{ROOT}\n{TOOLS}\n", "utf-8")
    return made


def _programs(desk: Desk) -> None:
    """Put the programs that commands begin with first on PATH."""
    python = desk.environment.python
    info = desk.folder / "installed" / "torchdoctor-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torchdoctor\nVersion: 0.1.0\n")
    points = PROJECT["project"]["entry-points"]["pytest11"]
    lines = ["[pytest11]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    found = os.pathsep.join(map(str, (info.parent, ROOT, TOOLS)))
    texts = {
        "torchdoctor": f"#!{sys.executable}\n{START}\n",
        "torchrun": f'#!/bin/sh\nexec {python} -m torch.distributed.run "$@"\n',
        "pip": f'#!/bin/sh\nexec {python} -m pip "$@"\n',
        "pytest": f'#!/bin/sh\nPYTHONPATH={found} exec {python} -m pytest "$@"\n',
    }
    own = desk.folder / ".venv" / "bin"
    for place in (desk.folder / "bin", own):
        place.mkdir(parents=True)
    for name, text in texts.items():
        (desk.folder / "bin" / name).write_text(text, "utf-8")
        (desk.folder / "bin" / name).chmod(0o755)
    (own / "torchdoctor").symlink_to(desk.folder / "bin" / "torchdoctor")


def _parts(root: Path) -> None:
    """Put the parts of a Windows below *root*, each where only an option finds it."""
    disk.installation(root)
    (root / "Windows" / "System32").rename(root / "sys")
    (root / "Python311").rename(root / "py")
    (root / "java" / "bin").mkdir(parents=True)


def _dumps(folder: Path) -> None:
    """Write what three ranks of a job that hangs have left: one calls with another size."""
    folder.mkdir()
    for rank in range(3):
        last = make.call(3, size=(7,) if rank == 1 else (5,), state="started")
        dump = make.raw([*make.agreed(2), last], groups={"0": (0, 1, 2)})
        (folder / f"nccl_trace_rank_{rank}").write_bytes(make.as_pickle(dump))
