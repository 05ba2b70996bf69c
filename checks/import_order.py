r"""On Windows, no package loads an older Visual C++ runtime into the process before torch does.

How it shows: ``python -c "import torch"`` works, and the program that imports PyQt5, PyQt6, pyarrow
or panda3d first ends in ``[WinError 1114] ... Error loading "...\torch\lib\c10.dll"``. To import
``PyQt6`` alone is enough: it registers its folder, and torch's own search finds the copy there.

Why: Windows loads a DLL of one name once. Those packages bring an msvcp140.dll of 14.36 or before,
and torch 2.9 to 2.14 cannot start on it, whatever System32 has (14.39 does; in between is not
known). When it fails in a bare interpreter
too, the machine's own runtime is old (vcredist-too-old).

``torchdoctor check --after PyQt6``, or ``--script program.py``, tries just that order.

The fix is to import torch first, or a release of the other package with a newer copy.

Sources: https://github.com/pytorch/pytorch/issues/166628,
https://github.com/pytorch/pytorch/pull/196987, https://github.com/apache/arrow/issues/44894.
Windows itself was not at hand: PyQt6 6.5.3 before torch 2.9.1 fails so under Wine, and the other
way round works.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from torchdoctor import dlls, effects, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    DllLoad,
    Facts,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    Windows,
)
from torchdoctor.model import Confidence, Evidence, Finding, Severity, Step
from torchdoctor.tables import windows as table

FAMILY = "system"
FINDS = ("import-order-dll-conflict",)


def check(
    windows: Windows | Unknown | None,
    torch: Build | Unknown | None,
    platform: Platform | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    trial_after: Mapping[str, ImportTrial] | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
) -> Iterator[Finding]:
    """Judge what was tried in that order, then what the files say of it, then the message."""
    tried = {} if isinstance(trial_after, Unknown) else trial_after
    predicted = _after(windows)
    for name, one in tried.items():
        if trials.failed(one) and trials.works(trial):
            yield _finding(name, predicted.get(name), one)
    if dlls.elsewhere(platform) or (windows is None and isinstance(symptoms, Unknown)):
        return
    load = dlls.failure(windows, trial)
    if load and load.kind in ("old-runtime", "no-symbol") and load.place in _FOREIGN:
        yield _finding(load.culprit, load, trial)
    for name, load in predicted.items():
        if name not in tried and not load.loads and not dlls.failure(windows, trial):
            yield _finding(name, load, None)
    if not dlls.is_known(windows):
        yield from _of_message(windows, torch, symptoms, trial, distributions)


_FOREIGN = ("registered", "package", "loaded")


def _after(windows: Windows | Unknown | None) -> Mapping[str, DllLoad]:
    if not isinstance(windows, Windows) or isinstance(windows.after, Unknown):
        return {}
    return windows.after


def _finding(name: str, load: DllLoad | None, tried: ImportTrial | Unknown | None) -> Finding:
    failed = isinstance(tried, ImportTrial)
    severity: Severity = "error" if failed or tried is not None else "note"
    culprit = f" ({load.culprit})" if load and load.culprit and load.culprit != name else ""
    ended = (
        trials.ending(tried)
        if isinstance(tried, ImportTrial)
        else f"ends in {dlls.number(load)}"
        if load
        else "fails"
    )
    alone = "after" if tried is not None else "would, after"
    verb = f"import torch {alone} {name}{culprit} {ended}"
    if tried is None and load:
        verb = f"{name} brings an older runtime{culprit}: import torch after it {ended}"
    seen = dlls.evidence(load, Unknown()) if load else ()
    if isinstance(tried, ImportTrial):
        seen = (*seen, Evidence("trial_after", trials.ending(tried), f"import torch after {name}"))
    return Finding(
        "import-order-dll-conflict",
        severity,
        (verb if verb.startswith(name) else verb[0].upper() + verb[1:]) + ".",
        seen,
        (_first(name),),
        confidence="certain" if failed else "likely",
    )


def _first(name: str) -> Step:
    return dlls.torch_first(name, effect=_in_order)


def _in_order(facts: Facts) -> Facts:
    calm = dlls.mended(after={})(facts)
    return effects.change(trial_after={})(calm)


def _of_message(
    windows: Windows | Unknown | None,
    torch: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    trial: ImportTrial | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
) -> Iterator[Finding]:
    failed = dlls.told(symptoms, trial, "1114")
    release = dlls.release(torch)
    need = table.needs(release) if release else None
    if failed is None or (release and not need):
        return
    has = dlls.runtime(windows)
    if need and has and has.version and need.lacks(has.version):
        return  # the machine's own runtime is enough of a reason
    found = dlls.carriers(distributions, symptoms)
    which = next(iter(found), "another package")
    new = bool(has and has.version and (need is None or need.is_met(has.version)))
    confidence: Confidence = "likely" if found or new else "possible"
    yield Finding(
        "import-order-dll-conflict",
        "error",
        f"{failed.file or 'A DLL of torch'} dies while it starts: {which} has probably loaded an "
        "msvcp140.dll of 14.36 or before into the process.",
        (
            failed.evidence,
            *(Evidence("distributions", n, c.source) for n, c in islice(found.items(), 2)),
        ),
        (_first(found[which].module if found else "every other package"),),
        confidence=confidence,
        because_of=() if found or new else ("vcredist-too-old",),
    )
