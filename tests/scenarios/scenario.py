"""What one scene is: the machine, how it is made, and what has to be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from tests import environments
from tests.environments import Environment
from tests.scenarios.doctor import Scene

Proof = Literal["heals", "becomes", "words", "told", "none"]
"""How a plan is proven: ``heals``: its commands are run, then torch imports and all is quiet;
``becomes``: its commands are run, then another build is installed and what was found is gone (the
build itself is a stand-in); ``words``: the system has to be changed, nothing is run;
``told``: nothing on this machine can cure it, and the plan says so; ``none``: nothing to do."""


class Place(Protocol):
    """Makes an environment in a folder."""

    def __call__(self, root: Path, *, whole: bool = True) -> Environment:
        """Return it; see :func:`tests.environments.copy`."""


def healthy(scene: Scene) -> None:
    """Leave the machine of *scene* as it is."""


@dataclass(frozen=True)
class Scenario:
    """One scene and its right answer. As a decorator it is given how the scene is made."""

    key: str
    title: str
    expected: tuple[str, ...] = ()
    """Names, any one of which is right for what is to be fixed first; none: quiet."""
    severity: str = "error"
    """One, or "error or warning"."""
    shows: tuple[str, ...] = ()
    """Texts that the evidence has to hold."""
    notes: tuple[str, ...] = ()
    """Names that have to be there as notes."""
    arguments: tuple[str, ...] = ()
    proof: Proof = "none"
    becomes: str = ""
    """A pattern for the version of torch after the plan."""
    place: Place = environments.copy
    quick: bool = False
    """Whether its plan is carried out in the default tier too, not only with the marker lab."""
    installs: bool = True
    """Whether its plan installs or removes packages."""
    gpu_free: bool = False
    """Whether it needs a machine that has no NVIDIA driver of its own."""
    build: Callable[[Scene], None] = healthy

    def __call__(self, build: Callable[[Scene], None]) -> Callable[[Scene], None]:
        """Enter this scene, made by *build*, in the list of all."""
        SCENARIOS[self.key] = replace(self, build=build)
        return build


SCENARIOS: dict[str, Scenario] = {}
