"""Whether the C++ runtime that is loaded is older than a compiled part needs.

``/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by ...)``:
a library was built with a newer GCC than the libstdc++ that the process has loaded. Which one that
is stands before the colon: the system's, or an older one of conda or of ``LD_LIBRARY_PATH``. The
wheels of torch ask for little (GLIBCXX_3.4.22), so it is mostly an extension or a conda build.

On Linux the files tell it without a message: the versions that each part asks for, and those that
the libstdc++ defines which the loader would take. A part of another package is a warning.

``GLIBC_2.x not found`` is about the C library, which cannot be replaced: glibc-too-old.

The fix: in a conda environment a newer ``libstdcxx-ng``, or the same once more where the system's
was loaded although the environment has one (its link libstdc++.so.6 is lost); where a variable
leads to the old one, unset it; else the system's own package, which needs admin rights.

Sources: https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html
"""

from collections.abc import Iterator, Mapping

from torchdoctor import conda_steps, effects, loading, places, steps
from torchdoctor.facts import (
    Conda,
    Facts,
    ImportTrial,
    Interpreter,
    Linux,
    Platform,
    SoLoad,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Severity, Step

FAMILY = "system"
FINDS = ("libstdcxx-too-old",)

NAMESPACES = ("GLIBCXX", "CXXABI")


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    conda: Conda | Unknown | None,
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    linux: Linux | Unknown | None,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which version of which library was not found, or look for it in the files."""
    if isinstance(symptoms, Unknown) and not isinstance(linux, Linux):
        raise CannotTell(symptoms.reason)
    told = [
        s
        for s in items_of(symptoms)
        if s.name == "symbol-version-missing" and s.values.get("namespace") in NAMESPACES
    ]
    seen = tuple(Evidence("symptoms", s.text.strip()[:300], s.source) for s in told[:1])
    if found := _in_files(linux, trial):  # a message may cut a path short
        load, severity, fact = found
        loaded, lacks, asks = load.culprit, load.names[0], places.last(load.asks)
        seen += loading.evidence(load, fact)
    elif told:
        values = told[0].values
        severity = "error"
        loaded = values.get("library") or "the libstdc++ that is loaded"
        lacks = f"{values['namespace']}_{values.get('version', '')}"
        asks = places.last(values.get("required_by", ""))
    else:
        return
    for_ = f", which {asks} needs" if asks else ""
    yield Finding(
        "libstdcxx-too-old",
        severity,
        f"{loaded} has no {lacks}{for_}.",
        seen,
        tuple(_steps(loaded, conda, interpreter, variables, facts)),
    )


def _in_files(
    linux: Linux | Unknown | None, trial: ImportTrial | Unknown
) -> tuple[SoLoad, Severity, str] | None:
    """Return what torch, else what another package, asks of a libstdc++ that has it not."""
    load = loading.failure(linux, trial)
    if load and _of_cxx(load):
        return load, "error", "linux.torch"
    for _, other in loading.failing_extensions(linux):
        if _of_cxx(other):
            return other, "warning", "linux.extensions"
    return None


def _of_cxx(load: SoLoad) -> bool:
    return load.kind == "version" and load.names[0].startswith(("GLIBCXX_", "CXXABI_"))


def _steps(
    loaded: str,
    conda: Conda | Unknown | None,
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    facts: Facts,
) -> Iterator[Step]:
    given = {} if isinstance(variables, Unknown) else variables
    python = interpreter if isinstance(interpreter, Interpreter) else None
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        entries = places.entries(given.get(name, ""))
        if any(places.inside(loaded, entry) for entry in entries):
            yield steps.unset_variable(name, why=f"It leads to {loaded}.")
    by_conda = isinstance(conda, Conda) or (
        python is not None and (python.installer in steps.CONDA or python.kind == "conda")
    )
    if by_conda:
        # The environment's own comes first, where it is whole: a link may have been lost.
        lost = python is not None and bool(python.prefix) and loaded.startswith("/")
        lost = lost and python is not None and not places.inside(loaded, python.prefix)
        yield conda_steps.install(
            facts,
            "conda-forge::libstdcxx-ng",
            why="The environment's own comes before the system's, once it is whole."
            if lost
            else "The environment then has a newer one of its own.",
            effect=effects.untried,
            again=lost,
        )
        return
    yield steps.by_hand(
        "upgrade-libstdcxx",
        "Install a newer libstdc++ of the system",
        why="What is loaded is the system's.",
        layer=Layer.RUNTIME,
        cost=steps.SMALL,
        effect=effects.untried,
        bash=_system(facts),
        admin=True,
    )


def _system(facts: Facts) -> tuple[str, ...]:
    platform = facts.platform
    kinds = {platform.distribution, *platform.like} if isinstance(platform, Platform) else set()
    if kinds & {"debian", "ubuntu"}:
        return ("sudo apt-get update", "sudo apt-get install -y --only-upgrade libstdc++6")
    if kinds & {"rhel", "centos", "fedora", "rocky", "almalinux"}:
        return ("sudo dnf upgrade -y libstdc++",)
    return ()
