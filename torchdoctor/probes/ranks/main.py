"""The stages, one after the other."""

import os
import socket
import sys

from . import device, identity, meeting, pairs, summing
from .saying import OPTIONS, RANK, WORLD, Stage, prepare, say


def main() -> None:
    """Go through the stages."""
    with Stage("spawn") as stage:
        prepare()
        stage.fact(pid=os.getpid(), host=socket.gethostname(), python=sys.version.split()[0])
    held = meeting.bind() if RANK == 0 else None
    if WORLD > 1 and (RANK != 0 or OPTIONS["store"] != "own"):
        meeting.reach()
    torch, dist = device.import_torch()
    backend, place = device.take(torch, dist)
    store = meeting.open_store(dist, held)
    meeting.check_in(store)
    with Stage("facts") as stage:
        mine = identity.own(torch, backend, place)
        each = identity.exchange(store, mine, stage)
    if WORLD > 1:
        pairs.pairwise(store, each)
    device.copy_between_gpus(torch, place)
    summing.communicate(dist, store, backend, place)
    summing.verify(summing.reduce_once(torch, dist, place))
    summing.measure(torch, dist, place)
    with Stage("barrier") as stage:
        stage.call()
        dist.barrier(**({"device_ids": [place.index]} if place.type == "cuda" else {}))
    with Stage("destroy") as stage:
        stage.call()
        dist.destroy_process_group()
    say("done", "ok")


def run() -> None:
    """Go through the stages, and end this process with what came of it."""
    code = 4
    try:
        main()
        code = 0
    except BaseException:  # it was told as an event
        pass
    # Unloading torch takes long, may hang, and tells nothing.
    os._exit(code)
