"""Start a run with torchrun, wait for it, and keep the record of it: ``run.json``.

It needs nothing but Python: torch is imported by the processes that it starts. The record has the
arguments, the environment and the versions from the beginning on, and at the end the outcome, with
the first failure: that of the rank which failed by itself, not of those which then missed it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = re.compile(
    r"^(CUDA|NCCL|GLOO|TORCH|OMP|MKL|MASTER|SLURM|LD_LIBRARY_PATH|PYTHONHASHSEED|HSA|HIP|ROCR)"
)
"""Environment variables that decide how a run goes; no other is written down."""
EXIT = re.compile(r"exitcode\s*:\s*(-?\d+) \(pid: (\d+)\)")
"""How torchrun says with what a process ended."""
PATIENCE = 45.0
"""Seconds that torchrun has to end its processes: it gives them 30."""


def main(words: list[str] | None = None) -> int:
    """Run; return 0 when all is done or was stopped in order, 1 when it failed."""
    parser = argparse.ArgumentParser(epilog="what follows -- goes to train.py")
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=0.0, help="seconds for all of it; 0: none")
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args(words)
    folder = asked.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("rank*.jsonl"), *folder.glob("rank*.at"), *folder.glob("rank*.json")]:
        old.unlink()
    command = _command(asked, folder)
    record: dict[str, object] = {
        "command": command,
        "arguments": asked.words,
        "nproc": asked.nproc,
        "host": platform.node(),
        "python": platform.python_version(),
        "environment": {k: v for k, v in sorted(os.environ.items()) if KEPT.match(k)},
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "outcome": "running",
    }
    _write(folder / "run.json", record)
    began = time.monotonic()
    said, late = _run(command, folder, asked.limit)
    stories = [story(folder, rank) for rank in range(asked.nproc)]
    record |= {"seconds": round(time.monotonic() - began, 3), **judged(stories, said, late=late)}
    _write(folder / "run.json", record)
    failure = record["first_failure"]
    if isinstance(failure, dict):
        sys.stderr.write(f"first failure: rank {failure['rank']}: {failure['message']}\n")
    return 0 if record["outcome"] in {"done", "stopped"} else 1


def _command(asked: argparse.Namespace, folder: Path) -> list[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nnodes", "1", "--nproc-per-node", str(asked.nproc), "--max-restarts", "0"),
        *("--master-addr", "127.0.0.1", "--master-port", str(port)),
        *("--redirects", "3", "--log-dir", str(folder / "logs")),
        *("-m", f"{HERE.name}.train", "--dir", str(folder), *asked.words),
    ]


def _run(command: list[str], folder: Path, limit: float) -> tuple[str, bool]:
    """Run torchrun; pass on what it is told; return what it said, and whether it was too late."""
    path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH", "")]))
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    environ.setdefault("OMP_NUM_THREADS", "1")
    said = folder / "torchrun.log"
    with said.open("wb") as log:
        process = subprocess.Popen(command, env=environ, stdout=log, stderr=log)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: process.send_signal(signal.SIGTERM))
    late = False
    try:
        process.wait(limit or None)
    except subprocess.TimeoutExpired:
        late = True
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return said.read_text("utf-8", "replace"), late


# ---- how it ended -------------------------------------------------------------------------------


def story(folder: Path, rank: int) -> dict[str, object]:
    """Return what *rank* has said of itself."""
    events: list[dict[str, object]] = []
    try:
        lines = (folder / f"rank{rank}.jsonl").read_text("utf-8").splitlines()
        events.extend(json.loads(line) for line in lines)
    except (OSError, ValueError):
        pass
    try:
        at = json.loads((folder / f"rank{rank}.at").read_text("utf-8"))
    except (OSError, ValueError):
        at = {}
    return {"rank": rank, "events": events, "at": at}


def judged(stories: list[dict[str, object]], said: str, *, late: bool = False) -> dict[str, object]:
    """Return the outcome of a run, with its first failure, for its record."""
    ends = {str(pid): int(code) for code, pid in EXIT.findall(said)}
    every = [event for one in stories for event in _events(one)]
    last = [_last(one) for one in stories]
    failure = _first(stories, ends)
    if failure is None and late:
        failure = {"rank": None, "kind": "timeout", "message": "the run took longer than its limit"}
    outcome = "done"
    if failure is not None:
        outcome = "failed"
    elif any(event == "stopped" for event in last):
        outcome = "stopped"
    elif not all(event == "done" for event in last):
        outcome = "failed"
        failure = {"rank": None, "kind": "launcher", "message": said.strip()[-2000:]}
    start = next((event for event in every if event["event"] == "start"), {})
    told = ("saved", "resumed", "checkpoint-corrupt", "world-size-changed", "stopped")
    return {
        "outcome": outcome,
        "first_failure": failure,
        "versions": {name: start.get(name) for name in ("torch", "cuda", "python", "backend")},
        "device": start.get("device"),
        "notes": [
            {k: v for k, v in event.items() if k != "trace"}
            for event in every
            if event["event"] in told
        ],
        "failures": [event for event in every if event["event"] == "failed"],
    }


def _first(stories: list[dict[str, object]], ends: Mapping[str, int]) -> dict[str, object] | None:
    """Return the failure that the others are a consequence of.

    First comes what all ranks have agreed on, then what a rank failed of by itself, then a rank
    that died or fell silent without a word, and only then those that failed while they talked.
    """
    failed = [event for one in stories for event in _events(one) if event["event"] == "failed"]
    failed.sort(key=_time)
    for event in failed:
        if event["rank"] == event["culprit"]:
            return _failure(event)
    for event in failed:
        if not event["collective"] and event["culprit"] is None:
            return _failure(event)
    silent = [one for one in stories if _last(one) not in {"failed", "done", "stopped"}]
    silent = [one for one in silent if _at(one)]
    if silent and (failed or any(_code(one, ends) is not None for one in silent)):
        return _silence(
            min(silent, key=lambda one: (_code(one, ends) in {None, -15}, _seen(one))), ends
        )
    return _failure(failed[0]) if failed else None


def _failure(event: Mapping[str, object]) -> dict[str, object]:
    names = ("rank", "kind", "message", "step", "stage", "time", "trace")
    return {name: event.get(name) for name in names}


def _silence(one: Mapping[str, object], ends: Mapping[str, int]) -> dict[str, object]:
    code, at = _code(one, ends), _at(one)
    where = f"in step {at.get('step')}, stage {at.get('stage')}, without an error of its own"
    if code is not None and code < 0 and code != -signal.SIGTERM:
        kind = signal.Signals(-code).name
        message = f"rank {one['rank']} was ended by {kind} {where}"
    elif code is not None and code > 0:
        kind, message = f"exit {code}", f"rank {one['rank']} ended with exit code {code} {where}"
    else:
        kind, message = "silent", f"rank {one['rank']} did not come back {where}"
    return {
        "rank": one["rank"],
        "kind": kind,
        "message": message,
        "step": at.get("step"),
        "stage": at.get("stage"),
        "time": at.get("time"),
    }


def _events(one: Mapping[str, object]) -> list[dict[str, object]]:
    events = one["events"]
    assert isinstance(events, list)
    return events


def _last(one: Mapping[str, object]) -> str:
    events = _events(one)
    return str(events[-1]["event"]) if events else ""


def _at(one: Mapping[str, object]) -> dict[str, object]:
    at = one["at"]
    assert isinstance(at, dict)
    return at


def _time(event: Mapping[str, object]) -> float:
    return float(str(event["time"]))


def _seen(one: Mapping[str, object]) -> float:
    return float(str(_at(one).get("time", 0.0)))


def _code(one: Mapping[str, object], ends: Mapping[str, int]) -> int | None:
    start = next((event for event in _events(one) if event["event"] == "start"), {})
    return ends.get(str(start.get("pid")))


def _write(path: Path, record: Mapping[str, object]) -> None:
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
