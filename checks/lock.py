"""The environment is as the lock file says that worked (``--lock``).

How it shows: what ran yesterday, or on the machine beside it, fails or gives other numbers here.

Why: an upgrade, another image or another machine brought other versions. A lock file holds what a
working environment was like: torch and what it brings along, Python, driver, GPUs, and the
variables that steer NCCL and torch.

How to tell: unlike a requirements file it also holds what no package says. A newer driver, more
GPUs and another patch release of Python count as the same.

The fix: install the versions that the file holds (lock-packages-unmet; no package changes what
lock-unmet names), or make a new lock once this environment is the one to keep:
``torchdoctor lock -o torchdoctor.lock``. Source: the file given with ``--lock``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchdoctor.facts import Expectation, Facts
from torchdoctor.model import SEVERITIES, CannotTell, Evidence, Finding, Step

if TYPE_CHECKING:
    from torchdoctor.lock import Difference

FAMILY = "system"
FINDS = ("lock-packages-unmet", "lock-unmet")

PACKAGES = "packages."
OF_PACKAGES = (PACKAGES, "torch", "runtime.")
"""What packages bring: their versions, torch and its companions, and what these load."""
NAMED = 3


def check(expectation: Expectation, facts: Facts) -> Iterator[Finding]:
    """Compare the facts with those of the lock file."""
    if not expectation.lock:
        return
    from torchdoctor import lock, steps  # noqa: PLC0415 - few checks are given a lock file

    found = list(lock.differences(expectation.lock, facts))
    brought = [d for d in found if d.fact.startswith(OF_PACKAGES)]
    rest = [d for d in found if not d.fact.startswith(OF_PACKAGES)]
    if brought:
        versions = {
            d.fact.removeprefix(PACKAGES): d.was
            for d in found
            if d.fact.startswith(PACKAGES) and d.was != "none" and " " not in d.was
        }
        why = "They are the versions that the lock file holds."
        own = (steps.restore(facts, versions, why=why),) if versions else ()
        yield _unmet("lock-packages-unmet", brought, own)
    if rest:
        yield _unmet("lock-unmet", rest)
    if not found and (open_ := lock.untold(expectation.lock, facts)):
        raise CannotTell(f"nobody told of {', '.join(open_[:NAMED])}")


def _unmet(name: str, found: list[Difference], own: tuple[Step, ...] = ()) -> Finding:
    named = [f"{d.fact} is {d.now} and was {d.was}" for d in found[:NAMED]]
    more = f", and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return Finding(
        name,
        min((d.severity for d in found), key=SEVERITIES.index),
        f"This is not the environment of the lock file: {'; '.join(named)}{more}.",
        tuple(Evidence(d.fact, f"{d.now} (locked: {d.was})", "the lock file") for d in found),
        own,
    )
