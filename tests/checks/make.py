"""Facts for tests of checks: each function makes one ordinary fact, and takes what differs."""

from __future__ import annotations

from torchdoctor import effects
from torchdoctor.facts import (
    NOT_COLLECTED,
    Build,
    BuildTools,
    Compiler,
    Container,
    Cpu,
    Device,
    DeviceNode,
    Distribution,
    DllFile,
    DllLoad,
    Driver,
    ErrorText,
    Expectation,
    Facts,
    Gpu,
    ImportTrial,
    Interpreter,
    Linux,
    Platform,
    Runtime,
    SoLoad,
    Symptom,
    Toolkit,
    Unknown,
    Windows,
)

SITE = "/env/lib/python3.12/site-packages"


def linux(**changes: object) -> Platform:
    """Return an Ubuntu 24.04 on x86_64."""
    known: dict[str, object] = {
        "system": "linux",
        "machine": "x86_64",
        "name": "Ubuntu 24.04",
        "distribution": "ubuntu",
        "like": ("debian",),
        "version": "24.04",
        "libc": "glibc",
        "libc_version": "2.39",
        "emulated": False,
    }
    return Platform(**known | changes)  # type: ignore[arg-type]


def windows(**changes: object) -> Platform:
    """Return a Windows 11 on AMD64."""
    known: dict[str, object] = {
        "system": "win32",
        "machine": "AMD64",
        "name": "Windows 11",
        "emulated": False,
    }
    return Platform(**known | changes)  # type: ignore[arg-type]


def mac(**changes: object) -> Platform:
    """Return a macOS 15 on Apple silicon."""
    known: dict[str, object] = {
        "system": "darwin",
        "machine": "arm64",
        "name": "macOS 15.1",
        "version": "15.1",
        "emulated": False,
    }
    return Platform(**known | changes)  # type: ignore[arg-type]


def interpreter(version: str = "3.12.4", **changes: object) -> Interpreter:
    """Return the Python of a virtual environment at /env."""
    known: dict[str, object] = {
        "executable": "/env/bin/python",
        "version": version,
        "prefix": "/env",
        "base_prefix": "/usr",
        "kind": "venv",
        "machine": "linux-x86_64",
        "site_packages": (SITE,),
    }
    return Interpreter(**known | changes)  # type: ignore[arg-type]


def dist(name: str, version: str, **changes: object) -> Distribution:
    """Return a distribution that pip installed into /env."""
    known: dict[str, object] = {
        "name": name,
        "version": version,
        "folder": SITE,
        "metadata": f"{name.replace('-', '_')}-{version}.dist-info",
        "installer": "pip",
    }
    return Distribution(**known | changes)  # type: ignore[arg-type]


def torch_and(torch: Build, *installed: Distribution, **more: object) -> dict[str, object]:
    """Return the facts of a Linux environment that holds *torch* and what else is installed."""
    known: dict[str, object] = {
        "platform": linux(),
        "interpreter": interpreter(),
        "torch": torch,
        "distributions": (torch.distribution, *installed),
    }
    return known | more


def without_torch(**changes: object) -> Facts:
    """Return the facts of a Linux machine with an A100 and an environment that holds nothing."""
    known: dict[str, object] = {
        "platform": linux(),
        "interpreter": interpreter(),
        "driver": driver(),
        "gpus": (a100(),),
        "torch": None,
        "torchvision": None,
        "torchaudio": None,
        "distributions": (),
    }
    return Facts(**known | changes)  # type: ignore[arg-type]


def build(version: str = "2.13.0+cu130", name: str = "torch", **changes: object) -> Build:
    """Return the build that a wheel of *version* is, by its label; without one a cpu build."""
    label = version.partition("+")[2] or "cpu"
    known: dict[str, object] = {
        "version": version,
        "cuda": effects.cuda_of(label),
        "hip": label[4:] if label.startswith("rocm") else None,
        "xpu": "2025" if label == "xpu" else None,
        "origin": f"{SITE}/{name}",
        "tag": label,
        "distribution": dist(name, version),
    }
    return Build(**known | changes)  # type: ignore[arg-type]


def imported(**changes: object) -> ImportTrial:
    """Return an import that went well."""
    known: dict[str, object] = {
        "module": "torch",
        "outcome": "imported",
        "seconds": 1.9,
        "stage": "xpu",
        "version": "2.13.0",
    }
    return ImportTrial(**known | changes)  # type: ignore[arg-type]


def raised(kind: str, message: str, module: str = "torch") -> ImportTrial:
    """Return an import that raised."""
    return ImportTrial(module, "raised", 0.4, error=ErrorText(kind, message))


def died(signal: str, **changes: object) -> ImportTrial:
    """Return an import that ended its process."""
    known: dict[str, object] = {
        "module": "torch",
        "outcome": "died",
        "seconds": 0.4,
        "signal": signal,
    }
    return ImportTrial(**known | changes)  # type: ignore[arg-type]


def runtime(*devices: Device, **changes: object) -> Runtime:
    """Return what a CUDA build says that sees *devices*."""
    known: dict[str, object] = {
        "version": "2.13.0+cu130",
        "cuda": "13.0",
        "available": bool(devices),
        "devices": devices,
    }
    return Runtime(**known | changes)  # type: ignore[arg-type]


def symptom(name: str, source: str = "torch.cuda", text: str = "", **values: str) -> Symptom:
    """Return a message that was recognised."""
    return Symptom(name, values, source, text or name)


def driver(release: str | None = "580.95.05", **changes: object) -> Driver:
    """Return an NVIDIA driver that answered."""
    known: dict[str, object] = {
        "release": release,
        "cuda": "13.0",
        "source": "nvml",
        "kernel_module": release,
        "library": release,
    }
    return Driver(**known | changes)  # type: ignore[arg-type]


def a100(index: int = 0, **changes: object) -> Gpu:
    """Return an A100 as the driver lists it."""
    return nvidia("NVIDIA A100-SXM4-80GB", (8, 0), index, **changes)


def nvidia(name: str, capability: tuple[int, int] | None, index: int = 0, **changes: object) -> Gpu:
    """Return an NVIDIA GPU as the driver lists it."""
    known: dict[str, object] = {
        "name": name,
        "index": index,
        "capability": capability,
        "uuid": f"GPU-0000000{index}-0000-0000-0000-000000000000",
    }
    return Gpu(**known | changes)  # type: ignore[arg-type]


def device(gpu: Gpu, kernel: str | None = None) -> Device:
    """Return *gpu* as torch sees it; *kernel* is the error of a computation on it."""
    return Device(gpu.index or 0, gpu.name, gpu.capability, kernel=kernel, gfx=gpu.gfx)


def nodes(*paths: str, allowed: bool = True, **changes: str) -> tuple[DeviceNode, ...]:
    """Return device files."""
    return tuple(DeviceNode(path, allowed, **changes) for path in paths)


NVIDIA_NODES = nodes("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
DOCKER = Container("docker")
EXPECT_CUDA = Expectation(accelerator="cuda")
EXPECT_CPU = Expectation(accelerator="cpu")
TO_BUILD = Expectation(profile="build")
OLD_CPU = Cpu("Intel(R) Celeron(R) J1900", frozenset({"fpu", "sse4_1", "sse4_2", "ssse3"}), 4)
NEW_CPU = Cpu("AMD EPYC 7763", frozenset({"sse4_2", "avx", "avx2"}), 64)


def dll_load(**changes: object) -> DllLoad:
    """Return what an old msvcp140.dll in System32 makes of importing torch 2.9."""
    lib = r"C:\env\Lib\site-packages\torch\lib"
    known: dict[str, object] = {
        "error": 1114,
        "named": rf"{lib}\c10.dll",
        "culprit": r"C:\Windows\System32\msvcp140.dll",
        "kind": "old-runtime",
        "place": "system32",
        "chain": ("c10.dll", "msvcp140.dll"),
        "detail": "it is 14.34.31931.0, c10.dll needs 14.40",
    }
    return DllLoad(**known | changes)  # type: ignore[arg-type]


def lacks(culprit: str, named: str = "shm.dll", *chain: str, **changes: object) -> DllLoad:
    """Return what becomes of torch when the DLL *culprit* is nowhere."""
    whole = (named, *chain, culprit)
    given = {"named": rf"C:\env\Lib\site-packages\torch\lib\{named}", "chain": whole}
    rest: dict[str, object] = {"error": 126, "kind": "missing", "place": "", "detail": ""}
    return dll_load(culprit=culprit, **rest | given | changes)


def system(load: DllLoad | Unknown = NOT_COLLECTED, **changes: object) -> Windows:
    """Return a Windows whose System32 has VC++ 14.34, and the newest would do."""
    known: dict[str, object] = {
        "torch": load,
        "renewed": DllLoad(),
        "copies": (DllFile(r"C:\Windows\System32\msvcp140.dll", "14.34.31931.0", "system32"),),
    }
    return Windows(**known | changes)  # type: ignore[arg-type]


def dll_error(code: str, file: str, **values: str) -> Symptom:
    """Return the message that the DLL *file* of torch did not load."""
    path = rf"C:\env\Lib\site-packages\torch\lib\{file}"
    return symptom("winerror-dll", "import torch", code=code, file=path, **values)


def unloadable(kind: str, **changes: object) -> SoLoad:
    """Return what the loader of Linux makes of torch when libtorch_python.so lacks something."""
    lib = f"{SITE}/torch/lib"
    known: dict[str, object] = {
        "kind": kind,
        "named": f"{SITE}/torch/_C.cpython-312-x86_64-linux-gnu.so",
        "culprit": f"{lib}/libtorch_python.so",
        "place": "torch",
        "asks": f"{lib}/libtorch_python.so",
        "chain": ("_C.cpython-312-x86_64-linux-gnu.so", "libtorch_python.so"),
        "names": ("missing_name",),
        "message": f"{lib}/libtorch_python.so: {kind}",
    }
    return SoLoad(**known | changes)  # type: ignore[arg-type]


def loader(torch: SoLoad | None = None, **changes: object) -> Linux:
    """Return shared objects of a glibc 2.39 that load, or of which torch does not."""
    known: dict[str, object] = {
        "torch": torch or SoLoad(),
        "without": SoLoad(),
        "steered": (),
        "extensions": {},
        "stacks": (),
        "glibc": "2.39",
    }
    return Linux(**known | changes)  # type: ignore[arg-type]


def gcc(version: str = "13.3.0", command: str = "g++", **changes: object) -> Compiler:
    """Return a gcc as Ubuntu 24.04 has it."""
    known: dict[str, object] = {"path": f"/usr/bin/{command}", "kind": "gcc", "version": version}
    return Compiler(command, **known | changes)  # type: ignore[arg-type]


def nvcc(release: str = "13.0") -> Toolkit:
    """Return the toolkit of *release* where NVIDIA's packages put it."""
    return Toolkit(release, f"/usr/local/cuda-{release}", "nvcc --version")


def tools(**changes: object) -> BuildTools:
    """Return all that a build for torch 2.13 of CUDA 13.0 takes."""
    known: dict[str, object] = {
        "cxx": gcc(),
        "cc": gcc(command="gcc"),
        "nvcc": nvcc(),
        "home": "/usr/local/cuda-13.0",
        "ninja": "/env/bin/ninja",
        "headers": True,
        "arch_names": ("7.5", "8.0", "8.6", "8.9", "9.0", "9.0a", "10.0", "12.0", "12.0a"),
        "standard": "20",
        "ptxas": {"ptxas": "13.0"},
        "found": ("c++", "g++", "cc", "gcc"),
    }
    return BuildTools(**known | changes)  # type: ignore[arg-type]


def to_build(version: str = "2.13.0+cu130", **changes: object) -> dict[str, object]:
    """Return the facts of a machine on which extensions are compiled for torch *version*."""
    known: dict[str, object] = {
        "expectation": TO_BUILD,
        "platform": linux(),
        "interpreter": interpreter(),
        "torch": build(version),
        "symptoms": (),
        "variables": {},
        "toolkits": (),
        "gpus": (a100(),),
        "build_tools": tools(),
    }
    return known | changes
