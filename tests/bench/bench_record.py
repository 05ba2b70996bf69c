"""How fast every byte of an environment is compared, against sha256sum on the same files.

    python -m tests.bench.bench_record PYTHON [--rounds 3]

PYTHON is the interpreter of an environment with torch in it; the newest CUDA wheel is the largest
there is. Run by hand on a quiet machine, not in CI. The whole probe of the environment with
``verify: full``, the start of its interpreter included, and ``xargs -P CORES sha256sum`` run in
turn, after one round that is not counted (which reads the files into memory for both). Both have to
say of every file what RECORD says. The exit code is 1 when the target is missed.
"""

from __future__ import annotations

import argparse
import base64
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import environments
from torchdoctor.child import run_probe
from torchdoctor.resource import read_text

ROUNDS = 3
LEAST = 0.8
"""The speed of the comparison, as a part of that of sha256sum."""
CORES = len(os.sched_getaffinity(0))
AT_ONCE = 64
LARGE = 1 << 20
"""A process of sha256sum takes AT_ONCE files, one of more than LARGE bytes alone."""


def ours(python: str) -> tuple[float, list[dict[str, Any]]]:
    """Return the seconds of a whole look at the environment, and what it says of its files."""
    start = time.perf_counter()
    run = run_probe(
        read_text("probes", "environment.py"),
        {"cwd": "/", "verify": "full"},
        python=[python, "-B"],
        timeout=900,
        folder="/",
        environ=environments.environ(Path("/")),
    )
    spent = time.perf_counter() - start
    if run.outcome != "answered" or not isinstance(records := run.data["records"], list):
        raise SystemExit(f"the probe {run.outcome}: {run.stderr.text[-500:]}")
    for record in records:
        if record.get("problem") or record["missing_count"] or record["altered_count"]:
            raise SystemExit(f"not as it was installed: {record}")
    return spent, records


def listed(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the hash that RECORD has of each file that was hashed, by its path."""
    found: dict[str, str] = {}
    for record in records:
        folder = Path(record["folder"])
        rows = environments.read_record(folder / record["metadata"])
        mine = {
            str(folder / path): digest
            for path, digest, _ in rows
            if digest and not path.startswith("..") and ".dist-info/" not in path
        }
        if len(mine) != record["hashed"]:
            raise SystemExit(f"{record['name']}: {record['hashed']} hashed of {len(mine)}")
        found |= mine
    return found


def theirs(files: Mapping[str, str], work: Path) -> float:
    """Return the seconds that sha256sum takes for *files*, in as many processes as cores.

    The largest come first for both, so that none of them is late and alone.
    """
    by_size = sorted(files, key=lambda path: -Path(path).stat().st_size)
    count = sum(1 for path in by_size if Path(path).stat().st_size > LARGE)
    lines = []
    for name, part, at_once in (("large", by_size[:count], 1), ("small", by_size[count:], AT_ONCE)):
        names = work / name
        names.write_bytes(b"\0".join(path.encode() for path in part))
        lines.append(f"xargs -0 -a {names} -n {at_once} -P {CORES} sha256sum")
    start = time.perf_counter()
    done = subprocess.run(
        ["bash", "-c", "; ".join(lines)], capture_output=True, text=True, check=True
    )
    spent = time.perf_counter() - start
    rows = (row.partition("  ") for row in done.stdout.splitlines())
    said = {path: digest for digest, _, path in rows}
    if said != {path: hexadecimal(digest) for path, digest in files.items()}:
        raise SystemExit("sha256sum says something else")
    return spent


def hexadecimal(digest: str) -> str:
    """Return a hash of RECORD as sha256sum writes it."""
    return base64.urlsafe_b64decode(digest.removeprefix("sha256=") + "=").hex()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("python", metavar="PYTHON")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    options = parser.parse_args(arguments)
    _, records = ours(options.python)
    files = listed(records)
    size = sum(Path(path).stat().st_size for path in files)
    mine, other = [], []
    with tempfile.TemporaryDirectory() as work:
        theirs(files, Path(work))
        for _ in range(options.rounds):
            mine.append(ours(options.python)[0])
            other.append(theirs(files, Path(work)))
    a, b = statistics.median(mine), statistics.median(other)
    ratio = b / a
    sys.stdout.write(
        f"{len(files)} files, {size / 1e6:,.0f} MB, {CORES} cores, medians of {options.rounds}\n"
        f"torchdoctor {a:.2f} s ({size / 1e6 / a:,.0f} MB/s), sha256sum {b:.2f} s "
        f"({size / 1e6 / b:,.0f} MB/s)\n"
        f"{'PASS' if ratio >= LEAST else 'FAIL'}  {ratio:.2f} of its speed (at least {LEAST})\n"
    )
    return int(ratio < LEAST)


if __name__ == "__main__":
    raise SystemExit(main())
