"""The exact commands of the installer that owns an environment: pip, uv, conda, pixi, poetry, pdm.

Which forms really change what is installed was measured with pip 26.3 and uv 0.13.9: a version
without its local label is a no-op beside any build of that release, and so is ``-U`` when the
wanted label sorts lower. So the label is always pinned, and the build without a label is asked
for with ``===``.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchdoctor import shells
from torchdoctor.facts import Interpreter, Unknown
from torchdoctor.model import Commands
from torchdoctor.values import dataclass

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
        if not self.version:  # whichever the index has
            return self.name
        return f"{self.name}{'===' if self.exact else '=='}{self.version}"


@dataclass(frozen=True, slots=True)
class Beside:
    """A package that is installed after torch, so that it takes the torch that is there."""

    name: str
    specifier: str
    """"==0.0.35", "===2.11.1", or nothing."""
    version: str = ""
    """The version that it brings, where it is known."""
    index: str | None = None
    """Where it is; None: the default index."""
    alone: bool = False
    """Whether its dependencies must be left out: they would bring another torch."""
    compiled: bool = False
    """Whether it is published as source only and compiled against the torch that is there."""
    whole_index: bool = False
    """Whether *index* has its dependencies too."""

    @property
    def requirement(self) -> str:
        """Return it as pip and uv read it."""
        return f"{self.name}{self.specifier}"


def beside(
    interpreter: Interpreter | Unknown, packages: Iterable[Beside], *, index: str | None = None
) -> Commands:
    """Return the commands that install *packages*, one after the other, beside torch.

    *index* is the one that torch came from, which a project has been told of by then.
    """
    lines = [line for p in packages for line in _beside(interpreter, p)]
    known = ("poetry", "source", "add")
    return shells.in_all(x for x in lines if not (x[:3] == known and x[-1] == index))


def _beside(interpreter: Interpreter | Unknown, package: Beside) -> list[Line]:
    need = package.requirement
    plain = need.replace("===", "==")
    options = ["--no-deps"] if package.alone else []
    if package.compiled:
        options.append("--no-build-isolation")
    name = CONDA_NAMES.get(package.name, package.name)
    spec = f"{name}={package.version.partition('+')[0]}" if package.version else name
    lines: list[Line] = []
    match _installer(interpreter):
        case "pixi":
            lines = [("pixi", "add", spec)]
        case "conda" | "mamba" as tool:
            lines = [(tool, "install", "-y", *_prefix(interpreter), "-c", "conda-forge", spec)]
        case "poetry":
            lines = _poetry_from(package.index, [plain])
        case "pdm":
            lines = [("pdm", "add", *(["--no-isolation"] if package.compiled else []), plain)]
        case "uv":
            option = "--default-index" if package.whole_index else "--index"
            where = [option, package.index] if package.index else []
            lines = [_uv(interpreter, "install", *options, need, *where)]
        case _:
            option = "--index-url" if package.whole_index else "--extra-index-url"
            where = [option, package.index] if package.index else []
            pip = (*_python(interpreter), "-m", "pip", "install")
            lines = [(*pip, *options, need, *where)]
    return lines


def install(  # noqa: PLR0913 - one command has that many sides
    interpreter: Interpreter | Unknown,
    packages: Iterable[Package],
    *,
    index: str | None = None,
    reinstall: bool = False,
    remove_first: Iterable[str] = (),
    target: str | None = None,
) -> Commands:
    """Return the commands that bring *packages* to exactly these versions.

    *index* is the address of the package index to take them from, None for the default one.
    *reinstall* replaces files even when the version is the same, and leaves dependencies alone.
    *remove_first* are distributions that have to go before. *target* is the folder that pip or uv
    was told to put them into (``--target``), where that is not the environment's own.
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
            where = (*_into(target), *(("--default-index", index) if index else ()))
            lines.append(_uv(interpreter, "install", *again, *_requirements(wanted), *where))
        case "conda" | "mamba" | "pixi" as tool if _conda_has(index):
            lines = _conda(tool, interpreter, wanted, index=index, reinstall=reinstall, gone=gone)
        case "poetry":
            lines = _poetry(wanted, index, gone)
        case "pdm":
            lines = [("pdm", "remove", *gone)] if gone else []
            if index:
                lines.append(("pdm", "config", "--local", "pypi.pytorch.url", index))
            lines.append(("pdm", "add", *_requirements(wanted)))
        case _:
            lines = _ensure_pip(interpreter, python)
            if gone:
                lines.append((*python, "-m", "pip", "uninstall", "-y", *gone))
            # With --target, pip replaces what is there only when told to upgrade.
            way = "--upgrade" if target else "--force-reinstall"
            again = [way, "--no-deps", *_into(target)] if reinstall else [*_into(target)]
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


def _into(target: str | None) -> list[str]:
    return ["--target", target] if target else []


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
        if tag and tag.startswith("cu"):  # else its solver takes the machine for one without a GPU
            need = ("pixi", "workspace", "system-requirements", "add", "cuda", tag[2:-1])
            lines.append(need)
        return [*lines, ("pixi", "add", *specs)]
    again = ("--force-reinstall",) if reinstall else ()
    prefix = _prefix(interpreter)
    lines = [(tool, "remove", "-y", "--force", *prefix, *removed)] if removed else []
    return [*lines, (tool, "install", "-y", *again, *prefix, "-c", "conda-forge", *specs)]


def _conda_has(index: str | None) -> bool:
    """Tell whether conda-forge has builds of the kind that *index* has: CPU and CUDA."""
    tag = (index or "").rstrip("/").rpartition("/")[2]
    return not index or ("download.pytorch.org" in index and tag.startswith(("cpu", "cu")))


def _conda_spec(package: Package, tag: str | None) -> str:
    """Return a conda match specification; the build string of torch tells CPU from CUDA there.

    conda-forge builds each release for one CUDA of a major, another than PyTorch's own, so that
    only the major is named; the companions follow the torch that is solved for.
    """
    name = CONDA_NAMES.get(package.name, package.name)
    release = package.version.partition("+")[0]
    if tag is None or package.name != "torch":
        return f"{name}={release}"
    return f"{name}={release}={'cpu*' if tag == 'cpu' else f'cuda{tag[2:-1]}*'}"


def _poetry(packages: tuple[Package, ...], index: str | None, gone: tuple[str, ...]) -> list[Line]:
    lines: list[Line] = [("poetry", "remove", *gone)] if gone else []
    # It does not know ===, and the index of one build has no other.
    return lines + _poetry_from(index, [p.requirement.replace("===", "==") for p in packages])


def _poetry_from(index: str | None, wanted: list[str]) -> list[Line]:
    if not index:
        return [("poetry", "add", *wanted)]
    source = "pytorch-" + index.rstrip("/").rpartition("/")[2]
    return [
        ("poetry", "source", "add", "--priority=explicit", source, index),
        ("poetry", "add", f"--source={source}", *wanted),
    ]
