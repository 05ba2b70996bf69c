"""What is known of DLLs that do not load: what the files say, and what the messages say.

For the checks of Windows. What was tried counts more than what was worked out: where torch was
imported, nothing is said to stand in its way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, places, shells, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    DllFile,
    DllLoad,
    Facts,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    Windows,
    items_of,
)
from torchdoctor.model import Commands, Confidence, Effect, Evidence, Layer, Severity, Step
from torchdoctor.scale import SMALL
from torchdoctor.tables import windows as table
from torchdoctor.values import dataclass

MSVCP = "msvcp140.dll"
_OWN = ("application", "package", "path")
ALIKE = {"998": "1114"}
"""An access violation while a DLL starts is 1114 on Windows and 998 under Wine."""
_FROZEN = re.compile(
    r"\\_MEI\w+\\|\\_internal\\|\\lib\\library\.zip\\|\\lib\\torch\\lib\\", re.IGNORECASE
)
"""Folders of programs that PyInstaller and cx_Freeze made."""
_LOADER = re.compile(
    r'File "(?:PyInstaller[\\/]loader[\\/]|cx_Freeze[\\/]|torch[\\/]__init__\.py)', re.IGNORECASE
)
"""Frames of a frozen program: its modules lie in an archive, and their files have no folder."""
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
    load: DllLoad,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    windows: Windows | Unknown | None = None,
) -> Confidence:
    """Return how sure *load* is: less where something was assumed, least where it was seen else."""
    other = really_loaded(windows, places.last(load.culprit).lower())
    if other and load.kind != "missing" and not places.same(other, load.culprit):
        return "possible"
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


def is_frozen(path: str, trial: ImportTrial | Unknown | None = None) -> bool:
    """Tell whether *path* is in a frozen program, not in an environment.

    Where PyInstaller's loader, or a torch without a folder, stands among the frames of *trial*, any
    path outside every site-packages is in one.
    """
    below = path[max(path.lower().rfind("site-packages"), 0) :]
    error = trial.error if isinstance(trial, ImportTrial) else None
    by_loader = bool(error and _LOADER.search(error.traceback))
    return bool(_FROZEN.search(below)) or (by_loader and "site-packages" not in path.lower())


def number(load: DllLoad) -> str:
    """Return the error as torch reports it, with the DLL that it names."""
    named = places.last(load.named)
    return f"WinError {load.error} naming {named}" if load.error else f"an error naming {named}"


def release(torch: Build | Unknown | None) -> str | None:
    """Return the release of torch, where it is known."""
    return torch.public or None if isinstance(torch, Build) else None


def runtime(windows: Windows | Unknown | None) -> DllFile | None:
    """Return the msvcp140.dll that a process gets, or the version that a list has for it.

    The file that a real import loaded comes first, then the one that wins the search, then the one
    beside python.exe, then System32's, and only where no file was looked at, what the registry or a
    list says.
    """
    if not isinstance(windows, Windows):
        return None
    if winner := _taken(windows) or _won(windows):
        return winner
    if not isinstance(windows.copies, Unknown):
        of_role = {c.role: c for c in reversed(windows.copies)}
        return of_role.get("application") or of_role.get("system32")
    if isinstance(windows.registered, Unknown) or "x64" not in windows.registered:
        return None
    return DllFile("", windows.registered["x64"], "registered")


def is_own(file: DllFile | None) -> bool:
    """Tell whether *file* is a program's or a package's own copy, which no installer replaces."""
    return file is not None and file.role in _OWN


def _taken(windows: Windows) -> DllFile | None:
    path = really_loaded(windows, MSVCP)
    copies = items_of(windows.copies)
    return next((c for c in copies if places.same(c.path, path)), None)


def _won(windows: Windows) -> DllFile | None:
    needs = items_of(windows.needs)
    return next((n.winner for n in needs if n.dll == MSVCP and n.winner), None)


def really_loaded(windows: Windows | Unknown | None, name: str) -> str:
    """Return the path of the DLL *name* that a real import of torch loaded; "" where not known."""
    if not isinstance(windows, Windows) or isinstance(windows.loaded, Unknown):
        return ""
    return next((p for p in windows.loaded if places.last(p).lower() == name), "")


def carriers(
    distributions: tuple[Distribution, ...] | Unknown, symptoms: tuple[Symptom, ...] | Unknown
) -> dict[str, table.Carrier]:
    """Return the packages that bring an old runtime, by name and version where that is known.

    Those come first that were imported before torch, as a console shows.
    """
    known = items_of(distributions)
    installed = {d.name: d.version for d in known}
    told = items_of(symptoms)
    first = [s.values.get("module", "").lower() for s in told if s.name == "imported-first"]
    names = dict.fromkeys((*first, *installed))
    found = ((n, installed.get(n), table.carries(n, installed.get(n))) for n in names)
    return {f"{c.module} {version or ''}".strip(): c for _, version, c in found if c}


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
        effect=effects.then(_redist_tried, _redist_installed),
        commands=Commands(powershell=winget, cmd=winget),
        needs=("admin", "network"),
    )


_OF_RUNTIME = ("vc-runtime-not-found", "runtime-dll-not-found", "windows-exception")


def _redist_tried(facts: Facts) -> Facts:
    """Return *facts* without what the runtime can be the reason of; other messages stand."""
    codes = ("126", "127", *effects.DIES_WHILE_IT_STARTS)
    return _without(effects.settled(*_OF_RUNTIME)(facts), codes)


def _without(facts: Facts, codes: tuple[str, ...]) -> Facts:
    """Return *facts* without the messages of the loader that have one of *codes*."""
    if isinstance(facts.symptoms, Unknown):
        return facts
    left = tuple(
        s
        for s in facts.symptoms
        if s.name != "winerror-dll" or s.values.get("code", "126") not in codes
    )
    return facts.but(symptoms=left)


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
    return facts.but(windows=changed)


def becomes(**fields: object) -> Effect:
    """Return the effect of these parts of ``windows`` being so, and of nothing else."""

    def effect(facts: Facts) -> Facts:
        if not isinstance(facts.windows, Windows):
            return facts
        windows = replace(facts.windows, **fields)  # type: ignore[arg-type] # names of its fields
        return facts.but(windows=windows)

    return effect


def mended(**fields: object) -> Effect:
    """Return the effect of these parts of ``windows`` being so; torch's DLLs are open again."""

    def effect(facts: Facts) -> Facts:
        return effects.untried(_without(facts, effects.DIES_WHILE_IT_STARTS))

    return effects.then(effect, becomes(**{"torch": effects.TO_TRY, **fields}))


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
    layer: Layer = Layer.RUNTIME,
    cost: int = SMALL,
    effect: Effect | None = None,
    powershell: tuple[str, ...] = (),
    cmd: tuple[str, ...] = (),
    admin: bool = False,
) -> Step:
    """Return a step of Windows itself; by itself it clears what was tried and worked out."""
    return steps.by_hand(
        name,
        title,
        why=why,
        layer=layer,
        cost=cost,
        effect=effect or mended(),
        powershell=powershell,
        cmd=cmd,
        admin=admin,
    )


def bundle(what: str) -> Step:
    """Return the step that builds a frozen program again with *what* in it."""
    return by_hand(
        "bundle-the-dll",
        f"Build the program again with {what} in it (PyInstaller: --collect-all torch or "
        "--add-binary; cx_Freeze: --packages=torch, 6.14.5 or newer)",
        why="A frozen program has only the files that were put into it.",
        cost=steps.BUILD,
    )
