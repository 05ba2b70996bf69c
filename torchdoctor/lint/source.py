"""From paths to modules: which files, their text whatever its encoding, the cells of notebooks."""

from __future__ import annotations

import ast
import codecs
import fnmatch
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.lint.script import Script
from torchdoctor.model import DoctorError

LARGEST = 4 * 1024 * 1024
"""A larger file is data, not a program."""
SUFFIXES = (".py", ".ipynb")
LEFT_OUT = frozenset(
    ("__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", ".venv")
)
"""Folders that hold no code of one's own, unless they are named; hidden ones neither."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_IGNORE = re.compile(r"#\s*torchdoctor:\s*ignore(-file)?(?:\[([^\]]*)\])?")
_MAGIC = re.compile(r"^(\s*)(?:[%!?]|.*\S\?{1,2}\s*$)")
_ASSIGNED_MAGIC = re.compile(r"^(\s*\w+(?:\s*,\s*\w+)*\s*=\s*)[%!].*")


class Unreadable(Exception):  # noqa: N818 - it is an answer, not an error
    """Why a file is not looked at, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """One module: its text with line feeds only, and where its lines stand in the file."""

    file: str
    text: str
    cells: tuple[tuple[int, int], ...] = ()
    """Of a notebook: for each line its cell and its line in that cell, both from 1."""
    skipped: tuple[str, ...] = ()
    """What of a notebook could not be read."""


def files(paths: Iterable[str], exclude: Sequence[str] = ()) -> Iterator[tuple[str, bool]]:
    """Yield the files below *paths*, and whether each was named itself.

    Raises:
        DoctorError: a path does not exist.

    """
    seen: set[str] = set()
    for path in paths:
        if path == "-" or Path(path).is_file():
            found: Iterable[tuple[str, bool]] = [(path, True)]
        elif Path(path).is_dir():
            found = ((name, False) for name in _walk(path, exclude))
        elif Path(path).exists():
            raise DoctorError(f"{path} is no file and no folder.", file=path)
        else:
            raise DoctorError(f"{path} does not exist.", file=path)
        for name, named in found:
            if name not in seen:
                seen.add(name)
                yield name, named


def _walk(folder: str, exclude: Sequence[str]) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in LEFT_OUT
            and not name.startswith(".")
            and not _excluded(os.path.join(place, name), exclude)  # noqa: PTH118 - many files
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))  # noqa: PTH110, PTH118
        )
        for name in sorted(names):
            whole = os.path.join(place, name)  # noqa: PTH118 - many files
            if name.endswith(SUFFIXES) and not _excluded(whole, exclude):
                yield os.path.normpath(whole)


def _excluded(path: str, patterns: Sequence[str]) -> bool:
    plain = path.replace(os.sep, "/").removeprefix("./")
    parts = plain.split("/")
    return any(
        fnmatch.fnmatch(plain, pattern)
        or fnmatch.fnmatch(plain, f"*/{pattern}")
        or any(fnmatch.fnmatch(part, pattern) for part in parts)
        for pattern in patterns
    )


def read(file: str, raw: bytes) -> Source:
    """Return the module that *file* holds.

    Raises:
        Unreadable: it is too large, in no known encoding, or no notebook.

    """
    if len(raw) > LARGEST:
        raise Unreadable(f"larger than {LARGEST // 1024 // 1024} MB")
    if file.endswith(".ipynb"):
        return _notebook(file, raw)
    return Source(file, _lines(_decoded(raw)))


def _decoded(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("UTF-16, which Python does not read")
    encoding = "utf-8-sig"
    for line in raw.split(b"\n", 2)[:2]:
        if match := _COOKIE.match(line):
            encoding = match[1].decode("ascii")
            break
    try:
        codecs.lookup(encoding)
        text = raw.decode("utf-8-sig" if encoding.lower() in {"utf-8", "utf8"} else encoding)
    except LookupError:
        raise Unreadable(f"unknown encoding {encoding[:40]}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not {encoding}: byte {error.start} is wrong") from None
    except ValueError as error:  # a codec of something else than text
        raise Unreadable(f"not {encoding}: {str(error)[:60]}") from None
    return text


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _notebook(file: str, raw: bytes) -> Source:
    try:
        document = json.loads(raw)
        cells = document["cells"]
        assert isinstance(cells, list)
    except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
        raise Unreadable("no notebook of format 4") from None
    rows: list[str] = []
    places: list[tuple[int, int]] = []
    skipped: list[str] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        code = _cell(cell.get("source", ""))
        if code is None:
            continue
        try:
            parse("\n".join(code))
        except Unreadable as error:
            skipped.append(f"{file}: cell {number}: {error}")
            continue
        rows += code
        places += [(number, line) for line in range(1, len(code) + 1)]
    return Source(file, "\n".join(rows) + "\n", tuple(places), tuple(skipped))


def _cell(source: object) -> list[str] | None:
    """Return the lines of a cell as plain Python, as many as there were; None if it is another."""
    if isinstance(source, list):
        source = "".join(part for part in source if isinstance(part, str))
    if not isinstance(source, str):
        return None
    lines = _lines(source).split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not re.match(r"%%(?:time|timeit|capture|prun)\b", first):
        return None
    shown: list[str] = []
    for line in lines:
        if match := _ASSIGNED_MAGIC.match(line):
            shown.append(f"{match[1]}None")
        elif match := _MAGIC.match(line):
            shown.append(f"{match[1]}pass")
        else:
            shown.append(line)
    return shown


def parse(text: str) -> ast.Module:
    """Return the syntax tree of *text*.

    Raises:
        Unreadable: it is no Python, or nested too deeply to be read.

    """
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the user's code are not ours to print
            tree = compile(text, "<module>", "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        line = f"line {error.lineno}: " if error.lineno else ""
        raise Unreadable(f"{line}{str(error.msg)[:80]}") from None
    except (RecursionError, MemoryError):
        raise Unreadable("nested too deeply") from None
    except ValueError as error:  # a NUL
        raise Unreadable(str(error)[:80]) from None
    assert isinstance(tree, ast.Module)
    return tree


def script(source: Source) -> Script:
    """Return *source* parsed.

    Raises:
        Unreadable: it is no Python that this interpreter can read.

    """
    return Script(source.text, parse(source.text), notebook=bool(source.cells))


def ignored(text: str) -> tuple[dict[int, frozenset[str]], frozenset[str]]:
    """Return the rules that comments in *text* turn off, by line, and for all of the file.

    An empty set stands for all rules. A comment that stands alone holds for the next line.
    """
    lines: dict[int, frozenset[str]] = {}
    whole: set[str] = set()
    if "torchdoctor:" not in text:
        return lines, frozenset()
    for number, line in enumerate(text.split("\n"), 1):
        if (match := _IGNORE.search(line)) is None:
            continue
        names = frozenset(filter(None, (n.strip() for n in (match[2] or "").split(","))))
        if match[1]:
            whole |= names or {"all"}
        else:
            at = number + 1 if line.lstrip().startswith("#") else number
            lines[at] = names
    return lines, frozenset(whole)
