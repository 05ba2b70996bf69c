"""Interfaces for NCCL and gloo, chosen and wrong."""

from __future__ import annotations

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

FOR_GLOO = "[enforce fail at device.cc:84] ifa != nullptr. Unable to find address for: ^lo"
NONE = "bootstrap.cc:37 NCCL WARN Bootstrap : no socket interface found"
FAMILY = "ncclSocketInit: connecting to address with family 0 is neither AF_INET(2) nor AF_INET6"
REFUSED = "Gloo connectFullMesh failed with [pair.cc:152], remote=[{}]:14215 (rank=8, size=16)"
UNRESOLVED = "Unable to resolve hostname to a (local) address. Using the loopback address"
TWO_NODES = "nnodes=2 nproc_per_node=8"
DOCKER = "n1:1:1 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>"
ETHERNET = "n1:1:1 [0] NCCL INFO Bootstrap : Using eth0:192.0.2.1<0>"
CONNECT = "NCCL WARN Connect to 172.17.0.1<40011> failed : Connection refused"


def test_the_form_of_nccl_is_wrong_for_gloo(judge: Judge, cure: Planner) -> None:
    variables = {"GLOO_SOCKET_IFNAME": "^lo,docker"}
    outcome = judge(symptoms=said(FOR_GLOO), variables=variables)
    assert names(outcome) == {"wrong-socket-ifname": "error"}
    assert "GLOO_SOCKET_IFNAME=^lo,docker is the form of NCCL_SOCKET_IFNAME" in summaries(outcome)
    plan = cure(symptoms=said(FOR_GLOO), variables=variables)
    assert "ip route get MASTER_ADDR" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_the_variable_alone_is_a_warning(judge: Judge) -> None:
    outcome = judge(variables={"GLOO_SOCKET_IFNAME": "^lo"})
    assert names(outcome) == {"wrong-socket-ifname": "warning"}
    assert judge(variables={"GLOO_SOCKET_IFNAME": "eth0"}).status == "clear"
    assert judge(variables={"NCCL_SOCKET_IFNAME": "^lo,docker"}).status == "clear"


def test_a_name_that_is_none_here_is_unset(judge: Judge, cure: Planner) -> None:
    variables = {"NCCL_SOCKET_IFNAME": "ib7"}
    outcome = judge(symptoms=said(NONE), variables=variables)
    assert names(outcome) == {"wrong-socket-ifname": "error"}
    assert "NCCL_SOCKET_IFNAME=ib7" in summaries(outcome)
    plan = cure(symptoms=said(NONE), variables=variables)
    assert first_command(plan) == "unset NCCL_SOCKET_IFNAME"
    assert plan.verdict == "healthy"


def test_without_the_variable_it_is_likely(judge: Judge) -> None:
    assert judge(symptoms=said(NONE)).findings[0].confidence == "likely"
    assert names(judge(symptoms=said(FAMILY))) == {"wrong-socket-ifname": "error"}


def test_versions_that_differ_explain_the_address_family(judge: Judge) -> None:
    packages = ("nvidia-nccl-cu12==2.20.5", "nvidia-nccl-cu12==2.19.3")
    assert judge(symptoms=said(FAMILY, *packages)).status == "clear"


def test_lo_between_nodes_is_a_warning_and_on_one_machine_nothing(judge: Judge) -> None:
    variables = {"NCCL_SOCKET_IFNAME": "lo", "NNODES": "2"}
    assert names(judge(variables=variables)) == {"wrong-socket-ifname": "warning"}
    assert judge(variables={"NCCL_SOCKET_IFNAME": "lo"}).status == "clear"


def test_an_interface_of_docker_cannot_be_reached(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(DOCKER, CONNECT))
    assert names(outcome) == {"wrong-socket-ifname": "error"}
    assert "docker0 (172.17.0.1)" in summaries(outcome)
    plan = cure(symptoms=said(DOCKER, CONNECT), variables={})
    assert first_command(plan) == "export NCCL_SOCKET_IFNAME='^lo,docker,veth,virbr,br-'"
    assert judge(symptoms=said(DOCKER)).status == "clear"
    assert judge(symptoms=said(ETHERNET)).status == "clear"


def test_a_peer_that_refuses_is_possible_and_its_way_is_asked_for(
    judge: Judge, cure: Planner
) -> None:
    text = said(CONNECT.replace("172.17.0.1", "192.0.2.9"))
    outcome = judge(symptoms=text)
    assert names(outcome) == {"peer-unreachable": "error"}
    assert outcome.findings[0].confidence == "possible"
    plan = cure(symptoms=text)
    assert first_command(plan) == "ip route get 192.0.2.9"
    assert plan.verdict == "healthy"


def test_a_peer_with_an_address_of_docker_is_likely_its_interface(judge: Judge) -> None:
    assert names(judge(symptoms=said(CONNECT))) == {"wrong-socket-ifname": "error"}


def test_a_peer_that_died_refuses_for_that(judge: Judge) -> None:
    text = said(CONNECT.replace("172.17.0.1", "192.0.2.9"), "[rank1]: ValueError: bad label")
    assert judge(symptoms=text).status == "clear"


def test_a_loopback_address_between_nodes_is_the_name_of_the_host(
    judge: Judge, cure: Planner
) -> None:
    text = said(UNRESOLVED, REFUSED.format("127.0.0.1"), TWO_NODES)
    outcome = judge(symptoms=text)
    assert names(outcome) == {"hostname-loopback": "error"}
    assert "127.0.0.1" in summaries(outcome)
    assert cure(symptoms=text).verdict == "healthy"


def test_debians_own_address_is_likely_even_where_the_nodes_are_not_told(judge: Judge) -> None:
    outcome = judge(symptoms=said(REFUSED.format("127.0.1.1")))
    assert outcome.findings[0].confidence == "likely"


def test_127_0_0_1_on_one_machine_and_a_real_address_are_nothing(judge: Judge) -> None:
    assert judge(symptoms=said(REFUSED.format("127.0.0.1"))).status == "clear"
    assert judge(symptoms=said(REFUSED.format("192.0.2.7"), TWO_NODES)).status == "clear"


def test_a_name_that_resolves_to_nothing_is_a_note_or_between_nodes_a_warning(
    judge: Judge,
) -> None:
    assert names(judge(symptoms=said(UNRESOLVED))) == {"hostname-loopback": "note"}
    both = said(UNRESOLVED, TWO_NODES)
    assert names(judge(symptoms=both)) == {"hostname-loopback": "warning"}
