"""What only some of the ranks do, and what all of them do that one should."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.lint import guards
from torchdoctor.lint.guards import Side
from torchdoctor.lint.rule import DISTRIBUTED, Hit, rule
from torchdoctor.lint.script import Script, argument, is_true, position

COLLECTIVES = (
    "barrier",
    "monitored_barrier",
    "all_reduce",
    "all_gather",
    "all_gather_object",
    "all_gather_into_tensor",
    "broadcast",
    "broadcast_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "all_to_all",
    "all_to_all_single",
)
_VALIDATES = re.compile(
    r"^(?:run_)?(?:val|valid|validate|validation|evaluate|evaluation|eval|test)"
    r"(?:_model|_epoch|_one_epoch|_loop)?$|^do_eval$"
)
_FINITE = frozenset(("isfinite", "isnan", "isinf"))
_LONG = frozenset(
    (
        "walk",
        "rglob",
        "glob",
        "iglob",
        "listdir",
        "scandir",
        "load_dataset",
        "snapshot_download",
        "download",
        "download_and_prepare",
        "prepare_data",
        "preprocess",
        "preprocess_data",
        "build_index",
        "tokenize",
        "tokenize_dataset",
        "build_vocab",
        "extractall",
        "urlretrieve",
    )
)
_LOGS = {"wandb": ("init", "log"), "mlflow": ("log_metric", "log_metrics", "start_run")}


@rule("error", "torch.distributed", "torch import distributed")
def collective_under_rank_guard(script: Script) -> Iterator[Hit]:
    """Tell that a collective is called on some of the ranks only.

    The others never come: those that wait in it hang until the timeout of the group (10 minutes
    with nccl), or meet in the next collective with another one, and fail there or get wrong data.
    A condition such as RANK != -1 asks whether there are ranks at all, and is none of these.

    Bad::

        if torch.distributed.get_rank() == 0:
            torch.save(state, "model.pt")
            torch.distributed.barrier()

    Good::

        if torch.distributed.get_rank() == 0:
            torch.save(state, "model.pt")
        torch.distributed.barrier()
    """
    calls = [
        call for call in script.torch(*COLLECTIVES) if "distributed" in script.dotted(call.func)
    ]
    if not calls:
        return
    sides = {call: guards.one_side(script, call) for call in calls}
    for call in calls:
        if argument(call, "group") is not None or (script.tail(call) == "barrier" and call.args):
            continue
        found = sides[call] or guards.only_on(script, call)
        if found is None or _has_partner(script, call, found[0], sides):
            continue
        yield Hit(
            call,
            f"{script.tail(call)}() is reached on {found[0].value} only ({_short(found[1])}): the "
            "rest of the group waits for it, or it for them, until the timeout; move it out.",
        )


def _has_partner(
    script: Script,
    call: ast.Call,
    side: Side,
    sides: dict[ast.Call, tuple[Side, str] | None],
) -> bool:
    """Tell whether the other side calls a collective, too: if rank != 0: barrier(), and back."""
    return any(
        found is not None
        and found[0] is not side
        and script.function(other) is script.function(call)
        for other, found in sides.items()
        if other is not call
    )


@rule("note", *DISTRIBUTED, confidence="possible")
def rank_zero_validation_without_barrier(script: Script) -> Iterator[Hit]:
    """Say that rank 0 validates alone, and the others run on to their next collective.

    They wait there, under the timeout of the group: 10 minutes with nccl. A longer validation
    ends the job. A barrier makes the place visible, but has the same timeout; raise it, or let
    all ranks validate a share each.

    Bad::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            validate(model)

    Good::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            validate(model)
        torch.distributed.barrier()
    """
    if not script.plain:
        return
    barriers = {script.function(call) for call in script.named("barrier", "synchronize")}
    for name in script.calls:
        if not _VALIDATES.match(name):
            continue
        for call in script.calls[name]:
            found = guards.one_side(script, call) if isinstance(call.func, ast.Name) else None
            if found and found[0] is Side.ONE and script.function(call) not in barriers:
                yield Hit(
                    call,
                    f"{name}() runs on one rank only ({_short(found[1])}), without a barrier: the "
                    "others wait in their next collective, until its timeout.",
                )


@rule("error", "DistributedDataParallel")
def forward_through_wrapper_under_rank_guard(script: Script) -> Iterator[Hit]:
    """Tell that one rank alone calls the model through its DDP wrapper.

    The wrapper broadcasts buffers before forward: with BatchNorm (or any other buffer) it waits
    for the other ranks and hangs. Without buffers it happens to work. The model itself
    (``model.module``) waits for nobody.

    Bad::

        model = torch.nn.parallel.DistributedDataParallel(net)
        if torch.distributed.get_rank() == 0:
            output = model(batch)

    Good::

        model = torch.nn.parallel.DistributedDataParallel(net)
        if torch.distributed.get_rank() == 0:
            output = model.module(batch)
    """
    if script.managed or not script.wrapped:
        return
    buffers = (
        any(
            re.search(r"BatchNorm[123]d|torchvision\.models", script.dotted(call.func))
            for group in script.calls.values()
            for call in group
        )
        or "torchvision.models" in script.aliases.values()
    )
    without = _without_buffers(script)
    for call in _forwards(script):
        name = script.text_of(call.func)
        key = script.key(call.func)
        if key in without:
            continue
        found = guards.only_on(script, call)
        if found is None:
            continue
        yield Hit(
            call,
            f"{name} is wrapped in DistributedDataParallel and called on {found[0].value} only "
            f"({_short(found[1])}): it waits there to broadcast its buffers; call {name}.module.",
            None if buffers else "warning",
        )


def _forwards(script: Script) -> Iterator[ast.Call]:
    names = {key[1].rpartition(".")[2] for key in script.wrapped}
    for name in sorted(names):
        for call in script.calls.get(name, ()):
            key = script.key(call.func)
            if key is None or key not in script.wrapped:
                continue
            wraps = [w for w in script.wraps if key in _keys_of(script, w)]
            if not all(script.exclusive(w, call) for w in wraps):
                yield call


def _keys_of(script: Script, wrap: ast.Call) -> list[tuple[ast.AST, str]]:
    statement = script.statement(wrap)
    if isinstance(statement, ast.Assign):
        return [k for t in statement.targets if (k := script.key(t)) is not None]
    return script.assigned_to(wrap)


def _without_buffers(script: Script) -> set[tuple[ast.AST, str]]:
    """Return the variables whose wrapper was told not to broadcast buffers."""
    return {
        key
        for wrap in script.wraps
        if script.constant(argument(wrap, "broadcast_buffers")) is False
        for key in _keys_of(script, wrap)
    }


@rule("warning", *DISTRIBUTED)
def exit_on_local_loss(script: Script) -> Iterator[Hit]:
    """Tell that a rank stops because of its own loss, which the others do not see.

    They wait for it in the next collective until the timeout, and its message is not the last.
    Let all ranks agree first: all_reduce a flag, and stop together.

    Bad::

        torch.distributed.init_process_group()
        if not math.isfinite(loss.item()):
            sys.exit(1)

    Good::

        torch.distributed.init_process_group()
        bad = (~torch.isfinite(loss.detach())).float()
        torch.distributed.all_reduce(bad)
        if bad.item():
            sys.exit(1)
    """
    if not script.plain:
        return
    exits = script.named("exit", "_exit", "quit")
    for node in [*exits, *script.all(ast.Raise)]:
        test = _finite_test(script, node)
        if test is None or (not script.trains and not script.groups):
            continue
        home = script.function(node)
        agreed = [
            c
            for c in script.named("all_reduce", "all_gather", "reduce", "reduce_dict")
            if script.function(c) is home and position(c) < position(test)
        ]
        if agreed or re.search(r"reduc|gather|avg|mean|global", script.text_of(test)):
            continue
        yield Hit(
            node,
            f"This rank stops on its own ({_short(script.text_of(test))}), and the others wait for "
            "it in their next collective; all_reduce the flag and stop together.",
        )


def _finite_test(script: Script, node: ast.AST) -> ast.expr | None:
    for parent in script.above(node):
        if isinstance(parent, ast.If):
            for part in ast.walk(parent.test):
                if isinstance(part, ast.Call) and script.tail(part) in _FINITE:
                    words = script.text_of(parent.test).lower()
                    return parent.test if "loss" in words else None
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


@rule("note", *DISTRIBUTED)
def same_seed_on_every_rank(script: Script) -> Iterator[Hit]:
    """Say that every rank gets the same seed.

    The model needs no seed to be equal on all ranks: DDP broadcasts rank 0's when it wraps. But
    with one seed, dropout and augmentation draw the same numbers on every rank, so that their
    batches are altered alike. seed + rank makes them differ, whatever is said of it elsewhere.
    The order of the data is the sampler's business: it has a seed of its own.

    Bad::

        torch.distributed.init_process_group()
        torch.manual_seed(0)

    Good::

        torch.distributed.init_process_group()
        torch.manual_seed(0 + torch.distributed.get_rank())
    """
    if not script.plain:
        return
    for call in script.torch("manual_seed"):
        alone = any(found is not None for found, _ in guards.own(script, call))
        if call.args and not alone and not guards.says_rank(script, call.args[0]):
            yield Hit(
                call,
                f"Every rank is seeded with {script.text_of(call.args[0])[:40]}: dropout and "
                "augmentation draw the same numbers on all of them; add the rank.",
            )
            return


@rule("warning", *DISTRIBUTED)
def download_on_every_rank(script: Script) -> Iterator[Hit]:
    """Tell that every rank downloads the same files to the same place.

    They write over each other, and one reads what another has not finished. Let rank 0 download,
    and the others wait for it in a barrier, then open what is there.

    Bad::

        torch.distributed.init_process_group()
        dataset = torchvision.datasets.CIFAR10("data", download=True)

    Good::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            torchvision.datasets.CIFAR10("data", download=True)
        torch.distributed.barrier()
        dataset = torchvision.datasets.CIFAR10("data")
    """
    if not script.distributed:
        return
    for node in script.all(ast.Call):
        assert isinstance(node, ast.Call)
        if is_true(argument(node, "download")) and guards.open_to_all(script, node):
            yield Hit(
                node,
                f"Every rank downloads {script.tail(node)} to the same place; let rank 0 do it, "
                "and the others wait in a barrier.",
            )


@rule("note", "init_process_group", confidence="possible")
def long_work_before_barrier(script: Script) -> Iterator[Hit]:
    """Say that rank 0 does long work while the others wait in a barrier.

    The barrier has the timeout of the group: 10 minutes with nccl. To be longer is not a
    deadlock, but the job ends all the same. Do the work before init_process_group(), or in a
    step of its own, or give a longer timeout.

    Bad::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            files = list(os.walk("data"))
        torch.distributed.barrier()

    Good::

        torch.distributed.init_process_group(timeout=datetime.timedelta(hours=2))
        if torch.distributed.get_rank() == 0:
            files = list(os.walk("data"))
        torch.distributed.barrier()
    """
    if not script.groups or any(argument(c, "timeout", 2) is not None for c in script.groups):
        return
    barriers = script.named("barrier")
    for call in script.named(*_LONG):
        found = guards.one_side(script, call)
        if found is None or found[0] is not Side.ONE:
            continue
        if any(_follows(script, barrier, call) for barrier in barriers):
            yield Hit(
                call,
                f"{script.tail(call)}() on one rank ({_short(found[1])}) while the others wait in "
                "a barrier: longer than the group's timeout, it ends the job.",
            )


def _follows(script: Script, barrier: ast.Call, call: ast.Call) -> bool:
    """Tell whether *barrier* stands in a block behind the statement that *call* is in."""
    block = script.parents.get(script.statement(barrier))
    return position(barrier) > position(call) and block in list(script.above(call))


@rule("note", *DISTRIBUTED)
def log_on_every_rank(script: Script) -> Iterator[Hit]:
    """Say that every rank logs, or prints in its training loop.

    A run is recorded as often as there are ranks, event files mix, and output is interleaved.
    Let rank 0 log, and reduce what it logs over all ranks first.

    Bad::

        torch.distributed.init_process_group()
        wandb.init(project="mine")

    Good::

        torch.distributed.init_process_group()
        if torch.distributed.get_rank() == 0:
            wandb.init(project="mine")
    """
    if not script.plain or not (script.groups or script.wraps):
        return
    for call in _loggers(script):
        given = [*call.args, *(k.value for k in call.keywords)]
        if guards.open_to_all(script, call) and not any(
            guards.says_rank(script, value, 1) for value in given
        ):
            yield Hit(
                call,
                f"{script.text_of(call.func)}() is called on every rank: the run is recorded once "
                "a rank; let rank 0 do it.",
            )
    for call in script.named("print"):
        if not script.loop(call) or not guards.open_to_all(script, call):
            continue
        if not any(guards.says_rank(script, value, 1) for value in call.args):
            yield Hit(call, "Every rank prints this in a loop; let rank 0 do it, or say the rank.")
            return


def _loggers(script: Script) -> Iterator[ast.Call]:
    for top, names in _LOGS.items():
        for call in script.named(*names):
            if script.dotted(call.func).startswith(f"{top}."):
                yield call
    yield from script.named("SummaryWriter")


def _short(test: str) -> str:
    return test if len(test) <= 60 else f"{test[:57]}..."  # noqa: PLR2004 - a line's room
