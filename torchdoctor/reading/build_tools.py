"""Read what was found, and said, of the programs that extensions are compiled with.

Source: what gcc, clang, cl, nvcc, ptxas and ninja print of their version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from torchdoctor.facts import BuildTools, Compiler, Toolkit, Unknown
from torchdoctor.reading.said import Said, Unreadable

if TYPE_CHECKING:
    from torchdoctor.child import Run

T = TypeVar("T")
LONGEST = 200
_KINDS = (
    ("clang", re.compile(r"\bclang version (\d{1,3}(?:\.\d{1,4}){0,3})")),
    ("gcc", re.compile(r"^\S{1,100} \([^\n]{0,200}\) (\d{1,3}(?:\.\d{1,9}){0,2})\b", re.MULTILINE)),
    (
        "gcc",
        re.compile(r"^(?:g\+\+|gcc|c\+\+|cc)\S{0,20} (\d{1,3}(?:\.\d{1,9}){2})\b", re.MULTILINE),
    ),
    ("msvc", re.compile(r"Microsoft[^\n]{0,60}\s(\d\d\.\d\d\.\d{1,6})")),
)
_RELEASE = re.compile(r"\brelease (\d{1,2}\.\d{1,2}),")


def read(probes: Mapping[str, Run]) -> BuildTools | Unknown:
    """Return what *probes* say of them; what cannot be read is unknown. Never raises."""
    said = Said(probes["build tools"].data, "build tools")
    environment = probes.get("environment")
    told = environment.data.get("build") if environment else None
    about = Said(told if isinstance(told, Mapping) else {}, "environment.build")
    try:
        return BuildTools(
            cxx=_or_unknown(lambda: _compiler(said.part("cxx"), probes.get("build c++"))),
            cc=_or_unknown(lambda: _compiler(said.part("cc"), probes.get("build cc"))),
            nvcc=_or_unknown(lambda: _nvcc(said, probes.get("build nvcc"))),
            home=said.text("cuda_home"),
            targets=_or_unknown(lambda: _targets(probes.get("build nvcc targets"))),
            ninja=_or_unknown(lambda: _ninja(said, probes.get("build ninja"))),
            headers=_or_unknown(lambda: _headers(about)),
            arch_names=_or_unknown(lambda: _arch_names(about)),
            standard=_or_unknown(lambda: _standard(about)),
            ptxas={
                name: release
                for name in ("ptxas", "ptxas-blackwell")
                if (release := _release(probes.get(f"build {name}")))
            },
            found=said.texts("found"),
            visual_studio=said.flag("visual_studio"),
            unchecked=said.flag("unchecked"),
        )
    except Unreadable as error:
        return Unknown(str(error))


def compiler_of(banner: str) -> tuple[str, str] | None:
    """Return the kind and the version that the *banner* of a compiler tells; None if neither."""
    for kind, pattern in _KINDS:
        if found := pattern.search(banner):
            return kind, found[1]
    return None


def _or_unknown(read: Callable[[], T]) -> T | Unknown:
    try:
        return read()
    except ValueError as error:
        return Unknown(str(error))


def _compiler(piece: Said, run: Run | None) -> Compiler:
    command, path = piece.text("command"), piece.text("path")
    if command is None:
        raise Unreadable("build tools: a compiler has no name")
    variable = piece.text("variable") or ""
    if path is None:
        return Compiler(command, None, named_by=variable)
    if run is None or run.outcome in ("timeout", "not-started"):
        raise Unreadable(f"{path}: {run.reason if run else 'was not asked'}")
    banner = f"{run.stdout.text}\n{run.stderr.text}"
    known = compiler_of(banner)
    kind, version = known or ("", None)
    failed = run.outcome == "failed" and known is None
    error = (run.stderr.text.strip().rpartition("\n")[2] or f"exit code {run.exit_code}")[:LONGEST]
    return Compiler(command, path, kind, version, variable, error if failed else "")


def _nvcc(said: Said, run: Run | None) -> Toolkit | None:
    if said.text("nvcc") is None:
        return None
    if run is None or run.outcome != "answered":
        raise Unreadable(f"{said.text('nvcc')}: {run.reason if run else 'was not asked'}")
    return Toolkit(_release(run), said.text("cuda_home") or "", "nvcc --version")


def _release(run: Run | None) -> str | None:
    found = _RELEASE.search(run.stdout.text) if run else None
    return found[1] if found else None


def _targets(run: Run | None) -> tuple[str, ...]:
    found = re.findall(r"\bsm_(\d{2,3}[af]?)\b", run.stdout.text) if run else []
    if not found:
        raise Unreadable("nvcc did not list what it makes code for")
    return tuple(found)


def _ninja(said: Said, run: Run | None) -> str | None:
    path = said.text("ninja")
    if path is None or (run is not None and run.outcome == "failed"):
        return None  # torch, too, takes one that does not run for none
    if run is None or run.outcome != "answered":
        raise Unreadable(f"{path}: {run.reason if run else 'was not asked'}")
    return path


def _headers(about: Said) -> bool:
    if about.text("include") is None:
        raise Unreadable("the interpreter did not say where its headers are")
    return about.flag("headers")


def _standard(about: Said) -> str:
    if (found := about.text("standard")) is None:
        raise Unreadable("cpp_extension.py of torch does not tell which C++ it compiles with")
    return found


def _arch_names(about: Said) -> tuple[str, ...]:
    names = about.texts("arch_names")
    if not names:
        raise Unreadable("cpp_extension.py of torch does not tell which architectures it takes")
    return names
