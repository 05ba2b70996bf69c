"""What an audit predicts is what gloo processes iterate, as their datasets write it down."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training import jobs

SEED = "20"
MODES = ("none", "shard", "split", "dispatch")


def all_right(found: dict[str, Any]) -> None:
    assert found["wrong"] == []
    assert found["hangs"]["right"] == found["hangs"]["of"]


@pytest.mark.slow
def test_ten_random_loaders_of_plain_torch_and_a_hang_come_out_as_predicted() -> None:
    all_right(jobs.run("reality.py", SEED, "10", "1", "none"))


@pytest.mark.network
@pytest.mark.parametrize(
    ("world", "release", "many", "hangs"),
    [(2, "newest", 200, 10), (3, "newest", 120, 8), (4, "newest", 80, 6), (2, "0.34.2", 100, 4)],
)
def test_random_loaders_with_and_without_accelerate_come_out_as_predicted(
    world: int, release: str, many: int, hangs: int
) -> None:
    path = [jobs.accelerate(release)]
    found = jobs.run("reality.py", SEED, str(many), str(hangs), *MODES, world=world, path=path)
    all_right(found)
    assert found["of"] == many
    assert found["hangs"]["of"] == hangs
    modes = {kind.split(", ")[1] for kind in found["seen"]}
    assert modes == set(MODES)
