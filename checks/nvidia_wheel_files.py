"""Whether the nvidia wheels that are installed still have their libraries.

``libnccl.so.2: cannot open shared object file`` although ``pip list`` shows nvidia-nccl-cu12: the
wheels of CUDA 11, 12 and 13 write some files into one folder, so uninstalling one takes the file of
the other along; or the disk was full when it was unpacked, or a tool that slims images removed it.

A wheel that is not installed at all is nvidia-wheels-missing. Headers that are gone do not matter.

The fix is to reinstall the wheels that lost a library, at the versions that are installed.

Sources: RECORD of the wheels, https://github.com/rwth-i6/returnn/issues/1802
"""

from collections.abc import Iterator, Mapping

from torchdoctor import nvidia, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Platform,
    Record,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding
from torchdoctor.tables import libraries

FAMILY = "files"
FINDS = ("nvidia-wheel-files-missing",)
AFTER = ("torch-present",)


def check(
    torch: Build | None,
    platform: Platform,
    interpreter: Interpreter,
    distributions: tuple[Distribution, ...],
    records: Mapping[str, Record] | Unknown,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for libraries that RECORD lists, or a message names, and that are gone."""
    absent = nvidia.absent(symptoms)
    asked = nvidia.asked(torch, distributions, platform, interpreter, absent)
    names = {d.name for d in distributions if d.name in asked and d.name.startswith("nvidia-")}
    if not names:
        return
    if isinstance(records, Unknown) and not absent:
        raise CannotTell(f"records: {records.reason}")
    compared = {} if isinstance(records, Unknown) else records
    lost = ((name, _lost(name, compared.get(name), absent)) for name in sorted(names))
    gone = {name: files[0] for name, files in lost if files}
    if not gone:
        return
    name, file = next(iter(gone.items()))
    more = f" (and those of {len(gone) - 1} more)" if len(gone) > 1 else ""
    lost_file = file.rpartition("/")[2]
    yield Finding(
        "nvidia-wheel-files-missing",
        "warning" if trials.works(trial) else "error",
        f"{name} is installed, but its {lost_file}, which torch loads, is gone{more}.",
        tuple(Evidence(f"records.{n}.missing", f, "RECORD") for n, f in gone.items())
        + trials.evidence(trial),
        (steps.reinstall(facts, gone, why="The libraries are written again."),),
        because_of=("nvidia-wheels-mixed", "interrupted-upgrade"),
    )


def _lost(name: str, record: Record | None, absent: frozenset[str]) -> list[str]:
    """Return the libraries of the wheel *name* that are gone."""
    missing = [f for f in (record.missing if record else ()) if ".so" in f]
    return missing + [f for f in sorted(absent) if name in libraries.suppliers(f)]
