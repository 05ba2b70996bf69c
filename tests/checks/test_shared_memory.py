"""Shared memory, full and small."""

from __future__ import annotations

from tests.checks import make
from tests.checks.run import first_command, names, said, summaries
from tests.conftest import Judge, Planner
from torchdoctor.facts import Container, Limits, Workers

FULL = "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"
TORN = "NCCL WARN Error while creating shared memory segment nccl-shm-1 (size 9637888)"
BUS = "RuntimeError: DataLoader worker (pid 37) is killed by signal: Bus error."
SMALL, LARGE = Limits(shm=64 << 20, shm_free=0), Limits(shm=64 << 30, shm_free=64 << 30)


def test_no_space_is_certain_and_the_container_is_started_with_more(
    judge: Judge, cure: Planner
) -> None:
    outcome = judge(symptoms=said(FULL), limits=SMALL, container=make.DOCKER)
    assert names(outcome) == {"shm-too-small": "error"}
    assert outcome.findings[0].confidence == "certain"
    assert "64 MiB" in summaries(outcome)
    plan = cure(symptoms=said(FULL), limits=SMALL, container=make.DOCKER)
    assert first_command(plan) == "docker run --gpus all --shm-size=8g IMAGE"
    assert plan.verdict == "healthy"


def test_a_worker_that_ends_with_a_bus_error_is_likely(judge: Judge) -> None:
    assert judge(symptoms=said(BUS)).findings[0].confidence == "likely"


def test_a_segment_that_fails_counts_only_where_there_is_little(judge: Judge) -> None:
    assert names(judge(symptoms=said(TORN), limits=SMALL)) == {"shm-too-small": "error"}
    assert judge(symptoms=said(TORN), limits=LARGE).status == "clear"
    assert judge(symptoms=said(TORN)).status == "clear"


def test_exit_code_7_counts_only_where_there_is_little(judge: Judge) -> None:
    text = said("  exitcode  : -7 (pid: 903)")
    assert names(judge(symptoms=text, limits=SMALL)) == {"shm-too-small": "error"}
    assert judge(symptoms=text, limits=LARGE).status == "clear"
    assert judge(symptoms=said("  exitcode  : -9 (pid: 903)"), limits=SMALL).status == "clear"


def test_a_pod_gets_a_volume_and_a_machine_its_own_commands(cure: Planner) -> None:
    pod = cure(symptoms=said(FULL), container=Container("kubernetes"))
    assert "emptyDir" in pod.steps[0].step.title
    machine = cure(symptoms=said(FULL), container=None, platform=make.linux())
    assert first_command(machine) == "df -h /dev/shm"
    assert machine.steps[0].step.needs == ("admin",)


def test_little_of_it_alone_is_nothing(judge: Judge) -> None:
    assert judge(symptoms=(), limits=SMALL, container=make.DOCKER).status == "clear"


def test_little_of_it_is_told_before_where_somebody_needs_it(judge: Judge, cure: Planner) -> None:
    two = (make.a100(0), make.a100(1))
    known = {"symptoms": (), "limits": SMALL, "container": make.DOCKER, "gpus": two}
    outcome = judge(**known)
    assert names(outcome) == {"shm-too-small": "warning"}
    assert "too little for NCCL on 2 GPUs" in summaries(outcome)
    assert first_command(cure(**known)) == "docker run --gpus all --shm-size=8g IMAGE"
    assert cure(**known).verdict == "healthy"
    loader = Workers(4, named=True, program=1, each=1)
    with_loader = judge(**known | {"gpus": (), "workers": (loader,)})
    assert "a DataLoader that runs here" in summaries(with_loader)


def test_one_gpu_other_workers_enough_of_it_and_no_container_are_nothing(judge: Judge) -> None:
    two = (make.a100(0), make.a100(1))
    known = {"symptoms": (), "limits": SMALL, "container": make.DOCKER, "gpus": two}
    other = Workers(4, named=False, program=1, each=1)
    for change in (
        {"gpus": two[:1]},
        {"gpus": (), "workers": (other,)},
        {"limits": LARGE},
        {"container": None},
    ):
        assert judge(**known | change).status == "clear"


def test_eight_gpus_may_need_more_than_two_do(judge: Judge) -> None:
    known = {"symptoms": (), "limits": Limits(shm=256 << 20), "container": make.DOCKER}
    eight = tuple(make.a100(number) for number in range(8))
    outcome = judge(**known, gpus=eight)
    assert names(outcome) == {"shm-too-small": "note"}
    assert "280 MiB" in summaries(outcome)
    for change in ({"gpus": eight[:4]}, {"gpus": eight, "limits": Limits(shm=1 << 30)}):
        assert judge(**known | change).status == "clear"
    assert judge(**known | {"gpus": eight, "container": None}).status == "clear"


def test_each_runtime_is_told_in_its_own_words(judge: Judge) -> None:
    for kind, command in (
        ("podman", "podman run --device nvidia.com/gpu=all --shm-size=8g IMAGE"),
        ("docker", "docker run --gpus all --shm-size=8g IMAGE"),
    ):
        outcome = judge(symptoms=said(FULL), limits=SMALL, container=Container(kind))
        assert outcome.findings[0].steps[0].commands.bash == (command,)
        assert "or with --ipc=host" in outcome.findings[0].steps[0].title


def test_without_any_text_nothing_is_known(judge: Judge) -> None:
    assert judge().status == "unknown"
