"""How the mechanical faults are mended: pieces of text, and what they are put in place of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from torchdoctor.lint.rule import Edit
from torchdoctor.lint.script import Key, Script, is_none, is_true, position

_EPOCH = re.compile(r"^_?(?:e|ep|epoch|epochs|epoch_(?:i|idx|index|num|nr|id)|i_?epoch)$")
_OLD_AUTOCAST = ("enabled", "dtype", "cache_enabled")
"""What the positional arguments of the old autocast are called; those of the new one differ."""


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return *text* with *edits* made; of two that touch each other only the first is made."""
    # bytes.splitlines() knows more ends of lines than Python's grammar does.
    lines = re.split(rb"(?<=\n)|(?<=\r)(?!\n)", text.encode("utf-8"))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = b"".join(lines)
    spans = sorted(
        {
            (starts[e.line - 1] + e.column, starts[e.end_line - 1] + e.end_column, e.text)
            for e in edits
        }
    )
    out, at = b"", 0
    for begin, end, new in spans:
        if begin >= at:
            out += data[at:begin] + new.encode("utf-8")
            at = end
    return (out + data[at:]).decode("utf-8")


def set_epoch(script: Script, sampler: ast.Call) -> tuple[Edit, ...]:
    """Return the line that sets the epoch of *sampler* in the one epoch loop of its function."""
    targets = script.assigned_to(sampler)
    loops = [loop for loop in _epoch_loops(script, sampler) if position(loop) > position(sampler)]
    if len(targets) != 1 or len(loops) != 1:
        return ()
    loop, name = loops[0], targets[0][1]
    assert isinstance(loop.target, ast.Name)
    first = loop.body[0]
    if first.lineno == loop.lineno:
        return ()
    margin = " " * first.col_offset
    line = f"{name}.set_epoch({loop.target.id})\n"
    if _may_be_none(script, sampler, targets[0], loop):
        line = f"if {name} is not None:\n{margin}    {line}"
    return (Edit(first.lineno, 0, first.lineno, 0, f"{margin}{line}"),)


def _epoch_loops(script: Script, sampler: ast.Call) -> Iterator[ast.For]:
    home = script.function(sampler)
    for loop in script.all(ast.For):
        assert isinstance(loop, ast.For)
        named = isinstance(loop.target, ast.Name) and _EPOCH.match(loop.target.id)
        if named and script.function(loop) is home and not script.loop(loop):
            yield loop


def _may_be_none(script: Script, sampler: ast.Call, key: Key, loop: ast.For) -> bool:
    if any(is_none(v) or isinstance(v, ast.IfExp) for v in script.values.get(key, ())):
        return True
    above = set(script.above(loop))
    return any(isinstance(n, ast.If) and n not in above for n in script.above(sampler))


def no_shuffle(script: Script, loader: ast.Call, maybe: ast.expr | None) -> tuple[Edit, ...]:
    """Return the edit that takes shuffle=True from *loader*.

    *maybe* is the sampler where it can be None: then the loader shuffles in just that case.
    """
    keyword = next((k for k in loader.keywords if k.arg == "shuffle"), None)
    if keyword is None or not is_true(keyword.value):
        return ()
    if maybe is not None:
        plain = isinstance(maybe, ast.Name | ast.Attribute)
        return (_over(keyword.value, f"{script.text_of(maybe)} is None"),) if plain else ()
    parts: list[ast.expr | ast.keyword] = sorted([*loader.args, *loader.keywords], key=position)
    index = parts.index(keyword)
    begin, end = _begin(keyword), _end(keyword)
    if index + 1 < len(parts):
        end = _begin(parts[index + 1])
    elif index:
        begin = _end(parts[index - 1])
    return (Edit(*begin, *end, ""),)


def new_amp(script: Script, old: Iterable[ast.Call]) -> dict[ast.Call, tuple[Edit, ...]]:
    """Return for each of the calls *old* what makes it one of torch.amp, imports included.

    Calls by names of one import are mended together or not at all: each has the edits of all. A
    name that is used for anything but a call is left as it is.
    """
    every = list(old)
    imports = _amp_imports(script, every)
    found: dict[ast.Call, tuple[Edit, ...]] = {}
    groups: dict[Edit, list[ast.Call]] = {}
    for call in every:
        root = _root(call.func)
        if root is None:
            continue
        edit = imports.get(root.id)
        if edit is not None:
            groups.setdefault(edit, []).append(call)
        elif root.id not in imports and (mended := _amp_call(script, call, rename=True)):
            found[call] = tuple(mended)
    for edit, calls in groups.items():
        parts = [_amp_call(script, call, rename=False) for call in calls]
        if all(parts):
            together = (edit, *(piece for part in parts for piece in part))
            found |= dict.fromkeys(calls, together)
    return found


def _amp_imports(script: Script, calls: list[ast.Call]) -> dict[str, Edit | None]:
    """Return for each imported name the edit of its import; None where it cannot be changed."""
    called = {call.func for call in calls}
    roots = {root for call in calls if (root := _root(call.func)) is not None}
    found: dict[str, Edit | None] = {}
    for node in script.all(ast.ImportFrom, ast.Import):
        assert isinstance(node, ast.ImportFrom | ast.Import)
        names = [alias.asname or alias.name for alias in node.names]
        edit = _amp_import(script, node)
        if edit is ...:
            continue
        others = any(
            isinstance(use, ast.Name) and use.id in names and use not in roots | called
            for use in script.all(ast.Name)
        )
        others = others or any(name in script.functions for name in names)
        for name in names:
            found[name] = None if others or not isinstance(edit, Edit) else edit
    return found


def _amp_import(script: Script, node: ast.ImportFrom | ast.Import) -> Edit | object:
    """Return the edit of an import of the old names: None if it has none, ... if it is no such."""
    text = script.text_of(node)
    if isinstance(node, ast.ImportFrom):
        if node.module in {"torch.cuda.amp", "torch.cpu.amp"}:
            known = all(alias.name in {"autocast", "GradScaler"} for alias in node.names)
            start = node.col_offset + len("from ")
            whole = text.startswith(f"from {node.module} import")
            end = start + len(node.module)
            return (
                Edit(node.lineno, start, node.lineno, end, "torch.amp") if known and whole else None
            )
        if node.module == "torch.cuda" and [a.name for a in node.names] == ["amp"]:
            start = node.col_offset + len("from ")
            return Edit(node.lineno, start, node.lineno, start + len("torch.cuda"), "torch")
        return ...
    return None if any(a.name == "torch.cuda.amp" and a.asname for a in node.names) else ...


def _amp_call(script: Script, call: ast.Call, *, rename: bool) -> list[Edit]:
    """Return the edits of one call: its name when it is written in full, and its arguments."""
    full = script.dotted(call.func)
    device = "cpu" if full.startswith("torch.cpu") else "cuda"
    last = full.rpartition(".")[2]
    if any(isinstance(a, ast.Starred) for a in call.args) or "autocast_mode" in full:
        return []
    edits: list[Edit] = []
    if rename:
        written = script.text_of(call.func)
        if not re.fullmatch(r"torch\.(?:cuda|cpu)\.amp\.\w+", written):
            return []
        edits.append(_over(call.func, f"torch.amp.{last}"))
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    line, column = _end(call.func)
    place = _begin(given[0]) if given else (line, column + 1)
    edits.append(Edit(*place, *place, f'"{device}"{", " if given else ""}'))
    if last == "autocast":
        if len(call.args) > len(_OLD_AUTOCAST):
            return []
        for name, value in zip(_OLD_AUTOCAST, call.args, strict=False):
            spot = (value.lineno, value.col_offset)
            if spot == place:
                edits[-1] = Edit(*place, *place, f'"{device}", {name}=')
            else:
                edits.append(Edit(*spot, *spot, f"{name}="))
    return edits


def _root(node: ast.expr) -> ast.Name | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node if isinstance(node, ast.Name) else None


def _begin(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.keyword) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _over(node: ast.expr | ast.keyword, text: str) -> Edit:
    return Edit(*_begin(node), *_end(node), text)
