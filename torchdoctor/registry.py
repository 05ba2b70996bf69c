"""Find the checks. A check is a module of checks/ that has a ``check`` function."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator

from torchdoctor import plugins
from torchdoctor.model import Finding
from torchdoctor.values import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """One module of checks/, as the runner sees it."""

    name: str
    family: str
    explains: str
    reads: tuple[str, ...]
    """The facts it names as parameters; ``facts`` is all of them, to build steps from."""
    bears_unknown: frozenset[str]
    """Those among them that it takes even when they are unknown."""
    after: tuple[str, ...]
    names: tuple[str, ...]
    """The findings it can make."""
    run: Callable[..., Iterator[Finding]]
    echoes: bool = False
    """Whether it only repeats what it was told, and keeps quiet about what the others found."""


def all_checks(path: Iterable[str] | None = None) -> dict[str, Check]:
    """Return every check by its name: ours in the order of the names, then those of plug-ins.

    *path* is where packages with plug-ins are looked for (default: ``sys.path``).
    """
    home = importlib.import_module("torchdoctor.checks")
    names = sorted(m.name for m in pkgutil.iter_modules(home.__path__) if m.name[0] != "_")
    ours = {check.name: check for check in map(load, names)}
    return {**ours, **{check.name: check for check in plugins.checks(ours, path)}}


def load(module_name: str) -> Check:
    """Return the check in ``checks/<module_name>.py``."""
    return of(importlib.import_module(f"torchdoctor.checks.{module_name}"))


def of(module: object, name: str | None = None) -> Check:
    """Return the check that *module* (anything with ``check``, ``FAMILY``, ``FINDS``) holds.

    It is called *name*, or as the module is.
    """
    run = module.check  # type: ignore[attr-defined]
    code, hints = run.__code__, run.__annotations__  # inspect.signature takes ten times as long
    reads = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return Check(
        name=name or module.__name__.rpartition(".")[2].replace("_", "-"),  # type: ignore[attr-defined]
        family=module.FAMILY,  # type: ignore[attr-defined]
        explains=(module.__doc__ or "").strip(),
        reads=reads,
        bears_unknown=frozenset(n for n in reads if "Unknown" in str(hints.get(n, ""))),
        after=getattr(module, "AFTER", ()),
        names=tuple(module.FINDS),  # type: ignore[attr-defined]
        run=run,
        echoes=getattr(module, "ECHOES", False),
    )
