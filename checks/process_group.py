"""The process group exists before something that needs it is used.

How it shows: "Default process group has not been initialized, please make sure to call
init_process_group." from DistributedSampler, get_rank, SyncBatchNorm or a collective; "environment
variable RANK expected, but not set" from init_process_group itself.

Why: ``dist.init_process_group`` was not called yet, or not in this process (a worker that was
spawned calls it for itself), or the script was started by ``python train.py`` and nobody told it
its rank. SyncBatchNorm and DistributedSampler need the group even with one GPU.

Neighbours: "Distributed package doesn't have NCCL built in" is a build without the backend
(backend-unavailable).

The fix is the call at the start of each process, before the sampler, the model and its wrapper; for
the variables, the start by ``torchrun``. With one GPU, ``torchrun --standalone --nproc-per-node=1``
or no SyncBatchNorm.

Source: torch/distributed/distributed_c10d.py, torch/distributed/rendezvous.py
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "use"
FINDS = ("process-group-not-initialised", "launcher-missing")


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read what was missing: the group, or what it is made from."""
    lacking = distributed.told(symptoms, "environment-incomplete")
    if lacking:
        names = ", ".join(dict.fromkeys(s.values["variable"] for s in lacking))
        yield Finding(
            "launcher-missing",
            "error",
            f"init_process_group reads {names} from the environment, and nothing has set it: the"
            " script was not started by torchrun.",
            distributed.seen(*lacking),
            (
                distributed.in_launch(
                    "start-with-torchrun",
                    "Start the script with torchrun, one process for each GPU",
                    why="torchrun sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.",
                    settles=("environment-incomplete",),
                    bash=("torchrun --standalone --nproc-per-node=gpu train.py",),
                ),
            ),
        )
    if said := distributed.first(symptoms, "process-group-missing"):
        yield Finding(
            "process-group-not-initialised",
            "error",
            "A sampler, SyncBatchNorm or collective is used in a process that has not called"
            " init_process_group yet.",
            distributed.seen(said),
            (
                distributed.in_script(
                    "init-process-group-first",
                    "Call torch.distributed.init_process_group() first in every process, before"
                    " the sampler, the model and its wrapper are made",
                    why="They ask the group for this process's rank, and for how many there are.",
                    settles=("process-group-missing",),
                ),
            ),
            because_of=("launcher-missing", "backend-unavailable"),
        )
