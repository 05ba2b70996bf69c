"""What goes wrong in a run ends it in order, is named, and costs no checkpoint."""

from __future__ import annotations

import json
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

import pytest

from tests.training import jobs, runs
from torchdoctor.training import proofs, proving

pytestmark = pytest.mark.slow

FAULT = """
import os, signal, time
_read = Numbers.__getitem__
_count = [0]

def _faulty(self, index):
    x, y, index = _read(self, index)
    _count[0] += 1
    # Four samples a step, and a batch that is read beforehand: step 7.
    if os.environ["RANK"] == "1" and _count[0] == 4 * 7 + 1:
        {what}
    return x, y, index

Numbers.__getitem__ = _faulty
"""


def broken(folder: Path, what: str, *words: str) -> runs.Ran:
    place = runs.harness(folder, FAULT.format(what=what))
    return runs.run(place, folder / "run", "--steps", "12", *words)


def whole(ran: runs.Ran) -> None:
    """The checkpoint before the fault is whole, and the record is complete."""
    assert ran.checkpoints == ["step-00000005.pt"]
    record = ran.record
    assert record["arguments"][-2:] == ["--steps", "12"] or "--timeout" in record["arguments"]
    assert record["versions"]["torch"].startswith("2.")
    assert record["command"][1:3] == ["-m", "torch.distributed.run"]
    again = runs.harness(ran.folder.parent / "again")
    shutil.copytree(ran.folder / "checkpoints", ran.folder.parent / "other" / "checkpoints")
    resumed = runs.run(again, ran.folder.parent / "other", "--steps", "7")
    assert (resumed.code, resumed.record["outcome"]) == (0, "done")
    assert ("resumed", "step-00000005.pt") in resumed.notes


def test_an_exception_on_one_rank_ends_all_and_is_named(tmp_path: Path) -> None:
    ran = broken(tmp_path, "raise KeyError('no such sample')")
    assert (ran.code, ran.record["outcome"]) == (1, "failed")
    assert (ran.first["rank"], ran.first["kind"]) == (1, "KeyError")
    assert (ran.first["step"], ran.first["stage"]) == (7, "data")
    assert "no such sample" in ran.first["trace"]
    assert ran.record["seconds"] < 120
    whole(ran)


def test_a_nan_on_one_rank_reaches_no_weights(tmp_path: Path) -> None:
    ran = broken(tmp_path, "x = x * float('nan')")
    assert ran.first["rank"] == 1
    assert ran.first["message"] == "the loss of rank 1 is nan in step 7"
    assert {event["rank"] for event in ran.record["failures"]} == {0, 1}
    whole(ran)


def test_a_rank_that_is_killed_is_named_though_it_says_nothing(tmp_path: Path) -> None:
    ran = broken(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert (ran.first["rank"], ran.first["kind"]) == (1, "SIGKILL")
    assert "in step 7, stage data" in ran.first["message"]
    whole(ran)


def test_a_rank_that_never_comes_back_is_named_after_the_timeout(tmp_path: Path) -> None:
    ran = broken(tmp_path, "time.sleep(600)", "--timeout", "5")
    assert (ran.code, ran.first["rank"]) == (1, 1)
    assert (ran.first["step"], ran.first["stage"]) == (7, "data")
    whole(ran)


def test_sigterm_to_one_rank_stops_all_of_them_after_the_step_with_a_checkpoint(
    tmp_path: Path,
) -> None:
    ran = broken(tmp_path, "os.kill(os.getpid(), signal.SIGTERM)")
    assert (ran.code, ran.record["outcome"], ran.record["first_failure"]) == (0, "stopped", None)
    assert ran.checkpoints == ["step-00000005.pt", "step-00000007.pt"]
    assert ("stopped", 7) in ran.notes


def test_sigterm_to_the_launcher_stops_all_of_them_with_a_checkpoint(tmp_path: Path) -> None:
    place = runs.harness(tmp_path, SLOW)
    run = tmp_path / "run"
    words = runs.command(place, run, "--steps", "10000")
    with subprocess.Popen(words, cwd=tmp_path, env=runs.environ(tmp_path)) as process:
        until = time.monotonic() + 120
        while not list((run / "checkpoints").glob("*.pt")) and time.monotonic() < until:
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
    ran = runs.Ran(0, run, "")
    assert ran.record["outcome"] == "stopped"
    (stopped,) = {step for event, step in ran.notes if event == "stopped"}
    assert ran.checkpoints[-1] == f"step-{stopped:08}.pt"


SLOW = """
import time
_mean = loss

def loss(output, target):
    time.sleep(0.2)
    return _mean(output, target)
"""
FULL = """
mkdir -p "$1/checkpoints" && mount -t tmpfs -o size=400k none "$1/checkpoints" || exit 77
shift_to="$1"; shift
"$@"; code=$?
cp -r "$shift_to/checkpoints" "$shift_to/kept"
exit $code
"""


def test_a_full_disk_at_a_checkpoint_leaves_those_that_were_there(tmp_path: Path) -> None:
    run = tmp_path / "run"
    before = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL, "sh", str(run))
    ran = runs.run(runs.harness(tmp_path), run, "--steps", "30", "--width", "48", before=before)
    if ran.code == 77:
        pytest.skip("this system lets nobody mount a small disk")
    assert (ran.code, ran.first["rank"], ran.first["stage"]) == (1, 0, "save")
    assert "cannot be written: [Errno 28] No space left on device" in ran.first["message"]
    kept = sorted(path.name for path in (run / "kept").iterdir() if path.suffix == ".pt")
    saved = [name for event, name in ran.notes if event == "saved"]
    assert saved
    assert kept == sorted(str(name) for name in saved)[-3:]
    shutil.copytree(run / "kept", tmp_path / "other" / "checkpoints")
    again = runs.run(
        runs.harness(tmp_path / "b"), tmp_path / "other", "--width", "48", "--steps", "7"
    )
    assert ("resumed", kept[-1]) in again.notes


def test_a_damaged_checkpoint_is_passed_over_and_said(tmp_path: Path) -> None:
    place, run = runs.harness(tmp_path), tmp_path / "run"
    assert runs.run(place, run, "--steps", "10").code == 0
    newest = run / "checkpoints" / "step-00000010.pt"
    raw = bytearray(newest.read_bytes())
    raw[len(raw) // 2] ^= 1
    newest.write_bytes(raw)
    ran = runs.run(place, run, "--steps", "11")
    assert (ran.code, ran.record["outcome"]) == (0, "done")
    assert ran.notes[:2] == [
        ("checkpoint-corrupt", "step-00000010.pt"),
        ("resumed", "step-00000005.pt"),
    ]


def test_another_number_of_ranks_goes_on_with_the_samples_that_are_left(tmp_path: Path) -> None:
    place, run = runs.harness(tmp_path), tmp_path / "run"
    first = runs.run(place, run, "--steps", "5")
    before = [i for rank in (0, 1) for step in first.rank(rank)["indices"] for i in step]
    ran = runs.run(place, run, "--steps", "9", nproc=3)
    assert (ran.code, ran.record["outcome"]) == (0, "done")
    (note,) = (n for n in ran.record["notes"] if n["event"] == "world-size-changed")
    assert (note["before"], note["after"]) == (2, 3)
    assert (note["batch_before"], note["batch_after"]) == (8, 12)
    after = [i for rank in range(3) for step in ran.rank(rank)["indices"] for i in step]
    assert len(set(before + after)) == 5 * 2 * 4 + 4 * 3 * 4
    assert len({ran.rank(rank)["digest"] for rank in range(3)}) == 1


@pytest.mark.parametrize("amp", ["bf16", "fp16"])
def test_mixed_precision_and_accumulation_resume_bit_for_bit_on_three_ranks(
    amp: str, tmp_path: Path
) -> None:
    place, run = runs.harness(tmp_path), tmp_path / "run"
    words = ("--steps", "10", "--amp", amp, "--accumulate", "2", "--dtype", "float32")
    straight = runs.run(place, run, *words, nproc=3)
    assert straight.code == 0, straight.said
    other = tmp_path / "other" / "checkpoints"
    shutil.copytree(run / "checkpoints", other)
    for path in other.glob("step-00000010.*"):
        path.unlink()
    again = runs.run(place, other.parent, *words, nproc=3)
    for rank in range(3):
        assert again.rank(rank)["digest"] == straight.rank(0)["digest"]
        assert again.rank(rank)["draws"] == straight.rank(rank)["draws"][5:]
        assert again.rank(rank)["losses"] == straight.rank(rank)["losses"][5:]


# ---- what a step costs --------------------------------------------------------------------------


WAITS = """
import atexit, json, os, sys, time
_read, _spent = Numbers.__getitem__, []

def _late(self, index):
    began = time.perf_counter()
    time.sleep(0.02)
    sample = _read(self, index)
    _spent.append(time.perf_counter() - began)  # a busy machine sleeps longer than it is told
    return sample

Numbers.__getitem__ = _late
_folder = sys.argv[sys.argv.index("--dir") + 1]
_file = os.path.join(_folder, "spent" + os.environ.get("RANK", ""))
atexit.register(lambda: open(_file, "w").write(json.dumps(_spent)))
"""


def test_the_share_of_waiting_is_that_of_a_loader_of_known_delay(tmp_path: Path) -> None:
    place = runs.harness(tmp_path, WAITS + SLOW.replace("0.2", "0.05"))
    ran = runs.run(place, tmp_path / "run", "--steps", "20")
    trained = proving.Trained(ran.record, [ran.rank(0), ran.rank(1)])
    found = proofs.costs(proving.Proof(proving.Wish(), trained))
    assert found is not None
    truths = []
    for rank in (0, 1):
        spent = json.loads((tmp_path / "run" / f"spent{rank}").read_text())
        steps = [sum(spent[at : at + 4]) for at in range(4, 4 + 20 * 4, 4)]  # one is read before
        truths.append(statistics.median(steps[1:]))
    assert min(truths) >= 4 * 0.02
    others = found.step - found.wait  # the model's own 50 ms, and what talking takes
    assert others >= 0.05
    closest = min(truths, key=lambda truth: abs(truth - found.wait))
    assert found.wait == pytest.approx(closest, rel=0.1)
    assert found.input_share == pytest.approx(closest / (closest + others), rel=0.1)


def test_the_share_of_communication_is_that_of_a_collective_of_known_size() -> None:
    for left in (2, 1, 0):  # a busy machine wakes ranks up one after the other
        found = jobs.run("collectives.py")
        near = [one["measured"] == pytest.approx(one["truth"], rel=0.1) for one in found.values()]
        assert all(near) or left, found
        if all(near):
            break
