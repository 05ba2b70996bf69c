"""``torchdoctor all-reduce`` judges what NCCL logged, with the checks of logs, where it failed.

NCCL needs a GPU: so torch is a stub here, whose process group writes a log of NCCL and fails as
torch does. All else is the real thing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.test_cli import Ran
from torchdoctor.commands.all_reduce import CHECKS, OF_LOGS

TORCH = """
from types import SimpleNamespace
from . import cuda, distributed
__version__ = "2.9.1+cu128"
version = SimpleNamespace(cuda="12.8")
device = lambda kind: SimpleNamespace(type=kind, index=None)
"""
CUDA = "is_available = lambda: False\n"
DISTRIBUTED = """
import os

class DistBackendError(RuntimeError):
    pass

class TCPStore:
    def __init__(self, *told, **more):
        self.known = {{}}
    def set(self, key, value):
        self.known[key] = value
    def get(self, key):
        return self.known[key]
    def wait(self, keys, limit):
        assert set(keys) <= set(self.known)

PrefixStore = lambda prefix, store: store
is_available = is_nccl_available = lambda: True

def init_process_group(backend, **more):
    with open(os.environ["NCCL_DEBUG_FILE"], "w") as file:
        file.write({log!r})
    raise DistBackendError(
        "NCCL error in: ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO"
        " for details), NCCL version 2.27.5"
    )
"""
BOOTSTRAP = "vm:7:7 [0] NCCL INFO Bootstrap: Using eth0:10.0.0.1<0>\n"
REFUSED = (
    "vm:7:9 [0] ibvwrap.c:115 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate "
    "memory\nvm:7:9 [0] NCCL INFO transport/net_ib.cc:1024 -> 2\n"
)


def tried(folder: Path, log: str, *more: str, code: int = 1) -> dict[str, Any]:
    """Return the report on one rank, whose NCCL fails and has written *log*."""
    environment = environments.bare(folder / "env")
    stub = environment.site / "torch"
    stub.mkdir()
    environments.write(stub / "__init__.py", TORCH)
    environments.write(stub / "cuda.py", CUDA)
    environments.write(stub / "distributed.py", DISTRIBUTED.format(log=log))
    words = ("--backend", "nccl", "--device", "cpu", "--nproc", "1", "--timeout", "5")
    ran = Ran(
        *("all-reduce", "--python", str(environment.python), *words, "--format", "json", *more),
        cwd=folder,
    )
    document: dict[str, Any] = ran.json
    assert ran.code == code, ran.err
    return document


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["outcome"] for check in document["checks"]}


def test_a_log_of_nccl_brings_the_checks_of_logs_and_what_they_find_is_told(tmp_path: Path) -> None:
    document = tried(tmp_path, BOOTSTRAP + REFUSED)
    found = outcomes(document)
    assert set(found) == {*CHECKS, *OF_LOGS}
    assert found["infiniband"] == "found"
    assert found["fabric-manager"] == "clear"
    cause, echo = document["findings"]
    assert (cause["name"], echo["name"]) == ("memlock-too-small", "rank-raised")
    assert "ibv_reg_mr" in cause["summary"]
    assert cause["evidence"][0]["from"] == "NCCL's log of rank 0"
    assert cause["name"] in echo["because_of"]
    (step,) = document["plan"]
    assert step["clears"] == ["memlock-too-small", "rank-raised"]
    assert step["verify"] == ["torchdoctor all-reduce"]


@pytest.mark.slow
def test_a_log_that_names_no_fault_brings_the_checks_and_no_finding_of_theirs(
    tmp_path: Path,
) -> None:
    document = tried(tmp_path, BOOTSTRAP)
    found = outcomes(document)
    assert set(found) == {*CHECKS, *OF_LOGS}
    assert "found" not in {found[name] for name in OF_LOGS}
    assert [finding["name"] for finding in document["findings"]] == ["rank-raised"]


def test_without_a_log_only_the_run_itself_is_judged(tmp_path: Path) -> None:
    document = tried(tmp_path, "", "--fail-on", "never", code=0)
    assert set(outcomes(document)) == set(CHECKS)
    assert [finding["name"] for finding in document["findings"]] == ["rank-raised"]
