"""NCCL, asked which interface it takes: small libraries of its name, and a real one."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.test_cli import Ran
from torchdoctor import child
from torchdoctor.facts import Nccl, Unknown
from torchdoctor.reading import nccl
from torchdoctor.resource import read_text

GCC = shutil.which("gcc")
needs_gcc = pytest.mark.skipif(
    not GCC or sys.platform != "linux", reason="compiles a small library for Linux"
)
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int ncclGetVersion(int *version) { *version = 22005; return 0; }
const char *ncclGetLastError(void *comm) { return "Bootstrap : no socket interface found"; }
int ncclGetUniqueId(void *id) {
    printf("what is printed is no answer\\n");
    fflush(stdout);
    FILE *log = fopen(getenv("NCCL_DEBUG_FILE"), "w");
    fprintf(log, "vm:1:1 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\\n");
    %s
}
"""


def wheel(site: Path, body: str) -> Path:
    """Put a libnccl that does *body* where the wheel of NVIDIA puts its own."""
    folder = site / "nvidia/nccl/lib"
    folder.mkdir(parents=True)
    source = site / "nccl.c"
    source.write_text(SOURCE % body)
    library = folder / "libnccl.so.2"
    assert GCC is not None
    subprocess.run((GCC, "-shared", "-fPIC", "-o", str(library), str(source)), check=True)
    return library


def ask(site: Path, seconds: float = 20, **variables: str) -> child.Run:
    return child.run_probe(
        read_text("probes", "nccl.py"),
        {"path": ""},
        python=(sys.executable, "-B"),
        timeout=seconds,
        folder=str(site),
        environ={"PYTHONPATH": str(site), **variables},
    )


@needs_gcc
def test_what_nccl_answers_and_which_interface_it_took_are_told(tmp_path: Path) -> None:
    library = wheel(tmp_path, "return 0;")
    fact = nccl.read(ask(tmp_path))["nccl"]
    said = "Bootstrap : no socket interface found"
    assert fact == Nccl(str(library), 22005, 0, said, "docker0", "172.17.0.1")


@needs_gcc
@pytest.mark.parametrize("body", ["abort();", "sleep(60); return 0;"])
def test_an_nccl_that_crashes_or_hangs_leaves_its_version(body: str, tmp_path: Path) -> None:
    wheel(tmp_path, body)
    fact = nccl.read(ask(tmp_path, 1.5 if "sleep" in body else 20))["nccl"]
    assert isinstance(fact, Nccl)
    assert (fact.version, fact.code, fact.said) == (22005, None, "")


def test_a_file_that_is_no_library_and_none_at_all_are_told_apart(tmp_path: Path) -> None:
    assert nccl.read(ask(tmp_path)) == {"nccl": None}
    place = tmp_path / "nvidia/nccl/lib"
    place.mkdir(parents=True)
    (place / "libnccl.so.2").write_text("no library")
    run = ask(tmp_path)
    assert nccl.read(run) == {"nccl": Nccl(str(place / "libnccl.so.2"))}
    errors = run.data["errors"]
    assert isinstance(errors, dict)
    assert "OSError" in errors["nccl"]


def test_an_answer_that_is_none_is_unknown() -> None:
    assert isinstance(nccl.read(child.Run((), "answered", data={}))["nccl"], Unknown)


@needs_gcc
@pytest.mark.lab
def test_a_check_asks_the_nccl_of_an_environment_that_has_one(tmp_path: Path) -> None:
    bare = environments.bare(tmp_path / "env")
    words = ("check", "--python", str(bare.python), "--format", "json")
    variables = {"NCCL_SOCKET_IFNAME": "bogus0"}
    alone: dict[str, Any] = Ran(*words, cwd=tmp_path, **variables).json  # type: ignore[arg-type]
    assert severity(alone) == "warning"  # by the names of the interfaces alone
    wheel(bare.site, "return 5;")
    bare.write(
        "nvidia_nccl_cu12-2.20.5.dist-info/METADATA",
        "Metadata-Version: 2.1\nName: nvidia-nccl-cu12\nVersion: 2.20.5\n",
    )
    asked: dict[str, Any] = Ran(*words, cwd=tmp_path, **variables).json  # type: ignore[arg-type]
    assert severity(asked) == "error"


def severity(report: Mapping[str, Any]) -> str:
    (found,) = [f["severity"] for f in report["findings"] if f["name"] == "wrong-socket-ifname"]
    return str(found)


# ---- the real one --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the libnccl of a real wheel, as pip finds it."""
    folder = tmp_path_factory.mktemp("nccl")
    command = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder))
    subprocess.run((*command, "nvidia-nccl-cu12==2.20.5"), check=True)
    (found,) = folder.glob("*.whl")
    with zipfile.ZipFile(found) as packed:
        packed.extract("nvidia/nccl/lib/libnccl.so.2", folder)
    return folder


@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux", reason="the wheel is for Linux")
@pytest.mark.parametrize(
    ("given", "works"),
    [("lo", True), ("=lo", True), ("bogus0", False), ("=l", False), ("^lo,e,w,ib,d,v,c,b", False)],
)
def test_the_real_library_chooses_without_a_gpu(real: Path, given: str, *, works: bool) -> None:
    fact = nccl.read(ask(real, NCCL_SOCKET_IFNAME=given))["nccl"]
    assert isinstance(fact, Nccl)
    assert fact.version == 22005
    if works:
        assert (fact.code, fact.interface, fact.address) == (0, "lo", "127.0.0.1")
    else:
        assert fact.code != 0
        assert fact.said == "Bootstrap : no socket interface found"
