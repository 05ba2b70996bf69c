"""Each process of a job has a GPU of its own, and no process asks for one that is not there.

How it shows: "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000" (from NCCL
2.30.3 on "Multiple Ranks are using the same GPU"); "CUDA error: invalid device ordinal" (101) on
some ranks only.

Why: without ``torch.cuda.set_device(LOCAL_RANK)`` every process takes GPU 0 (duplicate-gpu).
``--nproc-per-node`` larger than the number of visible GPUs leaves some processes without one
(nproc-exceeds-gpus). Slurm's ``--gpus-per-task=1`` shows each task one GPU alone, number 0, so that
LOCAL_RANK is no valid number (slurm-gpu-binding).

Neighbours: CUDA_VISIBLE_DEVICES that names GPUs which do not exist gives the same error 101 on one
process, too (cuda-visible-devices-bad). On a second machine, ``device_ids=[rank]`` with the global
rank does.

The fix is set_device(int(os.environ["LOCAL_RANK"])) before the first use of a GPU, and a number of
processes that fits: ``torchrun --nproc-per-node=gpu``.

Sources: https://github.com/NVIDIA/nccl/issues/1241, https://github.com/ACEsuit/mace/issues/435,
https://github.com/NVIDIA/nccl-tests/issues/300
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import distributed_steps as distributed
from torchdoctor import gpu
from torchdoctor.facts import Gpu, Symptom, Unknown
from torchdoctor.model import Confidence, Evidence, Finding

FAMILY = "distributed"
FINDS = ("duplicate-gpu", "nproc-exceeds-gpus", "slurm-gpu-binding")

LAUNCHED = ("launch-line", "launch-size")
PROCESSES = ("torchrun-exit", "torchrun-root-cause", "torchrun-failed", "rank-exception")
WRONG = ("cuda-invalid-device", "duplicate-gpu", "slurm-one-gpu-a-task")


def check(
    symptoms: tuple[Symptom, ...],
    gpus: tuple[Gpu, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
) -> Iterator[Finding]:
    """Compare the processes of the launch with the GPUs, where one was missing or taken twice."""
    twice = distributed.first(symptoms, "duplicate-gpu")
    missing = distributed.first(symptoms, "cuda-invalid-device")
    if not (twice or missing):
        return
    count = _visible(gpus, variables)
    asked = _processes(symptoms, variables)
    seen = distributed.seen(twice, missing)
    bound = distributed.first(symptoms, "slurm-one-gpu-a-task")
    if bound and missing:
        yield _bound((*seen, *distributed.seen(bound)))
    elif count is not None and asked is not None and asked > count:
        known = Evidence("gpus", str(count), "the driver")
        yield _too_many((*seen, known), f"{asked} processes a node for {count} GPU", "certain")
    elif twice:
        yield _twice(seen, twice.values)
    elif count is None and (asked or 0) > 1 and distributed.first(symptoms, *PROCESSES):
        yield _too_many(seen, f"{asked} processes a node, more than there are GPUs", "likely")
    elif missing and (rank := _last_rank(missing)) >= (count or 1):
        what = f"more processes a node than there are GPUs: rank {rank} finds none of its number"
        yield _too_many(seen, what, "likely")


def _last_rank(said: Symptom) -> int:
    return max((int(rank) for rank in said.values.get("rank", "").split(",") if rank), default=0)


def _visible(gpus: tuple[Gpu, ...] | Unknown, variables: Mapping[str, str] | Unknown) -> int | None:
    if listed := distributed.variable(variables, "CUDA_VISIBLE_DEVICES"):
        return len([entry for entry in listed.split(",") if entry.strip()])
    cards = gpu.of_nvidia(gpus)
    return len(cards) or None


def _processes(symptoms: tuple[Symptom, ...], variables: Mapping[str, str] | Unknown) -> int | None:
    said = [s.values.get("nproc", "") for s in distributed.told(symptoms, *LAUNCHED)]
    said += [
        distributed.variable(variables, n) or "" for n in ("NPROC_PER_NODE", "LOCAL_WORLD_SIZE")
    ]
    return next((int(one) for one in said if one.isdecimal()), None)


def _bound(seen: tuple[Evidence, ...]) -> Finding:
    step = distributed.in_launch(
        "ask-gpus-per-node",
        "Ask Slurm for the GPUs of the node (--gpus-per-node=N, or --gpu-bind=none), or use device"
        " 0 in every task",
        why="With --gpus-per-task each task sees one GPU, and that is its number 0.",
        settles=WRONG,
    )
    return Finding(
        "slurm-gpu-binding",
        "error",
        "Slurm shows each task one GPU only, so that LOCAL_RANK 1 and up is no valid device.",
        seen,
        (step,),
        confidence="likely",
    )


def _too_many(seen: tuple[Evidence, ...], what: str, confidence: Confidence) -> Finding:
    step = distributed.in_launch(
        "fewer-processes",
        "Start as many processes as there are GPUs (--nproc-per-node=gpu), and let each use"
        " LOCAL_RANK, not its global rank",
        why="Every process needs a GPU of its own; `nvidia-smi -L` says how many there are.",
        settles=WRONG,
        bash=("nvidia-smi -L", "torchrun --nproc-per-node=gpu train.py"),
    )
    return Finding(
        "nproc-exceeds-gpus",
        "error",
        f"The launcher starts {what}.",
        seen,
        (step,),
        confidence=confidence,
        because_of=("cuda-visible-devices-bad",),
    )


def _twice(seen: tuple[Evidence, ...], values: Mapping[str, str]) -> Finding:
    pair = "Two ranks use"
    if "first" in values:
        pair = f"Rank {values['first']} and rank {values['second']} use"
    step = distributed.in_script(
        "set-device",
        'Call torch.cuda.set_device(int(os.environ["LOCAL_RANK"])) before the first use of a GPU',
        why="Without it every process takes GPU 0.",
        settles=WRONG,
    )
    return Finding(
        "duplicate-gpu", "error", f"{pair} the same GPU, which NCCL refuses.", seen, (step,)
    )
