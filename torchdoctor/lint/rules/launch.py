"""How the processes of a job start, meet and end."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchdoctor.lint.rule import Hit, rule
from torchdoctor.lint.script import Script, argument, is_none, position, unpacks

_GIVEN_BY_LAUNCHER = ("RANK", "LOCAL_RANK", "WORLD_SIZE")


@rule("note", "init_process_group", confidence="certain")
def no_collective_timeout(script: Script) -> Iterator[Hit]:
    """Say that a process group is made with the timeout that its backend has by default.

    That is 10 minutes with nccl and 30 with the others: so long does a job hang before it says
    why, and no longer may rank 0 work alone. torchrun has no option for it, whatever is said
    elsewhere; and timedelta(minutes=30), which is often advised against a hang, makes nccl wait
    longer than it would.

    Bad::

        torch.distributed.init_process_group("nccl")

    Good::

        torch.distributed.init_process_group("nccl", timeout=datetime.timedelta(minutes=5))
    """
    for call in script.groups:
        if argument(call, "timeout", 2) is None and not unpacks(call):
            yield Hit(
                call,
                "This init_process_group() has no timeout=: a hang is told after 10 minutes with "
                "nccl, 30 with other backends.",
            )


@rule("warning", "init_process_group")
def process_group_not_destroyed(script: Script) -> Iterator[Hit]:
    """Tell that a training script never destroys its process group.

    NCCL warns at the end, and a rank that fails may leave the others waiting, as its
    communicators stay open until the process is gone. Call destroy_process_group() in a finally.
    A note where the training loop is in another file.

    Bad::

        torch.distributed.init_process_group()
        for batch in loader:
            model(batch).backward()

    Good::

        torch.distributed.init_process_group()
        try:
            for batch in loader:
                model(batch).backward()
        finally:
            torch.distributed.destroy_process_group()
    """
    if not script.groups or script.named("destroy_process_group", "cleanup", "end_training"):
        return
    if any(
        n.id == "destroy_process_group" for n in script.all(ast.Name) if isinstance(n, ast.Name)
    ):
        return
    yield Hit(
        script.groups[0],
        "destroy_process_group() is called nowhere in this file: ranks that fail leave the others "
        "waiting; call it in a finally.",
        None if script.trains and script.runs and not script.managed else "note",
    )


@rule("error", "init_process_group")
def process_group_not_initialised(script: Script) -> Iterator[Hit]:
    """Tell that the rank, or a sampler that needs it, is asked for before the group exists.

    It raises ValueError: Default process group has not been initialized, please make sure to call
    init_process_group.

    Bad::

        sampler = torch.utils.data.DistributedSampler(dataset)
        torch.distributed.init_process_group()

    Good::

        torch.distributed.init_process_group()
        sampler = torch.utils.data.DistributedSampler(dataset)
    """
    needing = [
        *(
            c
            for c in script.samplers
            if not (argument(c, "rank", 2) and argument(c, "num_replicas", 1)) and not unpacks(c)
        ),
        *(
            c
            for c in script.torch("get_rank", "get_world_size", "barrier", "all_reduce")
            if "distributed" in script.dotted(c.func)
        ),
        *script.wraps,
    ]
    for call in sorted(needing, key=position):
        home = script.function(call)
        groups = [g for g in script.groups if script.function(g) is home]
        if not groups or any(position(g) < position(call) for g in groups):
            continue
        if script.loop(call) or any(script.exclusive(call, g) for g in groups):
            continue
        if any(_asks_first(script, parent) for parent in script.above(call)):
            continue
        yield Hit(
            call,
            f"{script.tail(call)}() stands before init_process_group() on line "
            f"{groups[0].lineno}: it raises ValueError; move it behind.",
        )


def _asks_first(script: Script, parent: ast.AST) -> bool:
    """Tell whether *parent* is a condition on a group being there already."""
    if isinstance(parent, ast.If | ast.IfExp):
        words = {"is_initialized", "is_available", "initialized"}
        return script.mentions(parent.test, lambda w: any(word in w for word in words), 1)
    return isinstance(parent, ast.Try)


@rule("note", "init_process_group", confidence="certain")
def hardcoded_nccl_backend(script: Script) -> Iterator[Hit]:
    """Say that the backend is nccl, whatever the machine is.

    Builds for Windows, macOS and the CPU have no NCCL, and it needs a GPU: the script cannot be
    tried without one. Without a backend torch takes gloo for the CPU and nccl for GPUs.

    Bad::

        torch.distributed.init_process_group("nccl")

    Good::

        torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    """
    for call in script.groups:
        backend = argument(call, "backend", 0)
        if isinstance(backend, ast.Constant) and backend.value == "nccl":
            yield Hit(
                call,
                "The backend is nccl whatever the machine: it is not there on Windows, macOS and "
                "CPU builds, and needs a GPU.",
            )


@rule("note", "MASTER_ADDR", "MASTER_PORT", confidence="certain")
def hardcoded_master_address(script: Script) -> Iterator[Hit]:
    """Say that the script sets the address or the port where its ranks meet.

    It overrides what torchrun has set. A fixed port is taken as soon as a second job starts on
    the host (EADDRINUSE); localhost is right on one host only.

    Bad::

        os.environ["MASTER_PORT"] = "12355"

    Good::

        os.environ.setdefault("MASTER_PORT", "12355")
    """
    for node in script.all(ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
            continue
        name = target.slice.value
        if name not in {"MASTER_ADDR", "MASTER_PORT"} or not isinstance(node.value, ast.Constant):
            continue
        if "environ" not in script.dotted(target.value):
            continue
        why = (
            "a second job on this host finds the port taken"
            if name == "MASTER_PORT"
            else "it is right on one host only"
        )
        yield Hit(
            node,
            f"{name} is set to {node.value.value!r} here: it overrides the launcher's, and {why}; "
            "use os.environ.setdefault().",
        )


@rule("warning", "local_rank")
def local_rank_arg(script: Script) -> Iterator[Hit]:
    """Tell that the local rank is expected as the argument --local_rank.

    torchrun passes none: it sets LOCAL_RANK. torch.distributed.launch passes --local-rank, with a
    hyphen, since torch 2.0: argparse then stops with "unrecognized arguments".

    Bad::

        parser.add_argument("--local_rank", type=int, default=0)

    Good::

        local_rank = int(os.environ["LOCAL_RANK"])
    """
    own_launcher = any(
        isinstance(node, ast.Attribute)
        and node.attr == "local_rank"
        and isinstance(node.ctx, ast.Store)
        for node in script.all(ast.Attribute)
    )
    if "LOCAL_RANK" in script.text or own_launcher:
        return
    flags = {
        (value.value, call)
        for call in script.named("add_argument")
        for value in call.args
        if isinstance(value, ast.Constant)
    }
    if any(name == "--local-rank" for name, _ in flags):
        return
    for name, call in sorted(flags, key=lambda pair: position(pair[1])):
        if name == "--local_rank":
            yield Hit(
                call,
                "--local_rank is an argument that torchrun does not pass, and that launch spells "
                '--local-rank since torch 2.0; read os.environ["LOCAL_RANK"].',
            )


@rule("note", *_GIVEN_BY_LAUNCHER)
def silent_single_rank_default(script: Script) -> Iterator[Hit]:
    """Say that a script which was not started by a launcher takes itself for the only rank.

    Started by python instead of torchrun, each process trains alone, and writes the same files;
    nothing says so. Print rank and world size at the start, or let a missing RANK be an error.
    A default of -1, asked later, is the usual way to tell the two apart.

    Bad::

        rank = int(os.environ.get("RANK", 0))

    Good::

        rank = int(os.environ["RANK"])
    """
    for call in script.named("get", "getenv"):
        name = script.dotted(call.func)
        if not name.endswith(("environ.get", "os.getenv")) or len(call.args) < 2:  # noqa: PLR2004
            continue
        key, default = call.args[:2]
        if not (isinstance(key, ast.Constant) and key.value in _GIVEN_BY_LAUNCHER):
            continue
        if is_none(default) or str(script.constant(default)) not in {"0", "1"}:
            continue
        yield Hit(
            call,
            f"Without a launcher {key.value} is {script.constant(default)} here, silently: N "
            "processes would train N times alone; say the rank and world size at the start.",
        )


@rule("error", "spawn", "start_processes", "num_workers")
def no_main_guard(script: Script) -> Iterator[Hit]:
    """Tell that processes are started while the module is imported.

    A process that is spawned imports the module again, and would start processes again: it raises
    RuntimeError: An attempt has been made to start a new process before the current process has
    finished its bootstrapping phase. mp.spawn always spawns; the workers of a DataLoader are
    spawned on Windows and macOS.

    Bad::

        def run(rank):
            print(rank)

        torch.multiprocessing.spawn(run, nprocs=2)

    Good::

        def run(rank):
            print(rank)

        if __name__ == "__main__":
            torch.multiprocessing.spawn(run, nprocs=2)
    """
    if script.notebook:
        return
    for call in script.torch("spawn", "start_processes"):
        if _at_import(script, call):
            yield Hit(
                call,
                f"{script.tail(call)}() runs when the module is imported, and each new process "
                'imports it again; put it under if __name__ == "__main__".',
                confidence="certain",
            )
    for call in script.torch("DataLoader"):
        workers = argument(call, "num_workers", 5)
        number = script.constant(workers)
        if not isinstance(number, int) or number < 1 or not _at_import(script, call):
            continue
        keys = script.assigned_to(call)
        if any(_iterated(script, node, keys) for node in script.all(ast.For)):
            yield Hit(
                call,
                f"{number} workers start when the module is imported: where they are spawned "
                '(Windows, macOS) that fails; put the loop under if __name__ == "__main__".',
                "warning",
            )


def _at_import(script: Script, node: ast.AST) -> bool:
    if script.function(node) is not None or script.owner(node) is not None:
        return False
    return not any(
        isinstance(parent, ast.If) and script.mentions(parent.test, lambda w: w == "__name__", 0)
        for parent in script.above(node)
    )


def _iterated(script: Script, loop: ast.AST, keys: list[tuple[ast.AST, str]]) -> bool:
    assert isinstance(loop, ast.For)
    return _at_import(script, loop) and any(
        script.key(part) in keys for part in ast.walk(loop.iter) if isinstance(part, ast.Name)
    )
