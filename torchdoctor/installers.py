"""The exact commands of the installer that owns an environment: pip, uv, conda, pixi, poetry, pdm.

Which forms really change what is installed was measured with pip 26.3 and uv 0.13.9: a version
without its local label is a no-op beside any build of that release, and so is ``-U`` when the
wanted label sorts lower. So the label is always pinned, and the build without a label is asked
for with ``===``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torchdoctor import shells
from torchdoctor.facts import Interpreter, Unknown
from torchdoctor.model import Commands

Line = tuple[str, ...]

CONDA_NAMES = {"torch": "pytorch"}
"""Distributions that conda knows under another name."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package at one version: ``2.13.0+cu126`` with its label, ``2.13.0`` for the bare one."""

    name: str
    version: str
    exact: bool = False
    """Whether a build without a label is meant, when other builds of the version exist."""

    @property
    def requirement(self) -> str:
        """Return it as pip and uv read it."""
        return f"{self.name}{'===' if self.exact else '=='}{self.version}"


def install(
    interpreter: Interpreter | Unknown,
    packages: Iterable[Package],
    *,
    index: str | None = None,
    reinstall: bool = False,
    remove_first: Iterable[str] = (),
) -> Commands:
    """Return the commands that bring *packages* to exactly these versions.

    *index* is the address of the package index to take them from, None for the default one.
    *reinstall* replaces files even when the version is the same, and leaves dependencies alone.
    *remove_first* are distributions that have to go before.
    """
    wanted = tuple(packages)
    gone = tuple(remove_first)
    python = _python(interpreter)
    match _installer(interpreter):
        case "uv":
            lines = [_uv(interpreter, "uninstall", *gone)] if gone else []
            again = (
                ["--no-deps", *(f"--reinstall-package={p.name}" for p in wanted)]
                if reinstall
                else []
            )
            # Not --index-url: UV_DEFAULT_INDEX in the environment would win over it.
            where = ("--default-index", index) if index else ()
            lines.append(_uv(interpreter, "install", *again, *_requirements(wanted), *where))
        case "conda" | "mamba" | "pixi" as tool if not index or "download.pytorch.org" in index:
            lines = _conda(tool, interpreter, wanted, index=index, reinstall=reinstall, gone=gone)
        case "poetry":
            lines = _poetry(wanted, index, gone)
        case "pdm":
            lines = [("pdm", "remove", *gone)] if gone else []
            lines.append(("pdm", "add", *_requirements(wanted)))
        case _:
            lines = _ensure_pip(interpreter, python)
            if gone:
                lines.append((*python, "-m", "pip", "uninstall", "-y", *gone))
            again = ["--force-reinstall", "--no-deps"] if reinstall else []
            lines.append(
                (*python, "-m", "pip", "install", *again, *_requirements(wanted), *_index(index))
            )
    return shells.in_all(lines)


def uninstall(
    interpreter: Interpreter | Unknown, names: Iterable[str], *, times: int = 1
) -> Commands:
    """Return the commands that remove the distributions *names*.

    pip takes one installed copy away at a time, uv all of them: *times* is how many there are.
    """
    gone = tuple(names)
    match _installer(interpreter):
        case "uv":
            return shells.in_all([_uv(interpreter, "uninstall", *gone)])
        case "pixi":
            return shells.in_all([("pixi", "remove", *(CONDA_NAMES.get(n, n) for n in gone))])
        case "conda" | "mamba" as tool:
            known = (CONDA_NAMES.get(name, name) for name in gone)
            line = (tool, "remove", "-y", "--force", *_prefix(interpreter), *known)
        case _:
            line = (*_python(interpreter), "-m", "pip", "uninstall", "-y", *gone)
    return shells.in_all([line] * times)


def with_pip(interpreter: Interpreter | Unknown, *arguments: str) -> Commands:
    """Return a plain ``pip`` command in the environment, whoever owns it."""
    if not isinstance(interpreter, Unknown) and not interpreter.has_pip:
        return shells.in_all([_uv(interpreter, *arguments)])
    return shells.in_all([(*_python(interpreter), "-m", "pip", *arguments)])


def join(*commands: Commands) -> Commands:
    """Return *commands* one after the other."""
    return Commands(
        bash=tuple(line for c in commands for line in c.bash),
        powershell=tuple(line for c in commands for line in c.powershell),
        cmd=tuple(line for c in commands for line in c.cmd),
    )


def _installer(interpreter: Interpreter | Unknown) -> str:
    return "pip" if isinstance(interpreter, Unknown) else interpreter.installer


def _python(interpreter: Interpreter | Unknown) -> Line:
    if isinstance(interpreter, Unknown) or interpreter.redacted or not interpreter.executable:
        return ("python",)
    return (interpreter.executable,)


def _requirements(packages: Iterable[Package]) -> list[str]:
    return [package.requirement for package in packages]


def _index(index: str | None) -> list[str]:
    return ["--index-url", index] if index else []


def _uv(interpreter: Interpreter | Unknown, verb: str, *arguments: str) -> Line:
    python = _python(interpreter)
    which = ("--python", *python) if python != ("python",) else ()
    return ("uv", "pip", verb, *which, *arguments)


def _ensure_pip(interpreter: Interpreter | Unknown, python: Line) -> list[Line]:
    if isinstance(interpreter, Unknown) or interpreter.has_pip:
        return []
    return [(*python, "-m", "ensurepip", "--upgrade")]


def _prefix(interpreter: Interpreter | Unknown) -> Line:
    if isinstance(interpreter, Unknown) or interpreter.redacted:
        return ()
    return ("-p", interpreter.prefix)


def _conda(  # noqa: PLR0913 - one command has that many sides
    tool: str,
    interpreter: Interpreter | Unknown,
    packages: tuple[Package, ...],
    *,
    index: str | None,
    reinstall: bool,
    gone: tuple[str, ...],
) -> list[Line]:
    tag = index.rstrip("/").rpartition("/")[2] if index else None
    specs = [_conda_spec(package, tag) for package in packages]
    removed = [CONDA_NAMES.get(name, name) for name in gone]
    if tool == "pixi":
        lines: list[Line] = [("pixi", "remove", *removed)] if removed else []
        return [*lines, ("pixi", "add", *specs)]
    again = ("--force-reinstall",) if reinstall else ()
    prefix = _prefix(interpreter)
    lines = [(tool, "remove", "-y", "--force", *prefix, *removed)] if removed else []
    return [*lines, (tool, "install", "-y", *again, *prefix, "-c", "conda-forge", *specs)]


def _conda_spec(package: Package, tag: str | None) -> str:
    """Return a conda match specification; the build string tells CPU from CUDA there."""
    name = CONDA_NAMES.get(package.name, package.name)
    release = package.version.partition("+")[0]
    if tag is None:
        return f"{name}={release}"
    return f"{name}={release}={'cpu*' if tag == 'cpu' else tag.replace('cu', 'cuda') + '*'}"


def _poetry(packages: tuple[Package, ...], index: str | None, gone: tuple[str, ...]) -> list[Line]:
    lines: list[Line] = [("poetry", "remove", *gone)] if gone else []
    if not index:
        return [*lines, ("poetry", "add", *_requirements(packages))]
    source = "pytorch-" + index.rstrip("/").rpartition("/")[2]
    return [
        *lines,
        ("poetry", "source", "add", "--priority=explicit", source, index),
        ("poetry", "add", f"--source={source}", *_requirements(packages)),
    ]
