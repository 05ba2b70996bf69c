"""The extensions around torch have code for its CUDA, and not for the CPU alone.

How it shows: bitsandbytes says "Required library version not found: libbitsandbytes_cuda114.so" or
"Configured CUDA binary not found"; torch-scatter and its kin, detectron2 and others raise "Not
compiled with CUDA support", "Not compiled with GPU support". torch itself and the GPU work.

Why: bitsandbytes brings a binary for each CUDA that it knows, and one is missing; up to 0.42 it
goes by the toolkit of the machine, later by torch. Others were compiled where there was no nvcc, or
beside a CPU build of torch, and have no code for a GPU at all.

Not to be confused with an extension that does not load (ext-abi-mismatch): this one loads. Where
torch is a CPU build, that comes first (cpu-only-build).

The fix is a release that has it, or to compile it against this torch, where nvcc is.

Sources: https://github.com/bitsandbytes-foundation/bitsandbytes/issues/82 and pull/1615,
https://github.com/rusty1s/pytorch_scatter, https://github.com/facebookresearch/detectron2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchdoctor import effects, gpu, steps
from torchdoctor.facts import Build, Facts, Symptom, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step
from torchdoctor.tables import neighbours

FAMILY = "versions"
FINDS = ("ext-cuda-variant-missing",)

NAME = "extension-without-cuda"
BY_TORCH = "bitsandbytes>=0.43,<0.46"
"""Those that go by torch's CUDA and take any torch 2."""


def check(
    symptoms: tuple[Symptom, ...], torch: Build | Unknown | None, facts: Facts
) -> Iterator[Finding]:
    """Read what an extension said."""
    said = gpu.symptom(symptoms, NAME)
    if said is None:
        return
    package, cuda = said.values.get("package", ""), said.values.get("cuda", "")
    if package:
        summary = f"{package} brings no binary for CUDA {cuda[:-1]}.{cuda[-1]}, so it does without"
        summary += " the GPU; torch is not at fault."
    else:
        summary = "An extension was compiled without CUDA, so it refuses tensors on the GPU."
    yield Finding(
        "ext-cuda-variant-missing",
        "error",
        summary,
        (Evidence("symptoms", said.text.strip()[:300], said.source),),
        (_newer(torch, facts) if package == "bitsandbytes" else _compile(),),
        because_of=("cpu-only-build",),
    )


def _newer(torch: Build | Unknown | None, facts: Facts) -> Step:
    requirement, landed = BY_TORCH, "0.45.5"
    if isinstance(torch, Build):
        known = neighbours.versions("bitsandbytes")
        fitting = [v for v in known if neighbours.fits("bitsandbytes", v, torch.public)]
        if fitting:
            requirement, landed = f"bitsandbytes=={fitting[0]}", fitting[0]
    step = steps.install_requirements(
        facts,
        {"bitsandbytes": (requirement, landed)},
        why="From 0.43 on it goes by the CUDA of torch, and has binaries for more of them.",
    )
    return replace(step, effect=effects.then(step.effect, effects.settled(NAME)))


def _compile() -> Step:
    return steps.by_hand(
        "compile-extension-with-cuda",
        "Install the extension's wheel for this torch and CUDA, or compile it anew beside this"
        " torch, where nvcc of its CUDA is (FORCE_CUDA=1, pip install --no-build-isolation"
        " --no-cache-dir --force-reinstall --no-deps)",
        why="Its code for the GPU is made only where CUDA is found.",
        layer=Layer.PACKAGES,
        cost=steps.COMPANION + 1,
        effect=effects.settled(NAME),
    )
