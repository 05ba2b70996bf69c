"""On which ranks a line runs: what the conditions above it say, and those above its callers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from torchdoctor.lint.script import DEEP, Function, Script

_RANK = re.compile(
    r"(?:^|_)rank\d?$|rank_(?:id|idx|index)$|^gpu(?:_?(?:id|idx|index|rank|num))?$"
    r"|^(?:local_)?proc(?:ess)?_(?:id|index|idx)$|^procid$",
    re.IGNORECASE,
)
_VARIABLES = re.compile(r"^(?:LOCAL_|GLOBAL_|NODE_|GROUP_)?RANK$|^SLURM_(?:PROC|LOCAL)ID$|_RANK$")
_MAIN = re.compile(
    r"(?:^|_)(?:is_?)?(?:main|master|chief|primary|leader)(?:_?(?:process|proc|rank|node|worker))?$"
    r"|is_(?:local_|global_|world_)?(?:main|master|zero|first|root)|rank_?(?:0|zero)\b|rank_?(?:0|zero)$"
    r"|global_zero$|is_output_rank",
    re.IGNORECASE,
)
_MAIN_ONLY = re.compile(
    r"rank_?(?:0|zero)|(?:main|master|primary|chief)(?:_process|_rank|_node)?_only|only_(?:on_)?(?:main|master)"
    r"|on_(?:main|local_main|last)_process|master_only|primary_only",
    re.IGNORECASE,
)
_FIRST = re.compile(r"(?:main|master|zero|rank0)\w*first|first\w*(?:main|zero)", re.IGNORECASE)
_SEVERAL = re.compile(
    r"^(?:is_?|use_?)?(?:dist|distributed|ddp|parallel|multi_?gpu|multiprocessing_distributed)"
    r"(?:_run|_training|_mode)?$|^is_(?:dist_)?(?:avail|initialized|available)\w*$|^use_ddp$"
    r"|(?:^|_)distributed(?:_run)?$",
    re.IGNORECASE,
)
_WORLD = re.compile(
    r"(?:^|_)world_size$|^n(?:um)?_?gpus?$|num_(?:processes|replicas)$|world$", re.IGNORECASE
)
_ENDS = (ast.Return, ast.Continue, ast.Break, ast.Raise)
_EXITS = frozenset(("exit", "_exit", "quit"))


class Side(Enum):
    """Which ranks pass a condition."""

    ONE = "one rank"
    """One rank of the job, or one of each host."""
    REST = "the other ranks"
    ALONE = "no job of several ranks"


def is_rank(word: str) -> bool:
    """Tell whether *word* is a usual name of a rank, or a variable that holds one."""
    return bool(_RANK.search(word) or _VARIABLES.search(word))


def says_rank(script: Script, node: ast.AST, depth: int = DEEP) -> bool:
    """Tell whether *node*, or what it stands for, has to do with the rank."""
    return script.mentions(node, is_rank, depth)


def one_side(script: Script, node: ast.AST) -> tuple[Side, str] | None:
    """Return on which side of a rank guard *node* stands by itself, and the guard as written."""
    for side, test in own(script, node):
        if side is not Side.ALONE:
            return side, test
    return None


def own(script: Script, node: ast.AST) -> Iterator[tuple[Side, str]]:
    """Yield the rank guards of *node* within its function, from the inside out."""
    child = node
    for parent in script.above(node):
        yield from _conditions(script, parent, child)
        yield from _left_before(script, parent, child)
        if isinstance(parent, Function):
            if child not in parent.decorator_list:
                yield from _decorated(script, parent)
            return
        child = parent


def _conditions(script: Script, parent: ast.AST, child: ast.AST) -> Iterator[tuple[Side, str]]:
    """Yield what *parent* asks before it lets *child* run."""
    if isinstance(parent, ast.If | ast.IfExp | ast.While) and child is not parent.test:
        body = parent.body if isinstance(parent.body, list) else [parent.body]
        yield from _guard(script, parent.test, truth=child in body)
    elif isinstance(parent, ast.BoolOp) and isinstance(child, ast.expr):
        truth = isinstance(parent.op, ast.And)
        for value in parent.values[: parent.values.index(child)]:
            yield from _guard(script, value, truth=truth)


def _guard(script: Script, test: ast.expr, *, truth: bool) -> Iterator[tuple[Side, str]]:
    found = side(script, test, truth=truth)
    if found is not None:
        text = script.text_of(test)
        yield found, text if truth else f"not ({text})"


def _decorated(script: Script, function: Function) -> Iterator[tuple[Side, str]]:
    for decorator in function.decorator_list:
        if any(_MAIN_ONLY.search(word) for word in _words(decorator)):
            yield Side.ONE, f"@{script.text_of(decorator)}"


def _left_before(script: Script, parent: ast.AST, child: ast.AST) -> Iterator[tuple[Side, str]]:
    """Yield what holds after ``if rank != 0: return`` earlier in the same block."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if not isinstance(block, list) or child not in block:
            continue
        for statement in block[: block.index(child)]:
            if not isinstance(statement, ast.If):
                continue
            for branch, truth in ((statement.body, False), (statement.orelse, True)):
                if branch and _ends(script, branch[-1]):
                    yield from _guard(script, statement.test, truth=truth)


def _ends(script: Script, statement: ast.stmt) -> bool:
    if isinstance(statement, _ENDS):
        return True
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Call) and script.tail(value) in _EXITS


def side(script: Script, test: ast.expr, *, truth: bool, depth: int = DEEP) -> Side | None:
    """Return which ranks pass when *test* is *truth*; None when it says nothing of ranks."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, truth = test.operand, not truth
    if isinstance(test, ast.NamedExpr):
        test = test.value
    if isinstance(test, ast.BoolOp):
        return _several(script, test, truth=truth, depth=depth)
    if isinstance(test, ast.Compare):
        return _compared(script, test, truth=truth)
    word = _word(test)
    return None if word is None else _named(script, test, word, truth=truth, depth=depth)


def _named(script: Script, test: ast.expr, word: str, *, truth: bool, depth: int) -> Side | None:
    """Judge a name, or what is called, by its last *word*, or by what it stands for."""
    if _MAIN.search(word):
        return Side.ONE if truth else Side.REST
    if is_rank(word) and not isinstance(test, ast.Call):
        return Side.REST if truth else Side.ONE
    if _SEVERAL.search(word):
        return None if truth else Side.ALONE
    return _resolved(script, test, truth=truth, depth=depth)


def _several(script: Script, test: ast.BoolOp, *, truth: bool, depth: int) -> Side | None:
    sides = [side(script, value, truth=truth, depth=depth) for value in test.values]
    if isinstance(test.op, ast.And) is truth:  # all of them hold
        return next((s for s in (Side.ONE, Side.REST, Side.ALONE) if s in sides), None)
    told = {found for found in sides if found is not Side.ALONE}
    if not told:
        return Side.ALONE
    return told.pop() if len(told) == 1 else None


def _resolved(script: Script, test: ast.expr, *, truth: bool, depth: int) -> Side | None:
    """Follow a variable or a function of this module to the condition that it stands for."""
    if not depth:
        return None
    values: list[ast.expr | None] = []
    if isinstance(test, ast.Call):
        if isinstance(test.func, ast.Name):
            for function in script.functions.get(test.func.id, ()):
                last = function.body[-1]
                values.append(last.value if isinstance(last, ast.Return) else None)
    else:
        values = list(script.values.get(key, ())) if (key := script.key(test)) else []
    found = {
        side(script, value, truth=truth, depth=depth - 1)
        for value in values
        if value is not None and not isinstance(value, ast.Constant)
    }
    return found.pop() if len(found) == 1 else None


def _compared(script: Script, test: ast.Compare, *, truth: bool) -> Side | None:
    if len(test.ops) != 1:
        return None
    left, operator, right = test.left, test.ops[0], test.comparators[0]
    if not _is_rank_value(script, left):
        if not _is_rank_value(script, right):
            return _world(script, left, operator, right, truth=truth)
        left, right = right, left
    if isinstance(operator, ast.In | ast.NotIn):
        return _listed(right, truth=truth is isinstance(operator, ast.In))
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        return _equal(left, right, truth=truth is isinstance(operator, ast.Eq | ast.Is))
    return _ordered(operator, _number(right), truth=truth)


def _equal(rank: ast.expr, value: ast.expr, *, truth: bool) -> Side | None:
    if _number(value) == -1:  # the idiom for "not distributed"
        return Side.ALONE if truth else None
    if is_nothing(value):  # gpu is None may as well mean all of them
        known = (_word(rank) or "").lower().endswith("rank")
        return Side.ALONE if truth and known else None
    return Side.ONE if truth else Side.REST


def _ordered(operator: ast.cmpop, number: int | None, *, truth: bool) -> Side | None:
    """Judge ``rank > 0`` and its like by the least rank that passes it."""
    shift = {ast.Gt: 1, ast.GtE: 0, ast.Lt: 0, ast.LtE: 1}.get(type(operator))
    if number is None or shift is None:
        return None
    over = truth is isinstance(operator, ast.Gt | ast.GtE)
    if number + shift == 1:
        return Side.REST if over else Side.ONE
    return Side.ALONE if number + shift == 0 and not over else None


def _world(
    script: Script, left: ast.expr, operator: ast.cmpop, right: ast.expr, *, truth: bool
) -> Side | None:
    """Tell ``world_size > 1`` apart: where it does not hold, there is one process only."""
    if not script.mentions(left, lambda w: bool(_WORLD.search(w) or w == "WORLD_SIZE"), 1):
        return None
    number = _number(right)
    several = (isinstance(operator, ast.Gt | ast.NotEq) and number == 1) or (
        isinstance(operator, ast.GtE) and number == 2  # noqa: PLR2004 - two ranks are several
    )
    one = (isinstance(operator, ast.Eq | ast.LtE) and number == 1) or (
        isinstance(operator, ast.Lt) and number == 2  # noqa: PLR2004
    )
    return Side.ALONE if (several and not truth) or (one and truth) else None


def _listed(node: ast.expr, *, truth: bool) -> Side | None:
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return None
    numbers = {_number(item) for item in node.elts}
    if numbers == {-1}:
        return Side.ALONE if truth else None
    if 0 in numbers and numbers <= {-1, 0, None}:
        return Side.ONE if truth else Side.REST
    return None


def _is_rank_value(script: Script, node: ast.expr) -> bool:
    """Tell whether *node* is a rank: a name, a call, a variable of the environment, modulo."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        node = node.left
    if isinstance(node, ast.Call) and script.tail(node) in {"int", "str", "getenv", "get"}:
        return any(
            isinstance(part, ast.Constant)
            and isinstance(part.value, str)
            and _VARIABLES.search(part.value)
            for part in ast.walk(node)
        )
    if isinstance(node, ast.Subscript):
        key = node.slice
        return isinstance(key, ast.Constant) and bool(_VARIABLES.search(str(key.value)))
    word = _word(node)
    return word is not None and is_rank(word)


def _word(node: ast.expr) -> str | None:
    """Return the last word of a name, or of what is called."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _words(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _number(node: ast.expr) -> int | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return -inner if inner is not None else None
    if isinstance(node, ast.Constant):
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node.value, str) and re.fullmatch(r"-?\d{1,9}", node.value):
            return int(node.value)
    return None


def is_nothing(node: ast.expr) -> bool:
    """Tell whether *node* is None."""
    return isinstance(node, ast.Constant) and node.value is None


# ---- across functions ---------------------------------------------------------------------------


def open_to_all(script: Script, node: ast.AST, seen: frozenset[Function] = frozenset()) -> bool:
    """Tell whether every rank of a job is known to reach *node*.

    A function that nobody here calls may be guarded by who does: then it is not known.
    """
    if any(True for _ in own(script, node)) or _one_at_a_time(script, node):
        return False
    function = script.function(node)
    if function is None:
        return True
    if _entry(script, function):
        return True
    calls = script.callers(function)
    return function not in seen and any(
        open_to_all(script, call, seen | {function}) for call in calls
    )


def _one_at_a_time(script: Script, node: ast.AST) -> bool:
    """Tell whether *node* stands in ``with main_process_first():`` or the like."""
    return any(
        isinstance(parent, ast.With)
        and any(_FIRST.search(word) for item in parent.items for word in _words(item.context_expr))
        for parent in script.above(node)
    )


def _entry(script: Script, function: Function) -> bool:
    """Tell whether *function* is where a process begins."""
    if script.started(function):
        return True
    if script.callers(function):
        return False
    own_group = any(script.function(call) is function for call in script.groups)
    return own_group or function.name in {"main", "main_worker", "train_worker", "run_worker"}


def only_on(
    script: Script, node: ast.AST, seen: frozenset[Function] = frozenset()
) -> tuple[Side, str] | None:
    """Return the side that *node* is reached on, its callers' guards included.

    Callers count in a program only: in a library others may call the function as well.
    """
    if (found := one_side(script, node)) is not None:
        return found
    function = script.function(node)
    if function is None or function in seen or not script.runs or script.handed_on(function):
        return None
    sides = [only_on(script, call, seen | {function}) for call in script.callers(function)]
    told = [found for found in sides if found is not None]
    if not told or len(told) < len(sides) or len({found[0] for found in told}) > 1:
        return None
    return told[0]
