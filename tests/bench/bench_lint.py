"""How fast scripts are linted, against TorchFix on the same files, and a thousand files alone.

    python -m tests.bench.bench_lint FOLDER --torchfix PYTHON

FOLDER holds packages with at least a thousand modules, unpacked; PYTHON is an interpreter that
has TorchFix. Run by hand, not in CI; seconds are those of the CPU. Both sides of the ratio run in
turn, each in a process of its own, on copies of the same files, all of which mention torch, so that
none is skipped; each side has to say that it found something. The exit code is 1 when a target is
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 3
COMPARED, MANY = 40, 1000
LEAST_RATIO, MOST_SECONDS = 10.0, 10.0


def timed(*command: str, cwd: str | None = None) -> tuple[float, str]:
    """Return the seconds of CPU that *command* takes, and what it prints.

    On a quiet machine these are the seconds that it takes: neither side waits for anything.
    """
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    after = os.times()
    spent = after.children_user - before.children_user
    return spent + after.children_system - before.children_system, done.stdout


def lint(*paths: str) -> tuple[float, int]:
    """Return the seconds that linting *paths* takes, and how many files were looked at."""
    command = ("-m", "torchdoctor", "lint", "--no-config", "--format", "json", *paths)
    root = str(Path(__file__).parents[2])
    seconds, said = timed(sys.executable, *command, cwd=root)
    report = json.loads(said)
    assert report["findings"]
    assert "error" not in report
    return seconds, report["data"]["lint"]["files"]


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torchfix", required=True)
    args = parser.parse_args()
    modules = sorted(args.folder.resolve().rglob("*.py"))
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as work:
        about = [m for m in modules if b"torch.distributed" in m.read_bytes()][:COMPARED]
        for number, module in enumerate(about):
            shutil.copy(module, f"{work}/{number}.py")
        for _ in range(ROUNDS):
            seconds, count = lint(work)
            assert count == len(about)
            ours.append(seconds)
            seconds, said = timed(args.torchfix, "-m", "torchfix", "--select", "ALL", work)
            assert "TOR" in said, said
            theirs.append(seconds)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{len(about)} files: lint {a:.2f} s, TorchFix {b:.2f} s, ratio {b / a:.1f}")  # noqa: T201
    many = [lint(*map(str, modules[:MANY])) for _ in range(ROUNDS)]
    seconds = statistics.median(each[0] for each in many)
    print(f"{many[0][1]} files, each named, so that each is parsed: {seconds:.2f} s")  # noqa: T201
    met = b / a >= LEAST_RATIO and seconds <= MOST_SECONDS and many[0][1] == MANY
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
