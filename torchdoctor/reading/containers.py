"""Read what the host probe said of the container around it, if there is one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from torchdoctor.facts import Container
from torchdoctor.reading.said import Said, said

if TYPE_CHECKING:
    from torchdoctor.child import Run

_HOOK = re.compile(
    r"/lib(?:cuda|nvidia-ml)\.so|/nvidia-smi$|/nvidia-container|^/proc/driver/nvidia"
    r"|^/dev/nvidia|^/usr/local/nvidia"
)
_DISK = re.compile(r" - \S+ /dev/(?:vd|xvd|sd|nvme|mmcblk)\S* ")
_SINGULARITY = ("SINGULARITY", "APPTAINER")


def container(run: Run) -> Container | None:
    """Read which container this is, None when it is none; raises Unreadable."""
    piece = said(run, "container").part("container")
    kind = _container_kind(piece)
    return None if kind is None else Container(kind, _gpu_hook(piece), _ipc(piece))


def _container_kind(piece: Said) -> str | None:
    files = piece.texts("files")
    variables = piece.part("variables")
    groups = piece.part("cgroup")
    seen = " ".join((groups.text(name) or "") for name in ("1", "self"))
    named = variables.line("container") or piece.line("systemd") or ""
    if variables.line("KUBERNETES_SERVICE_HOST") or any("kubernetes.io" in f for f in files):
        return "kubernetes"
    if any(variables.line(f"{n}_{v}") for n in _SINGULARITY for v in ("CONTAINER", "NAME")):
        return "singularity"
    if "/run/.containerenv" in files or named == "podman":
        return "podman"
    marks = {
        "kubernetes": "kubepods" in seen,
        "docker": "/docker" in seen or named == "docker" or _docker_file(files, piece),
        "podman": "/libpod" in seen,
        "lxc": "/lxc/" in seen or named in ("lxc", "lxc-libvirt") or "/dev/lxd/sock" in files,
        "singularity": "/.singularity.d" in files,
        "container": bool(named) and named != "wsl",
    }
    return next((kind for kind, there in marks.items() if there), None)


def _docker_file(files: tuple[str, ...], piece: Said) -> bool:
    """Tell a container from a virtual machine whose disk was made out of an image.

    Both have the file; only the machine has a whole disk as its root.
    """
    root = next((line for line in piece.texts("mounts") if line.split(" ")[3:5] == ["/", "/"]), "")
    return "/.dockerenv" in files and not _DISK.search(root)


def _gpu_hook(piece: Said) -> bool | None:
    """Tell whether a GPU was handed in: driver files are mounted, or one is named by its UUID.

    NVIDIA_VISIBLE_DEVICES=all says nothing: images set it themselves, hook or no hook.
    """
    devices = piece.part("variables").text("NVIDIA_VISIBLE_DEVICES") or ""
    if re.match(r"GPU-|MIG-|[0-9]", devices):
        return True
    if piece.data.get("mounts") is None:
        return None
    points = (line.split(" ")[4:5] for line in piece.texts("mounts"))
    return any(_HOOK.search(point[0]) for point in points if point)


def _ipc(piece: Said) -> Literal["own", "given"] | None:
    """Tell whose /dev/shm it is: containerd, docker and podman call the one that they make "shm".

    The host's (--ipc=host) and a volume of Kubernetes are mounts of another name.
    """
    lines = (line.partition(" - ") for line in piece.texts("mounts"))
    kinds = [
        right.split(" ")
        for left, _, right in lines
        if left.split(" ")[4:5] == ["/dev/shm"]  # noqa: S108 - a name in a text
    ]
    if not kinds:
        return None
    return "own" if kinds[-1][1:2] == ["shm"] else "given"
