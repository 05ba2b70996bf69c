"""Will PyTorch work here, why not, and what to run, in which order, to fix it."""

import os.path as _path

__version__ = "0.1.0"

# A wheel carries checks/ and windows/ inside this package; a checkout keeps them beside it.
_above = _path.dirname(_path.dirname(_path.realpath(__file__)))  # noqa: PTH120 - pathlib is slow
if _path.isfile(_path.join(_above, "pyproject.toml")):  # noqa: PTH113, PTH118
    __path__.append(_above)

TYPE_CHECKING = False  # as type checkers read it; importing typing would cost more than this does
if TYPE_CHECKING:
    from torchdoctor.diagnosis import diagnose

__all__ = ["__version__", "diagnose"]


def __getattr__(name: str) -> object:
    if name == "diagnose":  # only a program that asks for it pays
        from torchdoctor.diagnosis import diagnose  # noqa: PLC0415

        return diagnose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
