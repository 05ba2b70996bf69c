"""Read what the ranks of an all_reduce said and how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torchdoctor.child import Run
from torchdoctor.facts import AllReduce, RankEvent, RankRun, Symptom, Unknown
from torchdoctor.reading import traceback

SOURCE = "the all_reduce"
MOST_RANKS = 65_536
MOST_EVENTS = 2_000
MOST_AGAIN = 8
MOST_LOGS = 64
LONGEST = 64 * 1024

_FINGERPRINT = re.compile(
    r"Rank (\d{1,5}) is running (?:inconsistent )?collective: CollectiveFingerPrint\("
    r"(?:SequenceNumber=\d{1,20}, ?)?OpType=(\w{1,40})"
    r"(?:, ?TensorShape=\[([\d, ]{0,200})\])?(?:, ?TensorDtypes=(\w{1,40}))?"
)


def read(run: Run, symptoms: object = None) -> dict[str, object]:
    """Return the fact all_reduce, and *symptoms* with what NCCL logged in a run that failed.

    Raises nothing: what cannot be read is Unknown.
    """
    if run.data.get("done") is not True:
        return {"all_reduce": Unknown(run.reason or "the run was cut off")}
    try:
        tried = record(run.data)
    except DamagedError as error:
        return {"all_reduce": Unknown(f"the record of the run is damaged: {error}")}
    known: dict[str, object] = {"all_reduce": tried}
    if tried.ended != "done" and (logged := _logged(run.data)):
        before = symptoms if isinstance(symptoms, tuple) else ()
        known["symptoms"] = (*before, *logged)
    return known


def _logged(data: Mapping[str, object]) -> tuple[Symptom, ...]:
    """Return what the table knows of the logs that NCCL wrote, each message once."""
    found: dict[tuple[object, ...], Symptom] = {}
    for rank in map(_mapping, _list(data, "ranks")[:MOST_LOGS]):
        text, source = str(rank.get("nccl_log", ""))[:LONGEST], f"NCCL's log of rank {rank['rank']}"
        for symptom in traceback.symptoms(text, source):
            found.setdefault((symptom.name, *sorted(symptom.values.items())), symptom)
    return tuple(found.values())


def record(data: object) -> AllReduce:
    """Return what a supervisor recorded of a run.

    Raises:
        DamagedError: it is none.

    """
    return _record(_mapping(data))


class DamagedError(ValueError):
    """A part of the record is not what a supervisor writes."""


def _record(data: Mapping[str, object]) -> AllReduce:
    ranks = _list(data, "ranks")[:MOST_RANKS]
    again = data.get("again")
    if again is not None and not isinstance(again, Mapping):
        raise DamagedError("again")
    texts = "\n".join(text for rank in ranks for _, text in _texts(_mapping(rank)))
    return AllReduce(
        world=_int(data, "world"),
        ranks=tuple(_rank(_mapping(rank)) for rank in ranks),
        ended=str(data.get("ended", "")),
        seconds=_number(data, "seconds"),
        fingerprints=_fingerprints(texts),
        unheard=tuple(n for n in _list(data, "unheard") if isinstance(n, int))
        if "unheard" in data
        else (),
        again={
            str(name): _record(_mapping(other))
            for name, other in list((again or {}).items())[:MOST_AGAIN]
        },
    )


def _rank(data: Mapping[str, object]) -> RankRun:
    texts = (str(data.get(name, ""))[:LONGEST] for name in ("output", "nccl_log"))
    exit_code, ended_at = data.get("exit_code"), data.get("ended_at")
    signal = data.get("signal")
    return RankRun(
        rank=_int(data, "rank"),
        events=tuple(_event(_mapping(event)) for event in _list(data, "events")[:MOST_EVENTS]),
        started=data.get("started") is True,
        reason=str(data.get("reason", "")),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        signal=signal if isinstance(signal, str) else None,
        ended_by_us=data.get("ended_by_us") is True,
        ended_at=float(ended_at) if isinstance(ended_at, int | float) else None,
        state=str(data.get("state", "")),
        stack=str(data.get("stack", ""))[:LONGEST],
        symptoms=_names("\n".join(texts)),
    )


def _event(data: Mapping[str, object]) -> RankEvent:
    kind = str(data.get("ev", ""))
    said = f"{data.get('type')}: {data.get('message')}" if kind == "error" else ""
    return RankEvent(
        stage=str(data.get("stage", "")),
        kind=kind,
        at=_number(data, "t"),
        values={str(k): v for k, v in data.items() if k not in ("stage", "ev", "t")},
        symptoms=_names(said),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.name for s in traceback.symptoms(text, SOURCE)))


def _fingerprints(text: str) -> dict[int, str]:
    """Return the collective of each rank, as torch names it: "ALLREDUCE [4096] Float"."""
    found: dict[int, str] = {}
    for match in _FINGERPRINT.finditer(text):
        rank, op, shape, kind = match.groups()
        found.setdefault(int(rank), " ".join(filter(None, (op, f"[{shape or ''}]", kind))))
    return found


def _texts(rank: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield what a rank printed and raised, with where that is from."""
    number = rank.get("rank")
    for name in ("output", "nccl_log"):
        text = rank.get(name)
        if isinstance(text, str) and text:
            yield f"rank {number}, {name}", text[:LONGEST]
    for event in _list(rank, "events")[:MOST_EVENTS]:
        said = _mapping(event)
        if said.get("ev") == "error" and not said.get("why"):
            text = f"{said.get('type')}: {said.get('message')}"
            yield f"rank {number}, {said.get('stage')}", text[:LONGEST]


def _list(data: Mapping[str, object], name: str) -> Sequence[object]:
    value = data.get(name)
    if not isinstance(value, list):
        raise DamagedError(name)
    return value


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise DamagedError("not an object")
    return value


def _int(data: Mapping[str, object], name: str) -> int:
    value = data.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_RANKS:
        raise DamagedError(name)
    return value


def _number(data: Mapping[str, object], name: str) -> float:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
