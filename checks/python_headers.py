"""What is compiled while torch runs finds Python.h, and on Windows Python's import library.

How it shows: ``torch.compile`` or a triton kernel ends in ``fatal error: Python.h: No such file or
directory``, on Windows in ``fatal error C1083: Cannot open include file: 'Python.h'`` or
``LNK1104: cannot open file 'python311.lib'``. So does the build of an extension.

Why: triton compiles a small launcher when a kernel is first used. The Python of Debian, Ubuntu,
Fedora has its headers in a package of its own; the embeddable Python of Windows, and programs that
bring their own, have neither the folder Include nor libs.

Not to be confused with a compiler that is missing (host-compiler-missing). Without triton nothing
needs the headers. A Python of conda, uv or python.org has them.

The fix is the package with the headers of the Python that runs (python3-dev, python3-devel), or on
Windows a full Python of the same version, or its folders Include and libs beside the python.exe.

Sources: https://github.com/woct0rdho/triton-windows, https://docs.python.org/3/using/windows.html,
https://github.com/sgl-project/sglang/pull/18644. Windows itself was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import building, dlls, effects, gpu, steps
from torchdoctor.facts import (
    BuildTools,
    Distribution,
    Expectation,
    Facts,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step

FAMILY = "environment"
FINDS = ("python-dev-files-missing",)

_COMPILES = frozenset(("triton", "triton-windows"))
NAME = "python-headers-not-found"


def check(
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    interpreter: Interpreter | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    expectation: Expectation,
    build_tools: BuildTools | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read what a compiler said, else ask for the folders where something will be compiled."""
    if said := gpu.symptom(symptoms, NAME):
        yield _told(said, platform, interpreter, facts)
        return
    if building.asked(expectation):
        yield from _for_builds(build_tools, platform, interpreter, facts)
        return
    if isinstance(platform, Unknown):
        raise CannotTell(platform.reason)
    if platform.system != "win32" or windows is None:
        return
    if isinstance(windows, Unknown):
        raise CannotTell(windows.reason)
    if windows.headers is not False:
        return
    known = () if isinstance(distributions, Unknown) else distributions
    triton = next((d for d in known if d.name in _COMPILES), None)
    if triton is None:
        return
    version = interpreter.version if isinstance(interpreter, Interpreter) else ""
    yield Finding(
        "python-dev-files-missing",
        "warning",
        f"{triton.name} {triton.version} compiles when it is used, and this Python {version} has "
        "no Include\\Python.h or no libs folder.",
        (
            Evidence("windows.headers", "not there", "sysconfig"),
            Evidence("distributions", f"{triton.name} {triton.version}", triton.folder),
        ),
        (_copy(version),),
    )


def _for_builds(
    tools: BuildTools | Unknown,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    there = tools if isinstance(tools, Unknown) else tools.headers
    if isinstance(there, Unknown):
        raise CannotTell(there.reason)
    if there:
        return
    known = interpreter if isinstance(interpreter, Interpreter) else None
    version = ".".join(known.version.split(".")[:2]) if known else ""
    windows = isinstance(platform, Platform) and platform.system == "win32"
    yield Finding(
        "python-dev-files-missing",
        "error",
        f"This Python {version} has no Python.h, which every extension of torch includes.",
        (Evidence("build_tools.headers", "not there", "sysconfig"),),
        (_copy(version) if windows else _package(version, facts),),
    )


def _told(
    said: Symptom, platform: Platform | Unknown, interpreter: Interpreter | Unknown, facts: Facts
) -> Finding:
    number = said.values.get("python", "").replace(".", "")
    version = f"{number[0]}.{number[1:]}" if number else ""
    if not version and isinstance(interpreter, Interpreter):
        version = ".".join(interpreter.version.split(".")[:2])
    windows = said.values.get("system") == "win32" or "C1083" in said.text
    windows = windows or (isinstance(platform, Platform) and platform.system == "win32")
    which = f"Python {version}".strip()
    return Finding(
        "python-dev-files-missing",
        "error",
        f"The compiler does not find the headers of {which}, which triton, torch.compile or an"
        " extension compiles against.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_copy(version) if windows else _package(version, facts),),
    )


def _package(version: str, facts: Facts) -> Step:
    effect = effects.then(building.becomes(headers=True), effects.settled(NAME))
    return steps.compiling.headers(version, facts, effect=effect)


def _copy(version: str) -> Step:
    version = version or "3"
    return dlls.by_hand(
        "add-python-headers",
        f"Copy Include and libs of a full Python {version} beside this python.exe, or make "
        "the environment from a full Python",
        why="triton compiles against them.",
        effect=effects.then(_there, building.becomes(headers=True), effects.settled(NAME)),
    )


def _there(facts: Facts) -> Facts:
    if not isinstance(facts.windows, Windows):
        return effects.untried(facts)
    return facts.but(windows=replace(facts.windows, headers=True))
