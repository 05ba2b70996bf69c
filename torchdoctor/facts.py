"""The facts a check may ask for: frozen, typed, with one spelling for each state of knowledge.

A value is a value. ``None`` means looked for and not there. :class:`Unknown` means that nobody
looked, or that looking failed, with the reason. There is no third spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Accelerator = Literal["cpu", "cuda", "rocm", "xpu", "mps"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that was not collected, and why."""

    reason: str = "not collected"


NOT_COLLECTED = Unknown()


# ---- the machine -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Platform:
    """The operating system. ``system`` is linux, win32 or darwin, as ``sys.platform`` spells it."""

    system: str
    machine: str
    """As the kernel says: x86_64, aarch64, AMD64, arm64."""
    name: str = ""
    """For people: "Debian GNU/Linux 12 (bookworm)", "Windows 11"."""
    distribution: str | None = None
    """The ``ID`` of os-release: debian, ubuntu, rhel."""
    like: tuple[str, ...] = ()
    """The ``ID_LIKE`` of os-release."""
    version: str | None = None
    kernel: str | None = None
    libc: str | None = None
    """glibc or musl; None on other systems."""
    libc_version: str | None = None
    wsl: Literal[1, 2] | None = None
    emulated: bool | None = None
    """Whether the interpreter runs under emulation (Rosetta, Prism, qemu-user)."""
    jetson: bool = False


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor."""

    model: str | None
    flags: frozenset[str]
    cores: int | None


@dataclass(frozen=True, slots=True)
class Container:
    """The container that the interpreter runs in."""

    kind: str
    """docker, podman, kubernetes, singularity, lxc, or container when only that much is known."""
    gpu_hook: bool | None = None
    """Whether the NVIDIA container toolkit was at work: its mounts, or devices named to it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the system grants; bytes, ``None`` = no limit."""

    shm: int | None = None
    """Size of /dev/shm; None when there is none."""
    shm_free: int | None = None
    memory: int | None = None
    cpus: float | None = None
    open_files: int | None = None
    locked_memory: int | None = None


# ---- the interpreter and its packages ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python under test."""

    executable: str
    version: str
    """"3.11.7"."""
    prefix: str
    base_prefix: str
    kind: str
    """venv, virtualenv, uv, conda, system, store, pyenv, pipx, uv-tool, embedded, other."""
    machine: str = ""
    """The machine type the interpreter was built for (sysconfig platform)."""
    bits: int = 64
    implementation: str = "cpython"
    free_threaded: bool = False
    debug: bool = False
    user_site: str | None = None
    """The user site folder when it is on the path; None when it is switched off or absent."""
    site_packages: tuple[str, ...] = ()
    externally_managed: bool = False
    has_pip: bool = True
    installer: str = "pip"
    """What owns the environment: pip, uv, conda, mamba, pixi, poetry, pdm."""
    redacted: bool = False
    """Whether the paths are stand-ins, so that no command may use them."""

    @property
    def tag(self) -> str:
        """Return the Python as the tables name it: "3.14", or "3.14t" when free-threaded."""
        return ".".join(self.version.split(".")[:2]) + ("t" if self.free_threaded else "")


@dataclass(frozen=True, slots=True)
class Distribution:
    """An installed distribution, as its metadata gives it."""

    name: str
    """Normalised: lower case, hyphens."""
    version: str
    folder: str
    """The folder on sys.path that holds it."""
    metadata: str = ""
    """The name of its dist-info or egg-info folder."""
    installer: str = ""
    """The word in INSTALLER: pip, uv, conda, poetry 2.1."""
    requires: tuple[str, ...] = ()
    """Requires-Dist lines; kept for torch, its companions and its neighbours only."""
    direct_url: str | None = None
    editable: bool = False
    user_site: bool = False
    wheel_tags: tuple[str, ...] = ()
    """Tag lines of WHEEL."""


@dataclass(frozen=True, slots=True)
class CondaPackage:
    """One record of conda-meta."""

    name: str
    version: str
    build: str
    channel: str


@dataclass(frozen=True, slots=True)
class Conda:
    """The conda environment that holds the interpreter."""

    packages: tuple[CondaPackage, ...]
    prefix: str = ""
    torch_files: int = 0
    """How many files of site-packages/torch the conda records claim."""

    def get(self, name: str) -> CondaPackage | None:
        """Return the package called *name*, if it is there."""
        return next((p for p in self.packages if p.name == name), None)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A ``~name`` folder that pip left behind when it was stopped."""

    name: str
    folder: str


@dataclass(frozen=True, slots=True)
class Record:
    """The files of one distribution against its RECORD; names relative to its folder."""

    name: str
    files: int
    missing: tuple[str, ...] = ()
    """The first hundred."""
    missing_count: int = 0
    altered: tuple[str, ...] = ()
    """Of another size or another hash; the first hundred."""
    altered_count: int = 0
    hashed: int = 0
    """How many files were hashed, beyond the comparison of sizes."""


@dataclass(frozen=True, slots=True)
class Module:
    """What ``import NAME`` would take, found without importing it."""

    name: str
    origin: str | None
    """Its file; None for a folder without ``__init__.py`` (a namespace package)."""
    folder: str
    """The entry of sys.path that holds it; empty when a finder of an editable install has it."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build of torch or a companion, as its version.py says it."""

    version: str
    """With its local label: 2.13.0+cu130."""
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    git: str | None = None
    origin: str = ""
    """The folder of the package that would be imported."""
    tag: str | None = None
    """cpu, cu130, rocm7.2, xpu: what kind of build it is; None when nothing tells."""
    distribution: Distribution | None = None
    """The distribution that owns it, when one does."""

    @property
    def public(self) -> str:
        """Return the version without its local label."""
        return self.version.partition("+")[0]


@dataclass(frozen=True, slots=True)
class ErrorText:
    """What an exception said: its type's name, its message, its traceback (bounded)."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class ImportTrial:
    """One real import in a child of its own, and how it ended."""

    module: str
    outcome: Literal["imported", "raised", "died", "hung", "not-started"]
    seconds: float
    stage: str = "import"
    """The last stage begun: import, then what was tried after it (cuda, kernel 0, cudnn ...)."""
    error: ErrorText | None = None
    signal: str | None = None
    """SIGSEGV, or the Windows status 0xC0000005."""
    exit_code: int | None = None
    version: str | None = None
    file: str | None = None
    output: str = ""
    """What the import printed, bounded."""


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU as the imported torch sees it."""

    index: int
    name: str
    capability: tuple[int, int] | None = None
    memory: int | None = None
    kernel: str | None = None
    """None when a kernel ran, else the error text."""
    gfx: str | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the imported torch says of itself and of the accelerators."""

    version: str
    cuda: str | None = None
    hip: str | None = None
    available: bool = False
    """``torch.cuda.is_available()``."""
    reason: str | None = None
    """The error text when CUDA was asked for and is not available."""
    devices: tuple[Device, ...] = ()
    arch_list: tuple[str, ...] = ()
    cudnn: str | None = None
    nccl: str | None = None
    mps: bool | None = None
    xpu: bool | None = None
    numpy: str | None = None
    """None when ``torch.from_numpy`` works or NumPy is absent, else the error text."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """A known message: its name in tables/symptoms.toml and the values it carried."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """Where it was read: "import torch", "torch.cuda", a file name."""
    text: str = ""
    """The line that was matched."""


# ---- the driver and the GPUs ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the driver or the bus lists it."""

    name: str
    vendor: str = "nvidia"
    """nvidia, amd, intel, apple."""
    index: int | None = None
    capability: tuple[int, int] | None = None
    memory: int | None = None
    uuid: str | None = None
    bus: str | None = None
    mig: bool | None = None
    compute_mode: str | None = None
    gfx: str | None = None


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver. ``release`` is "Driver Version" of nvidia-smi, 580.65.06.

    ``cuda`` is "CUDA Version" (or "CUDA UMD Version") there: the newest CUDA that the driver
    supports in full. It is not the toolkit, and not the CUDA of any build.
    """

    release: str | None
    cuda: str | None = None
    source: str = ""
    """nvml, nvidia-smi, or a file."""
    kernel_module: str | None = None
    """The release of the loaded kernel module (/proc/driver/nvidia/version)."""
    library: str | None = None
    """The release of the user-space library (libnvidia-ml, libcuda)."""
    error: str | None = None
    """Why the driver did not answer, in its own words."""
    code: int | None = None
    """The NVML error number, when that is what it answered."""
    hung: bool = False
    """Whether it was asked and did not answer within the deadline."""
    garbage: bool = False
    """Whether what it answered could not be read."""
    fabric: str | None = None
    """State of the fabric manager on NVSwitch machines: running, stopped; None elsewhere."""


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device file and whether this user may open it for reading and writing."""

    path: str
    allowed: bool
    mode: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the running kernel says of GPU modules."""

    modules: frozenset[str] = frozenset()
    """Loaded ones among nvidia, nvidia_uvm, nouveau, amdgpu, i915, xe, nvidia_fs."""
    reboot_required: bool | None = None


@dataclass(frozen=True, slots=True)
class Toolkit:
    """A CUDA toolkit on the machine: nvcc's release, 12.4, and where it is."""

    release: str | None
    path: str
    source: str = "nvcc"


# ---- what was asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the user says this machine is for (``--expect``)."""

    accelerator: Accelerator | None = None
    cuda_at_least: str | None = None
    gpus_at_least: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything known of one machine. A check names the fields it wants as its parameters."""

    platform: Platform | Unknown = NOT_COLLECTED
    cpu: Cpu | Unknown = NOT_COLLECTED
    container: Container | Unknown | None = NOT_COLLECTED
    limits: Limits | Unknown = NOT_COLLECTED
    interpreter: Interpreter | Unknown = NOT_COLLECTED
    variables: Mapping[str, str] | Unknown = NOT_COLLECTED
    search_path: tuple[str, ...] | Unknown = NOT_COLLECTED
    distributions: tuple[Distribution, ...] | Unknown = NOT_COLLECTED
    conda: Conda | Unknown | None = NOT_COLLECTED
    leftovers: tuple[Leftover, ...] | Unknown = NOT_COLLECTED
    records: Mapping[str, Record] | Unknown = NOT_COLLECTED
    modules: Mapping[str, Module | None] | Unknown = NOT_COLLECTED
    """What ``import NAME`` takes with the path alone, for torch and its companions."""
    local_modules: Mapping[str, Module | None] | Unknown = NOT_COLLECTED
    """The same for a script in the working folder: that folder comes first."""
    torch: Build | Unknown | None = NOT_COLLECTED
    torchvision: Build | Unknown | None = NOT_COLLECTED
    torchaudio: Build | Unknown | None = NOT_COLLECTED
    trial: ImportTrial | Unknown = NOT_COLLECTED
    companion_trials: Mapping[str, ImportTrial] | Unknown = NOT_COLLECTED
    runtime: Runtime | Unknown = NOT_COLLECTED
    symptoms: tuple[Symptom, ...] | Unknown = NOT_COLLECTED
    driver: Driver | Unknown | None = NOT_COLLECTED
    gpus: tuple[Gpu, ...] | Unknown = NOT_COLLECTED
    device_nodes: tuple[DeviceNode, ...] | Unknown = NOT_COLLECTED
    kernel: Kernel | Unknown = NOT_COLLECTED
    toolkits: tuple[Toolkit, ...] | Unknown = NOT_COLLECTED
    expectation: Expectation = Expectation()
    remarks: tuple[str, ...] = ()
    """What could not be read although it looked like something known, and what contradicts
    itself; one sentence each."""
