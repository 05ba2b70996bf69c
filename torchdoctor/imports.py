"""What a program imports before torch, read from its source; nothing of it is run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from torchdoctor.model import DoctorError

LARGEST = 4 * 1024 * 1024
MOST = 100
TORCH = frozenset(("torch", "torchvision", "torchaudio"))
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def given(modules: list[str], script: str | None) -> tuple[str, ...]:
    """Return the modules of ``--after`` (commas between several) and those of ``--script``.

    Raises:
        DoctorError: a name is none, or the script cannot be read.

    """
    names = [name.strip() for word in modules for name in word.split(",") if name.strip()]
    for name in names:
        if not _NAME.fullmatch(name):
            raise DoctorError(f"{name!r} is no name of a module; give one as PyQt6.", kind="usage")
    if script is not None:
        names += before_torch(script)
    return tuple(dict.fromkeys(names))


def before_torch(script: str) -> list[str]:
    """Return what the program *script* imports before torch, in order.

    Modules of its own, which lie beside it, are left out: they may do anything. A program that
    never imports torch by itself may get it by any of its imports, so all of them are given.

    Raises:
        DoctorError: it cannot be read, or is no Python.

    """
    path = Path(script)
    try:
        if path.stat().st_size > LARGEST:
            raise DoctorError(f"{script} is too large for a program.", file=script)
        tree = ast.parse(path.read_bytes(), script)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DoctorError(f"{script} cannot be read: {reason}.", file=script) from error
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DoctorError(
            f"{script} is no program that this Python can read: {error}.", file=script
        ) from error
    names: list[str] = []
    for name in _imported(tree.body):
        top = name.partition(".")[0]
        if top in TORCH:
            break
        own = (path.parent / f"{top}.py").exists() or (path.parent / top).is_dir()
        if top != "__future__" and not own and name not in names:
            names.append(name)
    return names[:MOST]


def _imported(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the modules that running *body* imports at once, in order; functions are not run."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ("body", "orelse", "finalbody"):
                yield from _imported(
                    [n for n in getattr(node, part, []) if isinstance(n, ast.stmt)]
                )
