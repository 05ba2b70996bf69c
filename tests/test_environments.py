"""The environments that tests break are real, cheap and independent of each other."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import environments
from tests.environments import Environment
from tests.scenarios import elf, smi, standins

pytestmark = [pytest.mark.lab, pytest.mark.sample]


@pytest.fixture
def copy() -> Iterator[Environment]:
    environment = environments.copy(environments.copies() / uuid.uuid4().hex)
    yield environment
    environments.drop_copies()


def test_a_copy_imports_the_same_torch_from_its_own_folder(copy: Environment) -> None:
    said = copy.run("-c", "import torch; print(torch.__version__, torch.__file__)").stdout.split()
    assert said == [environments.base().torch_version, str(copy.site / "torch" / "__init__.py")]


def test_what_is_written_to_a_copy_stays_there(copy: Environment) -> None:
    original = environments.base().root / copy.site.relative_to(copy.root) / "torch/version.py"
    before = original.read_text()
    assert original.stat().st_ino == (copy.site / "torch/version.py").stat().st_ino
    copy.write("torch/version.py", "__version__ = '0'\n")
    assert (copy.site / "torch/version.py").read_text() == "__version__ = '0'\n"
    assert original.read_text() == before


def test_a_copy_that_shares_folders_refuses_to_write_there() -> None:
    environment = environments.copy(environments.copies() / uuid.uuid4().hex, whole=False)
    assert environment.run("-c", "import torch, numpy, sympy").returncode == 0
    with pytest.raises(AssertionError, match="shared: numpy/version"):
        environment.write("numpy/version.py", "")
    environments.drop_copies()


def test_a_copy_writes_no_byte_code_into_itself(copy: Environment) -> None:
    copy.write("fresh.py", "")
    assert copy.run("-c", "import fresh").returncode == 0
    assert not list(copy.site.glob("__pycache__/fresh*"))


def test_a_relabelled_torch_verifies_against_its_record(copy: Environment) -> None:
    info = environments.relabel(
        copy, "9.9.9+cu130", changes={"torch/version.py": "cuda = '13.0'\n"}, requires=["filelock"]
    )
    recorded = {row[0]: row for row in environments.read_record(info)}
    for path in ("torch/version.py", f"{info.name}/METADATA"):
        content = (copy.site / path).read_bytes()
        assert recorded[path] == environments.record_row(path, content)
    missing = [path for path in recorded if not (copy.site / path).exists()]
    assert missing == []
    shown = copy.run("-m", "pip", "list", "--format=freeze").stdout.splitlines()
    assert "torch==9.9.9+cu130" in shown


def test_a_stand_in_wheel_is_one_that_pip_takes(copy: Environment, tmp_path: Path) -> None:
    wheel = standins.companion(tmp_path, "torchvision", "0.26.0+cpu", " (==2.11.0)")
    done = copy.run("-m", "pip", "install", "--no-index", "--no-deps", str(wheel))
    assert done.returncode == 0, done.stderr
    assert copy.version("torchvision") == "0.26.0+cpu"
    assert "torch 2.13.0" in copy.run("-m", "pip", "check").stdout


def test_an_unpacked_wheel_verifies_against_its_record(tmp_path: Path) -> None:
    info = environments.unpack(standins.tiny_torch(tmp_path, "2.6.0+cpu"), tmp_path / "site")
    for path, digest, size in environments.read_record(info):
        if digest:
            content = (info.parent / path).read_bytes()
            assert environments.record_row(path, content) == (path, digest, size)


def test_a_prefix_is_an_installation_of_its_own() -> None:
    environment = environments.prefix(environments.copies() / uuid.uuid4().hex)
    asked = environment.run(
        "-c", "import sys, json, torch; print(sys.prefix == sys.base_prefix, sys.prefix)"
    )
    environments.drop_copies()
    assert asked.stdout.split() == ["True", str(environment.root)]


def test_a_child_gets_nothing_of_our_environment_that_could_change_its_answer(
    tmp_path: Path,
) -> None:
    os.environ["CUDA_VISIBLE_DEVICES_OF_A_TEST"] = "7"
    try:
        given = environments.environ(tmp_path, [tmp_path / "bin"], PYTHONPATH="mine")
    finally:
        del os.environ["CUDA_VISIBLE_DEVICES_OF_A_TEST"]
    assert "CUDA_VISIBLE_DEVICES_OF_A_TEST" not in given
    assert given["PYTHONPATH"] == "mine"
    assert given["PATH"].startswith(str(tmp_path / "bin"))


def test_the_loader_takes_a_library_without_code_and_misses_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "libfirst.so.1").write_bytes(elf.shared_object("libfirst.so.1"))
    second = tmp_path / "libsecond.so"
    second.write_bytes(elf.shared_object("libsecond.so", ["libfirst.so.1"], "$ORIGIN"))
    ctypes.CDLL(str(second))
    third = tmp_path / "libthird.so"
    third.write_bytes(elf.shared_object("libthird.so", ["libnowhere.so.3"], "$ORIGIN", run=True))
    with pytest.raises(OSError, match=r"libnowhere\.so\.3: cannot open shared object file"):
        ctypes.CDLL(str(third))


def test_a_cuda_stand_in_imports_and_misses_a_library_as_the_real_one_does(
    copy: Environment,
) -> None:
    standins.cuda_torch(copy, says=standins.NO_DRIVER)
    code = "import torch; print(torch.__version__, torch.cuda.is_available()); torch.cuda.init()"
    done = copy.run("-c", code)
    assert done.stdout.split() == ["2.13.0+cu130", "False"]
    assert "RuntimeError: Found no NVIDIA driver on your system" in done.stderr
    copy.remove("nvidia/cu13/lib/libcublas.so.13")
    assert (
        "ImportError: libcublas.so.13: cannot open shared object"
        in copy.run("-c", "import torch").stderr
    )


def test_a_stand_in_nvidia_smi_says_what_was_recorded(tmp_path: Path) -> None:
    def ask(kind: str, *words: str) -> str:
        program = smi.install(tmp_path / kind, kind)
        return subprocess.run(
            [str(program), *words], capture_output=True, check=False, timeout=10
        ).stdout.decode(errors="replace")

    assert "Driver Version: 535.183.01     CUDA Version: 12.2" in ask("old535")
    assert "KMD Version: 610.43.02     CUDA UMD Version: 13.3" in ask("new610")
    query = ("--query-gpu=name,compute_cap", "--format=csv,noheader,nounits")
    assert ask("gtx1080", *query) == "NVIDIA GeForce GTX 1080, 6.1\n"
    assert "Driver/library version mismatch" in ask("mismatch")


def test_a_process_is_found_by_its_mark() -> None:
    mark = f"MARK_{uuid.uuid4().hex}"
    sleeper = subprocess.Popen(["sleep", "60"], env={**os.environ, mark: "1"})
    try:
        time.sleep(0.1)
        assert [number for number, _ in environments.marked(mark)] == [sleeper.pid]
    finally:
        sleeper.kill()
        sleeper.wait()
    assert list(environments.marked(mark)) == []
