"""The wheel that pip took from its cache or downloaded is whole.

How it shows: ``zipfile.BadZipFile: Bad CRC-32 for file 'torch/lib/...'``, "THESE PACKAGES DO NOT
MATCH THE HASHES", "Wheel 'torch' ... is invalid", while torch is installed.

Why: a download that was cut off, or a full disk, left a damaged file in pip's cache, and pip takes
the same file at every try. A proxy that alters what it passes on does the same. The install that is
there already, if any, has nothing to do with it.

The fix is to empty the cache and install again without it. When it comes back, the network or the
disk is at fault.

Sources: https://github.com/s9roll7/animatediff-cli-prompt-travel/issues/69,
https://pip.pypa.io/en/stable/topics/caching/
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, installers, shells, steps
from torchdoctor.facts import Facts, Interpreter, Symptom
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "files"
FINDS = ("pip-cache-corrupt",)

# An archive of data (.npz) is damaged in the same words: only what a wheel holds counts.
_OF_WHEEL = re.compile(
    r"(?:torch|torchvision|torchaudio|torchgen|functorch|caffe2|nvidia|triton)(?:[/\\=\s]|$)"
    r"|\.dist-info[/\\]"
)


def check(symptoms: tuple[Symptom, ...], facts: Facts) -> Iterator[Finding]:
    """Read what pip said of the archive."""
    said = gpu.symptom(symptoms, "archive-damaged")
    if said is None:
        return
    file = said.values.get("file", "")
    if not _OF_WHEEL.match(file) and ".dist-info" not in file:
        return
    differs = "hash" if said.values.get("kind") == "hash" else "content"
    yield Finding(
        "pip-cache-corrupt",
        "error",
        f"The wheel that pip took is damaged: the {differs} of {file} is not what it should be.",
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_again(facts),),
        confidence="likely" if differs == "hash" else "certain",
    )


def _again(facts: Facts) -> Step:
    here = facts.interpreter
    by_uv = isinstance(here, Interpreter) and (here.installer == "uv" or not here.has_pip)
    tool = "uv" if by_uv else "pip"
    step = steps.by_hand(
        "purge-pip-cache",
        f"Empty {tool}'s cache, then run the same install again",
        why=f"{tool} takes the same damaged file at every try until it is gone.",
        layer=Layer.PACKAGES,
        cost=steps.SMALL,
        effect=effects.settled("archive-damaged"),
    )
    if by_uv:
        lines = shells.in_all([("uv", "cache", "clean")])
    else:
        lines = installers.with_pip(here, "cache", "purge")
    return replace(step, commands=lines, needs=("network",), deletes=True)
