"""The options by which a container or a job is given more, as small pure functions.

Source: the page named above each row of ``containers.toml``. Nothing here looks at a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from torchdoctor.tables import load


def scheduler(variables: Mapping[str, str]) -> str | None:
    """Return which scheduler's job this is, by the environment's variables; None for none."""
    return "slurm" if variables.get("SLURM_JOB_ID") else None


def option(kind: str, need: str, number: int = 0) -> str | None:
    """Return the option of the runtime *kind* for *need* (memory, shm, gpus, ipc, cpus, locked).

    *number* is what it is to be: GiB for memory and shm. None where *kind* has none.
    """
    row = cast("Mapping[str, str]", load("containers").get(kind, {}))
    return row[need].format(n=number) if need in row else None


def start(kind: str, *options: str) -> tuple[str, tuple[str, ...]]:
    """Return what to do so that *kind* starts with *options*, in words, and as a command if any."""
    row = cast("Mapping[str, str]", load("containers")[kind])
    said = " and ".join(options)
    if "run" not in row:
        return f"Give {row['what']} {said}", ()
    return f"Start {row['what']} with {said}", (row["run"].format(flags=" ".join(options)),)
