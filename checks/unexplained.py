"""A message that is known, and of which nothing tells the cause, is said to be just that.

How it shows: "NCCL error: unhandled system error" and nothing else, "CUDA out of memory",
"CUBLAS_STATUS_EXECUTION_FAILED": the words are known, and a dozen causes print them.

Why: such a message is what a cause ends in. To name one of the causes would be a guess.

What to do: collect what is named, and check that text together with this one. As soon as something
in it tells the cause, that is found and this note is gone.

Source: torchdoctor/tables/symptoms_running.toml, the table "collect"
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor import gpu
from torchdoctor.facts import Symptom
from torchdoctor.model import Finding
from torchdoctor.tables import symptoms as table

FAMILY = "system"
FINDS = ("message-unexplained",)
ECHOES = True

BESIDE = (
    *("torchrun-exit", "exit-code", "launch-line", "launch-size", "nccl-version-line"),
    *("nccl-interface", "ib-in-use", "net-plugin", "hang-told", "work-in-progress"),
    *("watchdog-progress", "barrier-device-unknown", "process-group-not-destroyed"),
    *("nccl-package", "local-address", "hosts-loopback", "reported", "too-many-workers"),
    *("launch-place", "library-resolved"),
)
"""What explains nothing by itself."""


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Say what to collect where only messages are there that many causes end in."""
    known = table.collect()
    idle = {*BESIDE, *table.echoes(), *table.told(), *known}
    if not symptoms or any(symptom.name not in idle for symptom in symptoms):
        return
    for name, more in known.items():
        said = gpu.of_user(symptoms, name)
        if said is not None:
            yield Finding(
                "message-unexplained",
                "note",
                f"{said.text.strip()[:120]!r} has many causes, and nothing here tells which; to"
                f" go on, look at {more}.",
                distributed.seen(said),
                confidence="possible",
            )
