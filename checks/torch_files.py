"""Whether the files of torch and its companions are all there and as they were installed.

Every wheel lists its files with their sizes and hashes in RECORD. A file that is gone
(``libc10.so: cannot open shared object file``, ``No module named 'torch._C'``) or that has another
size (``file too short``, ``invalid ELF header``, WinError 193, a crash or an import that never
returns) comes from a full disk, a broken copy, an antivirus program, a tool that slims images, or
an upgrade that was stopped. Which message comes depends on the file; RECORD names it.

Headers, type stubs, tests and static libraries are not needed to run: their absence is a note.
Editable and source installs have no RECORD of their files and are not judged. Two copies in one
folder (duplicate-install, conda-pip-mix) explain files that do not fit either RECORD.

The fix is to reinstall the same version with its files forced, without its dependencies.

Sources: https://packaging.python.org/en/latest/specifications/recording-installed-packages/,
https://docs.python.org/3/library/faulthandler.html
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from torchdoctor import choose, effects, places, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Record,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import Evidence, Finding, Severity, Step
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = ("torch-files-missing", "torch-files-corrupt")
AFTER = ("torch-present",)

CAUSES = ("duplicate-install", "conda-pip-mix", "interrupted-upgrade", "local-module-shadow")
SHOWN = 3
# Not needed to run torch: what is compiled against, typed with or tested by.
_SPARE = re.compile(
    r"(^|/)(include|share|test|tests|docs|licenses)/|\.(pyi|h|hpp|cuh|cmake|a|lib|md|txt|rst)$"
    r"|\.(dist|egg)-info/|^\.\./|/py\.typed$",
    re.IGNORECASE,
)
_CODE = re.compile(r"\.(so[.\d]*|pyd|dll|dylib)$", re.IGNORECASE)


def check(
    records: Mapping[str, Record] | Unknown,
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    trial: ImportTrial | Unknown,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Judge what differs from RECORD, then what the messages say of torch's own files."""
    told = False
    for name in effects.FAMILY:
        record = None if isinstance(records, Unknown) else records.get(name)
        tried = trial if name == "torch" else trials.of_companion(companion_trials, name)
        if record and not _untold(name, distributions):
            for finding in _of_record(record, tried, facts):
                told = told or finding.severity == "error"
                yield finding
    if torch is None and not told and (gone := _registered(distributions, facts)):
        yield Finding(
            "torch-files-missing",
            "error",
            f"torch {gone.version} is registered in {gone.folder}, but its files are not there.",
            (Evidence("distributions", gone.metadata or f"torch {gone.version}", gone.folder),),
            tuple(_steps("torch", facts)),
            because_of=CAUSES,
        )
    elif not told and not trials.works(trial) and not isinstance(symptoms, Unknown):
        yield from _of_symptoms(symptoms, trial, facts)


def _untold(name: str, distributions: tuple[Distribution, ...] | Unknown) -> bool:
    """Tell whether RECORD says nothing of *name*: an editable install, or two copies."""
    if isinstance(distributions, Unknown):
        return False
    own = [d for d in distributions if d.name == name and not d.user_site]
    return len(own) > 1 or any(d.editable for d in own)


def _registered(
    distributions: tuple[Distribution, ...] | Unknown, facts: Facts
) -> Distribution | None:
    known = items_of(distributions)
    python = facts.interpreter.executable if isinstance(facts.interpreter, Interpreter) else ""
    return next(
        (
            d
            for d in known
            if d.name == "torch" and not d.editable and not places.foreign(d.folder, python)
        ),
        None,
    )


def _of_record(
    record: Record, tried: ImportTrial | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    spare = [f for f in record.missing if _SPARE.search(f)]
    needed = [f for f in record.missing if f not in spare]
    if needed:
        count = record.missing_count - len(spare)
        yield _finding("missing", record.name, count, needed, tried, facts)
    elif spare:
        yield Finding(
            "torch-files-missing",
            "note",
            f"{record.missing_count} files of {record.name} that are not needed to run it are "
            f"gone, {spare[0]} first.",
            (Evidence(f"records.{record.name}.missing", spare[0], "RECORD"),),
        )
    altered = [f for f in record.altered if not _SPARE.search(f)]
    code = [f for f in altered if _CODE.search(f)]
    if code or (altered and not trials.works(tried)):
        names = code or altered
        count = record.altered_count - len(record.altered) + len(altered)
        yield _finding("corrupt", record.name, count, names, tried, facts, sure=bool(code))
    elif altered:
        yield Finding(
            "torch-files-corrupt",
            "note",
            f"{altered[0]} of {record.name} is not as it was installed, and {record.name} imports:"
            " it was edited.",
            (Evidence(f"records.{record.name}.altered", altered[0], "RECORD"),),
        )


def _finding(
    kind: str,
    name: str,
    count: int,
    files: Sequence[str],
    tried: ImportTrial | Unknown | None,
    facts: Facts,
    *,
    sure: bool = True,
) -> Finding:
    """Return the finding for *count* files of *name*; *sure* says that they must stop it."""
    broken = isinstance(tried, ImportTrial) and trials.failed(tried)
    severity: Severity = "error" if broken or (sure and not trials.works(tried)) else "warning"
    state, listed = ("gone", "missing") if kind == "missing" else ("not as installed", "altered")
    those = f"{files[0]} is" if count == 1 else f"{count} files, {files[0]} first, are"
    how = f": import {name} {trials.ending(tried)}" if isinstance(tried, ImportTrial) else ""
    return Finding(
        f"torch-files-{kind}",
        severity,
        f"Of {name}, {those} {state}{how if broken else ''}.",
        tuple(Evidence(f"records.{name}.{listed}", f, "RECORD") for f in files[:SHOWN])
        + trials.evidence(tried),
        tuple(_steps(name, facts)),
        because_of=CAUSES,
    )


def _steps(name: str, facts: Facts) -> Iterator[Step]:
    why = f"Every file of {name} is written again, at the version that is installed."
    if steps.owner(facts, name):
        yield steps.reinstall(facts, [name], why=why)
    elif choice := choose.choose(facts):
        yield steps.change_build(facts, choice, why=why)


def _of_symptoms(
    symptoms: tuple[Symptom, ...], trial: ImportTrial | Unknown, facts: Facts
) -> Iterator[Finding]:
    """Yield what messages say of torch's own files, where no RECORD could be compared."""
    for symptom in symptoms:
        module = symptom.values.get("module", "")
        # Elsewhere it is mostly somebody who asks for a module that torch gave up.
        if (
            symptom.name == "module-missing"
            and module.startswith("torch.")
            and symptom.source == "import torch"
            and trials.failed(trial)
        ):
            yield Finding(
                "torch-files-missing",
                "error",
                f"torch imports its own module {module}, which is not there.",
                (
                    Evidence("symptoms", symptom.text.strip()[:200], symptom.source),
                    *trials.evidence(trial),
                ),
                tuple(_steps("torch", facts)),
                confidence="likely",
                because_of=CAUSES,
            )
            return
        file = symptom.values.get("file") or symptom.values.get("library") or ""
        base = file.replace("\\", "/").rpartition("/")[2]
        own = "/torch/" in file.replace("\\", "/") or libraries.suppliers(base) == ("torch",)
        damaged = symptom.name == "library-damaged" or (
            symptom.name == "winerror-dll" and symptom.values.get("code") == "193"
        )
        if own and (damaged or symptom.name == "shared-library-missing"):
            state = "damaged" if damaged else "gone"
            yield Finding(
                f"torch-files-{'corrupt' if damaged else 'missing'}",
                "error",
                f"{base} of torch is {state}: {symptom.text.strip()[:200]}",
                (
                    Evidence("symptoms", f"{symptom.name} {file}", symptom.source),
                    *trials.evidence(trial),
                ),
                tuple(_steps("torch", facts)),
                confidence="likely",
                because_of=CAUSES,
            )
            return
