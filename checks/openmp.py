"""Whether two OpenMP runtimes meet in one process or overwrite each other in one environment.

torch brings a copy of libiomp5 or libgomp, and so do MKL, NumPy of conda, ctranslate2, OpenCV. On
Windows and macOS the second one to start stops the process:
``OMP: Error #15: Initializing libiomp5md.dll, but found libiomp5md.dll already initialized``.
In a conda environment on Windows, ``intel-openmp`` and ``llvm-openmp`` (or ``openmp``) write the
same file, and torch fails with WinError 182 or 127 for fbgemm.dll or torch_python.dll.

Both packages beside each other and a torch that works are in order: only a message makes a fault.

The fix is one runtime: in conda reinstall the one that torch was built with, else take the other
package's copy away (on Windows the DLL that is loaded first serves all who ask for that name).
``KMP_DUPLICATE_LIB_OK=TRUE`` lets the program go on with two of them; Intel
calls that unsafe, results may be wrong.

Sources: https://github.com/conda-forge/intel_repack-feedstock/issues/59,
https://github.com/conda-forge/pytorch-cpu-feedstock/issues/354,
https://github.com/pytorch/pytorch/issues/44282
"""

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import conda_steps, effects, installers, places, steps, trials
from torchdoctor.facts import Conda, Facts, ImportTrial, Symptom, Unknown, Windows, items_of
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "files"
FINDS = ("openmp-duplicate",)

LLVM = ("llvm-openmp", "openmp")
TWICE = "openmp-twice"
ONE = "Windows takes, for the name of a DLL that is loaded, the one that is there."


def check(
    symptoms: tuple[Symptom, ...],
    conda: Conda | Unknown | None,
    trial: ImportTrial | Unknown,
    windows: Windows | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Read the message of the runtime, or of a DLL that two packages write."""
    both = _both(conda)
    told = [s for s in symptoms if s.name == TWICE]
    dll = [
        s
        for s in symptoms
        if s.name == "winerror-dll" and s.values.get("code") in ("182", "127") and both
    ]
    if not (told or dll) or (dll and not told and trials.works(trial)):
        return
    symptom = (told or dll)[0]
    if told:
        values = symptom.values
        second, first = values.get("second", "one"), values.get("first", "another")
        said = f"Two OpenMP runtimes were started in one process ({second} after {first})"
    else:
        said = f"{' and '.join(both)} write the same OpenMP DLL into the environment"
    yield Finding(
        "openmp-duplicate",
        "error",
        f"{said}, and the process stops.",
        (
            Evidence("symptoms", symptom.text.strip()[:300], symptom.source),
            *(Evidence(f"conda.{name}", "installed", "conda-meta") for name in both),
            *(
                Evidence("windows.loaded", path, "what import torch loads")
                for path in _loaded(windows)
            ),
            *trials.evidence(trial),
        ),
        tuple(_steps(both, told, _loaded(windows), facts)),
        confidence="certain" if told else "likely",
    )


def _loaded(windows: Windows | Unknown | None) -> tuple[str, ...]:
    """Return the runtimes that a real import of torch loaded, where there are several."""
    paths = windows.loaded if isinstance(windows, Windows) else ()
    found = items_of(paths)
    both = tuple(p for p in found if places.last(p).lower().startswith(("libiomp5", "libomp")))
    return both if len(both) > 1 else ()


def _both(conda: Conda | Unknown | None) -> tuple[str, ...]:
    """Return intel-openmp and its rival, when conda has both."""
    if not isinstance(conda, Conda) or conda.get("intel-openmp") is None:
        return ()
    rival = next((name for name in LLVM if conda.get(name)), None)
    return ("intel-openmp", rival) if rival else ()


def _steps(
    both: tuple[str, ...], told: list[Symptom], loaded: tuple[str, ...], facts: Facts
) -> Iterator[Step]:
    if both:
        gone = conda_steps.without_records(frozenset(both[1:]))
        removal = conda_steps.remove(
            facts, *both[1:], why="The runtime of MKL and torch is the one that stays.", effect=gone
        )
        back = conda_steps.install(
            facts, both[0], why=removal.why, effect=effects.untried, again=True
        )
        yield replace(
            removal,
            title=f"{removal.title}, then put {both[0]} back",
            cost=removal.cost + back.cost,
            commands=installers.join(removal.commands, back.commands),
            needs=("network",),
        )
    elif told:
        yield _leave_one(told[0].values.get("second", ""), loaded)
    workaround = steps.set_variable(
        "KMP_DUPLICATE_LIB_OK",
        "TRUE",
        why="A workaround: the program goes on with both, and its results may be wrong.",
    )
    yield replace(workaround, cost=steps.BUILD)


def _leave_one(name: str, loaded: tuple[str, ...]) -> Step:
    """Return the step after which torch's copy of the runtime is the only one of its name."""
    file = places.last(name) or "libiomp5"
    others = [p for p in loaded if places.plain(p).lower().split("/")[-3:-1] != ["torch", "lib"]]
    if file.lower().endswith(".dll") and len(others) == 1:
        step = steps.rename_path(others[0], f"{places.last(others[0])}.off", why=ONE)
        return replace(step, effect=effects.settled(TWICE))
    if file.lower().endswith(".dll"):
        title = (
            f"Rename every {file} of this environment but the one in torch\\lib, and import torch"
            " before the package whose copy it was; these commands list them"
        )
        why = ONE
    else:
        title = (
            "Install torch and the package with the other OpenMP runtime from one source, all by"
            " pip or all from conda-forge; these commands list the copies"
        )
        why = "Packages of one source share one runtime, or bring copies that bear each other."
    prefix = "import sys; print(sys.prefix)"
    listed = f"Get-ChildItem -Recurse -Path (python -c '{prefix}')"
    each = f'for /f "delims=" %p in (\'python -c "{prefix}"\')'
    return steps.by_hand(
        "leave-one-openmp",
        title,
        why=why,
        layer=Layer.PACKAGES,
        cost=steps.COMPANION,
        effect=effects.settled(TWICE),
        bash=(f"find \"$(python -c '{prefix}')\" -name 'libiomp5*' -o -name 'libomp*'",),
        powershell=(f"{listed} -Include 'libiomp5*', 'libomp*' -Name",),
        cmd=(f'{each} do @where /r "%p" "libiomp5*" "libomp*"',),
    )
