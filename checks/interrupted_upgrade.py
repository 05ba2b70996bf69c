"""Whether pip was stopped half way through an upgrade and left ``~orch`` folders behind.

While pip uninstalls, it renames ``torch`` to ``~orch`` and deletes it at the end. When it is
stopped (Ctrl-C, a full disk, on Windows a DLL or .pyc that another Python program holds open:
WinError 32), the renamed folders stay: ``WARNING: Ignoring invalid distribution -orch``. By then
the old version is gone, and the new one may not be there, or only in part.

pip's warning alone does no harm, so with a torch that imports it is a warning here. Leftovers of
packages that torch does not need are not told.

The fix: close every Python program, notebook and editor that uses the environment, delete the
leftovers, and reinstall where something is missing. In this order: a file that is still held open
makes a second leftover.

Sources: https://github.com/pypa/pip/issues/11857, pip/_internal/utils/temp_dir.py
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, installers, places, steps, trials
from torchdoctor.facts import Build, Facts, ImportTrial, Leftover, Unknown
from torchdoctor.model import Effect, Evidence, Finding, Step

FAMILY = "files"
FINDS = ("interrupted-upgrade",)

PACKAGES = (
    "torch",
    "torchvision",
    "torchaudio",
    "torchgen",
    "functorch",
    "caffe2",
    "nvidia",
    "triton",
)
# pip replaces more and more leading letters by these until the name is free.
_LEAD = re.compile(r"~[-~.=%0-9]*")


def check(
    leftovers: tuple[Leftover, ...],
    torch: Build | Unknown | None,
    trial: ImportTrial | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for renamed folders of torch and of what it is installed with."""
    ours = [leftover for leftover in leftovers if _of_package(leftover.name)]
    if not ours:
        return
    broken = torch is None or trials.failed(trial)
    said = ", ".join(leftover.name for leftover in ours[:4])
    state = {
        True: "torch is not whole: import torch fails",
        False: "torch is there besides",
    }[broken]
    yield Finding(
        "interrupted-upgrade",
        "error" if broken else "warning",
        f"{said} in {ours[0].folder} is left from an upgrade that was stopped half way; {state}.",
        (
            *(Evidence("leftovers", leftover.name, leftover.folder) for leftover in ours[:8]),
            *trials.evidence(trial),
        ),
        tuple(_steps(ours, facts, again=broken and torch is not None)),
    )


def _of_package(name: str) -> str | None:
    """Return which of torch's packages pip renamed to *name* ("~orch" is torch), None if none."""
    found = _LEAD.match(name)
    if not found:
        return None
    for package in PACKAGES:
        rest = package[len(found[0]) :]
        if rest and re.match(rf"{rest}(?![a-z0-9])", name[found.end() :].lower()):
            return package
    return None


def _steps(ours: list[Leftover], facts: Facts, *, again: bool) -> Iterator[Step]:
    removal = steps.remove_paths(
        [places.join(leftover.folder, leftover.name) for leftover in ours],
        name="remove-leftovers",
        title="Close all programs that use this Python, then delete "
        + " and ".join(leftover.name for leftover in ours[:3]),
        why="They are the old version's files, which pip did not get to delete.",
    )
    clean = _without(frozenset(ours))
    family = [n for n in effects.FAMILY if isinstance(getattr(facts, n), Build)]
    if not again or not any(steps.owner(facts, name) for name in family):
        yield replace(removal, effect=clean)
        return
    back = steps.reinstall(facts, family, why="The files that the upgrade did not bring come.")
    yield replace(
        back,
        name="remove-leftovers-and-reinstall",
        title=f"{removal.title}; then {back.title[0].lower()}{back.title[1:]}",
        effect=effects.then(clean, back.effect),
        commands=installers.join(removal.commands, back.commands),
        deletes=True,
    )


def _without(gone: frozenset[Leftover]) -> Effect:
    def effect(facts: Facts) -> Facts:
        if isinstance(facts.leftovers, Unknown):
            return facts
        left = tuple(leftover for leftover in facts.leftovers if leftover not in gone)
        return facts.but(leftovers=left)

    return effect
