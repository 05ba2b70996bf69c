"""Bring the snapshots of all machines of a job to rank 0, as the launcher has numbered them.

Nothing is imported that may be broken: rank 0 listens next to the port that the launcher names,
and the others find it there; or all write to a folder that they share. One rank of each machine
looks, the others only say that they are there, so that one that does not come is known by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from torchdoctor.distributed import gather
from torchdoctor.distributed.launcher import Seat
from torchdoctor.model import DoctorError
from torchdoctor.snapshot import LARGEST, Snapshot, dump, parse

BESIDE = 16
"""Ports after the launcher's that are tried: the launcher's own is its store's."""
PAUSE = 0.2
GRACE = 3.0
"""Seconds that rank 0 waits longer than it is told to."""
OLD = 300.0
"""Seconds: an older file in a shared folder is of an earlier job."""
KEY = "TORCHDOCTOR_GATHER_KEY"
"""A variable whose value, where it is set, all have to know."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the ranks of one job meet."""

    seat: Seat
    word: str
    folder: Path | None = None
    """One that all share; None to meet over the network."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Return where rank 0 may listen: beside a store of the launcher, else at its place."""
        first = self.seat.port + (self.seat.store == "launcher")
        return tuple(range(first, min(first + BESIDE, 1 << 16)))


def place(seat: Seat, environ: Mapping[str, str], folder: str | None) -> Place:
    """Return where the job of *seat* meets.

    Its word tells it from other jobs on the same machines; it is a secret only where all ranks
    were given one in the variable of :data:`KEY`.
    """
    known = [seat.launcher, seat.host, str(seat.port), str(seat.world), seat.attempt]
    names = ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", KEY)
    known += [environ.get(name, "") for name in names]
    word = hashlib.sha256("\0".join(known).encode("utf-8", "backslashreplace")).hexdigest()
    return Place(seat, word, Path(folder) if folder else None)


def line(snapshot: Snapshot, seat: Seat, host: str = "") -> str:
    """Return *snapshot* as one line, with the rank that took it, and the name of its *host*."""
    given: dict[str, object] = {"rank": seat.rank, "world": seat.world, "launcher": seat.launcher}
    options = {**snapshot.options, "seat": {**given, **({"host": host} if host else {})}}
    return json.dumps(json.loads(dump(replace(snapshot, options=options)))) + "\n"


def _own_file() -> IO[str]:
    """Return a file that is nowhere to be seen, and gone when nobody holds it."""
    return tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n")


@dataclass(slots=True)
class Gathered:
    """What has come to rank 0: lines in a file of its own, and who has come."""

    file: IO[str] = field(default_factory=_own_file)
    snapshots: int = 0
    come: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)
    """Ranks that brought something that is no snapshot, and what is wrong with it."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, rank: int, record: Mapping[str, object]) -> None:
        """Keep what *rank* brought: its snapshot, or that it is there."""
        text = record.get("snapshot")
        with self._lock:
            if rank in self.come:
                return
            if isinstance(text, str):
                try:
                    parse(text.encode("utf-8", "backslashreplace"), f"rank {rank}")
                except DoctorError as error:
                    self.refused[rank] = error.message
                else:
                    self.file.write(" ".join(text.splitlines()) + "\n")
                    self.snapshots += 1
            self.come.add(rank)

    def lines(self) -> Iterator[str]:
        """Yield what was kept, one snapshot a line."""
        with self._lock:
            self.file.seek(0)
            yield from self.file

    def close(self) -> None:
        """Forget the lines."""
        self.file.close()

    def missing(self, world: int) -> list[int]:
        """Return the ranks that have not come."""
        return [rank for rank in range(world) if rank not in self.come]


def at_rank_0(
    place: Place, look: Callable[[], str], seconds: float, grace: float = GRACE
) -> Gathered:
    """Look, and take what all others bring within *seconds*; never raises for one of them.

    *grace* is added, since not all have begun at the same time.

    Raises:
        DoctorError: there is nowhere to listen, or the folder cannot be used.

    """
    until = time.monotonic() + seconds + grace
    gathered = Gathered()
    if place.folder is not None:
        began = _touched(place.folder)
        gathered.take(0, {"snapshot": look()})
        while gathered.missing(place.seat.world) and time.monotonic() < until:
            _from_folder(place, gathered, began)
            time.sleep(PAUSE)
        return gathered
    if place.seat.world == 1:
        gathered.take(0, {"snapshot": look()})
        return gathered
    try:
        collector = gather.Collector(
            place.seat.world,
            ports=place.ports,
            word=place.word,
            largest=2 * LARGEST,
            keep=gathered.take,
        )
    except OSError as error:
        ports = f"{place.ports[0]} to {place.ports[-1]}"
        raise DoctorError(
            f"rank 0 cannot listen on a port from {ports} ({error.strerror or error}); name a "
            "folder that all machines share: --gather=FOLDER"
        ) from error
    gathered.take(0, {"snapshot": look()})
    collector.wait(max(0.0, until - time.monotonic()))
    collector.dismiss(0)
    return gathered


def bring(place: Place, text: str, seconds: float) -> str:
    """Bring *text*, a snapshot or nothing, to rank 0 within *seconds*; return why it failed."""
    seat = place.seat
    record: dict[str, object] = {"rank": seat.rank, **({"snapshot": text} if text else {})}
    if place.folder is not None:
        return _into_folder(place, record)
    until = time.monotonic() + seconds
    while True:
        for port in place.ports:
            left = max(1.0, until - time.monotonic())
            if gather.send(seat.host, port, place.word, record, min(left, gather.PATIENCE)) == 0:
                return ""
            if time.monotonic() > until:
                break
        if time.monotonic() + PAUSE > until:
            ports = f"{place.ports[0]} to {place.ports[-1]}"
            return f"rank 0 does not answer at {seat.host}, ports {ports}"
        time.sleep(PAUSE)


# ---- a folder that all share -------------------------------------------------------------------


def _name(place: Place, rank: int) -> str:
    return f"torchdoctor-{place.word[:16]}-{rank}.json"


def _into_folder(place: Place, record: Mapping[str, object]) -> str:
    assert place.folder is not None
    name = place.folder / _name(place, place.seat.rank)
    part = name.with_suffix(".part")
    try:
        part.write_text(json.dumps(record), "utf-8")
        part.replace(name)
    except OSError as error:
        return f"{place.folder} cannot be written: {error.strerror or error}"
    return ""


def _touched(folder: Path) -> float:
    """Return what time it is by the clock of the folder, which is not always ours."""
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix="torchdoctor-", suffix=".now")
        os.close(handle)
        now = Path(name).stat().st_mtime
        Path(name).unlink()
    except OSError as error:
        raise DoctorError(
            f"{folder} cannot be used: {error.strerror or error}; name a folder that all machines "
            "share.",
            file=str(folder),
            kind="usage",
        ) from error
    return now


def _from_folder(place: Place, gathered: Gathered, began: float) -> None:
    assert place.folder is not None
    for rank in gathered.missing(place.seat.world):
        name = place.folder / _name(place, rank)
        try:
            state = name.lstat()
            if state.st_size > 2 * LARGEST or state.st_mtime < began - OLD:
                continue
            record = json.loads(name.read_bytes())
            name.unlink()
        except (OSError, ValueError, RecursionError):
            continue  # not there yet
        with contextlib.suppress(AttributeError):  # no object
            gathered.take(rank, record)
