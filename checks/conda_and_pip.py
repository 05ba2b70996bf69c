"""Whether conda and pip each have a torch in one folder.

pip and conda do not know of each other. ``pip install`` of anything that pins torch writes its
torch over conda's files; conda's record then is untrue, and the next ``conda install`` or
``conda remove`` takes files away from pip's copy. It shows as a version that ``conda list`` and
``torch.__version__`` tell differently, or as libraries that one copy had and the other has not
(``libtorch_cuda_cu.so: cannot open shared object file``).

A conda Python with torch from pip alone is in order, and so is a torch whose metadata conda wrote.

The fix is to keep one of the two: end conda's record and reinstall pip's torch, or uninstall
pip's and have conda put its files back. Later, install extras with ``--no-deps`` or a constraint.

Sources: https://www.anaconda.com/blog/using-pip-in-a-conda-environment,
https://docs.conda.io/projects/conda/en/latest/user-guide/tasks/manage-environments.html
"""

from collections.abc import Iterator
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from torchdoctor import conda_steps, trials
from torchdoctor.facts import (
    Build,
    Conda,
    CondaPackage,
    Distribution,
    Facts,
    ImportTrial,
    Unknown,
)
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "environment"
FINDS = ("conda-pip-mix",)

OWNERS = {
    "torch": ("pytorch", "libtorch"),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio",),
}


def check(
    conda: Conda | None,
    distributions: tuple[Distribution, ...] | Unknown,
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare conda's records with pip's metadata."""
    if conda is None:
        return
    mixed = [
        (name, record, foreign)
        for name in OWNERS
        if (record := _record(conda, name))
        and (foreign := _foreign(name, record, conda, distributions))
    ]
    if not mixed:
        return
    name, record, foreign = mixed[0]
    imported = torch.version if isinstance(torch, Build) and name == "torch" else None
    taken = f"; import torch gives {imported}" if imported else ""
    yield Finding(
        "conda-pip-mix",
        "error" if trials.failed(trial) else "warning",
        f"conda has {record.name} {record.version} and pip has {name} {foreign} in one folder"
        f"{taken}: each deletes or overwrites files of the other.",
        (*_evidence(mixed, imported), *trials.evidence(trial)),
        _steps(mixed, imported, conda, facts),
        because_of=("user-site-shadow",),
    )


def _record(conda: Conda, name: str) -> CondaPackage | None:
    """Return what conda itself (not pip, which conda lists too) has for *name*."""
    return next((p for p in conda.packages if p.name in OWNERS[name] and _own(p)), None)


def _own(package: CondaPackage) -> bool:
    return package.channel != "pypi"


def _foreign(
    name: str,
    record: CondaPackage,
    conda: Conda,
    distributions: tuple[Distribution, ...] | Unknown,
) -> str | None:
    """Return the version of a copy that pip or uv installed beside conda's.

    Where its installer is not known, a copy of another version cannot be conda's.
    """
    if not isinstance(distributions, Unknown):
        found = [d for d in distributions if d.name == name and not d.user_site]
        own = record.version if name in (record.name, "torch") else ""
        return next(
            (
                d.version
                for d in found
                if (d.installer and "conda" not in d.installer)
                or (not d.installer and own and not _is_same(d.version, own))
            ),
            None,
        )
    return next((p.version for p in conda.packages if p.name == name and not _own(p)), None)


def _is_same(version: str, own: str) -> bool:
    """Tell whether the metadata may be of conda's own copy: its build of 0.13.1 says 0.13.1a0."""
    try:
        return own in (version.partition("+")[0], Version(version).base_version)
    except InvalidVersion:
        return False


def _evidence(
    mixed: list[tuple[str, CondaPackage, str]], imported: str | None
) -> Iterator[Evidence]:
    for name, record, foreign in mixed:
        version = f"{record.version} {record.build} {record.channel}".strip()
        yield Evidence(f"conda.{record.name}", version, "conda-meta")
        yield Evidence("distributions", f"{name} {foreign}", "pip's metadata")
    if imported:
        yield Evidence("torch.version", imported, "torch/version.py")


def _steps(
    mixed: list[tuple[str, CondaPackage, str]], imported: str | None, conda: Conda, facts: Facts
) -> tuple[Step, ...]:
    """Return both ways out, the one that keeps what is imported now as the cheaper."""
    claimed = tuple(p.name for name, _, _ in mixed for p in conda.packages if _claims(p, name))
    pip = conda_steps.keep_pip(facts, {name: version for name, _, version in mixed}, claimed)
    back = conda_steps.keep_conda(facts, {name: record for name, record, _ in mixed})
    if imported is not None and imported == mixed[0][1].version != mixed[0][2]:
        return (replace(back, cost=pip.cost - 1), pip)
    return (pip, back)


def _claims(package: CondaPackage, name: str) -> bool:
    return package.name in OWNERS[name] and _own(package)
