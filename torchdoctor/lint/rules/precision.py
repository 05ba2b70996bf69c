"""Gradients: how they are scaled, clipped and cleared."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchdoctor.lint import edits, guards
from torchdoctor.lint.rule import Hit, rule
from torchdoctor.lint.script import Script

_OLD = re.compile(
    r"torch\.(?:cuda|cpu)\.amp\.(?:autocast_mode\.|grad_scaler\.)?(?:autocast|GradScaler)"
)
_VERSION = re.compile(r"version|hasattr|torch_?\d|_ge_|_lt_|parse\(", re.IGNORECASE)
_CLEARED = re.compile(
    r"zero_grad|\.grad\s*=\s*None|\.grad\.zero_|\.grad\.data\.zero_|zero_gradients|set_to_none"
    r"|\.grad\.fill_|autograd\.grad\(|\.grad\s*=\s*0|grad\.mul_\(0"
)
_BATCHES = re.compile(r"load|batch|(?:^|_)d[ls](?:_|$)|data", re.IGNORECASE)


@rule("warning", "cuda.amp", "cpu.amp", "import amp", confidence="certain")
def deprecated_amp(script: Script) -> Iterator[Hit]:
    """Tell that the names of AMP that torch 2.4 has deprecated are used.

    torch.cuda.amp.autocast and GradScaler give a FutureWarning since then and will be gone. The
    new ones take the device first: torch.amp.autocast("cuda"), torch.amp.GradScaler("cuda"); they
    are there since torch 2.3. Quiet where the script chooses by version.

    Bad::

        scaler = torch.cuda.amp.GradScaler()

    Good::

        scaler = torch.amp.GradScaler("cuda")
    """
    old = [
        call
        for call in script.named("autocast", "GradScaler")
        if _OLD.fullmatch(script.dotted(call.func))
    ]
    mended = edits.new_amp(script, old) if old else {}
    for call in old:
        if _chosen(script, call):
            continue
        name = script.dotted(call.func)
        device = name.split(".")[1]
        last = name.rpartition(".")[2]
        yield Hit(
            call,
            f"{name} is deprecated since torch 2.4 and will be removed; write "
            f'torch.amp.{last}("{device}").',
            edits=mended.get(call, ()),
        )


def _chosen(script: Script, call: ast.Call) -> bool:
    """Tell whether the old name stands where the new one is missing."""
    root = script.dotted(call.func).rpartition(".")[2]
    if isinstance(call.func, ast.Name) and len(_origins(script, call.func.id, root)) > 1:
        return True
    for parent in script.above(call):
        if isinstance(parent, ast.ExceptHandler):
            return True
        if isinstance(parent, ast.If | ast.IfExp):
            if _VERSION.search(script.text_of(parent.test)):
                return True
            if re.search(r"torch\.amp\.", script.text_of(parent)):
                return True
    return False


def _origins(script: Script, name: str, original: str) -> set[str]:
    """Return the modules that *name* is imported from: several, where a script chooses."""
    return {
        node.module or ""
        for node in script.all(ast.ImportFrom)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name) == name and alias.name == original
    }


@rule("error", "clip_grad_norm_", "clip_grad_value_")
def clip_before_unscale(script: Script) -> Iterator[Hit]:
    """Tell that gradients are clipped while they are still multiplied by the scale of AMP.

    The scale is 65536 at first, so that every gradient is over the limit: all steps are cut to a
    tiny length, or the limit does nothing once the scale has moved. Call
    ``scaler.unscale_(optimizer)`` first.

    Bad::

        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)

    Good::

        scaler = torch.amp.GradScaler("cuda")
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
    """
    if script.named("unscale_") or script.managed or not script.named("GradScaler"):
        return
    scaled = [
        call
        for call in script.backwards
        if isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Call)
        and script.tail(call.func.value) == "scale"
    ]
    for clip in script.torch("clip_grad_norm_", "clip_grad_value_"):
        if any(
            script.function(clip) is script.function(call) and not script.exclusive(clip, call)
            for call in scaled
        ):
            yield Hit(
                clip,
                f"{script.tail(clip)}() clips gradients that are still scaled: unscale_() is "
                "called nowhere in this file; call scaler.unscale_(optimizer) first.",
            )


@rule("warning", ".backward(")
def gradients_never_zeroed(script: Script) -> Iterator[Hit]:
    """Tell that a training loop never clears its gradients.

    backward() adds to what is there: each step goes the sum of all earlier ones. Call
    ``optimizer.zero_grad()`` once a step.

    Bad::

        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()

    Good::

        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
    """
    if _CLEARED.search(script.text) or script.managed or "deepspeed" in script.aliases:
        return
    for call in script.backwards:
        loop = _over_batches(script, call)
        if loop is None or _steps_elsewhere(script, call):
            continue
        # A loss or a task of a library leaves steps and zeroing to its trainer.
        home = script.function(call)
        steps = any(script.function(step) is home for step in script.named("step"))
        if steps or guards.open_to_all(script, call):
            yield Hit(
                call,
                "This loop calls backward(), and zero_grad() is called nowhere in this file: "
                "gradients add up over all steps; call optimizer.zero_grad() once a step.",
            )
            return


def _over_batches(script: Script, call: ast.Call) -> ast.For | None:
    for parent in script.above(call):
        if isinstance(parent, ast.For):
            source = script.text_of(parent.iter)
            if _BATCHES.search(source) and not source.startswith("range("):
                return parent
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def _steps_elsewhere(script: Script, call: ast.Call) -> bool:
    """Tell whether the optimizer is somebody else's: an engine that clears by itself."""
    assert isinstance(call.func, ast.Attribute)
    owner = script.text_of(call.func.value)
    return bool(re.search(r"engine|accelerator|fabric|manager|strategy", owner))
