"""What is saved, by whom, and what is loaded where."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchdoctor.lint import guards
from torchdoctor.lint.rule import DISTRIBUTED, Hit, rule
from torchdoctor.lint.script import Script, argument, position, unpacks


@rule("warning", "DistributedDataParallel")
def state_dict_of_wrapper(script: Script) -> Iterator[Hit]:
    """Tell that the state of the DDP wrapper is saved, not that of the model in it.

    Every key then begins with ``module.``: it loads into a wrapper, but a bare model, as one uses
    it to infer or to train on one GPU, says missing and unexpected keys. A script that loads it
    into a wrapper again gets along with it.

    Bad::

        from torch.nn.parallel import DistributedDataParallel as DDP

        model = DDP(model)
        torch.save(model.state_dict(), "model.pt")

    Good::

        from torch.nn.parallel import DistributedDataParallel as DDP

        model = DDP(model)
        torch.save(model.module.state_dict(), "model.pt")
    """
    saved = set(_saved(script))
    for call in script.named("state_dict"):
        if not isinstance(call.func, ast.Attribute) or call not in saved:
            continue
        key = script.key(call.func.value)
        if key in script.wrapped and _holds_wrapper(script, call, key):
            name = script.text_of(call.func.value)
            yield Hit(
                call,
                f"{name} is wrapped in DistributedDataParallel, so that every key of this "
                f"state_dict begins with 'module.'; save {name}.module.state_dict().",
            )


def _saved(script: Script) -> Iterator[ast.Call]:
    """Yield the state_dict() calls that end in a file, or in a dictionary as checkpoints are."""
    for call in script.named("state_dict"):
        for parent in script.above(call):
            if isinstance(parent, ast.stmt):
                if any(_goes_to_save(script, key) for key in script.assigned_to(call)):
                    yield call
                break
            if isinstance(parent, ast.Dict) or (
                isinstance(parent, ast.Call)
                and ("save" in script.tail(parent).lower() or script.tail(parent) == "dict")
            ):
                yield call
                break


def _goes_to_save(script: Script, key: tuple[ast.AST, str]) -> bool:
    return any(script.key(given) == key for call in script.torch("save") for given in call.args[:1])


def _holds_wrapper(script: Script, call: ast.Call, key: tuple[ast.AST, str]) -> bool:
    """Tell whether the variable still is the wrapper at *call*: not unwrapped, not before."""
    wraps = [w for w in script.wraps if key in script.assigned_to(w)]
    same = [w for w in wraps if script.function(w) is script.function(call)]
    if same and all(position(w) > position(call) and not script.loop(call) for w in same):
        return False
    return not (wraps and all(script.exclusive(w, call) for w in wraps))


@rule("warning", *DISTRIBUTED)
def save_on_every_rank(script: Script) -> Iterator[Hit]:
    """Tell that every rank writes the same checkpoint file.

    The writers are in each other's way: a reader, or a job that is stopped, gets a torn file. Let
    rank 0 write, and the others wait in a barrier outside that condition. Sharded checkpoints
    (FSDP, torch.distributed.checkpoint) are another matter: there every rank has to write.

    Bad::

        torch.distributed.init_process_group()
        torch.save(model.state_dict(), "model.pt")

    Good::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            torch.save(model.state_dict(), "model.pt")
        torch.distributed.barrier()
    """
    if not (script.groups or script.wraps or script.samplers):
        return
    for call in script.torch("save"):
        place = argument(call, "f", 1)
        if unpacks(call) or (place is not None and guards.says_rank(script, place)):
            continue
        if guards.open_to_all(script, call):
            where = script.text_of(place)[:60] if place is not None else "the same file"
            yield Hit(
                call,
                f"Every rank writes {where}: no condition on the rank stands above this "
                "torch.save() or above its callers; let rank 0 alone write.",
            )


@rule("warning", *DISTRIBUTED)
def load_without_map_location(script: Script) -> Iterator[Hit]:
    """Tell that a checkpoint is loaded in a job of several ranks without map_location.

    Its tensors go back to the GPU that they were saved from, mostly cuda:0: all ranks of a host
    fill that one. Load to the CPU, or to the rank's own device.

    Bad::

        torch.distributed.init_process_group()
        state = torch.load("model.pt")

    Good::

        torch.distributed.init_process_group()
        state = torch.load("model.pt", map_location="cpu")
    """
    if not (script.groups or script.wraps) or script.managed:
        return
    for call in script.torch("load"):
        if argument(call, "map_location", 1) is not None or unpacks(call):
            continue
        if _in_memory(script, call) or not guards.open_to_all(script, call):
            continue
        yield Hit(
            call,
            "This torch.load() has no map_location: on every rank the tensors go to the GPU that "
            'they were saved from; pass map_location="cpu" or the rank\'s device.',
        )


def _in_memory(script: Script, call: ast.Call) -> bool:
    return any(
        script.mentions(given, lambda word: word in {"BytesIO", "io"}, 2) for given in call.args[:1]
    )
