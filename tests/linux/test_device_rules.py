"""A device file that is open to all and that the rules of a real control group refuse."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchdoctor import child
from torchdoctor.facts import DeviceNode
from torchdoctor.reading import host
from torchdoctor.resource import read_text

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's control groups"),
    pytest.mark.lab,
]
MAJOR = 195
"""The number of NVIDIA's devices (the kernel's admin-guide/devices)."""


@pytest.fixture
def rules() -> Iterator[Path]:
    """Give a control group that refuses NVIDIA's devices, as Slurm makes one for each job."""
    folder = Path("/sys/fs/cgroup/devices") / f"rules-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
    except OSError as reason:
        pytest.skip(f"no group for devices can be made: {reason}")
    try:
        (folder / "devices.deny").write_text(f"c {MAJOR}:* rwm")
        yield folder
    finally:
        folder.rmdir()


def nodes(root: Path, group: Path | None) -> tuple[DeviceNode, ...]:
    """Return the device files below *root* as the probe sees them from inside *group*."""
    enter = f"echo $$ > {group}/cgroup.procs;" if group else ""
    run = child.run_probe(
        read_text("probes", "host.py"),
        {"root": str(root), "path": []},
        python=("sh", "-c", enter + 'exec "$0" "$@"', sys.executable, "-I"),
        timeout=30,
        folder=str(root),
        environ={"PATH": os.environ["PATH"]},
    )
    found = host.read(run)["device_nodes"]
    assert isinstance(found, tuple), found
    return found


def test_the_rules_of_a_control_group_are_seen(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    try:
        os.mknod(tmp_path / "dev" / "nvidia0", 0o020666, os.makedev(MAJOR, 0))
    except PermissionError as reason:
        pytest.skip(f"no device file can be made: {reason}")
    (tmp_path / "dev" / "nvidia0").chmod(0o666)
    (free,) = nodes(tmp_path, None)
    (shut,) = nodes(tmp_path, rules)
    assert (free.allowed, free.mode) == (True, "0666")
    assert (shut.allowed, shut.mode) == (False, "0666")
