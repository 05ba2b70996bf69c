"""Read stacks, and say what a rank is doing by them.

The formats are those of Python's faulthandler and of ``py-spy dump --json``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from torchdoctor.hang.records import Frame

Kind = Literal["collective", "p2p", "init", "destroy", "gpu", "backward", "loader", "other", ""]

MOST_FRAMES = 200
LONGEST = 300
THREAD = re.compile(
    r"^(?:Current t|T)hread (0x[0-9a-fA-F]+)(?: \[[^\n]*\])? \(most recent call first\):\s*$"
)
LINE = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')

DISTRIBUTED = "torch/distributed/distributed_c10d.py"
WRAPPERS = ("wrapper", "inner", "_decorate", "decorate_context")
P2P = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "send_object_list")
STARTING = (
    *("init_process_group", "_new_process_group_helper", "_store_based_barrier", "new_group"),
    *("split_group", "new_subgroups", "_new_group_with_tag"),
)
WAITING_IN_DDP = (
    *("_sync_module_states", "_sync_buffers", "_verify_param_shape_across_processes"),
    *("_sync_module_buffers", "_sync_params_and_buffers", "_default_broadcast_coalesced"),
)
OF_PYTHON = ("/lib/python3", "\\lib\\", "<frozen", "<string>", "site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Doing:
    """What a rank does: in which kind of call of torch, and where in the user's own code."""

    kind: Kind = ""
    operation: str = ""
    place: Frame | None = None

    @property
    def waits(self) -> bool:
        """Return whether it is in a call that waits for other ranks."""
        return self.kind in ("collective", "p2p", "init", "destroy")

    @property
    def may_wait(self) -> bool:
        """Return whether it is in a call that may wait for other ranks."""
        return self.waits or self.kind in ("gpu", "backward", "")


def doing(stack: tuple[Frame, ...]) -> Doing:
    """Return what the rank with this *stack*, innermost frame first, is doing."""
    if not stack:
        return Doing()
    place = next((frame for frame in stack if _is_users(frame)), stack[0])
    kind, operation = _kind(stack)
    return Doing(kind, operation, place)


def of_faulthandler(text: str, main: int | None = None) -> tuple[Frame, ...]:
    """Return the stack of the main thread in the last dump that *text* holds.

    *main* is the number of the main thread; without it, it is the last thread of the dump, as
    faulthandler has it.
    """
    threads: list[tuple[int, list[Frame]]] = []
    reading: list[Frame] | None = None
    for line in text.splitlines():
        if match := THREAD.match(line):
            reading = []
            threads.append((int(match[1], 16), reading))
        elif reading is not None and (match := LINE.match(line)):
            number = int(match[2]) if match[2].isdecimal() and len(match[2]) < 10 else 0  # noqa: PLR2004
            if len(reading) < MOST_FRAMES:
                reading.append(Frame(match[3][:LONGEST], match[1][:LONGEST], number))
        elif not line.startswith("  "):
            reading = None
    for number, frames in reversed(threads):
        if main is None or number == main:
            return tuple(frames)
    return ()


def of_py_spy(text: str, pid: int) -> tuple[Frame, ...]:
    """Return the stack of the main thread of process *pid*, as py-spy has it in JSON."""
    try:
        threads = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(threads, list):
        return ()
    known = [thread for thread in threads if isinstance(thread, dict)]
    mains = [
        thread
        for thread in known
        if thread.get("os_thread_id") == pid or thread.get("thread_name") == "MainThread"
    ]
    for thread in mains or known[:1]:
        frames = thread.get("frames")
        if isinstance(frames, list):
            told = (_of_spy(frame) for frame in frames[:MOST_FRAMES])
            return tuple(frame for frame in told if frame is not None)
    return ()


def _of_spy(told: object) -> Frame | None:
    if not isinstance(told, dict):
        return None
    line = told.get("line")
    number = line if isinstance(line, int) and 0 <= line < 1 << 31 else 0
    return Frame(str(told.get("name"))[:LONGEST], str(told.get("filename"))[:LONGEST], number)


def _kind(stack: tuple[Frame, ...]) -> tuple[Kind, str]:
    """Return the kind of call, and the function of torch.distributed that the user called."""
    called = ""
    kind: Kind = "other"
    for frame in stack:
        file = frame.file.replace("\\", "/")
        name = frame.function.rpartition(".")[2]
        if file.endswith(DISTRIBUTED) and name not in WRAPPERS and not name.startswith("<"):
            called = name  # the outermost stays: barrier, not the all_reduce that it is made of
        elif "torch/distributed/rendezvous" in file or "torch/distributed/elastic/" in file:
            called = called or "init_process_group"
        elif name in WAITING_IN_DDP:
            return "collective", name.strip("_")
        elif kind == "other":
            kind = _of_torch(file, name)
    if called in STARTING:
        return "init", called
    if called == "destroy_process_group":
        return "destroy", called
    if called in P2P:
        return "p2p", called
    return ("collective", called) if called else (kind, "")


def _of_torch(file: str, name: str) -> Kind:
    if "torch/cuda/" in file and name in ("synchronize", "wait", "query"):
        return "gpu"
    if "torch/autograd/" in file:
        return "backward"
    return "loader" if "torch/utils/data/" in file else "other"


def _is_users(frame: Frame) -> bool:
    return not any(part in frame.file for part in OF_PYTHON)
