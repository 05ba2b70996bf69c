"""Look at the machine: system, processor, container, limits, GPU device files, driver files.

Runs as a program of its own: ``python - '{"root": "/", "path": [...]}'`` with this source on
stdin. Prints one JSON object a line, one for each thing looked at, and ``{"done": true}`` at the
end. ``root`` is the folder taken for "/" (a recorded machine in tests); ``path`` is where
``distro`` can be imported from. Nothing is opened but ordinary files and the kernel's own text
files; device files are only looked at. What could not be looked at is named under ``errors``.

Sources: proc(5), sysfs(5), cgroups(7), the kernel's admin-guide/cgroup-v2, os-release(5),
container-interface of systemd, PCI class codes, sysctlbyname(3) of macOS, IsWow64Process2 and
IsProcessorFeaturePresent of Windows.
"""

from __future__ import annotations

import json
import os
import sys

LONGEST = 64 * 1024
MOST = 200

MODULES = frozenset(
    [
        "nvidia",
        "nvidia_uvm",
        "nvidia_drm",
        "nvidia_modeset",
        "nvidia_peermem",
        "nvidia_fs",
        "nvgpu",
        "nouveau",
        "nova_core",
        "amdgpu",
        "i915",
        "xe",
    ]
)
CONTAINER_FILES = (
    "/.dockerenv",
    "/run/.containerenv",
    "/.singularity.d",
    "/run/secrets/kubernetes.io",
    "/var/run/secrets/kubernetes.io",
    "/dev/lxd/sock",
)
CONTAINER_VARIABLES = (
    "container",
    "KUBERNETES_SERVICE_HOST",
    "SINGULARITY_CONTAINER",
    "SINGULARITY_NAME",
    "APPTAINER_CONTAINER",
    "APPTAINER_NAME",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
)
LIBRARY_FOLDERS = (
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib",
    "/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu/nvidia/current",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/run/opengl-driver/lib",
)
PROGRAM_FOLDERS = ("/usr/bin", "/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/opt/bin")
PACKAGES = (
    "libnvidia-compute",
    "libnvidia-cfg1",
    "libnvidia-ml",
    "libcuda1",
    "nvidia-driver",
    "nvidia-utils",
    "nvidia-kernel",
    "nvidia-dkms",
    "nvidia-smi",
    "nvidia-headless",
    "cuda-compat",
    "cuda-drivers",
    "nvidia-container-toolkit",
    "libnvidia-container",
    "nvidia-fabricmanager",
    "nvlsm",
)
LIMIT_FILES = (
    "memory.max",
    "cpu.max",
    "memory.limit_in_bytes",
    "cpu.cfs_quota_us",
    "cpu.cfs_period_us",
    "memory.current",
    "memory.peak",
    "memory.events",
    "memory.usage_in_bytes",
    "memory.max_usage_in_bytes",
    "memory.oom_control",
)
PYTHONS = ("python", "pt_", "torchrun")
"""How the kernel calls Python programs; torch calls threads of its own pt_main_thread and so on."""
LOADER = "pt_data_worker"
MOST_PROCESSES = 20000
MOST_MEASURED = 4
"""Of the workers of one program so many are measured: all do the same."""


class Tree:
    """The files of the machine that is looked at."""

    def __init__(self, root: str) -> None:
        self.root = root

    def at(self, path: str) -> str:
        """Return where *path* of that machine is on this one: the one place that knows."""
        return path if self.root == "/" else self.root + path

    def text(self, path: str, longest: int = LONGEST) -> str | None:
        """Return the text of a file, None when it is not there; raise what else is wrong."""
        try:
            with open(self.at(path), "rb") as stream:
                raw = stream.read(longest)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return raw.replace(b"\0", b"").decode("utf-8", "backslashreplace")

    def hint(self, path: str, longest: int = 4096) -> str | None:
        """Return the text of a file that may be closed to us, None when it cannot be read."""
        try:
            return self.text(path, longest)
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, sorted; none when it cannot be listed."""
        try:
            return sorted(os.listdir(self.at(path)))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Tell whether there is such a file or folder, or at least a link."""
        return os.path.lexists(self.at(path))

    def real(self, path: str) -> str:
        """Return *path* with its links followed, as that machine spells it."""
        real = os.path.realpath(self.at(path))
        home = "" if self.root == "/" else os.path.realpath(self.root)
        return real[len(home) :] if real.startswith(home) else real  # noqa: FURB188 - 3.8


def system(tree: Tree) -> object:
    """Return what the kernel and the interpreter say of where they run."""
    seen: dict[str, object] = {
        "platform": sys.platform,
        "python": sys.version,
        "bits": 64 if sys.maxsize > 2**32 else 32,
    }
    if sys.platform == "win32":
        version = sys.getwindowsversion()
        seen["windows"] = {
            "major": version.major,
            "minor": version.minor,
            "build": version.build,
            "product_type": version.product_type,
            "registry": _registry(
                r"SOFTWARE\Microsoft\Windows NT\CurrentVersion",
                ("ProductName", "EditionID", "DisplayVersion", "UBR"),
            ),
        }
        seen["architecture"] = {
            name: os.environ.get(name)
            for name in ("PROCESSOR_ARCHITECTURE", "PROCESSOR_ARCHITEW6432")
        }
        return seen
    name = os.uname()
    release = tree.hint("/proc/sys/kernel/osrelease")
    seen["uname"] = {
        "sysname": name.sysname,
        "release": release.strip() if release else name.release,
        "machine": name.machine,
    }
    # An emulator makes up uname(2), but not this file (since Linux 6.1).
    seen["kernel_machine"] = tree.hint("/proc/sys/kernel/arch")
    if sys.platform == "darwin":
        names = ("kern.osproductversion", "hw.machine", "hw.optional.arm64")
        seen["sysctl"] = _sysctl((*names, "sysctl.proc_translated"))
    return seen


def distribution(tree: Tree) -> object:
    """Return os-release as it is or, without one, what distro finds in older files."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = tree.text(path)
        if text:
            return {"os_release": text, "path": path}
    if sys.platform != "linux":
        return None
    import distro

    found = distro.LinuxDistribution(root_dir=tree.root)
    return {"distro": found.info(), "name": found.name(pretty=True)}


def libc(tree: Tree) -> object:
    """Return the C library of this interpreter, and the loaders of musl on disk."""
    if sys.platform != "linux":
        return None
    try:
        confstr = os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        confstr = None
    musl = [f"/lib/{name}" for name in tree.names("/lib") if name.startswith("ld-musl-")]
    return {"confstr": confstr, "musl": musl}


def cpu(tree: Tree) -> object:
    """Return the first block of cpuinfo, or what stands for it elsewhere."""
    seen: dict[str, object] = {"count": os.cpu_count()}
    if sys.platform == "win32":
        seen["features"] = _windows_features()
        seen["wow64"] = _wow64()
        seen["registry"] = _registry(
            r"HARDWARE\DESCRIPTION\System\CentralProcessor\0", ("ProcessorNameString",)
        )
    elif sys.platform == "darwin":
        names = ("brand_string", "features", "leaf7_features")
        seen["sysctl"] = _sysctl(tuple(f"machdep.cpu.{name}" for name in names))
    else:
        seen["cpuinfo"] = (tree.text("/proc/cpuinfo") or "").split("\n\n")[0]
        seen["affinity"] = len(os.sched_getaffinity(0))
    return seen


def wsl(tree: Tree) -> object:
    """Return what tells WSL 1 and 2 from other kernels."""
    return {
        "version": tree.hint("/proc/version"),
        "osrelease": tree.hint("/proc/sys/kernel/osrelease"),
        "distribution": os.environ.get("WSL_DISTRO_NAME"),
        "interop": tree.exists("/proc/sys/fs/binfmt_misc/WSLInterop"),
        "dxg": tree.exists("/dev/dxg"),
    }


def container(tree: Tree) -> object:
    """Return what a container leaves behind: files, variables, control groups, mounts."""
    mounts = tree.text("/proc/self/mountinfo", 16 * LONGEST)
    points = {"/", "/etc/hostname", "/etc/hosts", "/dev/shm"}  # noqa: S108 - looked at only
    return {
        "files": [path for path in CONTAINER_FILES if tree.exists(path)],
        "containerenv": tree.hint("/run/.containerenv"),
        "systemd": tree.hint("/run/systemd/container"),
        "variables": {n: os.environ[n][:4096] for n in CONTAINER_VARIABLES if n in os.environ},
        "cgroup": {n: tree.hint(f"/proc/{n}/cgroup") for n in ("1", "self")},
        "mounts": None
        if mounts is None
        else [
            line[:400]
            for line in mounts.splitlines()
            if points.intersection(line.split(" ")[4:5]) or "nvidia" in line or "libcuda" in line
        ][:MOST],
    }


def cgroup(tree: Tree) -> object:
    """Return the limit files of each control group that this process is in, leaf first."""
    own: dict[str, str] = {}
    for line in (tree.text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        own.update(dict.fromkeys(controllers.split(","), path))
    folders: list[str] = []
    for line in (tree.text("/proc/self/mountinfo", 16 * LONGEST) or "").splitlines():
        left, _, right = line.partition(" - ")
        mount, kind = left.split(" "), right.split(" ")
        kinds = [""] if kind[0] == "cgroup2" else kind[-1].split(",")
        if kind[0] in ("cgroup", "cgroup2"):
            for name in {"", "memory", "cpu"}.intersection(kinds, own):
                folders += _upwards(mount[3], mount[4], own[name])
    seen = []
    for folder in dict.fromkeys(folders):
        found = {name: tree.text(f"{folder}/{name}") for name in LIMIT_FILES}
        found = {name: text for name, text in found.items() if text is not None}
        if found:
            seen.append(dict(found, folder=folder))
    return seen[:MOST]


def _upwards(root: str, point: str, path: str) -> list[str]:
    """Return the folders from a group up to its mount point.

    In a container without a namespace of its own, the path is the host's and only the part
    below the mounted group can be seen.
    """
    root = root.rstrip("/")
    below = path[len(root) :] if path == root or path.startswith(root + "/") else ""
    parts = [part for part in below.split("/") if part]
    if ".." in parts:
        parts = []
    return ["/".join([point, *parts[:depth]]) for depth in range(len(parts), -1, -1)]


def workers(tree: Tree) -> object:
    """Return Python programs that have forked others of themselves, and the memory of those.

    A worker of a DataLoader is such a one; where torch names them, that is told. Memory is what is
    anonymous (with what is still shared with the parent) and, of some, what is a worker's own.
    """
    if sys.platform != "linux":
        return None
    ours = _group_of(tree, "self")
    seen: dict[str, dict[str, str]] = {}
    for number in [name for name in tree.names("/proc") if name.isdigit()][:MOST_PROCESSES]:
        if (tree.hint(f"/proc/{number}/comm", 64) or "").startswith(PYTHONS):
            lines = (tree.hint(f"/proc/{number}/status") or "").splitlines()
            seen[number] = {name: value.strip() for name, _, value in _split(lines)}
    families: dict[str, list[str]] = {}
    for number, status in seen.items():
        parent = status.get("PPid", "")
        if parent in seen and (status.get("Name") == LOADER or _same_command(tree, number, parent)):
            families.setdefault(parent, []).append(number)
    return [
        {
            "anonymous": seen[parent].get("RssAnon"),
            "same_group": _group_of(tree, parent) == ours,
            "named": sum(seen[number].get("Name") == LOADER for number in family),
            "workers": [seen[number].get("RssAnon") for number in family][:MOST],
            "count": len(family),
            "own": [_own_memory(tree, number) for number in family[:MOST_MEASURED]],
        }
        for parent, family in families.items()
    ][:MOST]


def _split(lines: list[str]) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in lines]


def _same_command(tree: Tree, one: str, other: str) -> bool:
    """Tell whether two processes have one command line: the one was forked from the other."""
    line = tree.hint(f"/proc/{one}/cmdline")
    return bool(line) and line == tree.hint(f"/proc/{other}/cmdline")


def _group_of(tree: Tree, number: str) -> str | None:
    """Return the control group for memory that a process is in."""
    groups = {}
    for line in (tree.hint(f"/proc/{number}/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups.get("memory", groups.get(""))


def _own_memory(tree: Tree, number: str) -> str | None:
    """Return what a process has changed of its memory, or made: it shares that with none."""
    lines = (tree.hint(f"/proc/{number}/smaps_rollup") or "").splitlines()
    return {name: value.strip() for name, _, value in _split(lines)}.get("Private_Dirty")


def memory(tree: Tree) -> object:
    """Return how much memory the machine has, and how much of it is free."""
    lines = (tree.hint("/proc/meminfo") or "").splitlines()
    told = {name: value.strip() for name, _, value in _split(lines)}
    return {name: told.get(name) for name in ("MemTotal", "MemAvailable")}


def shm(tree: Tree) -> object:
    """Return the size of /dev/shm and what is free, in bytes; None when there is none."""
    path = tree.at("/dev/shm")  # noqa: S108 - looked at only
    if sys.platform == "win32" or not os.path.isdir(path):
        return None
    found = os.statvfs(path)
    return {"size": found.f_blocks * found.f_frsize, "free": found.f_bavail * found.f_frsize}


def limits(_tree: Tree) -> object:
    """Return soft and hard ulimits; -1 is no limit."""
    if sys.platform == "win32":
        return None
    import resource

    seen = {}
    for name in ("NOFILE", "MEMLOCK"):
        number = getattr(resource, "RLIMIT_" + name, None)
        if number is not None:
            pair = resource.getrlimit(number)
            seen[name] = [-1 if one == resource.RLIM_INFINITY else one for one in pair]
    return seen


def network(tree: Tree) -> object:
    """Return the network interfaces, InfiniBand devices, and what /etc/hosts says of this host.

    No name is looked up: a name server may keep one waiting for a minute.
    """
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    lines = (tree.text("/etc/hosts", LONGEST) or "").splitlines()
    rows = [line.partition("#")[0].split() for line in lines]
    return {
        "interfaces": tree.names("/sys/class/net")[: 20 * MOST],
        "infiniband": tree.names("/sys/class/infiniband")[:MOST],
        "own_addresses": [row[0] for row in rows if name in row[1:]],
    }


def device_nodes(tree: Tree) -> object:
    """Return device files of GPUs, their rights, and whether this user may use them."""
    paths = [
        f"/dev/{name}"
        for name in tree.names("/dev")
        if name in ("kfd", "dxg", "nvmap", "nvhost-gpu") or name.startswith("nvidia")
    ]
    for folder, start in (("/dev/nvidia-caps", "nvidia-cap"), ("/dev/dri", "renderD")):
        paths += [f"{folder}/{n}" for n in tree.names(folder) if n.startswith(start)]
    return [_node(tree, path) for path in paths if not os.path.isdir(tree.at(path))][:MOST]


def _node(tree: Tree, path: str) -> dict[str, object]:
    seen: dict[str, object] = {
        "path": path,
        "read": os.access(tree.at(path), os.R_OK),
        "write": os.access(tree.at(path), os.W_OK),
    }
    try:
        found = os.stat(tree.at(path))
    except OSError as error:
        return dict(seen, error=str(error))
    owner, group = _user(found.st_uid), _group(found.st_gid)
    return dict(seen, mode=f"{found.st_mode & 0o7777:04o}", owner=owner, group=group)


def groups(_tree: Tree) -> object:
    """Return the groups that this process is in, by name."""
    if sys.platform == "win32":
        return None
    return sorted({_group(number) for number in (*os.getgroups(), os.getegid())})


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def kernel(tree: Tree) -> object:
    """Return GPU modules of the running kernel, and whether a reboot is due."""
    loaded = tree.text("/proc/modules", 16 * LONGEST)
    return {
        "modules": None
        if loaded is None
        else [line for line in loaded.splitlines() if line.split(" ")[0] in MODULES],
        "sys_module": tree.exists("/sys/module"),
        "built_in": [name for name in sorted(MODULES) if tree.exists(f"/sys/module/{name}")],
        "nvidia_version": tree.hint("/proc/driver/nvidia/version"),
        "nvidia_module_version": tree.hint("/sys/module/nvidia/version"),
        "reboot_required": any(
            tree.exists(f"{folder}/reboot-required") for folder in ("/run", "/var/run")
        ),
    }


def pci(tree: Tree) -> object:
    """Return displays, accelerators and NVSwitches on the bus; None when there is none."""
    home = "/sys/bus/pci/devices"
    if not tree.exists(home):
        return None
    seen = []
    for slot in tree.names(home):
        kind = (tree.hint(f"{home}/{slot}/class") or "").strip()
        if kind.startswith(("0x03", "0x12", "0x0680")):
            vendor, device = (
                (tree.hint(f"{home}/{slot}/{name}") or "").strip() for name in ("vendor", "device")
            )
            if kind.startswith("0x0680") and vendor != "0x10de":
                continue
            seen.append({"slot": slot, "class": kind, "vendor": vendor, "device": device})
    return seen[:MOST]


def kfd(tree: Tree) -> object:
    """Return the nodes of AMD's compute driver, raw; None when that is not there."""
    home = "/sys/class/kfd/kfd/topology/nodes"
    if not tree.exists(home):
        return None
    seen = []
    for node in tree.names(home):
        banks = f"{home}/{node}/mem_banks"
        seen.append(
            {
                "node": node,
                "name": tree.hint(f"{home}/{node}/name"),
                "properties": tree.hint(f"{home}/{node}/properties"),
                "banks": [
                    tree.hint(f"{banks}/{bank}/properties") or "" for bank in tree.names(banks)
                ],
            }
        )
    return seen[:MOST]


def tegra(tree: Tree) -> object:
    """Return what marks a Jetson."""
    return {
        "release": tree.hint("/etc/nv_tegra_release"),
        "model": tree.hint("/proc/device-tree/model"),
    }


def toolkits(tree: Tree) -> object:
    """Return where CUDA toolkits are, and the files that tell their release."""
    places = [
        (name, os.environ[name])
        for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")
        if os.environ.get(name)
    ]
    program = "nvcc.exe" if sys.platform == "win32" else "nvcc"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        nvcc = os.path.join(folder, program)
        if folder and os.path.isfile(tree.at(nvcc)):
            places.append(("PATH", os.path.dirname(os.path.dirname(tree.real(nvcc)))))
    standard = ["/usr/local/cuda", "/opt/cuda"]
    standard += [f"/usr/local/{n}" for n in tree.names("/usr/local") if n.startswith("cuda-")]
    if sys.platform == "win32":
        home = os.environ.get("ProgramFiles", r"C:\Program Files")  # noqa: SIM112 - its name
        home += r"\NVIDIA GPU Computing Toolkit\CUDA"
        standard = [os.path.join(home, name) for name in tree.names(home)]
    places += [("folder", path) for path in standard]
    seen: dict[str, object] = {}
    for source, path in places:
        if os.path.isdir(tree.at(path)):
            seen.setdefault(os.path.normcase(tree.real(path)), _toolkit(tree, source, path))
    return list(seen.values())[:MOST]


def _toolkit(tree: Tree, source: str, path: str) -> dict[str, object]:
    header = tree.hint(os.path.join(path, "include", "cuda.h"), LONGEST) or ""
    programs = (os.path.join(path, "bin", name) for name in ("nvcc", "nvcc.exe"))
    return {
        "source": source,
        "path": path,
        "real": tree.real(path),
        "version_json": tree.hint(os.path.join(path, "version.json"), LONGEST),
        "version_txt": tree.hint(os.path.join(path, "version.txt")),
        "header": next((n for n in header.splitlines() if "#define CUDA_VERSION" in n), None),
        "nvcc": next((program for program in programs if tree.exists(program)), None),
    }


def fabric(tree: Tree) -> object:
    """Return NVSwitches as device files, and the program that has to run beside them."""
    switches = [n for n in tree.names("/dev") if n.startswith("nvidia-nvswitch")]
    folder = "/run/nvidia-fabricmanager"
    seen: dict[str, object] = {
        "switches": switches,
        "files": [f"{folder}/{name}" for name in tree.names(folder)],
        "processes": None,
    }
    # A busy machine has thousands of processes; where even the first is hidden, so are others.
    if switches and tree.hint("/proc/1/comm"):
        processes = (name for name in tree.names("/proc") if name.isdigit())
        comms = ((tree.hint(f"/proc/{name}/comm") or "").strip() for name in processes)
        seen["processes"] = [comm for comm in comms if comm.startswith("nv-fabricman")]
    return seen


def in_loader_cache(tree: Tree) -> bool:
    """Tell whether the loader knows NVML, wherever it is; True where that cannot be read."""
    try:
        with open(tree.at("/etc/ld.so.cache"), "rb") as cache:
            return b"libnvidia-ml.so" in cache.read(16 << 20)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def traces_of_nvidia(seen) -> bool:  # type: ignore[no-untyped-def] # noqa: ANN001
    """Tell whether anything of an NVIDIA driver or GPU is there, or could not be looked for."""
    if sys.platform != "linux":
        return True
    kernel, files = seen["kernel"], seen["driver_files"]
    known = [*(kernel["modules"] or ()), *kernel["built_in"]]
    return bool(
        any(module.startswith("nv") for module in known)
        or any("/nv" in node["path"] or "dxg" in node["path"] for node in seen["device_nodes"])
        or "0x10de" in json.dumps(seen["pci"])
        or "microsoft" in json.dumps(seen["wsl"]).lower()
        or any(seen["tegra"].values())
        or kernel["nvidia_version"]
        or kernel["nvidia_module_version"]
        or files["libraries"]
        or files["nvidia_smi"]
        or files["in_loader_cache"]
    )


def driver_files(tree: Tree) -> object:
    """Return the driver's user-space files, and the packages that may have brought them."""
    local = [f"/usr/local/{n}/compat" for n in tree.names("/usr/local") if n.startswith("cuda")]
    variable = "" if sys.platform == "win32" else os.environ.get("LD_LIBRARY_PATH", "")
    asked = [folder for folder in variable.split(":") if folder.startswith("/")]
    libraries = []
    folders = {tree.real(folder): folder for folder in (*local, *LIBRARY_FOLDERS, *asked)}
    for folder in folders.values():
        for name in tree.names(folder):
            if name.startswith(("libcuda.so", "libnvidia-ml.so")):
                path = f"{folder}/{name}"
                libraries.append({"path": path, "real": tree.real(path)})
    programs = [f"{folder}/nvidia-smi" for folder in PROGRAM_FOLDERS]
    if sys.platform == "win32":
        home = os.path.join(os.environ.get("SystemRoot", r"C:\Windows"), "System32")  # noqa: SIM112
        programs = [os.path.join(home, "nvidia-smi.exe")]
        libraries = [
            {"path": path, "real": path}
            for path in (os.path.join(home, name) for name in ("nvml.dll", "nvcuda.dll"))
            if tree.exists(path)
        ]
    info = tree.names("/var/lib/dpkg/info")
    return {
        "libraries": libraries[:MOST],
        "in_loader_cache": in_loader_cache(tree),
        "nvidia_smi": [path for path in programs if tree.exists(path)],
        "packages": [n[:-5] for n in info if n.endswith(".list") and n.startswith(PACKAGES)][:MOST],
    }


def _sysctl(names: tuple[str, ...]) -> dict[str, object]:
    """Return values of macOS, text or number; a name that it does not know is None."""
    import ctypes

    call = ctypes.CDLL(None).sysctlbyname
    size_pointer = ctypes.POINTER(ctypes.c_size_t)
    call.argtypes = [
        ctypes.c_char_p,
        ctypes.c_void_p,
        size_pointer,
        ctypes.c_void_p,
        ctypes.c_size_t,
    ]
    call.restype = ctypes.c_int
    seen: dict[str, object] = {}
    for name in names:
        buffer, size = ctypes.create_string_buffer(4096), ctypes.c_size_t(4096)
        if call(name.encode(), buffer, ctypes.byref(size), None, 0) != 0:
            seen[name] = None
        elif name.startswith(("hw.optional.", "sysctl.")):
            seen[name] = int.from_bytes(buffer.raw[: size.value], sys.byteorder)
        else:
            seen[name] = buffer.value.decode("utf-8", "backslashreplace")
    return seen


def _registry(key: str, names: tuple[str, ...]) -> dict[str, object]:
    """Return values below HKEY_LOCAL_MACHINE; a name that is not there is left out."""
    seen: dict[str, object] = {}
    if sys.platform == "win32":
        import winreg

        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
            for name in names:
                try:
                    seen[name] = str(winreg.QueryValueEx(opened, name)[0])
                except OSError:
                    continue
    return seen


def _windows_features() -> dict[str, bool]:
    """Return instruction sets, asked by the numbers of winnt.h (PF_*)."""
    seen: dict[str, bool] = {}
    if sys.platform == "win32":
        import ctypes

        call = ctypes.WinDLL("kernel32").IsProcessorFeaturePresent
        call.argtypes, call.restype = [ctypes.c_uint32], ctypes.c_int
        numbers = {"sse2": 10, "sse3": 13, "ssse3": 36, "sse4_1": 37, "sse4_2": 38}
        numbers.update(avx=39, avx2=40, avx512f=41, asimd=19)
        seen = {name: bool(call(number)) for name, number in numbers.items()}
    return seen


def _wow64() -> dict[str, int]:
    """Return which machine this process is for, and which Windows is for (PE numbers)."""
    seen: dict[str, int] = {}
    if sys.platform == "win32":
        import ctypes

        kernel32 = ctypes.WinDLL("kernel32")
        this = kernel32.GetCurrentProcess
        this.argtypes, this.restype = [], ctypes.c_void_p
        call = kernel32.IsWow64Process2
        number = ctypes.POINTER(ctypes.c_uint16)
        call.argtypes, call.restype = [ctypes.c_void_p, number, number], ctypes.c_int
        process, native = ctypes.c_uint16(), ctypes.c_uint16()
        if call(this(), ctypes.byref(process), ctypes.byref(native)):
            seen = {"process": process.value, "native": native.value}
    return seen


LOOKS = (
    *(system, distribution, libc, cpu, wsl, container, cgroup, shm, memory, workers, limits),
    network,
    *(device_nodes, groups, kernel, pci, kfd, tegra, toolkits, fabric, driver_files),
)


def main() -> None:
    """Look at one thing after the other and say each at once."""
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever prints meanwhile is no answer

    def say(**what: object) -> None:
        os.write(answers, json.dumps(what).encode("ascii") + b"\n")

    options = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    sys.path[:] = [*(entry for entry in sys.path if entry), *options.get("path", [])]
    tree = Tree(options.get("root", "/"))
    errors = {}
    seen = {}
    for look in LOOKS:
        try:
            seen[look.__name__] = look(tree)
            say(**{look.__name__: seen[look.__name__]})
        except Exception as error:
            errors[look.__name__] = f"{type(error).__name__}: {error}"
            say(errors=errors)
    try:
        nvidia = traces_of_nvidia(seen)
    except Exception:  # something was not seen: then it may be there
        nvidia = True
    say(errors=errors, nvidia=nvidia, done=True)


main()
