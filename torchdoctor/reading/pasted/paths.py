"""What a path tells of the machine and of the Python whose folders it goes through."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import HINT, Said

LAYOUT = "a path"
MOST_PATHS = 2000

_PATH = re.compile(
    r"(?<![\w/\\.~$-])(?:[A-Za-z]:[\\/](?![\\/]?[\\/])|/(?=[\w.])|~/)"
    r"[^\s'\"<>|:;,()\[\]{}*?]{2,400}(?: [^\s'\"<>|:;,()\[\]{}*?]{1,60}(?=[\\/]))?"
    r"[^\s'\"<>|:;,()\[\]{}*?]{0,300}"
)
_QUOTED = re.compile(r"[\"']((?:[A-Za-z]:[\\/]|/|~/)[^\"'\n]{3,500})[\"']")
_SITE = re.compile(r"(?i)[\\/](site|dist)-packages(?=[\\/]|$)")
_UNIX = re.compile(
    r"(?P<prefix>.{0,300}?)/lib(?:64)?/(?:pypy|python)(?P<version>\d\.\d{1,2})(?P<t>t?)$"
)
_STORE = re.compile(r"(?i)PythonSoftwareFoundation\.Python\.(\d\.\d{1,2})")
_WINDOWS_USER = re.compile(r"(?i)[\\/]AppData[\\/]Roaming[\\/]Python[\\/]Python(\d)(\d{1,2})$")
_NUMBERED = re.compile(r"(?i)[\\/](?:Python|Python-|python)(\d)(\d{1,2})(?:-\d\d)?(?=[\\/]|$)")
_PYENV = re.compile(
    r"[\\/]\.?pyenv(?:-win)?[\\/](?:pyenv-win[\\/])?versions[\\/](\d\.\d{1,2}\.\d{1,2})"
)
_CONDA = re.compile(
    r"(?i)(?:ana|mini)conda\d?|miniforge\d?|mambaforge|micromamba|[\\/]\.?conda(?=[\\/]|$)|"
    r"[\\/]anaconda"
)
_LINUX = re.compile(
    r"/(?:home/[\w.-]+/|root/|proc/|mnt/|usr/lib/x86_64|usr/local/lib/python[\d.]+/dist-|lib/|run/)"
)
_BUILDERS = re.compile(
    r"conda-bld|actions-runner|/pytorch/(?:aten|c10|torch|third_party)|_work|/root/\.cache|"
    r"pip-build-env-"
)


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the paths in *lines* tell: system, Python, environment, folders of packages."""
    seen: set[str] = set()
    for line in lines:
        if "Requirement already" in line.text:
            continue  # the Python of that pip, which need not be the one that runs
        for path in _paths(line.text[:4000]):
            if path in seen:
                continue
            seen.add(path)
            if len(seen) > MOST_PATHS:
                return
            yield from of(path, line.number)


def of(path: str, number: int = 0) -> Iterator[Said]:
    """Yield what *path* alone tells."""
    if system := system_of(path):
        yield Said("platform.system", system, LAYOUT, HINT, number)
    site = _SITE.search(path)
    if site is None or _BUILDERS.search(path):
        return
    yield from environment(path[: site.end()], HINT, number)


def system_of(path: str) -> str | None:
    """Return the system that has such paths, None when several have."""
    if re.match(r"[A-Za-z]:[\\/]", path):
        return "win32"
    if re.match(
        r"/Users/(?!Shared/?$)[\w.-]+|/Library/Frameworks|/opt/homebrew|/System/Library", path
    ):
        return "darwin"
    return "linux" if _LINUX.match(path) else None


def environment(  # noqa: C901 - one branch for each kind of place
    site: str, weight: int, number: int = 0
) -> Iterator[Said]:
    """Yield what a folder of packages tells of its Python."""

    def said(fact: str, value: str) -> Said:
        return Said(f"interpreter.{fact}", value, LAYOUT, weight, number)

    parent = re.split(r"(?i)[\\/](?:site|dist)-packages$", site)[0]
    if user := _WINDOWS_USER.search(parent):
        yield said("version", f"{user[1]}.{user[2]}")
        yield said("user_site", site)
        return
    if store := _STORE.search(parent):
        yield said("version", store[1])
        yield said("kind", "store")
        if "local-packages" in parent:
            yield said("user_site", site)
        return
    unix = _UNIX.match(parent)
    if unix:
        yield said("version", unix["version"])
        if re.search(r"(?:^~|^/(?:home/[^/]+|root|Users/[^/]+))/\.local$", unix["prefix"]):
            yield said("user_site", site)
            return
        prefix = unix["prefix"] or "/"
    else:
        prefix = re.sub(r"(?i)[\\/]lib$", "", parent)
        if prefix == parent:
            return
        if (numbered := _NUMBERED.search(prefix)) and not _CONDA.search(prefix):
            yield said("version", f"{numbered[1]}.{numbered[2]}")
    if pyenv := _PYENV.search(prefix):
        yield said("version", pyenv[1])
    yield said("prefix", prefix)
    if kind := kind_of(prefix):
        yield said("kind", kind)
    yield said("site_packages", site)


def kind_of(  # noqa: PLR0911 - one answer for each kind
    prefix: str,
) -> str | None:
    """Return the kind of environment that has such a prefix, None when it cannot be told."""
    parts = [part.lower() for part in re.split(r"[\\/]+", prefix) if part]
    last = parts[-1] if parts else ""
    named = "envs" in parts[:-1] and (_CONDA.search(prefix) or parts[-2] == "envs")
    if named or (_CONDA.search((parts and f"/{last}") or "") and not last.startswith("python")):
        return "conda"
    if last in ("venv", ".venv", "virtualenv") or ".venv" in parts or "virtualenvs" in parts:
        return "venv"
    if ".pyenv" in parts or "pyenv-win" in parts:
        return "pyenv"
    if "pipx" in parts:
        return "pipx"
    if parts[:1] == ["usr"] or re.search(r"(?i)[\\/]Programs[\\/]Python[\\/]Python\d+$", prefix):
        return "system"
    if "uv" in parts and "python" in parts:
        return "uv"
    return None


def _paths(text: str) -> Iterator[str]:
    if "/" not in text and "\\" not in text:
        return
    quoted = [match[1].replace("\\\\", "\\") for match in _QUOTED.finditer(text)]
    yield from quoted
    rest = _QUOTED.sub(" ", text).replace("\\\\", "\\")
    for match in _PATH.finditer(rest):
        yield match[0].rstrip(".")
