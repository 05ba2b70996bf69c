"""The probe in a real interpreter, the search in ours, and both in one look at this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import environments
from tests.environments import Environment
from tests.scenarios.elf import shared_object
from torchdoctor import block, collect
from torchdoctor.facts import Expectation, Linux, SoLoad
from torchdoctor.reading import machine
from torchdoctor.resource import read_text
from torchdoctor.snapshot import Snapshot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs the loader of Linux")


def ask(python: Path | str, **more: str) -> dict[str, object]:
    done = subprocess.run(
        [str(python), "-B", "-"],
        input=read_text("probes", "linux.py"),
        env={"PATH": os.defpath, **more},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    said: dict[str, object] = {}
    for line in done.stdout.splitlines():
        said |= json.loads(line)
    return said


def test_it_tells_the_program_the_libraries_and_the_variables() -> None:
    said = ask(sys.executable, LD_LIBRARY_PATH="/nowhere:")
    program, loaded = said["program"], said["loaded"]
    assert isinstance(program, dict)
    assert isinstance(loaded, list)
    assert program["path"] == os.path.realpath(sys.executable)
    assert program["variables"] == {"LD_LIBRARY_PATH": "/nowhere:"}
    assert any(Path(name).name.startswith("libc.so") for name in loaded)
    assert any(Path(name).name.startswith("ld-") for name in loaded)
    assert (said["errors"], said["done"]) == ({}, True)


def test_what_is_printed_meanwhile_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-B", "-"],
        input=read_text("probes", "linux.py"),
        env={"PATH": os.defpath, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    lines = [line for line in done.stdout.splitlines() if line != "hello"]
    assert json.loads(lines[-1])["done"] is True


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return environments.copy(tmp_path_factory.mktemp("env") / "env", whole=False)


def look(environment: Environment, folder: Path, **variables: str) -> Snapshot:
    environ = {"PATH": os.defpath, "HOME": str(folder), **variables}
    request = collect.Request(str(environment.python), str(folder), import_torch=False)
    return collect.collect(request, environ)


def facts(snapshot: Snapshot) -> Linux:
    linux = machine.read(snapshot, Expectation()).linux
    assert isinstance(linux, Linux), linux
    return linux


def test_a_torch_that_works_is_said_to_load_in_seconds_and_kilobytes(
    copy: Environment, tmp_path: Path
) -> None:
    snapshot = look(copy, tmp_path)
    linux = facts(snapshot)
    assert linux.torch == SoLoad()
    assert linux.steered == ()
    run = snapshot.probes["linux files"]
    assert run.seconds < 10  # under a second on a machine that does nothing else
    assert len(json.dumps(run.data)) < 20_000
    assert len(block.wrap(snapshot)) < 40_000  # a report for an issue takes 65,536 in all


def test_another_c10_is_named_as_the_real_import_names_it(
    copy: Environment, tmp_path: Path
) -> None:
    (tmp_path / "libc10.so").write_bytes(shared_object("libc10.so"))
    own = copy.site / "torch" / "lib" / "libtorch_cpu.so"
    variables = {"LD_LIBRARY_PATH": str(tmp_path)}
    if "runpath" not in record_of(copy, tmp_path, own):
        variables = {"LD_PRELOAD": str(tmp_path / "libc10.so")}  # DT_RPATH would come first
    load = facts(look(copy, tmp_path, **variables)).torch
    assert isinstance(load, SoLoad)
    assert (load.kind, load.place) == ("symbol", *variables)
    assert load.culprit == str(tmp_path / "libc10.so")
    assert load.instead == str(own.with_name("libc10.so"))
    done = subprocess.run(
        [str(copy.python), "-c", "import torch"],
        env={"PATH": os.defpath, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert os.path.normpath(load.message.partition(": ")[0]) in done.stderr
    assert f"undefined symbol: {load.names[0]}" in done.stderr


def record_of(environment: Environment, folder: Path, file: Path) -> Mapping[str, object]:
    record = look(environment, folder).probes["linux files"].data["record"]
    assert isinstance(record, dict)
    number = next(n for p, n in record["files"].items() if os.path.normpath(p) == str(file))
    found: Mapping[str, object] = record["objects"][number]
    return found
