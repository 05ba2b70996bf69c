"""Workers against the memory that they may use."""

from __future__ import annotations

import pytest

from tests.checks import make
from tests.checks.run import names, summaries
from tests.conftest import Judge, Planner
from torchdoctor.facts import Container, Cpu, Limits, Workers

GIB = 1 << 30
TIGHT = Limits(memory=16 * GIB, ram=256 * GIB)
COPYING = Workers(8, named=True, program=4 * GIB, each=3 * GIB, own=GIB)


def test_workers_that_copy_more_than_fits_are_told_with_the_numbers(judge: Judge) -> None:
    outcome = judge(limits=TIGHT, workers=(COPYING,))
    assert names(outcome) == {"dataloader-too-many-workers": "warning"}
    said = summaries(outcome)
    for number in ("8 workers", "3.0 GiB each", "1.0 GiB are a copy", "28.0 GiB", "16.0 GiB"):
        assert number in said
    assert "num_workers=4" in outcome.findings[0].steps[1].title


def test_they_are_quiet_where_they_fit_or_share(judge: Judge) -> None:
    wide = Limits(memory=32 * GIB)
    sharing = Workers(8, named=True, program=4 * GIB, each=3 * GIB, own=GIB // 10)
    unseen = Workers(8, named=True, program=4 * GIB, each=3 * GIB)
    elsewhere = Workers(8, named=True, program=4 * GIB, each=3 * GIB, own=GIB, same_group=False)
    assert judge(limits=wide, workers=(COPYING,)).status == "clear"
    for quiet in (sharing, unseen, elsewhere):
        assert judge(limits=TIGHT, workers=(quiet,)).status == "clear"


def test_without_a_limit_the_memory_of_the_machine_counts(judge: Judge) -> None:
    outcome = judge(limits=Limits(ram=16 * GIB), workers=(COPYING,))
    assert "this machine has 16.0 GiB" in summaries(outcome)
    assert judge(limits=Limits(ram=64 * GIB), workers=(COPYING,)).status == "clear"


@pytest.mark.parametrize(
    ("kind", "variables", "command"),
    [
        ("docker", {}, "docker run --memory=29g IMAGE"),
        ("podman", {}, "podman run --memory=29g IMAGE"),
        ("singularity", {}, "singularity exec --memory 29G IMAGE python"),
        (None, {"SLURM_JOB_ID": "4"}, "sbatch --mem=29G JOB.sh"),
    ],
)
def test_more_memory_is_asked_of_who_set_the_limit(
    kind: str | None, variables: dict[str, str], command: str, judge: Judge
) -> None:
    container = Container(kind) if kind else None
    outcome = judge(limits=TIGHT, workers=(COPYING,), container=container, variables=variables)
    assert outcome.findings[0].steps[-1].commands.bash == (command,)


def test_a_pod_has_no_command_and_an_unknown_limit_no_such_step(judge: Judge) -> None:
    pod = judge(limits=TIGHT, workers=(COPYING,), container=Container("kubernetes"))
    last = pod.findings[0].steps[-1]
    assert (last.title, last.commands.bash) == ("Give the pod resources.limits.memory: 29Gi", ())
    bare = judge(limits=TIGHT, workers=(COPYING,), container=None, variables={})
    assert "raise-memory-limit" not in [step.name for step in bare.findings[0].steps]


def test_each_step_cures_alone(judge: Judge, cure: Planner) -> None:
    known = {"limits": TIGHT, "workers": (COPYING,), "container": make.DOCKER}
    assert cure(**known).verdict == "healthy"
    outcome = judge(**known)
    assert [s.name for s in outcome.findings[0].steps] == [
        "share-the-data",
        "fewer-workers",
        "raise-memory-limit",
    ]


def test_what_the_kernel_has_killed_is_a_warning_under_a_limit(judge: Judge, cure: Planner) -> None:
    killed = Limits(memory=16 * GIB, memory_peak=16 * GIB, oom_kills=2)
    outcome = judge(limits=killed, workers=(), container=make.DOCKER)
    assert names(outcome) == {"host-oom-killed": "warning"}
    assert "2 processes were killed here" in summaries(outcome)
    assert "limit 16.0 GiB" in summaries(outcome)
    assert cure(limits=killed, workers=(), container=make.DOCKER).verdict == "healthy"
    free = judge(limits=Limits(oom_kills=1), workers=())
    assert names(free) == {"host-oom-killed": "note"}
    assert judge(limits=Limits(memory=16 * GIB, oom_kills=0), workers=()).status == "clear"


def test_a_kill_that_a_message_tells_of_is_told_once(judge: Judge) -> None:
    died = make.symptom("exit-code", "train.log", exitcode="-9")
    killed = Limits(memory=16 * GIB, oom_kills=1)
    assert judge(limits=killed, workers=(), symptoms=(died,)).status == "clear"


def test_more_workers_than_processors_are_a_note(judge: Judge) -> None:
    small = Workers(8, named=True, program=GIB, each=GIB, own=0)
    many = (small, small, small, small)
    outcome = judge(limits=Limits(memory=999 * GIB, cpus=4.0), workers=many)
    assert names(outcome) == {"dataloader-too-many-workers": "note"}
    assert "32 workers of DataLoaders of 4 programs share 4 processors" in summaries(outcome)
    wide = Cpu("EPYC", frozenset(), 64)
    assert judge(limits=Limits(), cpu=wide, workers=many).status == "clear"
    other = Workers(32, named=False, program=GIB, each=GIB, own=0)
    assert judge(limits=Limits(cpus=4.0), workers=(other,)).status == "clear"


def test_without_limits_nothing_is_known(judge: Judge) -> None:
    assert judge(workers=(COPYING,)).status == "unknown"


def test_the_first_cure_is_in_the_script(cure: Planner) -> None:
    plan = cure(limits=TIGHT, workers=(COPYING,), container=make.DOCKER)
    assert [chosen.step.name for chosen in plan.steps] == ["share-the-data"]
