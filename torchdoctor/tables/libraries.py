"""Which package a shared library comes from.

Source: file lists of the nvidia-* wheels that torch 1.13-2.15 ask for, and of torch's own
(``libraries.toml``). Linux names are sonames ("libcublas.so.13"), Windows names files.
"""

from torchdoctor.tables import load


def suppliers(soname: str) -> tuple[str, ...]:
    """Return the pip packages that carry *soname*, sorted; empty if none is known.

    More than one means that CUDA majors share the name: torch's pins tell which is meant. On
    Windows the torch wheel itself carries the CUDA libraries. See also ``from_driver``.
    """
    table = load("libraries")
    if soname.lower().endswith(".dll"):
        return ("torch",) if soname.lower().startswith(tuple(table["windows"])) else ()
    return tuple(sorted(name for name, row in table["files"].items() if soname in row[1:]))


def from_driver(soname: str) -> bool:
    """Say whether *soname* comes with the NVIDIA driver, so that no package can supply it."""
    return soname in load("libraries")["driver"]


def same_files(one: str, other: str) -> tuple[str, ...]:
    """Return the files that both packages write to one place, sorted; the last install wins.

    nvidia-nccl-cu12 and nvidia-nccl-cu13 both write nvidia/nccl/lib/libnccl.so.2, for example.
    """
    files = load("libraries")["files"]
    first, second = files.get(one), files.get(other)
    if first is None or second is None or first[0] != second[0]:
        return ()
    return tuple(f"{first[0]}/{name}" for name in sorted(set(first[1:]) & set(second[1:])))
