"""Ask NCCL itself: its RAS threads know the state of all ranks of a running job.

The protocol is text over TCP, by NCCL's ``src/ras/client.cc`` (2.24 and newer): "CLIENT PROTOCOL
2" is answered with "SERVER PROTOCOL n", "TIMEOUT s" and "SET FORMAT json" with "OK", "VERBOSE
STATUS" with the report, after which the connection is closed. JSON is there since 2.28.7; an older
one answers "ERROR" to that, and its report is made for people.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from torchdoctor.hang.records import Communicator, Ras, RasRank

ADDRESS = "localhost:28028"
PROTOCOL = 2
LARGEST = 64 << 20
MOST = 100_000
"""Communicators, or ranks of one, that are read."""
PATIENCE = 2
"""Seconds for which NCCL waits for the answers of the other processes."""

COMMUNICATOR = re.compile(r"^#\d{1,6}-\d{1,6} \(([0-9a-f]{1,32})\) (\w+)")
MISSING = re.compile(r"^  Missing communicator data from \d+ rank")
THE_MISSING = re.compile(r"^  The missing ranks?:? ([\d, -]+)")
COUNTS = re.compile(r"^  Communicator ranks have different (?:(\w+) )?operation counts")
OTHER = re.compile(r"^  (?:Communicator ranks have|Initialization error|Asynchronous error)")
MANY = re.compile(
    r"^  \d+ ranks? (?:have|has) (?:launched up to operation (\d{1,18})|not launched any)"
)
LAUNCHED = r"(?: has launched up to operation (\d{1,18})|( has not launched any operations))?"
RANK = re.compile(
    r"^  Rank (\d{1,7})"
    + LAUNCHED
    + r" -- (?:GPU .*managed by process (\d{1,9}) on node (\S{1,100}))?"
)


class _Silent(Exception):  # noqa: N818 - it is an answer, not an error
    """Nobody answers, or somebody who is not NCCL."""


def ask(address: str, *, timeout: float, again_after: float = 0.0) -> Ras | None:
    """Return what NCCL's RAS at *address* (host:port) says; None where none answers in time.

    Asked twice, *again_after* seconds apart, so that what grows can be told from what stands.
    """
    until = time.monotonic() + timeout
    try:
        first = parse(_status(address, until), address)
        if again_after and time.monotonic() + again_after < until:
            time.sleep(again_after)
            with contextlib.suppress(_Silent, OSError):
                second = parse(_status(address, until), address)
                return Ras(address, second.nccl, second.communicators, first.communicators)
    except (_Silent, OSError, ValueError):
        return None
    return first


def parse(told: str, address: str = "") -> Ras:
    """Return what a report, JSON or text, says."""
    if told.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            whole = json.loads(told)
            if isinstance(whole, dict):
                return _of_json(whole, address)
    return Ras(address, communicators=tuple(_of_text(told)))


def _status(address: str, until: float) -> str:
    """Return the report, in JSON where NCCL knows it."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise _Silent
    with socket.create_connection((host.strip("[]"), int(port)), _left(until)) as line:
        reader = _Reader(line, until)
        reader.send(f"CLIENT PROTOCOL {PROTOCOL}")
        if not reader.line().upper().startswith("SERVER PROTOCOL "):
            raise _Silent
        reader.send(f"TIMEOUT {PATIENCE}")
        reader.line()
        reader.send("SET FORMAT json")
        reader.line()
        reader.send("VERBOSE STATUS")
        return reader.rest()


class _Reader:
    """Lines from a socket, with one deadline for all of them."""

    def __init__(self, line: socket.socket, until: float) -> None:
        self._socket = line
        self._until = until
        self._buffer = b""

    def send(self, command: str) -> None:
        self._socket.settimeout(_left(self._until))
        self._socket.sendall(command.encode("ascii") + b"\n")

    def line(self) -> str:
        while b"\n" not in self._buffer:
            if not (block := self._block()) or len(self._buffer) > LARGEST:
                raise _Silent
            self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def rest(self) -> str:
        blocks, size = [self._buffer], len(self._buffer)
        while size < LARGEST and (block := self._block()):
            blocks.append(block)
            size += len(block)
        return b"".join(blocks).decode("utf-8", "replace")

    def _block(self) -> bytes:
        self._socket.settimeout(_left(self._until))
        return self._socket.recv(1 << 16)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise _Silent
    return left


# ---- JSON ---------------------------------------------------------------------------------------


def _of_json(whole: dict[str, object], address: str) -> Ras:
    told = whole.get("communicators")
    some = told[:MOST] if isinstance(told, list) else []
    found = tuple(_communicator(one) for one in some if isinstance(one, dict))
    return Ras(address, _text(whole.get("nccl_version")), found)


def _communicator(told: dict[str, object]) -> Communicator:
    ranks = [*_ranks(told.get("ranks")), *_ranks(told.get("missing_ranks"), missing=True)]
    ranks.sort(key=lambda rank: rank.rank)
    most: dict[str, int] = {}
    for rank in ranks:
        for name, many in rank.counts.items():
            most[name] = max(many, most.get(name, 0))
    return Communicator(_text(told.get("hash")), _number(told.get("size")) or 0, tuple(ranks), most)


def _ranks(told: object, *, missing: bool = False) -> Iterator[RasRank]:
    for one in told[:MOST] if isinstance(told, list) else []:
        number = _number(one.get("rank")) if isinstance(one, dict) else None
        if number is None:
            continue
        counts = one.get("collective_counts")
        state = one.get("status")
        state = state if isinstance(state, dict) else {}
        yield RasRank(
            number,
            _text(one.get("host")),
            _number(one.get("pid")),
            {
                _text(name): many
                for name, count in (counts.items() if isinstance(counts, dict) else ())
                if (many := _number(count)) is not None
            },
            missing,
            state.get("unresponsive") is True,
            state.get("considered_dead") is True,
        )


# ---- text ---------------------------------------------------------------------------------------


@dataclass
class _Told:
    """What a report for people says of one communicator."""

    ranks: list[RasRank] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=dict)
    section: str = ""
    """missing, or the collective whose counts differ; empty for what is of no use here."""
    count: int | None = None

    def take(self, line: str) -> None:
        """Take one line of its section."""
        if MISSING.match(line):
            self.section = "missing"
        elif match := COUNTS.match(line):
            self.section, self.count = match[1] or "collective", None
        elif OTHER.match(line):
            self.section = ""
        elif (match := THE_MISSING.match(line)) and self.section == "missing":
            numbers = [int(word) for word in re.findall(r"\d{1,7}", match[1])][:MOST]
            self.ranks += [RasRank(n, missing=True, unresponsive=True) for n in numbers]
        elif (match := MANY.match(line)) and self.section:
            self.count = int(match[1] or 0)
            self.most[self.section] = max(self.count, self.most.get(self.section, 0))
        elif (match := RANK.match(line)) and self.section:
            self._rank(match)

    def _rank(self, match: re.Match[str]) -> None:
        rank, host, pid = int(match[1]), match[5] or "", int(match[4]) if match[4] else None
        if self.section == "missing":
            self.ranks.append(RasRank(rank, host, pid, missing=True, unresponsive=True))
            return
        alone = int(match[2]) if match[2] else 0 if match[3] else self.count
        if alone is not None:
            self.most[self.section] = max(alone, self.most.get(self.section, 0))
            self.ranks.append(RasRank(rank, host, pid, {self.section: alone}))


def _of_text(told: str) -> Iterator[Communicator]:
    """Yield the communicators that a report for people has something to say of.

    It names only the ranks that differ from most.
    """
    known: dict[str, _Told] = {}
    now: _Told | None = None
    for line in told.splitlines():
        if match := COMMUNICATOR.match(line):
            now = known.setdefault(match[1], _Told())
            now.section = ""
        elif not line.startswith("  "):
            now = None
        elif now is not None:
            now.take(line)
    for name, one in known.items():
        yield Communicator(name, 0, tuple(one.ranks), one.most)


def _number(told: object) -> int | None:
    right = isinstance(told, int) and not isinstance(told, bool) and 0 <= told < 1 << 62
    return told if right else None  # type: ignore[return-value]


def _text(told: object) -> str:
    return told[:100] if isinstance(told, str) else ""
