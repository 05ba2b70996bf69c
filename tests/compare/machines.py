"""Snapshots as a fleet has them: a real look at a machine, altered for each one.

The look is taken once, at this very machine and without an import, and given a GPU machine's
packages and driver; every altered copy differs in what differs on every machine (noise), and a few
in what matters.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from torchdoctor import collect
from torchdoctor.snapshot import dump

PACKAGES = {"numpy": "2.2.6", "torch": "2.9.1+cu128", "nvidia-nccl-cu12": "2.27.5"}
GPUS = 8


@cache
def _looked() -> str:
    request = collect.Request(
        sys.executable, str(Path.cwd()), import_torch=False, shared_objects=False
    )
    return dump(collect.collect(request, {**os.environ, "CUDA_HOME": "/usr/local/cuda"}))


def base() -> dict[str, Any]:
    """Return a real snapshot of a machine with eight GPUs."""
    made: dict[str, Any] = json.loads(_looked())
    data = made["probes"]["environment"]["data"]
    known = {row["name"].lower(): row for row in data["packages"]["distributions"]}
    folder = data["site_packages"][0]
    for name, version in PACKAGES.items():
        row = known.setdefault(name, {"folder": folder, "name": name, "installer": "pip"})
        row |= {"version": version, "metadata": f"{name}-{version}.dist-info"}
    data["packages"]["distributions"] = list(known.values())
    package = f"{folder}/torch"
    found = {"origin": f"{package}/__init__.py", "package": package, "folder": folder}
    data["modules"]["torch"] = data["local_modules"]["torch"] = found
    data["versions"]["torch"] = f"__version__ = '{PACKAGES['torch']}'\ncuda = '12.8'\nhip = None\n"
    made["probes"]["driver"]["data"] = {
        "stage": "done",
        "driver": "570.86.15",
        "cuda": 12080,
        "errors": {},
        "done": True,
    }
    return made


def variables(made: dict[str, Any]) -> dict[str, str]:
    told: dict[str, str] = made["probes"]["environment"]["data"]["variables"]["told"]
    return told


def version(made: dict[str, Any], package: str, to: str) -> None:
    """Give *package* another version."""
    for row in made["probes"]["environment"]["data"]["packages"]["distributions"]:
        if row["name"] == package:
            row["version"] = to


def noisy(made: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a copy with what no two machines, and no two looks, have in common."""
    rng = random.Random(number)  # noqa: S311 - no secret
    copy: dict[str, Any] = json.loads(json.dumps(made))
    copy["collected_at"] = f"2026-03-04T05:{number % 60:02d}:00Z"
    copy["options"] |= {"seat": {"rank": number}, "cwd": f"/home/user{number}/run"}
    for run in copy["probes"].values():
        run["seconds"] = rng.random()
    host = copy["probes"]["host"]["data"]
    if isinstance(host.get("shm"), dict):
        host["shm"]["free"] = rng.randrange(10**9)
    host["network"] = {
        "interfaces": ["eth0", "lo"],
        "infiniband": [],
        "own_addresses": [f"10.0.{number // 250}.{number % 250}"],
    }
    here = {"RANK": str(number), "LOCAL_RANK": "0", "WORLD_SIZE": "20000"}
    variables(copy).update(here, LOGNAME=f"user{number}", HOME=f"/home/user{number}")
    return copy


def fleet(count: int) -> Iterator[dict[str, Any]]:
    """Yield the snapshots of *count* machines, of which those in ``odd`` are not like the rest."""
    made = base()
    for number in range(count):
        one = noisy(made, number)
        for odd, change in ODD.items():
            if number % count in odd_ones(odd, count):
                change(one)
        yield one


def odd_ones(name: str, count: int) -> set[int]:
    """Return the numbers of the machines with the oddity *name* in a fleet of *count*."""
    rng = random.Random(name)  # noqa: S311 - no secret
    return set(rng.sample(range(count), max(2, count // 100)))


def _old_numpy(made: dict[str, Any]) -> None:
    version(made, "numpy", "1.26.4")


def _wrong_interface(made: dict[str, Any]) -> None:
    variables(made)["NCCL_SOCKET_IFNAME"] = "eth7"


def _small_shm(made: dict[str, Any]) -> None:
    made["probes"]["host"]["data"]["shm"] = {"size": 64 << 20, "free": 1}


ODD = {
    "packages.numpy": _old_numpy,
    "variables.NCCL_SOCKET_IFNAME": _wrong_interface,
    "limits.shm": _small_shm,
}


def written(path: Path, made: dict[str, Any]) -> str:
    """Write a snapshot and return its name."""
    path.write_text(json.dumps(made), "utf-8")
    return str(path)
