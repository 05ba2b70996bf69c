"""Whether torch was installed for another Python than the one that runs.

``pip show torch`` finds it and ``import torch`` does not: a second environment is activated
(``VIRTUAL_ENV``, ``CONDA_PREFIX``) while a notebook kernel, an IDE or a launcher starts another
Python; conda has it for the Python version of before an upgrade; or ``PYTHONPATH`` or ``--target``
bring files that were built for another version (``No module named 'torch._C'``).

Print ``sys.executable`` where the import fails, and run ``-m pip show torch`` with exactly that
program; a bare ``pip`` may belong to another Python. A base environment of conda that stays active
behind a virtual environment is in order. A torch that imports is not judged.

``undefined symbol: PySlice_Unpack`` in libtorch_python.so, maybe only when a tensor is indexed: the
Python is of the right minor release and too old a patch of it (python-micro-too-old); the wheel was
built with a newer one.

The fix is to run the interpreter that has torch, or to install torch into the one that runs; for
the patch release, a newer Python.

Sources: https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/,
https://ipython.readthedocs.io/en/stable/install/kernel_install.html
"""

import re
from collections.abc import Iterator, Mapping

from torchdoctor import effects, places, steps, trials
from torchdoctor.facts import (
    Build,
    Conda,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import load

FAMILY = "environment"
FINDS = ("wrong-interpreter", "python-micro-too-old")

PATCH = 3
"""Numbers of a version that tells its patch release."""
_CONDA_PYTHON = re.compile(r"py(\d)\.?(\d{1,2})")
_TAG = re.compile(r"cp(\d)(\d{1,2})(t?)-(\w+)-")


def check(
    torch: Build | Unknown | None,
    interpreter: Interpreter,
    variables: Mapping[str, str] | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    conda: Conda | Unknown | None,
    trial: ImportTrial | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for signs that the torch at hand, or one that is absent, belongs elsewhere."""
    yield from _by_symbol(symptoms, interpreter)
    if isinstance(torch, Unknown):
        raise CannotTell(torch.reason)
    if trials.works(trial):
        return
    if torch is not None:
        if torch.distribution:
            yield from _by_tags(torch.distribution, interpreter, trial, facts)
        return
    known = items_of(distributions)
    if there := [d for d in known if d.name == "torch"]:
        if all(places.foreign(d.folder, interpreter.executable) for d in there):
            yield _elsewhere(there[0], interpreter, trial, facts)
        return  # its files are gone: torch-files has it
    of_conda = list(_by_record(conda, interpreter, facts))
    yield from of_conda or _by_variable(variables, interpreter, facts)


def _by_symbol(
    symptoms: tuple[Symptom, ...] | Unknown, interpreter: Interpreter
) -> Iterator[Finding]:
    """Judge a name of Python's own interface that this patch release does not have yet."""
    mine, known = _numbers(interpreter.version), load("python_symbols")["since"]
    for said in items_of(symptoms):
        raw = said.values.get("symbol", "")  # macOS puts an underscore before each name
        symbol = next((name for name in (raw, raw.removeprefix("_")) if name in known), "")
        since = known.get(symbol, "")
        first = _numbers(since)
        if not since or len(mine) < PATCH or mine[:2] != first[:2] or mine >= first:
            continue
        yield Finding(
            "python-micro-too-old",
            "error",
            f"Python {interpreter.version} lacks {symbol}, which Python has since {since}, and "
            f"{places.last(said.values.get('file', '')) or 'this torch'} calls it.",
            (
                Evidence("symptoms", said.text.strip()[:300], said.source),
                Evidence("interpreter.version", interpreter.version, "sys"),
            ),
            (_patch_release(interpreter, since),),
        )
        return


def _patch_release(interpreter: Interpreter, since: str) -> Step:
    minor = since.rpartition(".")[0]
    return steps.by_hand(
        "update-python-patch",
        f"Update Python {interpreter.version} to a newer {minor} ({since} or later); the packages "
        "may stay as they are",
        why="What is built for a minor release of Python runs on all its later patch releases.",
        layer=Layer.ENVIRONMENT,
        cost=steps.REINSTALL,
        effect=effects.then(
            effects.altered("interpreter", version=since),
            effects.settled("undefined-symbol", "dyld-symbol-missing"),
        ),
        bash=(f"conda install 'python>={since},<{minor}.999'",)
        if interpreter.kind == "conda"
        else (),
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:PATCH])


def _elsewhere(
    distribution: Distribution,
    interpreter: Interpreter,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Finding:
    prefix = re.sub(r"(?i)[\\/]lib(64)?[\\/].*$", "", distribution.folder)
    return Finding(
        "wrong-interpreter",
        "error",
        f"torch {distribution.version} is installed in {distribution.folder}, and the Python that "
        f"runs is {interpreter.executable}, which does not look there.",
        (
            Evidence("distributions", f"torch {distribution.version}", distribution.folder),
            Evidence("interpreter.executable", interpreter.executable, "sys"),
            *trials.evidence(trial),
        ),
        (
            _use(prefix),
            *steps.install_torch(facts, why="torch is then found by the Python that runs."),
        ),
    )


def _by_tags(
    distribution: Distribution,
    interpreter: Interpreter,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    built = [m for m in map(_TAG.match, distribution.wheel_tags) if m]
    if not built or interpreter.implementation != "cpython":
        return
    if any(_loads(m, interpreter) for m in built):
        return
    made_for = f"{built[0][1]}.{built[0][2]}{built[0][3]}"
    yield Finding(
        "wrong-interpreter",
        "error",
        f"torch {distribution.version} in {distribution.folder} is built for Python {made_for}; "
        f"Python {interpreter.tag} cannot load it.",
        (
            Evidence("torch.distribution.wheel_tags", distribution.wheel_tags[0], "WHEEL"),
            Evidence("interpreter.version", interpreter.version, "sys"),
            *trials.evidence(trial),
        ),
        steps.install_torch(facts, why=f"It brings torch for Python {interpreter.tag}."),
    )


def _loads(tag: re.Match[str], interpreter: Interpreter) -> bool:
    mine = tuple(int(part) for part in interpreter.version.split(".")[:2])
    its = (int(tag[1]), int(tag[2]))
    if tag[4] == "abi3":
        return mine >= its and not interpreter.free_threaded
    return mine == its and interpreter.free_threaded == tag[4].endswith("t")


def _by_record(
    conda: Conda | Unknown | None, interpreter: Interpreter, facts: Facts
) -> Iterator[Finding]:
    record = conda.get("pytorch") if isinstance(conda, Conda) else None
    found = _CONDA_PYTHON.search(record.build) if record else None
    if record and found and f"{found[1]}.{found[2]}" != interpreter.tag.rstrip("t"):
        yield Finding(
            "wrong-interpreter",
            "error",
            f"conda has pytorch {record.version} for Python {found[1]}.{found[2]} here, but the "
            f"environment runs Python {interpreter.tag}, which looks into another folder.",
            (
                Evidence("conda.pytorch", f"{record.version} {record.build}", "conda-meta"),
                Evidence("interpreter.version", interpreter.version, "sys"),
            ),
            steps.install_torch(facts, why=f"It brings torch for Python {interpreter.tag}."),
        )


def _by_variable(
    variables: Mapping[str, str] | Unknown, interpreter: Interpreter, facts: Facts
) -> Iterator[Finding]:
    given = {} if isinstance(variables, Unknown) else variables
    active = {n: given[n] for n in ("VIRTUAL_ENV", "CONDA_PREFIX") if given.get(n)}
    if not active or any(places.same(interpreter.prefix, p) for p in active.values()):
        return
    variable, prefix = next(iter(active.items()))
    yield Finding(
        "wrong-interpreter",
        "error",
        f"{interpreter.executable} runs and has no torch, while the activated environment is "
        f"{prefix}: torch was probably installed there.",
        (
            Evidence("interpreter.prefix", interpreter.prefix, "sys"),
            Evidence(f"variables.{variable}", prefix, "the environment"),
        ),
        (
            _use(prefix),
            *steps.install_torch(facts, why="torch is then found by the Python that runs."),
        ),
        confidence="likely",
    )


def _use(prefix: str) -> Step:
    windows = "\\" in prefix
    python = places.join(prefix, *(("Scripts", "python.exe") if windows else ("bin", "python")))
    return steps.by_hand(
        "use-activated-python",
        f"Run {python}, and point the notebook kernel, IDE or launcher at it",
        why="The interpreter of the activated environment is not the one that ran.",
        layer=Layer.ENVIRONMENT,
        cost=steps.VARIABLE,
        effect=effects.change(
            torch=effects.TO_TRY, torchvision=effects.TO_TRY, torchaudio=effects.TO_TRY
        ),
        bash=(f'"{python}" -c "import torch; print(torch.__file__)"',),
    )
