"""Whether a torch that was built for NumPy 1 meets NumPy 2.

torch up to 2.2 (on Windows up to 2.4.0) was compiled against NumPy 1. With NumPy 2 it imports, with
the warning ``A module that was compiled using NumPy 1.x cannot be run in NumPy 2``, and then
``tensor.numpy()`` and ``torch.from_numpy`` fail: ``RuntimeError: Numpy is not available``.

That NumPy is not installed at all gives the same last message and no fault. A torch whose
``from_numpy`` works is in order, whatever the versions say (some distributors rebuilt it).

The fix is ``numpy<2``, which leaves torch alone, or a newer torch.

Sources: https://github.com/pytorch/pytorch/issues/107302,
https://github.com/pytorch/pytorch/issues/131668,
https://numpy.org/doc/stable/numpy_2_0_migration_guide.html
"""

from collections.abc import Iterator, Mapping

from torchdoctor import choose, conda_steps, gpu, places, requirements, steps
from torchdoctor.facts import (
    Build,
    Distribution,
    Facts,
    Module,
    Platform,
    Runtime,
    Symptom,
    Unknown,
    items_of,
)
from torchdoctor.model import CannotTell, Evidence, Finding, Step
from torchdoctor.tables import neighbours, releases

FAMILY = "versions"
FINDS = ("numpy2-abi",)
AFTER = ("torch-present",)


def check(
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
    modules: Mapping[str, Module | None] | Unknown,
    platform: Platform | Unknown,
    runtime: Runtime | Unknown,
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare torch and NumPy with the first torch that works with NumPy 2."""
    if torch is None:
        return
    if not isinstance(runtime, Unknown) and runtime.numpy is None:
        return  # it was tried, and works
    own = _numpy(distributions, modules)
    told = [s for s in _of(symptoms) if s.values.get("numpy", "").startswith("2")]
    version = own.version if own else (told[0].values["numpy"] if told else None)
    if version is None:
        if isinstance(distributions, Unknown):
            raise CannotTell("what is installed was not collected")
        return
    if requirements.accepts(">=2.0.0.dev0", version) is not True:
        return
    refused = gpu.symptom(symptoms, "numpy-not-available") is not None
    if not _is_old(torch, platform, shown=bool(told), refused=refused):
        return
    name = "This torch" if isinstance(torch, Unknown) else f"torch {torch.version}"
    evidence = [
        Evidence("distributions", f"numpy {version}", own.folder if own else "the message"),
    ]
    if isinstance(torch, Build):
        evidence.insert(0, Evidence("torch.version", torch.version, "torch/version.py"))
    if not isinstance(runtime, Unknown) and isinstance(runtime.numpy, str):
        evidence.append(Evidence("runtime.numpy", runtime.numpy, "torch.from_numpy"))
    evidence += [Evidence("symptoms", s.text.strip()[:300], s.source) for s in told[:1]]
    yield Finding(
        "numpy2-abi",
        "warning",
        f"{name} was built for NumPy 1 and NumPy {version} is installed, so "
        "tensor.numpy() and torch.from_numpy() fail.",
        tuple(evidence),
        tuple(_steps(own, _first(platform), facts)),
    )


def _first(platform: Platform | Unknown) -> str:
    """Return the first torch that works with NumPy 2; on every system where it is unknown."""
    return neighbours.numpy2_from(platform.system if isinstance(platform, Platform) else "win32")


def _is_old(
    torch: Build | Unknown, platform: Platform | Unknown, *, shown: bool, refused: bool
) -> bool:
    """Tell whether *torch* is of NumPy 1: by its version; where unknown, by its own messages."""
    if isinstance(torch, Unknown):
        if not (shown and refused):
            raise CannotTell(f"torch: {torch.reason}")
        return True
    old = requirements.accepts(f"<{_first(platform)}", torch.public)
    if old is None:
        raise CannotTell(f"{torch.version} is no version that can be compared")
    everywhere = requirements.accepts(f"<{neighbours.numpy2_from('linux')}", torch.public)
    if old and isinstance(platform, Unknown) and not (everywhere or refused):
        raise CannotTell(f"platform: {platform.reason}")
    return old


def _of(symptoms: tuple[Symptom, ...] | Unknown) -> tuple[Symptom, ...]:
    return items_of(symptoms)


def _numpy(
    distributions: tuple[Distribution, ...] | Unknown,
    modules: Mapping[str, Module | None] | Unknown,
) -> Distribution | None:
    """Return the NumPy that is imported; where that is not known, the environment's own."""
    if isinstance(distributions, Unknown):
        return None
    found = sorted((d for d in distributions if d.name == "numpy"), key=lambda d: d.user_site)
    module = None if isinstance(modules, Unknown) else modules.get("numpy")
    here = [d for d in found if module and places.same(d.folder, module.folder)]
    return next(iter(here or found), None)


def _steps(own: Distribution | None, first: str, facts: Facts) -> Iterator[Step]:
    why = "This torch works with NumPy 1."
    pip = steps.pip_install(facts, "numpy", "<2", why=why, cost=steps.SMALL)
    if own and own.installer == "conda":
        yield conda_steps.install(facts, "numpy<2", why=why, effect=pip.effect, cost=steps.SMALL)
    else:
        yield pip
    for release in reversed(releases.torch_releases()):
        if requirements.accepts(f">={first}", release.version) and (
            choice := choose.choose(facts, release=release.version)
        ):
            yield steps.change_build(facts, choice, why=f"From {first} on it works with NumPy 2.")
            return
