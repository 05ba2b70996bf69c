"""NCCL's RAS is asked over its socket, with a deadline, and believed only where it is NCCL."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor.hang import ras
from torchdoctor.hang.records import RasRank

JSON = """\
{
  "nccl_version": "2.29.1",
  "cuda_runtime_version": 13000,
  "cuda_driver_version": 13000,
  "timestamp": "2025-12-19 13:06:53",
  "communicators_count": 1,
  "communicators": [
    {
      "hash": "0xae94423cfbb2ef4a",
      "secondary_hash": "0xb7e7187447156001:0xb8242ed28a71381e",
      "size": 2,
      "ranks_count": 1,
      "missing_ranks_count": 1,
      "ranks": [
        {
          "rank": 0,
          "host": "172.16.64.245",
          "pid": 1524344,
          "cuda_dev": 0,
          "nvml_dev": 0,
          "status": {
            "init_state": 0,
            "async_error": 0,
            "finalize_called": false,
            "destroy_flag": false,
            "abort_flag": false
          },
          "collective_counts": {
            "Broadcast": 0,
            "Reduce": 0,
            "AllGather": 0,
            "ReduceScatter": 0,
            "AllReduce": 0
          }
        }
      ],
      "missing_ranks": [
        {
          "rank": 1,
          "host": "172.16.64.245",
          "pid": 1524345,
          "cuda_dev": 1,
          "nvml_dev": 1,
          "status": {
            "unresponsive": true,
            "considered_dead": false
          }
        }
      ]
    }
  ],
  "ras": {
    "collection_time_sec": 0.000,
    "timeouts_count": 0
  }
}
"""
TEXT = """\
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210

#0-1 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  26 ranks have status UNKNOWN
  4 ranks have status RUNNING
  Rank 8 -- GPU 0 managed by process 1598388 on node 172.16.64.212

#0-2 (9e17999afaa87dbc) MISMATCH
  Communicator ranks have different AllReduce operation counts
  2 ranks have launched up to operation 12
  Rank 3 has not launched any operations -- GPU 3 managed by process 41 on node host
"""
"""Both from https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html; the
last section of the text by NCCL's src/ras/client_support.cc."""


@dataclass
class Server:
    """A server that speaks as NCCL's RAS does, in one of its versions."""

    report: str = JSON
    knows_json: bool = True
    greets: bytes = b"SERVER PROTOCOL 2\n"
    ends: bool = True
    heard: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def answer(self, line: socket.socket) -> None:
        with line, contextlib.suppress(OSError):
            for raw in line.makefile("rb"):
                word = raw.decode().strip()
                self.heard.append(word)
                if word.startswith("CLIENT PROTOCOL"):
                    line.sendall(self.greets)
                elif word.startswith("TIMEOUT"):
                    line.sendall(b"OK\n")
                elif word.startswith("SET FORMAT"):
                    unknown = f"ERROR: Unknown command {word}\n".encode()
                    line.sendall(b"OK\n" if self.knows_json else unknown)
                elif word == "VERBOSE STATUS":
                    line.sendall(self.report.encode())
                    if self.ends:
                        return


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    line, _ = listener.accept()
                    threading.Thread(target=server.answer, args=(line,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server


def test_json_is_asked_for_and_read() -> None:
    with serving(Server()) as server:
        found = ras.ask(server.address, timeout=5)
    assert server.heard == ["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]
    assert found is not None
    assert found.nccl == "2.29.1"
    (one,) = found.communicators
    assert (one.name, one.size) == ("0xae94423cfbb2ef4a", 2)
    assert one.ranks[0].counts["AllReduce"] == 0
    assert one.ranks[1] == RasRank(
        1, "172.16.64.245", 1524345, missing=True, unresponsive=True, dead=False
    )


def test_an_older_nccl_answers_for_people_and_is_read_too() -> None:
    with serving(Server(TEXT, knows_json=False)) as server:
        found = ras.ask(server.address, timeout=5)
    assert found is not None
    missing, counts, _, none = found.communicators
    assert [(r.rank, r.missing, r.unresponsive) for r in missing.ranks] == [(21, True, True)]
    assert counts.most == {"collective": 6650}
    assert [(r.rank, r.pid, dict(r.counts)) for r in counts.ranks] == [
        (0, 483072, {"collective": 6649}),
        (2, 483074, {"collective": 6649}),
    ]
    assert [(r.rank, dict(r.counts)) for r in none.ranks] == [(3, {"AllReduce": 0})]
    assert none.most == {"AllReduce": 12}


def test_a_difference_of_status_alone_is_nobodys_absence() -> None:
    found = ras.parse(TEXT)
    (passing,) = (one for one in found.communicators if one.name == "9e17999afaa87dbb")
    assert passing.ranks == ()


def test_it_is_asked_twice_where_that_is_wanted() -> None:
    with serving(Server()) as server:
        found = ras.ask(server.address, timeout=5, again_after=0.1)
    assert found is not None
    assert found.earlier == found.communicators
    assert server.heard.count("VERBOSE STATUS") == 2


@pytest.mark.parametrize(
    "server",
    [Server(greets=b""), Server(greets=b"HTTP/1.1 400 Bad Request\r\n\r\n"), Server(ends=False)],
    ids=["silent", "another", "never ends"],
)
def test_who_is_not_nccl_or_does_not_end_is_left_in_time(server: Server) -> None:
    began = time.monotonic()
    with serving(server):
        assert ras.ask(server.address, timeout=0.5) is None
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("address", ["localhost:1", "localhost", "localhost:99999", "", ":x"])
def test_where_nobody_listens_there_is_no_answer(address: str) -> None:
    assert ras.ask(address, timeout=1) is None


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_no_report_makes_an_error(data: st.DataObject) -> None:
    raw = list(data.draw(st.sampled_from([JSON, TEXT])))
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.characters())
    ras.parse("".join(raw))


@pytest.mark.parametrize("told", ['{"communicators": 3}', '{"communicators": [3, {}]}', "{", "[]"])
def test_a_report_of_another_shape_is_empty(told: str) -> None:
    assert all(not one.ranks for one in ras.parse(told).communicators)
