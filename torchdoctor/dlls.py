"""What is known of DLLs that do not load: what the files say, and what the messages say.

For the checks of Windows. What was tried counts more than what was worked out: where torch was
imported, nothing is said to stand in its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torchdoctor import effects, places, shells, steps, trials
from torchdoctor.facts import (
    Build,
    DllFile,
    DllLoad,
    Facts,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Commands, Confidence, Effect, Evidence, Layer, Severity, Step
from torchdoctor.tables import windows as table

MSVCP = "msvcp140.dll"
ALIKE = {"998": "1114"}
"""An access violation while a DLL starts is 1114 on Windows and 998 under Wine."""
# Whose message it is when no file is named.
_OF_TORCH = re.compile(r"torch|c10|shm|fbgemm|asmjit|caffe2|libiomp5|cudnn|cublas", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """A message of the loader about torch."""

    code: str
    file: str
    """The base name in lower case; empty when none is named."""
    path: str
    symptom: Symptom

    @property
    def evidence(self) -> Evidence:
        """Return the line that was read."""
        return Evidence("symptoms", self.symptom.text.strip()[:300], self.symptom.source)


def elsewhere(platform: Platform | Unknown) -> bool:
    """Tell whether this is certainly not Windows."""
    return isinstance(platform, Platform) and platform.system != "win32"


def told(
    symptoms: tuple[Symptom, ...] | Unknown, trial: ImportTrial | Unknown, *codes: str
) -> Told | None:
    """Return the first message about torch with one of *codes*; None where torch works."""
    if isinstance(symptoms, Unknown) or trials.works(trial):
        return None
    return next((t for t in _messages(symptoms) if t.code in codes), None)


def _messages(symptoms: tuple[Symptom, ...]) -> Iterator[Told]:
    for symptom in symptoms:
        if symptom.name != "winerror-dll":
            continue
        path = symptom.values.get("file", "")
        module = symptom.values.get("module", "_C")
        if _OF_TORCH.search(path) if path else module.startswith(("_C", "torch")):
            code = symptom.values.get("code", "")
            yield Told(ALIKE.get(code, code), places.last(path).lower(), path, symptom)


def failure(windows: Windows | Unknown | None, trial: ImportTrial | Unknown) -> DllLoad | None:
    """Return what stops ``import torch``, as the files say; None where nothing does."""
    if not isinstance(windows, Windows) or trials.works(trial):
        return None
    load = windows.torch
    return load if isinstance(load, DllLoad) and not load.loads else None


def is_known(windows: Windows | Unknown | None) -> bool:
    """Tell whether the DLLs of torch were looked into, so that no message has to be read."""
    return isinstance(windows, Windows) and isinstance(windows.torch, DllLoad)


def confidence(
    load: DllLoad, symptoms: tuple[Symptom, ...] | Unknown, trial: ImportTrial | Unknown
) -> Confidence:
    """Return how sure *load* is: less where something was assumed, least where it was seen else."""
    if isinstance(trial, ImportTrial) and not isinstance(symptoms, Unknown):
        codes = [t.code for t in _messages(symptoms)]
        if codes and str(load.error) not in codes:
            return "possible"
        if codes:
            return "certain"
    return "likely" if load.assumed or load.depends_on_order else "certain"


def severity(trial: ImportTrial | Unknown) -> Severity:
    """Return an error, as torch cannot be imported; a warning where it was."""
    return "warning" if trials.works(trial) else "error"


def evidence(load: DllLoad, trial: ImportTrial | Unknown) -> tuple[Evidence, ...]:
    """Return what *load* stands on, the chain first."""
    found = [Evidence("windows.torch.chain", " -> ".join(load.chain), "the import tables")]
    if load.detail:
        found.append(Evidence("windows.torch.culprit", load.detail, load.culprit))
    if load.symbols:
        some = ", ".join(load.symbols[:3])
        found.append(Evidence("windows.torch.symbols", some, load.culprit))
    if load.assumed:
        found.append(Evidence("windows.torch.assumed", load.assumed[0], "not looked into"))
    return (*found, *trials.evidence(trial))


def number(load: DllLoad) -> str:
    """Return the error as torch reports it, with the DLL that it names."""
    named = places.last(load.named)
    return f"WinError {load.error} naming {named}" if load.error else f"an error naming {named}"


def release(torch: Build | Unknown | None) -> str | None:
    """Return the release of torch, where it is known."""
    return torch.public or None if isinstance(torch, Build) else None


def runtime(windows: Windows | Unknown | None) -> DllFile | None:
    """Return the msvcp140.dll that a process gets, or the version that a list has for it.

    The file that wins the search comes first, then the one beside python.exe, then System32's,
    and only where no file was looked at, what the registry or a list says.
    """
    if not isinstance(windows, Windows):
        return None
    if not isinstance(windows.needs, Unknown):
        for need in windows.needs:
            if need.dll == MSVCP and need.winner:
                return need.winner
    if not isinstance(windows.copies, Unknown):
        for role in ("application", "system32"):
            found = next((c for c in windows.copies if c.role == role), None)
            if found:
                return found
        return None
    if isinstance(windows.registered, Unknown) or "x64" not in windows.registered:
        return None
    return DllFile("", windows.registered["x64"], "registered")


# ---- steps -------------------------------------------------------------------------------------


def vc_redist(*, why: str) -> Step:
    """Return the step that installs the newest VC++ redistributable for x64."""
    winget = ("winget install -e --id Microsoft.VCRedist.2015+.x64",)
    return Step(
        name="install-vc-redist",
        title=f"Install the Visual C++ Redistributable (x64) from {table.installer()}",
        why=why,
        layer=Layer.RUNTIME,
        cost=steps.SMALL + steps.ADMIN,
        effect=_redist_installed,
        commands=Commands(powershell=winget, cmd=winget),
        needs=("admin", "network"),
    )


def _redist_installed(facts: Facts) -> Facts:
    old = facts.windows if isinstance(facts.windows, Windows) else Windows()
    known = {} if isinstance(old.registered, Unknown) else old.registered
    copies = old.copies
    if not isinstance(copies, Unknown):
        there = any(c.role == "system32" for c in copies)
        new = DllFile(rf"C:\Windows\System32\{MSVCP}", table.newest(), "system32")
        copies = tuple(
            replace(c, version=table.newest()) if c.role == "system32" else c for c in copies
        ) + (() if there else (new,))
    loads = old.renewed if isinstance(old.torch, DllLoad) else old.torch
    changed = replace(
        old,
        torch=loads,
        companions=effects.TO_TRY,
        needs=effects.TO_TRY,
        copies=copies,
        registered={**known, "x64": table.newest()},
    )
    return effects.change(windows=changed)(facts)


def mended(**fields: object) -> Effect:
    """Return the effect of these parts of ``windows`` being so; torch's DLLs are open again."""

    def effect(facts: Facts) -> Facts:
        if not isinstance(facts.windows, Windows):
            return effects.untried(facts)
        known: dict[str, object] = {"torch": effects.TO_TRY, **fields}
        return effects.change(windows=replace(facts.windows, **known))(facts)  # type: ignore[arg-type]

    return effect


def torch_first(name: str, *, effect: Effect) -> Step:
    """Return the step that imports torch before *name*."""
    return Step(
        name="import-torch-first",
        title=f"Put `import torch` above the import of {name}, as the first line of the program",
        why="The library that is loaded first serves the whole process, and the one that torch "
        "finds by itself will do.",
        layer=Layer.SCRIPT,
        cost=steps.VARIABLE,
        effect=effect,
        commands=shells.in_all([("python", "-c", f"import torch, {name}")])
        if re.fullmatch(r"[A-Za-z_][\w.]*", name)
        else Commands(),
    )


def by_hand(  # noqa: PLR0913 - a step has that many sides
    name: str,
    title: str,
    *,
    why: str,
    powershell: tuple[str, ...] = (),
    cmd: tuple[str, ...] = (),
    effect: Effect | None = None,
    cost: int = steps.SMALL,
    layer: Layer = Layer.RUNTIME,
    admin: bool = False,
) -> Step:
    """Return a step of Windows itself; by itself it clears what was tried and worked out."""
    return Step(
        name=name,
        title=title,
        why=why,
        layer=layer,
        cost=cost + (steps.ADMIN if admin else 0),
        effect=effect or mended(),
        commands=Commands(powershell=powershell, cmd=cmd),
        needs=("admin",) if admin else (),
    )
