"""Whether the compiled extensions around torch (xformers, flash-attn ...) fit it.

C++ and CUDA extensions call torch by its C++ interface, which changes with every release. One that
was built for another torch fails with ``undefined symbol: _ZN3c10...`` or ``_ZN2at...``, or says
that it was built for another PyTorch and goes on without its kernels. The symbol tells the C++ ABI
too: ``...NSt7__cxx1112basic_string...`` is the new one, ``...ESs`` the old.

torch works without them, so this is a warning. On Linux the files decide, also of what somebody
built himself: a symbol of torch that a compiled file looks for and that no library of this torch
has. Where all of them are found, no pin counts. Elsewhere it is told only where metadata pins one
torch, where the label of a wheel names one (``+pt21cu121``), or where a message names the file.
xformers 0.0.34 pins 2.10.0 and yet runs on later torch (stable ABI). ``+cpu`` in "you have
2.1.2+cpu" means that torch is the wrong build, and the extension is right: cpu-only-build.

The fix is the release of the extension for this torch, without its dependencies, so that it does
not pull another torch; what is published as source only (flash-attn) is compiled again.

Sources: METADATA of the packages, https://github.com/facebookresearch/xformers/releases,
https://github.com/Dao-AILab/flash-attention/issues/1644
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, loading, places, requirements, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Interpreter,
    Linux,
    Platform,
    SoLoad,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import load, neighbours, releases

FAMILY = "versions"
FINDS = ("ext-abi-mismatch",)
AFTER = ("torch-present",)

OTHERS = ("torch", "torchvision", "torchaudio", "triton")
WITHOUT = 2
"""What going without an extension costs more than having one that fits."""
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
    linux: Linux | Unknown | None,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare torch with what each extension was built for, then read the messages."""
    if torch is None:
        return
    if isinstance(torch, Unknown) or isinstance(distributions, Unknown):
        told = list(_told(torch, distributions, symptoms, (), facts))
        yield from told
        if told:
            return
        lacking = torch if isinstance(torch, Unknown) else distributions
        raise CannotTell(lacking.reason if isinstance(lacking, Unknown) else "")
    misfits = {name: each for name, each in _misfits(linux).items() if name not in OTHERS}
    failed = _by_message(symptoms, distributions)
    found: dict[str, Finding] = {}
    for d in distributions:
        if d.name in OTHERS or (d.name == "torchtext" and not _fits(torch, "<2.4")):
            continue  # torchtext beside a newer torch is torchtext-abandoned
        wants = _wants(d, platform, interpreter)
        symptom = failed.pop(d.name, None)
        misfit = misfits.pop(d.name, None)
        pinned = bool(wants and _fits(torch, wants) is False) and not _loads(linux, d.name)
        if symptom or misfit or pinned:
            found[d.name] = _finding(torch, d, wants, symptom, misfit, facts)
    yield from _told(torch, distributions, symptoms, tuple(found), facts)
    yield from found.values()
    for name, misfit in misfits.items():
        yield _built_here(torch, name, misfit)


def _misfits(linux: Linux | Unknown | None) -> dict[str, SoLoad]:
    """Return, by package, what it looks for and this torch has not."""
    found: dict[str, SoLoad] = {}
    for name, each in loading.failing_extensions(linux):
        if loading.needs_torch(each):
            found.setdefault(name, each)
    return found


def _loads(linux: Linux | Unknown | None, name: str) -> bool:
    """Tell whether every compiled file of the package *name* is known to load."""
    if not isinstance(linux, Linux) or isinstance(linux.extensions, Unknown):
        return False
    loads = linux.extensions.get(name, ())
    return bool(loads) and all(each.loads for each in loads)


def _built_here(torch: Build, name: str, misfit: SoLoad) -> Finding:
    """Return what is wrong with a compiled file that no package claims."""
    file = misfit.asks or misfit.culprit
    return Finding(
        "ext-abi-mismatch",
        "warning",
        f"{places.last(file)} is built for another torch and torch is {torch.version}"
        f"{_lacking(misfit)}, so it does not load.",
        (
            *loading.evidence(misfit, f"linux.extensions.{name}"),
            Evidence("torch.version", torch.version, "torch/version.py"),
        ),
        (
            steps.by_hand(
                steps.slug("build", name, "again"),
                f"Build {name} again with the Python and the torch of this environment"
                f" (it lies in {file})",
                why="A C++ extension fits the torch that it was compiled against.",
                layer=Layer.PACKAGES,
                cost=steps.BUILD,
                effect=effects.untried,
            ),
        ),
        confidence="likely" if misfit.assumed else "certain",
        because_of=("cpu-only-build", "user-site-shadow", "conda-pip-mix", "trio-misaligned"),
    )


def _lacking(misfit: SoLoad | None) -> str:
    """Return what is missing, in brackets."""
    if misfit is None:
        return ""
    if misfit.kind == "missing":
        return f" ({misfit.culprit} is not in it)"
    of = {"new": ", C++ ABI of GCC 5 and newer", "old": ", C++ ABI before GCC 5", "": ""}
    symbol = next(filter(loading.TORCH_SYMBOL.match, misfit.names), misfit.names[0])
    return f" ({symbol} is not in it{of[loading.abi(misfit)]})"


def _told(
    torch: Build | Unknown,
    distributions: tuple[Distribution, ...] | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    found: tuple[str, ...],
    facts: Facts,
) -> Iterator[Finding]:
    """Yield what messages say of extensions that are in no list, or of which a list tells less.

    *found* are those that are told already.
    """
    listed = items_of(distributions)
    seen, names = set(found), {d.name for d in listed}
    if any(d.metadata for d in listed):
        return  # they were looked for, and no list that somebody pasted a part of
    for symptom in items_of(symptoms):
        values = symptom.values
        built, have = values.get("built", ""), values.get("have", "")
        cpu = bool(built) and have == f"{built.partition('+')[0]}+cpu"
        package = values.get("package", "") if symptom.name == "extension-built-for-other" else ""
        if symptom.name == "undefined-symbol" and values.get("family") == "torch":
            package = places.package_of(values.get("file", ""))
        # An extension says itself what it was built for; whose a file is, the list knows better.
        known = names if symptom.name == "undefined-symbol" else ()
        if not package or package in OTHERS or package in seen or package in known:
            continue
        seen.add(package)
        now = have or (torch.version if isinstance(torch, Build) else "")
        yield Finding(
            "ext-abi-mismatch",
            "note" if cpu else "warning",
            _says(package, built, now),
            (Evidence("symptoms", symptom.text.strip()[:300], symptom.source),),
            () if cpu else tuple(_of_told(package, built, facts)),
            confidence="likely",
            because_of=("cpu-only-build", "user-site-shadow", "conda-pip-mix", "trio-misaligned"),
        )


def _says(package: str, built: str, now: str) -> str:
    """Return the sentence of a package *built* for a torch, beside that which is here *now*."""
    if built and now:
        return (
            f"{package} is built for torch {built} and torch is {now}, so its compiled part does"
            " not load."
        )
    if built:
        return f"{package} is built for torch {built}, so its compiled part does not load."
    if now:
        return (
            f"{package} is built for another torch than {now}, so its compiled part does not load."
        )
    return f"{package} is built for another torch, so its compiled part does not load."


def _of_told(package: str, built: str, facts: Facts) -> Iterator[Step]:
    release = built.partition("+")[0]
    if (
        release
        and releases.torch_release(release)
        and (choice := choose.choose(facts, release=release))
    ):
        yield steps.change_build(facts, choice, why=f"{package} was built for it.")
    gone = steps.uninstall(facts, package, why="Nothing then loads a part that does not fit.")
    yield replace(gone, cost=steps.COMPANION + WITHOUT)


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
    for symptom in items_of(symptoms):
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
    torch: Build,
    d: Distribution,
    wants: str | None,
    symptom: Symptom | None,
    misfit: SoLoad | None,
    facts: Facts,
) -> Finding:
    built = f"built for torch {wants}" if wants else "built for another torch"
    symbol = f" ({symptom.values.get('symbol')} is not in it)" if symptom else _lacking(misfit)
    evidence = [
        Evidence("distributions", f"{d.name} {d.version}", d.folder),
        Evidence("torch.version", torch.version, "torch/version.py"),
    ]
    if symptom:
        evidence.append(Evidence("symptoms", symptom.text.strip()[:300], symptom.source))
    if misfit:
        evidence += loading.evidence(misfit, f"linux.extensions.{d.name}")
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
    gone = steps.uninstall(facts, d.name, why="Nothing then loads a part that does not fit.")
    yield replace(gone, cost=steps.COMPANION + WITHOUT)


def _pin(name: str, version: str) -> str:
    """Return what the binaries of a release need; a specifier that nothing meets if unknown."""
    return neighbours.built_for(name, version) or neighbours.pins(name, version) or "<0"


def _releases(wants: str | None) -> Iterator[str]:
    for row in load("releases")["torch"]:
        if wants and requirements.accepts(wants, row["version"]):
            yield row["version"]
