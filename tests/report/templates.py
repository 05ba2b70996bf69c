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
SILENT = {
    *("__main__", "cli", "inputs", "interpreters", "redact", "resource", "select", "snapshot"),
    *("collect", "known", "listing", "output", "parser", "explain", "search", "as_json", "refresh"),
    *("printing", "from_index", "index", "settings", "translate", "parts", "report_words"),
    *("completion", "pytest_plugin", "arm", "junit", "advice", "manual", "manual_build"),
}
"""Modules whose sentences stand in no report: options, errors of usage, how tables are made."""
FOLDERS = ("checks", "windows", "torchdoctor")
FILES = tuple(
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("[a-z_]*.py"))
    if path.stem not in SILENT
    and not {"probes", "locale", "harness"} & set(path.relative_to(ROOT).parts)
)
DEEPEST, MOST_WAYS = 4, 8

QUOTED = Path(__file__).with_name("not_said.txt")
"""What the code knows of the texts of others, or of its own options, and no report says."""
_NOT_SAID = frozenset(
    (
        *("Evidence", "Commands", "Symptom", "Location", "DoctorError", "slug", "cast", "field"),
        *("getattr", "isinstance", "frozenset", "Requirement", "AssertionError", "Gpu"),
        *("ArgumentTypeError", "TypeVar", "TypeError", "_number"),
    )
)
_METHODS_NOT_SAID = frozenset(
    (
        *("compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "in_all"),
        *("startswith", "endswith", "split", "partition", "rpartition"),
        *("removeprefix", "removesuffix", "replace", "strip", "lstrip", "rstrip", "get", "load"),
        *("symptom", "seen", "told", "encode", "decode", "index", "find", "count"),
        *("add_argument", "add_argument_group", "add_parser", "set_defaults", "strptime"),
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
_EXPRESSION = re.compile(r"\\[sSwWdDbBAZ.()\[\]|?+*]|\(\?|\.[*+]|\[\^|^\^|\[\w-\w|[^.]\$$|%[sdr]")
"""What regular expressions have, and sentences have not."""
_MARKUP = re.compile(r"\s*</?[a-z!]")
_NOT_FOR_REPORTS = frozenset(("HELP", "ABOUT", "DESCRIPTION", "EPILOG"))
_SAID_IN_TABLES = frozenset(("says", "summary", "title", "why", "collect", "left_over", "no_wheel"))
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
            and (self.text.endswith(".") or ", and " in self.text or not _COMMAND.match(self.text))
            and not _EXPRESSION.search(bare)
            and not _MARKUP.match(self.text)
            and self.text not in quoted()
        )


@cache
def quoted() -> frozenset[str]:
    """Return the texts that are known and not said."""
    return frozenset(map(json.loads, QUOTED.read_text("utf-8").splitlines()))


@dataclass
class Module:
    """A module's syntax, and where its names come from."""

    tree: ast.Module
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    constants: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    calls: dict[str, list[tuple[ast.Call, ast.FunctionDef | None]]] = field(default_factory=dict)


class _Joined(ast.NodeTransformer):
    """Makes one text of what is put together in several statements: ``a = x``, then ``a += y``."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what is below, and join the statements of each block."""
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, list(self._block(block)))
        return node

    def _block(self, block: list[ast.stmt]) -> Iterator[ast.stmt]:
        texts: dict[str, ast.Assign] = {}
        for statement in block:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_text(value):
                    texts[name] = statement
                case ast.AugAssign(op=ast.Add(), target=ast.Name(id=name), value=value) if (
                    name in texts
                ):
                    texts[name].value = ast.BinOp(texts[name].value, ast.Add(), value)
                    continue
                case ast.If(
                    test=test,
                    body=[ast.AugAssign(op=ast.Add(), target=ast.Name(id=name), value=value)],
                    orelse=[],
                ) if name in texts:
                    more = ast.IfExp(test, value, ast.Constant(""))
                    texts[name].value = ast.BinOp(texts[name].value, ast.Add(), more)
                    continue
            yield statement


@cache
def module(path: Path) -> Module:
    tree = _Joined().visit(ast.parse(path.read_text("utf-8")))
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
            if set(known) - {ANY} and len(known) <= MOST_WAYS:
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

    def ways(self, node: ast.expr) -> Iterator[Template]:
        """Yield what *node* may be, as far as the code shows it; ANY where it does not."""
        found = tuple(self._ways(node))
        yield from found or (ANY,)

    def _ways(self, node: ast.expr) -> Iterator[Template]:  # noqa: C901, PLR0912 - a case a kind
        if self.depth > DEEPEST:
            return
        deeper = Reader(self.home, self.function, self.depth + 1)
        match node:
            case ast.Constant(value=str(text)):
                yield Template(_escaped(text))
            case ast.Constant(value=None):  # it is not put in
                yield Template("")
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
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=args):
                yield from deeper.of_table(name)
                yield from (way for value in args[1:] for way in deeper.ways(value))
            case ast.Call(func=ast.Attribute(value=ast.Dict(values=values), attr="get"), args=args):
                for value in (*values, *args[1:]):
                    yield from deeper.ways(value)
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


ANY = Template("{any}")
"""Stands for what the code does not show."""


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


@cache
def said_in(path: Path) -> tuple[Template, ...]:
    """Return every template in the file *path*."""
    home = module(path)
    return tuple(Reader(home, f).template(node) for f, node in _texts(home.tree, None))


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
        case ast.Assign(targets=[ast.Name(id=name)]) if name in _NOT_FOR_REPORTS:
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
                for value in node.args[1:] if name == "get" else ():
                    yield from _texts(value, function)
                return
            if isinstance(node.func, ast.Attribute):
                yield from _texts(node.func.value, function)
            for value in node.args:
                yield from _texts(value, function)
            for keyword in node.keywords:
                if keyword.arg not in _NOT_SAID_AS:
                    yield from _texts(keyword.value, function)
            return
        case ast.FunctionDef(name=name) if name == "configure" or name.endswith("options"):
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
        if path.stem.startswith("explained"):  # pages, which have a catalogue of their own
            continue
        yield from map(Template, _told(tomllib.loads(path.read_text("utf-8"))))


def texts() -> set[str]:
    """Return all that stands in the files, said or not, also within other texts."""
    found: set[str] = set()
    todo = [template for path in FILES for template in said_in(path)]
    while todo:
        one = todo.pop()
        if one.text not in found:
            found.add(one.text)
            todo += [way for _, known in one.ways for way in known]
    return found


def _told(value: object, key: str = "") -> Iterator[str]:
    """Yield the sentences in a table: what stands under a key that is for people."""
    if isinstance(value, str) and key in _SAID_IN_TABLES:
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _told(item, key if key in _SAID_IN_TABLES else name)
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
