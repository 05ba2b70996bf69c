"""A stand-in for nvidia-smi: prints what recorded ones print, or hangs, or answers rubbish."""

from __future__ import annotations

import os
import sys
from pathlib import Path

KINDS = ("old535", "a100-580", "gtx1080", "new610", "hang", "mismatch", "rubbish")

PROGRAM = r"""#!@PYTHON@ -S
import sys, time

KIND = "@KIND@"
MACHINES = {
    "old535": ("535.183.01", "12.2", "NVIDIA A100-SXM4-40GB", "8.0", "old"),
    "a100-580": ("580.95.05", "13.0", "NVIDIA A100-SXM4-40GB", "8.0", "old"),
    "gtx1080": ("580.95.05", "13.0", "NVIDIA GeForce GTX 1080", "6.1", "old"),
    "new610": ("610.43.02", "13.3", "NVIDIA B200", "10.0", "new"),
}
UUID = "GPU-11111111-2222-3333-4444-555555555555"
if KIND == "hang":
    time.sleep(100000)
if KIND == "mismatch":
    print("Failed to initialize NVML: Driver/library version mismatch")
    print("NVML library version: 580.95")
    sys.exit(18)
if KIND == "rubbish":
    sys.stdout.buffer.write(bytes(range(256)) * 64 + b"\n")
    sys.exit(0)
release, cuda, name, capability, style = MACHINES[KIND]
words = sys.argv[1:]
query = [word for word in words if word.startswith("--query-gpu")]
if query:
    first = query[0]
    fields = first.split("=", 1)[1] if "=" in first else words[words.index(first) + 1]
    how = " ".join(words)
    unit = "" if "nounits" in how else " MiB"
    values = {
        "index": "0", "count": "1", "name": name, "gpu_name": name, "driver_version": release,
        "compute_cap": capability, "memory.total": "40960" + unit, "memory.used": "0" + unit,
        "memory.free": "40960" + unit, "uuid": UUID, "gpu_uuid": UUID,
        "pci.bus_id": "00000000:01:00.0", "vbios_version": "96.00", "compute_mode": "Default",
        "mig.mode.current": "Disabled" if capability != "6.1" else "[N/A]",
    }
    fields = [field.strip() for field in fields.split(",")]
    if "noheader" not in how:
        print(", ".join(fields))
    print(", ".join(values.get(field, "[N/A]") for field in fields))
    sys.exit(0)
if "-L" in words or "--list-gpus" in words:
    print("GPU 0: %s (UUID: %s)" % (name, UUID))
    sys.exit(0)
if "--version" in words:
    branch = release.rsplit(".", 1)[0]
    print("NVIDIA-SMI version  : " + release)
    print("NVML version        : " + branch)
    if style == "old":
        print("DRIVER version      : " + release)
        print("CUDA Version        : " + cuda)
    else:
        print("KMD version      : " + release)
        print("CUDA UMD Version        : " + cuda)
    sys.exit(0)
line = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
print("Sun Nov 29 12:00:00 2026")
print("+" + "-" * 89 + "+")
if style == "old":
    print("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s|" % (release, release, cuda))
else:
    first = "| NVIDIA-SMI %-22s KMD Version: %-13s CUDA UMD Version: %-8s|"
    print(first % (release, release, cuda))
print("|" + line[1:-1] + "|")
print("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
print("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |")
print("|                                         |                        |               MIG M. |")
print("|" + line[1:-1].replace("-", "=") + "|")
print("|   0  %-31sOff |   00000000:01:00.0 Off |                    0 |" % name)
print("| N/A   30C    P0             50W /  400W |       0MiB /  40960MiB |      0%      Default |")
print("|                                         |                        |             Disabled |")
print(line)
"""


def install(folder: Path, kind: str) -> Path:
    """Write a ``nvidia-smi`` of *kind* to *folder* and return it."""
    if kind not in KINDS:
        raise ValueError(kind)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "nvidia-smi"
    python = os.path.realpath(sys.executable)
    path.write_text(PROGRAM.replace("@PYTHON@", python).replace("@KIND@", kind))
    path.chmod(0o755)
    return path
