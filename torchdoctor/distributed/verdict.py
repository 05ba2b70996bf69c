"""What is said of an all_reduce: the finding of a verdict, and what a healthy run has proven."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from torchdoctor import effects, steps
from torchdoctor.distributed.blame import Verdict, blame, fact, last
from torchdoctor.facts import AllReduce, RankRun
from torchdoctor.model import Evidence, Finding, Layer, Step
from torchdoctor.tables import load

SOURCE = "the all_reduce"
LONGEST = 300
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands for a value that is not known; no sentence with it is shown."""
MOST_EVIDENCE = 6
DOING = {
    "spawn": "before it said a word",
    "port-bind": "as it took the port of the meeting point",
    "tcp": "as it connects to rank 0",
    "import": "as it imports torch",
    "device": "as it tries its device",
    "store": "as it opens the store",
    "check-in": "as the ranks check in",
    "facts": "as the ranks compare what they are",
    "pairwise": "as the ranks connect to each other",
    "p2p": "as the GPUs copy to each other",
    "communicator": "in init_process_group",
    "all-reduce": "in the first all_reduce",
    "verify": "as the sum is verified",
    "bandwidth": "as the bandwidth is measured",
    "barrier": "in the barrier",
    "destroy": "in destroy_process_group",
}
GLOO = "gloo"
"""What the run without NCCL is called."""
TRANSPORTS = {
    "NCCL_P2P_DISABLE": "direct traffic between the GPUs (PCIe ACS, the IOMMU, the driver)",
    "NCCL_SHM_DISABLE": "shared memory between processes (/dev/shm)",
    "NCCL_IB_DISABLE": "InfiniBand or RoCE",
    "NCCL_SOCKET_IFNAME": "the network interface that NCCL takes by itself",
}


def finding(verdict: Verdict, run: AllReduce) -> Finding:
    """Return *verdict* on *run* as a finding, with what each rank did last as evidence."""
    row = load("all_reduce")["cause"][_row(verdict)]
    words = _words(verdict, run)
    name = row.get("tcp", row["name"]) if verdict.stage == "tcp" else row["name"]
    summary = row["summary"].format_map(words)
    if UNKNOWN in summary:  # a message of a library has not all the values
        summary = "{who} failed {doing}: {said}".format_map(words)
    step = steps.by_hand(
        f"mend-{_row(verdict)}",
        row["title"].format_map(words).replace(UNKNOWN, "the variable"),
        why="The other ranks fail only because of it.",
        layer=Layer[row["layer"].upper()],
        cost=steps.SMALL,
        effect=effects.change(all_reduce=effects.TO_TRY),
        bash=tuple(
            line for c in row.get("commands", ()) if UNKNOWN not in (line := c.format_map(words))
        ),
    )
    return Finding(
        name,
        "error",
        _sentence(summary),
        _evidence(verdict, run),
        (_unset(verdict, step),),
        confidence=row.get("confidence", "certain"),
        where=where(verdict),
        because_of=tuple(row.get("because_of", ())),
    )


def _row(verdict: Verdict) -> str:
    """Return which row of the table tells *verdict*."""
    if (verdict.cause, verdict.stage) == ("raised", "import"):
        return "import"
    return "interface-file" if verdict.cause == "interface" and _file(verdict) else verdict.cause


def _file(verdict: Verdict) -> object:
    """Return the file of NCCL's settings that is at fault, if one is."""
    return verdict.values.get("file")


def where(verdict: Verdict) -> Mapping[str, int | str]:
    """Return the stage, and the rank or the two ends of the link that are to blame."""
    place: dict[str, int | str] = {"stage": verdict.stage}
    if verdict.ranks:
        place["rank"] = verdict.ranks[0]
    elif not verdict.links:
        place["rank"] = "none"
    if verdict.links:
        place["link"] = _links(verdict)
    if len(verdict.ranks) > 1:
        place["ranks"] = ",".join(map(str, verdict.ranks))
    return place


def backend(run: AllReduce) -> str:
    """Return the backend that the ranks took; empty where none came so far."""
    told = (fact(rank, "device", "backend") for rank in run.ranks)
    return next((str(name) for name in told if name), "")


def device(run: AllReduce) -> str:
    """Return what the ranks ran on: "cpu", or "cuda:0, cuda:1"."""
    told = (fact(rank, "device", "device") for rank in run.ranks)
    return ", ".join(dict.fromkeys(str(name) for name in told if name))


def proven(run: AllReduce) -> str:
    """Return what a run without NCCL says of NCCL: nothing."""
    if not (took := backend(run)):
        return "NCCL was not tried; no rank came as far as choosing a backend"
    if blame(run) is not None:
        return f"NCCL was not tried; the all_reduce over {took} failed"
    return (
        f"NCCL was not tried; {took} on {device(run)} carried it for {run.world} ranks: processes,"
        " ports, addresses, network and sum are right"
    )


def transport(run: AllReduce) -> Finding | None:
    """Return which transport of NCCL is broken, where the run was tried without each of them."""
    worked = [name for name, again in run.again.items() if blame(again) is None]
    for variable, what in TRANSPORTS.items():
        name = next((name for name in worked if name.startswith(variable)), None)
        if name is None:
            continue
        network = "; gloo works as it is, so it is not the network" if GLOO in worked else ""
        return Finding(
            "nccl-transport-broken",
            "error",
            f"NCCL works with {name}: what is broken is {what}{network}.",
            (Evidence("all_reduce.again", name, SOURCE),),
            confidence="likely",
        )
    return None


def untold(run: AllReduce) -> str:
    """Return what is known of NCCL where it failed and no transport of it is known to be broken."""
    tried = [name for name in run.again if name.startswith("NCCL_")]
    said = "the all_reduce over NCCL failed"
    if tried:
        said += f", and so it does with {', '.join(tried)}"
    if GLOO not in run.again:
        return f"{said}; no transport of it is known to"
    if blame(run.again[GLOO]) is None:
        return f"{said}; gloo works, so that processes, ports and the network are right"
    return f"{said}; gloo, tried beside it, fails as well: what is wrong is not NCCL's own"


def differing(run: AllReduce) -> Iterator[Finding]:
    """Yield the variables of NCCL that not all ranks have alike, of those that must be."""
    told = {rank.rank: _settings(rank) for rank in run.ranks}
    known = {rank: values for rank, values in told.items() if values is not None}
    for name in (f"NCCL_{rest}" for rest in load("variables")["alike"]["names"].split()):
        groups: dict[str, list[int]] = {}
        files: dict[str, set[str]] = {}
        for rank, values in known.items():
            value, file = values.get(name, ("", ""))
            groups.setdefault(value, []).append(rank)
            files.setdefault(value, set()).update({file} - {""})
        if len(groups) < 2:  # noqa: PLR2004 - all alike
            continue
        each = "; ".join(
            f"{_given(value, files[value])} on {_who(ranks).lower()}"
            for value, ranks in groups.items()
        )
        places = sorted(set().union(*files.values()))
        yield Finding(
            "rank-variables-differ",
            "warning",
            f"{name} is not the same on all ranks: {each}.",
            (Evidence("all_reduce.variables", f"{name}: {each}", SOURCE),),
            (
                steps.by_hand(
                    "same-variables-everywhere",
                    f"Set {name} alike on every node, or nowhere (torchrun hands on what its own"
                    " shell has; mpirun needs -x NAME, srun --export=ALL)",
                    why="The ranks choose algorithms, buffers and transports by it.",
                    layer=Layer.VARIABLES,
                    cost=steps.VARIABLE,
                    effect=effects.change(all_reduce=effects.TO_TRY),
                    bash=(
                        f"grep -n {name} {' '.join(map(_quoted, places))}"
                        if places
                        else f"unset {name}",
                    ),
                ),
            ),
        )


def _given(value: str, files: Collection[str]) -> str:
    """Return a setting with the files that give it."""
    return f"{value} ({', '.join(sorted(files))})" if files else value or "not set"


def _quoted(path: str) -> str:
    """Return a path as a shell takes it; the tilde of a home has to stay bare."""
    home, rest = ("~/", path[2:]) if path.startswith("~/") else ("", path)
    return f"{home}{shlex.quote(rest)}"


def _settings(rank: RankRun) -> Mapping[str, tuple[str, str]] | None:
    """Return what NCCL is told on *rank*, each with the file that says it; None: not known.

    What is in more than one place counts where it comes first: a variable, then the files.
    """
    variables, conf = fact(rank, "facts", "variables"), fact(rank, "facts", "conf")
    if not isinstance(variables, Mapping):
        return None
    settings = {str(name): (str(value), "") for name, value in variables.items()}
    for file, text in conf.items() if isinstance(conf, Mapping) else ():
        for line in str(text).splitlines():
            name, given, value = line.partition("=")
            if given and not line.startswith("#"):
                settings.setdefault(name, (value, str(file)))
    return settings


# ---- words --------------------------------------------------------------------------------------


class _Values(defaultdict[str, str]):
    """What a sentence may name; what is not known is said so."""

    def __missing__(self, key: str) -> str:
        return UNKNOWN


def _words(verdict: Verdict, run: AllReduce) -> _Values:
    values = verdict.values
    words = _Values(str)
    words |= {name: _shown(value) for name, value in values.items()}
    words["who"] = _who(verdict.ranks)
    words["ranks"] = _who(verdict.ranks).lower()
    words["link"] = _links(verdict)
    words["doing"] = DOING.get(verdict.stage, f"in {verdict.stage}")
    words["said"] = " ".join((verdict.said or "nothing was said").split()).rstrip(".")[:LONGEST]
    words["reason"] = f" ({verdict.said})" if verdict.said else ""
    if file := _file(verdict):
        words["path"] = _quoted(str(file))
    if verdict.cause == "died":
        words["how"] = str(values.get("signal") or f"exit code {values.get('exit_code')}")
    elif verdict.cause == "mismatch":
        words["odd"] = f" ({_who(verdict.ranks).lower()} apart)" if verdict.ranks else ""
        words["values"] = _shown(values) or words["said"]
    elif verdict.cause == "shm-full":
        words |= {name: _mib(values.get(name)) for name in ("size", "free")}
    elif verdict.cause == "link-lost":
        words["host"] = _address(run, verdict)
    return words


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_shown(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return str(value)


def _mib(value: object) -> str:
    return f"{value / (1 << 20):.0f} MiB" if isinstance(value, int) else UNKNOWN


def _who(ranks: Sequence[int]) -> str:
    if not ranks:
        return "A rank"
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def _links(verdict: Verdict) -> str:
    return ", ".join(f"{a}-{b}" for a, b in verdict.links[:MOST_EVIDENCE])


def _address(run: AllReduce, verdict: Verdict) -> str:
    far = verdict.links[0][1]
    told = (fact(rank, "facts", "address") for rank in run.ranks if rank.rank == far)
    return next((str(address) for address in told if address), UNKNOWN)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _unset(verdict: Verdict, step: Step) -> Step:
    """Return *step*; a variable of NCCL that it names can be unset in every shell."""
    variable = verdict.values.get("variable")
    if verdict.cause != "interface" or not isinstance(variable, str) or _file(verdict):
        return step
    from dataclasses import replace  # noqa: PLC0415 - for this cause alone

    unset = steps.unset_variable(variable, why=step.why)
    return replace(
        unset, title=step.title, effect=effects.then(unset.effect, step.effect), why=step.why
    )


# ---- evidence -----------------------------------------------------------------------------------


def _evidence(verdict: Verdict, run: AllReduce) -> tuple[Evidence, ...]:
    """Return what ranks did last: those to blame first."""
    blamed = {*verdict.ranks, *(rank for link in verdict.links for rank in link)}
    ordered = sorted(run.ranks, key=lambda rank: (rank.rank not in blamed, rank.rank))
    shown = ordered[:MOST_EVIDENCE]
    return tuple(Evidence(f"all_reduce.rank {r.rank}", told(r), SOURCE) for r in shown)


def told(rank: RankRun) -> str:
    """Return in one line what *rank* did last, and how it ended."""
    event = last(rank)
    if not rank.started or not event.kind:
        return f"never started{f': {rank.reason}' if rank.reason else ''}"
    did = {
        "enter": f"had entered {event.stage}",
        "call": f"was waiting in {event.stage}",
        "ok": f"had done {event.stage}",
        "error": f"failed in {event.stage}: {event.values.get('message', '')}",
    }[event.kind]
    end = ""
    if rank.ended_by_us:
        end = f", {rank.state}" if rank.state else ""
    elif rank.signal:
        end = f", then {rank.signal}"
    elif rank.exit_code and event.kind != "error":
        end = f", then exit code {rank.exit_code}"
    return f"{' '.join(did.split())[:LONGEST]}{end} ({event.at:.1f} s)"
