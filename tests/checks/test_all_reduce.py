from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.all_reduce import make
from tests.all_reduce.make import ended, error, on, run, until
from tests.conftest import Judge, Planner
from torchdoctor.distributed.verdict import UNKNOWN
from torchdoctor.facts import AllReduce, Unknown
from torchdoctor.model import Finding
from torchdoctor.tables import load

CAUSES = load("all_reduce")["cause"]
SPECIAL = (
    "interface-file",
    "not-started",
    "died",
    "stopped",
    "late",
    "raised",
    "import",
    "stuck",
    "mismatch",
)


def found(judge: Judge, record: AllReduce) -> Finding:
    (finding,) = judge(all_reduce=record).findings
    return finding


def of(cause: str) -> AllReduce:
    """Return a run that failed for *cause*, one that a rank tells in a word."""
    values = {
        "loopback": {"ranks": [1], "how": {"1": "the host name vm"}},
        "differs": {"ranks": [1], "what": "torch", "values": ["2.1", "2.2"]},
        "same-gpu": {"ranks": [0, 1]},
        "wrong-data": {"ranks": [1]},
        "interface": {"variable": "GLOO_SOCKET_IFNAME", "value": "^lo", "interfaces": ["eth0"]},
        "shm-full": {"size": 1 << 26, "free": 4096},
        "port-refused": {"port": 29500},
        "too-few-gpus": {"gpus": 1},
    }
    told = values.get(cause, {})
    if cause.startswith("link-"):
        word = cause.removeprefix("link-")
        link = {"why": word, "peer": 0, "host": "10.0.0.1", "port": 7, "message": f"it is {word}"}
        return run(until("pairwise", "call"), error("pairwise", "links", links=[link]))
    return run(until("facts", "call"), error("facts", cause, **told))  # type: ignore[arg-type]


@pytest.mark.parametrize("cause", sorted(set(CAUSES) - {*SPECIAL, "link-lost"}))
def test_each_cause_has_a_finding_with_its_values_and_a_step(judge: Judge, cause: str) -> None:
    finding = found(judge, of(cause))
    assert (finding.name, finding.severity) == (CAUSES[cause]["name"], "error")
    assert UNKNOWN not in finding.summary
    assert "{" not in finding.summary
    assert finding.where is not None
    assert finding.where["stage"] == ("pairwise" if cause.startswith("link-") else "facts")
    (step,) = finding.steps
    assert not any(UNKNOWN in line or "{" in line for line in (step.title, *step.commands.bash))


def test_the_finding_names_the_rank_the_stage_and_what_ended_it(judge: Judge) -> None:
    finding = found(
        judge,
        run(
            ended(make.echo("all-reduce"), exit_code=4, ended_at=2.0),
            ended(until("all-reduce", "call"), signal="SIGKILL", ended_at=1.5),
        ),
    )
    assert finding.name == "rank-died"
    assert "Rank 1 ended with SIGKILL in the first all_reduce" in finding.summary
    assert finding.where == {"stage": "all-reduce", "rank": 1}
    assert finding.evidence[0].value == "was waiting in all-reduce, then SIGKILL (1.0 s)"
    assert "failed in all-reduce" in finding.evidence[1].value


def test_a_link_is_named_by_its_ends_and_no_rank_is(judge: Judge) -> None:
    waits = until("all-reduce", "call")
    finding = found(judge, run(on("1", waits), on("2", waits)))
    assert finding.name == "link-lost"
    assert "between ranks 0-1" in finding.summary
    assert finding.where == {"stage": "all-reduce", "link": "0-1"}
    assert finding.steps[0].commands.bash[1] == "ip route get 10.0.0.2"


def test_where_nobody_is_to_blame_it_is_said(judge: Judge) -> None:
    waits = until("all-reduce", "call")
    finding = found(judge, run(on("1", waits), on("1", waits)))
    assert finding.name == "collective-stuck"
    assert finding.where == {"stage": "all-reduce", "rank": "none"}


def test_an_import_that_fails_is_called_so(judge: Judge) -> None:
    finding = found(judge, run(error("import"), error("import")))
    assert finding.name == "torch-import-fails"
    assert finding.summary.startswith("Ranks 0 and 1 cannot import torch")


def test_who_cannot_reach_rank_0_cannot_reach_the_master(judge: Judge) -> None:
    far = error("tcp", "timeout", peer=0, host="10.0.0.1", port=29500)
    finding = found(judge, run(until("check-in", "call"), far))
    assert finding.name == "master-unreachable"
    assert finding.steps[0].commands.bash[0] == "nc -zv 10.0.0.1 29500"


def test_a_mismatch_shows_what_each_rank_called(judge: Judge) -> None:
    prints = {0: "ALLREDUCE [4096] Float", 1: "BROADCAST [4096] Float"}
    waits = until("all-reduce", "call")
    finding = found(judge, run(waits, waits, fingerprints=prints))
    assert finding.name == "collective-mismatch"
    assert "rank 1: BROADCAST [4096] Float" in finding.summary
    assert finding.where == {"stage": "all-reduce", "rank": 1}


def test_a_run_that_comes_to_its_end_is_clear(judge: Judge) -> None:
    assert judge(all_reduce=make.healthy()).status == "clear"


def test_nothing_is_said_where_no_all_reduce_was_asked_for(judge: Judge) -> None:
    assert judge(all_reduce=None).status == "clear"


def test_a_record_that_cannot_be_read_supports_nothing(judge: Judge) -> None:
    outcome = judge(all_reduce=Unknown("the run was cut off"))
    assert (outcome.status, outcome.reason) == ("unknown", "all_reduce: the run was cut off")


def test_after_the_step_the_run_has_to_be_tried_again(cure: Planner) -> None:
    plan = cure(all_reduce=of("interface"), variables={"GLOO_SOCKET_IFNAME": "^lo"})
    (planned,) = plan.steps
    assert planned.step.commands.bash[0] == "unset GLOO_SOCKET_IFNAME"
    assert plan.remaining == ()
    assert plan.outcomes[0].status == "unknown"


def test_whatever_is_thrown_at_it_the_sentence_is_whole(judge: Judge) -> None:
    record = of("interface")
    bare = replace(record.ranks[1], events=error("facts", "interface"))
    finding = found(judge, replace(record, ranks=(record.ranks[0], bare)))
    assert finding.summary == ("Rank 1 failed as the ranks compare what they are: it is interface.")
    assert UNKNOWN not in finding.steps[0].title
    assert finding.steps[0].commands.bash == ("ip -br addr",)


def with_variables(*each: dict[str, str]) -> AllReduce:
    return run(*((make.event("facts", "fact", variables=v), *until("done")) for v in each))


def test_variables_that_ranks_must_share_are_told_though_the_run_is_well(
    judge: Judge, cure: Planner
) -> None:
    record = with_variables({"NCCL_ALGO": "Ring"}, {}, {"NCCL_ALGO": "Ring"})
    finding = found(judge, record)
    assert (finding.name, finding.severity) == ("rank-variables-differ", "warning")
    assert "Ring on ranks 0 and 2; not set on rank 1" in finding.summary
    assert cure(all_reduce=record).remaining == ()


@pytest.mark.parametrize("name", ["NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_DEBUG"])
def test_variables_that_may_differ_from_host_to_host_are_let_be(judge: Judge, name: str) -> None:
    record = with_variables({name: "one"}, {name: "other"})
    assert judge(all_reduce=record).findings == ()
    assert (
        judge(all_reduce=with_variables({"NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "Ring"})).findings
        == ()
    )


def with_files(*each: dict[str, str]) -> AllReduce:
    events = (make.event("facts", "fact", variables={"NCCL_PROTO": "LL"}, conf=c) for c in each)
    return run(*((event, *until("done")) for event in events))


def test_what_a_file_of_nccl_says_on_one_node_alone_is_told_with_the_file(judge: Judge) -> None:
    finding = found(judge, with_files({"/etc/nccl.conf": "# here\nNCCL_ALGO=Ring"}, {}))
    assert finding.name == "rank-variables-differ"
    assert "Ring (/etc/nccl.conf) on rank 0; not set on rank 1" in finding.summary
    assert finding.steps[0].commands.bash == ("grep -n NCCL_ALGO /etc/nccl.conf",)
    finding = found(
        judge, with_files({"~/.nccl.conf": "NCCL_ALGO=Ring"}, {"a b": "NCCL_ALGO=Tree"})
    )
    assert finding.steps[0].commands.bash == ("grep -n NCCL_ALGO 'a b' ~/.nccl.conf",)


@pytest.mark.parametrize(
    "each",
    [
        ({"/etc/nccl.conf": "NCCL_ALGO=Ring"}, {"~/.nccl.conf": "NCCL_ALGO=Ring"}),
        ({"~/.nccl.conf": "NCCL_ALGO=Ring", "/etc/nccl.conf": "NCCL_ALGO=Tree"},) * 2,
        ({"/etc/nccl.conf": "#NCCL_ALGO=Ring"}, {}),
        ({"/etc/nccl.conf": "NCCL_PROTO=Simple"}, {}),  # the variable comes first
        ({"/etc/nccl.conf": "NCCL_SOCKET_IFNAME=ib0"}, {"/etc/nccl.conf": "NCCL_ALGO"}),
    ],
)
def test_files_of_nccl_that_come_to_the_same_are_let_be(
    judge: Judge, each: tuple[dict[str, str], dict[str, str]]
) -> None:
    assert judge(all_reduce=with_files(*each)).findings == ()


def test_an_interface_that_a_file_names_is_put_right_in_the_file(judge: Judge) -> None:
    values = {"variable": "NCCL_SOCKET_IFNAME", "value": "ib0", "interfaces": ["eth0"]}
    told = {"file": "/etc/nccl.conf", **values}
    fault = error("facts", "interface", **told)  # type: ignore[arg-type]
    finding = found(judge, run(until("facts", "call"), fault))
    assert finding.name == "wrong-socket-ifname"
    assert "/etc/nccl.conf says on rank 1" in finding.summary
    assert finding.steps[0].commands.bash[0] == "grep -n NCCL_SOCKET_IFNAME /etc/nccl.conf"


def test_a_check_of_anything_else_does_not_load_what_judges_a_run() -> None:
    program = (
        "import sys; from torchdoctor.registry import all_checks; all_checks(());"
        "print([name for name in sys.modules if name.startswith('torchdoctor.distributed.')])"
    )
    done = subprocess.run(
        (sys.executable, "-c", program),
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
