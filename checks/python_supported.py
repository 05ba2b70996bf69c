"""A wheel of torch exists for this Python, system and processor.

How it shows: "Could not find a version that satisfies the requirement torch (from versions: none)",
"No matching distribution found for torch", or an old torch where a new one was asked for.

Why: torch is published as compiled files, one for each Python (3.13), system and processor. There
are none for a 32-bit Python, for musl (Alpine), for 32-bit ARM, and none for Intel Macs after
2.2.2; a Python that has just come out waits for the next torch, and old ones are dropped.

Not to be confused with a wrong index address, which gives the same message under a Python that has
wheels: this check reads the list of what was published, not the message.

The fix is an environment with a Python that has wheels, or another system; nothing in pip's options
can help. Source: the file names of every wheel of torch 1.12 and newer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import choose, effects, steps
from torchdoctor.facts import Build, Facts, ImportTrial, Interpreter, Platform, Unknown
from torchdoctor.model import CannotTell, Evidence, Finding, Layer, Step
from torchdoctor.tables import builds, load, releases

FAMILY = "build"
FINDS = ("python-not-supported", "python-32bit", "platform-wheel-dropped")


def check(
    platform: Platform,
    interpreter: Interpreter,
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Compare the interpreter with the wheels of every release."""
    if isinstance(trial, ImportTrial) and trial.outcome == "imported":
        return
    if isinstance(torch, Unknown):
        raise CannotTell("whether torch is installed is not known")
    if torch and not _from_wheel(torch):
        return
    if interpreter.bits != 64:  # noqa: PLR2004
        yield _finding(
            "python-32bit",
            f"Python {interpreter.version} is a {interpreter.bits}-bit one; every torch wheel"
            " needs a 64-bit Python.",
            _seen("interpreter.bits", str(interpreter.bits), "the interpreter"),
            _another_python(facts.but(interpreter=replace(interpreter, bits=64))),
        )
    if interpreter.bits != 64 or (torch and isinstance(trial, Unknown)):  # noqa: PLR2004
        return
    key = _key(platform, interpreter)
    if key is None or platform.libc == "musl" or key == "win_arm64":
        if not (torch and key == "win_arm64"):
            yield _no_wheel(platform, key, facts)
        return
    found = [r for r in releases.torch_releases() if not torch or r.version == torch.public]
    if torch and not found:
        raise CannotTell(
            f"torch {torch.public} is not in the tables of {load('releases')['as_of']}"
        )
    if interpreter.implementation == "cpython" and any(
        choose.python_fits(facts, r.version) for r in found
    ):
        return
    known = sorted({p for r in found for p in r.pythons.get(key, ())}, key=_order)
    python = f"{interpreter.implementation} {interpreter.tag}".replace("cpython", "Python")
    which = f"torch {torch.public}" if torch else f"any torch up to {releases.newest('torch')}"
    has = f"they exist for {known[0]} to {known[-1]}" if known else "none exists for this system"
    newer = bool(known) and _order(interpreter.tag) > _order(known[-1])
    finding = _finding(
        "python-not-supported",
        f"There is no wheel of {which} for {python} on {key}; {has}.",
        _seen("interpreter.version", interpreter.version, "the interpreter"),
        _another_python(facts),
    )
    because = ("interpreter-emulated",) if key == "macos_x86_64" else ()
    yield replace(finding, because_of=because, confidence="likely" if newer else "certain")


def _from_wheel(torch: Build) -> bool:
    owner = torch.distribution
    return owner is not None and not owner.editable and owner.installer in ("", "pip", "uv")


def _key(platform: Platform, interpreter: Interpreter) -> str | None:
    machine = platform.machine
    if not machine:
        raise CannotTell("for which processor this is was not told")
    if platform.system == "darwin" and "universal2" not in interpreter.machine:
        machine = interpreter.machine.rpartition("-")[2] or machine
    return releases.platform_key(platform.system, machine)


def _order(tag: str) -> tuple[int, ...]:
    return tuple(int(p) for p in tag.rstrip("t+").split(".") if p.isdigit())


def _another_python(facts: Facts) -> tuple[Step, ...]:
    found = choose.with_python(facts)
    if found is None:
        return ()
    why = f"torch {found[1].release} has a wheel for Python {found[0]}."
    return (steps.new_environment(facts, *found, why=why),)


def _no_wheel(platform: Platform, key: str | None, facts: Facts) -> Finding:
    name = f"{platform.system} on {platform.machine}"
    if key == "win_arm64":
        last = next(
            r.version for r in releases.torch_releases() if builds.builds(r.version, "win_arm64")
        )
        choice = choose.at(facts, last, "cpu")
        why = f"The CPU index has wheels for Windows on ARM up to torch {last}, as far as is known."
        return _finding(
            "platform-wheel-dropped",
            f"The package index has no torch wheel for {name}; the last known one, {last}, is on"
            " PyTorch's own CPU index.",
            _seen("platform.machine", platform.machine, "the system"),
            (steps.change_build(facts, choice, why=why),),
        )
    cure: tuple[Step, ...] = ()
    if platform.libc == "musl" and key:
        name += f" with musl ({platform.name or 'no glibc'})"
        cure = (
            steps.by_hand(
                "use-a-glibc-system",
                "Use a system or a container image with glibc, such as python:3.13-slim",
                why="Wheels of torch are linked against glibc, which musl cannot stand in for.",
                layer=Layer.RUNTIME,
                cost=steps.ENVIRONMENT,
                effect=effects.altered(
                    "platform", libc="glibc", libc_version="2.36", distribution="debian", like=()
                ),
            ),
        )
    return _finding(
        "platform-wheel-dropped",
        f"No torch wheel is published for {name}, whatever the Python.",
        _seen(
            "platform",
            f"{platform.system} {platform.machine} {platform.libc or ''}".strip(),
            "the system",
        ),
        cure,
    )


def _seen(fact: str, value: str, source: str) -> tuple[Evidence, ...]:
    return (Evidence(fact, value, source),)


def _finding(
    name: str, summary: str, evidence: tuple[Evidence, ...], cure: tuple[Step, ...]
) -> Finding:
    return Finding(name, "error", summary, evidence, cure)
