"""A log of a thousand ranks is read in one pass, in bounded memory, and its cause is found."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import nccl_log
from tests.bench import bench_text
from tests.scenarios.doctor import START
from torchdoctor.reading.pasted import normalise
from torchdoctor.reading.pasted.keeper import MOST_ALIKE, SMALL

CAUSE = "ib-roce-misconfig"


def checked(log: Path, folder: Path) -> tuple[list[str], float, float]:
    """Return what is found above a note, the seconds and the memory in MB."""
    said = folder / "said.json"
    line = (sys.executable, "-c", START, "check", "--format", "json", str(log))
    seconds, memory = bench_text.run(line, said)
    return bench_text.named(said), seconds, memory


def test_the_cause_is_found_in_the_midst_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    nccl_log.write(log, 24 * nccl_log.MB)
    found, _, memory = checked(log, tmp_path)
    assert found[:1] == [CAUSE]
    assert memory < bench_text.MOST_MB


@pytest.mark.slow
def test_a_log_of_1_gb_is_read_in_one_pass(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    size = nccl_log.write(log, 1024 * nccl_log.MB) / 1e6
    found, seconds, memory = checked(log, tmp_path)
    log.unlink()
    print(f"{size:.0f} MB: {size / seconds:.0f} MB/s, {memory:.0f} MB of memory")  # noqa: T201
    assert found[:1] == [CAUSE]
    assert memory < bench_text.MOST_MB


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    log = tmp_path / "nccl.log"
    nccl_log.write(log, 6 * nccl_log.MB)
    words = [sys.executable, "-c", START, "check", "--format", "json", "-"]
    with log.open("rb") as stream:
        done = subprocess.run(words, stdin=stream, capture_output=True, check=False)
    assert json.loads(done.stdout)["findings"][0]["name"] == CAUSE


def chatter(number: int) -> str:
    return f"[rank{number % 64}] step {number}: NCCL all_reduce of {number * 7:x} bytes done\n"


def test_a_line_that_says_something_else_is_kept_wherever_it_is() -> None:
    told = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    around = "".join(chatter(number) for number in range(60_000))
    for at in (0, len(around) // 2, len(around)):
        place = around.find("\n", at) + 1 if at < len(around) else at
        assert told in normalise.shorten(around[:place] + told + around[place:])


def test_of_lines_that_differ_in_their_numbers_the_first_are_kept() -> None:
    text = "".join(chatter(number) for number in range(60_000))
    assert len(text) > SMALL
    kept = [line for line in normalise.shorten(text).splitlines() if "all_reduce" in line]
    assert kept == [chatter(number).rstrip() for number in range(MOST_ALIKE)]


def test_the_lines_around_one_that_matters_are_kept_too() -> None:
    noise = "".join(f"at step {n} the loss is {n / 7:.3f}\n" for n in range(120_000))
    half = noise.find("\n", len(noise) // 2) + 1
    report = "before it\nTraceback (most recent call last):\n  x = y\nafter it\n"
    kept = normalise.shorten(noise[:half] + report + noise[half:])
    assert report in kept
    assert len(kept) < 20_000
    assert normalise.GAP in kept


def test_a_log_without_an_end_of_line_takes_no_more_memory(tmp_path: Path) -> None:
    log = tmp_path / "one-line.log"
    log.write_text("NCCL INFO " + "x" * (64 << 20) + " torch", "utf-8")
    code = f"from torchdoctor import inputs; inputs.read([{str(log)!r}])"
    start = f"import sys; sys.path[0] = {str(Path(__file__).parents[1])!r}; "
    line = (sys.executable, "-c", start + code)
    _, memory = bench_text.run(line, tmp_path / "output")
    assert memory < bench_text.MOST_MB


def test_the_generated_log_is_the_same_every_time(tmp_path: Path) -> None:
    sizes = [nccl_log.write(tmp_path / name, nccl_log.MB) for name in ("one", "two")]
    assert sizes[0] == sizes[1]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    ratio = len(gzip.compress((tmp_path / "one").read_bytes())) / sizes[0]
    assert ratio > 0.05  # not one block again and again
