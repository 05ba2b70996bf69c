r"""On Windows, a program gets as far as its own first line.

How it shows: ``exit code -1073741515 (0xC0000135)``, ``3221225785``, or a window that says "The
application was unable to start correctly (0xc0000142)". Nothing was printed: Windows gave up while
it loaded the DLLs that the program itself is linked to, before any code of it ran.

Why: 0xC0000135 is a DLL that was not found (as WinError 126), 0xC0000139 and 0xC0000138 a name or
an ordinal that the found one lacks (127, 182), 0xC000007B a file that is not whole or is for
another processor (193), 0xC0000142 a DLL that gave up while it started (1114), 0xC000012D the page
file (1455). A program that is built with libtorch needs the folder of torch's DLLs on PATH, or the
DLLs beside it. Where python.exe itself ends so, the runtime in the folder of conda, or of the
machine, is older than the compiler of python.exe.

0xC0000005 (an access violation), 0xC0000409 and 0xC000001D (an illegal instruction) are crashes of
code that ran: those are not meant here.

The status does not name the file; ``gflags /i PROGRAM +sls`` and a debugger, or the program
Dependencies, do.

Sources: https://learn.microsoft.com/openspecs/windows_protocols/ms-erref,
https://github.com/pytorch/pytorch/issues/16690,
https://github.com/ContinuumIO/anaconda-issues/issues/800. Windows itself was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import conda_steps, dlls, effects
from torchdoctor.facts import Conda, Facts, Interpreter, Platform, Symptom, Unknown, Windows
from torchdoctor.model import CannotTell, Effect, Evidence, Finding, Step

FAMILY = "system"
FINDS = (
    "program-dll-missing",
    "program-dll-unfit",
    "program-dll-init-failed",
    "paging-file-too-small",
)

_MISSING, _UNFIT, _INIT, _PAGES = FINDS
_CODES = {
    "0xC0000135": (_MISSING, "a DLL that it is linked to was not found"),
    "0xC0000139": (_UNFIT, "a DLL that it is linked to lacks a function that it calls"),
    "0xC0000138": (_UNFIT, "a DLL that it is linked to lacks a number that it calls"),
    "0xC000007B": (_UNFIT, "a DLL that it is linked to is not whole, or for another processor"),
    "0xC0000142": (_INIT, "a DLL that it is linked to gave up while it started"),
    "0xC000012D": (_PAGES, "the page file cannot hold its DLLs"),
}


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Say what the status of a program that did not start means."""
    if dlls.elsewhere(platform):
        return
    own = windows.status if isinstance(windows, Windows) else None
    if isinstance(own, str) and own in _CODES:
        python = facts.interpreter if isinstance(facts.interpreter, Interpreter) else None
        name = python.executable if python else "the interpreter"
        seen = Evidence("windows.status", own, name)
        yield _finding(own, name, seen, facts, python=True)
        return
    if isinstance(symptoms, Unknown):
        raise CannotTell(symptoms.reason)
    said = next((s for s in symptoms if s.name == "program-status"), None)
    if said and said.values.get("code") in _CODES:
        seen = Evidence("symptoms", said.text.strip()[:300], said.source)
        yield _finding(said.values["code"], "a program", seen, facts, python=False)


def _finding(code: str, program: str, seen: Evidence, facts: Facts, *, python: bool) -> Finding:
    name, what = _CODES[code]
    return Finding(
        name,
        "error",
        f"{program[0].upper()}{program[1:]} ended with {code} before its first line: {what}.",
        (seen,),
        tuple(_steps(name, facts, python=python)),
        confidence="certain" if python else "likely",
        because_of=("vcredist-missing", "vcredist-too-old") if name == _MISSING else (),
    )


def _steps(name: str, facts: Facts, *, python: bool) -> Iterator[Step]:
    cured = effects.then(effects.settled("program-status"), dlls.becomes(status=effects.TO_TRY))
    if name == _PAGES:
        yield dlls.by_hand(
            "enlarge-page-file-for-program",
            "Let Windows manage the size of the page file, then restart",
            why="It then grows with what the processes ask for.",
            effect=cured,
            admin=True,
        )
    if name == _MISSING and not python:
        lib = "python -c \"import importlib.util as u; print(u.find_spec('torch')"
        folder = f'{lib}.submodule_search_locations[0])"'
        yield dlls.by_hand(
            "put-torch-dlls-on-path",
            "Put the folder of the DLLs on PATH before the program starts: for one that is built "
            r"with libtorch, torch\lib",
            why="Windows looks beside the program, in System32 and on PATH, and nowhere else.",
            powershell=(rf'$env:PATH = "$({folder})\lib;$env:PATH"',),
            effect=cured,
        )
    if name in (_MISSING, _INIT):
        yield _runtime(facts, cured)


def _runtime(facts: Facts, cured: Effect) -> Step:
    why = "The runtime that a program gets has to be as new as the compiler that made it."
    if isinstance(facts.conda, Conda):
        package = "vc14_runtime" if facts.conda.get("vc14_runtime") else "vs2015_runtime"
        return conda_steps.install(facts, package, why=why, effect=cured)
    step = dlls.vc_redist(why=why)
    return replace(step, effect=effects.then(step.effect, cured))
