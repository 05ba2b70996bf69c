"""Will PyTorch work here, why not, and what to run, in which order, to fix it."""

import os.path as _path

__version__ = "0.1.0"

# A wheel carries checks/ and windows/ inside this package; a checkout keeps them beside it.
_above = _path.dirname(_path.dirname(_path.realpath(__file__)))  # noqa: PTH120 - pathlib is slow
if _path.isfile(_path.join(_above, "pyproject.toml")):  # noqa: PTH113, PTH118
    __path__.append(_above)
