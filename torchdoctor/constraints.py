"""What a machine, and a wish, ask of a build of torch: one constraint each, with its source.

A constraint says of any build of any release whether it is admitted. Facts that are unknown make
no constraint.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from torchdoctor.facts import Build, Driver, Facts, Gpu, Interpreter, Platform, Unknown
from torchdoctor.tables import builds, drivers, gpus, neighbours, platforms, releases, rocm
from torchdoctor.values import dataclass

Accelerator = builds.Kind
Admits = Callable[[str, builds.Build], bool]

COMPANIONS = ("torchvision", "torchaudio")
ANY_PLATFORM = "linux_x86_64"
"""The platform that is looked through where the machine's own is unknown or has no wheels."""
USUAL = {"linux": "x86_64", "win32": "AMD64"}
"""The machine that is taken to choose by where only the system is known."""
BITS = 64


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of torch, beside what the machine asks.

    Raises:
        ValueError: a version, a requirement or a Python in it cannot be read.

    """

    torch: str = ""
    """A release (2.13.0, with a label too), the start of one (2.13), or a specifier (>=2.10)."""
    accelerator: Accelerator | None = None
    """What it must run on; None: what the machine has."""
    python: str | None = None
    """Another Python than the interpreter's, "3.12"."""
    companions: tuple[str, ...] = ()
    """torchvision, torchaudio; those that are installed come along in any case."""
    neighbours: tuple[str, ...] = ()
    """Requirements, "xformers" or "vllm==0.33.0"."""
    beside: bool = True
    """Whether installed packages with compiled parts (xformers, vllm ...) have to fit too."""
    keep: bool = False
    """Whether the release that is installed goes before newer ones."""

    def __post_init__(self) -> None:
        """Read what is written in it, so that what cannot be read is told at once."""
        _wanted_torch(self.torch)
        for text in self.neighbours:
            requirement(text)
        if self.python and not re.fullmatch(r"\d+\.\d+t?", self.python):
            raise ValueError(f"{self.python!r} is no Python such as 3.12")
        if odd := [name for name in self.companions if name not in COMPANIONS]:
            raise ValueError(f"{odd[0]!r} is no companion of torch")


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that a build has to do justice to."""

    name: str
    """torch, image, platform, python, libc, macos, accelerator, cuda, driver, gpu, companion,
    neighbour."""
    subject: str
    """For people: "Python 3.12.4", "NVIDIA driver 580.95.05", "xformers"."""
    value: str
    source: str
    admits: Admits = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a neighbour that works with a build, and where that one is."""

    version: str
    index: str | None = None
    """None: the default index."""
    alone: bool = False
    """Whether its metadata asks for another torch than its parts need (--no-deps)."""


def of(facts: Facts, wish: Wish) -> tuple[Constraint, ...]:
    """Return what *facts* and *wish* ask of a build. Capabilities are told by names, too."""
    kind = wish.accelerator or wanted(facts)
    facts = with_capabilities(facts)
    return tuple(
        constraint
        for part in (
            _image(facts),
            _platform(facts),
            _torch(wish),
            _python(facts, wish),
            _system(facts, kind),
            _accelerator(facts, wish, kind),
            _driver(facts, kind),
            _gpus(facts, kind),
            _companions(facts, wish),
            _neighbours(facts, wish),
        )
        for constraint in part
    )


# ---- what the facts say ------------------------------------------------------------------------


def wanted(facts: Facts) -> Accelerator:
    """Return what torch is to run on here: what was expected, else what the machine has."""
    expected = facts.expectation.accelerator
    if expected in ("cpu", "cuda", "rocm", "xpu"):
        return expected
    if expected is None and facts.expectation.cuda_at_least:
        return "cuda"
    key = key_of(facts)
    if not isinstance(facts.gpus, Unknown):
        return _of_machine(facts, facts.gpus, key)
    if isinstance(facts.torch, Build) and (kind := _kind(facts.torch.tag)):
        return kind
    # Where nothing tells, what the default index would bring.
    default = builds.default_build(releases.newest("torch"), key or ANY_PLATFORM)
    return builds.kind_of(default) if default and isinstance(facts.driver, Unknown) else "cpu"


def _of_machine(facts: Facts, cards: tuple[Gpu, ...], key: str | None) -> Accelerator:
    if any(card.vendor == "nvidia" for card in cards) and isinstance(facts.driver, Driver):
        return "cuda"
    if key == "linux_x86_64" and any(map(_is_for_rocm, cards)):
        return "rocm"
    if any(card.vendor == "intel" and platforms.xpu_card(card.name) for card in cards):
        return "xpu" if key in ("linux_x86_64", "win_amd64") else "cpu"
    return "cpu"


def key_of(facts: Facts) -> str | None:
    """Return how the tables name the machine; None where it is unknown or has no wheels.

    On a Mac it is the interpreter's own architecture.
    """
    if not isinstance(facts.platform, Platform):
        return None
    machine = facts.platform.machine or USUAL.get(facts.platform.system, "")
    if isinstance(facts.interpreter, Interpreter) and facts.platform.system == "darwin":
        built_for = facts.interpreter.machine.rpartition("-")[2]
        machine = machine if built_for in ("", "universal2") else built_for
    return releases.platform_key(facts.platform.system, machine)


def ngc_image(facts: Facts) -> str | None:
    """Return the NGC release ("26.02") whose torch is installed; nothing may replace that one."""
    return platforms.ngc_release(facts.torch.version) if isinstance(facts.torch, Build) else None


def jetpack(facts: Facts) -> platforms.JetPack | None:
    """Return the JetPack of a Jetson, by the CUDA of its driver or its toolkit."""
    if not isinstance(facts.platform, Platform) or not facts.platform.jetson:
        return None
    cudas = [facts.driver.cuda] if isinstance(facts.driver, Driver) else []
    if not isinstance(facts.toolkits, Unknown):
        cudas += [toolkit.release for toolkit in facts.toolkits]
    found = (platforms.jetpack_of_cuda(".".join(c.split(".")[:2])) for c in cudas if c)
    return next((row for row in found if row), None)


def with_capabilities(facts: Facts) -> Facts:
    """Return *facts* with the capability or target of each GPU that its name tells."""
    if isinstance(facts.gpus, Unknown):
        return facts
    return facts.but(gpus=tuple(map(_told_by_name, facts.gpus)))


def without_gpu(facts: Facts, wish: Wish, subject: str) -> Facts:
    """Return *facts* without the GPUs of which a constraint with *subject* comes."""
    if isinstance(facts.gpus, Unknown):
        return facts
    kind, key = wish.accelerator or wanted(facts), key_of(facts) or ANY_PLATFORM
    left = tuple(
        gpu
        for gpu in facts.gpus
        if all(c.subject != subject for c in _of_gpu(_told_by_name(gpu), facts, kind, key))
    )
    return facts.but(gpus=left)


def amd_targets(facts: Facts) -> tuple[str, ...]:
    """Return the targets of the AMD GPUs here that are more than a processor's own graphics."""
    known = () if isinstance(facts.gpus, Unknown) else map(_told_by_name, facts.gpus)
    found = {g.gfx.partition(":")[0] for g in known if g.vendor == "amd" and g.gfx}
    return tuple(sorted({t for t in found if not rocm.integrated(t)} or found))


def override(facts: Facts, release: str, tag: str) -> rocm.Override | None:
    """Return the one override with which all AMD GPUs here run that build, if they need one."""
    targets = amd_targets(facts)
    found = {target: rocm.override(release, tag, target) for target in targets}
    values = {o for o in found.values() if o}
    if len(values) != 1:
        return None
    (only,) = values
    return only if all(o or target == only.target for target, o in found.items()) else None


def requirement(text: str) -> Requirement:
    """Return a wished neighbour as a requirement; raises ValueError when it is none."""
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"{text!r} is no requirement such as xformers==0.0.35") from error


def present(facts: Facts) -> tuple[str, ...]:
    """Return the installed packages whose compiled parts have to fit torch."""
    if isinstance(facts.distributions, Unknown):
        return ()
    names = {d.name for d in facts.distributions}
    return tuple(name for name in neighbours.compiled() if name in names)


def companions(facts: Facts, wish: Wish) -> tuple[str, ...]:
    """Return the companions that are wished for or installed."""
    return tuple(
        name
        for name in COMPANIONS
        if name in wish.companions or isinstance(getattr(facts, name), Build)
    )


def neighbour_wishes(facts: Facts, wish: Wish) -> tuple[tuple[Requirement, str], ...]:
    """Return the neighbours that have to fit, each with where that is said."""
    asked = [(requirement(text), "what was asked for") for text in wish.neighbours]
    names = {canonicalize_name(r.name) for r, _ in asked}
    more = present(facts) if wish.beside else ()
    asked += [(Requirement(n), "installed packages") for n in more if n not in names]
    return tuple(sorted(asked, key=lambda pair: str(pair[0])))


def companion(name: str, release: str, tag: str, key: str) -> tuple[str, str | None] | None:
    """Return the version of a companion beside a build, and its label; None: there is none."""
    vision, audio = releases.companions(release)
    if name == "torchvision":
        return (vision, tag) if vision else None
    known = releases.torch_release(release)
    accepted = known.torchaudio if known else ()
    if key.startswith("macos"):
        return (audio, tag) if audio else None
    return builds.torchaudio_for(accepted, tag, key)


def neighbour(
    facts: Facts, asked: Requirement, release: str, build: builds.Build
) -> Version | None:
    """Return the newest version of a neighbour that works with a build; None: none does.

    A package or a version that the tables do not know counts as one that works; its version is "".
    """
    if not _strong_enough(facts, asked.name, build):
        return None
    name, specifier = canonicalize_name(asked.name), asked.specifier
    known = [
        v
        for v in neighbours.versions(name)
        if specifier.contains(v.replace("*", "0"), prereleases=True)
    ]
    if not known:
        return Version("")
    told = {v: neighbours.fits(name, v, release) for v in known}
    good = [v for v in known if told[v]]
    if name not in neighbours.compiled():
        good += [v for v in known if told[v] is None]
    return next(filter(None, (_version(name, v, release, build) for v in good)), None)


@functools.lru_cache(4096)
def has_python(release: str, key: str | None, tag: str) -> bool:
    """Tell whether *release* was published for the Python *tag*; True when that is unknown."""
    known = releases.torch_release(release)
    if known is None or key is None:
        return True
    return any(_python_matches(entry, tag) for entry in known.pythons.get(key, ()))


@functools.lru_cache(4096)
def numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, a driver or a Python."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def needed_libc(release: str, tag: str, key: str) -> str | None:
    """Return the glibc that a build needs."""
    known = releases.torch_release(release)
    return builds.glibc(release, tag, key) or (known.glibc.get(key) if known else None)


def needed_macos(release: str, key: str, *, mps: bool) -> str | None:
    """Return the macOS that a release needs, for MPS where that is wanted."""
    known = releases.torch_release(release)
    tag = known.macos.get(key) if known else None
    floor = platforms.mps_macos(release) if mps else None
    return max((v for v in (tag, floor) if v), key=numbers, default=None)


def driver_key(facts: Facts) -> str:
    """Return the platform key of the driver: inside WSL 2 it is that of Windows."""
    wsl = facts.platform.wsl if isinstance(facts.platform, Platform) else None
    return platforms.driver_platform(key_of(facts) or ANY_PLATFORM, wsl)


# ---- one constraint each -----------------------------------------------------------------------


def _image(facts: Facts) -> Iterator[Constraint]:
    if release := ngc_image(facts):
        assert isinstance(facts.torch, Build)
        yield Constraint(
            "image",
            f"The NGC image {release}, whose torch belongs to it",
            facts.torch.version,
            "torch/version.py",
            lambda _release, _build: False,
        )


def _platform(facts: Facts) -> Iterator[Constraint]:
    if not isinstance(facts.platform, Platform):
        return
    here = facts.platform
    if not here.machine:
        return  # not known, such as in a report that names the system only
    why = platforms.no_wheel(here.system, here.machine, here.libc)
    if why or key_of(facts) is None:
        value = " ".join(filter(None, (here.system, here.machine, here.libc)))
        subject = f"{here.name or here.system} on {here.machine}: {why or 'there are no wheels'}"
        yield Constraint("platform", subject, value, "the system", lambda _release, _build: False)


def _torch(wish: Wish) -> Iterator[Constraint]:
    if not wish.torch:
        return
    specifier, label = _wanted_torch(wish.torch)

    meant = functools.cache(functools.partial(specifier.contains, prereleases=True))

    def admits(release: str, build: builds.Build) -> bool:
        return label in ("", build.tag) and meant(release)

    yield Constraint("torch", f"torch {wish.torch}", wish.torch, "what was asked for", admits)


def _python(facts: Facts, wish: Wish) -> Iterator[Constraint]:
    key, interpreter = key_of(facts) or ANY_PLATFORM, facts.interpreter
    if wish.python is None and isinstance(interpreter, Unknown):
        return
    tag, odd = wish.python, ""
    source = "what was asked for"
    version = wish.python or ""
    if tag is None and isinstance(interpreter, Interpreter):
        tag, version, source = interpreter.tag, interpreter.version, "the interpreter"
        if interpreter.implementation != "cpython":
            odd = interpreter.implementation
        elif interpreter.bits != BITS:
            odd = f"{interpreter.bits}-bit Python"
        elif not numbers(version):
            return  # not known, such as in a report that names the folder only

    def admits(release: str, _build: builds.Build) -> bool:
        return not odd and has_python(release, key, tag or "")

    yield Constraint("python", f"{odd or 'Python'} {version}", version, source, admits)


def _system(facts: Facts, kind: Accelerator) -> Iterator[Constraint]:
    here, key = facts.platform, key_of(facts)
    if not isinstance(here, Platform) or key is None:
        return
    libc, version = here.libc_version or "", here.version or ""
    mps = kind == "cpu" and facts.expectation.accelerator == "mps"
    if here.libc == "glibc" and numbers(libc):

        def carries(release: str, build: builds.Build) -> bool:
            needed = needed_libc(release, build.tag, key)
            return needed is None or _at_least(libc, needed)

        yield Constraint("libc", f"glibc {libc}", libc, "the system", carries)
    if here.system == "darwin" and numbers(version):

        def recent(release: str, _build: builds.Build) -> bool:
            needed = needed_macos(release, key, mps=mps)
            return needed is None or _at_least(version, needed)

        yield Constraint("macos", f"macOS {version}", version, "the system", recent)


def _accelerator(facts: Facts, wish: Wish, kind: Accelerator) -> Iterator[Constraint]:
    source = "what the machine has"
    if wish.accelerator or facts.expectation.accelerator or facts.expectation.cuda_at_least:
        source = "what was asked for"
    subject = {"cpu": "A build for the CPU", "cuda": "A CUDA build", "rocm": "A ROCm build"}.get(
        kind, "An XPU build"
    )
    yield Constraint("accelerator", subject, kind, source, lambda _, build: build.kind == kind)
    if kind == "cuda" and (least := facts.expectation.cuda_at_least):
        yield Constraint(
            "cuda",
            f"CUDA {least} or newer",
            f">={least}",
            "--expect",
            lambda _, build: build.cuda is not None and _at_least(build.cuda, least),
        )


def _driver(facts: Facts, kind: Accelerator) -> Iterator[Constraint]:
    driver, key = facts.driver, driver_key(facts)
    if kind != "cuda" or not isinstance(driver, Driver):
        return
    source = driver.source or "the driver"
    release, cuda = driver.release or "", driver.cuda or ""
    if re.fullmatch(r"\d+(\.\d+)*", release):

        def runs(_release: str, build: builds.Build) -> bool:
            needed = drivers.minimum_driver(build.cuda, key) if build.cuda else None
            return needed is None or drivers.compare(release, needed) >= 0

        yield Constraint("driver", f"NVIDIA driver {release}", release, source, runs)
    elif numbers(cuda):

        def knows(_release: str, build: builds.Build) -> bool:
            return not build.cuda or numbers(build.cuda)[0] <= numbers(cuda)[0]

        yield Constraint("driver", f"NVIDIA driver for CUDA {cuda}", cuda, source, knows)


def _gpus(facts: Facts, kind: Accelerator) -> Iterator[Constraint]:
    key = key_of(facts) or ANY_PLATFORM
    cards = () if isinstance(facts.gpus, Unknown) else facts.gpus
    found = {c.subject: c for gpu in cards for c in _of_gpu(gpu, facts, kind, key)}
    yield from (found[subject] for subject in sorted(found))  # whatever their order was


def _of_gpu(gpu: Gpu, facts: Facts, kind: Accelerator, key: str) -> Iterator[Constraint]:
    if kind == "cuda" and gpu.vendor == "nvidia":
        known = [gpu.capability] if gpu.capability else []
        jetson = isinstance(facts.platform, Platform) and facts.platform.jetson
        if jetson and not known and (row := jetpack(facts)):
            known = list(row.capabilities)
        if not known and not jetson:
            return
        value = ", ".join(f"sm_{major}{minor}" for major, minor in known) or "unknown"

        def has_code(release: str, build: builds.Build) -> bool:
            archs = gpus.arch_list(release, build.tag, key)
            return bool(archs and known) and all(
                archs is not None and gpus.runs(archs.sm, archs.ptx, c, cuda=build.cuda) is True
                for c in known
            )

        name = gpu.name or ("The GPU of this Jetson" if jetson else "An NVIDIA GPU")
        yield Constraint("gpu", f"{name} ({value})", value, "the driver", has_code)
    if kind == "rocm" and gpu.vendor == "amd" and gpu.gfx:
        target = gpu.gfx.partition(":")[0]
        if target not in amd_targets(facts):
            return  # a processor's own graphics beside a card

        def has_target(release: str, build: builds.Build) -> bool:
            if rocm.runs(release, build.tag, target):
                return override(facts, release, build.tag) is None or (
                    _overridden(facts, release, build.tag, target)
                )
            return _overridden(facts, release, build.tag, target)

        yield Constraint(
            "gpu", f"{gpu.name or 'An AMD GPU'} ({target})", target, "the driver", has_target
        )


def _overridden(facts: Facts, release: str, tag: str, target: str) -> bool:
    """Tell whether the override for all GPUs here, which each of them minds, suits this one."""
    found = override(facts, release, tag)
    own = rocm.override(release, tag, target)
    return found is not None and (own == found or target == found.target)


def _companions(facts: Facts, wish: Wish) -> Iterator[Constraint]:
    key = key_of(facts) or ANY_PLATFORM
    for name in companions(facts, wish):
        here = getattr(facts, name)
        value, source = (
            (here.version, f"{name}/version.py")
            if isinstance(here, Build)
            else (name, "what was asked for")
        )

        def exists(release: str, build: builds.Build, name: str = name) -> bool:
            return companion(name, release, build.tag, key) is not None

        yield Constraint("companion", name, value, source, exists)


def _neighbours(facts: Facts, wish: Wish) -> Iterator[Constraint]:
    for asked, source in neighbour_wishes(facts, wish):

        def fits(release: str, build: builds.Build, asked: Requirement = asked) -> bool:
            return neighbour(facts, asked, release, build) is not None

        yield Constraint("neighbour", str(asked), str(asked), source, fits)


# ---- smaller questions -------------------------------------------------------------------------


def _wanted_torch(text: str) -> tuple[SpecifierSet, str]:
    public, _, label = text.strip().partition("+")
    if re.match(r"\d", public):
        exact = releases.torch_release(public) is not None or public.count(".") > 1
        public = f"=={public}" if exact else f"=={public}.*"
    try:
        return SpecifierSet(public), label
    except InvalidSpecifier as error:
        raise ValueError(f"{text!r} is no release of torch and no specifier") from error


def _kind(tag: str | None) -> Accelerator | None:
    try:
        return builds.kind_of(tag) if tag else None
    except ValueError:  # a build of somebody's own
        return None


def _is_for_rocm(gpu: Gpu) -> bool:
    target = (_told_by_name(gpu).gfx or "").partition(":")[0]
    return gpu.vendor == "amd" and not rocm.integrated(target)


def _told_by_name(gpu: Gpu) -> Gpu:
    if gpu.vendor == "nvidia" and gpu.capability is None:
        return replace(gpu, capability=gpus.capability_of(gpu.name))
    if gpu.vendor == "amd" and gpu.gfx is None:
        return replace(gpu, gfx=gpus.gfx_of(gpu.name))
    return gpu


def _strong_enough(facts: Facts, name: str, build: builds.Build) -> bool:
    least = neighbours.needs_capability(name)
    if least is None or build.kind != "cuda" or isinstance(facts.gpus, Unknown):
        return True
    cards = [g.capability for g in facts.gpus if g.vendor == "nvidia" and g.capability]
    return all(capability >= least for capability in cards)


def _version(name: str, version: str, release: str, build: builds.Build) -> Version | None:
    pin = neighbours.pins(name, version)
    alone = bool(pin) and not SpecifierSet(pin or "").contains(release, prereleases=True)
    major = neighbours.plain_cuda(name, version)
    if major is not None and (build.cuda is None or numbers(build.cuda)[0] != major):
        index = neighbours.index_for_cuda(name, version, build.tag)
        return Version(f"{version}+{build.tag}", index, alone=alone) if index else None
    own = build.kind == "cuda" and neighbours.on_pytorch_index(name)
    return Version(version, f"{builds.INDEX_ROOT}{build.tag}" if own else None, alone=alone)


def _python_matches(entry: str, tag: str) -> bool:
    if entry in ("any", tag):
        return True
    if not entry.endswith("+") or tag.endswith("t"):
        return False
    return numbers(tag) >= numbers(entry[:-1])


def _at_least(version: str, needed: str) -> bool:
    return drivers.compare(".".join(map(str, numbers(version))), needed) >= 0
