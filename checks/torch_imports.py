"""``import torch`` works, tried for real in a process of its own.

How it shows: whatever Python or the system prints when torch is imported, or nothing when the
process dies or never returns.

Why: this is the symptom that is left when torch was imported once and failed, and no other check
explains it; where one does, this stands below it. What was seen is given: the last line of the
error, the signal, or how long it was waited.

On Linux the shared objects are searched as the loader does, and the chain from torch._C to the file
or the symbol that is missing is given. The fix depends on that line. Torch's own files are put back
first when they were not compared with what was published; ``python -X faulthandler -c "import
torch"`` shows where it dies or hangs.
Source: the trial import of this run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import loading, steps
from torchdoctor.facts import Build, Facts, ImportTrial, Linux, Record, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "environment"
FINDS = ("torch-import-fails",)
AFTER = (
    "torch-present",
    "python-supported",
    "no-wheel",
    "glibc",
    "cpu-instructions",
    "known-bad",
    "torch-files",
    "interrupted-upgrade",
    "one-torch",
    "conda-and-pip",
    "conda-channels",
    "local-module",
    "user-site",
    "dependencies",
    "nvidia-wheels",
    "nvidia-wheel-files",
    "nvidia-majors",
    "python-of-torch",
    "shared-library",
    "libpython",
    "libstdcxx",
    "executable-stack",
    "musl",
    "mkl",
    "openmp",
    "dll-named",
    "vc-runtime",
    "import-order",
    "dll-path",
    "dll-closure",
    "dll-init",
    "stale-dll",
    "dll-blocked",
    "paging-file",
    "long-path",
)

LONGEST = 200
EXPLAINS = (
    "torch-not-installed",
    "wrong-interpreter",
    "python-not-supported",
    "python-32bit",
    "platform-wheel-dropped",
    "glibc-too-old",
    "cpu-instruction-missing",
    "torch-build-known-bad",
    "torch-files-missing",
    "torch-files-corrupt",
    "interrupted-upgrade",
    "duplicate-install",
    "conda-pip-mix",
    "conda-channel-mix",
    "local-module-shadow",
    "user-site-shadow",
    "nvidia-wheels-missing",
    "nvidia-wheels-mixed",
    "nvidia-wheel-files-missing",
    "cuda-lib-shadow",
    "libtorch-shadow",
    "libpython-not-found",
    "libstdcxx-too-old",
    "executable-stack-refused",
    "musl-libc",
    "mkl-too-new",
    "openmp-duplicate",
    "paging-file-too-small",
    "libomp140-missing",
    "mkl-dll-not-found",
    "vcredist-missing",
    "vcredist-too-old",
    "import-order-dll-conflict",
    "path-dll-conflict",
    "app-control-blocked",
    "frozen-app-missing-dll",
    "xpu-runtime-missing",
    "windows-long-path",
    "dll-missing",
    "cuda-dll-missing",
    "dll-symbol-missing",
    "dll-wrong-machine",
    "dll-init-failed",
    "python-micro-too-old",
    "torch-stale-dll",
    "antivirus-blocked",
    "dll-access-denied",
)
"""Findings beside which the failing import is no riddle."""


def check(
    trial: ImportTrial,
    torch: Build | Unknown | None,
    records: Mapping[str, Record] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    linux: Linux | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Say how the import ended, if it did not end well."""
    if trial.outcome == "imported" or trial.stage not in ("start", "import"):
        return
    name = f"torch {torch.version}" if isinstance(torch, Build) else "torch"
    last = last_line(trial)
    known = "" if isinstance(symptoms, Unknown) else _recognised(symptoms)
    seen = [
        Evidence("trial.outcome", f"{trial.outcome} after {trial.seconds:.1f} s", "import torch")
    ]
    if last:
        seen.append(Evidence("trial.error", last, "import torch"))
    if trial.signal:
        seen.append(Evidence("trial.signal", trial.signal, "the system"))
    if (load := loading.failure(linux, trial)) and trial.outcome == "raised":
        seen += loading.evidence(load)
    yield Finding(
        "torch-import-fails",
        "error",
        f"{sentence(name, trial)}{known}; no check explains it.",
        tuple(seen),
        tuple(_reinstall(records, facts)),
        confidence="possible",
        because_of=EXPLAINS,
    )


def sentence(name: str, trial: ImportTrial) -> str:
    """Return how the import of *name* ended, without a full stop."""
    last = last_line(trial)
    if trial.outcome == "raised":
        return f"Importing {name} raises {last or 'an exception without words'}"
    if trial.outcome == "hung":
        return f"Importing {name} did not end within {trial.seconds:.0f} s"
    if trial.outcome == "died":
        how = trial.signal or f"exit code {trial.exit_code}"
        return f"Importing {name} ended the interpreter ({how})" + (f": {last}" if last else "")
    return f"The interpreter that should import {name} did not start" + (
        f": {last}" if last else ""
    )


def last_line(trial: ImportTrial) -> str:
    """Return the one line that says most: of the exception, else of what was printed."""
    if trial.error:
        message = trial.error.message.strip().partition("\n")[0]
        return f"{trial.error.type}: {message}"[:LONGEST].strip(": ")
    lines = [line.strip() for line in trial.output.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("Fatal", "Windows fatal"))]
    return (fatal or lines or [""])[-1][:LONGEST]


def _recognised(symptoms: tuple[Symptom, ...]) -> str:
    found = next((s for s in symptoms if s.source.endswith("import torch")), None)
    return f" (a known message: {found.name})" if found else ""


def _reinstall(records: Mapping[str, Record] | Unknown, facts: Facts) -> Iterator[Step]:
    record = None if isinstance(records, Unknown) else records.get("torch")
    # A record of no files is that of a distribution which a step has just put in, whole.
    verified = record is not None and (record.hashed > 0 or not record.files)
    if not verified and steps.owner(facts, "torch"):
        yield steps.reinstall(
            facts, ["torch"], why="The files of torch were not compared with what was published."
        )
