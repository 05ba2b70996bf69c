from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import Judge, Planner
from torchdoctor.facts import Limits, Network, Platform, Unknown
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
