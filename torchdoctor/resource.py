"""Files that are shipped beside the code, in a checkout, a wheel or one zip file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import torchdoctor

if TYPE_CHECKING:
    from importlib.abc import ResourceLoader


def read_text(*path: str) -> str:
    """Return the text of the file *path* below the package; raises OSError when it is not there.

    By the package's own loader: importlib.resources says the same, but costs as much to import
    as all the rest of a static check.
    """
    loader = cast("ResourceLoader", torchdoctor.__loader__)
    own, *beside = torchdoctor.__path__  # a path inside a zip, too; a checkout has windows/ beside
    try:
        return loader.get_data(os.path.join(own, *path)).decode("utf-8")  # noqa: PTH118
    except OSError:
        if not beside:
            raise
        return loader.get_data(os.path.join(beside[0], *path)).decode("utf-8")  # noqa: PTH118
