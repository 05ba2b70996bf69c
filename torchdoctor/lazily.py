"""Load at first use what only some looks need: a machine that works pays for no repair.

Checks name at their top what they build steps from, as is usual; with the finder of this module in
place, ``from torchdoctor import steps`` costs nothing until the first ``steps.…``. A module is
loaded so only where nobody takes names out of it at import (``from torchdoctor.steps import …``
loads it at once). Only ``check`` puts it in place, which judges in one thread: the loader is not
safe for several before Python 3.12, and the threads that collect use none of these modules.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

MODULES = frozenset(
    f"torchdoctor.{name}"
    for name in (
        *("steps", "conda_steps", "effects", "choose", "constraints", "installers", "shells"),
        *("dlls", "loading", "standing", "plan", "reading.nvidia_smi"),
    )
)
TABLES = "torchdoctor.tables."


class _Finder:
    """Finds what the usual finder does, with a loader that waits."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in MODULES and not name.startswith(TABLES):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def begin() -> None:
    """Load from now on what is in ``MODULES``, and the tables, at their first use."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
