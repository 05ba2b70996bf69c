"""What can go wrong with an all_reduce, made on purpose, and what has to be said of it.

A fault is a change to the worker (functions of its parts, replaced before it begins), to the
environment of a rank, to what stands before its interpreter, or to the two hosts that it runs on.
None depends on how fast the machine is: who has to be in a certain place is waited for.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.all_reduce import hosts
from tests.all_reduce.hosts import Hosts

if TYPE_CHECKING:
    import pytest

BAD = 1
"""The rank that a fault is made in."""
LAST_LINES = 'if __name__ == "__main__":\n'

PARTS = """
import signal
import threading
import time

saying, summing = (sys.modules["torchdoctor_ranks." + n] for n in ("saying", "summing"))
RANK = saying.RANK


def wait_for_others(stage, kind):
    for rank in set(range(saying.WORLD)) - {RANK}:
        wanted = '"stage": "%s", "ev": "%s"' % (stage, kind)
        while wanted not in open(os.path.join(saying.FOLDER, "rank%d.jsonl" % rank)).read():
            time.sleep(0.02)
"""
AT = """
_enter = saying.Stage.__enter__


def _faulty(stage):
    _enter(stage)
    if RANK == {rank} and stage.name == "{stage}":
        {action}
    return stage


saying.Stage.__enter__ = _faulty
"""
INSIDE = """
_collective = summing.collective


def collective(dist, given):
    if RANK == {rank}:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    elif RANK == 0:
        time.sleep(3600)  # the others cannot come to an end before that
    _collective(dist, given)


summing.collective = collective
"""
GIVEN = """
_contribution = summing.contribution


def contribution(torch, device):
    given = _contribution(torch, device)
    if RANK == {rank}:
        {action}
    return given


summing.contribution = contribution
"""
OTHER_COLLECTIVE = """
_collective = summing.collective


def collective(dist, given):
    if RANK == {rank}:
        dist.broadcast(given, 0)
    else:
        _collective(dist, given)


summing.collective = collective
"""
FULL_SHM = ("unshare", "-m", "sh", "-c")
FULL_SHM_SCRIPT = 'mount -t tmpfs -o size=1m none /dev/shm && exec "$0" "$@"'


@dataclass(frozen=True)
class Expected:
    """What has to be said: the stage, the cause, and the ranks, the links, or neither."""

    stage: str
    cause: str
    ranks: tuple[int, ...] = ()
    across: bool = False
    """Whether it is the link between the two hosts."""


@dataclass(frozen=True)
class Fault:
    """One fault. ``None`` is expected of a run that works."""

    name: str
    expected: Expected | None
    source: str = ""
    variables: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    before: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """What stands before the interpreter of a rank."""
    python: Mapping[int, str] = field(default_factory=dict)
    around: Callable[[], AbstractContextManager[int]] = lambda: nullcontext(0)
    """What is there during the run; gives the port of the meeting point."""
    befalls: Callable[[Hosts], None] | None = None
    """What befalls the two hosts; None for a fault on one machine."""
    late: float = 0.0
    far: bool = False
    """Whether the expected ranks are all of the second host."""
    marks: tuple[pytest.MarkDecorator, ...] = ()

    @property
    def on_hosts(self) -> bool:
        """Return whether it runs on two hosts."""
        return self.befalls is not None


def at(stage: str, action: str, rank: int = BAD) -> str:
    """Return the change by which *rank* does *action* as it enters *stage*."""
    return AT.format(stage=stage, action=action, rank=rank)


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        yield stranger.getsockname()[1]


def nothing(_: Hosts) -> None:
    """Leave the hosts as they are."""


def dropped(both: Hosts) -> None:
    both.firewall(0, f"iif != lo tcp dport {hosts.PORT} drop")


def rejected(both: Hosts) -> None:
    both.firewall(0, f"iif != lo tcp dport {hosts.PORT} reject with tcp reset")


def only_master(both: Hosts) -> None:
    for which in (0, 1):
        both.firewall(
            which,
            "ct state established,related accept",
            f"tcp dport {hosts.PORT} accept",
            "iif != lo tcp flags syn drop",
        )


def small_packets(both: Hosts) -> None:
    for which in (0, 1):
        both.firewall(which, "iif != lo meta length > 1400 drop")


def wrong_name(both: Hosts) -> None:
    both.name_is(1, "127.0.1.1")


UNPLUG = f'wait_for_others(stage.name, "{{kind}}"); os.system("ip link set {hosts.CABLE[1]} down")'
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
STOP = "os.kill(os.getpid(), signal.SIGSTOP)"
COLLECTIVE = "all-reduce"

ON_ONE_MACHINE = (
    Fault("healthy", None),
    Fault(
        "rank never starts",
        Expected("spawn", "not-started", (BAD,)),
        python={BAD: "/nowhere/python"},
    ),
    Fault(
        "rank exits before init",
        Expected("communicator", "died", (BAD,)),
        source=at("communicator", "os._exit(3)"),
    ),
    Fault(
        "store host dies",
        Expected("communicator", "died", (0,)),
        source=at("communicator", "os._exit(3)", rank=0),
    ),
    Fault(
        "SIGKILL before the collective",
        Expected(COLLECTIVE, "died", (BAD,)),
        source=at(COLLECTIVE, KILL),
    ),
    Fault(
        "SIGKILL inside the collective",
        Expected(COLLECTIVE, "died", (BAD,)),
        source=INSIDE.format(rank=BAD),
    ),
    Fault(
        "sleeps before the collective",
        Expected(COLLECTIVE, "late", (BAD,)),
        source=at(COLLECTIVE, "time.sleep(3600)"),
    ),
    Fault("SIGSTOP", Expected(COLLECTIVE, "stopped", (BAD,)), source=at(COLLECTIVE, STOP)),
    Fault(
        "other shape",
        Expected(COLLECTIVE, "mismatch", (BAD,)),
        source=GIVEN.format(rank=BAD, action="given = given[:999]"),
    ),
    Fault(
        "other shape, larger",
        Expected(COLLECTIVE, "mismatch", (BAD,)),
        source=GIVEN.format(rank=BAD, action="given = given.repeat(9)"),
    ),
    Fault(
        "other dtype",
        Expected(COLLECTIVE, "mismatch", (BAD,)),
        source=GIVEN.format(rank=BAD, action="given = given.double()"),
    ),
    Fault(
        "other collective",
        Expected(COLLECTIVE, "mismatch", (BAD,)),
        source=OTHER_COLLECTIVE.format(rank=BAD),
    ),
    Fault(
        "wrong data",
        Expected("verify", "wrong-data", (BAD,)),
        source=GIVEN.format(rank=BAD, action="given *= 3"),
    ),
    Fault(
        "bogus interface",
        Expected("facts", "interface", (BAD,)),
        variables={BAD: {"GLOO_SOCKET_IFNAME": "bogus0"}},
    ),
    Fault(
        "NCCL syntax in GLOO_SOCKET_IFNAME",
        Expected("facts", "interface", (BAD,)),
        variables={BAD: {"GLOO_SOCKET_IFNAME": "^lo,docker"}},
    ),
    Fault("port taken", Expected("port-bind", "port-refused", (0,)), around=taken_port),
    Fault(
        "shared memory full",
        Expected("device", "shm-full", (BAD,)),
        before={BAD: (*FULL_SHM, FULL_SHM_SCRIPT)},
        marks=(hosts.needs_hosts,),
    ),
)
ON_TWO_HOSTS = (
    Fault("two hosts, healthy", None, befalls=nothing, marks=(hosts.needs_hosts,)),
    Fault(
        "name resolves to loopback",
        Expected("pairwise", "loopback"),
        befalls=wrong_name,
        far=True,
        marks=(hosts.needs_hosts,),
    ),
    Fault(
        "link down at start",
        Expected("tcp", "link-unreachable", across=True),
        befalls=Hosts.unplug,
        marks=(hosts.needs_hosts,),
    ),
    Fault(
        "master port dropped",
        Expected("tcp", "link-timeout", across=True),
        befalls=dropped,
        marks=(hosts.needs_nft,),
    ),
    Fault(
        "master port rejected",
        Expected("tcp", "link-refused", across=True),
        befalls=rejected,
        marks=(hosts.needs_nft,),
    ),
    Fault(
        "only the master port open",
        Expected("pairwise", "link-timeout", across=True),
        befalls=only_master,
        marks=(hosts.needs_nft,),
    ),
    Fault(
        "link lost in init",
        Expected("communicator", "link-lost", across=True),
        source=at("communicator", UNPLUG.format(kind="call"), rank=-1),
        befalls=nothing,
        marks=(hosts.needs_hosts,),
    ),
    Fault(
        "link lost in the collective",
        Expected(COLLECTIVE, "link-lost", across=True),
        source=at(COLLECTIVE, UNPLUG.format(kind="call"), rank=-1),
        befalls=nothing,
        marks=(hosts.needs_hosts,),
    ),
    Fault(
        "5 s delay",
        Expected("tcp", "link-slow", across=True),
        befalls=nothing,
        late=2.5,  # there and back
        marks=(hosts.needs_tun,),
    ),
    Fault(
        "wrong MTU",
        Expected("pairwise", "link-stalled", across=True),
        befalls=small_packets,
        marks=(hosts.needs_nft,),
    ),
)
EVERY = (*ON_ONE_MACHINE, *ON_TWO_HOSTS)
