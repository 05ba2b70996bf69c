"""Runs of an all_reduce, put together for a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchdoctor.distributed.stages import STAGES
from torchdoctor.facts import AllReduce, RankEvent, RankRun

ECHO = ("gloo-peer-closed",)
WAITED = ("gloo-timed-out",)


def event(stage: str, kind: str, at: float = 1.0, **values: object) -> RankEvent:
    return RankEvent(stage, kind, at, values)


def until(stage: str, kind: str = "ok", at: float = 1.0, **values: object) -> tuple[RankEvent, ...]:
    """Return the events of a rank that came to *kind* of *stage*; all before went well."""
    before = STAGES[: STAGES.index(stage)]
    done = [event(name, kind, 0.1) for name in before for kind in ("enter", "ok")]
    kinds = {"enter": (), "call": ("enter",), "ok": ("enter", "call"), "error": ("enter", "call")}
    last = [event(stage, one, at) for one in kinds[kind]]
    return (*done, *last, event(stage, kind, at, **values))


def error(stage: str, why: str = "", at: float = 1.0, **values: object) -> tuple[RankEvent, ...]:
    """Return the events of a rank that failed in *stage*."""
    more = {"why": why} if why else {}
    return until(stage, "error", at, message=f"it is {why}", **more, **values)


def echo(stage: str, names: tuple[str, ...] = ECHO, at: float = 1.0) -> tuple[RankEvent, ...]:
    """Return the events of a rank that noticed in *stage* what another did."""
    *before, last = until(stage, "error", at, type="RuntimeError", message="Connection closed")
    return (*before, replace(last, symptoms=names))


def on(network: str, events: tuple[RankEvent, ...]) -> tuple[RankEvent, ...]:
    """Return *events*, told from a *network*."""
    return (event("facts", "fact", network=network, address=f"10.0.0.{network}"), *events)


def chose(backend: str, events: tuple[RankEvent, ...]) -> tuple[RankEvent, ...]:
    """Return *events* of a rank that took *backend*."""
    return (event("device", "fact", backend=backend, device="cpu"), *events)


def ended(events: tuple[RankEvent, ...], **how: object) -> Mapping[str, object]:
    return {"events": events, **how}


def run(*ranks: tuple[RankEvent, ...] | Mapping[str, object], **more: object) -> AllReduce:
    """Return a run of *ranks*, each as its events (then ended by us), or as the fields of one."""
    return AllReduce(
        world=len(ranks),
        ranks=tuple(_rank(number, rank) for number, rank in enumerate(ranks)),
        **more,  # type: ignore[arg-type]
    )


def _rank(number: int, given: tuple[RankEvent, ...] | Mapping[str, object]) -> RankRun:
    fields = given if isinstance(given, Mapping) else {"events": given, "ended_by_us": True}
    return RankRun(number, **fields)  # type: ignore[arg-type]


def healthy(backend: str = "gloo", world: int = 2) -> AllReduce:
    return run(*(chose(backend, until("done")) for _ in range(world)))


def each(kind: Iterable[int], some: object, others: object, world: int) -> list[object]:
    """Return *some* for the ranks in *kind*, *others* for the rest of *world*."""
    chosen = set(kind)
    return [some if rank in chosen else others for rank in range(world)]
