"""The host's interfaces, its own name and its limits suit a job of several processes or hosts.

How it shows: gloo's "Unable to find address for: eth1"; NCCL's "Bootstrap : no socket interface
found"; "Gloo connectFullMesh failed ... remote=[127.0.1.1]"; "Call to ibv_reg_mr failed ... Cannot
allocate memory"; "Too many open files". Here it is told before anything is started.

Why: a variable from another machine names an interface that this one does not have; NCCL itself is
asked which one it takes, which needs no GPU (wrong-socket-ifname). Debian's installer writes the
host's own name beside 127.0.1.1 into /etc/hosts, and gloo gives that address to the other hosts of
a job (hostname-loopback). InfiniBand locks the memory that it sends from, and the usual limit is
64 KiB to 8 MiB (memlock-too-small). A process of a job has some dozens of files and sockets for
every other one (open-files-limit).

Neighbours: what was printed by a run that failed is judged by network-interface and infiniband.

The fix: ``ip -br addr`` for the names; the address of the interface in /etc/hosts; ``ulimit -l
unlimited`` and ``ulimit -n 65536`` (LimitMEMLOCK and LimitNOFILE of a service, --ulimit of docker).

Sources: torch/csrc/distributed/c10d/ProcessGroupGloo.cpp, NCCL src/os/linux.cc,
NCCL src/bootstrap.cc,
https://github.com/NVIDIA/nccl/issues/380, https://github.com/aws-samples/aws-do-eks/pull/69
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchdoctor import distributed_steps as distributed
from torchdoctor import steps
from torchdoctor.facts import Facts, Limits, Nccl, Network, Platform, Unknown
from torchdoctor.model import Evidence, Finding, Layer, Step

FAMILY = "distributed"
FINDS = ("wrong-socket-ifname", "hostname-loopback", "memlock-too-small", "open-files-limit")

GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
LOCKED = 64 << 20
"""Bytes of locked memory without which InfiniBand cannot work."""
FILES = 1024
HERE = ("localhost", "127.")
NO_INTERFACE = "no socket interface found"
INSIDE = ("lo", "docker", "veth", "virbr", "br-", "cni", "cali")
"""How interfaces are called that end at their machine."""


def check(
    network: Network | None,
    nccl: Nccl | Unknown | None,
    limits: Limits | Unknown,
    variables: Mapping[str, str] | Unknown,
    platform: Platform | Unknown,
) -> Iterator[Finding]:
    """Compare what the variables name with what is here, and the limits with what is needed."""
    if network is not None:
        given = distributed.variable(variables, GLOO)
        if given and not any(mark in given for mark in "^="):  # that form is told elsewhere
            yield from _named(GLOO, given, _lacking(given, network), network)
        given = distributed.variable(variables, NCCL)
        refused = isinstance(nccl, Nccl) and NO_INTERFACE in nccl.said
        if given and not refused and not _matched(given, network):
            yield from _named(NCCL, given, (given,), network)
        if _several_hosts(variables) and not given and not distributed.variable(variables, GLOO):
            yield from _own_name(network)
    if isinstance(nccl, Nccl):
        yield from _asked(nccl, variables)
    if isinstance(limits, Limits):
        yield from _limits(limits, network, platform)


def _lacking(given: str, network: Network) -> tuple[str, ...]:
    return tuple(name for name in given.split(",") if name not in network.interfaces)


def _matched(given: str, network: Network) -> bool:
    """Tell whether NCCL_SOCKET_IFNAME leaves an interface: prefixes, ``=`` names, ``^`` not."""
    rest = [name for name in given.lstrip("^=").split(",") if name]
    exact, inverted = "=" in given[:2], given.startswith("^")
    return any(
        inverted != any(name == one if exact else name.startswith(one) for one in rest)
        for name in network.interfaces
    )


def _named(
    variable: str, given: str, lacking: tuple[str, ...], network: Network
) -> Iterator[Finding]:
    if not lacking:
        return
    here = ", ".join(network.interfaces[:8])
    yield Finding(
        "wrong-socket-ifname",
        "warning",
        f"{variable}={given} names an interface that is not here ({here}).",
        (
            distributed.value(variable, given),
            Evidence("network.interfaces", here, "/sys/class/net"),
        ),
        (
            distributed.unset(
                variable, why="It is chosen without it.", settles=distributed.INTERFACE_IS_WRONG
            ),
        ),
    )


def _asked(nccl: Nccl, variables: Mapping[str, str] | Unknown) -> Iterator[Finding]:
    """Judge what NCCL answered: no interface, or one that ends at this machine."""
    given = distributed.variable(variables, NCCL)
    inside = nccl.address.startswith("127.") or nccl.interface.startswith(INSIDE)
    if NO_INTERFACE in nccl.said:
        what = f"With {NCCL}={given} NCCL" if given else "NCCL"
        summary = f"{what} finds no network interface on which its ranks could meet."
    elif nccl.code == 0 and inside and _several_hosts(variables):
        summary = f"NCCL takes {nccl.interface} ({nccl.address}), which other hosts cannot reach."
    else:
        return
    yield Finding(
        "wrong-socket-ifname",
        "error" if nccl.code else "warning",
        summary,
        (
            Evidence("nccl", nccl.said or f"{nccl.interface}:{nccl.address}", "ncclGetUniqueId"),
            *((distributed.value(NCCL, given),) if given else ()),
        ),
        (_choose_again(given),),
    )


def _choose_again(given: str | None) -> Step:
    """Return the step after which NCCL has to be asked again."""
    if given:
        return distributed.unset(
            NCCL, why="NCCL chooses by itself without it.", settles=distributed.INTERFACE_IS_WRONG
        )
    return distributed.find_interface(NCCL, why="NCCL then has not to choose.")


def _several_hosts(variables: Mapping[str, str] | Unknown) -> bool:
    """Tell whether a job of several hosts is set up here, as far as the variables tell."""
    nodes = [distributed.variable(variables, name) or "" for name in ("NNODES", "SLURM_NNODES")]
    if any(count.isdecimal() and int(count) > 1 for count in nodes):
        return True
    master = distributed.variable(variables, "MASTER_ADDR") or ""
    return bool(master) and not master.startswith(HERE)


def _own_name(network: Network) -> Iterator[Finding]:
    first = next(iter(network.own_addresses), "")
    if not first.startswith("127."):
        return

    def effect(now: Facts) -> Facts:
        before = now.network if isinstance(now.network, Network) else network
        return replace(now, network=replace(before, own_addresses=()))

    yield Finding(
        "hostname-loopback",
        "warning",
        f"/etc/hosts has {first} for this host's own name, so that gloo gives the other hosts an"
        " address that they cannot reach.",
        (Evidence("network.own_addresses", first, "/etc/hosts"),),
        (
            steps.by_hand(
                "mend-own-name",
                f"Put the address of this host beside its name in /etc/hosts, in place of {first}",
                why="gloo binds to what the host's own name stands for.",
                layer=Layer.LAUNCHER,
                cost=steps.SMALL,
                effect=effect,
                bash=("ip -br addr", "getent hosts $(hostname)"),
                admin=True,
            ),
        ),
    )


def _limits(
    limits: Limits, network: Network | None, platform: Platform | Unknown
) -> Iterator[Finding]:
    locked = limits.locked_memory
    if network and network.infiniband and locked and locked < LOCKED:
        yield Finding(
            "memlock-too-small",
            "warning",
            f"{locked >> 10} KiB of memory may be locked, and {network.infiniband[0]} (InfiniBand"
            " or RoCE) locks all that it sends from.",
            (
                Evidence("limits.locked_memory", f"{locked >> 10} KiB", "ulimit -l"),
                Evidence("network.infiniband", ", ".join(network.infiniband[:4]), "/sys/class"),
            ),
            (_raise("l", "locked_memory", "ulimit -l unlimited"),),
        )
    files = limits.open_files
    linux = isinstance(platform, Platform) and platform.system == "linux"
    if linux and files and files < FILES:
        yield Finding(
            "open-files-limit",
            "warning",
            f"A process may open {files} files: too few for the sockets of a job and the workers of"
            " its loaders.",
            (Evidence("limits.open_files", str(files), "ulimit -n"),),
            (_raise("n", "open_files", "ulimit -n 65536"),),
        )


def _raise(letter: str, field: str, command: str) -> Step:
    def effect(now: Facts) -> Facts:
        before = now.limits if isinstance(now.limits, Limits) else Limits()
        return replace(now, limits=replace(before, **{field: None}))

    return steps.by_hand(
        f"raise-ulimit-{letter}",
        "Raise the limit: LimitMEMLOCK and LimitNOFILE of the service, --ulimit of docker, or"
        " /etc/security/limits.d",
        why="It holds for every process that is started afterwards.",
        layer=Layer.LAUNCHER,
        cost=steps.SMALL,
        effect=effect,
        bash=(command,),
    )
