"""What is dealt out is what torch's own classes deal out, for random setups."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from tests import environments
from torchdoctor.shards.dealing import Epoch, Setup, deal
from torchdoctor.shards.permutation import randperm

ROOT = Path(__file__).parents[2]
LENGTHS = (0, 1, 2, 3, 5, 7, 8, 12, 13, 16, 23, 24, 37, 64)


def drawn(seed: int, many: int, *prepares: str, workers: bool = False) -> list[tuple[Setup, int]]:
    """Return *many* random setups, each with an epoch."""
    draw = random.Random(seed)  # noqa: S311 - setups, not secrets

    def coin(chance: float = 0.5) -> bool:
        return draw.random() < chance

    return [
        (
            Setup(
                length=draw.choice(LENGTHS),
                world=draw.randint(1, 6),
                batch_size=draw.randint(1, 6),
                sampler=draw.choice(("distributed", "none")),
                prepare=draw.choice(prepares),  # type: ignore[arg-type]
                shuffle=coin(),
                seed=draw.randint(0, 2**33),
                sampler_drop_last=coin(),
                drop_last=coin(),
                set_epoch=coin(0.7),
                even_batches=coin(),
                split_batches=coin(0.3),
                stream=workers or coin(0.3),
                workers=draw.randint(1, 3) if workers else 0,
                split=draw.choice(("none", "worker", "rank", "both")),
            ),
            draw.randint(0, 5),
        )
        for _ in range(many)
    ]


def real(
    setups: Sequence[tuple[Setup, int]], folder: Path, *, path: str = ""
) -> list[Epoch | None]:
    """Return what torch deals out; None where it refuses."""
    file = folder / "setups.json"
    file.write_text(json.dumps([{"setup": asdict(s), "epoch": e} for s, e in setups]))
    python = next(environments.base().root.glob("bin/python"), None) or Path(sys.executable)
    more = {"PYTHONPATH": f"{ROOT}{path}", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name("real.py")), str(file)],
        capture_output=True,
        check=False,
        text=True,
        env=environments.environ(folder) | more,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Epoch | None] = json.loads(done.stdout)
    return answers


def ours(setup: Setup, epoch: int) -> Epoch | None:
    try:
        return deal(setup, epoch)
    except ValueError:
        return None


def test_samplers_and_streams_of_torch_are_dealt_out_as_torch_does(tmp_path: Path) -> None:
    setups = drawn(1, 500, "none") + drawn(2, 6, "none", workers=True)
    expected = real(setups, tmp_path)
    wrong = [s for s, right in zip(setups, expected, strict=True) if ours(*s) != right]
    assert wrong == []


@pytest.mark.network
def test_loaders_prepared_by_accelerate_are_dealt_out_as_accelerate_does(tmp_path: Path) -> None:
    target = tmp_path / "packages"
    needs = (
        "accelerate==1.15.0",
        "huggingface_hub",
        "psutil",
        "pyyaml",
        "safetensors",
        "packaging",
    )
    more = ("tqdm", "filelock", "requests", "httpx", "anyio", "idna", "certifi", "httpcore", "h11")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target)]
    subprocess.run([*command, *needs, *more, "typing_extensions", "typer-slim"], check=True)
    setups = [
        (setup, epoch)
        for setup, epoch in drawn(3, 600, "accelerate")
        if not (setup.stream and setup.batch_size == 1 and setup.split_batches)
    ]
    expected = real(setups, tmp_path, path=f":{target}")
    wrong = [s for s, right in zip(setups, expected, strict=True) if ours(*s) != right]
    assert wrong == []
    assert None in expected, "some are refused"


@pytest.mark.parametrize(
    ("length", "seed", "order"),
    [  # printed by torch 2.13
        (0, 0, []),
        (1, 7, [0]),
        (10, 0, [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]),
        (8, 2**40 + 5, [3, 6, 0, 2, 1, 4, 5, 7]),
    ],
)
def test_the_permutation_is_that_of_torch(length: int, seed: int, order: list[int]) -> None:
    assert randperm(length, seed) == order


def test_a_distributed_sampler_pads_from_the_head_of_the_permutation() -> None:
    order = randperm(37, 0)
    flat = [i for rank in deal(Setup(world=8, batch_size=5), 0) for b in rank for i in b]
    assert sorted(i for i in set(flat) if flat.count(i) > 1) == sorted(order[:3])


def test_accelerate_deals_out_whole_batches_in_turn() -> None:
    setup = Setup(8, 2, 2, sampler="none", prepare="accelerate", shuffle=False)
    assert deal(setup, 0) == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]


def test_dispatching_hands_out_parts_of_what_rank_0_reads() -> None:
    setup = Setup(7, 2, 2, sampler="none", prepare="dispatch", shuffle=False)
    assert deal(setup, 0) == [[[0, 1], [4, 5]], [[2, 3], [6, 0]]]
    dropping = Setup(7, 2, 2, sampler="none", prepare="dispatch", shuffle=False, drop_last=True)
    assert deal(dropping, 0) == [[[0, 1]], [[2, 3]]]


@pytest.mark.parametrize("prepare", ["accelerate", "dispatch"])
def test_batches_that_cannot_be_split_are_refused(prepare: str) -> None:
    setup = Setup(batch_size=3, prepare=prepare, split_batches=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="2 ranks divide; 3 is none"):
        deal(setup, 0)
