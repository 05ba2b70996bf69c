"""What is known of the world: releases, builds, drivers, GPUs, libraries; each with its source.

A table is a file of data beside this one and a module of small pure functions over it. Importing
the module reads nothing; the first question reads its file, once. Every file states ``schema``,
``as_of`` and ``source``. ``None`` from any function means unknown, never a guess: a version newer
than the tables is unknown.
"""

import importlib
import json
import sys
from functools import cache
from typing import Any

from torchdoctor.resource import read_text


@cache
def load(name: str) -> Any:  # noqa: ANN401 - parsed data; each module types what it hands out
    """Return the parsed table *name*: ``name.json`` where it is generated, else ``name.toml``.

    The answer is shared between callers: do not change it. No such table: OSError.
    """
    try:
        generated = read_text("tables", f"{name}.json")
    except OSError:
        text = read_text("tables", f"{name}.toml")
    else:
        return json.loads(generated)
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return parser.loads(text)
