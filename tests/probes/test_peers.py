"""Bridges above GPUs, in a folder that is laid out as sysfs is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from torchdoctor import child
from torchdoctor.facts import Peers, Unknown
from torchdoctor.reading import peers
from torchdoctor.resource import read_text

REQUESTS, COMPLETIONS, VALIDATION = 0x0004, 0x0008, 0x0001


def config(control: int | None, *, size: int = 4096) -> bytes:
    """Return the configuration of a bridge: another extended capability first, then ACS."""
    space = bytearray(4096)
    space[0x100:0x104] = (0x0001 | 1 << 16 | 0x140 << 20).to_bytes(4, "little")
    if control is not None:
        space[0x140:0x144] = (0x000D | 1 << 16).to_bytes(4, "little")
        space[0x146:0x148] = control.to_bytes(2, "little")
    return bytes(space[:size])


def machine(root: Path, *bridges: bytes, kind: str = "DMA-FQ", flags: str = "fpu") -> Path:
    """Lay out one GPU below each bridge."""
    devices = root / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    for number, content in enumerate(bridges):
        above = root / f"sys/devices/pci0000:00/0000:00:0{number}.0"
        gpu = above / f"0000:0{number + 1}:00.0"
        (gpu / "iommu_group").mkdir(parents=True)
        for place, vendor, what in ((above, "0x8086", "0x060400"), (gpu, "0x10de", "0x030200")):
            (place / "vendor").write_text(f"{vendor}\n")
            (place / "class").write_text(f"{what}\n")
            (devices / place.name).symlink_to(place)
        (above / "config").write_bytes(content)
        (gpu / "iommu_group/type").write_text(f"{kind}\n")
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"flags\t\t: {flags}\n")
    (root / "proc/cmdline").write_text("ro quiet intel_iommu=on secret=1\n")
    return root


def look(root: Path) -> child.Run:
    return child.run_probe(
        read_text("probes", "peers.py"),
        {"root": str(root)},
        python=(sys.executable, "-I", "-S"),
        timeout=20,
        folder=str(root),
        environ={},
    )


def read(root: Path) -> Peers:
    fact = peers.read(look(root))["peers"]
    assert isinstance(fact, Peers)
    return fact


@pytest.mark.parametrize(
    ("control", "redirects"),
    [
        (REQUESTS | COMPLETIONS | VALIDATION, True),
        (REQUESTS, True),
        (COMPLETIONS, True),
        (VALIDATION, False),
        (0, False),
        (None, False),  # a bridge without ACS
    ],
)
def test_the_control_bits_of_acs_are_read(
    control: int | None, *, redirects: bool, tmp_path: Path
) -> None:
    found = read(machine(tmp_path, config(control), config(0)))
    assert found == Peers(2, ("0000:00:00.0",) if redirects else (), "translates")


def test_what_root_alone_may_see_is_not_seen(tmp_path: Path) -> None:
    hidden = config(REQUESTS, size=64)
    assert read(machine(tmp_path, hidden, hidden)).redirecting is None


def test_an_iommu_in_pass_through_and_a_virtual_machine_are_told(tmp_path: Path) -> None:
    found = read(machine(tmp_path, config(0), config(0), kind="identity", flags="fpu hypervisor"))
    assert (found.iommu, found.virtual) == ("pass-through", True)


def test_of_the_command_line_only_what_steers_the_iommu_is_kept(tmp_path: Path) -> None:
    assert look(machine(tmp_path, config(0))).data["command_line"] == ["intel_iommu=on"]


@pytest.mark.parametrize("loop", [0x100, 0x140])
def test_a_list_of_capabilities_that_never_ends_is_left(loop: int, tmp_path: Path) -> None:
    space = bytearray(config(None))
    space[0x100:0x104] = (0x0001 | loop << 20).to_bytes(4, "little")
    space[0x140:0x144] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    assert read(machine(tmp_path, bytes(space))).redirecting == ()


def test_an_answer_that_is_none_is_unknown() -> None:
    for data in ({}, {"done": True}, {"done": True, "gpus": 2, "bridges": []}):
        assert isinstance(peers.read(child.Run((), "answered", data=data))["peers"], Unknown)
