"""How long the doctor takes, as ratios to what it is measured against, in one run.

    python -m tests.bench.bench [--runs 10] [--only static]

Run by hand on a quiet machine, not in CI. Both sides of a ratio run in turn (A B A B ...) in the
same environment (torch and NumPy only), after one round that is not counted; exit code and output
of every run are verified. The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import environments
from tests.scenarios.doctor import START

IMPORTED = ("torch",)
"""What a full check imports in the environment of the bench: torch, and companions if any."""


@dataclass(frozen=True)
class Command:
    """Something to time: processes started together, and what their output has to be."""

    name: str
    lines: tuple[tuple[str, ...], ...]
    right: Callable[[str], bool]


@dataclass(frozen=True)
class Target:
    """A ratio of two medians and the most it may be."""

    measured: str
    against: str
    most: float


TARGETS = (
    Target("static check", "pip check", 0.5),
    Target("static check", "collect_env", 0.1),
    Target("full check", "bare import", 1.15),
    Target("--version", "python -c pass", 3.0),
    Target("all-reduce", "bare all_reduce", 1.15),
)


def commands(python: str) -> dict[str, Command]:
    """Return what is timed, for the environment of the interpreter *python*."""
    doctor = (sys.executable, "-c", START)
    check = (*doctor, "check", "--format", "json", "--python", python)
    listed = (
        Command("static check", ((*check, "--no-import"),), healthy),
        Command("full check", (check,), healthy),
        Command("--version", ((*doctor, "--version"),), lambda text: "0." in text or "1." in text),
        Command(
            "all-reduce",
            ((*doctor, "all-reduce", "--format", "json", "--python", python),),
            lambda text: json.loads(text)["data"]["all_reduce"]["verdict"] == {"ok": True},
        ),
        Command(
            "bare all_reduce",
            ((python, str(Path(__file__).with_name("bare_all_reduce.py"))),),
            lambda text: text == "right\n",
        ),
        Command("python -c pass", ((sys.executable, "-c", "pass"),), lambda text: not text),
        Command(
            "pip check",
            ((python, "-m", "pip", "check"),),
            lambda text: text.startswith("No broken requirements found."),
        ),
        Command(
            "collect_env",
            ((python, "-m", "torch.utils.collect_env"),),
            lambda text: f"PyTorch version: {environments.base().torch_version}" in text,
        ),
        Command(
            "bare import",
            tuple((python, "-c", f"import {name}") for name in IMPORTED),
            lambda text: not text,
        ),
    )
    return {command.name: command for command in listed}


def healthy(text: str) -> bool:
    """Tell whether *text* is the report of a healthy machine, made by checks that ran."""
    report = json.loads(text)
    outcomes = [check["outcome"] for check in report["checks"]]
    return (
        report["schema"] == "torchdoctor.report/1"
        and report["verdict"] == "healthy"
        and not [f for f in report["findings"] if f["severity"] != "note"]
        and outcomes.count("clear") > len(outcomes) / 4
        and "crashed" not in outcomes
    )


def timed(command: Command, folder: Path, environ: Mapping[str, str]) -> float:
    """Run *command* once and return its seconds.

    Raises:
        SystemExit: its exit code or its output is not what it should be.

    """
    start = time.perf_counter()
    running = [
        subprocess.Popen(
            line,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for line in command.lines
    ]
    texts = [process.communicate(timeout=600)[0].decode() for process in running]
    seconds = time.perf_counter() - start
    for process, text in zip(running, texts, strict=True):
        if process.returncode or not command.right(text):
            raise SystemExit(f"{command.name}: exit code {process.returncode}\n{text}")
    return seconds


def measure(
    chosen: Sequence[Command], runs: int, folder: Path, environ: Mapping[str, str]
) -> dict[str, list[float]]:
    """Time all of *chosen* in turn, *runs* rounds after one that is not counted."""
    for command in chosen:
        timed(command, folder, environ)
    seconds: dict[str, list[float]] = {command.name: [] for command in chosen}
    for _ in range(runs):
        for command in chosen:
            seconds[command.name].append(timed(command, folder, environ))
    return seconds


def report(targets: Sequence[Target], seconds: Mapping[str, list[float]]) -> tuple[str, bool]:
    """Return the tables as text, and whether every target is met."""
    lines = [f"{'command':<16} {'median s':>9} {'least':>7} {'most':>7} {'runs':>5}"]
    for name, values in seconds.items():
        median = statistics.median(values)
        lines.append(
            f"{name:<16} {median:>9.3f} {min(values):>7.3f} {max(values):>7.3f} {len(values):>5}"
        )
    lines.append("")
    met = True
    for target in targets:
        ratio = statistics.median(seconds[target.measured]) / statistics.median(
            seconds[target.against]
        )
        met &= ratio <= target.most
        word = "PASS" if ratio <= target.most else "FAIL"
        what = f"{target.measured} / {target.against}"
        lines.append(f"{word}  {what:<32} {ratio:>6.3f}  (at most {target.most:g})")
    return "\n".join(lines), met


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=10, metavar="N")
    parser.add_argument("--only", default="", help="targets whose name holds this text")
    options = parser.parse_args(arguments)
    targets = [t for t in TARGETS if options.only in f"{t.measured} / {t.against}"]
    wanted = {name for target in targets for name in (target.measured, target.against)}
    folder = environments.copies() / "bench"
    try:
        shutil.rmtree(folder, ignore_errors=True)
        environment = environments.copy(folder / "env")
        environ = environments.environ(folder)
        del environ["PYTHONDONTWRITEBYTECODE"]  # users have byte code
        every = commands(str(environment.python))
        chosen = [command for name, command in every.items() if name in wanted]
        seconds = measure(chosen, options.runs, folder, environ)
    finally:
        environments.drop_copies()
    text, met = report(targets, seconds)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    sys.stdout.write(f"{text}\n\nload {load:.1f} on {os.cpu_count()} cores\n")
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
