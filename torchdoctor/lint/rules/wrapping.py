"""How a model is wrapped for several GPUs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.lint.rule import Hit, rule
from torchdoctor.lint.script import Script, argument, is_true, position

_NORM = re.compile(r"\bBatchNorm[123]d$")
_SYNCHRONISES = re.compile(r"SyncBatchNorm|sync_batchnorm|syncbn|sync_bn", re.IGNORECASE)
_DEVICE = re.compile(r"device|cuda|gpu|rank", re.IGNORECASE)


@rule("warning", "DataParallel", confidence="certain")
def data_parallel(script: Script) -> Iterator[Hit]:
    """Tell that a model is wrapped in nn.DataParallel, which torch advises against.

    One process drives all GPUs: Python's lock, and copying the model to every GPU in each step,
    cost most of the gain; GPU 0 needs more memory than the others. DistributedDataParallel is
    faster on one host, too. A note where the script has that as well.

    Bad::

        model = torch.nn.DataParallel(model)

    Good::

        model = torch.nn.parallel.DistributedDataParallel(model)
    """
    for call in script.torch("DataParallel"):
        yield Hit(
            call,
            "nn.DataParallel drives all GPUs from one process and copies the model in each step; "
            "DistributedDataParallel under torchrun is faster, on one host, too.",
            "note" if script.wraps else None,
        )


@rule("note", "DistributedDataParallel")
def batchnorm_not_synchronised(script: Script) -> Iterator[Hit]:
    """Say that BatchNorm computes its statistics on each rank by itself.

    That is right with many samples a GPU, and wrong with few: convert the model by
    SyncBatchNorm.convert_sync_batchnorm() before it is wrapped. The running statistics that are
    saved are those of rank 0.

    Bad::

        net = torch.nn.BatchNorm2d(8)
        model = torch.nn.parallel.DistributedDataParallel(net)

    Good::

        net = torch.nn.SyncBatchNorm.convert_sync_batchnorm(torch.nn.BatchNorm2d(8))
        model = torch.nn.parallel.DistributedDataParallel(net)
    """
    if not script.wraps or _SYNCHRONISES.search(script.text):
        return
    norms = [c for name in script.calls if _NORM.search(name) for c in script.torch(name)]
    found = sorted(norms, key=position) or _of_torchvision(script)
    if found:
        yield Hit(
            found[0],
            f"{script.text_of(found[0].func)} under DistributedDataParallel: BatchNorm has its "
            "statistics from each rank's own batch; with few samples a GPU, convert it.",
        )


def _of_torchvision(script: Script) -> list[ast.Call]:
    calls = [
        call
        for group in script.calls.values()
        for call in group
        if script.dotted(call.func).startswith("torchvision.models.")
        or (
            isinstance(call.func, ast.Subscript)
            and script.dotted(call.func.value) == "torchvision.models.__dict__"
        )
    ]
    return sorted(calls, key=position)


@rule("warning", "DistributedDataParallel")
def moved_after_wrap(script: Script) -> Iterator[Hit]:
    """Tell that a model is moved to a device after it was wrapped.

    The wrapper has made its buckets for the parameters as they were. Where the model is there
    already the line does nothing; where it is not, gradients are reduced on the wrong device or
    not at all.

    Bad::

        model = torch.nn.parallel.DistributedDataParallel(model)
        model = model.cuda()

    Good::

        model = model.cuda()
        model = torch.nn.parallel.DistributedDataParallel(model)
    """
    wraps = set(script.wraps)
    for call in script.named("cuda", "to"):
        if not isinstance(call.func, ast.Attribute) or not _moves(script, call):
            continue
        value = call.func.value
        chained = value in wraps
        wrapped = chained or any(
            script.function(w) is script.function(call)
            and position(w) < position(call)
            and w not in script.above(call)
            and script.key(value) in script.assigned_to(w)
            and not _separate(script, w, call)
            for w in script.wraps
        )
        if wrapped:
            what = "The wrapped model" if chained else script.text_of(value)
            yield Hit(
                call,
                f"{what} is moved after it was wrapped in DistributedDataParallel; move the model "
                "first, then wrap it.",
            )


def _moves(script: Script, call: ast.Call) -> bool:
    if call.func.attr == "cuda":  # type: ignore[attr-defined]
        return True
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "device")]
    return any(_DEVICE.search(script.text_of(value)) for value in given)


def _separate(script: Script, wrap: ast.Call, call: ast.Call) -> bool:
    """Tell whether *call* may run without *wrap*: in another branch, or only one under an if."""
    mine = {n for n in script.above(call) if isinstance(n, ast.If)}
    return script.exclusive(wrap, call) or not all(
        n in mine for n in script.above(wrap) if isinstance(n, ast.If)
    )


@rule("error", "convert_sync_batchnorm", confidence="certain")
def syncbn_after_wrap(script: Script) -> Iterator[Hit]:
    """Tell that BatchNorm is converted after the model was wrapped.

    The conversion makes new modules, which the wrapper does not know: their parameters are not
    synchronised.

    Bad::

        model = torch.nn.parallel.DistributedDataParallel(model)
        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)

    Good::

        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        model = torch.nn.parallel.DistributedDataParallel(model)
    """
    for call in script.named("convert_sync_batchnorm"):
        given = argument(call, "module", 0)
        if given is None:
            continue
        for wrap in script.wraps:
            if (
                script.key(given) in script.assigned_to(wrap)
                and script.function(wrap) is script.function(call)
                and position(wrap) < position(call)
                and not script.exclusive(wrap, call)
            ):
                yield Hit(
                    call,
                    f"{script.text_of(given)} is converted after it was wrapped on line "
                    f"{wrap.lineno}: the new modules are not synchronised; convert it first.",
                )
                break


@rule("note", "find_unused_parameters", confidence="certain")
def find_unused_parameters(script: Script) -> Iterator[Hit]:
    """Say that the wrapper looks for unused parameters in each step.

    It walks the whole graph after every forward. It is the answer to "Expected to have finished
    reduction in the prior iteration", not a default.

    Bad::

        torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)

    Good::

        torch.nn.parallel.DistributedDataParallel(model)
    """
    for call in script.wraps:
        if is_true(argument(call, "find_unused_parameters")):
            yield Hit(
                call,
                "find_unused_parameters=True walks the graph after every forward; leave it out "
                "unless parameters really stay unused.",
            )
