from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks.make import a100, build, dist, driver, interpreter, linux, runtime, torch_and
from tests.conftest import Judge, Planner
from torchdoctor import lock
from torchdoctor.facts import Expectation, Facts, Unknown
from torchdoctor.model import DoctorError

KNOWN = torch_and(
    build("2.13.0+cu130"),
    dist("numpy", "2.1.0"),
    dist("nvidia-nccl-cu13", "2.29.7"),
    dist("requests", "2.32.0"),
    driver=driver("580.95.05"),
    gpus=(a100(0), a100(1)),
    runtime=runtime(nccl="2.29.7", cudnn="9.20.0"),
    variables={"NCCL_DEBUG": "INFO", "PATH": "/usr/bin"},
)
LOCKED = lock.held(Facts(**KNOWN))  # type: ignore[arg-type]
EXPECTED = Expectation(lock=LOCKED)


def test_a_lock_holds_what_steers_torch_and_nothing_else() -> None:
    assert LOCKED["packages.numpy"] == "2.1.0"
    assert LOCKED["driver.release"] == "580.95.05"
    assert LOCKED["variables.NCCL_DEBUG"] == "INFO"
    assert not {"packages.requests", "variables.PATH", "interpreter.prefix"} & set(LOCKED)


def test_the_environment_that_was_locked_is_clear(judge: Judge) -> None:
    assert judge(**KNOWN, expectation=EXPECTED).status == "clear"
    assert judge(**KNOWN).status == "clear"


@pytest.mark.parametrize(
    ("changed", "severity", "said"),
    [
        ({"torch": build("2.13.0+cpu")}, "error", "torch.version is 2.13.0+cpu"),
        ({"interpreter": interpreter("3.13.1")}, "error", "interpreter.version is 3.13.1"),
        ({"driver": driver("570.86.10")}, "error", "driver.release is 570.86.10"),
        ({"driver": None}, "error", "driver.release is none"),
        ({"gpus": (a100(0),)}, "error", "gpus.count is 1 and was 2"),
        ({"variables": {}}, "warning", "variables.NCCL_DEBUG is none"),
        ({"variables": {"NCCL_DEBUG": "WARN"}}, "warning", "variables.NCCL_DEBUG is WARN"),
        ({"platform": linux(libc_version="2.31")}, "error", "libc_version is 2.31"),
    ],
)
def test_what_is_not_as_it_was_is_found(
    judge: Judge, changed: dict[str, object], severity: str, said: str
) -> None:
    outcome = judge(**KNOWN | changed, expectation=EXPECTED)
    (finding,) = outcome.findings
    name = "lock-packages-unmet" if said.startswith("torch") else "lock-unmet"
    assert (finding.name, finding.severity) == (name, severity)
    assert said in finding.summary


@pytest.mark.parametrize(
    "changed",
    [
        {"interpreter": interpreter("3.12.9", prefix="/other")},
        {"driver": driver("595.10")},
        {"gpus": (a100(0), a100(1), a100(2))},
        {"variables": {"NCCL_DEBUG": "INFO", "PATH": "/bin", "HOME": "/x"}},
        {"platform": linux(libc_version="2.41", name="Ubuntu 26.04")},
    ],
    ids=["a patch release", "a newer driver", "more GPUs", "other variables", "a newer system"],
)
def test_what_serves_as_well_is_clear(judge: Judge, changed: dict[str, object]) -> None:
    assert judge(**KNOWN | changed, expectation=EXPECTED).status == "clear"


def test_what_nobody_looked_at_is_not_a_difference(judge: Judge) -> None:
    hidden = KNOWN | {"driver": Unknown("no answer"), "runtime": Unknown("not tried")}
    outcome = judge(**hidden, expectation=EXPECTED)
    assert outcome.status == "unknown"
    assert "driver.release" in outcome.reason or "runtime" in outcome.reason


def test_the_plan_installs_what_was_locked(judge: Judge, cure: Planner) -> None:
    numpy = dist("numpy", "2.3.0")
    torch = build("2.14.1+cu130")
    changed = KNOWN | torch_and(torch, numpy, dist("nvidia-nccl-cu13", "2.29.7"))
    outcome = judge(**changed, expectation=EXPECTED)
    assert outcome.status == "found"
    plan = cure(**changed, expectation=EXPECTED)
    assert plan.verdict == "healthy"
    (planned,) = plan.steps
    lines = planned.step.commands.bash
    assert any("torch==2.13.0+cu130" in line and "/cu130" in line for line in lines)
    assert any("numpy==2.1.0" in line and "index-url" not in line for line in lines)
    assert all("--no-deps" in line for line in lines)


def test_what_no_package_changes_is_told_by_itself_and_left(judge: Judge, cure: Planner) -> None:
    fewer = KNOWN | torch_and(build("2.13.0+cu130"), dist("numpy", "2.3.0")) | {"gpus": (a100(0),)}
    brought, rest = judge(**fewer, expectation=EXPECTED).findings
    assert "numpy" in brought.summary
    assert "gpus" not in brought.summary
    plan = cure(**fewer, expectation=EXPECTED)
    assert [planned.clears for planned in plan.steps] == [("lock-packages-unmet",)]
    assert plan.remaining == (rest,)
    assert "gpus.count is 1 and was 2" in rest.summary


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "[]",
        "{}",
        json.dumps({"schema": lock.SCHEMA}),
        json.dumps({"schema": lock.SCHEMA, "facts": {"torch.version": 2}}),
        json.dumps({"schema": "torchdoctor.lock/9", "facts": {}}),
        json.dumps({"schema": lock.SCHEMA, "facts": []}),
        "[" * 10_000,
        "x" * (lock.LARGEST + 1),
    ],
    ids=range(10),
)
def test_a_file_that_is_no_lock_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.lock"
    file.write_text(text)
    with pytest.raises(DoctorError, match=r"x\.lock"):
        lock.read(str(file))
    with pytest.raises(DoctorError, match="cannot be read"):
        lock.read(str(tmp_path / "gone"))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    file.write_text(lock.dump(Facts(**KNOWN), "2026-11-29T00:00:00Z"))  # type: ignore[arg-type]
    assert lock.read(str(file)) == LOCKED
    assert not list(lock.differences(LOCKED, replace(Facts(**KNOWN))))  # type: ignore[arg-type]
