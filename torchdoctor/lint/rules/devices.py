"""Which GPU a rank uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.lint.rule import Hit, rule
from torchdoctor.lint.script import Script, argument, position, unpacks

_USES_CUDA = (
    "cuda",
    "set_device",
    "device_count",
    "current_device",
    "get_device_name",
    "empty_cache",
    "manual_seed_all",
    "synchronize",
)


def _bare(script: Script) -> list[ast.Call]:
    """Return the calls that move something to the current GPU: .cuda() and .to("cuda")."""
    found = []
    for call in script.named("cuda", "to"):
        if not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr == "cuda":
            if not call.args and not call.keywords and script.dotted(call.func) != "torch.cuda":
                found.append(call)
        elif call.args and script.constant(call.args[0]) == "cuda":
            found.append(call)
    return found


def _chooses(script: Script) -> bool:
    """Tell whether this module chooses the GPU of a rank in some way."""
    return bool(
        # A function of one's own with such a name sets it elsewhere.
        re.search(r"\bset_\w*(?:device|gpu)\w*\(", script.text)
        or "CUDA_VISIBLE_DEVICES" in script.text
        or re.search(r"torch\.cuda\.device\(", script.text)
        or any(argument(c, "device_id") is not None for c in script.groups)
    )


@rule("error", "init_process_group")
def set_device_missing(script: Script) -> Iterator[Hit]:
    """Tell that nothing chooses a GPU for each rank of a host.

    .cuda() and "cuda" without an index mean the current GPU, which is GPU 0 in every process: all
    ranks of a host fill it, and NCCL refuses two ranks on one GPU.

    Bad::

        torch.distributed.init_process_group("nccl")
        model = model.cuda()

    Good::

        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
        model = model.cuda()
    """
    nccl = any(
        "nccl" in script.text_of(call) or argument(call, "backend", 0) is None
        for call in script.groups
    ) or (bool(script.groups) and "nccl" in script.text)
    bare = [call for call in _bare(script) if script.function(call) in script.ranks]
    if nccl and bare and not _chooses(script) and not script.managed:
        yield Hit(
            bare[0],
            f"{script.text_of(bare[0])[:60]} means GPU 0 on every rank: torch.cuda.set_device() "
            "is called nowhere in this file; call it with LOCAL_RANK first.",
        )


@rule("error", "set_device")
def set_device_after_use(script: Script) -> Iterator[Hit]:
    """Tell that something goes to the current GPU before set_device() chooses it.

    It lands on GPU 0 on every rank, and opens a context there that keeps some hundred MB.

    Bad::

        model = model.cuda()
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

    Good::

        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        model = model.cuda()
    """
    chosen = [c for c in script.named("set_device") if script.dotted(c.func).startswith("torch.")]
    for home in dict.fromkeys(script.function(call) for call in chosen):
        here = [call for call in chosen if script.function(call) is home]
        first = min(here, key=position)
        early = [
            call
            for call in _bare(script)
            if script.function(call) is home
            and position(call) < position(first)
            and not script.exclusive(call, first)
            and not script.loop(call)
        ]
        if early:
            yield Hit(
                early[0],
                f"{script.text_of(early[0])[:60]} stands before set_device() on line "
                f"{first.lineno}: it goes to GPU 0 on every rank; call set_device() first.",
            )


@rule("note", "init_process_group", confidence="certain")
def no_device_id(script: Script) -> Iterator[Hit]:
    """Say that an nccl group is made without device_id.

    The communicator is then made by the first collective, where an error is harder to place, and
    barrier() guesses the GPU. With device_id it is made at once, for that GPU (torch 2.3).

    Bad::

        torch.distributed.init_process_group("nccl")

    Good::

        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", local_rank))
    """
    for call in script.groups:
        backend = argument(call, "backend", 0)
        nccl = (
            backend is None
            or script.constant(backend) == "nccl"
            or (script.constant(backend) is ... and "nccl" in script.text)
        )
        if nccl and argument(call, "device_id") is None and not unpacks(call):
            yield Hit(
                call,
                "This init_process_group() has no device_id=: NCCL starts with the first "
                "collective, and barrier() guesses the GPU.",
            )


@rule("warning", "CUDA_VISIBLE_DEVICES")
def visible_devices_after_import(script: Script) -> Iterator[Hit]:
    """Tell that CUDA_VISIBLE_DEVICES is set after torch is imported.

    CUDA reads it once, when it starts: whatever touched a GPU before, in this file or in an
    import, makes the line void. Set it in the shell, or before torch is imported. A note inside a
    function, where it is not known what ran before.

    Bad::

        import torch

        os.environ["CUDA_VISIBLE_DEVICES"] = "1"

    Good::

        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "1")
        import torch
    """
    imports = [
        node
        for node in script.all(ast.Import, ast.ImportFrom)
        if script.function(node) is None and "torch" in script.text_of(node).split(" ", 2)[1]
    ]
    if not imports:
        return
    first = position(min(imports, key=position))
    for node in script.all(ast.Assign):
        assert isinstance(node, ast.Assign)
        target = node.targets[0]
        if not (isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant)):
            continue
        if target.slice.value != "CUDA_VISIBLE_DEVICES" or position(node) < first:
            continue
        if "environ" not in script.dotted(target.value):
            continue
        home = script.function(node)
        used = any(
            script.function(c) is home and position(c) < position(node)
            for c in script.named(*_USES_CUDA)
        )
        sure = used or (home is None and script.owner(node) is None)
        yield Hit(
            node,
            f"CUDA_VISIBLE_DEVICES is set after torch was imported on line {first[0]}: once "
            "CUDA has started it has no effect; set it before, or in the shell.",
            None if sure else "note",
        )


@rule("error", "device_ids", "set_device")
def global_rank_as_device(script: Script) -> Iterator[Hit]:
    """Tell that the rank within the whole job is used as the number of a GPU.

    On the second host ranks begin at the number of GPUs, which no GPU has: CUDA error: invalid
    device ordinal. Use LOCAL_RANK, or the rank modulo the number of GPUs of a host.

    Bad::

        rank = torch.distributed.get_rank()
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])

    Good::

        rank = int(os.environ["LOCAL_RANK"])
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
    """
    for call in script.wraps:
        given = argument(call, "device_ids", 1)
        if (
            isinstance(given, ast.List)
            and len(given.elts) == 1
            and _is_global(script, given.elts[0])
        ):
            yield _no_device(script, call, given.elts[0], "device_ids")
    for call in script.torch("set_device"):
        if call.args and _is_global(script, call.args[0]):
            yield _no_device(script, call, call.args[0], "set_device()")


def _no_device(script: Script, call: ast.Call, node: ast.expr, where: str) -> Hit:
    return Hit(
        call,
        f"{script.text_of(node)} in {where} is the rank within the whole job, not the number of a "
        "GPU: the second host has no such one; use LOCAL_RANK.",
    )


def _is_global(script: Script, node: ast.expr) -> bool:
    meanings = list(script.meanings(node))
    return bool(meanings) and all(m is not None and _global(script, m) for m in meanings)


def _global(script: Script, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        if script.tail(node) == "get_rank":
            return script.of_torch(node.func) and not node.args and not node.keywords
        if script.tail(node) == "int" and node.args:
            return _global(script, node.args[0])
        return script.tail(node) in {"get", "getenv"} and _says_rank(node.args[:1])
    return isinstance(node, ast.Subscript) and _says_rank([node.slice])


def _says_rank(nodes: list[ast.expr]) -> bool:
    return any(isinstance(n, ast.Constant) and n.value == "RANK" for n in nodes)
