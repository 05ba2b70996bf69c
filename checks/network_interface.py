"""NCCL and gloo use a network interface that exists and that the other nodes reach.

How it shows: NCCL's "Bootstrap : no socket interface found"; gloo's "Unable to find address for:
^lo"; "Gloo connectFullMesh failed ... remote=[127.0.1.1]" on a job of several nodes, after "Unable
to resolve hostname to a (local) address"; "Connection refused" for an address of docker0.

Why: NCCL_SOCKET_IFNAME takes prefixes and exclusions (``^docker,lo``), GLOO_SOCKET_IFNAME one real
name and nothing else (wrong-socket-ifname). Without it gloo binds to what the host's own name
resolves to, and Debian's installer writes that name beside 127.0.1.1 into /etc/hosts: the other
nodes are then told to come to 127.0.1.1 (hostname-loopback).

Where NCCL's own ports are refused (peer-unreachable), it is a firewall, a container without
``--network=host``, or a rank that is gone; the port of the rendezvous being open proves nothing.

Neighbours: 127.0.0.1 refused on one machine is a process that died, not an address. A refused
MASTER_ADDR is master-unreachable.

The fix: ``ip route get MASTER_ADDR`` names the interface (after ``dev``); set both variables to it
on every node. Or mend the line of /etc/hosts.

Sources: https://github.com/aws-samples/aws-do-eks/pull/51,
https://github.com/aws-samples/aws-do-eks/pull/69, https://github.com/NVIDIA/nccl/issues/1837
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom, Unknown
from torchdoctor.model import Confidence, Evidence, Finding, Severity

FAMILY = "distributed"
FINDS = ("wrong-socket-ifname", "hostname-loopback", "peer-unreachable")

GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
NOT_BETWEEN_NODES = ("docker", "veth", "virbr", "br-", "cni", "cali", "lxc", "tailscale")
OF_DOCKER = ("172.17.", "172.18.", "127.", "169.254.", "192.168.122.")
DIED = ("rank-exception", "torchrun-root-cause", "host-oom", "nccl-peer-closed")
LOOPBACK = ("gloo-connect-failed", "hostname-unresolved", "hosts-loopback")


def check(
    symptoms: tuple[Symptom, ...] | Unknown,
    variables: Mapping[str, str] | Unknown,
) -> Iterator[Finding]:
    """Compare what was chosen, by a variable or by itself, with what was refused."""
    gloo = distributed.variable(variables, GLOO)
    nccl = distributed.variable(variables, NCCL)
    many = nodes(symptoms, variables) > 1
    unknown = distributed.first(symptoms, "gloo-interface-unknown")
    if unknown or (gloo is not None and _is_list(gloo)):
        yield _for_gloo(unknown, gloo)
    none = distributed.first(symptoms, "nccl-no-interface", "nccl-address-family")
    if none and not _packages_differ(symptoms):
        yield _for_nccl(none, nccl)
    elif many and nccl == "lo":
        yield _for_nccl(None, nccl)
    elif chosen := _inside_only(symptoms):
        yield _chosen(chosen, distributed.first(symptoms, "nccl-connect-failed"))
    elif not distributed.told(symptoms, *DIED):
        found = distributed.told(symptoms, "nccl-connect-failed")
        yield from map(_refused, sorted(found, key=lambda said: "peer" not in said.values)[:1])
    yield from _loopback(symptoms, many=many)


def nodes(symptoms: tuple[Symptom, ...] | Unknown, variables: Mapping[str, str] | Unknown) -> int:
    """Return of how many nodes the job is, as far as anything tells; 1 where nothing does."""
    said = [
        s.values.get("nnodes", "") for s in distributed.told(symptoms, "launch-line", "launch-size")
    ]
    said += [distributed.variable(variables, n) or "" for n in ("NNODES", "SLURM_NNODES")]
    counts = [int(one.rpartition(":")[2]) for one in said if one.rpartition(":")[2].isdecimal()]
    return max(counts, default=1)


def _is_list(value: str) -> bool:
    return any(mark in value for mark in "^,=") or not value.strip()


def _packages_differ(symptoms: tuple[Symptom, ...] | Unknown) -> bool:
    """Tell whether the nodes have several versions of NCCL: that is told by another check."""
    found = {
        (s.values.get("cuda"), s.values["version"])
        for s in distributed.told(symptoms, "nccl-package", "nccl-version-line")
    }
    return len({cuda for cuda, _ in found}) < len(found)


def _inside_only(symptoms: tuple[Symptom, ...] | Unknown) -> Symptom | None:
    """Return that NCCL took an interface that ends at this machine, where it then failed."""
    if not distributed.first(symptoms, "nccl-connect-failed", "hang-told"):
        return None
    taken = distributed.told(symptoms, "nccl-interface")
    return next((s for s in taken if s.values["interface"].startswith(NOT_BETWEEN_NODES)), None)


def _refused(said: Symptom) -> Finding:
    """Return that a peer's address is refused: one that ends at its machine, or another one."""
    peer = said.values.get("peer", "").partition("<")[0]
    inside = peer.startswith(OF_DOCKER)
    summary = (
        f"A rank is to be reached at {peer}, an address that ends at its own machine."
        if inside
        else f"NCCL cannot reach {peer or 'another rank'} ({said.values['reason'].lower()}), and"
        " no rank says that it died."
    )
    step = distributed.in_launch(
        "reach-peer",
        "Start the containers with --network=host, or set NCCL_SOCKET_IFNAME to the interface by"
        " which the nodes reach each other"
        if inside
        else "See by which interface that address is reached; set NCCL_SOCKET_IFNAME to it on every"
        " node, and let a firewall pass all ports between the nodes",
        why="NCCL takes a free port of each rank, not the one of the rendezvous.",
        settles=distributed.INTERFACE_IS_WRONG,
        bash=(f"ip route get {peer or 'PEER'}",),
    )
    return Finding(
        "wrong-socket-ifname" if inside else "peer-unreachable",
        "error",
        summary,
        distributed.seen(said),
        (step,),
        confidence="likely" if inside else "possible",
        because_of=("rank-crashed-first", "host-oom-killed"),
    )


def _for_gloo(said: Symptom | None, value: str | None) -> Finding:
    name = value if value is not None else (said.values["interface"] if said else "")
    form = _is_list(name)
    fault = (
        "is the form of NCCL_SOCKET_IFNAME; gloo takes one real interface name"
        if form
        else "names no network interface of this machine"
    )
    severity: Severity = "error" if said else "warning"
    known = () if value is None else (distributed.value(GLOO, value),)
    return Finding(
        "wrong-socket-ifname",
        severity,
        f"{GLOO}={name} {fault}.",
        (*distributed.seen(said), *known),
        (distributed.find_interface(GLOO, why="Exclusions (^lo) and lists are for NCCL only."),),
    )


def _for_nccl(said: Symptom | None, value: str | None) -> Finding:
    settles = distributed.INTERFACE_IS_WRONG
    if value is None:
        summary = "NCCL finds no network interface that it can use."
        steps = (distributed.find_interface(NCCL, why="NCCL then has not to choose."),)
        confidence: Confidence = "likely"
    else:
        fault = "ends at this machine" if value == "lo" else "names no network interface here"
        summary = f"{NCCL}={value} {fault}."
        why = "NCCL chooses by itself, or takes a name that `ip -br addr` shows."
        steps = (distributed.unset(NCCL, why=why, settles=settles),)
        confidence = "certain"
    known = () if value is None else (distributed.value(NCCL, value),)
    return Finding(
        "wrong-socket-ifname",
        "error" if said else "warning",
        summary,
        (*distributed.seen(said), *known),
        steps,
        confidence=confidence,
    )


def _chosen(taken: Symptom, failed: Symptom | None) -> Finding:
    interface, address = taken.values["interface"], taken.values["address"]
    step = distributed.assign(
        NCCL,
        "^lo,docker,veth,virbr,br-",
        why="NCCL then leaves out the interfaces that end at this machine.",
        settles=(*distributed.INTERFACE_IS_WRONG, "hang-told"),
    )
    return Finding(
        "wrong-socket-ifname",
        "error",
        f"NCCL took {interface} ({address}), an interface that other nodes cannot reach.",
        distributed.seen(taken, failed),
        (step,),
        confidence="likely",
    )


def _loopback(symptoms: tuple[Symptom, ...] | Unknown, *, many: bool) -> Iterator[Finding]:
    refused = next(
        (
            s
            for s in distributed.told(symptoms, "gloo-connect-failed")
            if s.values["remote"].startswith("127.")
        ),
        None,
    )
    unresolved = distributed.first(symptoms, "hostname-unresolved")
    own_name = refused is not None and not refused.values["remote"].startswith("127.0.0.1")
    if refused and (many or unresolved or own_name):
        hosts = distributed.first(symptoms, "hosts-loopback")
        yield Finding(
            "hostname-loopback",
            "error",
            f"Another node is told to come to {refused.values['remote']}: the host's own name"
            " resolves to a loopback address.",
            distributed.seen(refused, unresolved, hosts),
            (distributed.find_interface(GLOO, why="gloo then binds to it.", settles=LOOPBACK),),
            confidence="certain" if many else "likely",
        )
    elif unresolved and not refused:
        evidence: tuple[Evidence, ...] = distributed.seen(unresolved)
        yield Finding(
            "hostname-loopback",
            "warning" if many else "note",
            "This host's own name resolves to no address of it, so gloo takes the loopback one;"
            " other nodes could not reach it.",
            evidence,
            (distributed.find_interface(GLOO, why="gloo then binds to it.", settles=LOOPBACK),)
            if many
            else (),
        )
