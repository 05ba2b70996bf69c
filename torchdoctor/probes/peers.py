"""Look at what is between the NVIDIA GPUs of a machine: bridges with ACS, the IOMMU.

Its source is piped to our own interpreter, with ``{"root": "/"}`` as its argument: the folder that
is taken for "/". One JSON object a line; the last one has ``done``. Linux only, nothing but sysfs
and the kernel's command line is read. The control bits of ACS are in the extended configuration of
a bridge, which the kernel shows to root alone: without it they are told as unknown (null).

Sources: sysfs(5), the kernel's Documentation/ABI/testing/sysfs-bus-pci, sysfs-kernel-iommu_groups,
PCI Express Base Specification 7.7.11 (include/uapi/linux/pci_regs.h: PCI_EXT_CAP_ID_ACS).
"""

from __future__ import annotations

import json
import os
import sys

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
DISPLAY = ("0x0300", "0x0302")
MOST = 64
EXTENDED = 0x100
"""Where the list of extended capabilities begins; a reader who is not root sees less."""
ACS = 0x000D
CONTROL = 6
REDIRECTS = 0x0004 | 0x0008
"""Request redirect, completion redirect."""
WORDS = ("iommu", "pci=", "amd_iommu", "intel_iommu", "vfio", "disable_acs_redir")


def text(path: str) -> str:
    """Return the beginning of a small file, or nothing."""
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode("utf-8", "backslashreplace").strip()
    except OSError:
        return ""


def names(path: str) -> list[str]:
    """Return the names in a folder, sorted; none when it cannot be listed."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def control(config: bytes) -> int | None:
    """Return the control register of ACS: 0 where there is none, None where it is not shown."""
    if len(config) <= EXTENDED:
        return None
    at, seen = EXTENDED, 0
    while at >= EXTENDED and at + 8 <= len(config) and seen < MOST:
        head = int.from_bytes(config[at : at + 4], "little")
        if head & 0xFFFF == ACS:
            return int.from_bytes(config[at + CONTROL : at + CONTROL + 2], "little")
        at, seen = head >> 20, seen + 1
    return 0


def bridge(path: str) -> dict[str, object]:
    """Return what a bridge does with what one device below it sends to another."""
    try:
        with open(os.path.join(path, "config"), "rb") as file:
            bits = control(file.read(4096))
    except OSError:
        bits = None
    redirects = None if bits is None else bool(bits & REDIRECTS)
    return {"name": os.path.basename(path), "redirects": redirects}


def main() -> None:
    """Find the GPUs, and what is above them."""
    root = json.loads(sys.argv[1])["root"].rstrip("/")
    gpus = []
    above = {}  # type: dict[str, None]
    for name in names(root + DEVICES):
        path = os.path.join(root + DEVICES, name)
        if text(path + "/vendor") == NVIDIA and text(path + "/class").startswith(DISPLAY):
            gpus.append(name)
            upwards = os.path.dirname(os.path.realpath(path))
            while os.path.isfile(upwards + "/vendor"):
                above[upwards] = None
                upwards = os.path.dirname(upwards)
    kinds = [text(root + "/sys/bus/pci/devices/%s/iommu_group/type" % name) for name in gpus[:MOST]]
    line = [word for word in text(root + "/proc/cmdline").split() if any(w in word for w in WORDS)]
    said = {
        "gpus": gpus[:MOST],
        "bridges": [bridge(path) for path in list(above)[:MOST]],
        "iommu": {
            "units": names(root + "/sys/class/iommu")[:MOST],
            "kinds": sorted(set(filter(None, kinds))),
        },
        "command_line": line[:MOST],
        "virtual": "hypervisor" in text(root + "/proc/cpuinfo"),
    }
    sys.stdout.write("%s\n%s\n" % (json.dumps(said), json.dumps({"done": True})))


if __name__ == "__main__":
    main()
