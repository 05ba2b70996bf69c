"""Whether there is one copy of torch and its companions, not two that share a folder.

Two metadata folders (``torch-2.9.1.dist-info`` beside ``torch-2.13.0.dist-info``), or two
packages that both own the folder ``torch`` (torch and torch-nightly, pytorch-directml), mean that
the files of one were written over the other's. ``pip show`` tells one version, ``import torch``
gives the other, resolvers decide by the wrong one, and files that only one copy had stay behind.

It comes from an upgrade that was stopped, from unpacking by hand, or from a package of another
name. Copies in two different folders are another matter: there the first on ``sys.path`` wins
(user-site-shadow, local-module-shadow). pip beside conda is conda-pip-mix.

The fix is to uninstall as many times as there are copies (pip takes one away at a time), then to
install the version that is meant; ``torch/version.py`` says which one is on the disk.

Sources: https://packaging.python.org/en/latest/specifications/recording-installed-packages/,
https://github.com/pypa/pip/issues/4738
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from packaging.version import InvalidVersion, Version

from torchdoctor import conda_steps, installers, places, steps, trials
from torchdoctor.facts import (
    Build,
    Conda,
    CondaPackage,
    Distribution,
    Facts,
    ImportTrial,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step

FAMILY = "environment"
FINDS = ("duplicate-install",)

OWNERS = {
    "torch": frozenset(
        (
            "torch",
            "torch-nightly",
            "torch-cpu",
            "torch-gpu",
            "pytorch",
            "pytorch-cpu",
            "pytorch-gpu",
            "pytorch-nightly",
            "pytorch-directml",
        )
    ),
    "torchvision": frozenset(("torchvision", "torchvision-nightly")),
    "torchaudio": frozenset(("torchaudio", "torchaudio-nightly")),
}

RECORDS = ("pytorch", "pytorch-nightly", "pytorch-nightly-cpu")
"""Packages of conda that hold the folder torch; pytorch-gpu and its like only ask for one."""


def check(
    distributions: tuple[Distribution, ...] | Unknown,
    conda: Conda | Unknown | None,
    trial: ImportTrial | Unknown,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Count the distributions, and the records of conda, that own each package folder."""
    if isinstance(conda, Conda):
        both = [p for p in conda.packages if p.name in RECORDS and p.channel != "pypi"]
        if len({p.name for p in both}) > 1:
            yield _of_conda(both, trial, facts)
            return
    if isinstance(distributions, Unknown):
        raise CannotTell(distributions.reason)
    for name, owners in OWNERS.items():
        folders: dict[str, list[Distribution]] = {}
        for d in distributions:
            if d.name in owners:
                folders.setdefault(places.plain(d.folder), []).append(d)
        tried = trial if name == "torch" else trials.of_companion(companion_trials, name)
        severity: Severity = "error" if trials.failed(tried) else "warning"
        for copies in folders.values():
            by_conda = {"conda" in d.installer for d in copies}
            if len(copies) == 1 or len(by_conda) > 1:
                continue
            yield _finding(name, copies, severity, tried, facts)


def _of_conda(both: list[CondaPackage], trial: ImportTrial | Unknown, facts: Facts) -> Finding:
    build = facts.torch
    on_disk = build.version if isinstance(build, Build) else None
    meant = next((p for p in both if p.version == on_disk and p.name == RECORDS[0]), both[0])
    gone = tuple(p.name for p in both)
    return Finding(
        "duplicate-install",
        "error" if trials.failed(trial) else "warning",
        f"conda has {' and '.join(f'{p.name} {p.version}' for p in both)}, and each writes the "
        "folder torch: its files are a mixture.",
        (
            *(Evidence(f"conda.{p.name}", f"{p.version} {p.build}", "conda-meta") for p in both),
            *trials.evidence(trial),
        ),
        (conda_steps.keep_record(facts, meant, gone, why="One copy is left, and it is whole."),),
    )


def _finding(
    name: str,
    copies: list[Distribution],
    severity: Severity,
    tried: ImportTrial | Unknown | None,
    facts: Facts,
) -> Finding:
    build = getattr(facts, name)
    on_disk = build.version if isinstance(build, Build) else None
    said = " and ".join(f"{d.name} {d.version}" for d in copies)
    what = f"the files are those of {on_disk}" if on_disk else "the files are a mixture"
    evidence = [Evidence("distributions", d.metadata or d.name, d.folder) for d in copies]
    if on_disk:
        evidence.append(Evidence(f"{name}.version", on_disk, f"{name}/version.py"))
    return Finding(
        "duplicate-install",
        severity,
        f"{said} are both installed in {copies[0].folder}; {what}, and pip believes either.",
        (*evidence, *trials.evidence(tried)),
        tuple(_steps(name, copies, facts)),
    )


def _steps(name: str, copies: list[Distribution], facts: Facts) -> Iterator[Step]:
    why = "One copy is left, whose metadata and files agree."
    build = getattr(facts, name)
    meant = _meant(name, copies, build if isinstance(build, Build) else None)
    gone = tuple(dict.fromkeys(d.name for d in copies))
    label = meant.partition("+")[2]
    package = installers.Package(name, meant, exact=not label)
    yield steps.clean_install(
        facts,
        [package],
        index=steps.index_for(facts, label) if label else None,
        gone=gone,
        why=why,
        times=max(sum(d.name == one for d in copies) for one in gone),
        build=_whole(build, meant) if name == "torch" and isinstance(build, Build) else None,
    )


def _meant(name: str, copies: list[Distribution], build: Build | None) -> str:
    """Return the version to put back: the copy that version.py agrees with, else version.py's.

    A wheel of the default index has no label in its metadata, and may have one in version.py.
    Without version.py it is the newest.
    """
    own = [d.version for d in copies if d.name == name] or [d.version for d in copies]
    if build is None:
        return max(own, key=_order)
    for version in own:
        if version == build.version:
            return version
    return next((v for v in own if v == build.public), build.version)


def _order(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


def _whole(build: Build, version: str) -> Build:
    return replace(build, distribution=Distribution("torch", version, folder=""))
