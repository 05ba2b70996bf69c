"""The audit of real loaders, in a process that has torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import environments

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("audit")
    python = next(environments.base().root.glob("bin/python"), None) or Path(sys.executable)
    done = subprocess.run(
        [str(python), str(Path(__file__).with_name("real.py"))],
        capture_output=True,
        check=False,
        text=True,
        env=environments.environ(folder) | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_distributed_sampler_is_audited_as_every_rank(answer: dict[str, Any]) -> None:
    assert (answer["agree"], answer["of"]) == (200, 200)


@pytest.mark.parametrize(
    ("case", "found"),
    [
        ("whole", ["loader-not-sharded"]),
        ("whole, without a generator", ["loader-not-sharded"]),
        ("right", []),
        ("a sampler", []),
        ("a batch sampler", []),
        ("forgotten", ["missing-set-epoch"]),
        ("made", []),
        ("uneven", ["uneven-steps-hang", "samples-unseen"]),
        ("classes", ["class-skew-between-ranks"]),
        ("resumed", ["world-size-changed-on-resume"]),
        ("resumed between epochs", []),
        ("resumed as it was", []),
        ("resumed, made", ["world-size-changed-on-resume"]),
    ],
)
def test_what_is_wrong_is_found(case: str, found: list[str], answer: dict[str, Any]) -> None:
    assert answer[case] == found


def test_ranks_draw_alike_and_epochs_do_not(answer: dict[str, Any]) -> None:
    assert answer["drawn alike"]
    assert answer["another order"]


def test_nothing_is_changed_by_it(answer: dict[str, Any]) -> None:
    assert answer["unchanged"]


def test_a_stream_is_refused_with_what_to_do_instead(answer: dict[str, Any]) -> None:
    assert "torchdoctor shards FILE.py:NAME" in answer["stream"]


def test_numbers_that_are_none_are_refused(answer: dict[str, Any]) -> None:
    assert ["start at 1" in said for said in answer["no numbers"]] == [True] * 3


def test_printed_it_is_a_table(answer: dict[str, Any]) -> None:
    first, second, *_ = answer["text"].splitlines()
    assert first.startswith("note samples-repeated: ")
    assert second == "epoch 0"
    assert "5 different, 0 unseen" in answer["text"]
