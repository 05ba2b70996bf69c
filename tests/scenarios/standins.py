"""Stand-ins for what is too large or cannot be had: CUDA builds, NVIDIA's wheels, other releases.

The metadata is the real one (read from the published wheels); the libraries are shared objects
without code, so the loader itself finds or misses them. A CUDA build is the real CPU build with the
version file, the requirements and the library needs of the CUDA build of the same release, and
with recorded answers in the place of the CUDA runtime.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.scenarios.elf import shared_object

RELEASE = "2.13.0"
BASIC = (
    "filelock",
    "typing-extensions>=4.10.0",
    "setuptools>=77.0.3",
    "sympy>=1.13.3",
    "networkx>=2.5.1",
    "jinja2",
    "fsspec>=0.8.5",
)
"""Requirements of every build of torch 2.13.0."""
_EXTRAS = "cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx"
CU130 = (
    *BASIC,
    f"cuda-toolkit[{_EXTRAS}]==13.0.3; platform_system == 'Linux'",
    'cuda-bindings<14,>=13.0.3; platform_system == "Linux" and python_version < "3.15"',
    'nvidia-cudnn-cu13==9.20.0.48; platform_system == "Linux"',
    'nvidia-cusparselt-cu13==0.8.1; platform_system == "Linux"',
    'nvidia-nccl-cu13==2.29.7; platform_system == "Linux"',
    'nvidia-nvshmem-cu13==3.4.5; platform_system == "Linux"',
    'triton==3.7.1; platform_system == "Linux" and python_version < "3.15"',
)
"""Requirements in the METADATA of torch 2.13.0 for Linux on the default index (CUDA 13.0)."""
TOOLKIT = {
    "cublas": "nvidia-cublas==13.1.1.3.*",
    "cudart": "nvidia-cuda-runtime==13.0.96.*",
    "cufft": "nvidia-cufft==12.0.0.61.*",
    "cufile": "nvidia-cufile==1.15.1.6.*",
    "cupti": "nvidia-cuda-cupti==13.0.85.*",
    "curand": "nvidia-curand==10.4.0.35.*",
    "cusolver": "nvidia-cusolver==12.0.4.66.*",
    "cusparse": "nvidia-cusparse==12.6.3.3.*",
    "nvjitlink": "nvidia-nvjitlink<14,>=13.0.88",
    "nvrtc": "nvidia-cuda-nvrtc==13.0.88.*",
    "nvtx": "nvidia-nvtx==13.0.85.*",
}
"""Extras of cuda-toolkit 13.0.3.0 that torch asks for."""
LIBRARIES: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "nvidia-cublas": (
        "13.1.1.3",
        "cu13",
        ("libcublas.so.13", "libcublasLt.so.13", "libnvblas.so.13"),
    ),
    "nvidia-cuda-runtime": ("13.0.96", "cu13", ("libcudart.so.13",)),
    "nvidia-cufft": ("12.0.0.61", "cu13", ("libcufft.so.12", "libcufftw.so.12")),
    "nvidia-cufile": ("1.15.1.6", "cu13", ("libcufile.so.0", "libcufile_rdma.so.1")),
    "nvidia-cuda-cupti": ("13.0.85", "cu13", ("libcupti.so.13",)),
    "nvidia-curand": ("10.4.0.35", "cu13", ("libcurand.so.10",)),
    "nvidia-cusolver": ("12.0.4.66", "cu13", ("libcusolver.so.12", "libcusolverMg.so.12")),
    "nvidia-cusparse": ("12.6.3.3", "cu13", ("libcusparse.so.12",)),
    "nvidia-nvjitlink": ("13.0.88", "cu13", ("libnvJitLink.so.13",)),
    "nvidia-cuda-nvrtc": ("13.0.88", "cu13", ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0")),
    "nvidia-nvtx": ("13.0.85", "cu13", ("libnvtx3interop.so.1",)),
    "nvidia-cudnn-cu13": ("9.20.0.48", "cudnn", ("libcudnn.so.9", "libcudnn_ops.so.9")),
    "nvidia-cusparselt-cu13": ("0.8.1", "cusparselt", ("libcusparseLt.so.0",)),
    "nvidia-nccl-cu13": ("2.29.7", "nccl", ("libnccl.so.2",)),
    "nvidia-nvshmem-cu13": ("3.4.5", "nvshmem", ("libnvshmem_host.so.3",)),
}
"""NVIDIA's wheels for CUDA 13.0: version, folder below nvidia/, libraries."""
RPATH = ":".join(
    f"$ORIGIN/../../nvidia/{folder}/lib"
    for folder in ("cudnn", "nvshmem", "nccl", "cusparselt", "cu13")
)
RPATH = f"{RPATH}:$ORIGIN"
TORCH_LIBRARIES = {
    "libtorch_cuda.so": (
        "libc10_cuda.so",
        "libtorch_nvshmem.so",
        "libcudart.so.13",
        "libcupti.so.13",
        "libcusparse.so.12",
        "libcufft.so.12",
        "libcufile.so.0",
        "libcusparseLt.so.0",
        "libnccl.so.2",
        "libcurand.so.10",
        "libcublas.so.13",
        "libcublasLt.so.13",
        "libcudnn.so.9",
        "libnvrtc.so.13",
    ),
    "libc10_cuda.so": ("libc10.so", "libcudart.so.13"),
    "libtorch_nvshmem.so": ("libnvshmem_host.so.3",),
    "libcaffe2_nvrtc.so": ("libnvrtc.so.13",),
    "libtorch_cuda_linalg.so": (
        "libcusolver.so.12",
        "libcudart.so.13",
        "libcublas.so.13",
        "libcusparse.so.12",
    ),
    "libtorch.so": ("libtorch_cpu.so", "libtorch_cuda.so"),
    "libtorch_global_deps.so": (
        "libpthread.so.0",
        "libm.so.6",
        "libdl.so.2",
        "libcudart.so.13",
        "libgomp.so.1",
        "libc.so.6",
    ),
}
"""What torch's own libraries need in the build for CUDA 13.0 (readelf -d)."""
ARCHS = {
    "cu126": "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
    "cu130": "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
}

VERSION_PY = """from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda!r}
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
"""

NO_DRIVER = (
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed "
    "a driver from http://www.nvidia.com/Download/index.aspx"
)
TOO_OLD = (
    "The NVIDIA driver on your system is too old (found version {number}). Please update your GPU "
    "driver by downloading and installing a new version from the URL: "
    "http://www.nvidia.com/Download/index.aspx Alternatively, go to: https://pytorch.org to "
    "install a PyTorch version that has been compiled with your version of the CUDA driver."
)
ERROR_803 = (
    "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling "
    "NumCudaDevices() that might have already set an error? Error 803: system has unsupported "
    "display driver / cuda driver combination"
)
NO_KERNEL = (
    "CUDA error: no kernel image is available for execution on the device\n"
    "Search for `cudaErrorNoKernelImageForDevice' in "
    "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html "
    "for more information.\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the "
    "stacktrace below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)

# Answers in the place of the CUDA runtime: the texts are the recorded ones.
RECORDED_CUDA = '''"""Recorded answers of the CUDA runtime."""
import types
import warnings

import torch
from torch.overrides import TorchFunctionMode

SAYS = {says!r}
ARCHS = {archs!r}
DEVICE = {device!r}
NO_KERNEL = {no_kernel!r}


def _count():
    if SAYS:
        warnings.warn("CUDA initialization: " + SAYS + " (Triggered internally at "
                      "/pytorch/c10/cuda/CUDAFunctions.cpp:119.)", stacklevel=3)
        return 0
    return 1


def _init():
    if SAYS:
        raise RuntimeError(SAYS)


torch._C._cuda_getDeviceCount = _count
torch._C._cuda_getArchFlags = lambda: ARCHS
torch._C._cuda_init = _init
torch._C._nccl_version = lambda: (2, 29, 7)
torch.cuda._cudart = types.SimpleNamespace()
torch.cuda._lazy_init = _init
torch.backends.cudnn.version = lambda: 92000
torch.cuda.nccl.version = lambda: (2, 29, 7)
if DEVICE:
    name, major, minor = DEVICE
    properties = types.SimpleNamespace(
        name=name, major=major, minor=minor, total_memory=40960 << 20, multi_processor_count=100,
        uuid="11111111-2222-3333-4444-555555555555", gcnArchName="",
    )
    torch.cuda.get_device_properties = lambda device=None: properties
    torch.cuda.get_device_name = lambda device=None: name
    torch.cuda.get_device_capability = lambda device=None: (major, minor)
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = lambda device: None
    torch.cuda.is_initialized = lambda: True
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.mem_get_info = lambda device=None: (40000 << 20, 40960 << 20)

    def _on_gpu(value):
        return isinstance(value, (str, torch.device)) and str(value).startswith("cuda")

    class _Gpu(TorchFunctionMode):
        """Carry out on the CPU what is asked of the GPU, or say that there is no kernel."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {{}})
            asked = [value for value in (*args, *kwargs.values()) if _on_gpu(value)]
            if asked or getattr(func, "__name__", "") == "cuda":
                if NO_KERNEL:
                    raise getattr(torch, "AcceleratorError", RuntimeError)(NO_KERNEL)
                if getattr(func, "__name__", "") == "cuda":
                    return args[0]
                args = tuple("cpu" if _on_gpu(value) else value for value in args)
                kwargs = {{key: "cpu" if _on_gpu(v) else v for key, v in kwargs.items()}}
            return func(*args, **kwargs)

    _Gpu().__enter__()
'''

Gpu = tuple[str, int, int]
A100: Gpu = ("NVIDIA A100-SXM4-40GB", 8, 0)
GTX1080: Gpu = ("NVIDIA GeForce GTX 1080", 6, 1)
B200: Gpu = ("NVIDIA B200", 10, 0)


def cuda_torch(
    environment: Environment,
    version: str = RELEASE,
    *,
    says: str = "",
    device: Gpu | None = None,
    kernels: bool = True,
    without: Sequence[str] = (),
) -> None:
    """Turn the CPU torch of *environment* into the CUDA 13.0 build of that release.

    *version* is what METADATA says (``2.13.0`` on the default index, ``2.13.0+cu130`` on torch's
    own). *says* is why CUDA is not available, "" when it is; *device* the GPU it then finds;
    *kernels* whether the build has code for it. *without* names wheels of NVIDIA left out.
    """
    init = (environment.site / "torch" / "__init__.py").read_text(encoding="utf-8")
    recorded = RECORDED_CUDA.format(
        says=says, archs=ARCHS["cu130"], device=device, no_kernel="" if kernels else NO_KERNEL
    )
    changes: dict[str, str | bytes] = {
        "torch/version.py": VERSION_PY.format(version=f"{RELEASE}+cu130", cuda="13.0"),
        "torch/_recorded_cuda.py": recorded,
        "torch/__init__.py": f"{init}\nfrom torch import _recorded_cuda  # noqa\n",
    }
    for name, needed in TORCH_LIBRARIES.items():
        changes[f"torch/lib/{name}"] = shared_object(name, needed, RPATH)
    environments.relabel(environment, version, changes=changes, requires=CU130)
    for path in nvidia_wheels(wheel_folder()):
        if path.name.split("-")[0].replace("_", "-") not in without:
            environments.unpack(path, environment.site)


def wheel_folder() -> Path:
    """Return the folder that stand-in wheels are made in."""
    return environments.copies() / "stand-ins"


def nvidia_wheels(folder: Path) -> list[Path]:
    """Make the wheels that torch 2.13.0 for CUDA 13.0 asks for, and return them."""
    made = [
        environments.wheel(
            folder,
            name,
            version,
            {
                f"nvidia/{place}/lib/{soname}": shared_object(soname, (), "$ORIGIN")
                for soname in sonames
            },
            tag="py3-none-manylinux_2_27_x86_64" if sys.platform == "linux" else "py3-none-any",
        )
        for name, (version, place, sonames) in LIBRARIES.items()
    ]
    requires = [f'{line}; extra == "{extra}"' for extra, line in TOOLKIT.items()]
    made.append(
        environments.wheel(folder, "cuda-toolkit", "13.0.3.0", requires=requires, extras=TOOLKIT)
    )
    bindings = {"cuda/bindings/__init__.py": ""}
    made.append(environments.wheel(folder, "cuda-bindings", "13.0.3", bindings))
    triton = {"triton/__init__.py": "__version__ = '3.7.1'\n"}
    made.append(environments.wheel(folder, "triton", "3.7.1", triton))
    return made


TINY_TORCH = '''"""A stand-in that imports."""
import types

from torch.version import __version__, cuda

version = types.SimpleNamespace(__version__=__version__, cuda=cuda, hip=None, xpu=None)


class _C:
    @staticmethod
    def _get_cxx11_abi():
        return True


cuda = types.SimpleNamespace(
    is_available=lambda: False, device_count=lambda: 0, get_arch_list=lambda: [], init=lambda: None
)
backends = types.SimpleNamespace(
    cudnn=types.SimpleNamespace(version=lambda: None, is_available=lambda: False),
    mps=types.SimpleNamespace(is_available=lambda: False),
)
'''


def tiny_torch(
    folder: Path,
    version: str,
    *,
    cuda: str | None = None,
    requires: Sequence[str] = BASIC,
    code: str = "",
) -> Path:
    """Make a wheel of torch *version* that has the right metadata, imports, and does nothing.

    *cuda* is what its version file says; *code* is run at its end on import.
    """
    label = f"+cu{cuda.replace('.', '')}" if cuda and "+" not in version else ""
    files = {
        "torch/__init__.py": TINY_TORCH + code,
        "torch/version.py": VERSION_PY.format(version=version + label, cuda=cuda),
    }
    return environments.wheel(folder, "torch", version, files, requires=requires)


OLD = ("1.13.1", "2.2.2", "2.4.1", "2.9.1")
"""Releases that a Python of their time has a CPU build of, for each a stand-in that imports."""


def xformers(folder: Path) -> Path:
    """Make the release of xformers for torch 2.10 and later, with a compiled part that loads."""
    library = shared_object("_C.so", ["libc10.so"])
    files: dict[str, str | bytes] = {"xformers/__init__.py": "", "xformers/_C.so": library}
    tag = "py3-none-manylinux_2_28_x86_64"
    return environments.wheel(
        folder, "xformers", "0.0.35", files, requires=["torch>=2.10"], tag=tag
    )


def companion(folder: Path, name: str, version: str, torch: str | None) -> Path:
    """Make a wheel of torchvision or torchaudio with its real requirements and little else.

    *torch* is its requirement ("(==2.11.0)"), None for the releases that have none.
    """
    requires = [f"torch{torch}"] if torch else []
    if name == "torchvision":
        requires = ["numpy", *requires]
    version_py = f"__version__ = '{version}'\ngit_version = '{'0' * 40}'\n"
    code = "import torch\n\nfrom .version import __version__, git_version\n"
    files = {f"{name}/__init__.py": code, f"{name}/version.py": version_py}
    return environments.wheel(folder, name, version, files, requires=requires)


def fitting_companions(folder: Path, label: str) -> list[Path]:
    """Make torchvision and torchaudio for torch 2.13.0 in the build *label* ("+cpu")."""
    return [
        companion(folder, "torchvision", f"0.28.0{label}", f"==2.13.0{label}"),
        companion(folder, "torchaudio", f"2.11.0{label}", None),
        companion(folder, "torchaudio", f"2.11.1{label}", ">=2.11"),
    ][: 2 if not label else 3]
