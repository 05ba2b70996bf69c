"""Which rank this process is, by the variables that a launcher sets.

Sources: the documentation of torchrun, of Slurm's srun, of Open MPI, and of MPICH's PMI.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAMES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK"),
    "Open MPI": ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    "Slurm": ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
    "PMI": ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
}
"""Launcher -> its variables for the rank, the number of ranks, and the rank on this machine."""
DEFAULT_PORT = 29_500
PORTS = 10_000
"""Ports from the default one on that jobs of one batch system are spread over."""


@dataclass(frozen=True, slots=True)
class Seat:
    """The place that a launcher gave to this process."""

    launcher: str
    rank: int
    world: int
    local_rank: int
    host: str
    port: int
    store: str = "own"
    """launcher where the launcher's agent serves the store; rank 0 serves it otherwise."""
    attempt: str = "0"
    """What tells one start by the launcher from the next one."""


def seat(environ: Mapping[str, str]) -> Seat | str:
    """Return the seat that *environ* tells of, or in a sentence why there is none."""
    for launcher, (rank, world, local) in NAMES.items():
        if rank in environ and world in environ:
            numbers = [environ[rank], environ[world], environ.get(local, "0")]
            if not all(number.isdecimal() for number in numbers):
                return f"{rank}={environ[rank]} and {world}={environ[world]} are no numbers"
            mine, size, here = map(int, numbers)
            if not (mine < size and here < size):
                return f"{rank}={mine} is not below {world}={size}"
            return _meeting(environ, launcher, (mine, size, here))
    known = ", ".join(f"{rank} ({launcher})" for launcher, (rank, _, _) in NAMES.items())
    return f"no launcher has said which rank this process is: none of {known} is set"


def _meeting(
    environ: Mapping[str, str], launcher: str, numbers: tuple[int, int, int]
) -> Seat | str:
    host = (
        environ.get("MASTER_ADDR")
        or _first_node(environ)
        or ("" if numbers[1] > 1 else "localhost")
    )
    if not host:
        return f"MASTER_ADDR is not set, and {launcher} does not tell where rank 0 is"
    given = environ.get("MASTER_PORT", "")
    job = environ.get("SLURM_JOB_ID", "")
    port = DEFAULT_PORT + (int(job) % PORTS if job.isdecimal() else 0)
    agent = environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    return Seat(
        launcher,
        *numbers,
        host=host,
        port=int(given) if given.isdecimal() else port,
        store="launcher" if agent else "own",
        attempt=environ.get("TORCHELASTIC_RESTART_COUNT", "0"),
    )


def _first_node(environ: Mapping[str, str]) -> str:
    """Return the first name of Slurm's list: node[07-09,12],other1 is node07."""
    nodes = environ.get("SLURM_STEP_NODELIST") or environ.get("SLURM_JOB_NODELIST") or ""
    match = re.match(r"([^\[,]+)(?:\[(\d+))?", nodes)
    return f"{match[1]}{match[2] or ''}" if match else ""
