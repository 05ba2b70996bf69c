"""``torchdoctor shards`` on index datasets and on the user's own loaders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.test_cli import Ran

LOADERS = """\
import torch
import torch.distributed as dist
from torch.utils.data import *

class Data(Dataset):
    targets = [i % 2 for i in range(60)]
    def __len__(self):
        return 60
    def __getitem__(self, index):
        raise RuntimeError("indices are enough")

class Stream(IterableDataset):
    def __iter__(self):
        for i in range(13):
            yield torch.tensor([i / 3])

class Uneven(Sampler):
    def __iter__(self):
        return iter(range(40, 60) if dist.get_rank() else range(40))
    def __len__(self):
        return 30

def shared():
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return Data(), DataLoader(Data(), batch_size=5, sampler=DistributedSampler(Data()))

def given(rank, world_size, extra=3):
    return DataLoader(Data(), 5, sampler=DistributedSampler(Data(), world_size, rank, False))

def whole():
    return DataLoader(Data(), batch_size=5, shuffle=True)

def stream():
    return DataLoader(Stream(), batch_size=4, num_workers=2)

def uneven():
    return DataLoader(Data(), batch_size=5, sampler=Uneven())

def args_needed(options):
    return options

def fails():
    raise KeyError("DATA")

def hangs():
    import time
    time.sleep(60)
"""


@pytest.fixture
def loaders(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(LOADERS)
    return tmp_path


def shards(*words: str, cwd: Path) -> Ran:
    return Ran("shards", *words, cwd=cwd)


def of_user(name: str, cwd: Path, *words: str) -> Ran:
    python = environments.base().root
    return shards(f"train.py:{name}", "--python", str(python), *words, cwd=cwd)


def test_the_default_is_a_prime_number_of_samples(tmp_path: Path) -> None:
    ran = shards(cwd=tmp_path)
    assert ran.code == 0
    first, *_ = ran.out.splitlines()
    assert first == (
        "2 ranks share 37 samples: 37 are seen, 1 more than once, each rank has 5 steps."
    )
    assert "  rank    steps    samples   shared  first" in ran.out
    assert "     0  ...#####..##..###.#..#.#..#...##.##.#" in ran.out


def test_json_has_every_index(tmp_path: Path) -> None:
    words = ("--sampler", "none", "--prepare", "accelerate", "--no-shuffle", "--length", "8")
    report: dict[str, Any] = shards(
        *words, "--batch-size", "2", "--epochs", "1", "--format", "json", cwd=tmp_path
    ).json
    told = report["data"]["shards"]
    assert told["schema"] == "torchdoctor.shards/1"
    assert told["epochs"][0]["indices"] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert told["setup"]["prepare"] == "accelerate"
    assert report["verdict"] == "healthy"


def test_a_hang_is_exit_code_1_with_rank_and_step(tmp_path: Path) -> None:
    words = ("--sampler", "none", "--prepare", "accelerate", "--no-even-batches", "--length", "17")
    ran = shards(*words, "--format", "json", cwd=tmp_path)
    report: dict[str, Any] = ran.json
    assert ran.code == 1
    assert report["findings"][0]["name"] == "uneven-steps-hang"
    assert report["findings"][0]["where"] == {"rank": 1, "step": 3}
    assert report["data"]["shards"]["epochs"][0]["hang_step"] == 3
    assert "waits for ever" in shards(*words, cwd=tmp_path).out


def test_labels_and_a_resume_are_judged(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("".join(f"{i % 2}\n" for i in range(64)))
    words = ("--length", "64", "--no-shuffle", "--resume-from", "4:2", "--labels", "classes.txt")
    report: dict[str, Any] = shards(*words, "--format", "json", cwd=tmp_path).json
    assert [f["name"] for f in report["findings"]] == [
        "class-skew-between-ranks",
        "world-size-changed-on-resume",
    ]
    assert report["data"]["shards"]["resume"]["repeated"] == 16


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train.py",), "train.py is not FILE.py:NAME"),
        (("none.py:make",), "none.py does not exist"),
        (("--world-size", "0"), "invalid number value: '0'"),
        (("--resume-from", "x"), "give WORLD or WORLD:STEP"),
        (("--labels", "none.txt"), "give cycle:K, sorted:K or a file"),
        (("--prepare", "accelerate", "--split-batches", "--batch-size", "3"), "3 is none"),
    ],
)
def test_wrong_usage_is_told_in_one_line(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in shards(*words, cwd=tmp_path).complaint


def test_labels_have_to_be_as_many_as_samples(tmp_path: Path) -> None:
    (tmp_path / "few.txt").write_text("a\nb\n")
    said = shards("--labels", "few.txt", cwd=tmp_path).complaint
    assert said == "torchdoctor: few.txt has 2 lines for 37 samples."


@pytest.mark.parametrize("name", ["samples-unseen", "uneven-steps-hang", "shards"])
def test_what_it_finds_is_explained(name: str, tmp_path: Path) -> None:
    assert Ran("explain", name, cwd=tmp_path).code == 0


# ---- the user's own -----------------------------------------------------------------------------


def test_a_loader_of_ones_own_is_asked_as_every_rank(loaders: Path) -> None:
    report: dict[str, Any] = of_user("shared", loaders, "--format", "json").json
    told = report["data"]["shards"]
    assert report["target"] == report["target"] | {
        "source": "run",
        "inputs": ["train.py:shared"],
    }
    assert report["findings"] == []
    assert told["epochs"][0]["steps"] == [6, 6]
    assert told["epochs"][0]["indices"] != told["epochs"][1]["indices"]
    expected = shards(
        *("--length", "60", "--batch-size", "5", "--format", "json"), cwd=loaders
    ).json
    assert told["epochs"] == expected["data"]["shards"]["epochs"]  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("given", ["class-skew-between-ranks"]),
        ("whole", ["loader-not-sharded"]),
        ("stream", ["iterable-not-sharded"]),
        ("uneven", ["uneven-steps-hang"]),
    ],
)
def test_what_is_wrong_with_it_is_found(name: str, found: list[str], loaders: Path) -> None:
    report: dict[str, Any] = of_user(name, loaders, "--format", "json").json
    assert [f["name"] for f in report["findings"] if f["severity"] != "note"] == found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "timeout", "said"),
    [
        ("args_needed", "100", "as rank 0, in call: TypeError: args_needed() needs options"),
        ("fails", "100", "as rank 0, in call: KeyError: 'DATA'"),
        ("missing", "100", "in call: AttributeError: module 'train' has no attribute 'missing'"),
        ("hangs", "20", "in call: did not end within 20 s"),  # torch is imported meanwhile
    ],
)
def test_a_loader_that_fails_is_one_line(name: str, timeout: str, said: str, loaders: Path) -> None:
    assert said in of_user(name, loaders, "--timeout", timeout).complaint
