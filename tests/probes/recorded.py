"""Machines as the host probe would find them: the few files that matter, from public reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from torchdoctor import child
from torchdoctor.child import Run
from torchdoctor.resource import read_text

Files = Mapping[str, str]

UBUNTU = """\
PRETTY_NAME="Ubuntu 22.04.5 LTS"
NAME="Ubuntu"
VERSION_ID="22.04"
VERSION="22.04.5 LTS (Jammy Jellyfish)"
VERSION_CODENAME=jammy
ID=ubuntu
ID_LIKE=debian
UBUNTU_CODENAME=jammy
"""
RHEL = """\
NAME="Red Hat Enterprise Linux"
VERSION="9.4 (Plow)"
ID="rhel"
ID_LIKE="fedora"
VERSION_ID="9.4"
PRETTY_NAME="Red Hat Enterprise Linux 9.4 (Plow)"
"""
X86 = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8480+
flags\t\t: fpu sse sse2 lm avx avx2 avx512f

processor\t: 1
model name\t: not the first
"""
ARM = """\
processor\t: 0
BogoMIPS\t: 62.50
Features\t: fp asimd evtstrm aes sha1 sha2 crc32 atomics
CPU implementer\t: 0x41
CPU part\t: 0xd42
"""
NVRM = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
NVRM_OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"
    "  (dvs-builder@U22-I3-B17-02-5)  Tue Sep 23 09:55:41 UTC 2025\n"
    "GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n"
)
MODULES = """\
nvidia_uvm 1769472 4 - Live 0x0000000000000000 (POE)
nvidia_drm 94208 0 - Live 0x0000000000000000 (POE)
nvidia_modeset 1306624 1 nvidia_drm, Live 0x0000000000000000 (POE)
nvidia 56713216 127 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (POE)
xfs 2019328 3 - Live 0x0000000000000000
"""
OVERLAY = (
    "1013 812 0:131 / / rw,relatime - overlay overlay rw,"
    "lowerdir=/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B\n"
    "1024 1013 254:1 /var/lib/docker/containers/4f0c/hostname /etc/hostname rw - ext4 /dev/vda rw\n"
    "1022 1018 0:135 / /dev/shm rw,nosuid,nodev,noexec - tmpfs shm rw,size=65536k\n"
)
HOOKED = (
    "1101 1013 254:1 /usr/bin/nvidia-smi /usr/bin/nvidia-smi ro,nosuid,nodev - ext4 /dev/vda1 rw\n"
    "1102 1013 254:1 /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"
    " /usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01 ro,nosuid,nodev - ext4 /dev/vda1 rw\n"
    "1103 1018 0:6 /nvidia0 /dev/nvidia0 ro,nosuid,noexec - devtmpfs udev rw\n"
)

BARE: Files = {
    "etc/os-release": UBUNTU,
    "proc/version": "Linux version 5.15.0-124-generic (buildd@lcy02) #134-Ubuntu SMP\n",
    "proc/sys/kernel/osrelease": "5.15.0-124-generic\n",
    "proc/sys/kernel/arch": "x86_64\n",
    "proc/cpuinfo": X86,
    "proc/modules": MODULES,
    "proc/driver/nvidia/version": NVRM,
    "proc/self/mountinfo": "29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n",
    "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n",
    "proc/1/cgroup": "0::/init.scope\n",
    "dev/nvidia0": "",
    "dev/nvidiactl": "",
    "dev/nvidia-uvm": "",
    "dev/nvidia-caps/nvidia-cap1": "",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
    "sys/bus/pci/devices/0000:01:00.0/device": "0x20b0\n",
    "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
    "sys/bus/pci/devices/0000:00:02.0/vendor": "0x1a03\n",
    "sys/bus/pci/devices/0000:00:02.0/device": "0x2000\n",
    "sys/bus/pci/devices/0000:03:00.0/class": "0x020000\n",
    "usr/bin/nvidia-smi": "",
    "usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01": "",
    "usr/lib/x86_64-linux-gnu/libcuda.so.1": "-> libcuda.so.535.183.01",
    "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01": "",
    "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1": "-> libnvidia-ml.so.535.183.01",
    "usr/local/cuda-12.4/version.json": json.dumps(
        {
            "cuda": {"name": "CUDA SDK", "version": "12.4.20240301"},
            "cuda_nvcc": {"name": "CUDA NVCC", "version": "12.4.99"},
        }
    ),
    "usr/local/cuda-12.4/bin/nvcc": "",
    "usr/local/cuda": "-> cuda-12.4",
    "usr/local/cuda-10.2/version.txt": "CUDA Version 10.2.89\n",
    "var/lib/dpkg/info/libnvidia-compute-535:amd64.list": "",
    "var/lib/dpkg/info/bash.list": "",
    "run/reboot-required": "*** System restart required ***\n",
}
"""A server with one A100 and driver 535."""

MACHINES: Mapping[str, Files] = {
    "bare": BARE,
    "rhel": {**BARE, "etc/os-release": RHEL, "run/reboot-required": ""},
    "docker-gpu": {
        **BARE,
        ".dockerenv": "",
        "proc/self/mountinfo": OVERLAY + HOOKED,
        "proc/self/cgroup": "0::/\n",
        "proc/1/cgroup": "0::/\n",
    },
    "docker-no-gpu": {
        **{
            path: text
            for path, text in BARE.items()
            if not path.startswith(("dev/", "usr/bin", "usr/lib/", "run/"))
        },
        ".dockerenv": "",
        "proc/self/mountinfo": OVERLAY,
        "proc/self/cgroup": "0::/\n",
        "proc/1/cgroup": "0::/\n",
    },
    "wsl2": {
        "etc/os-release": UBUNTU,
        "proc/version": "Linux version 5.15.90.1-microsoft-standard-WSL2 (oe-user@oe-host)\n",
        "proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n",
        "proc/sys/fs/binfmt_misc/WSLInterop": "enabled\n",
        "proc/cpuinfo": X86,
        "proc/self/mountinfo": "61 51 8:32 / / rw,relatime - ext4 /dev/sdc rw\n",
        "proc/modules": "",
        "run/systemd/container": "wsl\n",
        "dev/dxg": "",
        "usr/lib/wsl/lib/libcuda.so.1": "",
        "usr/lib/wsl/lib/libnvidia-ml.so.1": "",
        "usr/lib/wsl/lib/nvidia-smi": "",
    },
    "wsl1": {
        "etc/os-release": UBUNTU,
        "proc/version": "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)\n",
        "proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n",
        "proc/sys/fs/binfmt_misc/WSLInterop": "enabled\n",
        "proc/cpuinfo": X86,
        "proc/modules": "",
    },
    "jetson": {
        "etc/os-release": UBUNTU,
        "etc/nv_tegra_release": (
            "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64\n"
        ),
        "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
        "proc/sys/kernel/osrelease": "5.15.148-tegra\n",
        "proc/cpuinfo": ARM,
        "proc/modules": "nvgpu 2658304 20 - Live 0x0000000000000000 (OE)\n",
        "dev/nvmap": "",
        "dev/nvhost-gpu": "",
        "usr/lib/aarch64-linux-gnu/nvidia/libcuda.so.1.1": "",
    },
    "rocm": {
        "etc/os-release": UBUNTU,
        "proc/sys/kernel/osrelease": "6.8.0-45-generic\n",
        "proc/cpuinfo": X86,
        "proc/modules": "amdgpu 19681280 4 - Live 0x0000000000000000\n",
        "dev/kfd": "",
        "dev/dri/renderD128": "",
        "dev/dri/card0": "",
        "sys/bus/pci/devices/0000:05:00.0/class": "0x120000\n",
        "sys/bus/pci/devices/0000:05:00.0/vendor": "0x1002\n",
        "sys/bus/pci/devices/0000:05:00.0/device": "0x74a1\n",
        "sys/bus/pci/devices/0000:09:00.0/class": "0x030000\n",
        "sys/bus/pci/devices/0000:09:00.0/vendor": "0x1002\n",
        "sys/bus/pci/devices/0000:09:00.0/device": "0x73bf\n",
        "sys/class/kfd/kfd/topology/nodes/0/properties": (
            "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n"
        ),
        "sys/class/kfd/kfd/topology/nodes/1/properties": (
            "cpu_cores_count 0\nsimd_count 1216\nvendor_id 4098\ndevice_id 29857\n"
            "location_id 1280\ndomain 0\ngfx_target_version 90402\n"
        ),
        "sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties": (
            "heap_type 1\nsize_in_bytes 206141652992\nflags 0\nwidth 8192\n"
        ),
    },
}


def write(folder: Path, files: Files) -> Path:
    """Write *files* below *folder*; a text "-> NAME" makes a link, an empty path none."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            file.symlink_to(text[3:])
        else:
            file.write_text(text, encoding="utf-8")
    return folder


def look(
    root: Path | str = "/",
    *,
    folder: Path,
    environ: Mapping[str, str] | None = None,
) -> Run:
    """Run the host probe as torchdoctor does, on the machine below *root*."""
    return child.run_probe(
        read_text("probes", "host.py"),
        {"root": str(root), "path": [entry for entry in sys.path if entry]},
        python=(sys.executable, "-I"),
        timeout=30,
        folder=str(folder),
        environ=environ or {"PATH": "/nowhere"},
    )
