"""Two hosts on one machine: network namespaces joined by a cable, and what can befall it.

Needs root, and for firewalls nft. A cable that is late is a program of ours between two tun
devices, since not every kernel has netem.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ADDRESSES = ("10.77.0.1", "10.77.0.2")
PORT = 29555
CABLE = ("cable0", "cable1")
"""The name of the interface on either side."""


def here() -> bool:
    """Tell whether namespaces can be made here."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("ip") is not None


needs_hosts = pytest.mark.skipif(not here(), reason="needs root and iproute2")
needs_nft = pytest.mark.skipif(not here() or not shutil.which("nft"), reason="needs root and nft")
needs_tun = pytest.mark.skipif(
    not here() or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"
)


def call(*command: str) -> None:
    """Run *command*, which has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, f"{command}: {done.stderr}"


@dataclass(frozen=True)
class Hosts:
    """The two, by the names of their namespaces."""

    names: tuple[str, str]

    def inside(self, which: int) -> tuple[str, ...]:
        """Return what has to stand before a command, so that it runs on a host."""
        return ("ip", "netns", "exec", self.names[which])

    def on(self, which: int, *command: str) -> None:
        """Run *command* on a host."""
        call(*self.inside(which), *command)

    def name_is(self, which: int, address: str) -> None:
        """Have the name of the machine stand for *address* on a host."""
        folder = Path("/etc/netns", self.names[which])
        folder.mkdir(parents=True, exist_ok=True)
        lines = f"127.0.0.1 localhost\n{address} {socket.gethostname()}\n"
        (folder / "hosts").write_text(lines, "utf-8")

    def unplug(self) -> None:
        """Take the cable out on the second host."""
        self.on(1, "ip", "link", "set", CABLE[1], "down")

    def firewall(self, which: int, *rules: str) -> None:
        """Put *rules* before what comes in."""
        self.on(which, "nft", "add", "table", "inet", "t")
        chain = "{ type filter hook input priority 0 ; }"
        self.on(which, "nft", f"add chain inet t i {chain}")
        for rule in rules:
            self.on(which, "nft", f"add rule inet t i {rule}")


@contextmanager
def two(*, late: float = 0.0) -> Iterator[Hosts]:
    """Make two hosts whose names are right, and take them away again; *late* in seconds."""
    names = (f"td{os.getpid()}a", f"td{os.getpid()}b")
    wire: subprocess.Popen[bytes] | None = None
    hosts = Hosts(names)
    try:
        for which, name in enumerate(names):
            call("ip", "netns", "add", name)
            call("ip", "-n", name, "link", "set", "lo", "up")
            hosts.name_is(which, ADDRESSES[which])
        if late:
            wire = _late_wire(names, late)
        else:
            call(
                *("ip", "link", "add", CABLE[0], "netns", names[0], "type", "veth"),
                *("peer", "name", CABLE[1], "netns", names[1]),
            )
        for which, name in enumerate(names):
            call("ip", "-n", name, "addr", "add", f"{ADDRESSES[which]}/24", "dev", CABLE[which])
            call("ip", "-n", name, "link", "set", CABLE[which], "up")
        yield hosts
    finally:
        if wire:
            wire.kill()
            wire.communicate()
        for name in names:
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)
            shutil.rmtree(Path("/etc/netns", name), ignore_errors=True)


def _late_wire(names: tuple[str, str], seconds: float) -> subprocess.Popen[bytes]:
    program = Path(__file__).with_name("late_wire.py")
    command = (sys.executable, "-I", str(program), *names, *CABLE, str(seconds))
    wire = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert wire.stdout is not None
    assert wire.stdout.readline() == b"ready\n"
    time.sleep(0.1)
    return wire
