"""torch is imported, the backend chosen, and the device of this rank tried."""

import importlib
import os
import time

from .saying import LOCAL_RANK, OPTIONS, PACE, Fault, Stage

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    Device = Any

NUMBERS = int(OPTIONS["numbers"])
"""Elements of the first all_reduce."""
SHARED = 8 * 1024 * 1024
"""Bytes of shared memory that NCCL takes for a pair of ranks, about."""


def import_torch() -> "tuple[ModuleType, ModuleType]":
    """Import torch, and tell which."""
    with Stage("import") as stage:
        began = time.monotonic()
        torch = importlib.import_module("torch")
        dist = importlib.import_module("torch.distributed")
        PACE.imported_in(time.monotonic() - began)
        stage.fact(torch=str(torch.__version__), cuda=torch.version.cuda, file=torch.__file__)
        stage.fact(slowness=PACE.slowness)
        if not dist.is_available():
            raise Fault("no-distributed", "this torch is built without torch.distributed")
    return torch, dist


def choose_backend(torch: "ModuleType", dist: "ModuleType") -> "tuple[str, str]":
    """Return backend and device, as asked or as they are to be had."""
    backend, device = str(OPTIONS["backend"]), str(OPTIONS["device"])
    cuda = bool(torch.cuda.is_available())
    if backend == "auto":
        backend = "nccl" if cuda and device != "cpu" and dist.is_nccl_available() else "gloo"
    if device == "auto":
        device = "cuda" if backend == "nccl" else "cpu"
    if backend == "nccl" and not dist.is_nccl_available():
        raise Fault("no-nccl", "this torch (%s) is built without NCCL" % torch.__version__)
    if device == "cuda" and not cuda:
        raise Fault("no-gpu", "torch finds no GPU that it can use")
    return backend, device


def take(torch: "ModuleType", dist: "ModuleType") -> "tuple[str, Device]":
    """Choose the backend, take this rank's device and try it, and try shared memory."""
    with Stage("device") as stage:
        backend, kind = choose_backend(torch, dist)
        device = torch.device("cpu")
        if kind == "cuda":
            count = torch.cuda.device_count()
            if count <= LOCAL_RANK and not OPTIONS["share"]:
                text = "local rank %d, and %d GPUs can be seen" % (LOCAL_RANK, count)
                raise Fault("too-few-gpus", text, gpus=count)
            device = torch.device("cuda", LOCAL_RANK % count)
            torch.cuda.set_device(device)
            stage.call()
            about = torch.cuda.get_device_properties(device)
            free, whole = torch.cuda.mem_get_info(device)
            if int(torch.ones(NUMBERS, device=device).sum().item()) != NUMBERS:
                raise Fault("kernel-wrong", "a sum on %s is wrong" % device)
            stage.fact(
                gpu=about.name, uuid=str(getattr(about, "uuid", "")), free=free, memory=whole
            )
        stage.fact(backend=backend, device=str(device))
        try_shared_memory()
    return backend, device


def try_shared_memory() -> None:
    """Take as much of /dev/shm as NCCL would, and give it back; nothing has a name there."""
    folder = "/dev/shm"  # noqa: S108 - looked at; nothing gets a name there
    if not hasattr(os, "posix_fallocate") or not os.path.isdir(folder):
        return
    try:
        file = os.open(folder, os.O_RDWR | getattr(os, "O_TMPFILE", 0), 0o600)
    except OSError:
        return  # a file system that cannot do this; what is asked here is space
    try:
        os.posix_fallocate(file, 0, SHARED)
    except OSError as error:
        told = os.statvfs(folder)
        raise Fault(
            "shm-full",
            "%d bytes of %s: %s" % (SHARED, folder, error),
            errno=error.errno,
            size=told.f_blocks * told.f_frsize,
            free=told.f_bavail * told.f_frsize,
        ) from error
    finally:
        os.close(file)


def copy_between_gpus(torch: "ModuleType", device: "Device") -> None:
    """Compare what goes directly from this GPU to the others with what goes through the host."""
    with Stage("p2p") as stage:
        if device.type != "cuda":
            return
        data = torch.arange(1 << 20, dtype=torch.int32, device=device)
        through_host = data.cpu()
        access = {}
        for other in range(torch.cuda.device_count()):
            if other == device.index:
                continue
            stage.call(peer=other)
            access[str(other)] = bool(torch.cuda.can_device_access_peer(device.index, other))
            copied = data.to("cuda:%d" % other)
            torch.cuda.synchronize(other)
            if not torch.equal(copied.cpu(), through_host):
                text = "what GPU %d sends to GPU %d arrives altered" % (device.index, other)
                raise Fault("p2p-altered", text, gpus=[device.index, other])
        stage.fact(access=access)
