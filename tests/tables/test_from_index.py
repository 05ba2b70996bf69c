"""The table of releases out of a package index: its parts, and a small index as a whole."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from tests.tables.local_index import LINUX, Shelf, fill, serving
from torchdoctor.model import DoctorError
from torchdoctor.tables.from_index import (
    PLATFORMS,
    Found,
    Refresh,
    active,
    behind_extras,
    companion,
    cuda_of_pins,
    cuda_of_version_py,
    environment,
    torch_wanted,
    triton_wanted,
    with_pythons,
)
from torchdoctor.tables.index import Index
from torchdoctor.tables.releases import platform_key


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    with serving(Shelf(tmp_path / "shelf")) as made:
        fill(made)
        yield made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def read(shelf: Shelf, cache: Path, before: Any = None, since: str | None = None) -> Found:
    return Refresh(Index(shelf.address, cache, pause=0), before or {}, since).run()


# ---- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS)
def test_what_a_marker_sees_gives_the_platform_back(platform: str) -> None:
    seen = environment(platform, "3.12")
    assert platform_key(seen["sys_platform"], seen["platform_machine"]) == platform


def test_only_requirements_that_hold_are_active_and_each_once() -> None:
    lines = ["a", "a", 'b; sys_platform == "win32"', 'c; extra == "x"', 'd; python_version<"3.12"']
    assert [str(r) for r in active(lines, "linux_x86_64", "3.12")] == ["a"]
    assert [r.name for r in active(lines, "win_amd64", "3.11")] == ["a", "b", "d"]


def test_an_extra_adds_what_is_not_there_without_it() -> None:
    lines = ["base==1", 'x==2; extra == "one"', 'y==3; extra == "two"']
    where = environment("linux_x86_64", "3.12")
    assert behind_extras(lines, {"one"}, where) == {"x": "==2"}


# METADATA of torchvision 0.13.0, 0.15.0 and 0.21.0 by platform
@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"linux_x86_64": "==1.12.0", "macos_arm64": "", "linux_aarch64": ""}, "==1.12.0"),
        ({"linux_x86_64": "==2.0.0+cu117", "win_amd64": "==2.0.0"}, "==2.0.0"),
        ({"linux_x86_64": "==2.6.0", "win_amd64": "==2.6.0"}, "==2.6.0"),
        ({"linux_x86_64": "==2.6.0", "win_amd64": "==2.7.0"}, None),
        ({"linux_x86_64": None}, None),
        ({"linux_x86_64": ""}, None),
    ],
)
def test_a_companion_wants_the_one_torch_its_wheels_name(
    said: dict[str, str | None], wanted: str | None
) -> None:
    assert torch_wanted(said) == wanted


# METADATA of torch 2.5.1: no triton for Python 3.13
def test_triton_up_to_some_python_gets_a_marker() -> None:
    assert triton_wanted({"3.12": "==3.1.0", "3.13": None}) == '==3.1.0; python_version < "3.13"'
    assert triton_wanted({"3.9": "==3.1.0", "3.14t": "==3.1.0"}) == "==3.1.0"
    assert triton_wanted({"3.12": None}) is None
    with pytest.raises(ValueError, match="in between"):
        triton_wanted({"3.9": "==1", "3.10": None, "3.11": "==1"})
    with pytest.raises(ValueError, match="too many values"):
        triton_wanted({"3.9": "==1", "3.10": "==2"})


# torch/version.py of torch 1.12.1, 2.8.0 and 2.15.0
@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("__version__ = '1.12.1+cu102'\ncuda: Optional[str] = '10.2'\n", "10.2"),
        ("cuda = '12.8'\nhip = None\n", "12.8"),
        ('debug = False\ncuda: Optional[str] = "13.2"\n', "13.2"),
        ("cuda: Optional[str] = None\n", None),
    ],
)
def test_version_py_names_its_cuda(text: str, cuda: str | None) -> None:
    assert cuda_of_version_py(text) == cuda


def test_a_version_py_of_another_shape_is_an_error() -> None:
    with pytest.raises(ValueError, match="names no CUDA"):
        cuda_of_version_py("xcuda = '1'\n# cuda = '2'\n")


def test_pins_name_the_cuda() -> None:
    assert cuda_of_pins({"nvidia-cuda-runtime-cu12": "==12.8.90"}) == "12.8"
    assert (
        cuda_of_pins({"cuda-toolkit": "==13.2.2", "nvidia-cuda-runtime": "==13.2.86.*"}) == "13.2"
    )
    assert cuda_of_pins({"nvidia-nccl-cu13": "==2.30.7"}) is None
    assert cuda_of_pins({}) is None


# METADATA of torch-2.4.1-cp38 ... cp312 wheels: setuptools for 3.12 only
def test_what_some_pythons_alone_ask_for_gets_a_marker() -> None:
    lists = {"3.8": ["a"], "3.11": ["a"], "3.12": ["a", "setuptools"]}
    marked = ["a", 'setuptools; python_version >= "3.12"']
    assert with_pythons(lists, ["a", "setuptools"]) == marked
    assert with_pythons(lists, ["a"]) == marked
    old = {"3.9": ['b; os_name == "nt"'], "3.10": [], "3.11": []}
    assert with_pythons(old, []) == ['b; (os_name == "nt") and python_version < "3.10"']
    for text in [*marked, *with_pythons(old, [])]:
        Requirement(text)


@pytest.mark.parametrize(
    "lists",
    [
        {"3.9": ["a"], "3.10": [], "3.11": ["a"]},
        {"3.14": ["a"], "3.14t": [], "3.15": []},
        {"3.14": [], "3.14t": ["a"]},
        {"3.14": [], "3.15": ["nvidia-nccl-cu14==2.40.1"]},
        {"3.14": [], "3.15": ["triton==4"]},
    ],
)
def test_pythons_that_differ_otherwise_are_an_error(lists: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="for some Pythons only"):
        with_pythons(lists, [])


def test_the_companion_is_the_nearest_within_a_week() -> None:
    days = {"1.0": "2026-10-01", "1.1": "2026-10-30", "1.2": None, "1.3": "2026-11-05"}
    assert companion("2026-10-28", ["1.0", "1.1", "1.2", "1.3"], days) == "1.1"
    assert companion("2026-10-10", ["1.0"], days) is None
    assert companion("2026-10-28", [], days) is None


@given(st.permutations(["1.0", "1.1", "1.2"]))
def test_of_two_as_near_the_older_is_taken(order: list[str]) -> None:
    days: dict[str, str | None] = dict.fromkeys(order, "2026-10-28")
    assert companion("2026-10-28", order, days) == "1.0"


# ---- a small index ------------------------------------------------------------------------------


def test_the_whole_of_a_small_index(shelf: Shelf, cache: Path) -> None:
    found = read(shelf, cache)
    assert found.unknown == []
    assert list(found.table) == [
        "schema",
        "as_of",
        "source",
        "torch",
        "torchvision",
        "torchaudio",
        "triton",
    ]
    assert found.table["torchvision"] == {"0.31.1": ">=2.15.5", "0.31.0": "==2.16.0"}
    assert found.table["torchaudio"] == {"2.12.0": ">=2.11"}
    assert found.table["triton"] == ["4.0.0"]
    newest, older = found.table["torch"]
    assert newest == {
        "version": "2.16.0",
        "date": "2026-12-01",
        "pythons": {"linux_x86_64": "3.12 3.13 3.14", "win_amd64": "3.12", "macos_arm64": "3.12"},
        "glibc": {"linux_x86_64": "2.28"},
        "macos": {"macos_arm64": "15.0"},
        "torchvision": ["0.31.0", "0.31.1"],
        "torchvision_companion": "0.31.0",
        "torchaudio": ["2.12.0"],
        "torchaudio_companion": None,
        "triton": {"linux_x86_64": '~=4.0.0; python_version < "3.14"'},
        "cuda_default": {"linux_x86_64": "14.0"},
        "nvidia_pins": {
            "linux_x86_64": {
                "cuda-toolkit": "==14.0.1",
                "nvidia-cublas": "==14.1.*",
                "nvidia-cuda-runtime": "==14.0.9.*",
                "nvidia-nccl-cu14": "==2.40.1",
            }
        },
        "requires": ["filelock", 'mkl==1; platform_system == "Windows"'],
    }
    assert older["cuda_default"] == {}
    assert older["requires"] == ["filelock", 'setuptools; python_version >= "3.14"']
    for text in newest["requires"] + older["requires"]:
        Requirement(text)


def test_sources_name_no_host(shelf: Shelf, cache: Path) -> None:
    source = "".join(read(shelf, cache).table["source"])
    assert "torch 2.15.5-2.16.0" in source
    assert "cuda-toolkit 14.0.1-14.0.1" in source
    assert "127.0.0.1" not in source


def test_metadata_beside_the_wheels_gives_the_same_table(shelf: Shelf, tmp_path: Path) -> None:
    by_ranges = read(shelf, tmp_path / "one")
    shelf.beside = True
    assert read(shelf, tmp_path / "two").table == by_ranges.table


def test_the_same_cache_gives_the_same_table_whatever_has_changed(
    shelf: Shelf, cache: Path
) -> None:
    first = read(shelf, cache)
    shelf.add("torch", "2.18.0", f"cp312-cp312-{LINUX}")
    again = Refresh(Index(shelf.address, cache, offline=True), {}).run()
    assert again == first


def test_a_companion_without_a_requirement_is_left_out_and_said(shelf: Shelf, cache: Path) -> None:
    shelf.add("torchaudio", "2.13.0", f"cp312-cp312-{LINUX}")
    found = read(shelf, cache)
    assert list(found.table["torchaudio"]) == ["2.12.0"]
    assert found.unknown == ["torchaudio 2.13.0 is left out: it asks for no one torch"]


def test_what_torchaudio_2_11_0_forgot_is_known(shelf: Shelf, cache: Path) -> None:
    shelf.add("torchaudio", "2.11.0", f"cp312-cp312-{LINUX}")
    assert read(shelf, cache).table["torchaudio"]["2.11.0"] == ">=2.11"


def test_a_release_whose_metadata_cannot_be_read_is_left_out(shelf: Shelf, cache: Path) -> None:
    for path in shelf.wheels("torch"):
        if "2.16.0" in path.name:
            path.write_bytes(b"no wheel")
    found = read(shelf, cache)
    assert [row["version"] for row in found.table["torch"]] == ["2.15.5"]
    (said,) = found.unknown
    assert said.startswith("torch 2.16.0 is left out: torch-2.16.0-")


def test_an_index_that_serves_no_metadata_gives_no_table(shelf: Shelf, cache: Path) -> None:
    shelf.ranges = False
    with pytest.raises(DoctorError, match="no release of torch"):
        read(shelf, cache)


def test_what_is_known_is_kept_where_it_cannot_be_read_again(shelf: Shelf, tmp_path: Path) -> None:
    before = read(shelf, tmp_path / "one").table
    shelf.ranges = False
    found = read(shelf, tmp_path / "two", before)
    assert {k: found.table[k] for k in ("torch", "torchvision")} == {
        k: before[k] for k in ("torch", "torchvision")
    }
    assert "torch 2.16.0 is kept as it was: its metadata could not be read" in found.unknown


def test_what_the_index_no_longer_has_is_kept_and_said(shelf: Shelf, tmp_path: Path) -> None:
    before = read(shelf, tmp_path / "one").table
    for path in shelf.wheels("torch"):
        if "2.15.5" in path.name:
            path.unlink()
    found = read(shelf, tmp_path / "two", before)
    assert found.table["torch"][1] == before["torch"][1]
    assert found.unknown == ["not on this index, kept as they were: torch 2.15.5"]


def test_an_html_page_has_no_days_so_a_new_release_waits(shelf: Shelf, tmp_path: Path) -> None:
    before = read(shelf, tmp_path / "one").table
    shelf.json = False
    shelf.add("torch", "2.18.0", f"cp312-cp312-{LINUX}")
    found = read(shelf, tmp_path / "two", before)
    assert found.table["torch"] == before["torch"]
    assert found.unknown == ["torch 2.18.0 is left out: the page has no day of its upload"]


def test_older_rows_are_kept_and_their_metadata_not_asked_for(shelf: Shelf, tmp_path: Path) -> None:
    before = read(shelf, tmp_path / "one").table
    shelf.seen.clear()
    found = read(shelf, tmp_path / "two", before, since="2.16.0")
    assert found.table == before
    asked = {path for _, path, _ in shelf.seen if path.endswith(".whl")}
    assert asked
    assert not [path for path in asked if "2.15.5" in path or "torchvision" in path]


def test_a_withdrawn_companion_accepts_no_torch(shelf: Shelf, cache: Path) -> None:
    shelf.yanked = {"0.31.0"}
    table = read(shelf, cache).table
    assert table["torch"][0]["torchvision"] == ["0.31.1"]
    assert "0.31.0" in table["torchvision"]


def test_a_wheel_whose_metadata_is_of_another_version_is_not_believed(
    shelf: Shelf, cache: Path
) -> None:
    (path,) = shelf.wheels("torchaudio")
    path.rename(path.with_name(path.name.replace("2.12.0", "2.14.0")))
    found = read(shelf, cache)
    assert found.table["torchaudio"] == {}
    assert "its METADATA says 2.12.0" in found.unknown[0]


def test_an_index_without_torch_is_an_error(tmp_path: Path, cache: Path) -> None:
    with serving(Shelf(tmp_path / "empty")) as empty, pytest.raises(DoctorError, match="torch"):
        read(empty, cache)
