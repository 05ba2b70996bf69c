"""The variables of a module: what is assigned to them, and what an expression may stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from torchdoctor.lint.tree import Function, Tree, dotted

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Key = tuple[ast.AST, str]
"""A variable: where it lives, and how it is written (``model``, ``self.model``)."""
DEEP = 3
"""How many assignments or calls are followed."""


class Variables(Tree):
    """A module whose variables and functions can be followed, by their names alone."""

    @cached_property
    def values(self) -> dict[Key, list[ast.expr | None]]:
        """Return what is ever assigned to each variable; None for what cannot be followed."""
        found: dict[Key, list[ast.expr | None]] = {}
        for target, value in self._assigned():
            key = self._bound(target)
            if key is not None:
                found.setdefault(key, []).append(value)
        return found

    def _assigned(self) -> Iterator[tuple[ast.expr, ast.expr | None]]:
        for node in self.all(ast.Assign, ast.AnnAssign, ast.NamedExpr):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from _pairs(target, node.value)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                yield node.target, node.value
        for node in self.all(ast.For, ast.AsyncFor):
            assert isinstance(node, ast.For | ast.AsyncFor)
            yield from _pairs(node.target, None)
        for node in self.all(ast.With, ast.AsyncWith):
            assert isinstance(node, ast.With | ast.AsyncWith)
            for item in node.items:
                if item.optional_vars is not None:
                    yield from _pairs(item.optional_vars, None)

    def _bound(self, target: ast.expr) -> Key | None:
        if isinstance(target, ast.Name):
            scope = self._scope(target)
            return (self.tree if target.id in self._globals.get(scope, ()) else scope, target.id)
        return self._attribute(target)

    def _scope(self, node: ast.AST) -> ast.AST:
        for parent in self.above(node):
            if isinstance(parent, Scope):
                return parent
        return self.tree

    def _attribute(self, node: ast.expr) -> Key | None:
        if not isinstance(node, ast.Attribute):
            return None
        written = dotted(node, {})
        root = written.partition(".")[0]
        if root == "?":
            return None
        owner = self.owner(node) if root in {"self", "cls"} else None
        return (owner or self.tree, written)

    @cached_property
    def _globals(self) -> dict[ast.AST, set[str]]:
        found: dict[ast.AST, set[str]] = {}
        for node in self.all(ast.Global):
            assert isinstance(node, ast.Global)
            found.setdefault(self._scope(node), set()).update(node.names)
        return found

    @cached_property
    def parameters(self) -> dict[Key, Function]:
        """Return every parameter of a function."""
        found: dict[Key, Function] = {}
        for node in self.all(ast.FunctionDef, ast.AsyncFunctionDef):
            assert isinstance(node, Function)
            for argument in _arguments(node):
                found[node, argument] = node
        return found

    def key(self, node: ast.AST) -> Key | None:
        """Return the variable that *node* reads; None when it is something else."""
        if isinstance(node, ast.Name):
            scopes = [n for n in self.above(node) if isinstance(n, Scope)]
            for scope in scopes:
                key = (scope, node.id)
                if key in self.values or key in self.parameters:
                    return key
            return (self.tree, node.id)
        return self._attribute(node) if isinstance(node, ast.expr) else None

    def assigned_to(self, node: ast.AST) -> list[Key]:
        """Return the variables that get *node*, be it through ``a if b else c`` or a chain."""
        child: ast.AST = node
        for parent in self.above(node):
            if isinstance(parent, ast.Assign):
                if child is not parent.value:
                    return []
                keys = [self._bound(t) for t in parent.targets]
                return [key for key in keys if key is not None]
            if isinstance(parent, ast.AnnAssign | ast.NamedExpr):
                key = self._bound(parent.target)
                return [key] if key is not None and child is parent.value else []
            if not isinstance(parent, ast.IfExp | ast.BoolOp | ast.Await):
                return []
            child = parent
        return []

    def meanings(self, node: ast.expr, depth: int = DEEP) -> Iterator[ast.expr | None]:
        """Yield the expressions that *node* may stand for; None for what is not known here."""
        if isinstance(node, ast.IfExp):
            yield from self.meanings(node.body, depth)
            yield from self.meanings(node.orelse, depth)
            return
        key = self.key(node) if isinstance(node, ast.Name | ast.Attribute) else None
        if key is None:
            yield node
            return
        known = list(self.values.get(key, ()))
        if not depth or not (known or key in self.parameters):
            yield None
            return
        if (function := self.parameters.get(key)) is not None:
            known += self.passed(function, key[1])
        for value in known:
            if value is None:
                yield None
            else:
                yield from self.meanings(value, depth - 1)

    def constant(self, node: ast.expr | None) -> object:
        """Return the one constant that *node* stands for; ``...`` when there is none."""
        if node is None:
            return ...
        if isinstance(node, ast.Constant):
            return node.value
        found: list[object] = []
        for meaning in self.meanings(node):
            if not isinstance(meaning, ast.Constant):
                return ...
            found.append(meaning.value)
        return found[0] if found and all(value == found[0] for value in found) else ...

    def mentions(self, node: ast.AST, told: Callable[[str], bool], depth: int = DEEP) -> bool:
        """Tell whether a name or a string in *node*, or in what it stands for, is *told*."""
        for part in ast.walk(node):
            word = (
                part.id
                if isinstance(part, ast.Name)
                else part.attr
                if isinstance(part, ast.Attribute)
                else part.value
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
                else ""
            )
            if word and told(word):
                return True
            if depth and isinstance(part, ast.Name | ast.Attribute):
                key = self.key(part)
                if key is None:
                    continue
                for value in self.values.get(key, ()):
                    if value is not None and self.mentions(value, told, depth - 1):
                        return True
        return False

    # ---- functions ----------------------------------------------------------------------------

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Return the functions and methods of this module by their name."""
        found: dict[str, list[Function]] = {}
        for node in self.all(ast.FunctionDef, ast.AsyncFunctionDef):
            assert isinstance(node, Function)
            found.setdefault(node.name, []).append(node)
        return found

    def callers(self, function: Function) -> list[ast.Call]:
        """Return the calls of *function* in this module, those of itself left out."""
        method = isinstance(self.parents.get(function), ast.ClassDef)
        name = function.name
        if method and name == "__init__":
            owner = self.parents[function]
            assert isinstance(owner, ast.ClassDef)
            return [c for c in self.named(owner.name) if isinstance(c.func, ast.Name)]
        return [
            call
            for call in self.named(name)
            if isinstance(call.func, ast.Attribute) is method
            and self.function(call) is not function
        ]

    @cached_property
    def _handed(self) -> set[str]:
        """Names of functions that are handed on instead of called: targets, callbacks."""
        called = {call.func for group in self.calls.values() for call in group}
        names = self.functions
        return {
            word
            for node in self.all(ast.Name, ast.Attribute)
            if node not in called
            and (word := node.id if isinstance(node, ast.Name) else _attr(node)) in names
            and isinstance(getattr(node, "ctx", None), ast.Load)
        }

    def handed_on(self, function: Function) -> bool:
        """Tell whether *function* is given to something that may call it."""
        return function.name in self._handed

    @cached_property
    def _started(self) -> set[str]:
        """Names of functions that are arguments of a call: mp.spawn(run), Thread(target=run)."""
        return {
            word
            for group in self.calls.values()
            for call in group
            for given in (*call.args, *(keyword.value for keyword in call.keywords))
            if (word := given.id if isinstance(given, ast.Name) else _attr(given)) in self.functions
        }

    def started(self, function: Function) -> bool:
        """Tell whether *function* is an argument of a call, as what another process runs is."""
        return function.name in self._started

    def passed(self, function: Function, parameter: str) -> list[ast.expr | None]:
        """Return what the callers in this module pass for *parameter*, defaults included."""
        calls = self.callers(function)
        if not calls or self.handed_on(function):
            return [None]
        return [self.argument_of(function, call, parameter) for call in calls]

    def argument_of(self, function: Function, call: ast.Call, parameter: str) -> ast.expr | None:
        """Return what *call* passes to *function* for *parameter*; None when it is not known."""
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if isinstance(self.parents.get(function), ast.ClassDef) and names[:1] in (
            ["self"],
            ["cls"],
        ):
            names = names[1:]
        index = names.index(parameter) if parameter in names else None
        if (given := argument(call, parameter, index)) is not None:
            return given
        if any(isinstance(a, ast.Starred) for a in call.args) or any(
            k.arg is None for k in call.keywords
        ):
            return None
        defaults = function.args.defaults
        if index is not None and defaults and index >= len(names) - len(defaults):
            return defaults[index - len(names)]
        return None

    def calls_of(self, function: Function | None) -> set[Function]:
        """Return the functions of this module that *function*, or its top, calls in the end."""
        found: set[Function] = set()
        waiting: list[Function | None] = [function]
        while waiting:
            at = waiting.pop()
            for called in self._called.get(at, ()):
                if called not in found:
                    found.add(called)
                    waiting.append(called)
        return found

    @cached_property
    def _called(self) -> dict[Function | None, set[Function]]:
        found: dict[Function | None, set[Function]] = {}
        for group in self.functions.values():
            for function in group:
                for call in self.callers(function):
                    found.setdefault(self.function(call), set()).add(function)
        return found


def argument(call: ast.Call, name: str, index: int | None = None) -> ast.expr | None:
    """Return what *call* passes as *name*, or at *index* when it stands there."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if index is None or index >= len(call.args):
        return None
    starred = any(isinstance(given, ast.Starred) for given in call.args[: index + 1])
    return None if starred else call.args[index]


def _attr(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    values: Sequence[ast.expr | None] = (
        value.elts
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        else [None] * len(target.elts)
    )
    for part, each in zip(target.elts, values, strict=True):
        yield from _pairs(part, each)


def _arguments(function: Function) -> Iterator[str]:
    every = function.args
    for argument_ in (*every.posonlyargs, *every.args, *every.kwonlyargs):
        yield argument_.arg
    for rest in (every.vararg, every.kwarg):
        if rest is not None:
            yield rest.arg
