"""The installed build of torch is not one that was published with a defect.

How it shows: in many ways; an import that fails although every file is as it was published, memory
that is suddenly not enough, a feature that fails for everybody with that build.

Why: some wheels went out broken, nightlies above all, and stay installed long after they were
mended. The list holds only builds whose defect was confirmed and that the version alone gives away.

The fix is another build, in most cases the next release. Source: one report for each row of
tables/known_bad.toml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from torchdoctor import choose, gpu, steps
from torchdoctor.facts import Build, Distribution, Facts, Gpu, ImportTrial, Platform, Unknown
from torchdoctor.model import Evidence, Finding, Severity, Step
from torchdoctor.tables import load

FAMILY = "build"
FINDS = ("torch-build-known-bad",)


def check(
    platform: Platform,
    torch: Build | None,
    trial: ImportTrial | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look the build up in the list."""
    if torch is None:
        return
    imported = isinstance(trial, ImportTrial) and trial.outcome == "imported"
    for row in load("known_bad")["bad"]:
        if not _is_meant(row, torch, platform) or _is_mended(row, distributions):
            continue
        if "without" in row and (
            isinstance(gpus, Unknown) or any(g.vendor == row["without"] for g in gpus)
        ):
            continue
        severity: Severity = row["severity"]
        if severity == "error" and imported:
            severity = "note"
        yield Finding(
            "torch-build-known-bad",
            severity,
            f"torch {torch.version} {row['says']}.",
            (Evidence("torch.version", torch.version, f"torch/version.py; {row['source']}"),),
            () if severity == "note" else tuple(_another(torch, facts)),
        )


def _is_meant(row: Mapping[str, Any], torch: Build, platform: Platform) -> bool:
    try:
        version = Version(torch.public)
    except InvalidVersion:
        return False
    return (
        SpecifierSet(row["versions"]).contains(version, prereleases=True)
        and (not row["tags"] or torch.tag in row["tags"])
        and (not row["platforms"] or gpu.platform_key(platform) in row["platforms"])
    )


def _is_mended(row: Mapping[str, Any], distributions: tuple[Distribution, ...] | Unknown) -> bool:
    cure = row.get("unless")
    if not cure or isinstance(distributions, Unknown):
        return False
    enough = SpecifierSet(f">={cure['from']}")
    return any(
        d.name in cure["packages"] and enough.contains(d.version, prereleases=True)
        for d in distributions
    )


def _another(torch: Build, facts: Facts) -> Iterator[Step]:
    choice = choose.choose(facts, accelerator=gpu.kind(torch))
    if choice and choice.versions["torch"] != torch.version:
        yield steps.change_build(facts, choice, why="This release does not have the defect.")
