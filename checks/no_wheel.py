"""pip or uv finds the torch that was asked for: what their "no matching distribution" means.

How it shows: "Could not find a version that satisfies the requirement torch==2.1.2+cu121 (from
versions: 2.1.1, 2.1.2)", "(from versions: none)", uv's "there is no version of torch==..." or "has
no wheels with a matching Python ABI tag".

Why: an installer shows only what it could install here. A version with a label (+cu121) is on
PyTorch's own index of that name only. When the list begins above what was asked for, the older
releases have no wheel for this Python; when it ends below, the newer ones have none. An empty list,
or one of 0.1.2 alone, which is no wheel, means that nothing fits this interpreter: too new, too
old, 32-bit, another system, or an index that does not have torch.

A package called pytorch is on the default index, too: it holds nothing and says so when it is
installed (wrong-package-name). Only conda's package has that name.

The fix is the address of the index that has the build, or a Python that has wheels. Taking the
label away instead brings another build, on Windows one without CUDA.

Sources: pip/_internal/resolution/resolvelib/factory.py; the list of every published wheel;
https://github.com/ThetaCursed/clean-ui/issues/1, https://github.com/pytorch/pytorch/issues/34798
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from packaging.version import InvalidVersion, Version

from torchdoctor import choose, gpu, steps
from torchdoctor.facts import Facts, Interpreter, Platform, Symptom, Unknown
from torchdoctor.model import CannotTell, Confidence, Evidence, Finding, Step
from torchdoctor.tables import builds, load, releases

FAMILY = "build"
FINDS = (
    *("wrong-index-url", "python-not-supported", "python-32bit", "platform-wheel-dropped"),
    "wrong-package-name",
)
AFTER = ("python-supported",)

NO_WHEEL = Version("0.1.3")
"""Below it the default index has sources only, which are no torch."""
BITS = 64
INTEL_MAC = Platform("darwin", "x86_64")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, and what the installer had to choose from."""

    name: str
    version: Version | None
    """The one version that was asked for; None where any would do."""
    listed: tuple[Version, ...] | None
    """None where the installer does not list them."""


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Read what was asked for, and compare it with what was published."""
    if said := gpu.symptom(symptoms, "placeholder-package"):
        yield _finding(
            "wrong-package-name",
            f"pip's package {said.values['package']} holds nothing: PyTorch is called torch there.",
            said,
            steps.install_torch(facts, why="This is the package that holds PyTorch."),
        )
    if said := gpu.symptom(symptoms, "wheel-tags-unmatched"):
        yield from _of_tags(said, facts)
        return
    if said := gpu.symptom(symptoms, "wheel-not-for-here"):
        yield from _of_file(said, facts)
        return
    said = gpu.symptom(symptoms, "no-wheel-found")
    asked = _asked(said) if said else None
    if said is None or asked is None:
        return
    if isinstance(interpreter, Interpreter) and interpreter.bits != BITS:
        what = f"This Python is a {interpreter.bits}-bit one; every torch wheel needs a 64-bit one."
        wide = facts.but(interpreter=replace(interpreter, bits=BITS))
        yield _finding("python-32bit", what, said, _another_python(wide))
    elif asked.version is not None and asked.version.local:
        yield from _labelled(asked, said, facts)
    elif asked.listed and any(v >= NO_WHEEL for v in asked.listed):
        yield from _outside(asked, asked.listed, said, facts)
    elif asked.listed is not None:
        missing = _no_such_index(asked, said, facts)
        yield from [missing] if missing else _nothing(asked, said, platform, interpreter, facts)
    else:
        raise CannotTell("the installer does not say what it had to choose from")


def _asked(said: Symptom) -> Asked | None:
    found = re.match(r"([a-z]+)(?:\[\w+\])?(?:={2,3}\s*([\w.+!-]+))?", said.values["requirement"])
    if found is None:
        return None
    text = said.values.get("versions")
    listed = None if text is None else tuple(filter(None, map(_version, text.split(","))))
    return Asked(found[1], _version(found[2] or ""), listed)


@cache
def _version(text: str) -> Version | None:
    try:
        return Version(text.strip())
    except InvalidVersion:
        return None


# ---- a version with a label --------------------------------------------------------------------


def _labelled(asked: Asked, said: Symptom, facts: Facts) -> Iterator[Finding]:
    """Judge a version with a label: the wrong index, or a Python without that release."""
    assert asked.version is not None
    release, label = asked.version.public, asked.version.local or ""
    wheels = [v for v in asked.listed or () if v >= NO_WHEEL]
    if wheels and all(v.public != release for v in wheels) and not any(v.local for v in wheels):
        yield from _outside(asked, tuple(wheels), said, facts)
        return
    if asked.name == "torch" and _lacks_python(release, facts):
        yield _python(asked, said, facts, "certain")
        return
    exists = asked.name != "torch" or _has(release, label, facts)
    where = f"only on {builds.INDEX_ROOT}{label}" if exists else "on no index that is known"
    yield _finding(
        "wrong-index-url",
        f"{asked.name} {asked.version} is {where}, and another index was asked.",
        said,
        tuple(_from_index(asked, label, facts, exists=exists)),
        "certain" if wheels else "likely",
    )


def _has(release: str, label: str, facts: Facts) -> bool:
    keys = gpu.platform_keys(facts.platform)
    return any(b.tag == label for key in keys for b in builds.builds(release, key))


def _from_index(asked: Asked, label: str, facts: Facts, *, exists: bool) -> Iterator[Step]:
    release = asked.version.public if asked.version and asked.name == "torch" else None
    if exists and release and releases.torch_release(release):
        one = choose.at(facts, release, label)
        yield steps.change_build(facts, one, why=f"The index {label} has this build.")
        return
    kind = re.match(r"cpu|cu|rocm|xpu", label)
    accelerator = {"cpu": "cpu", "cu": "cuda", "rocm": "rocm", "xpu": "xpu"}.get(
        kind[0] if kind else ""
    )
    known = releases.torch_release(release) if release else None
    choice = choose.choose(
        facts,
        accelerator=accelerator,  # type: ignore[arg-type] # one of the four
        release=release if known else None,
    )
    if choice:
        yield steps.change_build(facts, choice, why="This build exists, on the index named here.")


# ---- a version without one ---------------------------------------------------------------------


def _outside(
    asked: Asked, listed: tuple[Version, ...], said: Symptom, facts: Facts
) -> Iterator[Finding]:
    """Judge a version that is not among those that the installer could take."""
    version, wheels = asked.version, [v for v in listed if v >= NO_WHEEL]
    if version is None:
        raise CannotTell("which version was asked for is not one number")
    release = version.public
    if asked.name == "torch" and releases.beyond_tables("torch", release):
        raise CannotTell(f"torch {release} is newer than the tables of {load('releases')['as_of']}")
    labels = {v.local for v in wheels if v.local}
    if labels:
        yield _finding(
            "wrong-index-url",
            f"The index that was asked has {asked.name} for {', '.join(sorted(map(str, labels)))}, "
            f"and not {release}.",
            said,
            tuple(_release(release, facts)),
            "likely",
        )
    elif version < min(wheels) or _lacks_python(release, facts):
        yield _python(asked, said, facts, "certain" if _lacks_python(release, facts) else "likely")
    elif _of_intel_mac(facts, release):
        yield _finding(
            "platform-wheel-dropped",
            f"There is no wheel of torch {release} for Intel Macs; the newest is {max(wheels)}.",
            said,
            tuple(_release(max(wheels).public, facts)),
        )
    elif version > max(wheels) and releases.torch_release(release):
        ends = _ends(max(wheels).public)
        if ends and ends <= {"macos_x86_64"} and isinstance(facts.platform, Unknown):
            yield _finding(
                "platform-wheel-dropped",
                f"The list ends with {max(wheels)}, the last torch for Intel Macs; {release} has "
                "no wheel for them.",
                said,
                tuple(_release(max(wheels).public, facts)),
                "likely",
            )
        else:
            yield _python(asked, said, facts, "possible")
    else:
        raise CannotTell(f"{asked.name} {release} is in no list of releases")


@cache
def _ends(release: str) -> frozenset[str]:
    """Return for which platforms *release* is the newest that some Python can have."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    for row in releases.torch_releases():  # the newest first
        for key, pythons in row.pythons.items():
            for python in pythons:
                if (key, python) not in seen and row.version == release:
                    found.add(key)
                seen.add((key, python))
    return frozenset(found)


def _of_intel_mac(facts: Facts, release: str) -> bool:
    known = releases.torch_release(release)
    keys = gpu.platform_keys(facts.platform)
    return keys == ("macos_x86_64",) and known is not None and "macos_x86_64" not in known.pythons


def _release(release: str, facts: Facts) -> Iterator[Step]:
    if choice := choose.choose(facts, release=release):
        yield steps.change_build(facts, choice, why="This is the index that has it.")


# ---- nothing at all ----------------------------------------------------------------------------

_LABEL = re.compile(r"/whl/(?:nightly/)?(cu\d{2,3}|rocm[\d.]{3,6})/?$")


def _no_such_index(asked: Asked, said: Symptom, facts: Facts) -> Finding | None:
    """Return that the index of that label does not exist, or never had the release asked for."""
    found = _LABEL.search(said.values.get("index", ""))
    if found is None or asked.name != "torch" or asked.version is None:
        return None
    label, release = found[1], asked.version.public
    tags = {b.tag for key in gpu.platform_keys(facts.platform) for b in builds.builds(release, key)}
    if not tags or label in tags:
        return None
    kind = label.rstrip("0123456789.")
    have = sorted(tag for tag in tags if tag and tag.startswith(kind))
    has = f"there are {', '.join(have)}" if have else f"there is no {kind} build of it"
    return _finding(
        "wrong-index-url",
        f"No index of PyTorch has torch {release} for {label}; {has}.",
        said,
        tuple(_release(release, facts)),
    )


def _nothing(
    asked: Asked,
    said: Symptom,
    platform: Platform | Unknown,
    interpreter: Interpreter | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Judge an empty list, or one without a wheel."""
    known = isinstance(interpreter, Interpreter) and bool(interpreter.version)
    keys = gpu.platform_keys(platform)
    if not keys:
        system = f"{platform.system} {platform.machine}" if isinstance(platform, Platform) else ""
        yield _finding("platform-wheel-dropped", f"There is no torch wheel for {system}.", said)
    elif not known or _lacks_python(None, facts):
        yield _python(asked, said, facts, "certain" if known else "possible")
    elif asked.listed and isinstance(platform, Platform) and platform.system == "win32":
        what = "pip sees no wheel for this Python, though there are some: it is a 32-bit one."
        yield _finding("python-32bit", what, said, _another_python(facts), "likely")
    elif asked.listed:
        raise CannotTell("there are wheels for this Python, and pip takes none of them")
    else:
        tag = interpreter.tag if isinstance(interpreter, Interpreter) else ""
        yield _finding(
            "wrong-index-url",
            f"The index that pip asked has no {asked.name} at all for Python {tag}, and there are "
            "wheels for it: the address is wrong, or was not reached, or pip is older than they.",
            said,
            steps.install_torch(facts, why="This is the address of an index that has it."),
            "likely",
        )


# ---- findings ----------------------------------------------------------------------------------


def _lacks_python(release: str | None, facts: Facts) -> bool:
    """Tell whether *release*, or every release, is known to have no wheel for this Python."""
    python = facts.interpreter
    if not isinstance(python, Interpreter) or not re.match(r"\d+\.\d+", python.version):
        return False
    rows = [r for r in releases.torch_releases() if release in (None, r.version)]
    keys = gpu.platform_keys(facts.platform)
    return bool(rows) and not any(
        python.tag in row.pythons.get(key, ()) for row in rows for key in keys
    )


def _python(asked: Asked, said: Symptom, facts: Facts, confidence: Confidence) -> Finding:
    python = facts.interpreter
    tag = f" {python.tag}" if isinstance(python, Interpreter) and python.version else ""
    which = f"{asked.name} {asked.version}" if asked.version else f"any {asked.name}"
    listed = [v for v in asked.listed or () if v >= NO_WHEEL]
    has = f"; for it there are {min(listed)} to {max(listed)}" if listed else ""
    return _finding(
        "python-not-supported",
        f"There is no wheel of {which} for this Python{tag}{has}.",
        said,
        (
            *_another_python(facts, asked.version.public if asked.version else None),
            *(steps.install_torch(facts, why="It has wheels for this Python.") if listed else ()),
        ),
        confidence,
    )


def _intel_mac(facts: Facts) -> Iterator[Step]:
    """Yield the step to the newest release that has a wheel for Intel Macs."""
    mac = facts.but(platform=INTEL_MAC)
    rows = (row.version for row in releases.torch_releases() if "macos_x86_64" in row.pythons)
    for release in rows:
        if choice := choose.choose(mac, release=release):
            yield steps.change_build(mac, choice, why="It is the last with wheels for Intel Macs.")
            return


def _of_tags(said: Symptom, facts: Facts) -> Iterator[Finding]:
    values = said.values
    version = f" {values['version']}" if values.get("version") else ""
    tag = f" ({values['tag']})" if values.get("tag") else ""
    kind = values.get("kind") or _kind(values["requirement"].partition("==")[2], facts)
    if kind is None:
        raise CannotTell("uv does not say whether the Python or the system is the reason")
    platform = kind == "platform"
    name = "platform-wheel-dropped" if platform else "python-not-supported"
    what = "this system" if platform else "this Python"
    asked = values["requirement"].partition("==")[2].partition("+")[0]
    cure = tuple(_intel_mac(facts)) if platform else _another_python(facts, asked)
    cure = cure if not platform or re.match(r"macosx_.+_x86_64", values.get("tag", "")) else ()
    wheel = values["requirement"].replace("==", " ")
    yield _finding(name, f"There is no wheel of {wheel}{version} for {what}{tag}.", said, cure)


def _kind(release: str, facts: Facts) -> str | None:
    """Return what *release* of torch has no wheel for, where the tables and the facts tell it."""
    row = releases.torch_release(release.partition("+")[0])
    keys = gpu.platform_keys(facts.platform)
    if row is None or isinstance(facts.platform, Unknown):
        return None
    if not any(row.pythons.get(key) for key in keys):
        return "platform"
    return "Python" if _lacks_python(row.version, facts) else None


def _of_file(said: Symptom, facts: Facts) -> Iterator[Finding]:
    """Judge a wheel that was named as a file and is not for this machine."""
    wheel = said.values["wheel"]
    parts = re.fullmatch(r"torch-([^-]+)-cp(\d)(\d+)-\w+-([\w.]+)\.whl", wheel)
    if parts is None:
        return
    python, tag = f"{parts[2]}.{parts[3]}", ""
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.version:
        tag = facts.interpreter.tag
    if tag == python:
        raise CannotTell(f"{wheel} is for this Python: its system or processor is another")
    yield _finding(
        "python-not-supported",
        f"{wheel} is for Python {python}, and this is {f'Python {tag}' if tag else 'another one'}.",
        said,
        steps.install_torch(facts, why="It is the wheel for this Python."),
        "certain" if tag else "possible",
    )


def _another_python(facts: Facts, release: str | None = None) -> tuple[Step, ...]:
    """Return the step to a Python that has wheels: of *release*, where there is one for it."""
    known = release if release and releases.torch_release(release) else None
    found = (known and choose.with_python(facts, known)) or choose.with_python(facts)
    if found is None:
        return ()
    why = f"torch {found[1].release} has a wheel for Python {found[0]}."
    return (steps.new_environment(facts, *found, why=why),)


def _finding(
    name: str,
    summary: str,
    said: Symptom,
    cures: tuple[Step, ...] = (),
    confidence: Confidence = "certain",
) -> Finding:
    seen = (Evidence("symptoms", said.text.strip()[:300], said.source),)
    return Finding(name, "error", summary, seen, cures, confidence)
