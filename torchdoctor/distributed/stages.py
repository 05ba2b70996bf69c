"""The stages of an all_reduce, in their order, and how long each may take."""

from __future__ import annotations

from dataclasses import dataclass

STAGES = (
    *("spawn", "port-bind", "tcp", "import", "device", "store", "check-in", "facts"),
    *("pairwise", "p2p", "communicator", "all-reduce", "verify", "bandwidth", "barrier"),
    *("destroy", "done"),
)
PLACE = {stage: place for place, stage in enumerate(STAGES)}
FIRST, LAST = STAGES[0], STAGES[-1]
NUMBERS = 4096
"""Elements of the first all_reduce, of 32 bits each."""
MARGIN = 2.0
"""Seconds that a rank has, beyond the limit of its stage, to say itself what it waited for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a run may take, and each stage of it."""

    whole: float = 120.0
    stage: float = 10.0
    importing: float = 60.0

    def of(self, stage: str, *, elsewhere: bool = False, slowness: float = 1.0) -> float:
        """Return how long the last rank here may be in *stage* before the run is ended.

        *elsewhere*: ranks of other machines, which are not seen here, may still be importing.
        *slowness*: how many times as long as usual the ranks take, by their import of torch.
        """
        if stage in ("spawn", "import"):
            return self.importing + MARGIN
        if elsewhere and stage in ("store", "check-in"):
            return slowness * (self.importing + self.stage + MARGIN)
        return slowness * (self.stage + MARGIN)
