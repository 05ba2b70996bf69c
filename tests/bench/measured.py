"""Run a command from a small process, and tell its seconds and its largest memory.

    python -m tests.bench.measured OUTPUT COMMAND...

What a process is started from counts as its memory until it is a program of its own, so that a
big one (a run of tests) cannot measure a small one. The command's output goes to OUTPUT; one line
on stdout holds the exit code, the seconds and the memory in MB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def run(line: Sequence[str], output: Path) -> tuple[int, float, float]:
    """Run *line*, its output into a file; return exit code, seconds and largest memory in MB."""
    words = [sys.executable, "-I", "-S", __file__, str(output), *line]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    code, seconds, memory = json.loads(done.stdout)
    return code, seconds, memory


def main(output: str, *line: str) -> None:
    """Run *line* here and print what it took."""
    start = time.perf_counter()
    with open(output, "wb") as file:  # noqa: PTH123 - as little as possible is imported
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), 1)]
        pid = os.posix_spawnp(line[0], line, os.environ, file_actions=actions)
        _, status, used = os.wait4(pid, 0)
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    seconds = time.perf_counter() - start
    print(json.dumps([os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss / scale]))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
