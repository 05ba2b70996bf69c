"""The backend of the process group is in this build of torch, and takes the tensors it is given.

How it shows: "Distributed package doesn't have NCCL built in"; "No backend type associated with
device type cpu", "Tensors must be CUDA and dense".

Why: torch for Windows, for macOS and for the CPU has no NCCL; MPI is in no wheel at all. A script
that says "nccl" then fails at once, whatever GPUs are there (backend-unavailable). NCCL moves what
lies on GPUs and nothing else: a count, a length or a flag that is still on the CPU when it is
broadcast or reduced is refused, while the gradients go well (cpu-tensor-with-nccl).

Neighbours: "ProcessGroupNCCL is only supported with GPUs, no GPUs found" is a build with NCCL that
sees no GPU. A CPU build on Linux with a GPU is cpu-only-build: then NCCL comes with the right one.

The fix is ``init_process_group("gloo")`` (a flag of the trainer: process_group_backend="gloo",
ddp_backend="gloo"), or WSL 2 on Windows; on Linux with a GPU the CUDA build. The 10049 warnings
that Windows prints above it mean nothing. For a tensor on the CPU: ``tensor.cuda()`` before the
call, or ``init_process_group("cpu:gloo,cuda:nccl")``, which has a backend for either.

Sources: torch/distributed/distributed_c10d.py, torch/csrc/distributed/c10d/ProcessGroup.hpp,
https://github.com/fishaudio/fish-diffusion/issues/2,
https://github.com/mistralai/mistral-inference/pull/257
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Build, Platform, Symptom, Unknown
from torchdoctor.model import Finding

FAMILY = "distributed"
FINDS = ("backend-unavailable", "cpu-tensor-with-nccl")

WITHOUT = {"win32": "Windows", "darwin": "macOS"}


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    torch: Build | Unknown | None,
) -> Iterator[Finding]:
    """Read which backend was asked for in vain, or given what it cannot move."""
    if said := distributed.first(symptoms, "collective-on-cpu"):
        yield _on_cpu(said)
    said = distributed.first(symptoms, "backend-not-built")
    if said is None:
        return
    backend = said.values["backend"]
    system = WITHOUT.get(platform.system) if isinstance(platform, Platform) else None
    which = "This build of torch"
    if system:
        which = f"torch for {system}"
    elif isinstance(torch, Build):
        which = f"torch {torch.version}"
    yield Finding(
        "backend-unavailable",
        "error",
        f"{which} has no {backend}, and init_process_group asks for it.",
        distributed.seen(said),
        (
            distributed.in_script(
                "use-gloo",
                'Ask for gloo: init_process_group("gloo"), or the trainer\'s own option for it',
                why="gloo is in every build; on Linux with GPUs a CUDA build brings NCCL.",
                settles=("backend-not-built",),
            ),
        ),
        because_of=("cpu-only-build", "duplicate-install"),
    )


def _on_cpu(said: Symptom) -> Finding:
    return Finding(
        "cpu-tensor-with-nccl",
        "error",
        "A collective was given a tensor on the CPU, and the process group has NCCL only, which "
        "moves what lies on GPUs.",
        distributed.seen(said),
        (
            distributed.in_script(
                "move-tensor-to-gpu",
                "Move the tensor to this rank's GPU before the collective, or make the group with"
                ' init_process_group("cpu:gloo,cuda:nccl")',
                why="Each kind of tensor then has a backend that moves it.",
                settles=("collective-on-cpu",),
            ),
        ),
    )
