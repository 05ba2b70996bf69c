"""Carry packets between two network namespaces, each some seconds late.

python late_wire.py NAMESPACE NAMESPACE INTERFACE INTERFACE SECONDS
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import threading
import time
from collections import deque
from pathlib import Path

TUNSETIFF = 0x400454CA
TUN_WITHOUT_HEADER = 0x1001
NEW_NETWORK = 0x40000000


def tun(namespace: str, name: str) -> int:
    """Return a tun device in *namespace*; a thread is there for good once it was moved."""
    made: list[int] = []

    def make() -> None:
        with Path("/var/run/netns", namespace).open("rb") as place:
            if ctypes.CDLL(None, use_errno=True).setns(place.fileno(), NEW_NETWORK):
                raise OSError(ctypes.get_errno(), namespace)
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", name.encode(), TUN_WITHOUT_HEADER))
        made.append(device)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


def main() -> None:
    ends = [tun(sys.argv[1], sys.argv[3]), tun(sys.argv[2], sys.argv[4])]
    late = float(sys.argv[5])
    waiting: deque[tuple[float, int, bytes]] = deque()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select(ends, [], [], 0.05)
        now = time.monotonic()
        waiting.extend(
            (now + late, ends[1 - ends.index(end)], os.read(end, 1 << 16)) for end in ready
        )
        while waiting and waiting[0][0] <= now:
            _, other, packet = waiting.popleft()
            os.write(other, packet)


if __name__ == "__main__":
    main()
