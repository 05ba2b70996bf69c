"""What each rank is, and what the ranks must and must not differ in."""

import json
import os
import socket

from .interfaces import advertised
from .meeting import wait_for_all
from .saying import OPTIONS, PACE, RANK, WORLD, Fault, Stage
from .settings import conf, text_of

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Store = Any
    Device = Any

FAMILIES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_GLOO_", "UCX_", "FI_")
OURS = ("NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_SOCKET_RETRY_CNT")


def network() -> str:
    """Return what tells network namespaces apart, on one machine and between machines."""
    try:
        space = os.stat("/proc/self/ns/net").st_ino
    except OSError:
        space = 0
    return "%s %d" % (text_of("/proc/sys/kernel/random/boot_id") or socket.gethostname(), space)


def loaded_nccl() -> str:
    """Return the version of the NCCL that this process has loaded; torch tells another one."""
    for line in text_of_maps():
        path = line.partition("/")[2].strip()
        if "libnccl.so" in path:
            import ctypes

            number = ctypes.c_int()
            library = ctypes.CDLL("/" + path)
            library.ncclGetVersion.argtypes = [ctypes.POINTER(ctypes.c_int)]
            library.ncclGetVersion(ctypes.byref(number))
            return str(number.value)
    return ""


def text_of_maps() -> "list[str]":
    """Return what this process has mapped, line by line."""
    try:
        with open("/proc/self/maps", errors="backslashreplace") as file:
            return file.readlines()
    except OSError:
        return []


def driver() -> str:
    """Return the release of the NVIDIA driver that is loaded."""
    line = text_of("/proc/driver/nvidia/version").split("\n")[0]
    words = [word for word in line.split() if word[:1].isdigit() and "." in word]
    return words[0] if words else ""


def own(torch: "ModuleType", backend: str, device: "Device") -> "dict[str, Any]":
    """Return what the ranks have to agree on, or to differ in."""
    address, interface = advertised(backend)
    gpu = ""
    if device.type == "cuda":
        gpu = str(getattr(torch.cuda.get_device_properties(device), "uuid", ""))
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "network": network(),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "nccl": loaded_nccl() if backend == "nccl" else "",
        "driver": driver(),
        "gpu": gpu,
        "backend": backend,
        "address": address,
        "interface": interface,
        "slowness": PACE.slowness,
        "variables": {
            name: value[:200]
            for name, value in os.environ.items()
            if name.startswith(FAMILIES) and name not in OURS
        },
        "conf": conf(),
    }


def exchange(store: "Store", mine: "dict[str, Any]", stage: Stage) -> "list[dict[str, Any]]":
    """Return what all ranks say of themselves; raise what they must not differ in."""
    stage.fact(**mine)
    store.set("facts/%d" % RANK, json.dumps(mine))
    stage.call()
    wait_for_all(store, "facts", PACE.limit())
    each = [
        dict(mine) if rank == RANK else json.loads(store.get("facts/%d" % rank))
        for rank in range(WORLD)
    ]
    PACE.at_least(max(float(one["slowness"]) for one in each))
    stage.fact(slowness=PACE.slowness)
    for name in ("torch", "cuda", "backend", "nccl"):
        values = [one[name] for one in each]
        if len(set(values)) > 1:
            most = max(values, key=values.count)
            others = [rank for rank, value in enumerate(values) if value != most]
            text = "%s differs: %s" % (name, values)
            raise Fault("differs", text, what=name, values=values, ranks=others)
    gpus = {}  # type: dict[str, list[int]]
    for rank, one in enumerate(each):
        if one["gpu"] and not OPTIONS["share"]:
            gpus.setdefault(one["network"].split()[0] + one["gpu"], []).append(rank)
    for ranks in gpus.values():
        if len(ranks) > 1:
            raise Fault("same-gpu", "ranks %s use one GPU" % ranks, ranks=ranks)
    return each
