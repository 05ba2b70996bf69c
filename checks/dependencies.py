"""Whether the Python packages that torch and its companions need are installed.

``ModuleNotFoundError: No module named 'typing_extensions'`` (or sympy, networkx, jinja2, fsspec,
filelock, setuptools; numpy and PIL for torchvision) comes from ``--no-deps``, from an install that
was stopped, or from another package's uninstall. A version that is too old imports and fails later.

Needed is what Requires-Dist says, its markers evaluated for the Python and the system under test.
NumPy is not required by torch: without it torch warns and works. The nvidia wheels and triton are
nvidia-wheels-missing; torch itself is torch-not-installed.

The fix is to install exactly these.

Sources: METADATA of the wheels, https://peps.python.org/pep-0508/
"""

import re
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement

from torchdoctor import requirements, steps, trials
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    ImportTrial,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
)
from torchdoctor.model import Evidence, Finding

FAMILY = "files"
FINDS = ("dependency-missing",)
AFTER = ("torch-present",)

SHOWN = 3
OTHERS = ("torch", "nvidia-", "cuda-", "triton", "pytorch-triton", "rocm", "intel-")
NAMES = {"PIL": "pillow", "typing_extensions": "typing-extensions", "yaml": "pyyaml"}
# What torch and its companions import, and what those import in turn.
KNOWN = frozenset(
    (
        "filelock",
        "typing-extensions",
        "sympy",
        "mpmath",
        "networkx",
        "jinja2",
        "markupsafe",
        "fsspec",
        "setuptools",
        "numpy",
        "pillow",
        "pyyaml",
        "packaging",
    )
)
_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)")


def check(
    torch: Build | None,
    torchvision: Build | Unknown | None,
    torchaudio: Build | Unknown | None,
    distributions: tuple[Distribution, ...],
    platform: Platform,
    interpreter: Interpreter,
    trial: ImportTrial | Unknown,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare Requires-Dist with what is installed, and read which module was not found."""
    marks = requirements.environment(platform, interpreter)
    owners = [
        build.distribution
        for build in (torch, torchvision, torchaudio)
        if isinstance(build, Build) and build.distribution
    ]
    lacking: dict[str, tuple[Requirement, Distribution | None, str]] = {}
    for owner in owners:
        for requirement, there in requirements.unmet(
            requirements.needed(owner, marks), distributions
        ):
            if not requirement.name.startswith(OTHERS):
                name = requirements.name(requirement)
                lacking.setdefault(name, (requirement, there, owner.name))
    trio = [trial, *({} if isinstance(companion_trials, Unknown) else companion_trials).values()]
    not_found = {
        module: one for one in trio if isinstance(one, ImportTrial) and (module := _not_found(one))
    }
    installed = {d.name for d in distributions}
    for module, tried in not_found.items():
        if module in KNOWN and module not in installed:
            lacking.setdefault(module, (Requirement(module), None, tried.module))
    if lacking:
        yield _finding(lacking, not_found, symptoms, facts)


def _not_found(tried: ImportTrial) -> str | None:
    """Return the distribution of the module that an import did not find."""
    if tried.error is None or not trials.failed(tried):
        return None
    found = _MODULE.search(tried.error.message)
    return NAMES.get(found[1], found[1].lower().replace("_", "-")) if found else None


def _finding(
    lacking: Mapping[str, tuple[Requirement, Distribution | None, str]],
    not_found: Mapping[str, ImportTrial],
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Finding:
    said = [
        f"{owner} needs {requirement.name}{requirement.specifier}, "
        + (f"{there.version} is there" if there else "which is not installed")
        for requirement, there, owner in lacking.values()
    ]
    more = f"; and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
    told = {
        NAMES.get(root, root.lower().replace("_", "-"))
        for s in ([] if isinstance(symptoms, Unknown) else symptoms)
        if s.name == "module-missing" and (root := s.values.get("module", "").partition(".")[0])
    }
    failed = [not_found[name] for name in lacking if name in not_found]
    landed = {
        name: (f"{r.name}{r.specifier}", requirements.version_in(r.specifier))
        for name, (r, _, _) in lacking.items()
    }
    return Finding(
        "dependency-missing",
        "error" if failed or told & set(lacking) else "warning",
        f"{'; '.join(said[:SHOWN])}{more}.",
        tuple(
            Evidence(f"{owner}.distribution.requires", str(requirement), "METADATA")
            for requirement, _, owner in lacking.values()
        )
        + tuple(item for tried in failed for item in trials.evidence(tried)),
        (
            steps.install_requirements(
                facts, landed, why="They are what the metadata asks for.", cost=steps.SMALL
            ),
        ),
        because_of=("interrupted-upgrade",),
    )
