# ruff: noqa: E501, W291 - as printed
"""Layouts as programs print them, rebuilt from public reports; names and paths are stand-ins."""

from __future__ import annotations

VLLM = """\
INFO 07-21 10:19:29 __init__.py:183] Automatically detected platform cuda.
Collecting environment information...
==============================
        System Info
==============================
OS                           : Red Hat Enterprise Linux release 8.3 (Ootpa) (x86_64)
GCC version                  : (GCC) 8.5.0 20210514 (Red Hat 8.5.0-3)
Clang version                : Could not collect
CMake version                : version 3.31.5
Libc version                 : glibc-2.28

==============================
       PyTorch Info
==============================
PyTorch version              : 2.7.0+cu126
Is debug build               : False
CUDA used to build PyTorch   : 12.6
ROCM used to build PyTorch   : N/A

==============================
      Python Environment
==============================
Python version               : 3.10.16 | packaged by conda-forge | (main, Dec  5 2024, 14:16:10) [GCC 13.3.0] (64-bit runtime)
Python platform              : Linux-4.18.0-240.el8.x86_64-x86_64-with-glibc2.28

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
CUDA runtime version         : 12.6.85
CUDA_MODULE_LOADING set to   : LAZY
GPU models and configuration : 
GPU 0: NVIDIA A100-SXM4-80GB
GPU 1: NVIDIA A100-SXM4-80GB

Nvidia driver version        : 550.144.03
cuDNN version                : Could not collect
HIP runtime version          : N/A
MIOpen runtime version       : N/A
Is XNNPACK available         : True

==============================
          CPU Info
==============================
Architecture:        x86_64
CPU(s):              128
Model name:          AMD EPYC 7543 32-Core Processor

==============================
Versions of relevant libraries
==============================
[pip3] numpy==1.26.4
[pip3] nvidia-nccl-cu12==2.26.2
[pip3] torch==2.7.0
[pip3] torchvision==0.22.0
[conda] numpy                     1.26.4                   pypi_0    pypi
[conda] torch                     2.7.0                    pypi_0    pypi

==============================
         vLLM Info
==============================
ROCM Version                 : Could not collect
Neuron SDK Version           : N/A
vLLM Version                 : 0.9.0
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled
GPU Topology:
        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV12    0-31    0               N/A
GPU1    NV12     X      0-31    0               N/A

==============================
     Environment Variables
==============================
LD_LIBRARY_PATH=/usr/local/cuda/lib64
NCCL_CUMEM_ENABLE=0
CUDA_MODULE_LOADING=LAZY
"""

ROCM_2_15 = """\
Collecting environment information...
PyTorch version: 2.15.0+rocm7.2
Is debug build: False
CUDA used to build PyTorch: N/A
ROCm SDK used to build PyTorch: 7.2.0
HIP used to build PyTorch: 7.2.53211-e1c9b8e1

OS: Ubuntu 24.04.3 LTS (x86_64)
Libc version: glibc-2.39

Python version: 3.12.3 (main, Nov  6 2025, 13:44:16) [GCC 13.3.0] (64-bit runtime)
Python platform: Linux-6.14.0-37-generic-x86_64-with-glibc2.39
Is CUDA available: True
CUDA runtime version: Could not collect
GPU models and configuration: AMD Radeon RX 7900 XTX (gfx1100)
Nvidia driver version: Could not collect
cuDNN version: Could not collect
HIP runtime version: 7.2.53211
MIOpen runtime version: 3.5.1
"""

YES_NO = """\
Collecting environment information...
PyTorch version: 1.1.0
Is debug build: No
CUDA used to build PyTorch: 9.0.176

OS: Ubuntu 18.04.2 LTS
GCC version: (Ubuntu 8.3.0-6ubuntu1~18.04.1) 8.3.0
CMake version: version 3.10.2

Python version: 3.6
Is CUDA available: Yes
CUDA runtime version: 9.1.85
GPU models and configuration: GPU 0: GeForce RTX 2060
Nvidia driver version: 418.67
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.18.0
[pip3] torch==1.1.0
[pip3] torchvision==0.2.0
[conda] Could not collect
"""

MAC_UV = """\
Collecting environment information...
PyTorch version: 2.11.0
Is debug build: False
CUDA used to build PyTorch: None
ROCM used to build PyTorch: N/A

OS: macOS 26.4.1 (arm64)
GCC version: Could not collect
Clang version: 18.1.8
CMake version: version 3.31.11
Libc version: N/A

Python version: 3.13.7 (main, Sep 18 2025, 22:52:34) [Clang 20.1.4 ] (64-bit runtime)
Python platform: macOS-26.4.1-arm64-arm-64bit-Mach-O
Is CUDA available: False
CUDA runtime version: No CUDA
GPU models and configuration: No CUDA
Nvidia driver version: No CUDA
cuDNN version: No CUDA
Is XPU available: False

CPU:
Apple M2 Pro

Versions of relevant libraries:
[pip3] Could not collect
[uv] numpy==2.4.4
[uv] torch==2.11.0
[uv] torchvision==0.26.0
[conda] Could not collect
"""

PIP_LIST = """\
$ pip list
Package           Version
----------------- ------------
filelock          3.24.3
fsspec            2026.2.0
Jinja2            3.1.6
MarkupSafe        3.0.3
mpmath            1.3.0
networkx          3.4.2
pip               25.3
setuptools        80.9.0
sympy             1.14.0
torch             2.10.0+cu128
triton            3.6.0
typing_extensions 4.15.0
wheel             0.45.1
"""

PIP_LIST_WITHOUT_TORCH = """\
Package    Version
---------- -------
pip        24.0
setuptools 65.5.0
"""

CONDA_JSON = """\
$ conda list --json
[
  {
    "base_url": "https://conda.anaconda.org/conda-forge",
    "build_number": 306,
    "build_string": "cuda126_mkl_py312_h30b5a27_306",
    "channel": "conda-forge",
    "dist_name": "pytorch-2.5.1-cuda126_mkl_py312_h30b5a27_306",
    "name": "pytorch",
    "platform": "linux-64",
    "version": "2.5.1"
  },
  {
    "base_url": "https://conda.anaconda.org/pypi",
    "build_number": 0,
    "build_string": "pypi_0",
    "channel": "pypi",
    "dist_name": "torchvision-0.20.1-pypi_0",
    "name": "torchvision",
    "platform": "pypi",
    "version": "0.20.1"
  }
]
"""

CONDA_EXPLICIT = """\
# This file may be used to create an environment using:
# $ conda create --name <env> --file <this file>
# platform: linux-64
@EXPLICIT
https://conda.anaconda.org/conda-forge/linux-64/python-3.12.8-h9e4cc4f_1_cpython.conda
https://conda.anaconda.org/pytorch/linux-64/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.tar.bz2
"""

CONDA_INFO = """\
     active environment : ml
    active env location : /home/user/miniforge3/envs/ml
          conda version : 24.9.2
         python version : 3.12.7.final.0
       virtual packages : __archspec=1=zen3
                          __conda=24.9.2=0
                          __cuda=12.4=0
                          __glibc=2.35=0
                          __linux=5.15.0=0
               platform : linux-64
"""

PIXI = """\
Package            Version    Build                 Size       Kind   Source
numpy              2.1.3      py312h58c1407_0       8.0 MiB    conda  https://conda.anaconda.org/conda-forge/
pytorch            2.5.1      cuda126_mkl_py312_306 35.1 MiB   conda  https://conda.anaconda.org/conda-forge/
xformers           0.0.29                           14.2 MiB   pypi   xformers-0.0.29-cp312.whl
"""

POETRY = """\
$ poetry show
filelock      3.16.1  A platform independent file lock.
torch         2.5.1   Tensors and Dynamic neural networks in Python with strong GPU acceleration
torchvision (!) 0.20.1 image and video datasets and models for torch deep learning
"""

NVIDIA_SMI = """\
$ nvidia-smi
Tue Feb 11 10:05:12 2025
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.144.03             Driver Version: 550.144.03     CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3090        Off |   00000000:01:00.0 Off |                  N/A |
| 30%   36C    P8             19W /  350W |      10MiB /  24576MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA GeForce RTX 3090        Off |   00000000:02:00.0 Off |                  N/A |
| 30%   34C    P8             21W /  350W |      10MiB /  24576MiB |      0%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""

SMI_QUERY = """\
$ nvidia-smi --query-gpu=index,name,driver_version,compute_cap,memory.total --format=csv
index, name, driver_version, compute_cap, memory.total [MiB]
0, NVIDIA GeForce RTX 4090, 560.35.03, 8.9, 24564 MiB
"""

ROCMINFO = """\
*******
Agent 1
*******
  Name:                    AMD Ryzen 9 5950X 16-Core Processor
  Marketing Name:          AMD Ryzen 9 5950X 16-Core Processor
  Vendor Name:             CPU
*******
Agent 2
*******
  Name:                    gfx1100
  Marketing Name:          Radeon RX 7900 XTX
  Vendor Name:             AMD
  Device Type:             GPU
"""

ROCM_SMI = """\
============================ ROCm System Management Interface ============================
GPU[0]          : Card Series:          AMD Radeon PRO W7800 48GB
GPU[0]          : Card Model:           0x7449
GPU[0]          : GFX Version:          gfx1100
"""

AMD_SMI = """\
+------------------------------------------------------------------------------+
| AMD-SMI 26.1.0+5cbef4e7      amdgpu version: 6.12.12  ROCm version: 7.9.0    |
|=====================================+========================================|
| 0000:63:00.0 AMD Radeon RX 7900 XTX | 0 %      29 °C   0            47/327 W |
|   0       0     N/A             N/A | 1 %      0.0 %             27/24560 MB |
"""

LSPCI = """\
01:00.0 VGA compatible controller: NVIDIA Corporation GA104M [GeForce RTX 3070 Mobile / Max-Q] (rev a1)
06:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Cezanne [Radeon Vega Series] (rev c5)
02:00.0 Ethernet controller: Intel Corporation Ethernet Controller I225-V (rev 03)
"""

NVCC = """\
nvcc: NVIDIA (R) Cuda compiler driver
Copyright (c) 2005-2024 NVIDIA Corporation
Built on Thu_Mar_28_02:18:24_PDT_2024
Cuda compilation tools, release 12.4, V12.4.131
Build cuda_12.4.r12.4/compiler.34097967_0
"""

PROMPT = """\
Python 3.12.1 | packaged by conda-forge | (main, Dec 23 2023, 08:03:24) [GCC 12.3.0] on linux
Type "help", "copyright", "credits" or "license" for more information.
>>> import torch
>>> torch.__version__
'2.3.0'
>>> torch.version.cuda
'12.1'
>>> torch.cuda.is_available()
False
"""

ONE_LINE = """\
(ml) user@host:~$ python -c "import torch, torchvision; print(torch.__version__, torchvision.__version__, torch.cuda.is_available())"
2.5.1+cu121 0.20.1+cu121 True
(ml) user@host:~$ python -c "import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())"
(8, 6) ['sm_50', 'sm_60', 'sm_70', 'sm_75', 'sm_80', 'sm_86', 'sm_90']
"""

PIP_DEBUG = """\
pip version: pip 24.0 from C:\\Users\\user\\venv\\Lib\\site-packages\\pip (python 3.11)
sys.version: 3.11.7 (tags/v3.11.7:fa7a6f2, Dec  4 2023, 19:24:49) [MSC v.1937 64 bit (AMD64)]
sys.executable: C:\\Users\\user\\venv\\Scripts\\python.exe
sys.getdefaultencoding: utf-8
sys.platform: win32
Compatible tags: 54
"""

WINGET = """\
Name                                                                Id                            Version
----------------------------------------------------------------------------------------------------------
Microsoft Visual C++ 2015-2022 Redistributable (x64) - 14.38.33135  Microsoft.VCRedist.2015+.x64  14.38.33135.0
Microsoft Visual C++ 2013 Redistributable (x64) - 12.0.40664        Microsoft.VCRedist.2013.x64   12.0.40664.0
"""

DOCKER = """\
$ docker run --rm -it --shm-size=8g pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime bash
root@0123456789ab:/workspace# python -c "import torch; print(torch.cuda.is_available())"
False
"""

NO_MODULE = """\
Traceback (most recent call last):
  File "/home/user/train.py", line 1, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'
"""

UV_PIP_LIST = """\
$ uv pip list
Using Python 3.12.8 environment at: .venv
Package  Version
-------- ------------
numpy    2.2.1
torch    2.5.1+cu124
"""

CONDA_LIST = """\
# packages in environment at /home/user/miniconda3/envs/ml:
#
# Name                    Version                   Build  Channel
python                    3.11.9          h955ad1f_0
pytorch                   2.3.0           py3.11_cuda12.1_cudnn8.9.2_0    pytorch
torchvision               0.18.0                   pypi_0    pypi
"""

MAMBA_LIST = """\
List of packages in environment: "/home/user/miniforge3/envs/ml"

  Name                 Version       Build                         Channel
────────────────────────────────────────────────────────────────────────────────
  python               3.12.8        h9e4cc4f_1_cpython            conda-forge
  pytorch              2.5.1         cpu_generic_py312_hcc7b9e5_9  conda-forge
"""

NVIDIA_SMI_590 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 590.44.01              KMD Version: 590.44.01     CUDA UMD Version: 13.1     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |
| N/A   30C    P0             76W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""

TOPOLOGY = """\
$ nvidia-smi topo -m
        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV12    SYS     0-31            0               N/A
GPU1    NV12     X      PHB     0-31            0               N/A
GPU2    SYS     PHB      X      32-63           1               N/A
"""

MAC = """\
$ sw_vers
ProductName:\t\tmacOS
ProductVersion:\t\t13.6.1
BuildVersion:\t\t22G313
$ uname -m
x86_64
"""

NO_TORCH = """\
Collecting environment information...
PyTorch version: N/A
Is debug build: N/A
CUDA used to build PyTorch: N/A
ROCM used to build PyTorch: N/A

OS: Ubuntu 24.04.1 LTS (x86_64)
GCC version: Could not collect
Clang version: Could not collect
CMake version: Could not collect
Libc version: glibc-2.39

Python version: 3.12.3 (main, Nov  6 2024, 18:32:19) [GCC 13.2.0] (64-bit runtime)
Python platform: Linux-6.8.0-49-generic-x86_64-with-glibc2.39
Is CUDA available: N/A
CUDA runtime version: Could not collect
CUDA_MODULE_LOADING set to: N/A
GPU models and configuration: Could not collect
Nvidia driver version: Could not collect
cuDNN version: Could not collect

Versions of relevant libraries:
[pip3] numpy==1.26.4
[conda] Could not collect
"""

ALL = {
    name: value
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, str)
}
