"""A program with workers in a real control group of its own, as a container has one.

Run by itself, with the folder of the group, it is that program: it moves itself into the group,
makes a dataset of Python objects, forks workers that read some of it, and says when they have.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from torchdoctor import child
from torchdoctor.child import Run
from torchdoctor.resource import read_text

MIB = 1 << 20
KEPT = (
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.oom_control",
)
CGROUPS = Path("/sys/fs/cgroup")
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Group:
    """A control group for memory, and how its version calls the files."""

    folder: Path
    limit: str
    kills: str


def own_group() -> Path:
    """Return the folder of this process's group for memory.

    Raises:
        LookupError: there is none.

    """
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        groups.update(dict.fromkeys(names.split(","), path))
    if "memory" in groups:
        return CGROUPS / "memory" / groups["memory"].lstrip("/")
    if "" in groups and (CGROUPS / "cgroup.controllers").is_file():
        return CGROUPS / groups[""].lstrip("/")
    raise LookupError("no control group for memory")


@contextmanager
def group(limit: int) -> Iterator[Group]:
    """Give a new group with a *limit* in bytes, and remove it with all that runs in it.

    Raises:
        LookupError: this user may not make one.

    """
    folder = own_group() / f"crowd-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as error:
        raise LookupError(f"no group can be made: {error}") from None
    first = (folder / "memory.limit_in_bytes").exists()
    names = ("memory.limit_in_bytes", "memory.oom_control") if first else ("memory.max", "")
    made = Group(folder, names[0], names[1] or "memory.events")
    try:
        try:
            (folder / made.limit).write_text(str(limit))
        except OSError as error:
            raise LookupError(f"no limit can be set: {error}") from None
        yield made
    finally:
        for _ in range(100):
            with suppress(OSError):
                for number in (folder / "cgroup.procs").read_text().split():
                    os.kill(int(number), 9)
                folder.rmdir()
                break
            time.sleep(0.05)


@contextmanager
def at_work(where: Group, workers: int, mb: int, share: float) -> Iterator[subprocess.Popen[str]]:
    """Give a program in *where* whose *workers* have read a *share* of a dataset of *mb* MB."""
    line = [
        sys.executable,
        "-m",
        "tests.linux.crowd",
        str(where.folder),
        str(workers),
        str(mb),
        str(share),
    ]
    with subprocess.Popen(
        line, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        try:
            yield program
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, 9)


def look(where: Group, folder: Path) -> Run:
    """Run the host probe inside the group, as torchdoctor does where it runs in a container."""
    inside = f'echo $$ > {where.folder}/cgroup.procs; exec "$0" "$@"'
    return child.run_probe(
        read_text("probes", "host.py"),
        {"path": [entry for entry in sys.path if entry]},
        python=("sh", "-c", inside, sys.executable, "-I"),
        timeout=30,
        folder=str(folder),
        environ={"PATH": os.environ["PATH"]},
    )


def record(where: Group) -> dict[str, str]:
    """Return what the kernel says of the group and the programs in it, under plain paths."""
    numbers = (where.folder / "cgroup.procs").read_text().split()
    files = [path for path in where.folder.iterdir() if path.name in KEPT]
    files += [Path("/proc/meminfo")]
    names = ("comm", "status", "cmdline", "cgroup", "smaps_rollup")
    files += [Path("/proc", number, name) for number in numbers for name in names]
    own = f"/{where.folder.relative_to(CGROUPS / 'memory')}"
    said = {str(path.relative_to("/")): path.read_text() for path in files}
    return {p.replace(own, "/job"): text.replace(own, "/job") for p, text in said.items()}


def enter(folder: str) -> None:
    """Move this process into the group *folder*."""
    Path(folder, "cgroup.procs").write_text(str(os.getpid()))


def main(folder: str, workers: str, mb: str, share: str) -> None:
    """Be the program; ends when it is killed."""
    enter(folder)
    # A float of its own is 24 bytes, and its place in the list 8.
    data = [float(n) for n in range(int(mb) * MIB // 32)]
    pipe = os.pipe()
    for _ in range(int(workers)):
        if os.fork() == 0:
            part = data[: int(len(data) * float(share))]  # counts a reference in each
            os.write(pipe[1], b"." if part or not float(share) else b"")
            time.sleep(600)
            os._exit(0)
    left = int(workers)
    while left:
        if select.select([pipe[0]], [], [], 0.02)[0]:
            left -= len(os.read(pipe[0], 1))
        with suppress(ChildProcessError):
            left -= os.waitpid(-1, os.WNOHANG)[0] > 0  # killed, while it read
    print("ready", flush=True)  # noqa: T201 - whoever started it waits for this
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
