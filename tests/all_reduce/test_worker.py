"""The worker's own rules, each asked in a process of its own, as an interpreter runs it."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.all_reduce.faults import LAST_LINES
from torchdoctor.distributed.stages import NUMBERS, PLACE
from torchdoctor.distributed.supervisor import PARTS
from torchdoctor.resource import read_text

SOURCE = read_text("probes", "all_reduce.py")
SOURCES = {part: read_text("probes", "ranks", f"{part}.py") for part in PARTS}


NAMES = """
import json
for part in [name for name in sys.modules if name.startswith("torchdoctor_ranks.")]:
    globals().update(vars(sys.modules[part]))
"""


def ask(
    question: str, folder: Path, environ: Mapping[str, str] | None = None, **options: object
) -> object:
    """Return what the expression *question* is within the worker."""
    given = {
        "rank": 0,
        "world": 2,
        "local_rank": 0,
        "host": "127.0.0.1",
        "port": 0,
        "folder": str(folder),
        "began": 0,
        "backend": "gloo",
        "device": "cpu",
        "limit": 9,
        "sweep": False,
        "store": "own",
        "stage_limit": 1,
        "import_limit": 1,
        "gather": None,
        "share": False,
        "numbers": NUMBERS,
        "attempt": "0",
        **options,
    }
    program, _, _ = SOURCE.partition(LAST_LINES)
    (folder / "torchdoctor_ranks").mkdir(exist_ok=True)
    for part, text in SOURCES.items():
        (folder / "torchdoctor_ranks" / f"{part}.py").write_text(text, "ascii")
    asked = folder / "asked.py"
    asked.write_text(f"{program}\n{NAMES}\nprint(json.dumps({question}))\n", "ascii")
    done = subprocess.run(
        (sys.executable, "-I", str(asked), json.dumps(given)),
        env={**(environ or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_stage_that_the_worker_goes_through_has_its_place() -> None:
    used = {
        node.args[0].value
        for source in SOURCES.values()
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Stage"
        and isinstance(node.args[0], ast.Constant)
    }
    assert used == set(PLACE) - {"done"}


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("eth", ["eth0", "eth1"]),
        ("eth0", ["eth0"]),
        ("=eth", []),
        ("=eth1,ib0", ["eth1", "ib0"]),
        ("^lo,docker", ["eth0", "eth1", "ib0"]),
        ("^=eth0", ["docker0", "eth1", "ib0", "lo"]),
        ("", []),
    ],
)
def test_interfaces_are_taken_as_nccl_takes_them(
    given: str, taken: list[str], tmp_path: Path
) -> None:
    names = ["docker0", "eth0", "eth1", "ib0", "lo"]
    assert ask(f"[n for n in {names} if nccl_takes({given!r}, n)]", tmp_path) == taken


def test_an_interface_of_gloo_s_is_a_real_name(tmp_path: Path) -> None:
    environ = {"GLOO_SOCKET_IFNAME": "lo"}
    assert ask("advertised('gloo')", tmp_path, environ) == ["127.0.0.1", "GLOO_SOCKET_IFNAME=lo"]


@pytest.mark.parametrize("name", ["bogus0", "^lo", "lo,bogus0", ""])
def test_a_name_that_gloo_could_not_use_is_a_fault_with_its_value(
    name: str, tmp_path: Path
) -> None:
    program = (
        "def told():\n"
        "    try:\n"
        "        advertised('gloo')\n"
        "    except Fault as fault:\n"
        "        return fault.said\n"
    )
    told = ask_with(program, "told()", tmp_path, {"GLOO_SOCKET_IFNAME": name})
    assert isinstance(told, dict)
    assert (told["why"], told["variable"], told["value"]) == (
        "interface",
        "GLOO_SOCKET_IFNAME",
        name,
    )


USER = "# of the cluster\nNCCL_SOCKET_IFNAME=lo\nNCCL_ALGO=Ring\n"


def test_what_nccl_is_told_is_a_variable_else_the_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "nccl.conf").write_text(USER)
    file = str(tmp_path / "nccl.conf")
    asked = "[setting('NCCL_ALGO'), setting('NCCL_PROTO'), setting('NCCL_SOCKET_IFNAME')]"
    environ = {"NCCL_CONF_FILE": file, "NCCL_ALGO": "Tree"}
    assert ask(asked, tmp_path, environ) == [["Tree", ""], ["", ""], ["lo", file]]


def test_the_user_s_own_file_counts_where_none_is_named(tmp_path: Path) -> None:
    (tmp_path / ".nccl.conf").write_text(USER)
    told = ["127.0.0.1", "NCCL_SOCKET_IFNAME=lo (~/.nccl.conf)"]
    assert ask("advertised('nccl')", tmp_path, {"HOME": str(tmp_path)}) == told
    assert ask("list(conf())[:1]", tmp_path, {"HOME": str(tmp_path)}) == ["~/.nccl.conf"]
    other = {"HOME": str(tmp_path), "NCCL_CONF_FILE": "/dev/null"}
    assert ask("advertised('nccl')", tmp_path, other) != told


def test_a_file_that_names_no_interface_of_this_machine_is_a_fault_with_its_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "nccl.conf").write_text("NCCL_SOCKET_IFNAME=bogus0\n")
    program = (
        "def told():\n"
        "    try:\n"
        "        advertised('nccl')\n"
        "    except Fault as fault:\n"
        "        return fault.said\n"
    )
    file = str(tmp_path / "nccl.conf")
    told = ask_with(program, "told()", tmp_path, {"NCCL_CONF_FILE": file})
    assert isinstance(told, dict)
    assert (told["why"], told["value"], told["file"]) == ("interface", "bogus0", file)
    told = ask_with(program, "told()", tmp_path, {"NCCL_SOCKET_IFNAME": "bogus0"})
    assert isinstance(told, dict)
    assert "file" not in told


def ask_with(
    program: str, question: str, folder: Path, environ: Mapping[str, str] | None = None
) -> object:
    """Return what *question* is once *program*, too, has run within the worker."""
    return ask(f"(exec({program!r}, globals()), {question})[1]", folder, environ)


@pytest.mark.parametrize(
    ("world", "rank", "expected"),
    [(2, 0, [1]), (4, 2, [0, 1, 3]), (1000, 999, [0, 1, 3, 7, 15, 31, 63, 127, 255, 511])],
)
def test_in_a_large_world_a_rank_tries_some_of_the_others(
    world: int, rank: int, expected: list[int], tmp_path: Path
) -> None:
    assert ask("partners()", tmp_path, world=world, rank=rank) == expected


def test_shared_memory_is_given_back_and_leaves_no_name(tmp_path: Path) -> None:
    shared = Path("/dev/shm")  # noqa: S108 - looked at
    if not shared.is_dir():
        pytest.skip("no /dev/shm here")
    before = {path.name for path in shared.iterdir()}
    assert ask("try_shared_memory()", tmp_path) is None
    assert {path.name for path in shared.iterdir()} <= before


def test_what_is_no_file_is_no_text(tmp_path: Path) -> None:
    assert ask(f"text_of({str(tmp_path / 'none')!r})", tmp_path) == ""
    (tmp_path / "conf").write_bytes(b"NCCL_DEBUG=INFO\xff\n")
    assert ask(f"text_of({str(tmp_path / 'conf')!r})", tmp_path) == "NCCL_DEBUG=INFO\\xff"


# ---- patience ------------------------------------------------------------------------------------


def patience(folder: Path, *, imported: float, left: float = 1000.0) -> object:
    """Return for how long a rank waits in a stage, for a connection, and for those that import."""
    program = f"PACE.imported_in({imported})"
    asked = "[PACE.slowness, PACE.limit(), PACE.limit(3.0), PACE.importing()]"
    given = f"(exec({program!r}, globals()), {asked})[1]"
    told = ask(given, folder, stage_limit=10, import_limit=60, limit=left, began=time.time())
    assert isinstance(told, list)
    return [round(value) for value in told]


def test_a_rank_is_as_patient_as_its_import_was_slow_and_never_less(tmp_path: Path) -> None:
    assert patience(tmp_path, imported=1.0) == [1, 10, 3, 70]
    assert patience(tmp_path, imported=20.0) == [4, 40, 12, 280]


def test_patience_has_an_end_and_leaves_time_to_say_what_was_waited_for(tmp_path: Path) -> None:
    assert patience(tmp_path, imported=500.0) == [6, 60, 18, 420]
    assert patience(tmp_path, imported=500.0, left=20.0) == [6, 18, 18, 18]
    assert patience(tmp_path, imported=1.0, left=-5.0) == [1, 1, 1, 1]
