"""``torchdoctor shards --live``: what the ranks of a real job get, under torchrun."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.shards.test_command import LOADERS
from tests.test_cli import Ran
from tests.training import jobs

READ = LOADERS.replace(
    'raise RuntimeError("indices are enough")', "return torch.tensor([index * 2])"
).replace(
    'dist.init_process_group("nccl")\n    torch.cuda.set_device(dist.get_rank())',
    'dist.init_process_group("gloo")',
)
MORE = """
def workers(rank, world_size):
    sampler = DistributedSampler(Data(), world_size, rank)
    return DataLoader(Data(), 5, sampler=sampler, num_workers=2)

def prepared(**more):
    from accelerate import Accelerator, DataLoaderConfiguration
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**more))
    return accelerator.prepare(DataLoader(Data(), 5, shuffle=True))

def dispatched():
    return prepared(dispatch_batches=True)
"""


def live(name: str, folder: Path, *path: Path) -> dict[str, Any]:
    """Return rank 0's report on a loader of train.py in *folder*."""
    (folder / "train.py").write_text(READ + MORE)
    torchrun = [jobs.python(), "-B", "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    ours = [sys.executable, "-m", "torchdoctor", "shards", "--live", f"train.py:{name}"]
    done = subprocess.run(
        [
            *(*torchrun, "--master-port", str(jobs.free_port()), "--log-dir", "logs"),
            *("--no-python", *ours),
            *("--python", jobs.python(), "--format", "json", "--output", "report.json"),
        ],
        cwd=folder,
        env=environments.environ(
            folder,
            PYTHONPATH=":".join(map(str, (*path, jobs.ROOT))),
            ACCELERATE_USE_CPU="true",
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert (folder / "report.json").exists(), done.stderr
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    # torchrun has an exit code of its own for ranks that fail.
    assert (done.returncode == 0) == (report["verdict"] != "broken")
    return report


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "found", "steps"),
    [
        ("shared", [], [6, 6]),
        ("workers", [], [6, 6]),
        ("whole", ["loader-not-sharded"], [12, 12]),
        ("uneven", ["uneven-steps-hang"], [8, 4]),
        ("stream", ["iterable-not-sharded"], [8, 8]),
    ],
)
def test_what_ranks_really_get_is_compared(
    name: str, found: list[str], steps: list[int], tmp_path: Path
) -> None:
    report = live(name, tmp_path)
    assert [f["name"] for f in report["findings"] if f["severity"] != "note"] == found
    told = report["data"]["shards"]
    assert told["live"] is True
    assert told["epochs"][0]["steps"] == steps
    if name == "workers":
        words = ("--length", "60", "--batch-size", "5", "--format", "json")
        computed: Any = Ran("shards", *words, cwd=tmp_path).json
        assert told["epochs"] == computed["data"]["shards"]["epochs"]


@pytest.mark.network
@pytest.mark.parametrize("name", ["prepared", "dispatched"])
def test_what_accelerate_prepares_is_iterated_as_training_would(name: str, tmp_path: Path) -> None:
    report = live(name, tmp_path, jobs.accelerate("newest"))
    assert report["findings"] == []
    assert [len(r) for r in report["data"]["shards"]["epochs"][0]["indices"]] == [6, 6]


def test_without_a_launcher_it_is_told_how_to_start(tmp_path: Path) -> None:
    said = Ran("shards", "--live", "train.py:make", cwd=tmp_path).complaint
    assert "torchrun --nproc-per-node 2 -m torchdoctor shards --live FILE.py:NAME" in said
