"""Where the processes of a job meet."""

from __future__ import annotations

import pytest

from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner

TAKEN = "The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)."
REFUSED = (
    "The client socket has timed out after 60000ms while trying to connect to (192.0.2.20, 29500)."
)
LONELY = "DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients joined."
STATIC = "torchrun --nnodes=2 --nproc_per_node=8 --master_addr=192.0.2.1 --master_port=29500 t.py"
EARLY = "export NODE_RANK=$SLURM_NODEID"
MESH = "containers: pytorch, istio-proxy"


def test_a_port_that_is_taken_is_looked_at_first(judge: Judge, cure: Planner) -> None:
    outcome = judge(symptoms=said(TAKEN))
    assert names(outcome) == {"rendezvous-port-in-use": "error"}
    assert "29500" in summaries(outcome)
    plan = cure(symptoms=said(TAKEN))
    assert first_command(plan) == "ss -ltnp 'sport = :29500'"
    assert plan.verdict == "healthy"


def test_an_address_that_nobody_answers_is_tried_from_another_node(
    judge: Judge, cure: Planner
) -> None:
    outcome = judge(symptoms=said(REFUSED))
    assert names(outcome) == {"master-unreachable": "error"}
    assert "192.0.2.20:29500" in summaries(outcome)
    plan = cure(symptoms=said(REFUSED))
    assert first_command(plan) == "nc -zv 192.0.2.20 29500"
    assert plan.verdict == "healthy"


def test_an_address_of_another_machine_is_certain_on_one_node(judge: Judge, cure: Planner) -> None:
    text = said(
        "nnodes=1", REFUSED.replace("192.0.2.20", "192.0.2.1"), "$ hostname -I", "192.0.2.77"
    )
    variables = {"MASTER_ADDR": "192.0.2.1"}
    outcome = judge(symptoms=text, variables=variables)
    assert "192.0.2.1 is no address of this machine (192.0.2.77)" in summaries(outcome)
    assert outcome.findings[0].confidence == "certain"
    assert "--standalone" in first_command(cure(symptoms=text, variables=variables))


def test_nodes_that_never_came_are_possible(judge: Judge) -> None:
    outcome = judge(symptoms=said(LONELY))
    assert names(outcome) == {"master-unreachable": "error"}
    assert outcome.findings[0].confidence == "possible"


def test_on_one_machine_processes_died_and_no_node_is_missed(judge: Judge) -> None:
    outcome = judge(symptoms=said("nnodes=1", LONELY))
    assert "of this one machine never came" in summaries(outcome)


def test_a_static_launch_without_node_ranks_makes_every_node_number_0(
    judge: Judge, cure: Planner
) -> None:
    text = said(STATIC, LONELY)
    assert names(judge(symptoms=text)) == {"node-rank-wrong": "error"}
    assert "--rdzv-backend=c10d" in first_command(cure(symptoms=text))


@pytest.mark.parametrize("more", ["--node_rank=1", "--rdzv-backend=c10d"])
def test_a_launch_with_ranks_or_with_c10d_is_not_to_blame(judge: Judge, more: str) -> None:
    text = said(STATIC.replace("t.py", f"{more} t.py"), LONELY)
    assert "node-rank-wrong" not in names(judge(symptoms=text))


def test_a_rank_that_is_taken_before_srun_is_a_warning_until_something_fails(
    judge: Judge, cure: Planner
) -> None:
    assert names(judge(symptoms=said(EARLY))) == {"node-rank-wrong": "warning"}
    assert names(judge(symptoms=said(EARLY, LONELY))) == {"node-rank-wrong": "error"}
    assert cure(symptoms=said(EARLY, LONELY)).verdict == "healthy"


def test_a_mesh_takes_the_traffic_where_something_failed(judge: Judge, cure: Planner) -> None:
    assert names(judge(symptoms=said(MESH, REFUSED))) == {"service-mesh-blocks": "error"}
    assert judge(symptoms=said(MESH)).status == "clear"
    plan = cure(symptoms=said(MESH, REFUSED))
    assert "sidecar.istio.io/inject" in plan.steps[0].step.title
    assert plan.verdict == "healthy"


def test_an_identifier_that_is_none_is_unset(judge: Judge, cure: Planner) -> None:
    text = said("NCCL WARN Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>")
    assert names(judge(symptoms=text)) == {"nccl-comm-id-bad": "error"}
    assert first_command(cure(symptoms=text, variables={})) == "unset NCCL_COMM_ID"


@pytest.mark.parametrize(
    "noise",
    [
        "The client socket has failed to connect to [h]:29500 (errno: 97 - Address family not).",
        "The client socket has failed to connect to [h]:29500 (system error: 10049 - x).",
    ],
)
def test_an_attempt_that_is_followed_by_another_is_nothing(judge: Judge, noise: str) -> None:
    assert judge(symptoms=said(noise)).status == "clear"


def test_a_rank_that_crashed_explains_that_nobody_reaches_it(judge: Judge) -> None:
    assert judge(symptoms=said(REFUSED, "[rank0]: ValueError: bad value")).status == "clear"


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"


def test_two_machines_that_are_told_with_one_number_are_not_a_taken_port(
    judge: Judge, cure: Planner
) -> None:
    line = STATIC.replace("t.py", "--node_rank=0 t.py")
    text = said("# first node", f"$ {line}", "# second node", f"$ {line}", TAKEN)
    assert names(judge(symptoms=text)) == {"node-rank-wrong": "error"}
    assert cure(symptoms=text).verdict == "healthy"
    again = said(f"u@n1:~$ {line}", f"u@n1:~$ {line}", TAKEN)
    assert names(judge(symptoms=again)) == {"rendezvous-port-in-use": "error"}
    other = said(
        "# first node", f"$ {line}", "# second node", "$ " + line.replace("k=0", "k=1"), TAKEN
    )
    assert names(judge(symptoms=other)) == {"rendezvous-port-in-use": "error"}
