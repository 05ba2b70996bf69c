"""The C library is the one that the wheels of torch are made for.

How it shows: "Error relocating .../torch/lib/libgomp-....so.1: pthread_attr_setaffinity_np: symbol
not found" when torch is imported, or "Error loading shared library ld-linux-x86-64.so.2".

Why: Alpine has musl in place of glibc. pip finds no wheel of torch there ("No matching
distribution found"); one that is forced on it, by ``--find-links``, ``--platform`` or a copied
environment, installs and does not load. gcompat has not all that torch calls.

The message is musl's own; glibc says "undefined symbol". A glibc that is too old is glibc-too-old.

The fix is an image with glibc: ``python:3.12-slim`` in place of ``python:3.12-alpine``.

Sources: https://github.com/pytorch/pytorch/issues/102592, https://peps.python.org/pep-0656/,
musl's ldso/dynlink.c
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, places, shells, steps
from torchdoctor.facts import Container, Interpreter, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "build"
FINDS = ("musl-libc",)

TOLD = ("undefined-symbol", "shared-library-missing")


def check(
    symptoms: tuple[Symptom, ...],
    interpreter: Interpreter | Unknown,
    container: Container | Unknown | None,
) -> Iterator[Finding]:
    """Read what the loader of musl said of a file that asks for glibc."""
    said = next((s for s in symptoms if s.name in TOLD and _asks_for_glibc(s)), None)
    if said is None:
        return
    file = said.values.get("file") or said.values.get("required_by") or "a library"
    lacks = said.values.get("symbol") or said.values.get("library", "")
    python = interpreter.tag if isinstance(interpreter, Interpreter) else "3.12"
    yield Finding(
        "musl-libc",
        "error",
        f"{places.last(file)} is made for glibc ({lacks} is not here), and the C library of this"
        " system is musl (Alpine), for which there is no torch.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_other_image(python, container),),
    )


def _other_image(python: str, container: Container | Unknown | None) -> Step:
    image = f"python:{python}-slim"
    step = steps.by_hand(
        "take-glibc-image",
        f"Use an image or a system with glibc, such as {image} in place of"
        f" python:{python}-alpine, and install torch anew there",
        why="musl cannot stand in for glibc.",
        layer=Layer.RUNTIME,
        cost=steps.ENVIRONMENT,
        effect=effects.altered(
            "platform", libc="glibc", libc_version="2.36", name="", distribution=None
        ),
    )
    if container is None:  # a machine of its own is not replaced by a command
        return step
    start = ("docker", "run", "-it", "--rm", image, "bash")
    return replace(step, commands=shells.in_all([start]))


def _asks_for_glibc(said: Symptom) -> bool:
    """Tell whether musl's loader spoke of a part of torch, or of glibc's own loader."""
    if said.values.get("loader") != "musl":
        return False
    library = places.last(said.values.get("library", ""))
    if library.startswith("ld-linux"):
        return True
    parts = places.plain(said.values.get("file", "")).split("/")
    return "torch" in parts and any(part.endswith("-packages") for part in parts)
