"""The tables beside this module: what is known of Windows, of its C++ runtime, of torch's start."""

from __future__ import annotations

import importlib
import os
import sys
from functools import cache
from importlib.abc import ResourceLoader
from typing import Any, cast


@cache
def load(name: str) -> Any:  # noqa: ANN401 - parsed data; each module types what it hands out
    """Return the parsed table ``name.toml``, shared between callers: do not change it."""
    assert __spec__ is not None
    loader = cast("ResourceLoader", __spec__.loader)
    path = os.path.join(os.path.dirname(__file__), f"{name}.toml")  # noqa: PTH118, PTH120 - a zip
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return parser.loads(loader.get_data(path).decode("utf-8"))
