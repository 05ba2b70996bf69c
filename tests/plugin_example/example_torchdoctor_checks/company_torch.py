"""The torch is one that the company supports.

How it shows: jobs that work on a laptop are refused by the cluster.

Why: the cluster's image has torch 2.9 to 2.13, and models saved by others are not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from torchdoctor.facts import Build
from torchdoctor.model import Evidence, Finding

FAMILY = "company"
FINDS = ("torch-not-supported-here",)
OLDEST, FIRST_TOO_NEW = Version("2.9"), Version("2.14")


def check(torch: Build | None) -> Iterator[Finding]:
    """Compare the installed torch with what the company supports."""
    if torch is None or not torch.version:
        return
    version = Version(torch.version)
    if not OLDEST <= version < FIRST_TOO_NEW:
        yield Finding(
            "torch-not-supported-here",
            "warning",
            f"torch {torch.version} is outside of what the cluster has (2.9 to 2.13).",
            (Evidence("torch.version", torch.version, "torch/version.py"),),
        )
