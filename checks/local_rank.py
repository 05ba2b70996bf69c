"""The script and its launcher agree on how a process learns its local rank.

How it shows: "error: unrecognized arguments: --local-rank=0", or "the following arguments are
required: --local_rank", and the usage of the script above it.

Why: torch.distributed.launch hands ``--local-rank=N`` to the script (up to torch 1.x with an
underscore); torchrun hands on nothing and sets LOCAL_RANK instead. A parser that knows only one
spelling refuses the other.

The fix is ``int(os.environ["LOCAL_RANK"])`` and torchrun; or a parser that takes both:
``add_argument("--local-rank", "--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK",
0)))``.

Sources: https://github.com/babylm/baseline-pretraining/issues/2,
https://github.com/OFA-Sys/Chinese-CLIP/issues/74
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding

FAMILY = "distributed"
FINDS = ("local-rank-arg",)


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Read which argument was refused, or asked for in vain."""
    said = distributed.first(symptoms, "local-rank-refused")
    if said is None:
        return
    argument = said.values["argument"]
    wanted = "required" in said.text
    summary = (
        f"The script wants {argument}, and torchrun hands no such argument on."
        if wanted
        else f"The launcher hands the script {argument}, which its parser does not know."
    )
    yield Finding(
        "local-rank-arg",
        "error",
        summary,
        distributed.seen(said),
        (
            distributed.in_launch(
                "read-local-rank",
                'Start with torchrun, and read int(os.environ["LOCAL_RANK"]) in the script (or let'
                " its parser take --local-rank and --local_rank)",
                why="torchrun sets LOCAL_RANK and hands no argument on.",
                settles=("local-rank-refused",),
                bash=("torchrun --standalone --nproc-per-node=gpu train.py",),
            ),
        ),
    )
