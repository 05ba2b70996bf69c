"""No process is forked after CUDA was started in its parent, and none is started without a guard.

How it shows: "Cannot re-initialize CUDA in forked subprocess"; in a notebook "CUDA has been
initialized before the `notebook_launcher`"; NCCL's "Cuda failure 'initialization error'" in a
child; on Windows and macOS "An attempt has been made to start a new process before the current
process has finished its bootstrapping phase".

Why: a CUDA context does not survive fork. Anything that touches the GPU in the parent starts one:
``.cuda()``, ``torch.cuda.get_device_name``, an imported library. Where processes are spawned, the
script is imported again in each of them, and what is not under ``if __name__ == "__main__"`` runs
again.

Neighbours: error 3 without a fork is a driver or container that does not answer.

The fix is to touch no GPU before the processes start (``torch.cuda.device_count()`` is safe), or
``multiprocessing_context="spawn"``; in a notebook, restart the kernel and start the training first.

Sources: torch/cuda/__init__.py, _lazy_init; https://github.com/huggingface/accelerate/issues/1751
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "use"
FINDS = ("cuda-init-before-fork", "no-main-guard")


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read that a child found CUDA started, or started itself again."""
    notebook = distributed.first(symptoms, "cuda-before-fork")
    forked = distributed.first(symptoms, "cuda-after-fork")
    if notebook or forked:
        title = (
            "Restart the kernel, and run the cell with the launcher before any that uses the GPU"
            if notebook
            else "Touch no GPU before the processes start, or start them by spawn"
            ' (multiprocessing_context="spawn"; mp.set_start_method("spawn"))'
        )
        yield Finding(
            "cuda-init-before-fork",
            "error",
            "CUDA was started in the parent before a process was forked from it, and a CUDA context"
            " does not survive a fork.",
            distributed.seen(notebook, forked),
            (
                distributed.in_script(
                    "spawn-before-cuda",
                    title,
                    why="A process that is spawned starts CUDA for itself.",
                    settles=("cuda-before-fork", "cuda-after-fork", "cuda-initialization-error"),
                ),
            ),
        )
    if said := distributed.first(symptoms, "no-main-guard"):
        yield Finding(
            "no-main-guard",
            "error",
            "The script starts processes outside \"if __name__ == '__main__'\", and each of them"
            " imports the script and does so again.",
            distributed.seen(said),
            (
                distributed.in_script(
                    "add-main-guard",
                    "Put what starts processes (DataLoader with num_workers, mp.spawn) under"
                    " if __name__ == '__main__':",
                    why="Windows and macOS start each process by importing the script.",
                    settles=("no-main-guard",),
                ),
            ),
        )
