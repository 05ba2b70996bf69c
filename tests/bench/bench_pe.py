"""How fast PE files are read, against pefile, and how fast a closure is found among many folders.

    python -m tests.bench.bench_pe FOLDER

FOLDER holds torch/lib of one wheel for Windows (unpacked, with torch_cpu.dll). Run by hand on a
quiet machine, not in CI. Both sides of the ratio run in turn and have to say the same. The exit
code is 1 when a target is missed.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.windows import oracle
from windows import dll_facts, pe
from windows.loader import Folder, Machine, load

ROUNDS = 5
FOLDERS, DLLS = 100, 3000
LEAST_RATIO, MOST_SECONDS = 10.0, 1.0


def timed(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def against_pefile(files: list[Path]) -> float:
    """Return how many times longer pefile takes for *files*, by the medians of some rounds.

    Held against it are the facts that a snapshot has, with the hash of each symbol; what the reader
    alone takes is printed, too.
    """
    alone: list[float] = []
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        spent, said = timed(lambda: [pe.read(path) for path in files])
        alone.append(spent)
        spent, facts = timed(lambda: [dll_facts.read(str(path)) for path in files])
        ours.append(spent)
        spent, expected = timed(lambda: [oracle.read(str(path)) for path in files])
        theirs.append(spent)
        assert said == expected
        assert isinstance(facts, list)
        assert all(f.exports for f in facts if f.name == "torch_cpu.dll")
    reader, a, b = map(statistics.median, (alone, ours, theirs))
    print(f"{len(files)} files: the reader {reader:.3f} s, ratio {b / reader:.1f}")  # noqa: T201
    print(f"{len(files)} files: their facts {a:.3f} s, pefile {b:.3f} s, ratio {b / a:.1f}")  # noqa: T201
    return b / a


def closure(lib: Path, work: Path) -> float:
    """Return the seconds for the closure of torch_cpu.dll with all of PATH in the search."""
    for number in range(FOLDERS):
        folder = work / f"path{number:03}"
        folder.mkdir()
        for name in range(DLLS):
            (folder / f"some{name:04}.dll").touch()
    spent, listed = timed(
        lambda: tuple(
            Folder(rf"D:\path{n:03}", "path", dll_facts.OnDisk(str(work / f"path{n:03}")))
            for n in range(FOLDERS)
        )
    )
    assert isinstance(listed, tuple)
    print(f"{FOLDERS} folders of {DLLS} DLLs: listed in {spent:.3f} s")  # noqa: T201
    own = Folder(r"D:\torch\lib", "package", dll_facts.OnDisk(str(lib)))
    windows = Folder(r"C:\Windows\System32", "system32", {}, complete=False)
    # Without a VC++ runtime, every folder is asked for every DLL of it.
    machine = Machine((windows, own, *listed, Folder(own.path, "path", own.files)))
    spent, result = timed(lambda: load(machine, r"D:\torch\lib\torch_cpu.dll", 0))
    print(f"closure of torch_cpu.dll: {spent:.3f} s, {result}"[:300])  # noqa: T201
    return spent


def main(lib: Path) -> int:
    ratio = against_pefile(sorted(lib.glob("*.dll")))
    with tempfile.TemporaryDirectory() as work:
        seconds = closure(lib, Path(work))
    return int(ratio < LEAST_RATIO or seconds > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
