# ruff: noqa: E501 - as printed
"""Of a form that was torn it is said what is missing; of a whole one nothing is said."""

from __future__ import annotations

import re

import pytest

from tests.reading.pasted import samples
from tests.report import samples as report_samples
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted.neighbours import ABOVE, BELOW, COMMANDS
from torchdoctor.report import markdown

TRACEBACK = """\
>>> import torch
Traceback (most recent call last):
  File "<stdin>", line 1, in <module>
  File "/home/user/ml/lib/python3.11/site-packages/torch/__init__.py", line 367, in <module>
    from torch._C import *  # noqa: F403
ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory

torch    2.4.0
"""
NO_KERNEL = """\
RuntimeError: CUDA error: no kernel image is available for execution on the device
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.

GPU: Tesla V100
torch    2.11.0+cu128
"""
XFORMERS = """\
WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
    PyTorch 2.1.0+cu121 with CUDA 1201 (you have 2.1.0+cpu)
    Python  3.10.11 (you have 3.10.6)
  Please reinstall xformers (see https://github.com/facebookresearch/xformers#installing-xformers)
  Memory-efficient attention, SwiGLU, sparse and more won't be available.
  Set XFORMERS_MORE_DETAILS=1 for more details
"""
UPGRADE = """\
Installing collected packages: torch
  Attempting uninstall: torch
    Found existing installation: torch 2.0.1
    Uninstalling torch-2.0.1:
      Successfully uninstalled torch-2.0.1
ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.
torchvision 0.15.2 requires torch==2.0.1, but you have torch 2.1.0 which is incompatible.
"""
MIG = """\
RuntimeError: it fails
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-80GB
  MIG 3g.40gb     Device  0:
  MIG 3g.40gb     Device  1:
GPU 1: NVIDIA A100-SXM4-80GB
  MIG 3g.40gb     Device  0:
"""
LABELS = """\
CUDA AVAILABLE:
True
CUDA VERSION:
11.8
CUDA DEVICE:
NVIDIA GeForce RTX 3090
"""
FORM = """\
RuntimeError: it fails
PyTorch Version: 1.5.0
OS: Windows 10
How you installed PyTorch: pip
Python version: 3.8
CUDA/cuDNN version: 10.2
"""
SATISFIED = """\
RuntimeError: it fails

$ pip install torch
Requirement already satisfied: torch in /home/user/ml/lib/python3.8/site-packages (1.12.0)
Requirement already satisfied: typing-extensions in /home/user/ml/lib/python3.8/site-packages (from torch) (4.4.0)
"""
USAGE = """\
usage: train.py
       [-h]
       [--local_rank LOCAL_RANK]
train.py: error: unrecognized arguments: --local-rank=0
"""

TEARS: tuple[tuple[str, str, str], ...] = (
    (TRACEBACK, "    from torch._C", "line of code"),
    (TRACEBACK, "ImportError", "without the error"),
    (TRACEBACK, "Traceback", "traceback"),
    (TRACEBACK, '  File "/home', "traceback"),
    (NO_KERNEL, "RuntimeError", "error"),
    (NO_KERNEL, "CUDA kernel", "error"),
    (NO_KERNEL, "For debugging", "error"),
    (NO_KERNEL, "GPU: ", "which GPU"),
    (NO_KERNEL, "torch ", "which torch"),
    *((XFORMERS, line, "xFormers") for line in ("WARNING", "    PyTorch", "  Please", "  Memory")),
    (UPGRADE, "    Found", "pip"),
    (UPGRADE, "    Uninstalling", "pip"),
    (UPGRADE, "      Success", "pip"),
    (UPGRADE, "ERROR", "pip"),
    (UPGRADE, "torchvision", "pip"),
    (MIG, "GPU 0", "GPU"),
    (MIG, "  MIG 3g.40gb     Device  0", "MIG"),
    (LABELS, "True", "value"),
    (LABELS, "11.8", "value"),
    (LABELS, "NVIDIA", "value"),
    *((FORM, line, "form") for line in ("PyTorch", "OS", "Python", "How")),
    (SATISFIED, "Requirement already satisfied: torch", "torch is missing"),
    (USAGE, "train.py: error", "usage"),
    (samples.PIP_LIST, "Package", "pip list"),
    (samples.PIP_LIST, "-----", "below its header"),
    (samples.CONDA_LIST, "# packages", "which environment"),
    (samples.CONDA_LIST, "#$", "conda"),
    (samples.CONDA_LIST, "# Name", "conda"),
    (samples.NVIDIA_SMI, "|   0", "nvidia-smi|GPUs"),
    (samples.NVIDIA_SMI, r"| 30%   36C", "nvidia-smi"),
    (samples.NVIDIA_SMI, "| NVIDIA-SMI", "nvidia-smi"),
    (samples.NVIDIA_SMI, "|=====", "nvidia-smi"),
    (samples.TOPOLOGY, "GPU1 ", "topo"),
    (samples.TOPOLOGY, "        GPU0", "topo"),
    (samples.NVCC, "Copyright", "nvcc"),
    (samples.NO_TORCH, "PyTorch version", "lacks PyTorch version"),
    (samples.NO_TORCH, "OS: ", "lacks OS"),
    (samples.MAC, "x86_64", "uname -m"),
)
"""A form, the beginning of the line that is taken out, and what the remark speaks of."""


def unread(text: str) -> tuple[str, ...]:
    return pasted.read([("x", text)]).unread


@pytest.mark.parametrize("form", {form: None for form, _, _ in TEARS})
def test_of_a_whole_form_nothing_is_missing(form: str) -> None:
    assert unread(form) == ()


@pytest.mark.parametrize(("form", "line", "said"), TEARS)
def test_what_is_missing_of_a_form_is_said(form: str, line: str, said: str) -> None:
    lines = form.split("\n")
    begins = re.compile(re.escape(line.removesuffix("$")) + ("$" if line.endswith("$") else ""))
    place = next(i for i, text in enumerate(lines) if begins.match(text))
    remarks = unread("\n".join(lines[:place] + lines[place + 1 :]))
    assert any(re.search(said, remark) for remark in remarks), remarks


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("uname -m", "x86_64"),
        ("where msvcp140.dll", "INFO: Could not find files for the given pattern(s)."),
        ("nvcc --version", "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024"),
        ("pip show torch", "Name: torch\nVersion: 2.4.0"),
        (
            "df -h /dev/shm",
            "Filesystem      Size  Used Avail Use% Mounted on\nshm 64M 0 64M 0% /dev/shm",
        ),
        (
            "cat /proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  x",
        ),
        ("echo $LD_LIBRARY_PATH", "/usr/local/cuda/lib64:/opt/lib"),
        ("hostname -I", "192.0.2.7"),
    ],
)
def test_a_command_without_its_answer_is_said(command: str, answer: str) -> None:
    error = "RuntimeError: it fails\n\n"
    assert unread(f"{error}$ {command}\n{answer}\n") == ()
    (remark,) = unread(f"{error}$ {command}\n$ ls\nfile\n")
    assert command in remark


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("/home/user/ml/bin/python", 'python -c "import sys; print(sys.executable)"'),
        (
            "C:\\env\\Lib\\site-packages\\torch\\__init__.py",
            'python -c "import torch; print(torch.__file__)"',
        ),
        ("/usr/local/cuda/lib64:/opt/lib", "echo $LD_LIBRARY_PATH"),
        ("shm              64M     0   64M   0% /dev/shm", "df -h /dev/shm"),
        ("127.0.0.1 localhost node-0", "cat /etc/hosts"),
        ("INFO: Could not find files for the given pattern(s).", "where x.dll"),
    ],
)
def test_an_answer_without_its_command_is_said(answer: str, command: str) -> None:
    error = "RuntimeError: it fails\n\n"
    assert unread(f"{error}$ {command}\n{answer}\n") == ()
    (remark,) = unread(f"{error}{answer}\n")
    assert "without" in remark


def test_an_empty_answer_is_one_unless_the_text_ends_there() -> None:
    assert unread("RuntimeError: it fails\n$ echo $LD_LIBRARY_PATH\n\n$ uname -m\naarch64\n") == ()
    assert unread("RuntimeError: it fails\n$ echo $LD_LIBRARY_PATH\n") != ()


def test_a_table_that_a_command_cut_is_whole() -> None:
    head = "\n".join(samples.NVIDIA_SMI_590.split("\n")[:2])
    assert unread(f"RuntimeError: x\n$ nvidia-smi | head -n 2\n{head}\n") == ()
    assert unread(f"RuntimeError: x\n$ nvidia-smi\n{head}\n") != ()


def test_rows_without_a_header_are_said_where_nobody_asked_for_them() -> None:
    error = "RuntimeError: it fails\n\n"
    assert "mkl" in unread(f"{error}mkl                       2024.1\n")[0]
    assert unread(f"{error}$ pip list | grep mkl\nmkl                       2024.1\n") == ()
    assert unread(f"{error}torch                     2.4.0\n") == ()
    row = "zstandard                 0.23.0          py311he736701_1    conda-forge"
    assert "conda" in unread(f"{error}{row}\n")[0]
    assert unread(f"{error}$ conda list zstandard\n{row}\n") == ()


def test_a_package_that_is_listed_twice_shows_that_a_heading_is_gone() -> None:
    twice = "RuntimeError: x\n# node 1\nnumpy==1.26.4\n{}numpy==2.0.0\n"
    assert any("twice" in remark for remark in unread(twice.format("")))
    assert not any("twice" in remark for remark in unread(twice.format("# node 2\n")))


@pytest.mark.parametrize(
    "text",
    [
        "OS: Ubuntu 22.04\nGPU: NVIDIA GeForce RTX 3090\n",
        "torch   2.4.0\n",
        "$ pip list | grep torch\ntorch   2.4.0\n",
    ],
)
def test_single_lines_alone_are_said_to_be_no_report(text: str) -> None:
    assert unread(text) == (
        "x: neither an error nor a whole listing stands in it; only single lines were read",
    )
    assert unread(f"It hangs.\n{text}") == ()


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            "OSError: /a/site-packages/torchtext/lib/libtorchtext.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs\n",
            "torch   2.4.0\ntorchtext   0.18.0\n",
            "which torchtext and which torch",
        ),
        (
            "ImportError: /a/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclMemFree\n",
            "libnccl.so.2 => /usr/local/lib/libnccl.so.2 (0x00007f7a62a00000)\n",
            "which NCCL",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\nERROR: No matching distribution found for torch\n",
            "Python 3.13.0\n",
            "which Python",
        ),
        (
            "$ pip install torch\n\n>>> import torch\nModuleNotFoundError: No module named 'torch'\n",
            "\nRequirement already satisfied: torch in /a/lib/python3.8/site-packages (1.12.0)\n",
            "installer",
        ),
        (
            "ls: cannot access '/dev/dxg': No such file or directory\nRuntimeError: Found no NVIDIA driver on your system.\n",
            "$ uname -r\n4.4.0-19041-Microsoft\n",
            "which WSL",
        ),
        (
            '$ python -c "import torch; print(torch.cuda.is_available())"\nFalse\n',
            "\ntorch   2.4.0+cpu\n",
            "which torch",
        ),
        ("RuntimeError: x\ntorchaudio   2.4.0\n", "torch   2.4.0\n", "torchaudio"),
    ],
)
def test_what_decides_and_is_not_told_is_said(text: str, more: str, said: str) -> None:
    assert any(said in remark for remark in unread(text))
    assert unread(text + more) == ()


def test_a_listing_without_the_torch_that_was_imported_from_it_is_said() -> None:
    error = TRACEBACK.replace("/home/user/ml/", "/home/user/miniconda3/envs/ml/")
    error = error.replace("torch    2.4.0\n", "")
    whole = error + samples.CONDA_LIST
    assert unread(whole) == ()
    cut = re.sub(r"(?m)^pytorch .*\n", "", re.sub(r"(?m)^torchvision .*\n", "", whole))
    assert any("does not show the torch" in remark for remark in unread(cut))


def test_our_own_report_is_whole() -> None:
    assert unread(markdown.render(report_samples.broken())) == ()


NOTEBOOK = """\
---------------------------------------------------------------------------
ModuleNotFoundError                       Traceback (most recent call last)
Cell In[1], line 1
----> 1 import torch

ModuleNotFoundError: No module named 'torch'
"""
OF_A_RANK = """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/user/train.py", line 3, in <module>
[rank0]:     import torch
[rank0]: RuntimeError: CUDA error: out of memory
"""
IN_PROSE = """\
I ran

pip install torch

and my script says

  File "/home/user/ml/lib/python3.11/site-packages/torch/cuda/__init__.py", line 319, in _lazy_init
    torch._C._cuda_init()
RuntimeError: No CUDA GPUs are available

| Package | Version |
| ------- | ------- |
| torch   | 2.5.1   |
| numpy   | 2.0.1   |
"""


@pytest.mark.parametrize("text", [NOTEBOOK, OF_A_RANK, IN_PROSE])
def test_other_spellings_of_a_form_are_whole_too(text: str) -> None:
    assert unread(text) == ()


def test_every_row_is_two_expressions_and_the_middle_of_a_sentence() -> None:
    rows = (*ABOVE, *BELOW, *((*pair, "a command") for pair in COMMANDS))
    for pattern, beside, what in rows:
        assert re.compile(pattern).pattern == pattern
        assert re.compile(beside).pattern == beside
        assert what[0].islower()
        assert not what.endswith(".")
