"""What each stage that an all_reduce of ours adds costs by itself, on two healthy ranks.

    python -m tests.bench.bench_stages [--runs 10]

Run by hand on a quiet machine, not in CI. A stage's own cost is the time from when the last of its
ranks entered it to when the last one left it: what a faster rank waits before that, for one that
still imports torch, is no cost of the stage. Beside it stands when the first one left. Stages that
a bare all_reduce has as well are shown and not judged. The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import environments
from tests.bench.bench import Command, commands
from torchdoctor.distributed.stages import STAGES

MOST_MS = 100.0
BARE = ("spawn", "import", "communicator", "all-reduce", "destroy")
"""The stages that bare_all_reduce.py has as well."""
JUDGED = tuple(stage for stage in STAGES[:-1] if stage not in BARE)


@dataclass(frozen=True)
class Cost:
    """Milliseconds from when the last rank entered a stage to when the first and last left it."""

    first: float
    last: float


def costs(ranks: Sequence[Mapping[str, Any]]) -> dict[str, Cost]:
    """Return what each stage took of one run, by the events of its *ranks*."""
    entered: dict[str, list[float]] = {}
    left: dict[str, list[float]] = {}
    for rank in ranks:
        for event in rank["events"]:
            into = {"enter": entered, "ok": left}.get(event["ev"])
            if into is not None:
                into.setdefault(event["stage"], []).append(event["t"] * 1000)
    return {
        stage: Cost(max(0.0, min(left[stage]) - max(times)), max(left[stage]) - max(times))
        for stage, times in entered.items()
        if stage in left
    }


def once(command: Command, folder: Path, environ: Mapping[str, str]) -> dict[str, Cost]:
    """Run *command* once and return what its stages took.

    Raises:
        SystemExit: it did not come to a healthy end.

    """
    done = subprocess.run(
        command.lines[0],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=600,
        check=False,
    )
    text = done.stdout.decode()
    if done.returncode or not command.right(text):
        raise SystemExit(f"{command.name}: exit code {done.returncode}\n{text}")
    return costs(json.loads(text)["data"]["all_reduce"]["ranks"])


def report(runs: Sequence[Mapping[str, Cost]]) -> tuple[str, bool]:
    """Return the table as text, and whether every stage that is judged was there and is met."""
    lines = [f"{'stage':<14} {'first left':>11} {'last left':>10} {'most':>8}   median ms"]
    met = True
    for stage in STAGES[:-1]:
        seen = [run[stage] for run in runs if stage in run]
        if not seen:
            met &= stage not in JUDGED
            lines.append(f"{stage:<14} not told")
            continue
        last = statistics.median(cost.last for cost in seen)
        first = statistics.median(cost.first for cost in seen)
        word = "bare has it, too"
        if stage in JUDGED:
            met &= last < MOST_MS
            word = "PASS" if last < MOST_MS else "FAIL"
        most = max(cost.last for cost in seen)
        lines.append(f"{stage:<14} {first:>11.1f} {last:>10.1f} {most:>8.1f}   {word}")
    word = "PASS" if met else "FAIL"
    lines.append(f"\n{word}  every added stage  (under {MOST_MS:g} ms, {len(runs)} runs)")
    return "\n".join(lines), met


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a stage costs too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10, metavar="N")
    options = parser.parse_args(arguments)
    folder = environments.copies() / "bench"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        environment = environments.copy(folder / "env")
        environ = environments.environ(folder)
        del environ["PYTHONDONTWRITEBYTECODE"]  # users have byte code
        command = commands(str(environment.python))["all-reduce"]
        once(command, folder, environ)  # is not counted
        runs = [once(command, folder, environ) for _ in range(options.runs)]
    finally:
        environments.drop_copies()
    text, met = report(runs)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    sys.stdout.write(f"{text}\n\nload {load:.1f} on {os.cpu_count()} cores\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
