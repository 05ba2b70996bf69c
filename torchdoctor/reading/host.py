"""Read the host probe's answer: platform, processor, container, limits, device files, toolkits.

Every piece is read on its own. What the probe could not look at, or said in another shape than
it does, is :class:`Unknown` with the reason; nothing is guessed in its place.

Sources: os-release(5); proc_cpuinfo(5); the kernel's cgroup-v1 and cgroup-v2 guides; "Comparing
WSL versions" of Microsoft; the layout of version.json in CUDA toolkits; PE machine numbers.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from torchdoctor.facts import (
    Container,
    Cpu,
    DeviceNode,
    Kernel,
    Limits,
    Platform,
    Toolkit,
    Unknown,
)

if TYPE_CHECKING:
    from torchdoctor.child import Run

LONGEST_TEXT = 1 << 20
LARGEST_NUMBER = 1 << 63
NO_LIMIT = 1 << 60
"""Control groups of version 1 spell "no limit" as the largest number of whole pages."""
ARM64_PE = 0xAA64


class Unreadable(ValueError):  # noqa: N818 - it is an answer, not an error
    """A piece of the answer is missing, or of another shape than the probe gives it."""


@dataclass(frozen=True, slots=True)
class Said:
    """One object of a probe's answer, asked for its members by type; *where* it was is named."""

    data: Mapping[str, object]
    where: str

    def text(self, key: str) -> str | None:
        """Return a text, None when there is none; raises Unreadable for anything else."""
        value = self.data.get(key)
        if value is None or (isinstance(value, str) and len(value) <= LONGEST_TEXT):
            return value
        raise self._odd(key)

    def line(self, key: str) -> str | None:
        """Return a text without the blanks around it, None when nothing is left."""
        return (self.text(key) or "").strip() or None

    def number(self, key: str, least: int = 0) -> int | None:
        """Return a whole number, None when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return None
        if (
            isinstance(value, int)
            and not isinstance(value, bool)
            and least <= value < LARGEST_NUMBER
        ):
            return value
        raise self._odd(key)

    def flag(self, key: str) -> bool:
        """Return a truth value, False when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        raise self._odd(key)

    def part(self, key: str) -> Said:
        """Return an object, an empty one when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return Said({}, f"{self.where}.{key}")
        if isinstance(value, Mapping):
            return Said(value, f"{self.where}.{key}")
        raise self._odd(key)

    def parts(self, key: str) -> tuple[Said, ...]:
        """Return a list of objects, empty when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
            raise self._odd(key)
        return tuple(Said(one, f"{self.where}.{key}") for one in value)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, empty when there is none; raises Unreadable otherwise."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._odd(key)
        return tuple(value)

    def _odd(self, key: str) -> Unreadable:
        return Unreadable(f"{self.where}.{key} is not what the probe gives")


def said(run: Run, *pieces: str) -> Said:
    """Return the whole answer of *run*; raises Unreadable when one of *pieces* is not in it."""
    errors = run.data.get("errors")
    for piece in pieces:
        if piece not in run.data:
            told = errors.get(piece) if isinstance(errors, Mapping) else None
            why = told or run.reason or f"the probe ended before it: {run.outcome}"
            raise Unreadable(f"{piece}: {str(why)[:400]}")
    return Said(run.data, "host")


def read(run: Run) -> dict[str, object]:
    """Return the facts of the host probe by their names; :class:`Unknown` where one failed."""
    readers: dict[str, Callable[[Run], object]] = {
        "platform": platform,
        "cpu": cpu,
        "container": container,
        "limits": limits,
        "device_nodes": device_nodes,
        "kernel": kernel,
        "toolkits": toolkits,
    }
    return {name: or_unknown(reader, run) for name, reader in readers.items()}


def or_unknown(reader: Callable[[Run], object], run: Run) -> object:
    """Return what *reader* makes of *run*, or why it cannot."""
    try:
        return reader(run)
    except ValueError as error:
        return Unknown(str(error))


# ---- platform ---------------------------------------------------------------------------------


def platform(run: Run) -> Platform:
    """Read the operating system; raises Unreadable."""
    answer = said(run, "system", "distribution", "libc", "wsl", "tegra", "cpu")
    system = answer.part("system")
    name = system.line("platform")
    if name is None:
        raise Unreadable("system: it does not name its platform")
    if name == "win32":
        return _windows(answer)
    uname = system.part("uname")
    kernel_release = uname.line("release")
    machine = uname.line("machine") or ""
    if name == "darwin":
        sysctl = system.part("sysctl")
        version = sysctl.line("kern.osproductversion")
        return Platform(
            system=name,
            machine=machine,
            name=f"macOS {version or ''}".strip(),
            version=version,
            kernel=kernel_release,
            emulated=sysctl.number("sysctl.proc_translated") == 1,
        )
    release = _os_release(answer.part("distribution"))
    libc, libc_version = _libc(answer.part("libc"))
    return Platform(
        system=name,
        machine=machine,
        name=release.get("PRETTY_NAME") or release.get("NAME") or "",
        distribution=release.get("ID") or None,
        like=tuple(release.get("ID_LIKE", "").split()),
        version=release.get("VERSION_ID") or None,
        kernel=kernel_release,
        libc=libc,
        libc_version=libc_version,
        wsl=_wsl(answer.part("wsl")),
        emulated=_emulated(machine, system, answer.part("cpu")),
        jetson=_jetson(kernel_release, answer.part("tegra")),
    )


def _windows(answer: Said) -> Platform:
    system = answer.part("system")
    windows = system.part("windows")
    registry = windows.part("registry")
    build = windows.number("build") or 0
    name = registry.line("ProductName") or "Windows"
    if build >= 22000:  # noqa: PLR2004 - the registry of Windows 11 still says 10
        name = name.replace("Windows 10", "Windows 11")
    variables = system.part("architecture")
    machine = variables.line("PROCESSOR_ARCHITEW6432") or variables.line("PROCESSOR_ARCHITECTURE")
    native = answer.part("cpu").part("wow64").number("native")
    for_arm = "ARM64" in (system.text("python") or "").upper()
    return Platform(
        system="win32",
        machine=machine or "",
        name=" ".join(filter(None, (name, registry.line("DisplayVersion")))),
        version=f"{windows.number('major')}.{windows.number('minor')}.{build}",
        kernel=f"{windows.number('major')}.{windows.number('minor')}.{build}",
        emulated=None if native is None else native == ARM64_PE and not for_arm,
    )


def _os_release(piece: Said) -> dict[str, str]:
    """Return os-release by its names, or the same names for what distro found."""
    text = piece.text("os_release")
    if text is None:
        found = piece.part("distro")
        return {
            "PRETTY_NAME": piece.line("name") or "",
            "ID": found.line("id") or "",
            "ID_LIKE": found.line("like") or "",
            "VERSION_ID": found.line("version") or "",
        }
    values = {}
    for line in text.splitlines():
        name, mark, value = line.strip().partition("=")
        if mark and not name.startswith("#"):
            try:
                values[name] = " ".join(shlex.split(value))
            except ValueError:
                values[name] = value.strip("\"'")
    return values


def _libc(piece: Said) -> tuple[str | None, str | None]:
    name, _, version = (piece.line("confstr") or "").partition(" ")
    if name:
        return name.lower(), version or None
    return ("musl", None) if piece.texts("musl") else (None, None)


def _wsl(piece: Said) -> Literal[1, 2] | None:
    """Tell WSL 1 and 2 apart: the first has Microsoft's version of Linux 4.4, in that spelling."""
    release = piece.text("osrelease") or ""
    if "Microsoft" in release or (not release and "Microsoft@" in (piece.text("version") or "")):
        return 1
    marks = "microsoft-standard" in release or "WSL2" in release
    if marks or piece.flag("interop") or (piece.line("distribution") and piece.flag("dxg")):
        return 2
    return None


def _emulated(machine: str, system: Said, cpu_piece: Said) -> bool | None:
    """Tell whether uname's machine is made up; None when nothing else tells the machine."""
    asked = _family(machine)
    info = cpu_piece.text("cpuinfo") or ""
    if "VirtualApple" in info:  # Rosetta in a virtual machine of macOS
        return True
    native = _family(system.line("kernel_machine") or "")
    if native is None:
        native = next((family for mark, family in _CPUINFO_MARKS if mark.search(info)), None)
    return None if asked is None or native is None else asked != native


_CPUINFO_MARKS = (
    (re.compile(r"^flags\s*:.*\b(?:lm|sse2)\b", re.MULTILINE), "x86"),
    (re.compile(r"^(?:CPU implementer|Features)\s*:", re.MULTILINE), "arm"),
    (re.compile(r"^isa\s*:\s*rv", re.MULTILINE), "riscv"),
    (re.compile(r"^cpu\s*:\s*POWER", re.MULTILINE), "power"),
)


def _family(machine: str) -> str | None:
    if re.fullmatch(r"x86_64|i[3-6]86|amd64", machine, re.IGNORECASE):
        return "x86"
    if re.match(r"aarch64|arm", machine):
        return "arm"
    return next((name for name in ("riscv", "power") if machine.startswith((name, "ppc"))), None)


def _jetson(kernel_release: str | None, piece: Said) -> bool:
    model = (piece.text("model") or "").lower()
    return bool(
        piece.text("release") or "tegra" in (kernel_release or "").lower() or "jetson" in model
    )


# ---- processor and limits ---------------------------------------------------------------------


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


# ---- container --------------------------------------------------------------------------------

_HOOK = re.compile(
    r"/lib(?:cuda|nvidia-ml)\.so|/nvidia-smi$|/nvidia-container|^/proc/driver/nvidia"
    r"|^/dev/nvidia|^/usr/local/nvidia"
)
_DISK = re.compile(r" - \S+ /dev/(?:vd|xvd|sd|nvme|mmcblk)\S* ")


def container(run: Run) -> Container | None:
    """Read which container this is, None when it is none; raises Unreadable."""
    piece = said(run, "container").part("container")
    kind = _container_kind(piece)
    return None if kind is None else Container(kind, _gpu_hook(piece))


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


_SINGULARITY = ("SINGULARITY", "APPTAINER")


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


# ---- device files, kernel, toolkits -----------------------------------------------------------


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
    release = _os_release(answer.part("distribution"))
    names = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    # Only Debian and its kin leave this mark, and a container has no word of its host's.
    tells = bool(names & {"debian", "ubuntu"}) and container(run) is None
    due: bool | None = piece.flag("reboot_required") or (False if tells else None)
    return Kernel(frozenset(loaded | set(piece.texts("built_in"))), due)


def toolkits(run: Run) -> tuple[Toolkit, ...]:
    """Read the CUDA toolkits, those that a variable names first; raises Unreadable."""
    found = (_toolkit(piece) for piece in said(run, "toolkits").parts("toolkits"))
    return tuple(toolkit for toolkit in found if toolkit is not None)


def _toolkit(piece: Said) -> Toolkit | None:
    path = piece.text("path") or ""
    told = {
        "version.json": _json_release(piece.text("version_json")),
        "version.txt": _release(r"CUDA Version ([0-9]+\.[0-9]+)", piece.text("version_txt")),
        "include/cuda.h": _header_release(piece.text("header")),
        "its folder's name": _release(
            r"(?:cuda-|[/\\]v)([0-9]{1,2}\.[0-9]{1,2})[/\\]?$", piece.text("real")
        ),
    }
    source, release = next(((s, r) for s, r in told.items() if r), ("nvcc", None))
    if release is None and piece.text("nvcc") is None:
        return None
    return Toolkit(release, path, source)


def _json_release(text: str | None) -> str | None:
    """Return nvcc's release, or else the toolkit's, from version.json."""
    if text is None:
        return None
    try:
        parts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for name in ("cuda_nvcc", "nvcc", "cuda"):
        part = parts.get(name) if isinstance(parts, dict) else None
        version = part.get("version") if isinstance(part, dict) else None
        if isinstance(version, str) and (found := _release(r"^([0-9]+\.[0-9]+)", version)):
            return found
    return None


def _header_release(line: str | None) -> str | None:
    found = _release(r"#define CUDA_VERSION\s+([0-9]{4,6})\b", line)
    return None if found is None else cuda_release(int(found))


def cuda_release(number: int | None) -> str | None:
    """Return "12.4" for 12040, None for what is no such number."""
    if number is None or not 1000 <= number < 1000000:  # noqa: PLR2004 - 1.0 to 999.9
        return None
    return f"{number // 1000}.{number % 1000 // 10}"


def _release(pattern: str, text: str | None) -> str | None:
    found = re.search(pattern, text or "")
    return found[1] if found else None
