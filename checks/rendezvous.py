"""The processes of a job meet: the port is free, the address is right, each node has its number.

How it shows: "The server socket has failed to listen ... EADDRINUSE" (the port is taken); "The
client socket has timed out after 60000ms while trying to connect to (host, port)",
RendezvousTimeoutError, "1/2 clients joined" (nobody answers).

Why: a second job, or what a dead one left, holds 29500 (rendezvous-port-in-use). MASTER_ADDR is not
an address of node 0, or a firewall is in between (master-unreachable). In a batch script
$SLURM_NODEID is the first node's, because it is replaced before srun runs (node-rank-wrong): two
nodes are then number 0. A mesh proxy takes the traffic (service-mesh-blocks).

Neighbours: errno 97 (IPv6) and 10049 in such a line are warnings before it goes on with another
address. When a rank died first, the others cannot reach it (rank-crashed-first).

The fix: ``torchrun --standalone`` on one machine (it takes a free port); on several
``--rdzv-backend c10d --rdzv-endpoint NODE0:29500``, which needs no node ranks. ``nc -zv NODE0
29500`` from another node, while node 0 waits, says whether the network lets it through.

Sources: https://github.com/pytorch/pytorch/issues/126510,
https://github.com/hiyouga/LLaMA-Factory/issues/3715,
https://github.com/pytorch/pytorch/issues/73656, https://github.com/kubeflow/trainer/issues/1636
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom, Unknown
from torchdoctor.model import Confidence, Finding, Step

FAMILY = "distributed"
FINDS = (
    "rendezvous-port-in-use",
    "master-unreachable",
    "node-rank-wrong",
    "service-mesh-blocks",
    "nccl-comm-id-bad",
)

NOISE = ("97", "10049")
"""Numbers of an attempt that is followed by another one."""
APART = (
    "client-timed-out",
    "store-timed-out",
    "rendezvous-failed",
    "nccl-connect-failed",
    "mesh-proxy",
    "slurm-node-rank-early",
    "gloo-connect-failed",
)
WAITING = ("store-timed-out", "rendezvous-failed", "hang-told")
HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - read, never bound
CRASHED = ("rank-exception", "torchrun-root-cause", "loader-killed", "host-oom")
C10D = "torchrun --nnodes=2 --nproc-per-node=gpu --rdzv-backend=c10d --rdzv-endpoint=NODE0:29500"


def check(
    symptoms: tuple[Symptom, ...],
    variables: Mapping[str, str] | Unknown,
) -> Iterator[Finding]:
    """Read what failed at the meeting point, and what the launch was told."""
    taken = distributed.first(symptoms, "address-in-use")
    twice = _same_number(symptoms) if taken and _on_several_nodes(symptoms) else None
    if taken and twice:
        yield _node_rank(twice, (taken,))
        return
    if taken:
        yield _port(taken)
    if bad := distributed.first(symptoms, "nccl-comm-id-invalid"):
        yield _comm_id(bad)
    refused = [
        s
        for s in distributed.told(symptoms, "client-timed-out")
        if s.values.get("errno") not in NOISE
    ]
    waited = distributed.told(symptoms, *WAITING)
    failed = (*refused, *waited)
    early = distributed.first(symptoms, "slurm-node-rank-early")
    if early or (failed and (early := _unnumbered(symptoms) or _same_number(symptoms))):
        yield _node_rank(early, failed)
        return
    lost = ("gloo-peer-closed", "store-connection-lost")
    broken = (*refused, *distributed.told(symptoms, *APART[1:4], *lost))
    if broken and (proxy := distributed.first(symptoms, "mesh-proxy")):
        yield _mesh(proxy, broken[0])
    elif (refused or _not_joined(symptoms)) and not distributed.told(symptoms, *CRASHED):
        yield _unreachable(refused, _not_joined(symptoms), symptoms, variables)


def _not_joined(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return that some nodes or processes never came."""
    for said in distributed.told(symptoms, "store-timed-out", "rendezvous-failed"):
        if "all" in said.values or said.name == "rendezvous-failed":
            return said
    return None


def _unnumbered(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return a launch on several nodes with a static meeting point and no node rank."""
    for line in distributed.told(symptoms, "launch-line"):
        values = line.values
        several = values.get("nnodes", "1").isdecimal() and int(values.get("nnodes", "1")) > 1
        static = "backend" not in values and "master" in values and "torch" in values["launcher"]
        if several and static and "node_rank" not in values:
            return line
    return None


def _same_number(symptoms: tuple[Symptom, ...]) -> Symptom | None:
    """Return a launch on several nodes that is shown twice with one node rank."""
    seen: set[str] = set()
    for line in distributed.told(symptoms, "launch-line"):
        number = line.values.get("node_rank", "")
        if line.values.get("nnodes", "1") in ("1", "1:1") or not number.isdecimal():
            continue
        if number in seen or "times" in line.values:
            return line
        seen.add(number)
    return None


def _on_several_nodes(symptoms: tuple[Symptom, ...]) -> bool:
    """Tell whether launches are shown of which it is told that they are of different machines.

    The same command twice may be a second try on one machine, where the first still runs.
    """
    places = {s.values.get("node", "") for s in distributed.told(symptoms, "launch-place")}
    return len(places) > 1


def _port(said: Symptom) -> Finding:
    port = said.values.get("port", "")
    which = f"Port {port}" if port else "The port of the rendezvous"
    step = distributed.in_launch(
        "use-a-free-port",
        "End the run that holds the port if it is a dead one, or let torchrun take a free one:"
        " --standalone (on several nodes, another --rdzv-endpoint port)",
        why="Two jobs on one machine cannot share a port.",
        settles=("address-in-use", "nccl-wrong-peer"),
        bash=(
            f"ss -ltnp 'sport = :{port or 29500}'",
            "torchrun --standalone --nproc-per-node=gpu train.py",
        ),
    )
    return Finding(
        "rendezvous-port-in-use",
        "error",
        f"{which} is taken by another process: a second job, or one that a dead run left.",
        distributed.seen(said),
        (step,),
    )


def _comm_id(said: Symptom) -> Finding:
    step = distributed.unset(
        "NCCL_COMM_ID",
        why="torch makes one by itself.",
        settles=("nccl-comm-id-invalid",),
    )
    return Finding(
        "nccl-comm-id-bad",
        "error",
        "NCCL_COMM_ID is set to what is no address and port; torch needs it not.",
        distributed.seen(said),
        (step,),
    )


def _node_rank(said: Symptom, failed: tuple[Symptom, ...]) -> Finding:
    early = said.name == "slurm-node-rank-early"
    if early:
        summary = "The node rank is taken from Slurm's variable before srun runs, so every node is"
        summary += " number 0."
    elif number := said.values.get("node_rank"):
        summary = f"Two nodes are started as number {number}: each needs a --node-rank of its own."
    else:
        summary = "The launch on several nodes gives no --node-rank, so every node is number 0."
    step = distributed.in_launch(
        "node-rank-by-rendezvous",
        "Leave node ranks to the rendezvous: --rdzv-backend=c10d --rdzv-endpoint=NODE0:29500"
        " (or quote it for each node: srun bash -c '... --node-rank $SLURM_NODEID')",
        why="The c10d rendezvous numbers the nodes by itself.",
        settles=(*APART, *WAITING, "address-in-use"),
        bash=(f"srun {C10D} train.py",) if early else (f"{C10D} train.py",),
    )
    return Finding(
        "node-rank-wrong",
        "error" if failed else "warning",
        summary,
        distributed.seen(said, *failed[:1]),
        (step,),
        confidence="likely",
    )


def _mesh(proxy: Symptom, failed: Symptom) -> Finding:
    step = distributed.in_launch(
        "take-out-of-mesh",
        'Take the pods out of the mesh (annotation sidecar.istio.io/inject: "false";'
        " linkerd.io/inject: disabled), and let a NetworkPolicy pass traffic between them",
        why="The proxy takes connections that it does not know, and closes them.",
        settles=(*APART, "gloo-peer-closed"),
    )
    return Finding(
        "service-mesh-blocks",
        "error",
        "The pods run beside a mesh proxy or under a network policy, which takes the traffic of the"
        " rendezvous.",
        distributed.seen(proxy, failed),
        (step,),
        confidence="likely",
    )


def _unreachable(
    refused: list[Symptom],
    lonely: Symptom | None,
    symptoms: tuple[Symptom, ...],
    variables: Mapping[str, str] | Unknown,
) -> Finding:
    host, port = _address(refused, symptoms, variables)
    own = distributed.first(symptoms, "local-address")
    addresses = own.values["addresses"].split() if own else []
    line = distributed.first(symptoms, "launch-line", "launch-size")
    alone = line is not None and line.values.get("nnodes") in ("1", "1:1")
    confidence: Confidence = "likely" if refused else "possible"
    what = f"{host or 'The meeting point'}{f':{port}' if port else ''} cannot be reached"
    if alone and addresses and host not in (*addresses, *HERE):
        what = f"MASTER_ADDR {host} is no address of this machine ({', '.join(addresses)}), and the"
        what += " job is of one node"
        confidence = "certain"
    elif lonely and not refused:
        what = (
            "Some processes of this one machine never came to the meeting point: mostly they died"
            if alone
            else "Some of the nodes never came to the meeting point"
        )
    return Finding(
        "master-unreachable",
        "error",
        f"{what}.",
        distributed.seen(*refused[:1], lonely, own),
        (_meet(host, port, alone=alone or host in HERE),),
        confidence=confidence,
        because_of=("rendezvous-port-in-use", "hostname-loopback"),
    )


def _address(
    refused: list[Symptom], symptoms: tuple[Symptom, ...], variables: Mapping[str, str] | Unknown
) -> tuple[str, str]:
    values = refused[0].values if refused else {}
    line = distributed.first(symptoms, "launch-line")
    told = line.values.get("master", "") if line else ""
    host = distributed.variable(variables, "MASTER_ADDR") or told or values.get("host", "")
    port = values.get("port") or distributed.variable(variables, "MASTER_PORT") or ""
    return host.removeprefix("::ffff:"), port


def _meet(host: str, port: str, *, alone: bool) -> Step:
    if alone:
        return distributed.in_launch(
            "meet-on-this-machine",
            "Start with --standalone, and without MASTER_ADDR: all processes are on this machine",
            why="torchrun then meets on the machine itself, on a free port.",
            settles=APART,
            bash=("torchrun --standalone --nproc-per-node=gpu train.py",),
        )
    return distributed.in_launch(
        "reach-node-0",
        "See from another node whether node 0 can be reached while it waits; if not, give an"
        " address of node 0 that can, or open the port (and those that are taken later)",
        why="Every process connects to node 0 first, then to every other.",
        settles=APART,
        bash=(f"nc -zv {host or 'NODE0'} {port or 29500}", f"{C10D} train.py"),
    )
