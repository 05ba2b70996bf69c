"""``torchdoctor hang`` on a folder: what it prints, and its exit codes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hang import make
from tests.test_cli import Ran
from torchdoctor import cli

RECORDED = Path(__file__).with_name("recorded")


Hang = Callable[..., tuple[int, str]]


@pytest.fixture
def hang(capsys: pytest.CaptureFixture[str]) -> Hang:
    """Return what runs the verb in this process, and returns exit code and output."""

    def run(*words: str) -> tuple[int, str]:
        code = cli.main(["hang", *words])
        printed = capsys.readouterr()
        return code, printed.out or printed.err

    return run


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Return a folder of what three ranks dumped: rank 1 calls with another size."""
    for rank in range(3):
        last = make.call(3, size=(7,) if rank == 1 else (5,), state="started")
        whole = make.raw([*make.agreed(2), last], groups={"0": (0, 1, 2)})
        write = make.as_json if rank == 2 else make.as_pickle
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(write(whole))
    return tmp_path


def test_a_folder_of_dumps_gives_rank_call_and_place(dumps: Path) -> None:
    ran = Ran("hang", str(dumps), cwd=dumps)
    assert ran.code == 1, ran.err
    said = " ".join(ran.out.split())
    assert said.startswith(
        "The ranks do not call the same size as their collective 3 of group 0 (rank 1 apart): "
        "ranks 0 and 2: all_reduce of Float [5] at /job/train.py:41; rank 1: all_reduce of "
        "Float [7] at /job/train.py:41."
    )
    assert "rank 1 last called all_reduce of Float [7]" in said
    assert "<- here" in said


def test_json_keeps_the_contract_and_has_what_was_seen(dumps: Path) -> None:
    report: dict[str, Any] = Ran("hang", str(dumps), "--format", "json", cwd=dumps).json
    (finding,) = report["findings"]
    assert finding["name"] == "collective-mismatch"
    assert finding["where"] == {
        "rank": 1,
        "collective": 3,
        "operation": "all_reduce",
        "group": "0",
    }
    told = report["data"]["hang"]
    assert told["schema"] == "torchdoctor.hang/1"
    assert told["verdict"]["collective"]["input_sizes"] == [[5]]
    assert [rank["dump"]["entries"] for rank in told["ranks"]] == [3, 3, 3]


def test_markdown_names_no_folder(dumps: Path, hang: Hang) -> None:
    _, out = hang(str(dumps), "--format", "markdown")
    assert "train.py:41" in out
    assert "/job/" not in out


def test_a_file_may_be_given_and_several(dumps: Path, hang: Hang) -> None:
    names = [str(dumps / f"nccl_trace_rank_{rank}") for rank in (0, 1)]
    assert hang(*names)[0] == 1


def test_where_nothing_hangs_the_exit_code_is_0(tmp_path: Path, hang: Hang) -> None:
    for rank in (0, 1):
        (tmp_path / f"trace_{rank}").write_bytes(make.as_pickle(make.raw(make.agreed(2))))
    code, out = hang(str(tmp_path), "--strict")
    assert code == 0
    assert out.startswith("No hang: of 2 ranks none waits for another")


def test_what_cannot_be_told_is_said_and_is_3_only_when_that_matters(
    tmp_path: Path, hang: Hang
) -> None:
    whole = make.raw(make.agreed(2), groups={"0": (0, 1)})
    (tmp_path / "trace_0").write_bytes(make.as_pickle(whole))
    code, out = hang(str(tmp_path))
    assert code == 0
    assert out.startswith("Cannot tell whether the job hangs")
    assert hang(str(tmp_path), "--strict")[0] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none",), "none does not exist."),
        (("empty",), "empty holds no dump of the Flight Recorder"),
        (("bad_0",), "bad_0 cannot be read: as a pickle, it asks for more than plain data"),
        (("999999999",), "there is no process 999999999"),
        ((str(os.getpid()),), "is no rank, and neither is any that it started"),
        (("1", "empty"), "give one process, or files and folders"),
        (("empty", "--watch", "0"), "--watch"),
        ((), "PID|DIR"),
    ],
)
def test_what_is_no_job_is_one_line(
    words: tuple[str, ...], said: str, tmp_path: Path, hang: Hang, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad_0").write_bytes(b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00touctR.")
    code, out = hang(*words)
    assert code == 2
    assert said in out
    assert len(out.strip().splitlines()) == 1


def test_it_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "hang"]) == 0
    assert "torchdoctor.training.arm()" in capsys.readouterr().out
