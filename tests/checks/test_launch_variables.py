from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.make import dist
from tests.conftest import Judge, Planner
from torchdoctor.facts import Build, Unknown
from torchdoctor.model import Finding
from torchdoctor.tables import load

NEW, OLD = Build("2.6.0+cu124"), Build("1.13.1+cu117")
WHOLE = (dist("torch", "2.6.0"),)


def found(judge: Judge, torch: object = NEW, **variables: str) -> list[Finding]:
    return list(judge(variables=variables, torch=torch, distributions=WHOLE).findings)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_SOCKET_IFNAM", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCKET_IF_NAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
        ("NCCL_IB_GID_IDX", "NCCL_IB_GID_INDEX"),
        ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
    ],
)
def test_a_misspelt_name_is_told_with_the_one_that_was_meant(
    judge: Judge, name: str, meant: str
) -> None:
    (finding,) = found(judge, **{name: "1"})
    assert (finding.name, finding.severity) == ("nccl-variable-unknown", "warning")
    assert f"{meant} is" in finding.summary
    assert finding.steps[0].commands.bash == (f"unset {name}",)


@pytest.mark.parametrize(
    "name",
    [
        *("NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_VERSION", "NCCL_HOME"),
        *("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "NCCL_FUTURE_FEATURE", "NCCL_P2P_DISABLE_LATER"),
        *("NV_LIBNCCL_PACKAGE", "GLOO_SOCKET_IFNAME", "OFI_NCCL_PROTOCOL"),
    ],
)
def test_known_names_and_those_like_no_known_one_are_let_be(judge: Judge, name: str) -> None:
    assert found(judge, **{name: "x"}) == []


def test_no_known_name_is_taken_for_a_misspelt_one(judge: Judge) -> None:
    known = [f"NCCL_{name}" for name in load("variables")["nccl"]["names"].split()]
    known += [f"TORCH_NCCL_{name}" for name in load("variables")["torch"]["names"].split()]
    names = {f.name for f in found(judge, **dict.fromkeys(known, "x"))}
    assert names == {"nccl-variable-left-over"}  # NCCL_COMM_ID, whatever it is
    assert len(known) > 200


def test_a_name_of_torch_s_that_was_renamed_is_told_where_torch_is_new_enough(
    judge: Judge,
) -> None:
    (finding,) = found(judge, NCCL_BLOCKING_WAIT="1")
    assert finding.name == "nccl-variable-renamed"
    assert "TORCH_NCCL_BLOCKING_WAIT" in finding.summary
    assert found(judge, OLD, NCCL_BLOCKING_WAIT="1") == []
    assert found(judge, Unknown(), NCCL_BLOCKING_WAIT="1") == []


def test_what_was_set_to_find_a_fault_is_a_note(judge: Judge) -> None:
    (finding,) = found(judge, NCCL_P2P_DISABLE="1")
    assert (finding.name, finding.severity) == ("nccl-variable-left-over", "note")
    assert found(judge, NCCL_P2P_DISABLE="0") == []


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 is not below WORLD_SIZE=2"),
        ({"RANK": "0"}, "WORLD_SIZE is not"),
        ({"WORLD_SIZE": "8", "LOCAL_RANK": "0"}, "RANK is not"),
        ({"RANK": "zero", "WORLD_SIZE": "2"}, "RANK=zero is no number"),
        ({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "3"}, "LOCAL_RANK=3 is above RANK=1"),
        ({"LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "2"}, "LOCAL_RANK=2 is not below"),
        (
            {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "8"},
            "LOCAL_WORLD_SIZE=8 is above WORLD_SIZE=2",
        ),
        ({"GROUP_RANK": "1", "GROUP_WORLD_SIZE": "1"}, "GROUP_RANK=1 is not below"),
        (
            {"RANK": "0", "WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "4"},
            "WORLD_SIZE=8 on one node, and LOCAL_WORLD_SIZE=4",
        ),
    ],
)
def test_numbers_of_a_job_that_cannot_be_are_told(
    judge: Judge, variables: dict[str, str], why: str
) -> None:
    (finding,) = found(judge, **variables)
    assert finding.name == "launch-variables-inconsistent"
    assert why in finding.summary


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"},
        {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"},
        {"LOCAL_RANK": "0"},
        {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
        {"RANK": "7", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "1"},
        # Nodes may have different numbers of GPUs.
        {"RANK": "7", "WORLD_SIZE": "12", "LOCAL_WORLD_SIZE": "8", "GROUP_WORLD_SIZE": "2"},
    ],
)
def test_numbers_of_a_job_that_can_be_are_let_be(judge: Judge, variables: dict[str, str]) -> None:
    assert found(judge, **variables) == []


def test_variables_of_a_text_are_not_all_there_are(judge: Judge) -> None:
    given = {"RANK": "0", "MASTER_ADDR": "192.0.2.1"}
    row = replace(WHOLE[0], metadata="")
    for listed in (Unknown("a text"), (), (row,)):
        assert judge(variables=given, torch=NEW, distributions=listed).findings == ()
    wrong = judge(variables={"RANK": "2", "WORLD_SIZE": "2"}, torch=NEW, distributions=())
    assert wrong.status == "found"


def test_the_steps_cure_and_take_all_of_a_foreign_job_away(cure: Planner) -> None:
    plan = cure(variables={"RANK": "2", "WORLD_SIZE": "2", "NCCL_SOCKET_IFNAM": "eth0"}, torch=NEW)
    assert plan.verdict == "healthy"
    assert {line for step in plan.steps for line in step.step.commands.bash} == {
        "unset RANK WORLD_SIZE",
        "unset NCCL_SOCKET_IFNAM",
    }


@pytest.mark.parametrize(
    "variables",
    [
        {"MASTER_ADDR": "localhost", "NNODES": "2"},
        {"MASTER_ADDR": "127.0.0.1", "GROUP_WORLD_SIZE": "4"},
        {"MASTER_ADDR": "127.0.1.1", "SLURM_STEP_NUM_NODES": "2"},
        {"MASTER_ADDR": "::1", "NNODES": "2"},
    ],
)
def test_a_meeting_point_that_is_each_node_itself_is_told(
    judge: Judge, cure: Planner, variables: dict[str, str]
) -> None:
    (finding,) = found(judge, **variables)
    assert (finding.name, finding.severity) == ("master-unreachable", "warning")
    assert f"MASTER_ADDR={variables['MASTER_ADDR']} is each machine itself" in finding.summary
    assert cure(variables=variables, torch=NEW).verdict == "healthy"


@pytest.mark.parametrize(
    "variables",
    [
        {"MASTER_ADDR": "node0", "NNODES": "2"},
        {"MASTER_ADDR": "localhost", "NNODES": "1"},
        {"MASTER_ADDR": "localhost"},
        {"MASTER_ADDR": "localhost", "SLURM_NNODES": "2"},  # of the allocation, not of this job
        {"MASTER_ADDR": "localhost", "NNODES": "1:2"},
        {"NNODES": "2"},
    ],
)
def test_a_meeting_point_that_may_be_right_is_let_be(
    judge: Judge, variables: dict[str, str]
) -> None:
    assert found(judge, **variables) == []


def test_an_address_for_all_communicators_is_a_fault_and_not_only_a_cost(
    judge: Judge, cure: Planner
) -> None:
    (finding,) = found(judge, NCCL_COMM_ID="10.0.0.1:3000")
    assert (finding.name, finding.severity) == ("nccl-variable-left-over", "warning")
    assert finding.steps[0].commands.bash == ("unset NCCL_COMM_ID",)
    assert cure(variables={"NCCL_COMM_ID": "10.0.0.1:3000"}, torch=NEW).verdict == "healthy"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("NCCL_NET", "Socket", True),
        ("NCCL_NET", "IB", False),
        ("NCCL_DEBUG", "trace", True),
        ("NCCL_DEBUG", "INFO", False),
        ("TORCH_NCCL_ENABLE_MONITORING", "0", True),
        ("TORCH_NCCL_ENABLE_MONITORING", "1", False),
        ("NCCL_MULTI_RANK_GPU_ENABLE", "1", True),
        ("NCCL_MULTI_RANK_GPU_ENABLE", "0", False),
    ],
)
def test_what_is_set_for_a_test_is_told_with_what_it_costs_and_only_then(
    judge: Judge, name: str, value: str, *, told: bool
) -> None:
    assert [f.name for f in found(judge, **{name: value})] == ["nccl-variable-left-over"] * told


def test_without_variables_nothing_can_be_told(judge: Judge) -> None:
    assert judge(variables=Unknown("not told"), torch=NEW).status == "unknown"
