"""Ask the user's own loader what each rank would get, one child process a rank."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from torchdoctor import child, resource
from torchdoctor.background import Background
from torchdoctor.child import Run
from torchdoctor.model import DoctorError
from torchdoctor.shards.dealing import Epoch, dispatched

MOST = 1_000_000
"""Samples of an epoch that are taken of one rank; more say nothing new."""
AT_ONCE = 2
"""How many ranks are asked side by side: each of them imports torch."""


@dataclass(frozen=True, slots=True)
class Play:
    """How the loader is iterated."""

    world: int
    epochs: int
    set_epoch: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """What a loader said of itself, and what it would yield."""

    epochs: list[Epoch]
    length: int
    batch_size: int
    labels: Sequence[str] = ()
    twice: bool = False
    """Whether a DistributedSampler stands in a loader that accelerate shards."""
    drops: bool = False
    stream: bool = False
    loader: Mapping[str, object] = field(default_factory=dict)


def ask(file: str, name: str, play: Play, *, python: str, timeout: float) -> Asked:
    """Return what *name* of *file* yields on every rank.

    Raises:
        DoctorError: there is no such file, it fails on a rank, or does not end in time.

    """
    if not Path(file).is_file():
        raise DoctorError(f"{file} does not exist.", file=file)
    source = resource.read_text("probes", "loader.py")
    answers: list[Mapping[str, object]] = []
    for start in range(0, play.world, AT_ONCE):
        ranks = range(start, min(start + AT_ONCE, play.world))
        waiting = [
            Background(partial(_run, source, _options(file, name, play, rank), python, timeout))
            for rank in ranks
        ]
        answers += [
            _answer(each.result(), file, rank) for rank, each in zip(ranks, waiting, strict=True)
        ]
    return _put_together(answers, play)


def live(file: str, name: str, play: Play, *, python: str, timeout: float) -> Asked | None:
    """Iterate *name* of *file* as one rank of a real job; return what all got, None elsewhere.

    Only rank 0 hears what the others got. The environment is that of a launcher.

    Raises:
        DoctorError: there is no such file, it fails on this rank, or does not end in time.

    """
    if not Path(file).is_file():
        raise DoctorError(f"{file} does not exist.", file=file)
    rank = int(os.environ["RANK"])
    options = {**_options(file, name, play, rank), "live": True}
    answer = _answer(
        _run(resource.read_text("probes", "loader.py"), options, python, timeout), file, rank
    )
    if rank:
        return None
    ranks: list[dict[str, object]] = [{"loader": answer["loader"]} for _ in range(play.world)]
    ranks[0]["labels"] = answer.get("labels")
    for number in range(play.epochs):
        every = answer[f"epoch{number}"]
        assert isinstance(every, list)
        for one, batches in zip(ranks, every, strict=True):
            one[f"epoch{number}"] = batches
    return _put_together(ranks, play)


def _options(file: str, name: str, play: Play, rank: int) -> dict[str, object]:
    return {
        "file": os.path.abspath(file),  # noqa: PTH100 - links are kept
        "name": name,
        "rank": rank,
        "world": play.world,
        "epochs": play.epochs,
        "set_epoch": play.set_epoch,
        "most": MOST,
    }


def _run(source: str, options: dict[str, object], python: str, timeout: float) -> Run:
    # The script is the user's: it runs where the user is, and may look for its data there.
    folder = str(Path.cwd()) if Path.cwd().is_dir() else tempfile.gettempdir()
    return child.run_probe(
        source, options, python=[python], timeout=timeout, folder=folder, environ=os.environ
    )


def _answer(run: Run, file: str, rank: int) -> Mapping[str, object]:
    if run.outcome == "answered" and "error" not in run.data:
        return run.data
    stage = run.data.get("stage", "start")
    reason = run.data.get("error") or run.reason or _last_line(run.stderr.text) or "it ended"
    if run.signal:
        reason = f"{run.signal}, {reason}"
    raise DoctorError(f"{file}, as rank {rank}, in {stage}: {reason}", file=file)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""


def _put_together(answers: Sequence[Mapping[str, object]], play: Play) -> Asked:
    first = answers[0]
    about = first["loader"]
    assert isinstance(about, dict)
    epochs = [[_batches(a[f"epoch{number}"]) for a in answers] for number in range(play.epochs)]
    found = _as_numbers(epochs)
    if isinstance(how := about.get("dispatch"), dict):
        found = [
            dispatched(
                epoch[0],
                play.world,
                split_batches=bool(how["split_batches"]),
                drop_last=bool(how["drop_last"]),
            )
            for epoch in found
        ]
    most = max((i + 1 for e in found for r in e for b in r for i in b), default=0)
    length, size = about.get("length"), about.get("batch_size")
    labels = first.get("labels")
    samplers = about.get("samplers", [])
    return Asked(
        found,
        length if isinstance(length, int) and not about.get("stream") else most,
        size if isinstance(size, int) else 1,
        labels if isinstance(labels, list) else (),
        twice=bool(about.get("prepared")) and "DistributedSampler" in samplers,
        drops=bool(about.get("drop_last")),
        stream=bool(about.get("stream")),
        loader=about,
    )


def _batches(value: object) -> list[list[int | str]]:
    assert isinstance(value, list)
    return value


def _as_numbers(epochs: list[list[list[list[int | str]]]]) -> list[Epoch]:
    """Return samples as numbers: hashes are numbered as they first come."""
    hashed = any(isinstance(i, str) for e in epochs for r in e for b in r for i in b)
    known: dict[int | str, int] = {}

    def number(sample: int | str) -> int:
        if isinstance(sample, int) and not hashed:
            return sample
        return known.setdefault(sample, len(known))

    return [[[list(map(number, batch)) for batch in rank] for rank in e] for e in epochs]
