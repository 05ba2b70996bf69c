"""The sanitizer in real jobs: what it says of a loader, against what the ranks really get."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.training import jobs

N = 24
RELEASES = ("0.27.2", "0.34.2", "1.0.1", "newest")


def is_right(truth: Mapping[str, Any]) -> bool:
    """Tell whether every sample was seen by one rank, a filled last batch aside."""
    ranks: list[list[list[int]]] = truth["ranks"]
    steps = {len(rank) for rank in ranks}
    samples = sum(len(batch) for rank in ranks for batch in rank)
    length = max(i for rank in ranks for batch in rank for i in batch) + 1
    biggest = max(len(batch) for rank in ranks for batch in rank)
    filled = samples - truth["union"]
    lost = max(length, N if length > 22 else length) - truth["union"]
    # A last batch is filled, or the tail left out, up to a batch of each rank; never both.
    only = not (filled and lost) or N - length == 1
    most = biggest * len(ranks)
    return len(steps) == 1 and only and filled < most and lost < most


def wrong(found: Mapping[str, Any]) -> list[str]:
    """Return the kinds of which it says another thing than is so, with replacement aside."""
    said = []
    for name, one in found.items():
        truth = one.get("truth", {})
        if "ranks" not in truth or "with replacement" in name:
            continue
        if not one["agree"] or not one["same"]:
            said.append(f"{name}: the ranks disagree, or their random numbers have moved")
        if is_right(truth) is bool(one["found"]) and "evaluation" not in name:
            said.append(f"{name}: {one['found']}, {truth}")
        if (mended := one.get("mended")) and not is_right(mended):
            said.append(f"{name}: mended, {mended}")
    return said


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return jobs.run("kinds.py", "plain")


@pytest.mark.slow
@pytest.mark.sample
def test_a_loader_of_plain_torch_is_taken_if_and_only_if_ranks_get_their_shares(
    plain: dict[str, Any],
) -> None:
    assert wrong(plain) == []
    names = {name.removeprefix("plain: "): one["found"] for name, one in plain.items()}
    assert names == {
        "distributed": [],
        "distributed, 23": [],
        "distributed, in workers": [],
        "all are rank 0": ["samples-unseen", "shards-overlap"],
        "whole": ["loader-not-sharded"],
        "whole, shuffled": ["loader-not-sharded"],
        "own sampler": ["loader-not-sharded"],
        "uneven": ["uneven-steps-hang"],
        "with replacement, each by itself": [],
        "with replacement, all the same": ["loader-not-sharded"],
        "stream, whole": ["iterable-not-sharded"],
        "stream, shared": [],
        "evaluation, shuffled": ["evaluation-sampler-shuffles"],
        "evaluation": [],
    }
    left = {name.removeprefix("plain: ") for name, one in plain.items() if "left" in one}
    assert left == {"uneven", "stream, whole"}  # nobody can mend these but their owner


@pytest.mark.network
@pytest.mark.parametrize("release", RELEASES)
def test_every_kind_that_accelerate_prepares_is_judged_as_it_turns_out(release: str) -> None:
    found = jobs.run("kinds.py", "accelerate", path=[jobs.accelerate(release)])
    assert len(found) == 107
    assert wrong(found) == []
    by_default = "rank-seeds-differ" if release == "0.27.2" else None
    expected = [by_default] if by_default else []
    for name in ("shuffle", "random", "weighted", "subset", "split: shuffle", "uneven: shuffle"):
        assert found[name]["found"] == expected, name
    for name in ("default", "sequential", "stream", "dispatch: shuffle", "dispatch: own", "23"):
        assert found[name]["found"] == [], name
    for mode in ("", "dispatch: ", "split: ", "uneven: ", "seedable: ", "no dispatch: "):
        for name in ("distributed", "batches of distributed"):
            assert found[mode + name]["found"] == ["sharded-twice"], mode + name
    assert found["own"]["found"] == ["rank-seeds-differ"]
    assert found["uneven: 21"]["found"] == ["uneven-steps-hang"]
    assert found["seedable: shuffle"]["found"] == ["rank-seeds-differ"]
    assert [name for name, one in found.items() if "left" in one] == []


@pytest.mark.network
def test_what_lightning_prepares_is_judged_as_it_turns_out() -> None:
    path = [jobs.beside("lightning", "lightning", *jobs.LIGHTNING)]
    found = jobs.run("lightning_kinds.py", path=path)
    assert wrong(found) == []
    assert {name for name, one in found.items() if one["found"] == []} == {
        f"{who}: {name}"
        for who in ("fabric", "trainer")
        for name in ("default", "shuffle", "23", "weighted, one seed", "distributed")
    }
    assert found["fabric: left alone"]["found"] == ["loader-not-sharded"]
    assert found["trainer: own"]["found"] == ["rank-seeds-differ"]


# ---- without a job ------------------------------------------------------------------------------

TESTS = """
import torch
from torch.utils.data import DataLoader, DistributedSampler, Sampler, SequentialSampler

DATA = list(range(24))

def made(rank, world_size):
    sampler = DistributedSampler(DATA, world_size, rank, shuffle=False)
    return DataLoader(DATA, 2, sampler=sampler)

def test_shared(assert_sharded):
    assert_sharded(made, world_size=3, evaluation=True)

def test_whole(assert_sharded):
    assert_sharded(DataLoader(DATA, 2, shuffle=True))

def test_one_process(assert_sharded):
    assert_sharded(made(0, 1), world_size=4)

class Own(Sampler):
    def __len__(self):
        return 24
    def __iter__(self):
        return iter(torch.randperm(24).tolist())
"""
PREPARED = (
    TESTS
    + """
from accelerate import Accelerator

def test_ordinary(assert_sharded):
    for shuffle in (False, True):
        assert_sharded(DataLoader(DATA, 2, shuffle=shuffle), accelerator=Accelerator(cpu=True))

def test_explicit_sequential_sampler(assert_sharded):
    loader = DataLoader(DATA, 2, sampler=SequentialSampler(DATA))
    assert_sharded(loader, accelerator=Accelerator(cpu=True), world_size=4)

def test_dispatched(assert_sharded):
    from accelerate.utils import DataLoaderConfiguration
    config = DataLoaderConfiguration(dispatch_batches=True)
    assert_sharded(DataLoader(DATA, 2), accelerator=Accelerator(cpu=True, dataloader_config=config))

def test_twice(assert_sharded):
    assert_sharded(made, accelerator=Accelerator(cpu=True))

def test_twice_is_mended_before_it_is_prepared(assert_sharded):
    from torchdoctor.training import sanitize
    accelerator = Accelerator(cpu=True)
    mended = sanitize(made(0, 2), accelerator=accelerator, mend=True)
    assert isinstance(mended.sampler, SequentialSampler)
    assert_sharded(mended, accelerator=accelerator)

def test_own_with_unlike_seeds_is_a_warning(assert_sharded):
    import pytest
    with pytest.warns(UserWarning, match="Seed all ranks alike"):
        assert_sharded(DataLoader(DATA, 2, sampler=Own()), accelerator=Accelerator(cpu=True))
"""
)


def pytest_there(folder: Path, text: str, *path: Path) -> str:
    """Run pytest in a process that has torch, on a file of *text*; return what it printed."""
    (folder / "test_loaders.py").write_text(text)
    tools = jobs.beside("pytest", "pytest", "pluggy", "iniconfig", "packaging", "pygments")
    command = [jobs.python(), "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rf"]
    done = subprocess.run(
        [*command, "-p", "torchdoctor.training.pytest_plugin", "test_loaders.py"],
        cwd=folder,
        env=environments.environ(
            folder,
            PYTHONPATH=":".join(map(str, (*path, tools, jobs.ROOT))),
            ACCELERATE_USE_CPU="true",
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.network
def test_the_fixture_fails_a_test_whose_loader_is_not_shared_out(tmp_path: Path) -> None:
    said = pytest_there(tmp_path, TESTS)
    assert "1 failed, 2 passed" in said, said
    assert "error loader-not-sharded: Every one of 2 ranks sees all 24 samples" in said


@pytest.mark.network
@pytest.mark.parametrize("release", ["0.34.2", "newest"])
def test_the_fixture_knows_what_accelerate_will_do(release: str, tmp_path: Path) -> None:
    said = pytest_there(tmp_path, PREPARED, jobs.accelerate(release))
    assert "2 failed, 7 passed" in said, said
    assert "error sharded-twice: 12 of 24 samples are seen by no rank" in said
