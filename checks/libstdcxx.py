"""Whether the C++ runtime that is loaded is older than a compiled part needs.

``/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by ...)``:
a library was built with a newer GCC than the libstdc++ that the process has loaded. Which one that
is stands before the colon: the system's, or an older one of conda or of ``LD_LIBRARY_PATH``. The
wheels of torch ask for little (GLIBCXX_3.4.22), so it is mostly an extension or a conda build.

``GLIBC_2.x not found`` is about the C library, which cannot be replaced: glibc-too-old.

The fix: in a conda environment a newer ``libstdcxx-ng``; where a variable leads to the old one,
unset it; else the system's own package, which needs admin rights.

Sources: https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html
"""

from collections.abc import Iterator, Mapping

from torchdoctor import conda_steps, effects, places, steps
from torchdoctor.facts import Conda, Facts, Interpreter, Platform, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "system"
FINDS = ("libstdcxx-too-old",)

NAMESPACES = ("GLIBCXX", "CXXABI")


def check(
    symptoms: tuple[Symptom, ...],
    conda: Conda | Unknown | None,
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read which version of which library was not found."""
    told = [
        s
        for s in symptoms
        if s.name == "symbol-version-missing" and s.values.get("namespace") in NAMESPACES
    ]
    if not told:
        return
    values = told[0].values
    loaded = values.get("library") or "the libstdc++ that is loaded"
    for_ = f", which {places.last(values['required_by'])} needs" if "required_by" in values else ""
    yield Finding(
        "libstdcxx-too-old",
        "error",
        f"{loaded} has no {values['namespace']}_{values.get('version', '')}{for_}.",
        (Evidence("symptoms", told[0].text.strip()[:300], told[0].source),),
        tuple(_steps(loaded, conda, interpreter, variables, facts)),
    )


def _steps(
    loaded: str,
    conda: Conda | Unknown | None,
    interpreter: Interpreter | Unknown,
    variables: Mapping[str, str] | Unknown,
    facts: Facts,
) -> Iterator[Step]:
    given = {} if isinstance(variables, Unknown) else variables
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH"):
        entries = places.entries(given.get(name, ""))
        if any(places.inside(loaded, entry) for entry in entries):
            yield steps.unset_variable(name, why=f"It leads to {loaded}.")
    by_conda = isinstance(conda, Conda) or (
        isinstance(interpreter, Interpreter) and interpreter.installer in steps.CONDA
    )
    if by_conda:
        yield conda_steps.install(
            facts,
            "conda-forge::libstdcxx-ng",
            why="The environment then has a newer one of its own.",
            effect=effects.untried,
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
