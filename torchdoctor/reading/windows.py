"""What the probes of Windows said, and lists of VC++ runtimes that people paste, as facts.

Sources: "Redistributing Visual C++ Files" (the registry keys of the runtime), "Maximum Path Length
Limitation", "MEMORYSTATUSEX", SYSTEM_CODEINTEGRITY_INFORMATION, all on learn.microsoft.com.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from torchdoctor.child import Run
from torchdoctor.facts import NOT_COLLECTED, Unknown, Windows

ANSWERS = (
    *("torch", "renewed", "after", "companions", "needs"),
    *("copies", "strangers", "longest", "image_size"),
)
UMCI, UMCI_AUDIT = 0x4, 0x8
"""CODEINTEGRITY_OPTION_UMCI_ENABLED and _AUDITMODE_ENABLED: code of programs is judged."""
SMART_APP_CONTROL = {0: "off", 1: "on", 2: "evaluation"}


class _CannotReadError(ValueError):
    """A piece of the answer is missing, or of another shape."""


def read(runs: Mapping[str, Run]) -> dict[str, object]:
    """Return the fact ``windows`` of the probes *runs*; nothing where none looked.

    Raises nothing: what cannot be read is Unknown.
    """
    probe = runs.get("windows")
    if probe is None:
        return {}
    data = probe.data

    def piece(name: str, reader: Callable[[Mapping[str, object]], object]) -> object:
        try:
            return reader(_part(data, name, probe))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            return Unknown(str(error)[:300] or name)

    fields: dict[str, object] = {
        "registered": piece("runtimes", _registered),
        "edition": piece("system", _edition),
        "build": piece("system", _build),
        "long_paths": piece("switches", _long_paths),
        "commit_limit": piece("memory", lambda said: _count(said, "commit_limit")),
        "commit_available": piece("memory", lambda said: _count(said, "commit_available")),
        "policy": piece("policy", _policy),
        "loaded": _loaded(runs.get("windows trace")),
        "status": _status(probe),
        "headers": piece("interpreter", lambda said: bool(said["include"]) and bool(said["libs"])),
    }
    fields |= _answers(runs, fields)
    return {"windows": Windows(**fields)}  # type: ignore[arg-type]


def of_texts(runtimes: Sequence[str]) -> dict[str, object]:
    """Return the fact ``windows`` of pasted *runtimes*, each "x64 14.36.32532"."""
    found: dict[str, str] = {}
    for text in runtimes:
        processor, _, version = text.partition(" ")
        if not re.fullmatch(r"\d+(\.\d+)*", version):
            continue
        key = "x64" if processor == "?" else processor
        if _numbers(version) > _numbers(found.get(key, "0")):
            found[key] = version
    return {"windows": Windows(registered=found)} if found else {}


def _answers(runs: Mapping[str, Run], fields: Mapping[str, object]) -> dict[str, object]:
    """Return what the loader would do, of the record of the DLLs."""
    run = runs.get("windows files")
    if run is None:
        return {}
    record = run.data.get("record")
    if not isinstance(record, Mapping):
        errors = run.data.get("errors")
        told = errors.get("record") if isinstance(errors, Mapping) else None
        reason = Unknown(f"the DLLs were not read: {str(told or run.reason or run.outcome)[:300]}")
        return dict.fromkeys(ANSWERS, reason)
    answers: Any = importlib.import_module("torchdoctor.windows.answers")
    registered = fields["registered"]
    try:
        said = answers.of(
            record,
            registry=registered if isinstance(registered, Mapping) else None,
            known_dlls=_known(runs["windows"]),
            after=_before(runs.get("windows after"), answers.Before),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return dict.fromkeys(ANSWERS, Unknown(f"the record of the DLLs is damaged: {error}"[:300]))
    return cast("dict[str, object]", said)


def _known(run: Run) -> frozenset[str] | None:
    """Return the KnownDLLs; None when the list is empty, as Wine has it."""
    names = run.data.get("known_dlls")
    if not isinstance(names, list) or not names:
        return None
    return frozenset(str(name).lower() for name in names)


def _before(run: Run | None, make: Callable[..., object]) -> dict[str, object]:
    """Return what the user's own imports had done, under their names."""
    if run is None or run.data.get("done") is not True:
        return {}
    names, folders, modules = (run.data.get(k) for k in ("after", "registered", "modules"))
    lists = [value for value in (names, folders, modules) if isinstance(value, list)]
    if len(lists) < 3:  # noqa: PLR2004 - all of them
        return {}
    known, registered, loaded = (tuple(map(str, value)) for value in lists)
    return {", ".join(known): make(registered, loaded)}


def _status(run: Run) -> str | None:
    """Return the status of Windows with which the interpreter ended before it said anything."""
    silent = run.outcome == "failed" and not run.data
    return run.signal if silent and (run.signal or "").startswith("0x") else None


def _loaded(run: Run | None) -> tuple[str, ...] | Unknown:
    """Return the DLLs of which Windows said that they were loaded, each once."""
    if run is None:
        return NOT_COLLECTED
    told = run.data.get("trace")
    notices = told.get("notices") if isinstance(told, Mapping) else None
    errors = run.data.get("errors")
    refused = isinstance(errors, Mapping) and "notice" in errors
    if not isinstance(notices, list) or refused:
        return Unknown(f"what torch loads was not told: {run.reason or run.outcome}"[:300])
    pairs = [n for n in notices if isinstance(n, list) and len(n) == 2]  # noqa: PLR2004
    return tuple(dict.fromkeys(str(path) for what, path in pairs if what == "loaded"))


def _part(data: Mapping[str, object], name: str, run: Run) -> Mapping[str, object]:
    value = data.get(name)
    if isinstance(value, Mapping):
        return value
    errors = data.get("errors")
    told = errors.get(name) if isinstance(errors, Mapping) else None
    raise _CannotReadError(f"{name}: {told or run.reason or 'not in the answer'}")


def _registered(said: Mapping[str, object]) -> dict[str, str]:
    """Return the newest VC++ by processor, of whichever view of the registry has it."""
    found: dict[str, str] = {}
    for key, row in said.items():
        processor = key.partition(" ")[2]
        if not isinstance(row, Mapping) or row.get("Installed") not in (1, None):
            continue
        text = str(row.get("Version") or "").lstrip("vV")
        match = re.match(r"\d+(\.\d+)+", text)
        if match and _numbers(match[0]) > _numbers(found.get(processor, "0")):
            found[processor] = match[0]
    return found


def _edition(said: Mapping[str, object]) -> str | None:
    words = [said.get(name) for name in ("EditionID", "InstallationType")]
    return " ".join(w for w in words if isinstance(w, str))[:100] or None


def _build(said: Mapping[str, object]) -> int | None:
    version = said.get("version")
    if isinstance(version, list) and len(version) == 3 and isinstance(version[2], int):  # noqa: PLR2004
        return version[2]
    text = said.get("CurrentBuild")
    return int(text) if isinstance(text, str) and text.isdecimal() else None


def _long_paths(said: Mapping[str, object]) -> bool:
    return said.get("LongPathsEnabled") == 1


def _count(said: Mapping[str, object], key: str) -> int | None:
    value = said.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise _CannotReadError(f"{key} is no number")
    return value


def _policy(said: Mapping[str, object]) -> dict[str, str]:
    told = {}
    state = said.get("VerifiedAndReputablePolicyState")
    if isinstance(state, int) and state in SMART_APP_CONTROL:
        told["smart-app-control"] = SMART_APP_CONTROL[state]
    options = said.get("code_integrity")
    if isinstance(options, int):
        told["code-integrity"] = (
            "audit" if options & UMCI_AUDIT else "enforced" if options & UMCI else "off"
        )
    return told


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())
