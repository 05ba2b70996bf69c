"""torchaudio can read and write files: from 2.9 on it needs torchcodec for that.

How it shows: "ImportError: TorchCodec is required for load_with_torchcodec. Please install
torchcodec to use this function"; "RuntimeError: Could not load libtorchcodec", which lists FFmpeg
4 to 8 and torch as likely causes.

Why: torchaudio 2.9 gave up its own decoders; ``torchaudio.load`` and ``save`` call torchcodec,
which torchaudio does not require. torchcodec is built for one torch up to 2.10 and needs the
libraries of FFmpeg, which no wheel brings along. The rest of torchaudio works without.

The fix is the torchcodec for this torch. If it is there and is not loaded, FFmpeg is missing:
``apt-get install ffmpeg``, ``conda install -c conda-forge ffmpeg``, ``brew install ffmpeg``.
Sources: https://github.com/pytorch/audio/issues/3902, README of torchcodec
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import requirements, steps
from torchdoctor.facts import Build, Distribution, Facts, Symptom, Unknown, items_of
from torchdoctor.model import Evidence, Finding, Step
from torchdoctor.tables import neighbours

FAMILY = "versions"
FINDS = ("torchcodec-missing", "torchcodec-mismatch")
AFTER = ("torch-present",)


def check(
    torch: Build | None,
    torchaudio: Build | Unknown | None,
    distributions: tuple[Distribution, ...],
    symptoms: tuple[Symptom, ...] | Unknown,
    facts: Facts,
) -> Iterator[Finding]:
    """Look for the message, or for a torchaudio without its torchcodec."""
    if torch is None:
        return
    messages = items_of(symptoms)
    said = next((s for s in messages if s.name.startswith("torchcodec-")), None)
    here = next((d for d in distributions if d.name == "torchcodec"), None)
    if here is None:
        needs = isinstance(torchaudio, Build) and neighbours.torchaudio_needs_torchcodec(
            torchaudio.public
        )
        if said or needs:
            yield _missing(torch, torchaudio, said, facts)
        return
    fits = neighbours.fits("torchcodec", here.version, torch.public)
    if fits is False:
        wants = neighbours.built_for("torchcodec", here.version)
        yield Finding(
            "torchcodec-mismatch",
            "warning",
            f"torchcodec {here.version} is built for torch {wants} and torch is {torch.version},"
            " so its library does not load.",
            (
                Evidence("distributions", f"torchcodec {here.version}", here.folder),
                Evidence("torch.version", torch.version, "torch/version.py"),
                *_told(said),
            ),
            tuple(_install(torch, facts)),
            confidence="certain" if said else "likely",
        )


def _told(said: Symptom | None) -> Iterator[Evidence]:
    if said:
        yield Evidence("symptoms", said.text.strip()[:300], said.source)


def _missing(
    torch: Build, torchaudio: Build | Unknown | None, said: Symptom | None, facts: Facts
) -> Finding:
    who = f"torchaudio {torchaudio.version}" if isinstance(torchaudio, Build) else "torchaudio"
    return Finding(
        "torchcodec-missing",
        "warning" if said else "note",
        f"{who} reads and writes files by way of torchcodec, which is not installed; the rest of"
        " it works.",
        (Evidence("distributions", "no torchcodec", "sys.path"), *_told(said)),
        tuple(_install(torch, facts)) if said else (),
    )


def _install(torch: Build, facts: Facts) -> Iterator[Step]:
    fitting = (
        v
        for v in neighbours.versions("torchcodec")
        if neighbours.fits("torchcodec", v, torch.public)
    )
    version = next(fitting, None)
    if version is None:
        return
    landed = version.replace("*", "0")
    why = f"It is the torchcodec for torch {torch.public}; it needs FFmpeg's libraries besides."
    if requirements.accepts(f"=={version}", landed):
        yield steps.install_requirements(
            facts, {"torchcodec": (f"torchcodec=={version}", landed)}, why=why
        )
