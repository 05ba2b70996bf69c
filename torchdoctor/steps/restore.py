"""The step that brings packages back to what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchdoctor import effects, installers
from torchdoctor.facts import Facts
from torchdoctor.installers import Package
from torchdoctor.model import Layer, Step
from torchdoctor.scale import BUILD, COMPANION, slug
from torchdoctor.steps.packages import index_for, tool

SHOWN = 4


def restore(
    facts: Facts, versions: Mapping[str, str], *, added: Iterable[str] = (), why: str
) -> Step:
    """Return the step that removes *added* and brings packages to *versions*, name -> version.

    Each comes from the index that has its build, and without its dependencies: together they
    are what was there.
    """
    gone = tuple(added)
    groups: dict[str | None, list[Package]] = {}
    for name, version in versions.items():
        index = index_for(facts, version.partition("+")[2])
        exact = name in effects.FAMILY and "+" not in version
        groups.setdefault(index, []).append(Package(name, version, exact=exact))
    interpreter = tool(facts)
    said = [f"{name} {version}" for name, version in versions.items()]
    parts = [f"install {_some(said)}"] if said else []
    parts += [f"remove {_some(list(gone))}"] if gone else []
    title = " and ".join(parts)
    return Step(
        name=slug("restore", *list(versions)[:SHOWN], *gone[: 0 if versions else SHOWN]),
        title=title[:1].upper() + title[1:],
        why=why,
        layer=Layer.PACKAGES,
        cost=BUILD if "torch" in versions else COMPANION,
        effect=effects.packages(versions, removed=gone),
        commands=installers.join(
            *([installers.uninstall(interpreter, gone)] if gone else []),
            *(
                installers.install(interpreter, packages, index=index, reinstall=True)
                for index, packages in groups.items()
            ),
        ),
        needs=("network",) if versions else (),
        deletes=bool(gone),
    )


def _some(names: list[str]) -> str:
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
