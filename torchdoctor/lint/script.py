"""What the rules ask of a module: is it distributed, does it train, who runs what in it."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from torchdoctor.lint.tree import Function, position
from torchdoctor.lint.variables import DEEP, Key, Variables, argument

WRAPPERS = frozenset(
    ("torch.nn.parallel.DistributedDataParallel", "apex.parallel.DistributedDataParallel")
)
SHARDED_BY = {
    "accelerate": ("Accelerator",),
    "lightning": ("LightningModule", "LightningDataModule", "Trainer", "Fabric"),
    "pytorch_lightning": ("LightningModule", "LightningDataModule", "Trainer"),
    "lightning_fabric": ("Fabric",),
    "transformers": ("Trainer", "Seq2SeqTrainer"),
    "composer": ("Trainer",),
}
"""Frameworks that shard loaders and call set_epoch by themselves, and how they are met."""


class Script(Variables):
    """A module as the rules see it."""

    @cached_property
    def groups(self) -> list[ast.Call]:
        """Return the calls of torch's init_process_group."""
        return self.torch("init_process_group")

    @cached_property
    def samplers(self) -> list[ast.Call]:
        """Return the calls of torch's DistributedSampler."""
        return self.torch("DistributedSampler")

    @cached_property
    def wraps(self) -> list[ast.Call]:
        """Return the calls that wrap a model into DistributedDataParallel."""
        return [
            call
            for call in self.named("DistributedDataParallel")
            if self.dotted(call.func) in WRAPPERS or self.of_torch(call.func)
        ]

    @cached_property
    def wrapped(self) -> set[Key]:
        """Return the variables that hold a model that was wrapped in this module."""
        found: set[Key] = set()
        for call in self.wraps:
            outer: ast.AST = call
            while (up := self.parents.get(outer)) is not None and (
                (isinstance(up, ast.Attribute) and up.attr in {"to", "cuda", "train", "eval"})
                or (isinstance(up, ast.Call) and up.func is outer)
            ):
                outer = up
            found.update(self.assigned_to(outer))
        return found

    @cached_property
    def distributed(self) -> bool:
        """Tell whether this module itself sets up, wraps or shards for several ranks."""
        return bool(self.groups or self.wraps or self.samplers)

    @cached_property
    def managed(self) -> bool:
        """Tell whether a framework that shards by itself runs the training here."""
        for alias, name in self.aliases.items():
            top, _, last = name.rpartition(".")
            framework = name.partition(".")[0]
            if framework not in SHARDED_BY:
                continue
            known = SHARDED_BY[framework]
            used = rf"\b{re.escape(alias)}\.(?:\w+\.)*(?:{'|'.join(known)})\b"
            if (top and last in known) or re.search(used, self.text):
                return True
        return False

    @cached_property
    def plain(self) -> bool:
        """Tell whether this module is distributed by torch's own means alone."""
        return self.distributed and not self.managed

    @cached_property
    def backwards(self) -> list[ast.Call]:
        """Return the calls of backward() on a loss; torch.autograd.backward() is another thing."""
        return [
            call
            for call in self.named("backward")
            if isinstance(call.func, ast.Attribute) and not self.of_torch(call.func)
        ]

    @cached_property
    def trains(self) -> bool:
        """Tell whether a training loop stands in this module."""
        return bool(self.backwards) and any(self.all(ast.For, ast.While))

    @cached_property
    def runs(self) -> bool:
        """Tell whether this module is a program: it has a main guard, or calls at its top."""
        return (
            self.notebook
            or any(
                isinstance(node, ast.If)
                and "__name__" in {n.id for n in ast.walk(node.test) if isinstance(n, ast.Name)}
                for node in self.tree.body
            )
            or any(
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and self.tail(node.value) in self.functions
                for node in self.tree.body
            )
        )

    @cached_property
    def ranks(self) -> set[Function | None]:
        """Return the functions that a rank of a job runs: those around its process group."""
        homes = {self.function(call) for call in (*self.groups, *self.wraps)}
        every = [f for group in self.functions.values() for f in group]
        roots: set[Function | None] = {*homes}
        roots |= {f for f in every if homes & self.calls_of(f)}
        roots |= {None} if homes & self.calls_of(None) else set()
        return roots | {called for root in roots if root for called in self.calls_of(root)}


def unpacks(call: ast.Call) -> bool:
    """Tell whether *call* passes ``*args`` or ``**kwargs``, so that not all is known of it."""
    return any(k.arg is None for k in call.keywords) or any(
        isinstance(a, ast.Starred) for a in call.args
    )


def is_true(node: ast.expr | None) -> bool:
    """Tell whether *node* is the constant True."""
    return isinstance(node, ast.Constant) and node.value is True


def is_none(node: ast.expr | None) -> bool:
    """Tell whether *node* is the constant None, or not there."""
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


__all__ = [
    "DEEP",
    "Function",
    "Key",
    "Script",
    "argument",
    "is_none",
    "is_true",
    "position",
    "unpacks",
]
