"""Whether the compiled extensions around torch (xformers, flash-attn ...) fit it.

C++ and CUDA extensions call torch by its C++ interface, which changes with every release. One that
was built for another torch fails with ``undefined symbol: _ZN3c10...`` or ``_ZN2at...``, or says
that it was built for another PyTorch and goes on without its kernels. The symbol tells the C++ ABI
too: ``...NSt7__cxx1112basic_string...`` is the new one, ``...ESs`` the old.

torch works without them, so this is a warning. It is told only where metadata pins one torch, where
the label of a wheel names one (``+pt21cu121``), or where a message names the package's file.
xformers 0.0.34 pins 2.10.0 and yet runs on later torch (stable ABI). ``+cpu`` in "you have
2.1.2+cpu" means that torch is the wrong build, and the extension is right: cpu-only-build.

The fix is the release of the extension for this torch, without its dependencies, so that it does
not pull another torch; what is published as source only (flash-attn) is compiled again.

Sources: METADATA of the packages, https://github.com/facebookresearch/xformers/releases,
https://github.com/Dao-AILab/flash-attention/issues/1644
"""

import re
from collections.abc import Iterator

from torchdoctor import choose, places, requirements, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Interpreter,
    Platform,
    Symptom,
    Unknown,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step
from torchdoctor.tables import load, neighbours, releases

FAMILY = "versions"
FINDS = ("ext-abi-mismatch",)
AFTER = ("torch-present",)

OTHERS = ("torch", "torchvision", "torchaudio", "triton")
_LABEL = re.compile(r"(?:pt|torch)(\d)\.?(\d{1,2}?)(?=\.\d|cu|cpu|rocm|cxx|$|\D)")
_NATIVE = frozenset(
    (
        "xformers",
        "vllm",
        "flash-attn",
        "torchtext",
        "torchcodec",
        "functorch",
        "intel-extension-for-pytorch",
        "torch-scatter",
        "torch-sparse",
        "torch-cluster",
    )
)


def check(
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare torch with what each extension was built for, then read the messages."""
    if torch is None:
        return
    told = list(_told(torch, distributions, symptoms, facts))
    yield from told
    if isinstance(torch, Unknown) or isinstance(distributions, Unknown):
        if told:
            return
        lacking = torch if isinstance(torch, Unknown) else distributions
        raise CannotTell(lacking.reason if isinstance(lacking, Unknown) else "")
    failed = _by_message(symptoms, distributions)
    for d in distributions:
        if d.name in OTHERS or (d.name == "torchtext" and not _fits(torch, "<2.4")):
            continue  # torchtext beside a newer torch is torchtext-abandoned
        wants = _wants(d, platform, interpreter)
        symptom = failed.pop(d.name, None)
        if symptom or (wants and _fits(torch, wants) is False):
            yield _finding(torch, d, wants, symptom, facts)


def _told(
    torch: Build | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Yield what messages say of extensions that are in no list."""
    listed = () if isinstance(distributions, Unknown) else distributions
    seen = {d.name for d in listed}
    if any(d.metadata for d in listed):
        return  # they were looked for, and no list that somebody pasted a part of
    for symptom in () if isinstance(symptoms, Unknown) else symptoms:
        values = symptom.values
        built, have = values.get("built", ""), values.get("have", "")
        cpu = bool(built) and have == f"{built.partition('+')[0]}+cpu"
        package = values.get("package", "") if symptom.name == "extension-built-for-other" else ""
        if symptom.name == "undefined-symbol" and values.get("family") == "torch":
            package = _package(values.get("file", ""))
        if not package or package in OTHERS or package in seen:
            continue
        seen.add(package)
        now = have or (torch.version if isinstance(torch, Build) else "")
        differs = f"torch {built}" if built else "another torch"
        differs += f" than {now}" if now and not built else f" and torch is {now}" if now else ""
        yield Finding(
            "ext-abi-mismatch",
            "note" if cpu else "warning",
            f"{package} is built for {differs}, so its compiled part does not load.",
            (Evidence("symptoms", symptom.text.strip()[:300], symptom.source),),
            () if cpu else tuple(_of_told(package, built, facts)),
            confidence="likely",
            because_of=("cpu-only-build", "user-site-shadow", "conda-pip-mix", "trio-misaligned"),
        )


def _package(file: str) -> str:
    """Return the package that a compiled file in site-packages is of; empty if none is told."""
    parts = places.plain(file).split("/")
    start = next((i + 1 for i, p in enumerate(parts) if p.endswith("-packages")), 0)
    top = parts[start].partition(".")[0] if start and start < len(parts) else ""
    name = re.sub(r"_(?:2_)?cuda$|_cuda_lib$|_c$", "", top).replace("_", "-")
    return "" if name in ("torchgen", "functorch") else name


def _of_told(package: str, built: str, facts: Facts) -> Iterator[Step]:
    release = built.partition("+")[0]
    if (
        release
        and releases.torch_release(release)
        and (choice := choose.choose(facts, release=release))
    ):
        yield steps.change_build(facts, choice, why=f"{package} was built for it.")
    yield steps.uninstall(facts, package, why="Nothing then loads a part that does not fit.")


def _fits(torch: Build, specifier: str) -> bool | None:
    return requirements.accepts(specifier, torch.public)


def _wants(
    distribution: Distribution, platform: Platform | Unknown, interpreter: Interpreter | Unknown
) -> str | None:
    """Return the torch that the binaries were built for, None when nothing certain tells."""
    name, version = distribution.name, distribution.version
    if built := neighbours.built_for(name, version):
        return built if name in _NATIVE else None
    if found := _LABEL.search(version.partition("+")[2]):
        return f"=={found[1]}.{found[2]}.*"
    pin = neighbours.pins(name, version) if name in _NATIVE else None
    if isinstance(platform, Platform) and isinstance(interpreter, Interpreter):
        marks = requirements.environment(platform, interpreter)
        needed = requirements.needed(distribution, marks)
        pin = next((str(r.specifier) for r in needed if r.name == "torch"), pin)
    return pin if pin and pin.startswith("==") else None


def _by_message(
    symptoms: tuple[Symptom, ...] | Unknown, distributions: tuple[Distribution, ...]
) -> dict[str, Symptom]:
    """Return the distributions whose file a message about torch's symbols names."""
    found: dict[str, Symptom] = {}
    for symptom in () if isinstance(symptoms, Unknown) else symptoms:
        file = symptom.values.get("file", "")
        if symptom.name != "undefined-symbol" or symptom.values.get("family") != "torch":
            continue
        for d in distributions:
            if d.name not in OTHERS and _of_distribution(file, d.name):
                found.setdefault(d.name, symptom)
    return found


def _of_distribution(file: str, name: str) -> bool:
    """Tell whether *file* is of the package or the top-level module of *name*."""
    parts = places.plain(file).split("/")
    start = next((i + 1 for i, p in enumerate(parts) if p.endswith("-packages")), 0)
    top = parts[start].replace("_", "-").lower() if start < len(parts) else ""
    return bool(top) and (top == name or top.startswith((f"{name}-", f"{name}.")))


def _finding(
    torch: Build, d: Distribution, wants: str | None, symptom: Symptom | None, facts: Facts
) -> Finding:
    built = f"built for torch {wants}" if wants else "built for another torch"
    symbol = f" ({symptom.values.get('symbol')} is not in it)" if symptom else ""
    evidence = [
        Evidence("distributions", f"{d.name} {d.version}", d.folder),
        Evidence("torch.version", torch.version, "torch/version.py"),
    ]
    if symptom:
        evidence.append(Evidence("symptoms", symptom.text.strip()[:300], symptom.source))
    return Finding(
        "ext-abi-mismatch",
        "warning",
        f"{d.name} {d.version} is {built} and torch is {torch.version}{symbol}, so its compiled "
        "part does not load.",
        tuple(evidence),
        tuple(_steps(torch, d, wants, facts)),
        because_of=("cpu-only-build", "user-site-shadow", "conda-pip-mix", "trio-misaligned"),
    )


def _steps(torch: Build, d: Distribution, wants: str | None, facts: Facts) -> Iterator[Step]:
    known = load("neighbours")["pins"].get(d.name, {})
    fitting = [v for v in known if v != d.version and _fits(torch, _pin(d.name, v)) is True]
    label = (torch.distribution or torch).version.partition("+")[2] or None
    if fitting:
        index = steps.index_for(facts, label) if d.name == "xformers" else None
        why = f"It is the release for torch {torch.public}."
        yield steps.align(facts, {d.name: fitting[0]}, index, why=why)
    elif d.name == "flash-attn" or wants is None:
        yield steps.compile_again(facts, d, why=f"It is compiled against torch {torch.public}.")
    for release in _releases(wants):
        if choice := choose.choose(facts, release=release):
            yield steps.change_build(facts, choice, why=f"{d.name} was built for it.")
            break
    yield steps.uninstall(facts, d.name, why="Nothing then loads a part that does not fit.")


def _pin(name: str, version: str) -> str:
    """Return what the binaries of a release need; a specifier that nothing meets if unknown."""
    return neighbours.built_for(name, version) or neighbours.pins(name, version) or "<0"


def _releases(wants: str | None) -> Iterator[str]:
    for row in load("releases")["torch"]:
        if wants and requirements.accepts(wants, row["version"]):
            yield row["version"]
