"""Workers that do not fit into the memory they may use, in a real control group and in its files.

The recorded files are of a control group of version 1 on Linux 6.18, its path renamed; those of
version 2 hold the same numbers in the layout of the kernel's cgroup-v2 guide.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.linux import crowd
from tests.linux.crowd import MIB, Group
from tests.probes.recorded import look, write
from torchdoctor.child import Run
from torchdoctor.facts import Facts, Limits, Workers
from torchdoctor.reading import host
from torchdoctor.registry import all_checks
from torchdoctor.run import run as judge

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's control groups")

RECORDED: dict[str, str] = json.loads(Path(__file__).with_name("crowd.json").read_text("utf-8"))
FIRST = {
    "proc/self/mountinfo": "40 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    "proc/self/cgroup": "4:memory:/job\n0::/\n",
}
WORKERS, MB = 4, 100


def second_version(files: dict[str, str]) -> dict[str, str]:
    """Return *files* of version 1 as version 2 has them."""
    names = {
        "memory.limit_in_bytes": "memory.max",
        "memory.usage_in_bytes": "memory.current",
        "memory.max_usage_in_bytes": "memory.peak",
        "memory.oom_control": "memory.events",
    }
    found = {
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "proc/self/cgroup": "0::/job\n",
    }
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        if name in names:
            kills = text.rpartition("oom_kill ")[2]
            events = f"low 0\nhigh 0\nmax 812\noom 0\noom_kill {kills}"
            content = events if name == "memory.oom_control" else text
            found[f"{folder.replace('/memory', '')}/{names[name]}"] = content
        else:
            found[path] = "0::/job\n" if name == "cgroup" else text
    return found


VERSIONS = {"1": RECORDED | FIRST, "2": second_version(RECORDED)}


def found(run: Run) -> dict[str, str]:
    """Return what is said of the memory limit: finding and severity."""
    assert run.outcome == "answered", run.stderr.text
    assert run.data["errors"] == {}
    checks = {"memory-limit": all_checks()["memory-limit"]}
    (outcome,) = judge(checks, Facts(**host.read(run)))  # type: ignore[arg-type]
    return {finding.name: finding.severity for finding in outcome.findings}


@pytest.fixture(scope="module", params=VERSIONS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("recorded")
    return look(write(folder / "root", VERSIONS[request.param]), folder=folder)


def changed(run: Run, old: str, new: str) -> Run:
    """Return *run* with another text in the answer."""
    said = json.dumps(run.data)
    assert old in said
    return replace(run, data=json.loads(said.replace(old, new)))


def test_recorded_files_say_how_much_workers_hold(recorded: Run) -> None:
    read = host.read(recorded)
    limits, programs = read["limits"], read["workers"]
    assert isinstance(limits, Limits)
    assert isinstance(programs, tuple)
    assert limits.oom_kills == 0
    used, peak, most = limits.memory_used, limits.memory_peak, limits.memory
    assert used is not None
    assert peak is not None
    assert most == 450 * MIB
    assert most // 2 < used <= peak <= most
    assert limits.ram is not None
    assert limits.ram > 1 << 30
    (workers,) = programs
    assert isinstance(workers, Workers)
    assert (workers.count, workers.named, workers.same_group) == (WORKERS, False, True)
    assert workers.own is not None
    assert 50 * MIB < workers.own < workers.each < 200 * MIB


def test_recorded_workers_that_will_not_fit_are_told(recorded: Run) -> None:
    assert found(recorded) == {"dataloader-too-many-workers": "warning"}


def test_recorded_workers_that_fit_are_not(recorded: Run) -> None:
    assert found(changed(recorded, f"{450 * MIB}\\n", f"{2000 * MIB}\\n")) == {}


def test_what_was_killed_is_counted(recorded: Run) -> None:
    killed = changed(recorded, "oom_kill 0", "oom_kill 2")
    said = {"dataloader-too-many-workers": "warning", "host-oom-killed": "warning"}
    assert found(killed) == said


# ---- for real -----------------------------------------------------------------------------------


def real(limit: int) -> Iterator[Group]:
    try:
        with crowd.group(limit * MIB) as made:
            yield made
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture
def tight() -> Iterator[Group]:
    yield from real(450)


@pytest.fixture
def roomy() -> Iterator[Group]:
    yield from real(2000)


@pytest.mark.lab
@pytest.mark.sample
def test_workers_that_copy_more_than_fits_are_told(tight: Group, tmp_path: Path) -> None:
    with crowd.at_work(tight, WORKERS, MB, 0.6):
        assert found(crowd.look(tight, tmp_path)) == {"dataloader-too-many-workers": "warning"}


@pytest.mark.lab
def test_the_same_with_room_for_all_is_quiet(roomy: Group, tmp_path: Path) -> None:
    with crowd.at_work(roomy, WORKERS, MB, 0.6):
        assert found(crowd.look(roomy, tmp_path)) == {}


@pytest.mark.lab
def test_workers_that_share_what_they_do_not_read_are_quiet(tight: Group, tmp_path: Path) -> None:
    with crowd.at_work(tight, WORKERS, MB, 0.0):
        assert found(crowd.look(tight, tmp_path)) == {}


@pytest.mark.lab
def test_what_the_kernel_kills_is_told(tight: Group, tmp_path: Path) -> None:
    with crowd.at_work(tight, WORKERS, MB, 1.0):
        assert found(crowd.look(tight, tmp_path))["host-oom-killed"] == "warning"
