"""torchvision and torchaudio can be imported where they are installed.

How it shows: ``import torchvision`` or ``import torchaudio`` raises, dies or hangs although
``import torch`` works.

Why: each of them is compiled against one torch, so another release or another build is the usual
reason and has its own check. What is left here failed for a reason that no check knows; the last
line of its error is given.

The fix depends on that line; a missing module that it names has to be installed. Source: the trial
imports of this run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor.facts import ImportTrial
from torchdoctor.model import Evidence, Finding

FAMILY = "environment"
FINDS = ("companion-import-fails",)
AFTER = (
    "torch-imports",
    "torch-present",
    "torch-family",
    "torch-variant",
    "torch-files",
    "extensions",
    "local-module",
    "user-site",
)

LONGEST = 200


def check(trial: ImportTrial, companion_trials: Mapping[str, ImportTrial]) -> Iterator[Finding]:
    """Say how the import of each companion ended, if torch's own ended well."""
    if trial.outcome != "imported":
        return
    for name, tried in companion_trials.items():
        if tried.outcome == "imported" or _is_absent(name, tried):
            continue
        yield Finding(
            "companion-import-fails",
            "warning",
            f"{_sentence(name, tried)}, although torch itself is imported.",
            (Evidence(f"companion_trials.{name}", _last_line(tried), f"import {name}"),),
            because_of=("trio-misaligned", "trio-variant-mixed"),
        )


def _is_absent(name: str, tried: ImportTrial) -> bool:
    return tried.error is not None and tried.error.message.startswith(f"No module named '{name}'")


def _sentence(name: str, tried: ImportTrial) -> str:
    if tried.outcome == "hung":
        return f"Importing {name} did not end within {tried.seconds:.0f} s"
    if tried.outcome == "died":
        how = tried.signal or f"exit code {tried.exit_code}"
        return f"Importing {name} ended the interpreter ({how}) in stage {tried.stage}"
    if tried.outcome == "not-started":
        return f"The interpreter that should import {name} did not start"
    return f"Importing {name} raises {_last_line(tried)}"


def _last_line(tried: ImportTrial) -> str:
    if tried.error:
        first = tried.error.message.strip().partition("\n")[0]
        return f"{tried.error.type}: {first}"[:LONGEST]
    lines = [line.strip() for line in tried.output.splitlines() if line.strip()]
    return (lines[-1] if lines else tried.outcome)[:LONGEST]
