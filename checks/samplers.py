"""A DataLoader is not given a sampler together with options that exclude it.

How it shows: "ValueError: sampler option is mutually exclusive with shuffle" as soon as a script
runs on two GPUs; on one it works, because its sampler is None there. With a batch sampler:
"batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last". With
an IterableDataset: "expected unspecified sampler option".

Why: a sampler decides the order, and so does shuffle; a batch sampler decides batches, too. An
IterableDataset has no indices, so no sampler can deal them out.

Neighbours: a DistributedSampler that is made before init_process_group says "Default process group
has not been initialized" (process-group-not-initialised). Without ``set_epoch`` there is no error
at all, every epoch has the same order.

The fix is ``shuffle=(sampler is None)``: DistributedSampler shuffles by itself, and
``sampler.set_epoch(epoch)`` gives each epoch its own order. A stream is divided inside the dataset,
by rank and by worker.

Sources: torch/utils/data/dataloader.py; https://github.com/ultralytics/yolov3/issues/231,
https://github.com/NVIDIA/tacotron2/issues/168
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "use"
FINDS = ("sampler-and-shuffle", "sampler-for-stream")

SAID = {
    "sampler-with-shuffle": "The DataLoader gets a sampler and shuffle=True, which exclude each"
    " other: the sampler decides the order.",
    "batch-sampler-with-options": "The DataLoader gets a batch_sampler together with batch_size,"
    " shuffle, sampler or drop_last, which it decides by itself.",
}


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read which options exclude each other."""
    for name, summary in SAID.items():
        if said := distributed.first(symptoms, name):
            yield Finding(
                "sampler-and-shuffle",
                "error",
                summary,
                distributed.seen(said),
                (
                    distributed.in_script(
                        "drop-shuffle",
                        "Give the DataLoader shuffle=(sampler is None), and call"
                        " sampler.set_epoch(epoch) at the start of each epoch"
                        if name == "sampler-with-shuffle"
                        else "Give the DataLoader the batch_sampler alone",
                        why="DistributedSampler shuffles by itself, anew for each epoch.",
                        settles=(name,),
                    ),
                ),
            )
    if said := distributed.first(symptoms, "sampler-for-iterable"):
        option = said.values.get("option", "sampler")
        yield Finding(
            "sampler-for-stream",
            "error",
            f"The DataLoader of an IterableDataset gets a {option}, and a stream has no indices"
            " that one could deal out.",
            distributed.seen(said),
            (
                distributed.in_script(
                    "shard-in-dataset",
                    f"Drop the {option}, and let the dataset's __iter__ yield every n-th item, by"
                    " rank and by worker (torch.utils.data.get_worker_info)",
                    why="Only the dataset itself can divide a stream.",
                    settles=("sampler-for-iterable",),
                ),
            ),
        )
