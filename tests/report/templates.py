"""Every sentence that the code can say, read from its syntax, not from a run.

A sentence is a template: ``{name}`` stands for what is put in at run time. Where the code shows
what may be put in (one of two phrases, what a function returns), the phrases are templates too.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
MODULES = (
    *("conda_steps", "distributed_steps", "dlls", "gpu", "install_steps", "loading", "nvidia"),
    *("requirements", "trials"),
)
FILES = (
    *sorted((ROOT / "checks").glob("[a-z]*.py")),
    *sorted((ROOT / "torchdoctor/steps").glob("*.py")),
    *(ROOT / "torchdoctor" / f"{name}.py" for name in MODULES),
    *sorted((ROOT / "torchdoctor/distributed").glob("*.py")),
    ROOT / "torchdoctor/run.py",
    *(ROOT / "torchdoctor/report" / f"{n}.py" for n in ("document", "words", "text", "markdown")),
)
DEEPEST, MOST_WAYS = 4, 8

_NOT_SAID = frozenset(
    (
        *("Evidence", "Commands", "Symptom", "Location", "DoctorError", "slug", "cast", "field"),
        *("getattr", "isinstance", "frozenset", "Detail", "Requirement", "AssertionError", "Gpu"),
    )
)
_METHODS_NOT_SAID = frozenset(
    (
        *("compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "in_all"),
        *("startswith", "endswith", "split", "partition", "rpartition"),
        *("removeprefix", "removesuffix", "replace", "strip", "lstrip", "rstrip", "get", "load"),
        *("symptom", "seen", "told", "encode", "decode", "index", "find", "count"),
    )
)
_NOT_SAID_AS = frozenset(
    (
        *("bash", "powershell", "cmd", "name", "source", "metavar", "after", "key"),
        *("because_of", "family"),
    )
)
_COMMAND = re.compile(
    r"(?:sudo|docker|pip|python|conda|mamba|uv|wsl|export|set|unset|rm|mv|ln|nvidia-smi|winget|"
    r"Get-|Set-|Add-|New-|Remove-|Restart-|Install-|Enable-|reg|dism|apt-get|systemctl|ulimit|"
    r"torchrun|srun|torchdoctor|modprobe|echo|cat|git|softwareupdate|\$env|& )(?: |$)"
)
_SAID_IN_TABLES = frozenset(("says", "summary", "title", "why"))
_WORD = re.compile(r"[A-Za-z]*[a-z]")


@dataclass(frozen=True)
class Template:
    """Text with holes, and for some of them the templates that may fill them."""

    text: str
    ways: tuple[tuple[str, tuple[Template, ...]], ...] = ()

    @property
    def literal(self) -> str:
        return re.sub(r"\{\w+\}", "", self.text)

    @property
    def is_prose(self) -> bool:
        """Tell whether it is something to translate: words, not a name or a command."""
        bare = self.literal
        return (
            " " in self.text.strip(" {}")
            and bool(_WORD.search(bare))
            and " " in bare
            and (self.text.endswith(".") or not _COMMAND.match(self.text))
        )


@dataclass
class Module:
    """A module's syntax, and where its names come from."""

    tree: ast.Module
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[tuple[ast.Call, ast.FunctionDef | None]]] = field(default_factory=dict)


@cache
def module(path: Path) -> Module:
    tree = ast.parse(path.read_text("utf-8"))
    found = Module(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.functions[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.constants[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found.constants[node.target.id] = node.value
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                found.imports[name.asname or name.name] = f"{node.module}.{name.name}"
    for function in [*found.functions.values()]:
        for part in ast.walk(function):
            if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
                found.calls.setdefault(part.func.id, []).append((part, function))
    return found


def file_of(dotted: str) -> Path | None:
    parts = dotted.split(".")
    if parts[0] != "torchdoctor":
        return None
    base = ROOT / "/".join(parts[:1]) if parts[1:2] != ["checks"] else ROOT
    place = base.joinpath(*parts[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.exists():
            return path
    return None


class Reader:
    """Reads the templates of one expression in its place."""

    def __init__(self, home: Module, function: ast.FunctionDef | None, depth: int = 0) -> None:
        self.home, self.function, self.depth = home, function, depth
        self.holes = 0

    def template(self, node: ast.expr) -> Template:
        """Return the template that *node*, a text with or without holes, is."""
        parts: list[str] = []
        ways: list[tuple[str, tuple[Template, ...]]] = []
        for part in self.parts(node):
            if isinstance(part, str):
                parts.append(_escaped(part))
                continue
            name = self._name(part)
            while any(name == known for known, _ in ways) or f"{{{name}}}" in parts:
                name += "_"
            parts.append(f"{{{name}}}")
            if isinstance(part, ast.Call) and _is_join(part):
                ways.append((name, (Template(str(part.func.value.value)),)))  # type: ignore[attr-defined]
                continue
            known = tuple(dict.fromkeys(self.ways(part)))
            if known and len(known) <= MOST_WAYS:
                ways.append((name, known))
        return Template("".join(parts), tuple(ways))

    def parts(self, node: ast.expr) -> Iterator[str | ast.expr]:
        """Yield the texts and the expressions that *node* is put together of."""
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=values):
                for value in values:
                    if isinstance(value, ast.FormattedValue):
                        if isinstance(value.value, ast.Constant | ast.JoinedStr):
                            yield from self.parts(value.value)
                        else:
                            yield value.value
                    else:
                        yield from self.parts(value)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                yield from self.parts(left)
                yield from self.parts(right)
            case _:
                yield node

    def _name(self, node: ast.expr) -> str:
        match node:
            case ast.Name(id=name):
                return name
            case ast.Attribute(attr=name):
                return name
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
                return name.strip("_")
        self.holes += 1
        return f"x{self.holes}"

    def ways(self, node: ast.expr) -> Iterator[Template]:  # noqa: C901, PLR0912 - a case a kind
        """Yield what *node* may be, as far as the code shows it; nothing where it does not."""
        if self.depth > DEEPEST:
            return
        deeper = Reader(self.home, self.function, self.depth + 1)
        match node:
            case ast.Constant(value=str(text)):
                yield Template(_escaped(text))
            case ast.JoinedStr() | ast.BinOp(op=ast.Add()):
                yield deeper.template(node)
            case ast.IfExp(body=body, orelse=orelse):
                yield from deeper.ways(body)
                yield from deeper.ways(orelse)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from deeper.ways(value)
            case ast.NamedExpr(value=value):
                yield from deeper.ways(value)
            case ast.Name(id=name):
                yield from deeper.of_name(name)
            case ast.Subscript(value=ast.Name(id=name)):
                yield from deeper.of_table(name)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")):
                yield from deeper.of_table(name)
            case ast.Call(func=ast.Name(id=name)) if name in self.home.functions:
                yield from _returned(self.home, self.home.functions[name], self.depth + 1)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=where), attr=name)):
                path = file_of(self.home.imports.get(where, ""))
                if path and name in module(path).functions:
                    yield from _returned(module(path), module(path).functions[name], self.depth + 1)

    def of_table(self, name: str) -> Iterator[Template]:
        table = self.home.constants.get(name)
        if isinstance(table, ast.Dict):
            for value in table.values:
                yield from self.ways(value)

    def of_name(self, name: str) -> Iterator[Template]:  # noqa: C901 - a case a kind
        if self.function is None or name in self.home.constants:
            if name in self.home.constants:
                yield from self.ways(self.home.constants[name])
            return
        for node in ast.walk(self.function):
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    yield from self.ways(value)
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                    for one, value in zip(names, values, strict=False):
                        if isinstance(one, ast.Name) and one.id == name:
                            yield from self.ways(value)
                case ast.NamedExpr(target=ast.Name(id=target), value=value) if target == name:
                    yield from self.ways(value)
                case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                    yield from self.ways(value)
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if (
                    target == name
                ):
                    yield from self.ways(value)
        yield from self._of_parameter(name)

    def _of_parameter(self, name: str) -> Iterator[Template]:
        assert self.function is not None
        arguments = self.function.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if name not in names and name not in [a.arg for a in arguments.kwonlyargs]:
            return
        for call, caller in self.home.calls.get(self.function.name, ()):
            given = {k.arg: k.value for k in call.keywords}
            if name in given:
                value: ast.expr | None = given[name]
            else:
                place = names.index(name) if name in names else len(call.args)
                value = call.args[place] if place < len(call.args) else None
            if value is not None:
                yield from Reader(self.home, caller, self.depth + 1).ways(value)


def _escaped(text: str) -> str:
    if re.search(r"\{\w+\}", text):  # it is given to str.format
        return text
    return text.replace("{", "{{").replace("}", "}}")


def _is_join(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "join"
        and isinstance(call.func.value, ast.Constant)
        and " and " in str(call.func.value.value)
    )


def _returned(home: Module, function: ast.FunctionDef, depth: int) -> Iterator[Template]:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from Reader(home, function, depth).ways(node.value)


def said_in(path: Path) -> Iterator[Template]:
    """Yield every template in the file *path*."""
    home = module(path)
    for function, node in _texts(home.tree, None):
        yield Reader(home, function).template(node)


def _texts(  # noqa: C901, PLR0911, PLR0912 - a case a kind of node
    node: ast.AST, function: ast.FunctionDef | None
) -> Iterator[tuple[ast.FunctionDef | None, ast.expr]]:
    """Yield the outermost texts below *node* that may be shown, each with its function."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Constant(value=str()):
            yield function, node
            return
        case ast.JoinedStr():
            yield function, node
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    yield from _texts(value.value, function)
            return
        case ast.BinOp(op=ast.Add()) if _is_text(node):
            yield function, node
            for part in Reader(Module(ast.Module([], [])), None).parts(node):
                if not isinstance(part, str):
                    yield from _texts(part, function)
            return
        case ast.Compare() | ast.Dict(keys=[]):
            return
        case ast.Dict(values=values):
            for value in values:
                yield from _texts(value, function)
            return
        case ast.Subscript(value=value):
            yield from _texts(value, function)
            return
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            if name in _NOT_SAID or (
                isinstance(node.func, ast.Attribute) and name in _METHODS_NOT_SAID
            ):
                if isinstance(node.func, ast.Attribute):
                    yield from _texts(node.func.value, function)
                return
            if isinstance(node.func, ast.Attribute):
                yield from _texts(node.func.value, function)
            for value in node.args:
                yield from _texts(value, function)
            for keyword in node.keywords:
                if keyword.arg not in _NOT_SAID_AS:
                    yield from _texts(keyword.value, function)
            return
        case ast.FunctionDef(body=body):
            for statement in body:
                yield from _texts(statement, node)
            return
        case ast.arguments() | ast.Import() | ast.ImportFrom() | ast.MatchValue():
            return
        case ast.AnnAssign(value=value):
            if value is not None:
                yield from _texts(value, function)
            return
    for child in ast.iter_child_nodes(node):
        yield from _texts(child, function)


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _is_text(left) or _is_text(right)
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
    return False


def all_of_them() -> Iterator[Template]:
    """Yield the templates of all files, prose or not."""
    for path in FILES:
        yield from said_in(path)
    for path in sorted((ROOT / "torchdoctor/tables").glob("*.toml")):
        yield from map(Template, _told(tomllib.loads(path.read_text("utf-8"))))


def _told(value: object, key: str = "") -> Iterator[str]:
    """Yield the sentences in a table: what stands under a key that is for people."""
    if isinstance(value, str) and key in _SAID_IN_TABLES:
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _told(item, name)
    elif isinstance(value, list):
        for item in value:
            if key == "causes" and isinstance(item, list):
                yield str(item[1])
            else:
                yield from _told(item, key)


def every() -> dict[str, Template]:
    """Return every template that is prose, also within others, by its text."""
    found: dict[str, Template] = {}

    def add(template: Template) -> None:
        if template.is_prose:
            found.setdefault(template.text, template)
        for _, ways in template.ways:
            for way in ways:
                add(way)

    for template in all_of_them():
        add(template)
    return found


def main() -> None:
    for text in sorted(every()):
        sys.stdout.write(json.dumps(text, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
