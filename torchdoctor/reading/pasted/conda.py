"""What conda, mamba and pixi list, and what conda says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

from torchdoctor.reading.pasted import packages, paths
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import (
    LISTED,
    PRINTED,
    TOLD,
    CondaRow,
    Package,
    Said,
    Whole,
    normal,
)

LAYOUT = "conda list"
CHANNELS = frozenset(
    (
        "conda-forge",
        "pytorch",
        "nvidia",
        "defaults",
        "pypi",
        "anaconda",
        "main",
        "intel",
        "rapidsai",
        "pytorch-nightly",
        "pytorch-lts",
        "pyg",
        "xformers",
        "fastai",
        "bioconda",
        "huggingface",
        "msys2",
        "pkgs/main",
        "pkgs/r",
        "pkgs/msys2",
        "rdonnelly",
        "esri",
        "fvcore",
        "pytorch3d",
        "<develop>",
    )
)
MOST_CELLS = 5
_NAME = re.compile(r"(?!__)[A-Za-z_][\w.-]{0,80}")
_HEADER = re.compile(
    r"#? ?(?:packages in environment(?: at (?P<at>[^\n]{1,300}?)| \([^)]*\))?:"
    r"|List of packages in environment: \"?(?P<mamba>[^\"\n]{1,300})\"?)\s*$"
)
_COLUMNS = re.compile(r"#?\s{0,4}Name\s{1,60}Version\s{1,30}Build(?:\s{1,30}Channel)?\s*$")
_PIXI = re.compile(
    r"\s{0,2}(?:Package|Name)\s{2,60}Version\s{2,60}Build\s{2,60}Size\s{2,20}Kind\s{2,60}Source"
)
_PIXI_ROW = re.compile(
    r"\s{0,4}([\w.-]{1,100})\s+(\S{1,60})\s+(?:(\S{1,80})\s+)?(?:([\d.]+ [KMG]i?B)\s+)?(conda|"
    r"pypi)(?:\s+(\S+).*)?$"
)
_RULE = re.compile(r"\s{0,4}[-─━]{3,}")
_URL = re.compile(
    r"https?://[^\s#]{1,200}?/(?P<channel>[\w.-]{1,40}(?:/[\w.-]{1,20})??)/(?P<subdir>linux-\w+|"
    r"win-\w+|osx-\w+|noarch)/"
    r"(?P<name>[\w.-]{1,80})-(?P<version>[^\s/-]{1,40})-(?P<build>[^\s/-]{1,80})\.(?:tar\.bz2|"
    r"conda)"
)
_EXPORT = re.compile(
    r"\s{0,6}(?:- )?((?!__)[a-z_][\w.-]{0,80})=([0-9][\w.!]{0,40})=([\w.]{1,80})\s*$"
)
_INFO = re.compile(
    r"\s{1,24}(active environment|active env location|conda version|platform|virtual packages|"
    r"base environment|user-agent) : (.{1,300})$"
)
_VIRTUAL = re.compile(
    r"(?:^|\s)__(cuda|glibc|win|osx|linux|unix|archspec)(?:[=@]+([\w.]{1,20}))?(?:=(\w{1,40}))?"
)
_ALONE = re.compile(
    r"\s{0,4}[a-z_][\w.-]{1,60}\s{2,60}(?:[0-9][\w.!]{0,40}\s{2,40}(?:[\w.]{1,80}\s{1,40})?)?"
    r"(?:conda-forge|pytorch|nvidia|defaults|pypi)\s*$"
)
"""A row away from its listing: the channel tells."""
FEWEST = 12
"""A conda environment with a Python in it has more packages than this."""


def row(text: str, *, strict: bool = True) -> CondaRow | None:
    """Return the row of a conda listing in *text*; None when it is none.

    A missing column is told by what stands there: a channel is known by its name, a build has a
    digit in it. With *strict* the version has to start with a digit.
    """
    cells = text.split()
    if not 1 < len(cells) <= MOST_CELLS or not _NAME.fullmatch(cells[0]):
        return None
    name, rest = cells[0].lower(), cells[1:]
    channel = ""
    if rest and (rest[-1].lower() in CHANNELS or "/" in rest[-1]):
        channel = rest.pop()
    version = rest.pop(0) if rest and rest[0][0].isdigit() else ""
    if not version and (strict and not channel):
        return None
    build = rest.pop(0) if rest and re.fullmatch(r"[\w.*]{1,80}", rest[0]) else ""
    if rest and not channel and re.fullmatch(r"[\w./-]{2,40}", rest[0]):
        channel = rest.pop(0)
    return None if rest or not (version or channel) else CondaRow(name, version, build, channel)


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the listings of conda in *lines* say."""
    at = 0
    while at < len(lines):
        text = lines[at].text[:600]
        if header := _HEADER.match(text.strip()):
            yield from _prefix(header["at"] or header["mamba"] or "", lines[at].number)
            at = yield from _table(lines, at)
        elif _COLUMNS.match(text.strip()):
            at = yield from _table(lines, at)
        elif _PIXI.match(text):
            at = yield from _pixi(lines, at)
        else:
            yield from _single(text, lines[at])
            at += 1
    yield from _json(lines)


def _prefix(prefix: str, number: int) -> Iterator[Said]:
    yield Said("conda.here", True, LAYOUT, LISTED, number)  # noqa: FBT003
    yield Said("interpreter.kind", "conda", LAYOUT, TOLD, number)
    prefix = prefix.strip()
    if re.match(r"[A-Za-z]:\\|/", prefix):
        yield Said("conda.prefix", prefix, LAYOUT, LISTED, number)
        yield Said("interpreter.prefix", prefix, LAYOUT, TOLD, number)
        if system := paths.system_of(prefix):
            yield Said("platform.system", system, LAYOUT, TOLD, number)


def _table(lines: Sequence[Line], start: int) -> Generator[Said, None, int]:
    """Read the rows below the names of the columns; return the place after them."""
    at, rows = start + 1, []
    closed = False
    while at < len(lines):
        text = lines[at].text[:600]
        if not (_RULE.match(text) or _COLUMNS.match(text.strip()) or text.strip() == "#"):
            found = row(text)
            if found is None or lines[at].kind != "output":
                closed = not text.strip() or lines[at].kind != "output"
                break
            below = lines[at + 1].text.strip() if at + 1 < len(lines) else ""
            if not found.channel and below in CHANNELS:  # a mail had wrapped the row
                found = replace(found, channel=below)
                at += 1
            rows.append(found)
            yield from packages.of_conda(found, LAYOUT, lines[at].number)
        at += 1
    yield Said("conda.here", True, LAYOUT, LISTED, lines[start].number)  # noqa: FBT003
    names = [one.name for one in rows]
    if (closed or at == len(lines)) and is_whole(names, lines[start].command):
        yield Said("whole", Whole("conda", frozenset(names)), LAYOUT, LISTED, lines[start].number)
    return at


def is_whole(names: Sequence[str], command: str) -> bool:
    """Tell whether *names* are all packages of an environment: sorted, with what Python needs."""
    if len(names) < FEWEST or re.search(r"\||grep|findstr|Select-String", command):
        return False
    needed = {"python", "openssl", "ca-certificates", "tk"}
    known = set(names)
    return (
        list(names) == sorted(names)
        and needed <= known
        and bool(known & {"libzlib", "zlib", "xz", "liblzma"})
    )


def _pixi(lines: Sequence[Line], start: int) -> Generator[Said, None, int]:
    at = start + 1
    while at < len(lines):
        text = lines[at].text[:600]
        found = _PIXI_ROW.match(text)
        if found is None:
            if _RULE.match(text):
                at += 1
                continue
            break
        name, version, build, _, kind, source = found.groups()
        if kind == "conda":
            channel = (source or "").rstrip("/").rpartition("/")[2]
            one = CondaRow(name.lower(), version, build or "", channel)
            yield from packages.of_conda(one, "pixi list", lines[at].number)
        else:
            package = Package(normal(name), version, installer="uv")
            yield from packages.of_pip(package, "pixi list", LISTED, lines[at].number)
        at += 1
    yield Said("interpreter.installer", "pixi", "pixi list", LISTED, lines[start].number)
    return at


def _single(text: str, line: Line) -> Iterator[Said]:
    if found := _URL.search(text) if text.lstrip().startswith("http") else None:
        one = CondaRow(found["name"].lower(), found["version"], found["build"], found["channel"])
        yield from packages.of_conda(one, "conda list --explicit", line.number)
    elif line.kind == "output" and (found := _EXPORT.match(text)):
        build = found[3]
        one = CondaRow(found[1].lower(), found[2], build, "pypi" if build == "pypi_0" else "")
        yield from packages.of_conda(one, "conda list --export", line.number)
    elif line.kind == "output" and (found := _ALONE.match(text)):
        if (alone := row(found[0])) is not None:
            yield from packages.of_conda(alone, LAYOUT, line.number)
    elif found := _INFO.match(text):
        yield from _info(found[1], found[2].strip(), line.number)
    if "__" in text and (virtual := _VIRTUAL.search(text)):
        yield from _virtual(virtual[1], virtual[2] or "", line.number)


def _info(key: str, value: str, number: int) -> Iterator[Said]:
    layout = "conda info"
    if key == "active env location" and value != "None":
        yield Said("conda.prefix", value, layout, PRINTED, number)
    elif key == "platform" and (found := re.fullmatch(r"(linux|win|osx)-(\w+)", value)):
        system = {"linux": "linux", "win": "win32", "osx": "darwin"}[found[1]]
        yield Said("platform.system", system, layout, PRINTED, number)


def _virtual(name: str, version: str, number: int) -> Iterator[Said]:
    """Read conda's virtual packages: what the machine has, as conda sees it."""
    layout = "conda info"
    if name == "cuda" and re.fullmatch(r"\d{1,2}\.\d{1,2}", version):
        yield Said("driver.cuda", version, layout, LISTED, number)
    elif name == "glibc" and re.fullmatch(r"\d\.\d{1,2}", version):
        yield Said("platform.libc", "glibc", layout, PRINTED, number)
        yield Said("platform.libc_version", version, layout, PRINTED, number)


_RECORD = re.compile(r'\{[^{}]{0,2000}?"(?:base_url|dist_name|build_string)"[^{}]{0,2000}\}')


def _json(lines: Sequence[Line]) -> Iterator[Said]:
    """Read ``conda list --json``."""
    text = "\n".join(line.text for line in lines if line.kind == "output")
    if '"build_string"' not in text:
        return
    names = []
    for match in _RECORD.finditer(text):
        try:
            said = json.loads(match[0])
        except (ValueError, RecursionError):
            continue
        values = [said.get(key) for key in ("name", "version", "build_string", "channel")]
        if not all(isinstance(value, str) for value in values):
            continue
        name, version, build, channel = (str(value) for value in values)
        names.append(name)
        yield from packages.of_conda(
            CondaRow(name.lower(), version, build, channel), "conda list --json", 0
        )
    if names:
        yield Said("conda.here", True, "conda list --json", LISTED)  # noqa: FBT003
        if is_whole(names, "") and re.search(r"\]\s*$", text):
            yield Said("whole", Whole("conda", frozenset(names)), "conda list --json", LISTED)
