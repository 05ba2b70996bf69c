"""The least that an all_reduce on two ranks takes: start two, import torch, meet, add, leave."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from importlib import import_module

RANKS = 2
NUMBERS = 4096


def rank() -> None:
    torch = import_module("torch")
    dist = import_module("torch.distributed")
    dist.init_process_group("gloo")
    given = torch.ones(NUMBERS)
    dist.all_reduce(given)
    assert bool((given == RANKS).all())
    dist.destroy_process_group()


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = str(probe.getsockname()[1])
    more = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(RANKS)}
    started = [
        subprocess.Popen(
            (sys.executable, __file__),
            env={**os.environ, **more, "RANK": str(number), "OMP_NUM_THREADS": "1"},
        )
        for number in range(RANKS)
    ]
    codes = [process.wait() for process in started]
    assert codes == [0] * RANKS
    sys.stdout.write("right\n")


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank()
    else:
        main()
