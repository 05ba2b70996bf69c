"""One rank of a run: meet the others, train, say how it ended. Started by torchrun."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import timedelta
from pathlib import Path

import torch  # type: ignore[import-not-found,unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]
from torch.distributed.elastic.multiprocessing.errors import (  # type: ignore[import-not-found,unused-ignore]
    record,
)

from .engine import Engine
from .events import Events


def options(words: list[str] | None = None) -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add("--dir", required=True, help="where checkpoints and records go; a run there is resumed")
    add("--steps", type=int, default=100)
    add("--batch", type=int, default=8, help="samples of one rank and one backward pass")
    add("--accumulate", type=int, default=1, help="backward passes of one step")
    add("--amp", choices=("off", "bf16", "fp16"), default="off")
    add("--dtype", choices=("float32", "float64"), default="float32")
    add("--sync-bn", action="store_true", help="BatchNorm over all ranks; needs GPUs")
    add("--width", type=int, default=512, help="of the model's layers")
    add("--lr", type=float, default=1e-3)
    add("--clip", type=float, default=1.0)
    add("--seed", type=int, default=7)
    add("--workers", type=int, default=0)
    add("--save-every", type=int, default=50)
    add("--timeout", type=float, default=60.0, help="seconds that a rank waits for another")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--measure", type=int, default=0, metavar="ROUNDS", help="say what communication takes")
    return parser.parse_args(words)


def place(asked: argparse.Namespace) -> torch.device:
    """Join the others; return the device of this rank."""
    cuda = asked.device != "cpu" and torch.cuda.is_available()
    local = int(os.environ["LOCAL_RANK"])  # fails without a launcher: better than a job of one
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    more = {"device_id": device} if cuda else {}
    dist.init_process_group(
        "nccl" if cuda else "gloo", timeout=timedelta(seconds=asked.timeout), **more
    )
    return device


def banner(asked: argparse.Namespace, device: torch.device) -> dict[str, object]:
    """Return, and print on every rank, who this is."""
    rank, world = dist.get_rank(), dist.get_world_size()
    said = {
        "pid": os.getpid(),
        "host": platform.node(),
        "local_rank": int(os.environ["LOCAL_RANK"]),
        "world_size": world,
        "device": str(device),
        "backend": dist.get_backend(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "global_batch": asked.batch * asked.accumulate * world,
    }
    words = " ".join(f"{name}={value}" for name, value in said.items())
    sys.stdout.write(f"rank={rank} {words}\n")
    sys.stdout.flush()
    return said


@record  # type: ignore[untyped-decorator,unused-ignore]
def main() -> None:
    """Train, and leave word of how it ended."""
    asked = options()
    folder = Path(asked.dir)
    events = Events(folder, int(os.environ["RANK"]))
    try:
        events.enter("init")
        device = place(asked)
        events.say("start", **banner(asked, device))
        engine = Engine(asked, events, device)
        engine.settle()
        engine.resume()
        engine.run()
        costs = engine.measure(asked.measure) if asked.measure and not engine.stop else {}
        report = {
            "digest": engine.digest(),
            "losses": engine.losses,
            "draws": engine.draws,
            "indices": engine.indices,
            "seconds": engine.seconds,
            "communication": costs,
            "steps_an_epoch": len(engine.samples)
            // (asked.batch * dist.get_world_size())
            // asked.accumulate,
            "parameters": sum(p.numel() for p in engine.model.parameters()),
        }
        result = folder / f"rank{events.rank}.json"
        result.write_text(json.dumps(report), encoding="utf-8")
        events.enter("end")
        events.say("stopped" if engine.stop else "done", signal=engine.stop, step=engine.step)
        dist.barrier()  # nobody leaves while another one still talks to it
        dist.destroy_process_group()
    except BaseException as error:
        events.failed(error)
        raise


if __name__ == "__main__":
    main()
