"""A log of NCCL_DEBUG=INFO of a big job, as long as it has to be, with what is wrong in its midst.

The lines have the forms that NCCL 2.27 and torch print: each process says its version, its
networks, its channels; all of them write into one file. One rank of one node cannot make its
queue pair, and the others wait for it until their watchdogs end them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

RANKS, OF_A_NODE = 1024, 8
MB = 1 << 20
BLOCK = 4 * MB


def lines(rank: int, chance: random.Random) -> Iterator[str]:
    """Yield what one healthy process prints while its communicators are made, as often as asked."""
    node, local = divmod(rank, OF_A_NODE)
    pid = 20_000 + chance.randrange(900_000)
    start = f"node{node:03d}:{pid}:{pid + local + 700} [{local}] NCCL INFO "
    yield f"{start}Bootstrap: Using eth0:10.1.{node // 250}.{node % 250 + 1}<0>\n"
    yield f"{start}cudaDriverVersion 13000\n"
    yield f"{start}NCCL version 2.27.5+cuda13.0\n"
    yield f"{start}NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB/SHARP [RO]; OOB eth0\n"
    yield f"{start}Using network IB\n"
    yield (
        f"{start}ncclCommInitRankConfig comm 0x{chance.getrandbits(44):x} rank {rank} nranks "
        f"{RANKS} cudaDev {local} nvmlDev {local} busId {local * 16 + 27:x}000 commId "
        f"0x{chance.getrandbits(60):x} - Init START\n"
    )
    yield f"{start}Setting affinity for GPU {local} to 0-47,96-143\n"
    yield f"{start}comm 0x{chance.getrandbits(44):x} rank {rank} nRanks {RANKS} nNodes 128 "
    yield f"localRanks 8 localRank {local} MNNVL 0\n"
    for channel in range(32):
        after = (rank + 1) % RANKS
        how = "P2P/CUMEM/read" if after // OF_A_NODE == node else "NET/IB/GDRDMA"
        to = f"{after}[{after % OF_A_NODE}]"
        yield f"{start}Channel {channel:02d}/0 : {rank}[{local}] -> {to} via {how}\n"
        yield (
            f"{start}Trees [{channel}] {after}/-1/-1->{rank}->{(rank - 1) % RANKS} "
            f"comm 0x{chance.getrandbits(44):x} nRanks {RANKS}\n"
        )
    yield f"{start}Connected all rings, use ring PXN 0 GDR 1\n"
    yield f"{start}32 coll channels, 32 collnet channels, 16 nvls channels, 32 p2p channels\n"


FAILED = (
    "node077:31337:31999 [3] ibvwrap.c:278 NCCL WARN Call to ibv_modify_qp failed with error "
    "Connection timed out errno 110\n"
    "node077:31337:31999 [3] NCCL INFO transport/net_ib.cc:1024 -> 2\n"
    "[rank619]: Traceback (most recent call last):\n"
    '[rank619]:   File "/srv/job/train.py", line 212, in <module>\n'
    "[rank619]:     torch.distributed.barrier()\n"
    "[rank619]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed"
    "/c10d/ProcessGroupNCCL.cpp:3690, unhandled system error (run with NCCL_DEBUG=INFO for "
    "details), NCCL version 2.27.5\n"
    "[rank619]: ncclSystemError: System call (e.g. socket, malloc) or external library call "
    "failed or device error.\n"
)


def write(path: Path, size: int, *, seed: int = 0) -> int:
    """Write a log of at least *size* bytes to *path*; return how many there are."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    # Of a bounded number of blocks, so that to write takes less time than to read.
    blocks = [
        "".join(line for rank in range(at, at + 64) for line in lines(rank, chance))
        for at in range(0, RANKS, 64)
    ]
    written, told = 0, False
    with path.open("w", encoding="utf-8", newline="\n") as file:
        while written < size:
            block = blocks[chance.randrange(len(blocks))]
            if not told and written > size // 2:
                block, told = block + FAILED, True
            written += file.write(block)
    return written
