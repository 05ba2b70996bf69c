r"""On Windows, the Python has the headers and import library that triton compiles against.

How it shows: ``torch.compile`` or a triton kernel ends in ``fatal error C1083: Cannot open
include file: 'Python.h'`` or ``LNK1104: cannot open file 'python311.lib'``.

Why: triton-windows compiles a small launcher when a kernel is first used. The embeddable Python,
and programs that bring their own, have neither the folder Include nor libs.

``dir`` in the folder of python.exe shows whether both are there. Without triton nothing needs them.

The fix is a full Python (python.org, uv, conda) of the same version, or its folders Include and
libs copied beside the python.exe.

Sources: https://github.com/woct0rdho/triton-windows, https://docs.python.org/3/using/windows.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import dlls, effects
from torchdoctor.facts import Distribution, Facts, Interpreter, Platform, Unknown, Windows
from torchdoctor.model import Evidence, Finding

FAMILY = "environment"
FINDS = ("python-dev-files-missing",)

_COMPILES = frozenset(("triton", "triton-windows"))


def check(
    platform: Platform,
    windows: Windows | None,
    distributions: tuple[Distribution, ...] | Unknown,
    interpreter: Interpreter | Unknown,
) -> Iterator[Finding]:
    """Ask for the folders where triton is installed."""
    if platform.system != "win32" or windows is None or windows.headers is not False:
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
        (
            dlls.by_hand(
                "add-python-headers",
                f"Copy Include and libs of a full Python {version} beside this python.exe, or make "
                "the environment from a full Python",
                why="triton compiles against them.",
                effect=_there,
            ),
        ),
    )


def _there(facts: Facts) -> Facts:
    if not isinstance(facts.windows, Windows):
        return effects.untried(facts)
    return replace(facts, windows=replace(facts.windows, headers=True))
