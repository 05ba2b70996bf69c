"""A Windows of our own: Wine in a prefix of its own, and a real Windows CPython put together.

Everything comes from package indexes when a test asks for it, and is kept in ``.cache``; nothing
of it is committed. What cannot be had is :class:`Unavailable`, with the reason.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.windows.make_facts import Wheel, get
from tests.windows.wine.program import python_exe
from tests.windows.writer import Dll, write
from torchdoctor import child
from torchdoctor.child import Run
from windows import pe

CACHE = Path(__file__).parents[3] / ".cache"
WHEELS = Path(os.environ.get("TORCHDOCTOR_WHEELS") or CACHE / "wheels")
HERE = Path(__file__).parent
INSIDE = HERE / "inside.py"
INTERPRETER = "python311.dll"
PACKAGES = ("wine", "wine64")

PYTHON = {
    "msvc-runtime 14.21.27702": "3.7",
    "msvc-runtime 14.27.29016": "3.8",
    "msvc-runtime 14.29.30133": "3.8",
    "msvc-runtime 14.51.36231": "3.12",
    "torchvision 0.14.1": "3.10",
    "torch 1.10.2": "3.9",
}
"""For which Python a wheel is downloaded, where that is not 3.11."""
LEFT_IN_THE_WHEEL = ("/include/", "/test/", "/share/cmake/")

RUNTIME = (
    "msvcp140",
    "msvcp140_1",
    "msvcp140_2",
    "msvcp140_atomic_wait",
    "msvcp140_codecvt_ids",
    "vcruntime140",
    "vcruntime140_1",
    "vcruntime140_threads",
    "concrt140",
    "vcomp140",
    "vccorlib140",
    "vcamp140",
)
"""What Wine must take from the files that are there, not from its own stand-ins."""

DEPENDENCIES = (
    "typing-extensions",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "MarkupSafe",
    "filelock",
    "fsspec",
)
"""What ``import torch`` imports of others."""


class Unavailable(Exception):  # noqa: N818 - it says what the thing is
    """Something that Wine or the index would have to give is not to be had here."""


def windows_path(path: Path) -> str:
    """Return *path* as a program under Wine names it."""
    return "Z:" + str(path).replace("/", "\\")


# ---- what is downloaded ----


def _made(place: Path, make: Callable[[Path], None]) -> Path:
    """Return *place*, made by *make* unless it is there; never half of it."""
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            new = Path(folder, "new")
            new.mkdir()
            make(new)
            if not place.exists():
                new.rename(place)
    return place


def wheel(spec: str) -> Path:
    """Return the file of the wheel *spec*, as in "torch 2.9.1"."""
    name, version = spec.split()
    WHEELS.mkdir(parents=True, exist_ok=True)
    try:
        return get(Wheel(name, version, (), PYTHON.get(spec, "3.11")), WHEELS)
    except (OSError, subprocess.CalledProcessError, StopIteration) as error:
        raise Unavailable(f"{spec} cannot be downloaded: {error}") from None


@functools.cache
def unpacked(spec: str) -> Path:
    """Return the folder of the wheel *spec*, unpacked but for headers and tests."""

    def make(folder: Path) -> None:
        with zipfile.ZipFile(wheel(spec)) as archive:
            wanted = [
                name
                for name in archive.namelist()
                if not name.endswith(".lib") and not any(part in name for part in LEFT_IN_THE_WHEEL)
            ]
            archive.extractall(folder, wanted)

    return _made(CACHE / "wine" / "unpacked" / spec.replace(" ", "-"), make)


def runtime(version: str) -> Path:
    """Return the folder with the DLLs of the VC++ runtime *version*, a whole version."""
    return next(unpacked(f"msvc-runtime {version}").glob("*.data/data/Scripts"))


@functools.cache
def libraries(*names: str) -> Path:
    """Return a folder with the packages *names* for Windows, without what they need."""

    def make(folder: Path) -> None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
        command += ["--only-binary=:all:", "--platform", "win_amd64", "--python-version", "3.11"]
        try:
            subprocess.run([*command, "--target", str(folder), *names], check=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"{' '.join(names)} cannot be downloaded: {error}") from None

    return _made(CACHE / "wine" / "-".join(("libraries", *names)), make)


# ---- a Windows CPython ----


@functools.cache
def python() -> Path:
    """Return the folder of a Windows CPython 3.11: panda3d's DLLs, this system's ``.py`` files.

    As python.org's, it has vcruntime140.dll and vcruntime140_1.dll beside python.exe and no
    msvcp140.dll.
    """
    return _made(CACHE / "wine" / "python311", _make_python)


def _make_python(folder: Path) -> None:
    source = unpacked("panda3d 1.10.16") / "deploy_libs"
    for path in source.iterdir():
        if path.suffix in {".pyd", ".dll"} and not path.name.startswith("api-ms-"):
            beside = path.name.lower() in {INTERPRETER, "vcruntime140.dll"}
            place = folder if beside else folder / "DLLs"
            place.mkdir(exist_ok=True)
            shutil.copy(path, place / path.name)
    shutil.copy(runtime("14.34.31931") / "vcruntime140_1.dll", folder)
    (folder / "python.exe").write_bytes(python_exe(INTERPRETER))
    stem = INTERPRETER.removesuffix(".dll")
    names = pe.read(folder / INTERPRETER).exports
    forwards = {name: f"{stem}.{name}" for name in names}
    (folder / "python3.dll").write_bytes(write(Dll(forwards=forwards)))
    ignored = shutil.ignore_patterns(
        "site-packages", "lib-dynload", "test", "config-*", "__pycache__", "idlelib", "ensurepip"
    )
    shutil.copytree(_standard_library(), folder / "Lib", ignore=ignored)
    (folder / "Lib" / "site-packages").mkdir()


def _standard_library() -> str:
    """Return the folder of the ``.py`` files of a CPython 3.11 of this system."""
    program = sys.executable if sys.version_info[:2] == (3, 11) else shutil.which("python3.11")
    if program is None:
        raise Unavailable("there is no CPython 3.11 here, whose library Windows' CPython shares")
    code = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    done = subprocess.run([program, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()


# ---- Wine ----


@functools.cache
def wine() -> str:
    """Return the program wine; where nothing can be harmed (``CI`` is set, root) install it."""
    if found := shutil.which("wine"):
        return found
    if os.environ.get("CI") != "true" or os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unavailable(f"Wine is not installed: apt-get install {' '.join(PACKAGES)}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qq", "--yes", "--no-install-recommends", *PACKAGES]
    try:
        for command in (["apt-get", "update", "-qq"], install):
            subprocess.run(command, check=True, capture_output=True, timeout=300, env=quiet)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"Wine cannot be installed: {error}") from None
    found = shutil.which("wine")
    if not found:
        raise Unavailable("Wine was installed and is not there")
    return found


@dataclass
class Box:
    """A running Wine. Programs run in it one after the other."""

    prefix: Path
    wine: str
    _runtime: str = "builtin"

    @property
    def system32(self) -> Path:
        """Return the folder that plays System32."""
        return self.prefix / "drive_c" / "windows" / "system32"

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a program in this Wine."""
        native = ",".join(RUNTIME)
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.prefix),
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": f"mscoree=d;mshtml=d;winedbg.exe=d;{native}=n",
            "KMP_AFFINITY": "disabled",  # OpenMP asks for what Wine has not
            **more,
        }

    def put(self, version: str) -> None:
        """Put the VC++ runtime *version* into System32 and nothing else of it; "none" empties."""
        if version == self._runtime:
            return
        for name in RUNTIME:
            (self.system32 / f"{name}.dll").unlink(missing_ok=True)
        if version != "none":
            for path in runtime(version).glob("*.dll"):
                shutil.copy(path, self.system32 / path.name.lower())
        self._runtime = version

    def run(
        self,
        home: Path,
        options: Mapping[str, object],
        timeout: float,
        script: Path = INSIDE,
        **more: str,
    ) -> Run:
        """Run *script* with *options* in the CPython at *home*."""
        with tempfile.TemporaryDirectory() as folder:
            return child.run_probe(
                script.read_text("ascii"),
                options,
                python=(self.wine, str(home / "python.exe")),
                timeout=timeout,
                folder=folder,
                environ=self.environ(**more),
            )

    def execute(self, home: Path, *arguments: str, timeout: float, **more: str) -> Run:
        """Run the CPython at *home* with *arguments*."""
        with tempfile.TemporaryDirectory() as folder:
            return child.run(
                [self.wine, str(home / "python.exe"), *arguments],
                timeout=timeout,
                folder=folder,
                environ=self.environ(**more),
            )


def _server() -> str:
    return shutil.which("wineserver") or "wineserver"


def _silent(command: list[str], environ: Mapping[str, str], timeout: float) -> None:
    none = subprocess.DEVNULL
    subprocess.run(command, check=True, timeout=timeout, env=environ, stdout=none, stderr=none)


@contextmanager
def started() -> Iterator[Box]:
    """Start a Wine in a new prefix; end it and take the prefix away afterwards."""
    program, home = wine(), python()
    with tempfile.TemporaryDirectory(prefix="torchdoctor-wine-") as folder:
        box = Box(Path(folder), program)
        environ = box.environ()
        try:
            try:  # not as a child of ours: what it starts has work to do after its end
                _silent([program, "wineboot", "--init"], environ, 120)
                _silent([_server(), "-w"], environ, 60)
            except (OSError, subprocess.SubprocessError) as error:
                raise Unavailable(f"Wine does not start: {error}") from None
            with _kept_up(box, home):
                yield box
        finally:
            with contextlib.suppress(OSError, subprocess.SubprocessError):  # it may have ended
                _silent([_server(), "-k"], environ, 60)


@contextmanager
def _kept_up(box: Box, home: Path) -> Iterator[None]:
    """Keep Wine's services up, so that each run is spared their start."""
    none = subprocess.DEVNULL
    keeper = subprocess.Popen(
        [box.wine, str(home / "python.exe"), "-c", "import sys; sys.stdin.read()"],
        stdin=subprocess.PIPE,
        env=box.environ(),
        stdout=none,
        stderr=none,
    )
    try:
        yield
    finally:
        assert keeper.stdin is not None
        keeper.stdin.close()
        try:
            keeper.wait(timeout=60)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
