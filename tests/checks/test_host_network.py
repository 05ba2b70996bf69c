from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import Judge, Planner
from torchdoctor.facts import Limits, Nccl, Network, Platform, Unknown
from torchdoctor.model import Finding

LINUX = Platform("linux", "x86_64")
HOST = Network(("docker0", "eth0", "ib0", "lo"), own_addresses=("127.0.1.1",))
WELL = Limits(open_files=1 << 20, locked_memory=None)


def found(judge: Judge, network: object = HOST, limits: object = WELL, **v: str) -> list[Finding]:
    return list(judge(network=network, limits=limits, variables=v, platform=LINUX).findings)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GLOO_SOCKET_IFNAME", "eth1"),
        ("GLOO_SOCKET_IFNAME", "eth0,eth1"),
        ("NCCL_SOCKET_IFNAME", "enp"),
        ("NCCL_SOCKET_IFNAME", "=eth"),
        ("NCCL_SOCKET_IFNAME", "^docker,eth,ib,lo"),
    ],
)
def test_an_interface_that_is_not_here_is_told(judge: Judge, variable: str, value: str) -> None:
    (finding,) = found(judge, **{variable: value})
    assert (finding.name, finding.severity) == ("wrong-socket-ifname", "warning")
    assert f"{variable}={value}" in finding.summary
    assert finding.steps[0].commands.bash == (f"unset {variable}",)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GLOO_SOCKET_IFNAME", "eth0"),
        ("GLOO_SOCKET_IFNAME", "^docker"),  # told by network-interface
        ("NCCL_SOCKET_IFNAME", "eth"),
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("NCCL_SOCKET_IFNAME", "^docker,lo"),
        ("NCCL_SOCKET_IFNAME", "^=docker0"),
    ],
)
def test_an_interface_that_is_here_is_let_be(judge: Judge, variable: str, value: str) -> None:
    assert found(judge, **{variable: value}) == []


REFUSED = Nccl("/env/libnccl.so.2", 23007, 5, "Bootstrap : no socket interface found")
TOOK = Nccl("/env/libnccl.so.2", 23007, 0, "", "eth0", "10.0.0.7")
ELSEWHERE = {"MASTER_ADDR": "10.0.0.1", "GLOO_SOCKET_IFNAME": "eth0"}


def test_nccl_that_finds_no_interface_is_told_once_and_for_sure(
    judge: Judge, cure: Planner
) -> None:
    facts = {
        "network": HOST,
        "nccl": REFUSED,
        "limits": WELL,
        "variables": {"NCCL_SOCKET_IFNAME": "bogus0"},
        "platform": LINUX,
    }
    (finding,) = judge(**facts).findings
    assert (finding.name, finding.severity) == ("wrong-socket-ifname", "error")
    assert "With NCCL_SOCKET_IFNAME=bogus0 NCCL finds no network interface" in finding.summary
    assert finding.steps[0].commands.bash == ("unset NCCL_SOCKET_IFNAME",)
    assert cure(**facts).verdict == "healthy"


def test_nccl_that_finds_none_by_itself_is_given_one(judge: Judge) -> None:
    (finding,) = judge(
        network=HOST, nccl=REFUSED, limits=WELL, variables={}, platform=LINUX
    ).findings
    assert finding.steps[0].title.startswith("Set NCCL_SOCKET_IFNAME to the interface")


@pytest.mark.parametrize(
    ("interface", "address"),
    [("lo", "127.0.0.1"), ("docker0", "172.17.0.1"), ("veth7", "10.1.1.1")],
)
def test_an_interface_that_ends_here_is_told_where_a_job_has_several_hosts(
    judge: Judge, interface: str, address: str
) -> None:
    took = replace(TOOK, interface=interface, address=address)
    given = {"network": HOST, "nccl": took, "limits": WELL, "platform": LINUX}
    (finding,) = judge(**given, variables=ELSEWHERE).findings
    assert (finding.name, finding.severity) == ("wrong-socket-ifname", "warning")
    assert interface in finding.summary
    assert judge(**given, variables={}).findings == ()


@pytest.mark.parametrize("nccl", [TOOK, replace(TOOK, code=None), Unknown("it hung"), None])
def test_nccl_that_takes_a_real_interface_or_was_not_heard_is_let_be(
    judge: Judge, nccl: Nccl | Unknown | None
) -> None:
    given = {"network": HOST, "nccl": nccl, "limits": WELL, "platform": LINUX}
    assert judge(**given, variables=ELSEWHERE).findings == ()


@pytest.mark.parametrize(
    "variables", [{"MASTER_ADDR": "10.0.0.1"}, {"NNODES": "2"}, {"SLURM_NNODES": "4"}]
)
def test_a_loopback_address_for_the_own_name_is_told_where_a_job_has_several_hosts(
    judge: Judge, variables: dict[str, str]
) -> None:
    (finding,) = found(judge, **variables)
    assert finding.name == "hostname-loopback"
    assert "127.0.1.1" in finding.summary


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"MASTER_ADDR": "127.0.0.1"},
        {"MASTER_ADDR": "10.0.0.1", "GLOO_SOCKET_IFNAME": "eth0"},
        {"NNODES": "1"},
    ],
)
def test_it_is_let_be_on_one_host_or_where_an_interface_is_named(
    judge: Judge, variables: dict[str, str]
) -> None:
    assert found(judge, **variables) == []


def test_a_real_address_for_the_own_name_is_let_be(judge: Judge) -> None:
    right = replace(HOST, own_addresses=("10.0.0.7",))
    assert found(judge, right, MASTER_ADDR="10.0.0.1") == []


def test_little_memory_to_lock_is_told_where_there_is_infiniband(judge: Judge) -> None:
    fabric = replace(HOST, infiniband=("mlx5_0",))
    few = replace(WELL, locked_memory=64 << 10)
    (finding,) = found(judge, fabric, few)
    assert finding.name == "memlock-too-small"
    assert "64 KiB" in finding.summary
    assert found(judge, HOST, few) == []
    assert found(judge, fabric, WELL) == []


def test_few_open_files_are_told_on_linux(judge: Judge) -> None:
    (finding,) = found(judge, HOST, replace(WELL, open_files=256))
    assert finding.name == "open-files-limit"
    assert found(judge, HOST, replace(WELL, open_files=1024)) == []
    mac = judge(
        network=None, limits=replace(WELL, open_files=256), platform=Platform("darwin", "arm64")
    )
    assert mac.status == "clear"


def test_the_steps_cure(cure: Planner) -> None:
    plan = cure(
        network=replace(HOST, infiniband=("mlx5_0",)),
        limits=Limits(open_files=256, locked_memory=65536),
        variables={"MASTER_ADDR": "10.0.0.1"},
        platform=LINUX,
    )
    assert plan.verdict == "healthy"
    assert len(plan.steps) == 3


def test_what_was_not_looked_at_supports_nothing(judge: Judge) -> None:
    assert judge(network=Unknown("no probe"), limits=WELL).status == "unknown"
