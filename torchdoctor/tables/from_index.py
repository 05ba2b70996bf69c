"""The table of releases, as a package index tells it.

From names of wheels: Pythons, platforms, macOS, days. From METADATA of one wheel for each release
and platform: what it asks for. For torch on Linux that of the oldest and the newest Python too, and
of every Python where those differ. Which CUDA the plain wheel has is what it pins, else what its
torch/version.py says.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from torchdoctor.model import DoctorError
from torchdoctor.tables import index as reading
from torchdoctor.tables.index import File, Index, Unreadable, Wheel, newest_build, python_order

FIRST = {"torch": "1.12", "torchvision": "0.13", "torchaudio": "0.12", "triton": "2.0"}
"""The oldest release of each that the table has."""
COMPANIONS = ("torchvision", "torchaudio")
TOOLKIT = "cuda-toolkit"
"""torch pins it instead of the nvidia packages from 2.11 on; its extras name them."""
GLIBC_NEED = ((Version("2.7"), (2, 28)), (Version("0"), (2, 17)))
"""What the libraries of a release need, whatever the tag claims: manylinux1 says 2.5. By the symbol
versions in 41 wheels."""
WITHOUT_REQUIREMENT = {("torchaudio", "2.11.0"): ">=2.11"}
"""Releases that name no torch, and what their maintainers say they work with:
https://github.com/pytorch/audio/pull/4212."""
READ = "package index metadata (file names of all wheels, METADATA of one for each platform)"
SOURCES = (
    (
        "glibc: symbol versions of the libraries in 41 torch wheels, the whole of torch 2.6.0,"
        " 2.8.0 and 2.14.1; aarch64 before 2.9.1 and later releases as the wheel tag says"
    ),
    "cuda_default: what the plain wheel pins, else its torch/version.py",
    (
        "torchaudio 2.11.0 names no torch; >=2.11 from https://github.com/pytorch/audio/pull/4212"
        " and the METADATA of 2.11.1"
    ),
)
NEAR = 7
"""A companion is published within so many days of its torch."""
PLATFORMS: Mapping[str, Mapping[str, str]] = {
    "linux_x86_64": {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"},
    "linux_aarch64": {"platform_system": "Linux", "sys_platform": "linux", "os_name": "posix"},
    "win_amd64": {"platform_system": "Windows", "sys_platform": "win32", "os_name": "nt"},
    "win_arm64": {"platform_system": "Windows", "sys_platform": "win32", "os_name": "nt"},
    "macos_arm64": {"platform_system": "Darwin", "sys_platform": "darwin", "os_name": "posix"},
    "macos_x86_64": {"platform_system": "Darwin", "sys_platform": "darwin", "os_name": "posix"},
}
"""Platform keys, and what markers see there."""
MACHINES = {"win_amd64": "AMD64", "win_arm64": "ARM64"}

By = Mapping[str, Sequence[Wheel]]
Row = dict[str, Any]


@dataclass(slots=True)
class Found:
    """What a refresh came to: the table, and what the index did not tell."""

    table: Row = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


# ---- requirements -------------------------------------------------------------------------------


def environment(platform: str, python: str, extra: str = "") -> dict[str, str]:
    """Return what a marker sees on *platform* under *python* ("3.12") with *extra*."""
    return {
        **PLATFORMS[platform],
        "platform_machine": MACHINES.get(platform, platform.partition("_")[2]),
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "python_version": python,
        "python_full_version": f"{python}.0",
        "extra": extra,
    }


def active(lines: Iterable[str], platform: str, python: str) -> list[Requirement]:
    """Return those of the Requires-Dist *lines* that hold there, each once.

    Raises InvalidRequirement (a ValueError).
    """
    where = environment(platform, python)
    held = (r for r in map(Requirement, lines) if r.marker is None or r.marker.evaluate(where))
    return list({str(r): r for r in held}.values())


def behind_extras(lines: Iterable[str], extras: Iterable[str], where: dict[str, str]) -> Row:
    """Return name -> specifier of what the *extras* of cuda-toolkit add, by its own *lines*."""
    found: dict[str, str] = {}
    for extra in sorted(extras):
        for r in map(Requirement, lines):
            if (
                r.marker
                and r.marker.evaluate({**where, "extra": extra})
                and not r.marker.evaluate({**where, "extra": ""})
            ):
                found[r.name] = str(r.specifier)
    return found


def torch_wanted(by_platform: Mapping[str, str | None]) -> str | None:
    """Return the torch that a companion asks for, from what its wheels say by platform.

    Old wheels for macOS arm64 and Linux aarch64 ask for "torch" with no version, and one asks for
    a local build: what counts is the one public version that the others name. None: no such.
    """
    named = {re.sub(r"(==[^+,]+)\+\w+$", r"\1", text) for text in by_platform.values() if text}
    return named.pop() if len(named) == 1 else None


def triton_wanted(by_python: Mapping[str, str | None]) -> str | None:
    """Return the triton that torch asks for, from what it asks under each Python, with a marker.

    None: none at all. ValueError when it is not one triton up to some Python.
    """
    have = [p for p, text in by_python.items() if text is not None]
    if not have:
        return None
    lack = [p for p in by_python if p not in have]
    (text,) = {t for t in by_python.values() if t is not None}
    if not lack:
        return text
    first = min(lack, key=python_order)
    if any(python_order(p) > python_order(first) for p in have):
        raise ValueError("triton for some Pythons in between only")
    return f'{text}; python_version < "{first.rstrip("t")}"'


def cuda_of_version_py(text: str) -> str | None:
    """Return the CUDA in the text of torch/version.py; None says a build without."""
    found = re.search(
        r"^cuda(?:\s*:[^=\n]+)?\s*=\s*(None|'[^'\n]*'|\"[^\"\n]*\")", text, re.MULTILINE
    )
    if found is None:
        raise ValueError("torch/version.py names no CUDA")
    value = ast.literal_eval(found[1])
    return value or None


def cuda_of_pins(pins: Mapping[str, str]) -> str | None:
    """Return the CUDA of a wheel by what it pins, None when it pins neither runtime nor toolkit."""
    names = [n for n in pins if n.startswith("nvidia-cuda-runtime")]
    pin = pins.get(TOOLKIT) or next((pins[n] for n in names), "")
    found = re.match(r"==(\d+\.\d+)\.", pin)
    return found[1] if found else None


def with_pythons(lists: Mapping[str, Sequence[str]], common: Sequence[str]) -> list[str]:
    """Return *common*, where a requirement that some Pythons only have gets a marker for them.

    *lists* has what torch asks for by Python; those above some Python, or below, can be told by a
    marker. ValueError: Pythons differ in another way, or in what CUDA they bring.
    """
    order = sorted(lists, key=python_order)
    marked = list(common)
    for text in sorted({t for found in lists.values() for t in found}):
        have = [p for p in order if text in lists[p]]
        if have == order:
            continue
        told = _told(text, have, order)
        if _cuda_or_triton(Requirement(text)) or told is None:
            raise ValueError(f"{text} for some Pythons only")
        if text in marked:
            marked[marked.index(text)] = told
        else:
            marked.append(told)
    return marked


def _told(text: str, have: Sequence[str], order: Sequence[str]) -> str | None:
    """Return *text* with a marker for the Pythons it holds for, None when no bound tells them."""
    head, _, marker = text.partition(";")
    if have == order[-len(have) :]:
        bound, beside = f'python_version >= "{have[0].rstrip("t")}"', order[-len(have) - 1]
        edge = have[0]
    elif have == order[: len(have)]:
        beside, edge = order[len(have)], have[-1]
        bound = f'python_version < "{beside.rstrip("t")}"'
    else:
        return None
    if beside.rstrip("t") == edge.rstrip("t"):  # a marker cannot tell 3.14t from 3.14
        return None
    return f"{head}; ({marker.strip()}) and {bound}" if marker else f"{head}; {bound}"


# ---- wheels -------------------------------------------------------------------------------------


def by_version(files: Iterable[File], first: str) -> dict[Version, list[Wheel]]:
    """Return the wheels of each release from *first* on, newest release first."""
    found: dict[Version, list[Wheel]] = defaultdict(list)
    for file in files:
        wheel = reading.wheel(file)
        if wheel and wheel.version >= Version(first) and not wheel.version.is_prerelease:
            found[wheel.version].append(wheel)
    return dict(sorted(found.items(), reverse=True))


def by_platform(wheels: Iterable[Wheel]) -> dict[str, list[Wheel]]:
    """Return the wheels of each platform, in the order of PLATFORMS."""
    found: dict[str, list[Wheel]] = {platform: [] for platform in PLATFORMS}
    for wheel in wheels:
        if wheel.platform:
            found[wheel.platform].append(wheel)
    return {platform: those for platform, those in found.items() if those}


def day(wheels: Iterable[Wheel]) -> str | None:
    """Return the day the first of *wheels* was uploaded, None when the page has no days."""
    return min((w.file.day for w in wheels if w.file.day), default=None)


def pick(wheels: Sequence[Wheel]) -> Wheel:
    """Return the wheel to read of one platform: for CPython 3.12, else the middle one."""
    those = newest_build(wheels)
    return next((w for w in those if w.python == "3.12"), those[len(those) // 2])


def from_names(by: By) -> Row:
    """Return what the names of the wheels of one torch release tell."""
    return {
        "pythons": {
            platform: " ".join(sorted({w.python for w in those if w.python}, key=python_order))
            for platform, those in by.items()
        },
        "glibc": {
            platform: _dotted(max(_glibc_tag(those), _glibc_need(those[0].version)))
            for platform, those in by.items()
            if platform.startswith("linux")
        },
        "macos": {
            platform: _dotted(min(w.macos for w in those if w.macos))
            for platform, those in by.items()
            if platform.startswith("macos")
        },
    }


def _glibc_tag(wheels: Sequence[Wheel]) -> tuple[int, int]:
    return min(w.glibc for w in wheels if w.glibc)


def _glibc_need(version: Version) -> tuple[int, int]:
    return next(need for first, need in GLIBC_NEED if version >= first)


def _dotted(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"


def companion(torch_day: str, accept: Sequence[str], days: Mapping[str, str | None]) -> str | None:
    """Return which of the releases that *accept* a torch was published with it, by the days."""
    base = date.fromisoformat(torch_day)
    near = [
        (abs((date.fromisoformat(on) - base).days), Version(version))
        for version in accept
        if (on := days.get(version))
    ]
    best = min((n for n in near if n[0] <= NEAR), default=None)
    return str(best[1]) if best else None


# ---- the table ----------------------------------------------------------------------------------


class Refresh:
    """One reading of *index*; *before* is the table as it was.

    *since*: torch releases older than it, and companions that *before* knows, keep what METADATA
    told then. Pages, and all that follows from names and days, are read again in any case.
    """

    def __init__(self, index: Index, before: Row, since: str | None = None) -> None:
        self.index = index
        self.before = before
        self.since = Version(since) if since else None
        self.old: Mapping[str, Row] = {row["version"]: row for row in before.get("torch", ())}
        self.wheels: dict[str, dict[Version, list[Wheel]]] = {}
        self.found = Found()
        self.toolkits: dict[str, tuple[str, ...]] = {}

    def run(self) -> Found:
        """Read everything and return the table with what it lacks. Raises DoctorError."""
        for project, first in FIRST.items():
            self.wheels[project] = by_version(self.index.files(project), first)
            if not self.wheels[project]:
                raise DoctorError(f"the index has no wheel of {project}")
        specifiers = {name: dict(self.companions(name)) for name in COMPANIONS}
        rows = list(self.torches(specifiers))
        if not rows:
            raise DoctorError("no release of torch could be read")
        tritons = [str(v) for v in self.versions("triton", self.before.get("triton", ()))]
        self.found.table = {
            "schema": 1,
            "as_of": max(self.index.days),
            "source": self.sources(rows, specifiers, tritons),
            "torch": rows,
            **specifiers,
            "triton": tritons,
        }
        return self.found

    def sources(
        self, rows: Sequence[Row], specifiers: Mapping[str, Mapping[str, str]], tritons: list[str]
    ) -> list[str]:
        """Return the sources of the table, which name what was read and not where it lies."""
        spans = {
            "torch": [row["version"] for row in rows],
            **{name: list(found) for name, found in specifiers.items()},
            "triton": tritons,
            TOOLKIT: sorted(
                {row["nvidia_pins"][p][TOOLKIT].strip("=") for row, p in _with_toolkit(rows)},
                key=Version,
                reverse=True,
            ),
        }
        read = ", ".join(f"{name} {v[-1]}-{v[0]}" for name, v in spans.items() if v)
        return [f"{READ} of {read}", *SOURCES]

    def companions(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield each release of torchvision or torchaudio with the torch that it asks for."""
        before: Mapping[str, str] = self.before.get(name, {})
        for version in self.versions(name, before):
            wheels, known = self.wheels[name].get(version), before.get(str(version))
            if known and (self.since or wheels is None):
                yield str(version), known
                continue
            try:
                wanted = self._torch_of(by_platform(wheels or ()))
            except Unreadable as error:
                if known is None:
                    self._leave_out(name, version, error)
                else:
                    self._keep(name, version)
                    yield str(version), known
                continue
            wanted = wanted or WITHOUT_REQUIREMENT.get((name, str(version)))
            if wanted is None:
                self._leave_out(name, version, "it asks for no one torch")
            else:
                yield str(version), wanted

    def versions(self, name: str, before: Iterable[str]) -> list[Version]:
        """Return the releases of *name* on the index and *before*, newest first."""
        mine = self.wheels[name]
        gone = {Version(text) for text in before} - set(mine)
        if gone:
            some = ", ".join(map(str, sorted(gone)))
            self.found.unknown.append(f"not on this index, kept as they were: {name} {some}")
        return sorted({*mine, *gone}, reverse=True)

    def _torch_of(self, by: By) -> str | None:
        said: dict[str, str | None] = {}
        for platform, wheels in by.items():
            wheel = pick(wheels)
            lines = active(self._lines(wheel), platform, wheel.evaluated)
            said[platform] = next((str(r.specifier) for r in lines if _named(r, "torch")), None)
        return torch_wanted(said)

    def torches(self, specifiers: Mapping[str, Mapping[str, str]]) -> Iterator[Row]:
        """Yield one row for each release of torch, newest first."""
        for version in self.versions("torch", self.old):
            old = self.old.get(str(version), {})
            wheels = self.wheels["torch"].get(version)
            if wheels is None:
                yield old
                continue
            by, published = by_platform(wheels), day(wheels) or old.get("date")
            if published is None:
                self._leave_out("torch", version, "the page has no day of its upload")
                continue
            try:
                yield {
                    "version": str(version),
                    "date": published,
                    **from_names(by),
                    **self._beside(version, published, specifiers),
                    **self._asked(version, by, old),
                }
            except (Unreadable, ValueError) as error:
                if old and isinstance(error, Unreadable):
                    self._keep("torch", version)
                    yield old
                else:
                    self._leave_out("torch", version, error)

    def _beside(
        self, version: Version, published: str, specifiers: Mapping[str, Mapping[str, str]]
    ) -> Row:
        """Return what goes with torch *version*: every release that accepts it, and its own."""
        row: Row = {}
        for name in COMPANIONS:
            wheels = self.wheels[name]
            accept = [
                each
                for each, wanted in reversed(list(specifiers[name].items()))
                if SpecifierSet(wanted).contains(version)
                and not any(w.file.yanked for w in wheels.get(Version(each), ()))
            ]
            days = {each: day(wheels.get(Version(each), ())) for each in accept}
            row[name] = accept
            row[f"{name}_companion"] = companion(published, accept, days)
            if accept and not any(days.values()):  # an HTML page has no days
                row[f"{name}_companion"] = self.old.get(str(version), {}).get(f"{name}_companion")
        return row

    def _asked(self, version: Version, by: By, old: Row) -> Row:
        """Return what METADATA of torch *version* asks for."""
        names = ("triton", "cuda_default", "nvidia_pins", "requires")
        if old and self.since and version < self.since:
            return {name: old[name] for name in names}
        row: Row = {"triton": {}, "cuda_default": {}, "nvidia_pins": {}}
        rest: dict[str, list[str]] = {}
        for platform, wheels in by.items():
            wheel = pick(wheels)
            lines = self._lines(wheel)
            held = active(lines, platform, wheel.evaluated)
            rest[platform] = sorted(str(r) for r in held if not _cuda_or_triton(r))
            pythons = {w.python.rstrip("t+") for w in wheels if w.python and w.python != "any"}
            triton = triton_wanted({p: _triton(lines, platform, p) for p in pythons})
            pins = self._pins(held, platform, wheel.evaluated)
            cuda = cuda_of_pins(pins) or self._cuda_inside(wheel, platform)
            for key, value in (("triton", triton), ("cuda_default", cuda), ("nvidia_pins", pins)):
                if value:
                    row[key][platform] = value
        row["requires"] = self._requires(by, rest)
        return row

    def _requires(self, by: By, rest: Mapping[str, list[str]]) -> list[str]:
        """Return every other requirement: those of all platforms, then those of some."""
        lists = list(rest.values())
        common = [text for text in lists[0] if all(text in other for other in lists)]
        some = sorted({text for found in lists for text in found} - set(common))
        linux = newest_build(by["linux_x86_64"]) if "linux_x86_64" in by else []
        if len(linux) > 1 and self._plain(linux[0]) != self._plain(linux[-1]):
            plain = {w.python: self._plain(w) for w in linux if w.python}
            common = with_pythons({p: sorted(found) for p, found in plain.items()}, common)
        return common + some

    def _plain(self, wheel: Wheel) -> set[str]:
        return {str(r) for r in map(Requirement, self._lines(wheel))}

    def _pins(self, held: Iterable[Requirement], platform: str, python: str) -> dict[str, str]:
        pins: dict[str, str] = {}
        for r in held:
            name = canonicalize_name(r.name)
            if name.startswith("nvidia-") or name == TOOLKIT:
                pins[name] = str(r.specifier)
            if name == TOOLKIT:
                where = environment(platform, python)
                pins |= behind_extras(self._toolkit(r), r.extras, where)
        return dict(sorted(pins.items()))

    def _toolkit(self, wanted: Requirement) -> tuple[str, ...]:
        """Return the Requires-Dist lines of the cuda-toolkit that *wanted* pins."""
        key = str(wanted.specifier)
        if key not in self.toolkits:
            every = by_version(self.index.files(TOOLKIT), "0")
            fitting = [those[-1] for v, those in every.items() if wanted.specifier.contains(v)]
            if not fitting:
                raise Unreadable(f"the index has no {TOOLKIT}{key}")
            self.toolkits[key] = self._lines(fitting[0])
        return self.toolkits[key]

    def _cuda_inside(self, wheel: Wheel, platform: str) -> str | None:
        if platform.startswith("macos"):
            return None
        return cuda_of_version_py(self.index.member(wheel.file, r"torch/version\.py"))

    def _lines(self, wheel: Wheel) -> tuple[str, ...]:
        version, lines = self.index.metadata(wheel.file)
        if Version(version).public != str(wheel.version):
            raise Unreadable(f"{wheel.file.name}: its METADATA says {version}")
        try:
            for line in lines:
                Requirement(line)
        except InvalidRequirement as error:
            raise Unreadable(f"{wheel.file.name}: {error}") from error
        return lines

    def _keep(self, name: str, version: Version) -> None:
        said = f"{name} {version} is kept as it was: its metadata could not be read"
        self.found.unknown.append(said)

    def _leave_out(self, name: str, version: Version, why: object) -> None:
        self.found.unknown.append(f"{name} {version} is left out: {why}")


def _named(requirement: Requirement, name: str) -> bool:
    return canonicalize_name(requirement.name) == name


def _cuda_or_triton(requirement: Requirement) -> bool:
    name = canonicalize_name(requirement.name)
    return name.startswith("nvidia-") or name in (TOOLKIT, "triton")


def _triton(lines: Iterable[str], platform: str, python: str) -> str | None:
    held = active(lines, platform, python)
    return next((str(r.specifier) for r in held if _named(r, "triton")), None)


def _with_toolkit(rows: Iterable[Row]) -> Iterator[tuple[Row, str]]:
    return ((r, p) for r in rows for p, pins in r["nvidia_pins"].items() if TOOLKIT in pins)
