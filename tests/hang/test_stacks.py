"""Stacks are read from faulthandler and py-spy, and say what a rank is doing."""

from __future__ import annotations

import faulthandler
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor.hang import stacks
from torchdoctor.hang.records import Frame

PACKAGES = "/venv/lib/python3.12/site-packages"
C10D = f"{PACKAGES}/torch/distributed/distributed_c10d.py"
OWN = Frame("train", "/job/train.py", 12)
DUMP = f"""\
Thread 0x00007f3c4bfff640 (most recent call first):
  File "/usr/lib/python3.12/threading.py", line 359 in wait
  File "/usr/lib/python3.12/threading.py", line 1030 in _bootstrap

Current thread 0x00007f3d52c6a740 [python] (most recent call first):
  File "{C10D}", line 3252 in all_reduce
  File "{PACKAGES}/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/job/train.py", line 12 in train
  File "/job/train.py", line 20 in <module>

Current thread's C stack trace (most recent call first):
  Binary file "/venv/bin/python", at _Py_DumpStack+0x37 [0x5d0b]
"""
"""As Python writes it: 3.12 without names, 3.13 with them, 3.14 with a stack of C behind."""


def test_the_main_thread_is_the_last_one() -> None:
    found = stacks.of_faulthandler(DUMP)
    assert [f.function for f in found] == ["all_reduce", "wrapper", "train", "<module>"]
    assert found[2] == OWN


def test_the_main_thread_may_be_told_by_its_number() -> None:
    assert [f.function for f in stacks.of_faulthandler(DUMP, 0x00007F3C4BFFF640)] == [
        "wait",
        "_bootstrap",
    ]
    assert stacks.of_faulthandler(DUMP, 1) == ()


def test_of_two_dumps_the_last_counts() -> None:
    again = DUMP.replace("line 12 in train", "line 99 in train")
    assert stacks.of_faulthandler(DUMP + again)[2].line == 99


def test_what_this_python_writes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "stack"
    started, stop = threading.Event(), threading.Event()

    def other() -> None:
        started.set()
        stop.wait()

    thread = threading.Thread(target=other)
    thread.start()
    started.wait()
    with path.open("wb") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    stop.set()
    thread.join()
    found = stacks.of_faulthandler(path.read_text(), threading.main_thread().ident)
    assert found[0].function == "test_what_this_python_writes_is_read"
    assert found[0].file.endswith("test_stacks.py")


def spy(*threads: dict[str, object]) -> str:
    return json.dumps(list(threads))


THREAD = {
    "pid": 7,
    "thread_id": 140680,
    "thread_name": "MainThread",
    "os_thread_id": 7,
    "active": True,
    "owns_gil": False,
    "frames": [
        {
            "name": "train",
            "filename": "/job/train.py",
            "module": None,
            "short_filename": "train.py",
            "line": 12,
            "locals": None,
            "is_entry": True,
            "is_shim_entry": False,
        }
    ],
}
"""As py-spy 0.4.3 writes it."""


def test_py_spy_is_read_by_the_thread_of_the_process() -> None:
    other = THREAD | {"os_thread_id": 9, "thread_name": "pin", "frames": []}
    assert stacks.of_py_spy(spy(other, THREAD), 7) == (OWN,)


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "[1]", '[{"frames": 3}]', "[" * 99_999])
def test_what_py_spy_does_not_write_is_no_stack(text: str) -> None:
    assert stacks.of_py_spy(text, 7) == ()


@given(
    st.text(
        alphabet=st.sampled_from(list('Thread 0x12[](most recent call first):\nFile "a", line in'))
    )
)
@settings(max_examples=60, deadline=None)
def test_no_text_makes_an_error(text: str) -> None:
    stacks.of_faulthandler(text)
    stacks.of_faulthandler(DUMP[:99] + text)
    stacks.of_py_spy(text, 1)


@pytest.mark.parametrize(
    ("frames", "kind", "operation"),
    [
        ([Frame("all_reduce", C10D, 1), Frame("barrier", C10D, 2), OWN], "collective", "barrier"),
        ([Frame("send", C10D, 1), OWN], "p2p", "send"),
        (
            [Frame("_store_based_barrier", C10D, 1), Frame("init_process_group", C10D, 2)],
            "init",
            "",
        ),
        (
            [Frame("_create_c10d_store", f"{PACKAGES}/torch/distributed/rendezvous.py", 1), OWN],
            "init",
            "init_process_group",
        ),
        ([Frame("destroy_process_group", C10D, 1), OWN], "destroy", "destroy_process_group"),
        (
            [Frame("_sync_module_states", f"{PACKAGES}/torch/distributed/utils.py", 1), OWN],
            "collective",
            "sync_module_states",
        ),
        ([Frame("synchronize", f"{PACKAGES}/torch/cuda/__init__.py", 1), OWN], "gpu", ""),
        (
            [Frame("_engine_run_backward", f"{PACKAGES}/torch/autograd/graph.py", 1), OWN],
            "backward",
            "",
        ),
        (
            [Frame("_try_get_data", f"{PACKAGES}/torch/utils/data/dataloader.py", 1), OWN],
            "loader",
            "",
        ),
        ([OWN], "other", ""),
        ([], "", ""),
    ],
)
def test_a_stack_says_what_is_waited_in(frames: list[Frame], kind: str, operation: str) -> None:
    found = stacks.doing(tuple(frames))
    assert found.kind == kind
    assert found.operation in (operation, "init_process_group")
    if OWN in frames:
        assert found.place == OWN


def test_a_function_of_ones_own_that_is_called_as_torchs_is_none_of_torch() -> None:
    assert stacks.doing((Frame("all_reduce", "/job/mine.py", 3),)).kind == "other"
