"""Whether torch, torchvision and torchaudio are of one variant: cpu, one CUDA, ROCm or XPU.

METADATA does not tell the variants apart, so ``pip install torchvision`` beside ``torch+cpu`` or
``torch+cu126`` brings the build of the default index, which is for another CUDA. It shows as
``operator torchvision::nms does not exist`` although the versions fit, as
``PyTorch and torchvision were compiled with different CUDA major versions``, as the same of
TorchAudio, or as a ``libcudart.so`` that cannot be opened. A CPU torchvision beside a CUDA torch
imports and fails at the first operator on the GPU.

The label after ``+`` in ``version.py`` tells the variant; the wheels of the default index have none
in their metadata. Two builds of one CUDA major whose imports work are in order.

The fix is the companion with torch's own label, from the index of that build. A version without
label changes nothing, because it counts as installed.

Sources: torchvision/extension.py, torchaudio/_extension/utils.py, https://github.com/mli/autocut/issues/106
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import choose, gpu, steps, trials
from torchdoctor.facts import Build, Facts, ImportTrial, Platform, Symptom, Unknown, items_of
from torchdoctor.model import CannotTell, Evidence, Finding, Severity, Step
from torchdoctor.tables import builds, releases

FAMILY = "versions"
FINDS = ("trio-variant-mixed",)
AFTER = ("torch-present",)

COMPANIONS: tuple[releases.Companion, ...] = ("torchvision", "torchaudio")
TELLING = {
    "torchvision": ("torchvision-cuda-mismatch", "nms-operator-missing"),
    "torchaudio": ("torchaudio-cuda-mismatch",),
}


def check(
    torch: Build | Unknown | None,
    torchvision: Build | Unknown | None,
    torchaudio: Build | Unknown | None,
    platform: Platform | Unknown,
    companion_trials: Mapping[str, ImportTrial] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the variant of each companion with torch's."""
    if torch is None:
        return
    builds_ = {"torchvision": torchvision, "torchaudio": torchaudio}
    by_message = [
        finding
        for name in COMPANIONS
        if isinstance(torch, Unknown) or isinstance(builds_[name], Unknown)
        for finding in _by_message(name, symptoms, facts)
    ]
    yield from by_message
    if isinstance(torch, Unknown):
        if by_message:
            return
        raise CannotTell(f"torch: {torch.reason}")
    mine = _variant("torch", torch, platform)
    messages = items_of(symptoms)
    odd: dict[str, tuple[Build, str, Severity]] = {}
    told: list[Symptom] = []
    untold: list[str] = []
    for name, build in zip(COMPANIONS, (torchvision, torchaudio), strict=True):
        if (
            not isinstance(build, Build)
            or releases.fits(name, build.version, torch.version) is False
        ):
            continue  # not there, or of another release: trio-misaligned
        tried = trials.of_companion(companion_trials, name)
        said = [s for s in messages if s.name in TELLING[name] and not trials.works(tried)]
        its = _variant(name, build, platform)
        its = its or next((_tag(s.values[name]) for s in said if s.values.get(name)), None)
        if its and mine and its != mine and (severity := _severity(name, mine, its, tried)):
            odd[name] = (build, its, severity)
            told += said
        if bool(its) != bool(mine) and not trials.works(tried):
            untold.append(name)
    if untold and not odd:
        raise CannotTell(f"nothing tells the variant of torch or {untold[0]}")
    if odd:
        tries = [trials.of_companion(companion_trials, name) for name in odd]
        yield _finding(torch, mine or "", odd, told, tries, facts)


def _by_message(
    name: releases.Companion, symptoms: tuple[Symptom, ...] | Unknown, facts: Facts
) -> Iterator[Finding]:
    """Yield what the companion itself said of the two CUDA versions, where a version is unknown."""
    known = items_of(symptoms)
    said = next((s for s in known if s.name == TELLING[name][0]), None)
    if said is None or not (said.values.get("torch") and said.values.get(name)):
        return
    mine, its = said.values["torch"], said.values[name]
    yield Finding(
        "trio-variant-mixed",
        "error",
        f"torch is built for CUDA {mine} and {name} for CUDA {its}, so {name} refuses to load.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        tuple(_whole_set(name, _tag(mine), facts)),
        because_of=("user-site-shadow", "duplicate-install", "conda-pip-mix"),
    )


def _whole_set(name: releases.Companion, tag: str, facts: Facts) -> Iterator[Step]:
    """Yield the step that installs torch and *name* of one release, as *tag*."""
    there = facts.but(**{name: Build("0")})
    now = facts.torch.public if isinstance(facts.torch, Build) else None
    for release in releases.torch_releases():
        if now not in (None, release.version):
            continue
        if any(
            b.tag == tag
            for key in gpu.platform_keys(facts.platform)
            for b in builds.builds(release.version, key)
        ):
            one = choose.at(there, release.version, tag)
            yield steps.change_build(facts, one, why=f"All of it is then built as {tag}.")
            return


def _variant(project: releases.Project, build: Build, platform: Platform | Unknown) -> str | None:
    """Return cpu, cu130, rocm7.2 ...; of a wheel without label, what the default index has."""
    if build.tag or build.cuda:
        return build.tag or _tag(build.cuda or "")
    distribution = build.distribution
    if distribution is None or distribution.installer in ("", *steps.CONDA):
        return None
    if isinstance(platform, Unknown) or distribution.direct_url or distribution.editable:
        return None
    return _of_default_index(project, build, platform)


def _of_default_index(project: releases.Project, build: Build, platform: Platform) -> str | None:
    key = releases.platform_key(platform.system, platform.machine) or ""
    if project == "torch":
        return builds.default_build(build.version, key)
    if project == "triton":
        return None
    if project == "torchaudio" and (own := builds.torchaudio_default(build.version, key)):
        return own
    paired = releases.torch_for(project, build.version)
    return builds.default_build(paired[0], key) if paired else None


def _tag(cuda: str) -> str:
    return "cu" + "".join(cuda.split(".")[:2])


def _severity(name: str, mine: str, its: str, tried: ImportTrial | None) -> Severity | None:
    """Return how bad it is; None where both are of one CUDA major and that is known to do."""
    one_major = mine[:4] == its[:4] and mine.startswith("cu")
    if trials.failed(tried):
        return "error"
    if trials.works(tried):
        return None if one_major else "warning"
    if one_major:
        return "error" if name == "torchaudio" else None
    return "warning" if its == "cpu" else "error"


def _finding(
    torch: Build,
    mine: str,
    odd: Mapping[str, tuple[Build, str, Severity]],
    told: list[Symptom],
    tries: list[ImportTrial | None],
    facts: Facts,
) -> Finding:
    said = " and ".join(
        f"{name} {build.public} is built for {its}" for name, (build, its, _) in odd.items()
    )
    step = steps.align_companions(facts, odd, why=f"They are then built for {mine}, as torch is.")
    return Finding(
        "trio-variant-mixed",
        "error" if any(s == "error" for _, _, s in odd.values()) else "warning",
        f"torch {torch.version} is built for {mine}, but {said}: the releases fit, the compiled "
        "operators do not.",
        (
            Evidence("torch.version", torch.version, "torch/version.py"),
            *(
                Evidence(f"{name}.version", f"{build.version} ({its})", f"{name}/version.py")
                for name, (build, its, _) in odd.items()
            ),
            *(item for tried in tries for item in trials.evidence(tried)),
            *(Evidence("symptoms", s.text.strip()[:300], s.source) for s in told),
        ),
        (step,) if step else (),
        because_of=("user-site-shadow", "cpu-only-build", "duplicate-install", "conda-pip-mix"),
    )
