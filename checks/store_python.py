r"""On Windows, the Python is one that torch is at home with, not the one of the Microsoft Store.

How it shows: DLLs are not found (126) or paths are too long while torch is installed, under a path
with ``PythonSoftwareFoundation.Python.3.x_qbz5n2kfra8p0``.

Why: the program folder of the Store package holds no Visual C++ runtime, packages go to a user
folder, and the long prefix takes much of the 260 characters of a path. None of that has to break
torch, but it is behind several of its faults.

The fix, where torch fails, is a Python from python.org or of uv, in a folder with a short path.

Sources: https://github.com/pytorch/pytorch/issues/32916,
https://github.com/pytorch/pytorch/issues/23823. Windows itself was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import choose, steps, trials
from torchdoctor.facts import Facts, ImportTrial, Interpreter, Unknown
from torchdoctor.model import Evidence, Finding

FAMILY = "environment"
FINDS = ("store-python",)


def check(
    interpreter: Interpreter, trial: ImportTrial | Unknown, facts: Facts
) -> Iterator[Finding]:
    """Tell by the kind of the interpreter, or by its path."""
    path = f"{interpreter.executable} {interpreter.base_prefix}".lower()
    if interpreter.kind != "store" and "pythonsoftwarefoundation" not in path:
        return
    choice = choose.choose(facts) if trials.failed(trial) else None
    yield Finding(
        "store-python",
        "note",
        f"Python {interpreter.version} is the one of the Microsoft Store, which has no runtime of "
        "its own beside it and long paths.",
        (Evidence("interpreter.executable", interpreter.executable, "sys"),),
        (
            steps.new_environment(
                facts, interpreter.tag, choice, why="uv brings a Python with a folder of its own."
            ),
        )
        if choice
        else (),
    )
