"""Read the host probe's answer: platform, processor, container, limits, device files, toolkits.

Every piece is read on its own. What the probe could not look at, or said in another shape than
it does, is :class:`Unknown` with the reason; nothing is guessed in its place.

Sources: proc_cpuinfo(5); the kernel's cgroup-v1 and cgroup-v2 guides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torchdoctor.facts import Cpu, DeviceNode, Kernel, Limits, Network, Unknown
from torchdoctor.reading.containers import container
from torchdoctor.reading.platforms import os_release, platform
from torchdoctor.reading.said import Said, Unreadable, said
from torchdoctor.reading.toolkits import toolkits

if TYPE_CHECKING:
    from torchdoctor.child import Run

NO_LIMIT = 1 << 60
"""Control groups of version 1 spell "no limit" as the largest number of whole pages."""


def read(run: Run) -> dict[str, object]:
    """Return the facts of the host probe by their names; :class:`Unknown` where one failed."""
    readers: dict[str, Callable[[Run], object]] = {
        "platform": platform,
        "cpu": cpu,
        "container": container,
        "limits": limits,
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


def limits(run: Run) -> Limits:
    """Read what the system grants; raises Unreadable."""
    answer = said(run, "shm", "cgroup", "limits", "cpu")
    groups = answer.parts("cgroup")
    processor = answer.part("cpu")
    shares = [share for group in groups if (share := _cpu_share(group)) is not None]
    affinity, count = processor.number("affinity"), processor.number("count")
    if affinity and count and affinity < count:
        shares.append(float(affinity))
    memory = [
        int(text)
        for group in groups
        for name in ("memory.max", "memory.limit_in_bytes")
        if (text := group.line(name)) is not None and _is_number(text)
    ]
    return Limits(
        shm=answer.part("shm").number("size"),
        shm_free=answer.part("shm").number("free"),
        memory=min((one for one in memory if one < NO_LIMIT), default=None),
        cpus=min(shares, default=None),
        open_files=_soft(answer.part("limits"), "NOFILE"),
        locked_memory=_soft(answer.part("limits"), "MEMLOCK"),
    )


def _cpu_share(group: Said) -> float | None:
    quota, _, period = (group.line("cpu.max") or "").partition(" ")
    if not quota:
        quota = group.line("cpu.cfs_quota_us") or ""
        period = group.line("cpu.cfs_period_us") or ""
    if not (_is_number(quota) and _is_number(period)) or int(period) == 0:
        return None
    return int(quota) / int(period)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20  # noqa: PLR2004 - 64 bits


def _soft(piece: Said, name: str) -> int | None:
    pair = piece.data.get(name)
    if pair is None:
        return None
    if not isinstance(pair, list) or not pair:
        raise Unreadable(f"limits: {name} is not what the probe gives")
    number = Said({name: pair[0]}, piece.where).number(name, least=-1)
    return None if number is None or number < 0 or number >= NO_LIMIT else number


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
