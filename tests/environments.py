"""Real environments to break: one is built and kept, tests get cheap copies of it.

The base is a venv of the running Python with torch and NumPy from pip, and the wheels it was made
of (so that a repair can be carried out without a network). It is built once for each Python and
requirement, under ``.cache/environments/``. A copy hard-links every file; :meth:`Environment.write`
breaks the link before it writes, so that the base and the other copies keep theirs.

Variables, for machines where pip does not find a CPU build of torch by itself:

``TORCHDOCTOR_TEST_TORCH``  the requirement, ``torch==2.13.0`` when unset
``TORCHDOCTOR_TEST_PIP``    more options for pip, such as ``--index-url ...``
``TORCHDOCTOR_TEST_CACHE``  another folder for the base
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REQUIREMENT = os.environ.get("TORCHDOCTOR_TEST_TORCH", "torch==2.13.0")
PIP_OPTIONS = tuple(shlex.split(os.environ.get("TORCHDOCTOR_TEST_PIP", "")))
CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = Path(
    os.environ.get("TORCHDOCTOR_TEST_CACHE") or CHECKOUT / ".cache" / "environments"
).absolute()
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
MORE = ("torchvision===0.28.0", "torchvision===0.26.0", "numpy==1.26.4", "pillow")
"""Wheels that some tests install: the untagged builds are those of the default index."""

_MORE_FROM = ("download", "--quiet", "--no-deps", "--only-binary=:all:")

_LEFT_OUT = re.compile(
    r"(PYTHON|PIP_|UV_|VIRTUAL_ENV|CONDA|MAMBA|PIXI|POETRY|LD_|CUDA|NVIDIA|NCCL|TORCH|HIP_|ROC|"
    r"COV_|PYTEST|__PYVENV)"
)


def environ(home: Path, path: Sequence[Path | str] = (), **more: str) -> dict[str, str]:
    """Return a clean environment for a child: *home* as HOME, *path* first on PATH.

    Nothing of this process that could change what an interpreter or pip finds gets through, and
    no child writes byte code into a copy.
    """
    kept = {name: value for name, value in os.environ.items() if not _LEFT_OUT.match(name)}
    kept["PATH"] = os.pathsep.join([*map(str, path), os.environ.get("PATH", os.defpath)])
    return kept | {
        "HOME": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **more,
    }


@dataclass(frozen=True)
class Base:
    """The environment that copies are made of, and the wheels it came from."""

    root: Path
    wheels: Path
    more: Path

    def wheel(self, pattern: str) -> Path | None:
        """Return the one wheel among MORE whose name matches *pattern*; None without one."""
        return next(self.more.glob(pattern), None)

    @property
    def torch_wheel(self) -> Path:
        """Return the wheel that torch was installed from."""
        (wheel,) = self.wheels.glob("torch-*.whl")
        return wheel

    @property
    def torch_version(self) -> str:
        """Return the version of torch, with its local label."""
        return self.torch_wheel.name.split("-")[1]


@dataclass(frozen=True)
class Environment:
    """An installed Python that a test may break."""

    root: Path
    python: Path
    site: Path

    def run(self, *arguments: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the interpreter with *arguments* in a neutral folder and return what came."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=home or self.root,
            env=environ(home or self.root),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def info(self, name: str) -> Path:
        """Return the dist-info folder of the distribution called *name* (as spelled there)."""
        (folder,) = self.site.glob(f"{name}-[0-9]*.dist-info")
        return folder

    def version(self, name: str) -> str | None:
        """Return the version of the one distribution called *name*; None when there is none."""
        folders = list(self.site.glob(f"{name}-[0-9]*.dist-info"))
        return folders[0].name.split("-")[1].removesuffix(".dist") if len(folders) == 1 else None

    def write(self, path: str | Path, text: str | bytes) -> Path:
        """Write *text* to *path* (below site-packages unless absolute) as a file of its own."""
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        assert target.parent.resolve().is_relative_to(self.root.resolve()), f"shared: {path}"
        write(target, text)
        return target

    def remove(self, path: str | Path) -> None:
        """Remove the file or folder *path* below site-packages."""
        target = self.site / path
        assert target.parent.resolve().is_relative_to(self.root.resolve()), f"shared: {path}"
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()


def write(path: Path, text: str | bytes) -> None:
    """Write *text* to *path* and leave other hard links to the old file as they are."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    beside.write_bytes(text.encode() if isinstance(text, str) else text)
    if path.exists():
        shutil.copymode(path, beside)
    beside.replace(path)


# ---- the base -----------------------------------------------------------------------------------


@cache
def base() -> Base:
    """Return the base environment; build it when this Python and requirement have none yet.

    Raises:
        subprocess.CalledProcessError: pip could not find or install what is asked for.

    """
    asked = "\n".join((sys.version, sys.base_prefix, REQUIREMENT, *PIP_OPTIONS, *MORE))
    key = f"{sys.implementation.cache_tag}-{hashlib.sha256(asked.encode()).hexdigest()[:12]}"
    home = CACHE / key
    with alone(CACHE):
        if not (home / "complete.json").is_file():
            _build(home)
    _sweep()
    return Base(home / "env", home / "wheels", home / "more")


def _build(home: Path) -> None:
    """Build under a name of its own, then rename: what has the right name is complete."""
    (CACHE / ".gitignore").write_text("*\n")
    draft = CACHE / f"draft-{os.getpid()}"
    shutil.rmtree(draft, ignore_errors=True)
    wheels = draft / "wheels"
    wheels.mkdir(parents=True)
    _call(
        sys.executable, "-m", "venv", "--copies" if os.name == "nt" else "--symlinks", draft / "env"
    )
    python = _layout(draft / "env").python
    pip = (python, "-m", "pip")
    what = (*_torch_requirement(pip), *PIP_OPTIONS)
    # pip takes its options from the variables of this machine here, and only here.
    _call(*pip, "download", "--quiet", "--dest", wheels, "numpy", "setuptools", *what)
    _call(*pip, "install", "--quiet", "--no-index", "--find-links", wheels, "numpy", what[0])
    for requirement in MORE:
        with contextlib.suppress(subprocess.CalledProcessError):  # no wheel for this Python
            _call(*pip, *_MORE_FROM, "--dest", draft / "more", requirement)
    _rewrite_config(draft / "env", home / "env")
    facts = {"python": sys.version, "requirement": what, "built": time.time()}
    (draft / "complete.json").write_text(json.dumps(facts))
    draft.rename(home)


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make something in *folder*; the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        if os.name != "nt":
            import fcntl  # noqa: PLC0415 - Windows has none

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _torch_requirement(pip: Sequence[str | Path]) -> tuple[str, ...]:
    """Return REQUIREMENT, or where that brings a CUDA build, the CPU build of that release."""
    report = _call(
        *pip,
        "install",
        "--dry-run",
        "--quiet",
        "--no-deps",
        "--report",
        "-",
        REQUIREMENT,
        *PIP_OPTIONS,
    )
    start = report.index("{")
    (found,) = json.loads(report[start:])["install"]
    version = found["metadata"]["version"]
    if "+" in version or not sys.platform.startswith("linux"):
        return (REQUIREMENT,)
    return (f"torch=={version}+cpu", "--extra-index-url", CPU_INDEX)


def _call(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def _layout(root: Path) -> Environment:
    """Return the venv in *root*, made of the running Python."""
    names = {"base": str(root), "platbase": str(root)}
    site = Path(sysconfig.get_path("purelib", "venv" if _HAS_VENV_SCHEME else None, names))  # type: ignore[arg-type]
    scripts = root / ("Scripts" if os.name == "nt" else "bin")
    return Environment(root, scripts / ("python.exe" if os.name == "nt" else "python"), site)


_HAS_VENV_SCHEME = "venv" in sysconfig.get_scheme_names()


def _rewrite_config(root: Path, final: Path) -> None:
    config = root / "pyvenv.cfg"
    lines = config.read_text().splitlines()
    kept = [line for line in lines if not line.startswith("command")]
    write(config, "\n".join([*kept, f"command = {sys.executable} -m venv {final}", ""]))


# ---- copies -------------------------------------------------------------------------------------


def copies() -> Path:
    """Return this process's folder for copies; it lies where the base can be linked to."""
    folder = CACHE / "copies" / str(os.getpid())
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def drop_copies() -> None:
    """Remove every copy that this process made."""
    shutil.rmtree(CACHE / "copies" / str(os.getpid()), ignore_errors=True)


def _sweep() -> None:
    """Remove what processes that are gone have left."""
    for folder in [*CACHE.glob("copies/*"), *CACHE.glob("draft-*")]:
        number = folder.name.removeprefix("draft-")
        if number.isdigit() and not _alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


SHARED = frozenset(
    {
        "site-packages/networkx",
        "site-packages/numpy",
        "site-packages/pip",
        "site-packages/setuptools",
        "site-packages/sympy",
        "torch/_inductor",
        "torch/distributed",
        "torch/include",
    }
)
"""Folders that hold four of five files and that no breakage touches."""


def copy(root: Path, *, whole: bool = True) -> Environment:
    """Make *root* a copy of the base environment, hard-linked where the system allows.

    Unless *whole*, the folders in SHARED are links to the base's: five times sooner made and gone,
    but nothing may be installed there.
    """
    link_tree(base().root, root, shared=frozenset() if whole else SHARED)
    _rewrite_config(root, root)
    return _layout(root)


def bare(root: Path, python: Path | str = sys.executable) -> Environment:
    """Make *root* a venv of *python* with nothing in it, not even pip."""
    _call(python, "-m", "venv", "--without-pip", root)
    (site,) = root.glob("lib/python*/site-packages")
    return Environment(root, root / "bin" / "python", site)


_NOT_COPIED = frozenset({"site-packages", "dist-packages", "test", "tests", "EXTERNALLY-MANAGED"})


def prefix(root: Path, *, whole: bool = True) -> Environment:
    """Make *root* a whole installation of the running Python with the base's packages.

    As conda has them: no venv, so the user site counts. *whole* as for :func:`copy`.
    """
    version = f"python{sysconfig.get_python_version()}"
    home = Path(sys.base_prefix)
    source = Path(sysconfig.get_path("stdlib"))
    library = root / "lib" / version
    link_tree(source, library, but=_NOT_COPIED)
    extensions = Path(sysconfig.get_config_var("DESTSHARED") or source / "lib-dynload")
    if extensions.is_dir() and not (library / "lib-dynload").exists():
        link_tree(extensions, library / "lib-dynload")
    (root / "bin").mkdir()
    executable = Path(os.path.realpath(sys.executable))
    _link(executable, root / "bin" / version)
    (root / "bin" / "python").symlink_to(version)
    for script in (base().root / "bin").glob("torch*"):  # RECORD lists them
        _link(script, root / "bin" / script.name)
    for library_file in home.glob("lib/libpython*.so*"):
        _link(library_file.resolve(), root / "lib" / library_file.name)
    shared = frozenset[str]() if whole else SHARED
    link_tree(_layout(base().root).site, library / "site-packages", shared=shared)
    return Environment(root, root / "bin" / "python", library / "site-packages")


def link_tree(
    source: Path, target: Path, but: Iterable[str] = (), shared: frozenset[str] = frozenset()
) -> None:
    """Make *target* a tree of hard links to the files of *source*.

    Names in *but* are left out; folders in *shared* (parent/name) become symbolic links.
    """
    target.mkdir(parents=True)
    names = frozenset(but)
    with os.scandir(source) as entries:
        for entry in entries:
            if entry.name in names:
                continue
            if entry.is_symlink():
                (target / entry.name).symlink_to(Path(entry.path).readlink())
            elif entry.is_dir():
                if f"{target.name}/{entry.name}" in shared:
                    (target / entry.name).symlink_to(entry.path)
                else:
                    link_tree(Path(entry.path), target / entry.name, names, shared)
            else:
                _link(entry.path, f"{target}/{entry.name}")  # no Path: there are 20 000


def _link(source: Path | str, target: Path | str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or too many links
        shutil.copy2(source, target)


# ---- distributions ------------------------------------------------------------------------------


def metadata(
    name: str, version: str, requires: Iterable[str] = (), provides_extra: Iterable[str] = ()
) -> str:
    """Return the text of a METADATA file."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    lines += [f"Provides-Extra: {extra}" for extra in provides_extra]
    return "\n".join(lines) + "\n"


def record_row(path: str, content: bytes) -> tuple[str, str, str]:
    """Return the line of RECORD for a file."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return path, f"sha256={digest}", str(len(content))


def record_text(rows: Iterable[Sequence[str]]) -> str:
    """Return the text of a RECORD file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def wheel(
    folder: Path,
    name: str,
    version: str,
    files: Mapping[str, str | bytes] | None = None,
    *,
    requires: Iterable[str] = (),
    extras: Iterable[str] = (),
    tag: str = "py3-none-any",
) -> Path:
    """Write a wheel of *files* to *folder* and return its path; an existing one is kept."""
    spelled = re.sub(r"[-_.]+", "_", name)
    path = folder / f"{spelled}-{version}-{tag}.whl"
    if path.exists():
        return path
    info = f"{spelled}-{version}.dist-info"
    content = {at: _bytes(text) for at, text in (files or {}).items()}
    content[f"{info}/METADATA"] = _bytes(metadata(name, version, requires, extras))
    content[f"{info}/WHEEL"] = _bytes(
        f"Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: false\nTag: {tag}\n"
    )
    rows = [record_row(at, data) for at, data in content.items()]
    rows.append((f"{info}/RECORD", "", ""))
    content[f"{info}/RECORD"] = _bytes(record_text(rows))
    folder.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{uuid.uuid4().hex[:8]}")
    with zipfile.ZipFile(draft, "w") as archive:
        for at, data in content.items():
            archive.writestr(at, data)
    draft.replace(path)
    return path


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def unpack(path: Path, site: Path, installer: str = "pip") -> Path:
    """Install the wheel *path* into *site* as an installer would; return its dist-info."""
    name, version = path.name.split("-")[:2]
    with zipfile.ZipFile(path) as archive:
        for member in (name for name in archive.namelist() if not name.endswith("/")):
            target = site / member
            target.parent.mkdir(parents=True, exist_ok=True)
            write(target, archive.read(member))
    info = site / f"{name}-{version}.dist-info"
    write(info / "INSTALLER", installer)
    rows = [*read_record(info), record_row(f"{info.name}/INSTALLER", installer.encode())]
    write(info / "RECORD", record_text(rows))
    return info


def read_record(info: Path) -> list[tuple[str, str, str]]:
    """Return the rows of the RECORD in the folder *info*."""
    with (info / "RECORD").open(newline="") as file:
        return [(path, digest, size) for path, digest, size in csv.reader(file)]


def relabel(
    environment: Environment,
    version: str,
    *,
    changes: Mapping[str, str | bytes] | None = None,
    requires: Iterable[str] | None = None,
    name: str = "torch",
) -> Path:
    """Turn the installed *name* into another build of itself whose RECORD is right.

    *changes* are files (relative to site-packages) with their new content; *requires*, when
    given, are the requirements of the new METADATA. Returns the new dist-info folder.
    """
    old = environment.info(name)
    rows = {path: (path, digest, size) for path, digest, size in read_record(old)}
    text = (old / "METADATA").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^Version: .*$", f"Version: {version}", text, count=1)
    if requires is not None:
        text = re.sub(r"(?m)^(Requires-Dist|Provides-Extra): .*\n", "", text)
        lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
        text = text.replace(f"Version: {version}\n", f"Version: {version}\n{lines}", 1)
    new = old.with_name(f"{name}-{version}.dist-info")
    old.rename(new)
    rows = {
        path.replace(f"{old.name}/", f"{new.name}/", 1): (
            path.replace(f"{old.name}/", f"{new.name}/", 1),
            digest,
            size,
        )
        for path, digest, size in rows.values()
    }
    for path, content in {**(changes or {}), f"{new.name}/METADATA": text}.items():
        environment.write(path, content)
        rows[path] = record_row(path, _bytes(content))
    write(new / "RECORD", record_text(rows.values()))
    return new


# ---- processes ----------------------------------------------------------------------------------


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """Yield number and command line of every process that has *mark* in its environment."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (folder / "environ").read_bytes():
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
                if words:  # a zombie has none
                    yield int(folder.name), words.decode(errors="replace")
