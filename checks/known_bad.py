"""The installed build of torch is not one that was published with a defect.

How it shows: in many ways; an import that fails although every file is as it was published, memory
that is suddenly not enough, a feature that fails for everybody with that build.

Why: some wheels went out broken, nightlies above all, and stay installed long after they were
mended. The list holds only builds whose defect was confirmed and that the version alone gives away,
or the version together with the message in which the defect ends.

The fix is another build, in most cases the next release. Source: one report for each row of
tables/known_bad.toml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torchdoctor import choose, gpu, requirements, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Gpu,
    ImportTrial,
    Platform,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step
from torchdoctor.tables import load, releases

FAMILY = "build"
FINDS = ("torch-build-known-bad",)


def check(
    platform: Platform | Unknown,
    torch: Build | None,
    trial: ImportTrial | Unknown,
    gpus: tuple[Gpu, ...] | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look the build up in the list."""
    if torch is None:
        return
    imported = isinstance(trial, ImportTrial) and trial.outcome == "imported"
    for row in load("known_bad")["bad"]:
        said = _said(row, symptoms)
        if said is None and "said" in row:
            continue
        if not _is_meant(row, torch, platform) or _is_mended(row, distributions):
            continue
        if "without" in row and (
            isinstance(gpus, Unknown) or any(g.vendor == row["without"] for g in gpus)
        ):
            continue
        severity: Severity = row["severity"]
        if severity == "error" and imported and said is None:
            severity = "note"
        yield Finding(
            "torch-build-known-bad",
            severity,
            f"torch {torch.version} {row['says']}.",
            (
                Evidence("torch.version", torch.version, f"torch/version.py; {row['source']}"),
                *((Evidence("symptoms", said.text.strip()[:300], said.source),) if said else ()),
            ),
            () if severity == "note" else tuple(_another(torch, row, facts)),
        )


def _said(row: Mapping[str, Any], symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    """Return the message that shows the defect of *row*, where it takes one and it was printed."""
    known = items_of(symptoms)
    wanted = row.get("said", {})
    for symptom in known:
        if wanted and symptom.name == wanted["name"]:
            values = {key: value for key, value in wanted.items() if key != "name"}
            if all(symptom.values.get(key) == value for key, value in values.items()):
                return symptom
    return None


def _is_meant(row: Mapping[str, Any], torch: Build, platform: Platform | Unknown) -> bool:
    if not requirements.accepts(row["versions"], torch.public):
        return False
    meant = not row["tags"] or torch.tag in row["tags"]
    if meant and row["platforms"] and isinstance(platform, Unknown):
        raise CannotTell(f"platform: {platform.reason}")
    return meant and (not row["platforms"] or gpu.platform_key(platform) in row["platforms"])


def _is_mended(row: Mapping[str, Any], distributions: tuple[Distribution, ...] | Unknown) -> bool:
    cure = row.get("unless")
    if not cure or isinstance(distributions, Unknown):
        return False
    enough = f">={cure['from']}"
    return any(
        d.name in cure["packages"] and requirements.accepts(enough, d.version)
        for d in distributions
    )


def _another(torch: Build, row: Mapping[str, Any], facts: Facts) -> Iterator[Step]:
    """Yield the step to a build that the row does not mean: what is chosen, else the newest one."""
    why = "This release does not have the defect."
    releases_out = (r.version for r in releases.torch_releases())
    for release in (None, *releases_out):  # the newest first
        choice = choose.choose(facts, accelerator=gpu.kind(torch), release=release)
        if choice is None or choice.versions["torch"] == torch.version:
            continue
        other = replace(torch, version=choice.versions["torch"], tag=choice.tag)
        if not _is_meant(row, other, facts.platform):
            yield steps.change_build(facts, choice, why=why)
            return
