"""A syntax tree with its indexes: what stands where, what its names mean, what is called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

Function = ast.FunctionDef | ast.AsyncFunctionDef

_LEAVES = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
_KEPT = (
    ast.Call,
    ast.Assign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Global,
    ast.Dict,
    ast.Raise,
    ast.Name,
    ast.Attribute,
    ast.ExceptHandler,
    ast.Return,
)


class Tree:
    """A parsed module and its indexes, made when first asked for.

    *text* has line feeds only; *notebook* says that it came from one, so that nothing imports it.
    """

    def __init__(self, text: str, tree: ast.Module, *, notebook: bool = False) -> None:
        self.text = text
        self.tree = tree
        self.notebook = notebook
        self.parents: dict[ast.AST, ast.AST] = {}
        self._nodes: dict[type[ast.AST], list[ast.AST]] = {kind: [] for kind in _KEPT}
        self._walk()

    def _walk(self) -> None:
        parents, nodes = self.parents, self._nodes
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            if (bucket := nodes.get(type(node))) is not None:
                bucket.append(node)
            children: list[ast.AST] = []
            for field in node._fields:
                value = getattr(node, field, None)
                if isinstance(value, list):
                    children += [item for item in value if isinstance(item, ast.AST)]
                elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                    children.append(value)
            for child in children:
                parents[child] = node
            stack.extend(reversed(children))

    def all(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        """Yield every node of *kinds*, which are among those that are kept."""
        for kind in kinds:
            yield from self._nodes[kind]

    # ---- names -------------------------------------------------------------------------------

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Return what imported names stand for, in full: ``dist`` is ``torch.distributed``."""
        found: dict[str, str] = {}
        for node in self.all(ast.Import):
            assert isinstance(node, ast.Import)
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        for node in self.all(ast.ImportFrom):
            assert isinstance(node, ast.ImportFrom)
            origin = "." * node.level + (node.module or "")
            for alias in node.names:
                found[alias.asname or alias.name] = f"{origin}.{alias.name}"
        for node in self.all(ast.Assign):  # DDP = torch.nn.parallel.DistributedDataParallel
            assert isinstance(node, ast.Assign)
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
                full = dotted(value, found)
                if full.startswith("torch.") and full.rpartition(".")[2][:1].isupper():
                    found.setdefault(target.id, full)
        return found

    @cached_property
    def _stars(self) -> bool:
        return any(
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("torch")
            and node.names[0].name == "*"
            for node in self.all(ast.ImportFrom)
        )

    def dotted(self, node: ast.AST) -> str:
        """Return the full dotted name that *node* means; ``?`` stands for what is no name."""
        return dotted(node, self.aliases)

    def text_of(self, node: ast.AST) -> str:
        """Return *node* as it is written, on one line."""
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if not first:
            return ""
        rows = self._rows[first - 1 : last]
        rows[-1] = rows[-1][: getattr(node, "end_col_offset", 0)]
        rows[0] = rows[0][getattr(node, "col_offset", 0) :]
        return " ".join(b" ".join(rows).decode("utf-8", "replace").split())

    @cached_property
    def _rows(self) -> list[bytes]:
        return self.text.encode("utf-8", "replace").split(b"\n")

    @cached_property
    def calls(self) -> dict[str, list[ast.Call]]:
        """Return all calls by the last part of the name that is called, in order."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.all(ast.Call):
            assert isinstance(call, ast.Call)
            found.setdefault(self.tail(call), []).append(call)
        for group in found.values():
            group.sort(key=position)
        return found

    def tail(self, call: ast.Call) -> str:
        """Return the last part of the name that is called."""
        func = call.func
        if isinstance(func, ast.Attribute):
            return func.attr
        if isinstance(func, ast.Name):
            return self.aliases.get(func.id, func.id).rpartition(".")[2]
        return ""

    def named(self, *tails: str) -> list[ast.Call]:
        """Return the calls of whatever is called one of *tails*, methods too, in order."""
        found = [call for tail in tails for call in self.calls.get(tail, ())]
        return sorted(found, key=position) if len(tails) > 1 else found

    def torch(self, *tails: str) -> list[ast.Call]:
        """Return the calls of torch's own *tails*, in order."""
        return [call for call in self.named(*tails) if self.of_torch(call.func)]

    def of_torch(self, node: ast.AST) -> bool:
        """Tell whether *node* names something of torch."""
        name = self.dotted(node)
        return name.startswith("torch.") or (
            self._stars and isinstance(node, ast.Name) and node.id not in self.aliases
        )

    # ---- where a node stands ------------------------------------------------------------------

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what *node* stands in, from the inside out."""
        parents = self.parents
        while (parent := parents.get(node)) is not None:
            yield parent
            node = parent

    def function(self, node: ast.AST) -> Function | None:
        """Return the function that *node* stands in."""
        return next((n for n in self.above(node) if isinstance(n, Function)), None)

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class that *node* stands in."""
        return next((n for n in self.above(node) if isinstance(n, ast.ClassDef)), None)

    def loop(self, node: ast.AST) -> bool:
        """Tell whether *node* stands in a loop of its function."""
        for parent in self.above(node):
            if isinstance(parent, ast.For | ast.AsyncFor | ast.While):
                return True
            if isinstance(parent, Function):
                return False
        return False

    def exclusive(self, one: ast.AST, other: ast.AST) -> bool:
        """Tell whether *one* and *other* stand in different branches of one ``if``."""
        branches = dict(self._branches(one))
        return any(branches.get(test, side) != side for test, side in self._branches(other))

    def _branches(self, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        child = node
        for parent in self.above(node):
            if isinstance(parent, ast.If) and child is not parent.test:
                yield parent, "then" if child in parent.body else "else"
            elif isinstance(parent, ast.IfExp) and child is not parent.test:
                yield parent, "then" if child is parent.body else "else"
            child = parent

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the statement that *node* is, or is part of."""
        if isinstance(node, ast.stmt):
            return node
        return next(n for n in self.above(node) if isinstance(n, ast.stmt))


def position(node: ast.AST) -> tuple[int, int]:
    """Return line and column of *node*, to sort by."""
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def dotted(node: ast.AST, aliases: dict[str, str]) -> str:
    """Return the dotted name that *node* is, its first part by *aliases*; ``?`` for no name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(aliases.get(node.id, node.id) if isinstance(node, ast.Name) else "?")
    return ".".join(reversed(parts))
