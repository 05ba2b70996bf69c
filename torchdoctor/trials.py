"""How an import trial ended, as evidence and in words."""

from __future__ import annotations

from collections.abc import Mapping

from torchdoctor.facts import ImportTrial, Unknown
from torchdoctor.model import Evidence

LONGEST = 300


IMPORTING = ("start", "import")
"""The stages of a trial until the module is there; what comes after tries accelerators."""


def works(trial: ImportTrial | Unknown | None) -> bool:
    """Tell whether the import is known to work. An unknown trial says nothing."""
    if not isinstance(trial, ImportTrial):
        return False
    later = trial.outcome in ("died", "hung") and trial.stage not in IMPORTING
    return trial.outcome == "imported" or later


def failed(trial: ImportTrial | Unknown | None) -> bool:
    """Tell whether the import is known to fail: an exception, a crash, or no return."""
    if not isinstance(trial, ImportTrial):
        return False
    # What an import raises is its own; after it, the trial looks on for the reason.
    return trial.outcome == "raised" or (
        trial.outcome in ("died", "hung") and trial.stage in IMPORTING
    )


def of_companion(trials: Mapping[str, ImportTrial] | Unknown, name: str) -> ImportTrial | None:
    """Return the trial of the companion *name*, None when there was none."""
    return None if isinstance(trials, Unknown) else trials.get(name)


def ending(trial: ImportTrial) -> str:
    """Return how *trial* ended: "died with SIGSEGV", "did not return within 60 s"."""
    match trial.outcome:
        case "raised":
            error = trial.error
            return f"raised {error.type}: {_line(error.message)}" if error else "raised"
        case "died":
            how = trial.signal or f"exit code {trial.exit_code}"
            return f"died with {how}"
        case "hung":
            return f"did not return within {trial.seconds:.0f} s"
        case "not-started":
            return "could not be started"
        case _:
            return "imported"


def evidence(trial: ImportTrial | Unknown | None) -> tuple[Evidence, ...]:
    """Return how *trial* ended as evidence, when it is known to have failed."""
    if not isinstance(trial, ImportTrial) or not failed(trial):
        return ()
    fact = "trial" if trial.module == "torch" else f"companion_trials.{trial.module}"
    return (Evidence(fact, f"import {trial.module} {ending(trial)}", f"import {trial.module}"),)


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
