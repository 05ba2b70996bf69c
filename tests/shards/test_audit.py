"""Counts and findings of shards that are made in the test."""

from __future__ import annotations

import pytest

from torchdoctor.shards import audit, picture, verdict
from torchdoctor.shards.dealing import Epoch, Setup, deal
from torchdoctor.shards.verdict import Seen


def seen(*epochs: Epoch, length: int, **more: object) -> Seen:
    counts = tuple(audit.count(epoch, length) for epoch in epochs)
    return Seen(len(epochs[0]), length, 4, counts, **more)  # type: ignore[arg-type]


def names(*epochs: Epoch, length: int, **more: object) -> list[str]:
    return [f.name for f in verdict.findings(seen(*epochs, length=length, **more))]


def dealt(**options: object) -> list[str]:
    """Return the findings for the loader that *options* describe, over two epochs."""
    setup = Setup(**options)  # type: ignore[arg-type]
    epochs = [deal(setup, epoch) for epoch in range(2)]
    counts = tuple(audit.count(epoch, setup.length) for epoch in epochs)
    every = Seen(
        setup.world,
        setup.length,
        setup.batch_size,
        counts,
        same_order=audit.same_order(epochs),
        twice=setup.sampler == "distributed" and setup.prepare != "none",
        stream=setup.stream,
        drops=setup.drop_last or setup.sampler_drop_last,
    )
    return [f.name for f in verdict.findings(every)]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"length": 36}, []),
        ({}, ["samples-repeated"]),
        ({"set_epoch": False, "length": 36}, ["missing-set-epoch"]),
        ({"set_epoch": False, "shuffle": False}, ["samples-repeated"]),
        ({"sampler_drop_last": True}, ["sampler-drops-tail"]),
        ({"drop_last": True, "length": 36}, ["sampler-drops-tail"]),
        ({"sampler": "none"}, ["loader-not-sharded"]),
        ({"prepare": "accelerate", "length": 32}, ["sharded-twice"]),
        ({"prepare": "dispatch", "length": 32}, ["sharded-twice"]),
        ({"sampler": "none", "prepare": "accelerate", "length": 36}, ["samples-repeated"]),
        ({"sampler": "none", "prepare": "accelerate", "length": 32}, []),
        (
            {"sampler": "none", "prepare": "accelerate", "length": 17, "even_batches": False},
            ["uneven-steps-hang"],
        ),
        (
            {"length": 3, "world": 8, "sampler_drop_last": True},
            ["empty-shard", "sampler-drops-tail"],
        ),
        ({"sampler": "none", "stream": True, "workers": 2}, ["iterable-not-sharded"]),
        ({"sampler": "none", "stream": True, "split": "worker"}, ["iterable-not-sharded"]),
        (
            {"sampler": "none", "stream": True, "workers": 2, "split": "rank", "length": 32},
            ["iterable-not-sharded"],
        ),
        ({"sampler": "none", "stream": True, "workers": 2, "split": "both", "length": 32}, []),
        (
            {"sampler": "none", "stream": True, "split": "both", "length": 33},
            ["uneven-steps-hang"],
        ),
    ],
)
def test_a_loader_is_found_to_be_what_it_is(options: dict[str, object], found: list[str]) -> None:
    assert dealt(**options) == found


def test_drop_last_of_the_loader_does_not_make_steps_uneven() -> None:
    for length in range(1, 40):
        for world in range(1, 6):
            for inner in (False, True):
                setup = Setup(length, world, 3, sampler_drop_last=inner, drop_last=not inner)
                assert audit.count(deal(setup, 0), length).hang is None


def test_the_hang_is_told_with_its_step_and_who_waits() -> None:
    (finding,) = verdict.findings(seen([[[0], [1]], [[2]], [[3]]], length=4))
    assert finding.name == "uneven-steps-hang"
    assert finding.where == {"rank": 1, "step": 2}
    assert finding.summary.startswith("Rank 1, 2 has 1 batches an epoch, rank 0 more: in step 2")


def test_an_overlap_in_the_middle_is_no_padding() -> None:
    assert names([[[0, 1], [2, 3]], [[0, 4], [5, 6]]], length=7) == ["shards-overlap"]
    assert names([[[0, 1], [2, 3]], [[4, 5], [6, 0]]], length=7) == ["samples-repeated"]


def test_samples_that_nobody_drops_on_purpose_are_missed() -> None:
    assert names([[[0, 1]], [[2, 3]]], length=40) == ["samples-unseen"]
    (finding,) = verdict.findings(seen([[[0, 1]], [[2, 3]]], length=5))
    assert (finding.name, finding.severity) == ("samples-unseen", "warning")


def test_padding_alone_does_not_make_an_order_shuffled() -> None:
    plain = [deal(Setup(shuffle=False, world=w), 0) for w in range(1, 9)]
    assert not any(audit.same_order([epoch, epoch]) for epoch in plain)
    shuffled = deal(Setup(), 0)
    assert audit.same_order([shuffled, shuffled])
    assert not audit.same_order([shuffled])
    assert not audit.same_order([shuffled, deal(Setup(), 1)])


def test_classes_that_come_in_turn_are_dealt_out_by_class_unless_shuffled() -> None:
    labels = [str(i % 2) for i in range(400)]
    plain = audit.skews(deal(Setup(400, shuffle=False), 0), labels)
    assert (plain[0].got, plain[0].expected) in {(200, 100.0), (0, 100.0)}
    assert not any(audit.skews(deal(Setup(400), epoch), labels) for epoch in range(20))
    assert not audit.skews(deal(Setup(37, 3, shuffle=False), 0), [str(i % 2) for i in range(37)])


def test_another_world_size_between_epochs_loses_nothing() -> None:
    before, after = deal(Setup(40, 4), 0), deal(Setup(40, 2), 0)
    told = audit.resumed(before, after, 0)
    assert (told.lost, told.repeated, told.batch) == (0, 0, (16, 8))


def test_another_world_size_within_an_epoch_is_right_by_samples_and_wrong_by_steps() -> None:
    before, after = deal(Setup(64, 4), 0), deal(Setup(64, 2), 0)
    told = audit.resumed(before, after, 2)
    assert (told.lost, told.repeated) == (0, 16)
    assert told.by_samples == (0, 0)
    fewer = audit.resumed(after, before, 2)
    assert (fewer.lost, fewer.repeated) == (16, 0)
    assert fewer.by_samples == (0, 0)
    found = seen(after, length=64, resumed=told)
    assert [f.severity for f in verdict.findings(found)] == ["warning"]


def test_no_epoch_finds_nothing() -> None:
    assert verdict.findings(Seen(2, 3, 4, ())) == ()


def test_the_picture_shows_each_sample_or_shares_of_many() -> None:
    epoch = deal(Setup(7, 2, 2, shuffle=False), 0)
    assert list(picture.strips(epoch, 7))[:2] == ["   0  #.#.#.#", "   1  ##.#.#."]
    large = list(picture.strips(deal(Setup(6000, 2), 0), 6000))
    assert [len(row) for row in large[:2]] == [66, 66]
    assert "a column is 100 samples" in large[2]
    assert list(picture.strips([[], []], 0))[:2] == ["   0  ", "   1  "]


def test_the_picture_of_steps_shows_who_waits() -> None:
    count = audit.count([[[0], [1], [2]], [[3]]], 4)
    assert list(picture.steps(count))[:2] == [
        "   0  #ww  waits for ever",
        "   1  #--  has no more",
    ]
    assert list(picture.steps(audit.count([[[0]], [[1]]], 2))) == []


def test_the_table_is_cut_at_many_ranks() -> None:
    epoch = deal(Setup(100, 40), 0)
    rows = list(picture.table(epoch, audit.count(epoch, 100)))
    assert " ...  and 24 more ranks" in rows
    assert len(rows) == 1 + picture.MOST_RANKS + 2
