"""The variables of NCCL, of torch's use of it, and of a launcher are ones that are read, and agree.

How it shows: a setting that should help changes nothing; a run is slower than it was; a process
waits for ranks that nobody has started; "environment variable WORLD_SIZE expected, but not set".

Why: NCCL ignores a name that it does not know, so a misspelt one is silent (nccl-variable-unknown).
What was set to find a fault stays in a profile or an image for years (nccl-variable-left-over).
What torch reads was called NCCL_... once, and is TORCH_NCCL_... now (nccl-variable-renamed). RANK,
WORLD_SIZE and their local ones of another job, or some of them, describe a job that does not exist
(launch-variables-inconsistent); MASTER_ADDR=localhost is another machine on every node
(master-unreachable).

Neighbours: what GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME may hold is network-interface.

The fix: unset it, or write it right. Variables of a launcher are best left to torchrun.

Sources: NCCL's docs/userguide/source/env.rst and its source, torch/csrc/distributed/c10d
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from torchdoctor import distributed_steps as distributed
from torchdoctor import effects, steps
from torchdoctor.facts import Build, Distribution, Unknown, items_of
from torchdoctor.model import Finding, Layer, Severity, Step
from torchdoctor.tables import load

FAMILY = "distributed"
FINDS = (
    "nccl-variable-unknown",
    "nccl-variable-renamed",
    "nccl-variable-left-over",
    "launch-variables-inconsistent",
    "master-unreachable",
)
NCCL, TORCH = "NCCL_", "TORCH_NCCL_"
TABLES = {NCCL: "nccl", TORCH: "torch"}
STEERING = (NCCL, "TORCH_", "CUDA_LAUNCH_BLOCKING")
CLOSE = 0.86
"""How like a known name one has to be, to be taken for a misspelt one."""
RENAMED_IN = (2, 2)
LAUNCH = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE")
"""What torchrun tells each process of its place."""
BELOW = (
    ("RANK", "WORLD_SIZE", "below"),
    ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "below"),
    ("GROUP_RANK", "GROUP_WORLD_SIZE", "below"),
    ("LOCAL_RANK", "RANK", "at most"),
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE", "at most"),
    ("GROUP_WORLD_SIZE", "WORLD_SIZE", "at most"),
)
NODES = ("NNODES", "GROUP_WORLD_SIZE", "SLURM_STEP_NUM_NODES")
"""Of how many nodes this very job is; SLURM_NNODES is of the allocation."""
HERE = ("localhost", "::1", "0.0.0.0")  # noqa: S104 - read, never bound


def check(
    variables: Mapping[str, str],
    torch: Build | Unknown | None,
    distributions: tuple[Distribution, ...] | Unknown,
) -> Iterator[Finding]:
    """Look at each name, then at what they say together."""
    ours = {n: value for n, value in sorted(variables.items()) if n.startswith(STEERING)}
    for name, value in ours.items():
        if near := _meant(name):
            yield _misspelt(name, value, near)
        elif _renamed(name) and _renames(torch):
            yield _old(name, value)
        elif (row := load("variables")["left_over"].get(name)) and row[0] in ("*", value.upper()):
            yield _left_over(name, value, *row[1:])
    installed = items_of(distributions)
    # Of an environment that was looked into, all variables are known; of a text, those in it.
    yield from _launch(variables, whole=any(d.metadata for d in installed))
    yield from _master(variables)


@cache  # a plan asks again after each step that touches a variable
def _meant(name: str) -> str | None:
    """Return the known name that *name* is like, if it is one that nothing reads."""
    start = next((s for s in (NCCL, TORCH) if name.startswith(s)), None)
    if start is None or _renamed(name):
        return None
    rest, (names, all_names) = name.removeprefix(start), _names(TABLES[start])
    if rest in all_names:
        return None
    from difflib import get_close_matches  # noqa: PLC0415 - for an unknown name only

    near = get_close_matches(rest, names, 1, CLOSE)
    # A newer one may go on from a known.
    return start + near[0] if near and not rest.startswith(f"{near[0]}_") else None


@cache
def _names(table: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names in *table* that one may have meant, and all that something reads."""
    rows = load("variables")[table]
    names = tuple(rows["names"].split())
    return names, frozenset((*names, *rows.get("others", "").split()))


@cache
def _renamed(name: str) -> bool:
    return name.removeprefix(NCCL) in load("variables")["torch"]["renamed"] and name[:5] == NCCL


def _renames(torch: Build | Unknown | None) -> bool:
    if not isinstance(torch, Build):
        return False
    parts = torch.public.split(".")[:2]
    return all(p.isdecimal() for p in parts) and tuple(map(int, parts)) >= RENAMED_IN


def _misspelt(name: str, value: str, near: str) -> Finding:
    return Finding(
        "nccl-variable-unknown",
        "warning",
        f"{name} is no variable that NCCL or torch reads; {near} is.",
        (distributed.value(name, value),),
        (distributed.unset(name, why=f"Nothing reads it. {near} is what is read.", settles=()),),
        confidence="likely",
    )


def _old(name: str, value: str) -> Finding:
    new = f"TORCH_{name}"
    return Finding(
        "nccl-variable-renamed",
        "warning",
        f"{name} is called {new} from torch 2.2 on.",
        (distributed.value(name, value),),
        (distributed.unset(name, why=f"Set {new} in its place, if it is needed.", settles=()),),
    )


def _left_over(name: str, value: str, cost: str, severity: Severity = "note") -> Finding:
    why = "It is for tests of NCCL without a launcher; torch needs none of it."
    return Finding(
        "nccl-variable-left-over",
        severity,
        f"{name}={value} is set: {cost}.",
        (distributed.value(name, value),),
        () if severity == "note" else (distributed.unset(name, why=why, settles=()),),
    )


def _launch(variables: Mapping[str, str], *, whole: bool) -> Iterator[Finding]:
    """Compare what a launcher, or a line in a profile, says of ranks."""
    told = {name: variables[name] for name in LAUNCH if name in variables}
    numbers = {name: int(value) for name, value in told.items() if value.isdecimal()}
    if wrong := {name: value for name, value in told.items() if name not in numbers}:
        named = tuple(wrong)
        why = f"{', '.join(f'{name}={value}' for name, value in wrong.items())} is no number"
    elif clash := next(_clashes(numbers), None):
        named, why = clash
    elif whole and told and ("RANK" in told) != ("WORLD_SIZE" in told):
        missing = "WORLD_SIZE" if "RANK" in told else "RANK"
        named = tuple(told)
        why = f"{', '.join(told)} {'are' if len(told) > 1 else 'is'} set and {missing} is not"
    else:
        return
    yield Finding(
        "launch-variables-inconsistent",
        "warning",
        f"{why}: init_process_group waits for a job that nobody has started.",
        tuple(distributed.value(name, variables[name]) for name in named),
        (_unset(tuple(told)),),
    )


def _clashes(numbers: Mapping[str, int]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the variables that cannot both be true, and why."""
    for small, large, word in BELOW:
        if small in numbers and large in numbers:
            one, other = numbers[small], numbers[large]
            if one > other or (one == other and word == "below"):
                says = f"{small}={one} is above {large}={other}"
                if word == "below":
                    says = f"{small}={one} is not below {large}={other}"
                yield (small, large), says
    sizes = ("GROUP_WORLD_SIZE", "LOCAL_WORLD_SIZE", "WORLD_SIZE")
    if all(name in numbers for name in sizes):
        nodes, here, world = (numbers[name] for name in sizes)
        if nodes == 1 and here != world:
            yield sizes, f"WORLD_SIZE={world} on one node, and LOCAL_WORLD_SIZE={here}"


def _master(variables: Mapping[str, str]) -> Iterator[Finding]:
    """Look for a meeting point that each of several nodes would look for in itself."""
    host = variables.get("MASTER_ADDR", "")
    counts = {name: variables[name] for name in NODES if name in variables}
    many = next((n for n, c in counts.items() if c.isdecimal() and int(c) > 1), None)
    if many is None or not (host in HERE or host.startswith("127.")):
        return
    yield Finding(
        "master-unreachable",
        "warning",
        f"MASTER_ADDR={host} is each machine itself, and {many}={counts[many]}: only the ranks of"
        " the first node meet.",
        (distributed.value("MASTER_ADDR", host), distributed.value(many, counts[many])),
        (
            distributed.assign(
                "MASTER_ADDR",
                "<first-node>",
                why="The ranks of every node go to this address to meet.",
                settles=(),
                title="Set MASTER_ADDR to the name or address of the first node, on every node"
                " (Slurm: scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)",
            ),
        ),
    )


def _unset(names: tuple[str, ...]) -> Step:
    return steps.by_hand(
        "unset-launch-variables",
        f"Unset {', '.join(names)}, here and where they are set for good",
        why="torchrun sets them for each process.",
        layer=Layer.VARIABLES,
        cost=steps.VARIABLE,
        effect=effects.then(*(effects.without_variable(name) for name in names)),
        bash=(f"unset {' '.join(names)}",),
        powershell=tuple(f"Remove-Item Env:{name}" for name in names),
        cmd=tuple(f"set {name}=" for name in names),
    )
