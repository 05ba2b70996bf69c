"""Every row of messages against a text that it knows and one that it must not take."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from tests.tables import samples_of_installs, samples_of_runs
from tests.tables.symptom_samples import Sample
from torchdoctor.facts import Symptom
from torchdoctor.reading.traceback import CONVERSIONS, symptoms
from torchdoctor.tables import symptoms as table

ROWS = table.rows()
SAMPLES = (*samples_of_installs.SAMPLES, *samples_of_runs.SAMPLES)
KEYS = {
    *("name", "hints", "regex", "set", "convert", "source"),
    *("versions", "lasting", "echo", "told", "counted"),
}
RANGE = re.compile(r"(torch|nccl) (<|>=) (\d+)\.(\d+)(\.\d+)?")
each = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}: {row['regex'][:40]}")


def named(found: tuple[Symptom, ...], name: str) -> list[Mapping[str, str]]:
    return [symptom.values for symptom in found if symptom.name == name]


def first_to_take(sample: Sample) -> table.Row | None:
    rows = (row for row in ROWS if row["name"] == sample.name)
    return next((r for r in rows if re.search(str(r["regex"]), sample.fires, re.MULTILINE)), None)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.name}: {s.fires[:40]!r}")
def test_a_row_takes_its_message_and_leaves_the_near_miss(sample: Sample) -> None:
    assert named(symptoms(sample.fires, "a test"), sample.name) == [sample.values]
    assert named(symptoms(sample.near_miss, "a test"), sample.name) == []


@each
def test_each_row_has_a_sample_of_its_own(row: table.Row) -> None:
    assert any(first_to_take(sample) is row for sample in SAMPLES if sample.name == row["name"])


@each
def test_each_row_is_well_formed(row: table.Row) -> None:
    assert set(row) <= KEYS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", str(row["name"]))
    assert row["source"]
    assert row["hints"]
    assert RANGE.fullmatch(str(row.get("versions", "torch >= 1.0")))
    groups = {group.partition("__")[0] for group in re.compile(str(row["regex"])).groupindex}
    convert = row.get("convert", {})
    assert isinstance(convert, dict)
    assert set(convert) <= groups
    assert set(convert.values()) <= set(CONVERSIONS)


@each
def test_each_repetition_in_a_row_is_bounded(row: table.Row) -> None:
    regex = re.sub(r"\\.|\[(?:\\.|[^\]])*\]", "x", str(row["regex"]))
    assert not re.search(r"[*+]|\{\d*,\}", regex)


def test_rows_of_one_name_agree_on_what_kind_of_message_it_is() -> None:
    for key in ("lasting", "echo", "told"):
        by_name: dict[str, set[bool]] = {}
        for row in ROWS:
            by_name.setdefault(str(row["name"]), set()).add(bool(row.get(key)))
        assert [name for name, kinds in by_name.items() if len(kinds) > 1] == []


def test_an_echo_lasts_and_is_no_word_of_people() -> None:
    assert table.echoes() <= table.lasting()
    assert not table.echoes() & table.told()
    assert {"hang-told", "p2p-off-helps"} <= table.told()


# ---- which releases print a wording -------------------------------------------------------------


def within_and_without(row: table.Row) -> tuple[str, str, str]:
    """Return of which program the range of *row* is, a version in it, and one outside."""
    found = RANGE.fullmatch(str(row["versions"]))
    assert found
    at = f"{found[3]}.{found[4]}{found[5] or ''}"
    below = f"{found[3]}.{int(found[4]) - 1}.9"
    return (found[1], at, below) if found[2] == ">=" else (found[1], below, at)


RANGED = [row for row in ROWS if "versions" in row]


@pytest.mark.parametrize("row", RANGED, ids=lambda row: f"{row['name']}: {row['versions']}")
def test_a_wording_is_not_taken_for_a_release_that_does_not_print_it(row: table.Row) -> None:
    program, inside, outside = within_and_without(row)
    text = next(sample.fires for sample in SAMPLES if first_to_take(sample) is row)
    name = str(row["name"])
    assert named(symptoms(text, "a test", {program: [inside]}), name)
    assert named(symptoms(text, "a test", {program: [inside, outside]}), name)
    assert named(symptoms(text, "a test"), name)
    others = [r for r in ROWS if r["name"] == name and r is not row and "versions" not in r]
    taken = any(re.search(str(r["regex"]), text, re.MULTILINE) for r in others)
    assert bool(named(symptoms(text, "a test", {program: [outside]}), name)) == taken


def test_the_version_that_nccl_logs_counts() -> None:
    text = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000"
    assert named(symptoms(f"NCCL version 2.27.5+cuda12.9\n{text}", "log"), "duplicate-gpu")
    assert not named(symptoms(f"NCCL version 2.30.7+cuda13.0\n{text}", "log"), "duplicate-gpu")
    newer = "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1"
    assert named(symptoms(f"NCCL version 2.30.7+cuda13.0\n{newer}", "log"), "duplicate-gpu")
    assert not named(symptoms(f"NCCL version 2.27.5+cuda12.9\n{newer}", "log"), "duplicate-gpu")


def test_two_wordings_of_one_message_say_which_releases_print_them() -> None:
    ranges = {row.get("versions") for row in ROWS if row["name"] == "duplicate-gpu"}
    assert ranges == {"nccl < 2.30.3", "nccl >= 2.30.3"}
