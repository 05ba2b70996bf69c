"""How fast a log of a big job is read, in how much memory, against grep for the same literals.

    python -m tests.bench.bench_text [--mb 1024] [--rounds 3]

Run by hand on a quiet machine, not in CI. ``torchdoctor check FILE`` and ``grep -c -F -f LITERALS
FILE`` run in turn, each in a process of its own, after one round that is not counted; the doctor
has to name what is wrong in the midst of the log. The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tests import nccl_log
from tests.bench import measured
from tests.scenarios.doctor import START
from torchdoctor.tables import symptoms

ROUNDS, SIZE_MB = 3, 1024
LEAST_MB_PER_S, MOST_MB = 30.0, 300.0


def literals() -> list[str]:
    """Return the texts one of which has to be there before any expression is tried."""
    hints = {hint for row in symptoms.rows() for hint in cast("list[str]", row["hints"])}
    return sorted(hint for hint in hints if "\n" not in hint)


def run(line: Sequence[str], output: Path) -> tuple[float, float]:
    """Run *line*, its output into a file; return its seconds and its largest memory in MB."""
    locale = ("env", "LC_ALL=C")  # in which grep is fastest
    code, seconds, memory = measured.run((*locale, *line), output)
    if code not in {0, 1}:
        raise SystemExit(f"{line[0]} ended with {code}")
    return seconds, memory


def named(report: Path) -> list[str]:
    """Return the names of what a report found above a note."""
    found = json.loads(report.read_text("utf-8"))["findings"]
    return [f["name"] for f in found if f["severity"] != "note"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--mb", type=int, default=SIZE_MB, metavar="N")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="bench-text-"))
    try:
        log, words, said = folder / "nccl.log", folder / "literals", folder / "said"
        size = nccl_log.write(log, options.mb << 20) / 1e6
        words.write_text("\n".join(literals()) + "\n", "utf-8")
        doctor = (sys.executable, "-c", START, "check", "--format", "json", str(log))
        grep = ("grep", "-c", "-F", "-f", str(words), str(log))
        ours: list[tuple[float, float]] = []
        theirs: list[float] = []
        for _ in range(options.rounds + 1):
            ours.append(run(doctor, said))
            found = named(said)
            theirs.append(run(grep, said)[0])
    finally:
        shutil.rmtree(folder)
    seconds = statistics.median(s for s, _ in ours[1:])
    other, memory = statistics.median(theirs[1:]), max(mb for _, mb in ours)
    fast, small = size / seconds >= LEAST_MB_PER_S, memory <= MOST_MB
    lines = [
        f"a log of {size:.0f} MB, {nccl_log.RANKS} ranks; {len(literals())} literals; {found}",
        f"torchdoctor check: {seconds:.1f} s, {size / seconds:.0f} MB/s, {memory:.0f} MB of memory",
        f"grep -F -f: {other:.1f} s, {size / other:.0f} MB/s; ratio {seconds / other:.2f}",
        f"{'PASS' if fast else 'FAIL'}  {size / seconds:.0f} MB/s  (at least {LEAST_MB_PER_S:g})",
        f"{'PASS' if small else 'FAIL'}  {memory:.0f} MB of memory  (at most {MOST_MB:g})",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0 if fast and small and found else 1


if __name__ == "__main__":
    raise SystemExit(main())
