"""Whether torchvision and torchaudio are of the release of torch that is installed.

Both are compiled against one torch. With another, their operators do not load:
``operator torchvision::nms does not exist``, ``torch.library has no attribute register_fake``,
``undefined symbol: torch_dtype_float4_e2m1fn_x2``. It comes from installing or upgrading one of
the three alone, or from a package that pins another torch. torchaudio 2.11 and newer no longer name
the torch they need, so a resolver takes the newest.

torchvision accepts one torch release up to 0.29.0 and 2.14 or newer from there on; torchaudio
one up to 2.10, then 2.11 or newer (stable ABI). On Linux the files decide where the versions do
not: a symbol of torch that a companion looks for and that this torch has not. Nightlies fit within
a day of each other. The same release in another variant (cu126 beside cpu) is trio-variant-mixed.

The fix is to bring the companions to torch, which leaves torch alone; or torch to them.

Sources: METADATA of every wheel, https://github.com/pytorch/vision#installation,
https://docs.pytorch.org/audio/stable/installation.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import choose, loading, steps, trials
from torchdoctor.facts import Build, Facts, ImportTrial, Linux, SoLoad, Symptom, Unknown, items_of
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step
from torchdoctor.tables import load, releases

FAMILY = "versions"
FINDS = ("trio-misaligned",)
AFTER = ("torch-present",)

CAUSES = (
    "user-site-shadow",
    "local-module-shadow",
    "duplicate-install",
    "conda-pip-mix",
    "interrupted-upgrade",
)
TELLING = ("register_fake", "impl_abstract")
"""Names of torch.library that a torchvision of another release asks for."""
COMPANIONS: tuple[releases.Companion, ...] = ("torchvision", "torchaudio")


def check(
    torch: Build | Unknown | None,
    torchvision: Build | Unknown | None,
    torchaudio: Build | Unknown | None,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    linux: Linux | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the versions with what each companion accepts, then what their files look for."""
    builds = zip(COMPANIONS, (torchvision, torchaudio), strict=True)
    present = {name: build for name, build in builds if isinstance(build, Build)}
    if torch is None:
        return
    if isinstance(torch, Unknown) or not present:
        told = list(_by_message(torch, torchvision, symptoms, facts))
        yield from told
        if isinstance(torch, Unknown) and not told:
            raise CannotTell(f"torch: {torch.reason}")
        return
    fits = {name: releases.fits(name, b.version, torch.version) for name, b in present.items()}
    lacking = _lacking(torch, present, linux)
    odd = {n: build for n, build in present.items() if fits[n] is False or n in lacking}
    if not odd:
        open_ = [name for name, fit in fits.items() if fit is None]
        if open_ and not all(
            trials.works(trials.of_companion(companion_trials, name)) for name in open_
        ):
            raise CannotTell(_why_open(torch, present[open_[0]], open_[0]))
        return
    tries = [trials.of_companion(companion_trials, name) for name in odd]
    said = " and ".join(
        f"{n} {b.version} ({_of_another(n, b, lacking if fits[n] is not False else {})})"
        for n, b in odd.items()
    )
    yield Finding(
        "trio-misaligned",
        _severity(torch, odd, tries, symptoms),
        f"{said} {'does' if len(odd) == 1 else 'do'} not fit torch {torch.version}, so the "
        "compiled operators do not load.",
        (
            Evidence("torch.version", torch.version, "torch/version.py"),
            *(Evidence(f"{n}.version", b.version, f"{n}/version.py") for n, b in odd.items()),
            *(e for n, x in lacking.items() for e in loading.evidence(x, f"linux.extensions.{n}")),
            *(item for tried in tries for item in trials.evidence(tried)),
        ),
        tuple(_steps(torch, present, odd, facts)),
        because_of=CAUSES,
    )


def _lacking(
    torch: Build, present: Mapping[releases.Companion, Build], linux: Linux | Unknown | None
) -> dict[str, SoLoad]:
    """Return the companions whose files look for symbols that this torch has not, and the first.

    One of another variant looks for those of CUDA; that is trio-variant-mixed.
    """
    found: dict[str, SoLoad] = {}
    for name, misfit in loading.failing_extensions(linux):
        build = next((b for n, b in present.items() if n == name), None)
        alike = build is not None and build.tag in (None, torch.tag)
        if alike and misfit.kind == "symbol" and loading.needs_torch(misfit):
            found.setdefault(name, misfit)
    return found


def _of_another(name: releases.Companion, build: Build, lacking: Mapping[str, SoLoad]) -> str:
    """Return what tells that *build* is for another torch."""
    if name in lacking:
        return f"it looks for {lacking[name].names[0]}"
    return f"for {_wants(name, build)}"


def _by_message(
    torch: Build | Unknown,
    torchvision: Build | Unknown | None,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Yield what a message says of torchvision where a version is not known."""
    known = items_of(symptoms)
    said = next((s for s in known if _is_telling(s)), None)
    if said is None or torchvision is None or trials.works(facts.trial):
        return
    name = f"torch {torch.version}" if isinstance(torch, Build) else "this torch"
    there = facts.but(torchvision=Build("0"))
    release = torch.public if isinstance(torch, Build) else None
    choice = choose.choose(there, release=release) if release else choose.choose(there)
    yield Finding(
        "trio-misaligned",
        "error",
        f"torchvision is not of the release of {name}: {said.text.strip()[:200]}",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (steps.change_build(facts, choice, why="They are of one release."),) if choice else (),
        confidence="likely",
        because_of=(*CAUSES, "trio-variant-mixed"),
    )


def _is_telling(symptom: Symptom) -> bool:
    """Tell whether a message is one by which the parts of torchvision and torch do not fit."""
    values, file = symptom.values, symptom.values.get("file", "").replace("\\", "/")
    return (
        symptom.name == "nms-operator-missing"
        or (symptom.name == "name-missing" and values.get("attribute") in TELLING)
        or (
            symptom.name == "undefined-symbol"
            and values.get("family") == "torch"
            and bool(re.search(r"/(?:torchvision|torchaudio)/", file))
        )
    )


def _why_open(torch: Build, companion: Build, name: releases.Companion) -> str:
    pair: tuple[tuple[releases.Project, str], ...] = (
        ("torch", torch.version),
        (name, companion.version),
    )
    for project, version in pair:
        if releases.beyond_tables(project, version):
            return f"{project} {version} is newer than the tables of {load('releases')['as_of']}"
    return f"the tables have no row for torch {torch.version} and {name} {companion.version}"


def _wants(name: releases.Companion, build: Build) -> str:
    accepted = releases.torch_for(name, build.version)
    if not accepted:
        return "another torch"
    return f"torch {accepted[0]}" if len(accepted) == 1 else f"torch {accepted[-1]} or newer"


def _severity(
    torch: Build,
    odd: Mapping[releases.Companion, Build],
    tries: list[ImportTrial | None],
    symptoms: tuple[Symptom, ...] | Unknown,
) -> Severity:
    """Return error where an import failed, or must: two releases that differ in a patch may do."""
    names = {s.name for s in symptoms} if not isinstance(symptoms, Unknown) else set()
    if any(trials.failed(t) for t in tries) or "nms-operator-missing" in names:
        return "error"
    if tries and all(trials.works(t) for t in tries):
        return "warning"
    minor = torch.public.split(".")[:2]
    near = [
        any(v.split(".")[:2] == minor for v in releases.torch_for(name, build.version))
        for name, build in odd.items()
    ]
    return "warning" if all(near) else "error"


def _steps(
    torch: Build,
    present: Mapping[releases.Companion, Build],
    odd: Mapping[releases.Companion, Build],
    facts: Facts,
) -> Iterator[Step]:
    why = f"They are what was released with torch {torch.public}."
    if step := steps.align_companions(facts, odd, why=why):
        yield step
    accepted = [set(releases.torch_for(name, b.version)) for name, b in present.items()]
    for release in sorted(set.intersection(*accepted), key=_numbers, reverse=True):
        if choice := choose.choose(facts, release=release):
            other = steps.change_build(
                facts, choice, why="It is the torch that they were built for."
            )
            yield replace(other, cost=other.cost + 1)  # of two ways, the one that keeps torch
            return


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
