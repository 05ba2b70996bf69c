"""Whether torch is installed for the Python that runs.

``ModuleNotFoundError: No module named 'torch'``: no folder that this interpreter looks into has it.
It was never installed, or for another Python (wrong-interpreter), or an upgrade was stopped after
the old one was gone (interrupted-upgrade). A torch that is registered and has lost its files is
torch-files-missing.

The fix is to install torch with the interpreter that is to run it, ``PYTHON -m pip install``, in
the build that fits this machine. The Python of the system is left alone (PEP 668, ``error:
externally-managed-environment``): a virtual environment is made instead. Where no release has a
wheel for this Python, the new environment brings one that does.

Sources: https://pytorch.org/get-started/locally/, https://peps.python.org/pep-0668/
"""

from collections.abc import Iterator

from torchdoctor import steps
from torchdoctor.facts import Build, Distribution, Facts, Interpreter, Unknown, items_of
from torchdoctor.model import Evidence, Finding

FAMILY = "environment"
FINDS = ("torch-not-installed",)


def check(
    torch: Build | None,
    interpreter: Interpreter | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for torch on the path."""
    if torch is not None:
        return
    known = items_of(distributions)
    if any(d.name == "torch" and not d.editable for d in known):
        return  # its files are gone, or it is of another Python: other checks have it
    python = interpreter.executable if isinstance(interpreter, Interpreter) else "this Python"
    yield Finding(
        "torch-not-installed",
        "error",
        f"torch is in no folder that {python} looks into, so import torch fails.",
        (
            Evidence("torch", "none", "sys.path"),
            Evidence("interpreter.executable", python, "sys"),
        ),
        steps.install_torch(facts, why="torch is then found by the Python that runs."),
        because_of=("wrong-interpreter", "interrupted-upgrade"),
    )
