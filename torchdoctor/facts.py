"""The facts a check may ask for: frozen, typed, with one spelling for each state of knowledge.

A value is a value. ``None`` means looked for and not there. :class:`Unknown` means that nobody
looked, or that looking failed, with the reason. There is no third spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from operator import attrgetter
from typing import Any, Literal, TypeVar

from torchdoctor.values import dataclass

Accelerator = Literal["cpu", "cuda", "rocm", "xpu", "mps"]
Profile = Literal["run", "build"]


class _Fact:
    """What all facts share. Written once: for each class anew, it is half the time to start."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bool(_values_of(self) == _values_of(other))

    def __hash__(self) -> int:
        return hash(_values_of(self))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({said})"


_GETTERS: dict[type, Callable[[object], Any]] = {}


def _values_of(fact: _Fact) -> Any:  # noqa: ANN401 - of one field it is that value alone
    """Return the values of all fields of *fact*: compared at once, they are quick."""
    kind = type(fact)
    if kind not in _GETTERS:
        _GETTERS[kind] = attrgetter(*kind.__slots__)
    return _GETTERS[kind](fact)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unknown(_Fact):
    """A fact that was not collected, and why."""

    reason: str = "not collected"


NOT_COLLECTED = Unknown()
_T = TypeVar("_T")


def items_of(values: tuple[_T, ...] | Unknown) -> tuple[_T, ...]:
    """Return *values*, none where nobody looked: for who asks if one of them is there."""
    return () if isinstance(values, Unknown) else values


# ---- the machine -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Platform(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cpu(_Fact):
    """The processor."""

    model: str | None
    flags: frozenset[str]
    cores: int | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Container(_Fact):
    """The container that the interpreter runs in."""

    kind: str
    """docker, podman, kubernetes, singularity, lxc, or container when only that much is known."""
    gpu_hook: bool | None = None
    """Whether the NVIDIA container toolkit was at work: its mounts, or devices named to it."""
    ipc: Literal["own", "given"] | None = None
    """Whether /dev/shm is the container's own, or was given to it (--ipc=host, a volume)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Limits(_Fact):
    """What the system grants; bytes, ``None`` = no limit."""

    shm: int | None = None
    """Size of /dev/shm; None when there is none."""
    shm_free: int | None = None
    memory: int | None = None
    """The smallest limit of the control groups."""
    cpus: float | None = None
    open_files: int | None = None
    locked_memory: int | None = None
    memory_used: int | None = None
    """What the group with that limit holds now."""
    memory_peak: int | None = None
    """The most that it has held."""
    oom_kills: int | None = None
    """How many of its processes were killed for lack of memory; None where nobody counts."""
    ram: int | None = None
    """The memory of the machine."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workers(_Fact):
    """A Python program that has forked others of itself; bytes of anonymous memory."""

    count: int
    named: bool
    """Whether torch says that they are workers of a DataLoader."""
    program: int
    """What the program itself holds."""
    each: int
    """What a worker holds, with what it still shares with the program."""
    own: int | None = None
    """How much of that a worker has of its own by now; None when it may not be looked at."""
    same_group: bool = True
    """Whether they run under the limits of this process."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Network(_Fact):
    """The network of this machine, by its files."""

    interfaces: tuple[str, ...]
    infiniband: tuple[str, ...] = ()
    """InfiniBand and RoCE devices."""
    own_addresses: tuple[str, ...] = ()
    """What /etc/hosts has for the host's own name."""


# ---- the interpreter and its packages ---------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interpreter(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distribution(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CondaPackage(_Fact):
    """One record of conda-meta."""

    name: str
    version: str
    build: str
    channel: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Conda(_Fact):
    """The conda environment that holds the interpreter."""

    packages: tuple[CondaPackage, ...]
    prefix: str = ""
    torch_files: int = 0
    """How many files of site-packages/torch the conda records claim."""

    def get(self, name: str) -> CondaPackage | None:
        """Return the package called *name*, if it is there."""
        return next((p for p in self.packages if p.name == name), None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leftover(_Fact):
    """A ``~name`` folder that pip left behind when it was stopped."""

    name: str
    folder: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Record(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Module(_Fact):
    """What ``import NAME`` would take, found without importing it."""

    name: str
    origin: str | None
    """Its file; None for a folder without ``__init__.py`` (a namespace package)."""
    folder: str
    """The entry of sys.path that holds it; empty when a finder of an editable install has it."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Build(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ErrorText(_Fact):
    """What an exception said: its type's name, its message, its traceback (bounded)."""

    type: str
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImportTrial(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Device(_Fact):
    """A GPU as the imported torch sees it."""

    index: int
    name: str
    capability: tuple[int, int] | None = None
    memory: int | None = None
    kernel: str | None = None
    """None when a kernel ran, else the error text."""
    gfx: str | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runtime(_Fact):
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
    numpy: str | Unknown | None = None
    """None when ``torch.from_numpy`` works or NumPy is absent, else the error text."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Symptom(_Fact):
    """A known message: its name in tables/symptoms.toml and the values it carried."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    """Where it was read: "import torch", "torch.cuda", a file name."""
    text: str = ""
    """The line that was matched."""


# ---- the driver and the GPUs ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Gpu(_Fact):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Driver(_Fact):
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
    cuda_library: str | None = None
    """Where the libcuda lies that the loader takes, links followed."""
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DeviceNode(_Fact):
    """A device file and whether this user may open it for reading and writing."""

    path: str
    allowed: bool
    mode: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel(_Fact):
    """What the running kernel says of GPU modules."""

    modules: frozenset[str] = frozenset()
    """Loaded ones among nvidia, nvidia_uvm, nouveau, amdgpu, i915, xe, nvidia_fs."""
    reboot_required: bool | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Toolkit(_Fact):
    """A CUDA toolkit on the machine: nvcc's release, 12.4, and where it is."""

    release: str | None
    path: str
    source: str = "nvcc"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compiler(_Fact):
    """A compiler that a build would call."""

    command: str
    """What is called: c++, gcc, cl, or what a variable says."""
    path: str | None
    """Where that is; None where it is nowhere."""
    kind: str = ""
    """gcc, clang, msvc; "" where it does not tell."""
    version: str | None = None
    named_by: str = ""
    """The variable that names it (CXX, CC, NVCC_CCBIN ...); "" for the one that is usual."""
    error: str = ""
    """What it said where it is there and does not run."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BuildTools(_Fact):
    """What an extension of torch would be compiled with. Each part is unknown on its own."""

    cxx: Compiler | Unknown = NOT_COLLECTED
    cc: Compiler | Unknown = NOT_COLLECTED
    """The C compiler, which nvcc calls for what is not CUDA."""
    nvcc: Toolkit | Unknown | None = NOT_COLLECTED
    """The toolkit that torch would take; its path is what torch calls CUDA_HOME."""
    home: str | None = None
    """What torch takes for CUDA_HOME, whether nvcc is in it or not."""
    targets: tuple[str, ...] | Unknown = NOT_COLLECTED
    """What that nvcc says that it makes code for: 90 is sm_90."""
    ninja: str | Unknown | None = NOT_COLLECTED
    headers: bool | Unknown = NOT_COLLECTED
    """Whether the interpreter has its Python.h."""
    arch_names: tuple[str, ...] | Unknown = NOT_COLLECTED
    """What the installed torch takes in TORCH_CUDA_ARCH_LIST: 9.0a."""
    standard: str | Unknown = NOT_COLLECTED
    """The C++ that the installed torch compiles with: 20 is -std=c++20."""
    ptxas: Mapping[str, str] | Unknown = NOT_COLLECTED
    """By its name (ptxas, ptxas-blackwell), the release of each that triton would call."""
    found: tuple[str, ...] = ()
    """Which of the usual names of compilers are on PATH: g++, g++-12, clang++."""
    visual_studio: bool = False
    """Whether Visual Studio is installed, whose compiler setuptools finds off PATH, too."""
    unchecked: bool = False
    """Whether nvcc was told to take any compiler (-allow-unsupported-compiler)."""


# ---- what only Windows has --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DllLoad(_Fact):
    """What the Windows loader makes of an import, worked out from the files, not tried.

    ``error`` is 0 when everything loads, a Windows error number, or None for an ImportError
    without a number. The message names ``named``; what is wrong is ``culprit``, and ``chain``
    (base names) leads from one to the other.
    """

    error: int | None = 0
    named: str = ""
    culprit: str = ""
    """A path, or the bare name of a file that is nowhere."""
    kind: str = ""
    """missing, not-whole, wrong-machine, no-symbol, old-runtime, no-extension; "" = loads."""
    place: str = ""
    """Where the culprit lies: torch, system32, application, registered, package, path, loaded."""
    chain: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    detail: str = ""
    also: tuple[str, ...] = ()
    """Further culprits that stop the same call in the same way."""
    hint: bool = False
    """Whether torch prints that the Visual C++ Redistributable is not installed."""
    by_path: tuple[str, ...] = ()
    """DLLs that load only because PATH is searched in the second try."""
    assumed: tuple[str, ...] = ()
    depends_on_order: bool = False

    @property
    def loads(self) -> bool:
        """Return whether the import works as far as DLLs go."""
        return self.error == 0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DllFile(_Fact):
    """A DLL somewhere on the machine, and its version ("14.44.35112.1"); None = it has none."""

    path: str
    version: str | None = None
    role: str = ""
    """application, system32, registered, package, path."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class VcNeed(_Fact):
    """Something that torch's files ask of the VC++ runtime, and the file that they get.

    ``kind``: present (the DLL must be there), mutex (its version must be *at_least*), rule
    (Microsoft's rule that the runtime be as new as the newest toolset). ``state``: met, older,
    absent, unknown.
    """

    kind: str
    dll: str
    state: str
    asks: str = ""
    """One of the files that ask."""
    at_least: str | None = None
    winner: DllFile | None = None
    registered: str | None = None
    contradicts_registry: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Windows(_Fact):
    """What only a Windows machine has. Each part is unknown on its own."""

    torch: DllLoad | Unknown = NOT_COLLECTED
    renewed: DllLoad | Unknown = NOT_COLLECTED
    """The same, were the newest VC++ redistributable installed."""
    after: Mapping[str, DllLoad] | Unknown = NOT_COLLECTED
    """The same in a process that imported this before; or that a package's DLL was loaded in."""
    loaded: tuple[str, ...] | Unknown = NOT_COLLECTED
    """The paths of the DLLs that a real import of torch loaded, in their order: not worked out, but
    told by Windows."""
    companions: Mapping[str, DllLoad] | Unknown = NOT_COLLECTED
    """The compiled files of torchvision and torchaudio, once torch is loaded."""
    needs: tuple[VcNeed, ...] | Unknown = NOT_COLLECTED
    copies: tuple[DllFile, ...] | Unknown = NOT_COLLECTED
    """Every msvcp140.dll that was found."""
    registered: Mapping[str, str] | Unknown = NOT_COLLECTED
    """VC++ runtimes by processor (x64 -> 14.44.35211), as the registry or a list has them."""
    strangers: tuple[str, ...] | Unknown = NOT_COLLECTED
    """DLLs in torch\\lib that torch's RECORD does not know."""
    edition: str | Unknown | None = NOT_COLLECTED
    """EditionID and InstallationType: "ProfessionalN Client"."""
    build: int | Unknown | None = NOT_COLLECTED
    long_paths: bool | Unknown = NOT_COLLECTED
    longest: int | Unknown | None = NOT_COLLECTED
    """The longest path of a file of torch, as its RECORD has it."""
    commit_limit: int | Unknown | None = NOT_COLLECTED
    commit_available: int | Unknown | None = NOT_COLLECTED
    image_size: int | Unknown | None = NOT_COLLECTED
    """Bytes of address space that the DLLs in torch\\lib take together."""
    policy: Mapping[str, str] | Unknown = NOT_COLLECTED
    """smart-app-control: off, on, evaluation; code-integrity: off, audit, enforced."""
    headers: bool | Unknown | None = NOT_COLLECTED
    """Whether the interpreter has Python.h and its import library."""
    status: str | Unknown | None = NOT_COLLECTED
    """How the interpreter ended where it did not start at all: "0xC0000135"; None = it started."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nccl(_Fact):
    """The NCCL of this environment, asked for an id, for which it has to choose an interface."""

    path: str
    version: int | None = None
    """As NCCL counts: 23007 is 2.30.7."""
    code: int | None = None
    """What it answered: 0 where it found an interface; None where it did not come so far."""
    said: str = ""
    interface: str = ""
    """The network interface that it took."""
    address: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Peers(_Fact):
    """What is between the NVIDIA GPUs of a machine that has several."""

    gpus: int
    redirecting: tuple[str, ...] | None = None
    """The bridges above them whose ACS redirects what one sends to another; None = not seen."""
    iommu: str = ""
    """What the IOMMU does with what they send: translates, pass-through; "" = there is none."""
    virtual: bool = False
    """Whether the machine is a virtual one."""


# ---- what only Linux has ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SoLoad(_Fact):
    """What the dynamic loader makes of an import, worked out from the files, not tried."""

    kind: str = ""
    """missing, not-whole, wrong-machine, executable-stack, version, symbol; "" = it loads."""
    named: str = ""
    """The path that was asked for."""
    culprit: str = ""
    """The file that is wrong; the name of one that is nowhere."""
    place: str = ""
    """Where the culprit comes from: torch, environment, system; a variable: LD_PRELOAD,
    LD_LIBRARY_PATH; "" where it is nowhere."""
    asks: str = ""
    """The path of the file that needs it."""
    chain: tuple[str, ...] = ()
    """Base names, from the file that was asked for to the culprit."""
    names: tuple[str, ...] = ()
    """The versions or symbols that are missing; the first is the one that the message names."""
    message: str = ""
    """What the loader would say."""
    instead: str = ""
    """The file that would be taken without the variables, and has what is missing."""
    assumed: tuple[str, ...] = ()

    @property
    def loads(self) -> bool:
        """Return whether it works as far as shared objects go."""
        return not self.kind


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SoFile(_Fact):
    """A shared object that the loader takes for a name, and why that one."""

    name: str
    path: str
    how: str
    """LD_PRELOAD, rpath, LD_LIBRARY_PATH, runpath, cache, default, path, loaded."""
    instead: str = ""
    """The file that would be taken without the variables, where that is another; "" = none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linux(_Fact):
    """What only a Linux machine has: the shared objects. Each part is unknown on its own."""

    torch: SoLoad | Unknown = NOT_COLLECTED
    without: SoLoad | Unknown = NOT_COLLECTED
    """The same without LD_LIBRARY_PATH and LD_PRELOAD."""
    steered: tuple[SoFile, ...] | Unknown = NOT_COLLECTED
    """Files that torch takes because of these variables, where it would take others."""
    extensions: Mapping[str, tuple[SoLoad, ...]] | Unknown = NOT_COLLECTED
    """By package: its compiled files that need torch's, once torch is loaded."""
    stacks: tuple[str, ...] | Unknown = NOT_COLLECTED
    """Files that torch and those load and that ask for an executable stack."""
    glibc: str | Unknown | None = NOT_COLLECTED
    """The release of the C library, by the newest version that it defines."""


# ---- an all_reduce that was tried ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankEvent(_Fact):
    """What a rank said of a stage: enter, call (just before it blocks), ok, error or fact."""

    stage: str
    kind: str
    at: float
    """Seconds since the run began."""
    values: Mapping[str, object] = field(default_factory=dict)
    symptoms: tuple[str, ...] = ()
    """The names of the known messages in an error."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RankRun(_Fact):
    """One rank: what it said, how it ended, and where it was when it was ended."""

    rank: int
    events: tuple[RankEvent, ...] = ()
    started: bool = True
    reason: str = ""
    """Why it could not be started, or why nothing is known of it."""
    exit_code: int | None = None
    signal: str | None = None
    ended_by_us: bool = False
    ended_at: float | None = None
    """When it ended by itself, in seconds since the run began."""
    state: str = ""
    """What the kernel says of one that had to be ended: "S do_wait", "T do_signal_stop"."""
    stack: str = ""
    symptoms: tuple[str, ...] = ()
    """The names of the known messages in what it printed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AllReduce(_Fact):
    """One all_reduce over ``world`` ranks, and how its ranks fared."""

    world: int
    ranks: tuple[RankRun, ...]
    ended: str = "done"
    """done, rank-ended, stage-limit, limit, stopped: why the run was over."""
    seconds: float = 0.0
    fingerprints: Mapping[int, str] = field(default_factory=dict)
    """Which collective each rank called, where torch found that they differ."""
    unheard: tuple[int, ...] = ()
    """Ranks on other machines of which nothing came here."""
    again: Mapping[str, AllReduce] = field(default_factory=dict)
    """The same tried once more after it failed, by what was changed."""


# ---- what was asked ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Expectation(_Fact):
    """What the user says this machine is for (``--expect``)."""

    accelerator: Accelerator | None = None
    cuda_at_least: str | None = None
    gpus_at_least: int | None = None
    lock: Mapping[str, str] = field(default_factory=dict)
    """What a lock file holds (``--lock``): fact -> value; empty without one."""
    require: Mapping[str, str] = field(default_factory=dict)
    """What a policy requires (``--policy``): torch -> ">=2.6"; empty without one."""
    profile: Profile = "run"
    """Whether torch is only run here, or extensions are compiled for it, too (``--profile``)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Facts(_Fact):
    """Everything known of one machine. A check names the fields it wants as its parameters."""

    platform: Platform | Unknown = NOT_COLLECTED
    cpu: Cpu | Unknown = NOT_COLLECTED
    container: Container | Unknown | None = NOT_COLLECTED
    limits: Limits | Unknown = NOT_COLLECTED
    workers: tuple[Workers, ...] | Unknown = NOT_COLLECTED
    """Programs at work, with their worker processes."""
    network: Network | Unknown | None = NOT_COLLECTED
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
    trial_after: Mapping[str, ImportTrial] | Unknown = NOT_COLLECTED
    """Imports of torch after other modules (``--after``), by the names of those."""
    windows: Windows | Unknown | None = NOT_COLLECTED
    linux: Linux | Unknown | None = NOT_COLLECTED
    peers: Peers | Unknown | None = NOT_COLLECTED
    """None where there are not several NVIDIA GPUs."""
    nccl: Nccl | Unknown | None = NOT_COLLECTED
    """None where the environment has none."""
    symptoms: tuple[Symptom, ...] | Unknown = NOT_COLLECTED
    driver: Driver | Unknown | None = NOT_COLLECTED
    gpus: tuple[Gpu, ...] | Unknown = NOT_COLLECTED
    device_nodes: tuple[DeviceNode, ...] | Unknown = NOT_COLLECTED
    kernel: Kernel | Unknown = NOT_COLLECTED
    toolkits: tuple[Toolkit, ...] | Unknown = NOT_COLLECTED
    build_tools: BuildTools | Unknown = Unknown("not looked for (--profile build does)")
    all_reduce: AllReduce | Unknown | None = None
    """The one that was asked for (``all-reduce``, ``check --all-reduce``); None without one."""
    expectation: Expectation = Expectation()
    remarks: tuple[str, ...] = ()
    """What could not be read although it looked like something known, and what contradicts
    itself; one sentence each."""

    def but(self, **changes: object) -> Facts:
        """Return these facts with *changes* in their fields.

        As dataclasses.replace does, in a third of the time: a plan asks for it thousands of times.
        """
        new = object.__new__(Facts)
        for name, value in zip(Facts.__slots__, _values_of(self), strict=True):
            setattr(new, name, value)
        for name, value in changes.items():
            setattr(new, name, value)
        return new
