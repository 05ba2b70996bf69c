r"""Which folder is which in a copied or mounted Windows installation, on any system.

The drive is found by its ``Windows`` folder, torch by its files, the rest by where torch lies:
``Lib\site-packages`` of an environment, a user site, or a frozen program. PATH is in the registry,
which is not read: folders of it are given, or none is assumed.
"""

from __future__ import annotations

import ntpath
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from torchdoctor.model import DoctorError

from .inventory import Layout, Place

MOST_FOLDERS = 100_000
DEEPEST = 14
_SKIPPED = frozenset(("windows", "$recycle.bin", "node_modules", "__pycache__", "winsxs", ".git"))
_PYTHON = re.compile(r"python3\d+t?\.dll", re.IGNORECASE)
_VERSION = re.compile(r"__version__\s*=\s*['\"]([^'\"]+)['\"]")
_NUMBERED = re.compile(r"python(3\d+)", re.IGNORECASE)
_LARGEST_TEXT = 1 << 20
COMPANIONS = ("torchvision", "torchaudio")


@dataclass(frozen=True, slots=True)
class Found:
    """A layout, and the places on disk that other readers want."""

    layout: Layout
    site: str
    """The folder that holds torch, on disk."""
    site_path: str
    python: Place | None
    """The folder of the python.exe that runs."""
    prefix: str
    """The prefix of the environment, on disk."""
    is_venv: bool = False
    system: bool = False
    """Whether a System32 was found or given."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the user says of the folders; all paths on this machine."""

    root: str
    system32: str | None = None
    python: str | None = None
    path: tuple[str, ...] = ()


def find(given: Given) -> Found:
    """Return the layout of the installation below ``given.root``.

    Raises:
        DoctorError: a folder is not there, there is no torch, or there are several.

    """
    for folder in (given.root, given.system32, given.python, *given.path):
        if folder is not None and not Path(folder).is_dir():
            raise DoctorError(
                f"{folder} is no folder; give one that is there.", file=folder, kind="usage"
            )
    return _Finder(given).find()


@dataclass(slots=True)
class _Finder:
    given: Given
    drive: str = ""
    names: dict[str, str] = field(default_factory=dict)
    """Folders outside the drive, and what they pass for."""

    def find(self) -> Found:
        self.drive = _drive(self.given.root)
        if self.given.python:
            self.names[os.path.realpath(self.given.python)] = r"C:\Python"
        torch = self._torch()
        site = os.path.dirname(torch)  # noqa: PTH120 - plain strings in and out
        prefix, userbase = self._prefix(site)
        venv = _child(prefix, "pyvenv.cfg")
        base = self._base(venv) if venv else prefix
        system32 = self.given.system32 or _child(self.drive, "Windows", "System32")
        places: list[Place] = []

        def add(disk: str | None, role: str, path: str = "") -> None:
            if disk:
                places.append(Place(path or self.windows(disk), role, disk))

        running = base or prefix
        add(running, "application")
        add(system32, "system32", r"C:\Windows\System32")
        add(_child(self.drive, "Windows"), "windows")
        add(torch, "package")
        add(_child(torch, "lib"), "package")
        for root in {prefix, running}:
            add(_child(root, "Library", "bin"), "package")
            add(_child(root, "bin"), "package")
        if userbase:
            add(_child(userbase, "Library", "bin"), "package")
        companions: dict[str, str] = {}
        for name in COMPANIONS:
            if disk := _child(site, name):
                companions[name] = self.windows(disk)
                add(disk, "package")
                add(_child(disk, "lib"), "package")
        for number, disk in enumerate(self.given.path):
            inside = _inside(disk, self.drive)
            add(disk, "path", "" if inside else rf"D:\PATH{number}")
        release = version_of(torch) or ""
        return Found(
            layout=Layout(
                places=tuple(places),
                torch=self.windows(torch),
                release=release,
                exec_prefix=self.windows(prefix),
                base_exec_prefix=self.windows(running),
                python=next(iter(_matching(running, _PYTHON)), ""),
                userbase=self.windows(userbase) if userbase else None,
                companions=companions,
                sites=(Place(self.windows(site), "package", site),),
                record=record_of(site, release),
            ),
            site=site,
            site_path=self.windows(site),
            python=places[0],
            prefix=prefix,
            is_venv=venv is not None,
            system=system32 is not None,
        )

    def windows(self, disk: str) -> str:
        """Return the path that Windows knows the folder *disk* by."""
        real = os.path.realpath(disk)
        for outside, name in self.names.items():
            if _inside(real, outside) and not _inside(outside, self.drive):
                return _below(name, os.path.relpath(real, outside))
        return _below("C:\\", os.path.relpath(real, os.path.realpath(self.drive)))

    def disk(self, path: str) -> str | None:
        """Return where the Windows *path* is, if it lies on the drive that was given."""
        drive, rest = ntpath.splitdrive(path)
        parts = [part for part in re.split(r"[\\/]+", rest) if part]
        return _child(self.drive, *parts) if drive.upper() in ("C:", "") and parts else None

    def _torch(self) -> str:
        start = self.given.python or self.drive
        found = list(_torches(start))
        if not found:
            raise DoctorError(
                f"{start} holds no torch (no folder torch with version.py or c10.dll); give the "
                "root of a Windows drive, or the environment with --python-dir.",
                file=start,
            )
        if len(found) > 1:
            some = ", ".join(found[:3])
            raise DoctorError(
                f"{start} holds {len(found)} copies of torch ({some}); "
                "name the environment with --python-dir.",
                file=start,
                kind="usage",
            )
        return found[0]

    def _prefix(self, site: str) -> tuple[str, str | None]:
        """Return the prefix of the environment that *site* belongs to, and its user base."""
        above = os.path.dirname(site)  # noqa: PTH120
        low = site.replace(os.sep, "/").lower()
        if user := re.search(r"/appdata/roaming/python/(python3\d+)/site-packages$", low):
            base = os.path.dirname(above)  # noqa: PTH120
            return self._installed(user[1]) or self.given.python or above, base
        if low.endswith("/lib/site-packages"):
            return os.path.dirname(above), None  # noqa: PTH120
        if os.path.basename(low) == "_internal":  # noqa: PTH119 - PyInstaller
            return above, None
        return site if not low.endswith("site-packages") else above, None

    def _base(self, config: str) -> str | None:
        """Return the folder of the Python that a venv was made from."""
        text = _text(config)
        home = re.search(r"(?im)^home\s*=\s*(.+?)\s*$", text)
        version = re.search(r"(?im)^version(?:_info)?\s*=\s*(\d+)\.(\d+)", text)
        found = self.disk(home[1]) if home else None
        return found or (self._installed(f"python{version[1]}{version[2]}") if version else None)

    def _installed(self, name: str) -> str | None:
        """Return where a Python called *name* (python311) is installed on the drive."""
        direct: list[tuple[str, ...]] = [(name,), ("Program Files", name)]
        users = _child(self.drive, "Users")
        direct += [
            ("Users", user, "AppData", "Local", "Programs", "Python", name)
            for user in (sorted(os.listdir(users)) if users else ())  # noqa: PTH208
        ]
        return next(filter(None, (_child(self.drive, *parts) for parts in direct)), None)


def version_of(torch: str) -> str | None:
    """Return the version that torch's folder *torch* says of itself."""
    found = _VERSION.search(_text(os.path.join(torch, "version.py")))  # noqa: PTH118
    return found[1] if found else None


def record_of(site: str, release: str) -> str | None:
    """Return where the RECORD of torch *release* in *site* is."""
    for name in (release, release.partition("+")[0]):
        if found := _child(site, f"torch-{name}.dist-info", "RECORD"):
            return found
    return None


def _drive(root: str) -> str:
    """Return the folder that stands for drive C below *root*: its own, Wine's, or a subfolder."""
    for name in ("", "drive_c", "C", "C_"):
        folder = _child(root, name) if name else root
        if folder and _child(folder, "Windows"):
            return folder
    return root


def _torches(start: str) -> Iterator[str]:
    depth = start.rstrip(os.sep).count(os.sep)
    for count, (folder, below, names) in enumerate(os.walk(start)):
        if count > MOST_FOLDERS:
            return
        last = os.path.basename(folder).lower()  # noqa: PTH119
        if last == "torch" and _is_torch(folder, names):
            yield folder
        inside = last in {"site-packages", "local-packages"}
        below[:] = sorted(
            name
            for name in below
            if name.lower() not in _SKIPPED and (not inside or name.lower() == "torch")
        )
        if folder.count(os.sep) - depth > DEEPEST or last == "torch":
            below.clear()


def _is_torch(folder: str, names: Iterable[str]) -> bool:
    if any(name.lower() == "version.py" for name in names):
        return version_of(folder) is not None
    lib = _child(folder, "lib")
    return lib is not None and _child(lib, "c10.dll") is not None


def _child(folder: str, *names: str) -> str | None:
    """Return the path of *names* below *folder*, without regard to case; None if not there."""
    path = folder
    for name in names:
        direct = os.path.join(path, name)  # noqa: PTH118
        if not os.path.lexists(direct):
            try:
                entries = os.listdir(path)  # noqa: PTH208
            except OSError:
                return None
            real = next((e for e in sorted(entries) if e.lower() == name.lower()), None)
            if real is None:
                return None
            direct = os.path.join(path, real)  # noqa: PTH118
        path = direct
    return path


def _matching(folder: str, pattern: re.Pattern[str]) -> list[str]:
    try:
        return sorted(n for n in os.listdir(folder) if pattern.fullmatch(n))  # noqa: PTH208
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read(_LARGEST_TEXT)
    except OSError:
        return ""


def _inside(path: str, folder: str) -> bool:
    one, other = os.path.realpath(path), os.path.realpath(folder)
    return one == other or one.startswith(other.rstrip(os.sep) + os.sep)


def _below(path: str, relative: str) -> str:
    parts = [part for part in relative.split(os.sep) if part not in (".", "")]  # noqa: PTH206
    return ntpath.join(path, *parts)
