"""Read the host probe's answer: platform, processor, container, limits, device files, toolkits.

Every piece is read on its own. What the probe could not look at, or said in another shape than
it does, is :class:`Unknown` with the reason; nothing is guessed in its place.

Sources: proc_cpuinfo(5); the kernel's cgroup-v1 and cgroup-v2 guides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torchdoctor.facts import Cpu, DeviceNode, Kernel, Network, Unknown
from torchdoctor.reading.containers import container
from torchdoctor.reading.limits import limits, workers
from torchdoctor.reading.platforms import os_release, platform
from torchdoctor.reading.said import Said, Unreadable, said
from torchdoctor.reading.toolkits import toolkits

if TYPE_CHECKING:
    from torchdoctor.child import Run


def read(run: Run) -> dict[str, object]:
    """Return the facts of the host probe by their names; :class:`Unknown` where one failed."""
    readers: dict[str, Callable[[Run], object]] = {
        "platform": platform,
        "cpu": cpu,
        "container": container,
        "limits": limits,
        "workers": workers,
        "network": network,
        "device_nodes": device_nodes,
        "kernel": kernel,
        "toolkits": toolkits,
    }
    return {name: _or_unknown(reader, run) for name, reader in readers.items()}


def _or_unknown(reader: Callable[[Run], object], run: Run) -> object:
    """Return what *reader* makes of *run*, or why it cannot."""
    try:
        return reader(run)
    except ValueError as error:
        return Unknown(str(error))


def cpu(run: Run) -> Cpu:
    """Read the processor; raises Unreadable."""
    piece = said(run, "cpu").part("cpu")
    count = piece.number("count")
    if sysctl := piece.part("sysctl").data:
        mac = Said(sysctl, "host.cpu.sysctl")
        words = [
            (mac.text(f"machdep.cpu.{name}") or "").lower()
            for name in ("features", "leaf7_features")
        ]
        flags = frozenset(" ".join(words).replace("avx1.0", "avx").split())
        return Cpu(mac.line("machdep.cpu.brand_string"), flags, count)
    if features := piece.part("features").data:
        name = piece.part("registry").line("ProcessorNameString")
        return Cpu(name, frozenset(k for k, v in features.items() if v is True), count)
    lines = [line.partition(":") for line in (piece.text("cpuinfo") or "").splitlines()]
    info = {name.strip(): value.strip() for name, _, value in lines}
    model = info.get("model name") or info.get("cpu model") or info.get("cpu")
    return Cpu(model, frozenset((info.get("flags") or info.get("Features") or "").split()), count)


def network(run: Run) -> Network | None:
    """Read the network of this machine; raises Unreadable. None where the system does not tell."""
    piece = said(run, "network").part("network")
    interfaces = piece.texts("interfaces")
    if not interfaces:
        return None
    return Network(
        interfaces=interfaces,
        infiniband=piece.texts("infiniband"),
        own_addresses=piece.texts("own_addresses"),
    )


def device_nodes(run: Run) -> tuple[DeviceNode, ...]:
    """Read the device files of GPUs; raises Unreadable."""
    nodes = []
    for node in said(run, "device_nodes").parts("device_nodes"):
        path = node.text("path") or ""
        if not path.startswith("/dev/"):
            raise Unreadable("device_nodes: a path is not below /dev")
        owner = ":".join(filter(None, (node.text("owner"), node.text("group"))))
        allowed = node.flag("read") and node.flag("write")
        nodes.append(DeviceNode(path, allowed, node.text("mode") or "", owner))
    return tuple(nodes)


def kernel(run: Run) -> Kernel:
    """Read the GPU modules of the kernel; raises Unreadable."""
    answer = said(run, "kernel", "system", "distribution", "container")
    piece = answer.part("kernel")
    on_linux = answer.part("system").text("platform") == "linux"
    if on_linux and piece.data.get("modules") is None and not piece.flag("sys_module"):
        raise Unreadable("kernel: neither /proc/modules nor /sys/module is there")
    loaded = {line.split(" ")[0] for line in piece.texts("modules")}
    release = os_release(answer.part("distribution"))
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    # Only Debian and its kin leave this mark, and a container has no word of its host's.
    tells = bool(names & {"debian", "ubuntu"}) and container(run) is None
    due: bool | None = piece.flag("reboot_required") or (False if tells else None)
    return Kernel(frozenset(loaded | set(piece.texts("built_in"))), due)
