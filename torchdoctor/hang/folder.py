"""Read what ranks left on a disk: dumps of the Flight Recorder, heartbeats, stacks."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchdoctor.hang import flight_recorder, signs, stacks, torchfrtrace
from torchdoctor.hang.records import Dump, Job, Rank, Told
from torchdoctor.model import DoctorError

MOST_FILES = 200_000
MOST_REMARKS = 5
LARGEST_STACK = 8 << 20
SIGN = re.compile(r"torchdoctor-rank(\d{1,7})\.json")


@dataclass(slots=True)
class Left:
    """What was found on the disk."""

    dumps: dict[int, list[Dump]] = field(default_factory=dict)
    signs: dict[int, signs.Sign] = field(default_factory=dict)
    stacks: dict[int, str] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read(paths: Sequence[str]) -> Left:
    """Return what the files and folders *paths* hold.

    Raises:
        DoctorError: one of them cannot be read, or holds nothing that ranks left.

    """
    left = Left()
    for name in paths:
        path = Path(name)
        if not path.exists():
            raise DoctorError(f"{name} does not exist.", file=name)
        before = _amount(left)
        if path.is_dir():
            for file in _files(path):
                _take(left, file, named=False)
        else:
            _take(left, path, named=True)
        if _amount(left) == before:
            why = f": {left.remarks[-1]}" if left.remarks else ""
            raise DoctorError(
                f"{name} holds no dump of the Flight Recorder, and nothing of an armed rank{why}.",
                file=name,
            )
    return left


def job(left: Left) -> Job:
    """Return the job that *left* is of.

    Of an earlier job in the same folder, with another number of ranks, nothing counts.
    """
    newest = max(left.signs.values(), key=lambda sign: sign.beat.at, default=None)
    if newest is not None:
        of_now = {n: s for n, s in left.signs.items() if s.beat.world == newest.beat.world}
        left = replace(left, signs=of_now)
    ranks = tuple(rank(left, number) for number in sorted({*left.dumps, *left.signs}))
    newer = sorted({d.version for each in left.dumps.values() for d in each if _newer(d)})
    remarks = [f"version {v} of a dump is newer than is known here (2.10)" for v in newer]
    return Job(
        ranks,
        _world(left),
        told=tuple(left.told),
        remarks=(*remarks, *left.remarks[:MOST_REMARKS]),
    )


def rank(left: Left, number: int) -> Rank:
    """Return what *left* has of one rank."""
    sign = left.signs.get(number)
    text = left.stacks.get(number, "")
    stack = stacks.of_faulthandler(text, sign.main_thread if sign else None)
    return Rank(
        number,
        sign.beat.pid if sign else None,
        sign.beat.host if sign else "",
        alive=False if sign and sign.beat.ended else None,
        stack=stack,
        stack_from="faulthandler" if stack else "",
        beat=sign.beat if sign else None,
        dump=merged(left.dumps.get(number, [])),
        armed=sign is not None,
    )


def merged(dumps: Sequence[Dump]) -> Dump | None:
    """Return the dumps of one rank as one: one recorder for NCCL, one for the rest.

    Of two by the same recorder the newer counts.
    """
    newest: dict[str, Dump] = {}
    for dump in sorted(dumps, key=lambda one: one.at or 0.0):
        newest[dump.entries[-1].backend if dump.entries else ""] = dump
    if not newest:
        return None
    each = [dump for backend, dump in newest.items() if backend] or list(newest.values())
    whole = each[-1]
    for other in each[:-1]:
        whole = replace(
            whole,
            entries=(*other.entries, *whole.entries),
            groups={**other.groups, **whole.groups},
            status={**other.status, **whole.status},
        )
    return whole


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, and of the folders in it."""
    many = 0
    for place, folders, names in os.walk(folder):
        if Path(place) != folder:
            folders.clear()
        for name in sorted(names):
            many += 1
            if many > MOST_FILES:
                return
            if not name.startswith("."):
                yield Path(place, name)


def _take(left: Left, path: Path, *, named: bool) -> None:
    """Take what the file *path* holds; *named*: it was asked for by its name."""
    try:
        found = path.stat()
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode) or path.name == signs.ASK:
        return
    if match := signs.OPEN.fullmatch(path.name):
        left.stacks[int(match[1])] = _text(path)
    elif SIGN.fullmatch(path.name):
        if sign := signs.of_file(path):
            left.signs[sign.beat.rank] = sign
    elif named or _may_be_one(path):
        _take_dump(left, path, found.st_mtime)


def _take_dump(left: Left, path: Path, at: float) -> None:
    try:
        data = flight_recorder.read(path)
        if torchfrtrace.is_database(data):
            left.told += torchfrtrace.told(data)
            left.remarks += [] if left.told else ["torchfrtrace found nothing at fault"]
            return
        if not flight_recorder.is_dump(data):
            return
        told = data.get("rank") if isinstance(data, dict) else None
        number = told if isinstance(told, int) else flight_recorder.rank_of(path.name)
        if number is None or not 0 <= number < flight_recorder.MOST_RANKS:
            left.remarks.append(f"the name of {path.name} does not say which rank it is of")
            return
        dump = flight_recorder.dump(data, number, source=path.name, at=at)
    except flight_recorder.NotADump as error:
        left.remarks.append(f"{path.name} cannot be read: {error}")
        return
    left.dumps.setdefault(number, []).append(dump)


def _may_be_one(path: Path) -> bool:
    """Tell by its first bytes and its name whether a file may be a dump."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return False
    if head[:1] == b"\x80":
        return flight_recorder.rank_of(path.name) is not None
    return head.lstrip()[:1] in (b"{", b"[")


def _text(path: Path) -> str:
    """Return the end of a file of stacks."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LARGEST_STACK))
            return file.read(LARGEST_STACK).decode("utf-8", "replace")
    except OSError:
        return ""


def _world(left: Left) -> int | None:
    told = [sign.beat.world for sign in left.signs.values() if sign.beat.world]
    of_groups = [
        group.ranks[-1] + 1
        for each in left.dumps.values()
        for dump in each
        for group in dump.groups.values()
        if group.ranks
    ]
    return max([*told, *of_groups], default=None)


def _newer(dump: Dump) -> bool:
    return flight_recorder.is_newer(dump.version)


def _amount(left: Left) -> int:
    read = sum(map(len, left.dumps.values()))
    known = sum("torchfrtrace" in remark for remark in left.remarks)
    return read + len(left.signs) + len(left.told) + known
