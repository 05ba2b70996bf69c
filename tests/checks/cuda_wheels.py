"""A torch for CUDA 12.8 on Linux and the wheels that it takes its libraries from."""

from __future__ import annotations

from tests.checks.make import build, dist, raised, torch_and
from torchdoctor.facts import Distribution

LINUX = '; platform_system == "Linux"'
ASKS = (
    f"nvidia-cublas-cu12==12.8.4.1{LINUX}",
    f"nvidia-nccl-cu12==2.27.5{LINUX}",
    f"triton==3.5.1{LINUX}",
    "filelock",
)
CUBLAS, NCCL = dist("nvidia-cublas-cu12", "12.8.4.1"), dist("nvidia-nccl-cu12", "2.27.5")
TRITON = dist("triton", "3.5.1")
FAILED = raised("OSError", "libcublas.so.12: cannot open shared object file")


def with_torch(
    *installed: Distribution, asks: tuple[str, ...] = ASKS, **more: object
) -> dict[str, object]:
    """Return the facts of an environment with torch, which *asks* for these, and *installed*."""
    torch = build("2.9.1+cu128", distribution=dist("torch", "2.9.1", requires=asks))
    return torch_and(torch, *installed, **more)
