"""Every parameter of a DistributedDataParallel model takes part in every step, once.

How it shows: "Expected to have finished reduction in the prior iteration before starting a new
one", or "Expected to mark a variable ready only once".

Why: DDP waits for the gradient of every parameter. A branch that a batch does not take, a head that
is not trained, or an output that the loss leaves out gives some of them none. Marked twice: the
model is called twice before backward, or parts of it run under activation checkpointing with
``use_reentrant=True``.

Neighbours: a hang without this message is not this.

The fix is to freeze what is not trained (requires_grad=False before wrapping), or
``find_unused_parameters=True``, which costs a walk through the graph in each step.
TORCH_DISTRIBUTED_DEBUG=INFO names the parameters.

Source: torch/csrc/distributed/c10d/reducer.cpp
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "use"
FINDS = ("unused-parameters", "parameter-used-twice")


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read whether a gradient never came, or came twice."""
    if said := distributed.first(symptoms, "unused-parameters"):
        yield Finding(
            "unused-parameters",
            "error",
            "Some parameters had no gradient in a step, and DDP waits for the gradient of each.",
            distributed.seen(said),
            (
                distributed.in_script(
                    "find-unused-parameters",
                    "Freeze what is not trained (requires_grad=False before wrapping), or wrap with"
                    " find_unused_parameters=True; TORCH_DISTRIBUTED_DEBUG=INFO names them",
                    why="DDP then knows which gradients do not come.",
                    settles=("unused-parameters",),
                ),
            ),
        )
    if said := distributed.first(symptoms, "parameter-marked-twice"):
        yield Finding(
            "parameter-used-twice",
            "error",
            "A parameter got its gradient twice in one step, which DDP refuses.",
            distributed.seen(said),
            (
                distributed.in_script(
                    "use-parameters-once",
                    "Call the wrapped model once for each backward; with activation checkpointing,"
                    " pass use_reentrant=False (or static_graph=True to DDP)",
                    why="DDP sends a gradient as soon as it is there, once.",
                    settles=("parameter-marked-twice",),
                ),
            ),
        )
