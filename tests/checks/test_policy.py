"""A policy is held against the machine; what it bears is left out, with a reason, for a time."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks.make import (
    a100,
    build,
    dist,
    driver,
    interpreter,
    linux,
    nvidia,
    runtime,
    torch_and,
)
from tests.conftest import Judge, Planner
from torchdoctor import cli, policy
from torchdoctor.facts import Container, Expectation, Limits, Unknown
from torchdoctor.model import DoctorError, Evidence, Finding
from torchdoctor.policy import Ignored, Policy
from torchdoctor.registry import Check

GIB = 1 << 30
HERE = torch_and(
    build("2.13.0+cu130"),
    dist("numpy", "2.1.0"),
    driver=driver("580.95.05"),
    gpus=tuple(replace(a100(index), memory=40 * GIB) for index in range(2)),
    runtime=runtime(nccl="2.29.7"),
    limits=Limits(shm=8 * GIB),
    interpreter=interpreter(),
)
MET = {
    "torch": ">=2.6,<3",
    "python": ">=3.10",
    "cuda": ">=12.6",
    "driver": ">=570",
    "gpus": ">=2",
    "gpu-memory": "39 GiB",
    "capability": ">=8.0",
    "nccl": ">=2.20",
    "shm": "8 GiB",
    "packages.numpy": ">=2",
}
UNMET = {
    "torch": ">=2.14",
    "python": ">=3.14",
    "cuda": ">=13.1",
    "driver": ">=590",
    "gpus": ">=4",
    "gpu-memory": "200 GiB",
    "capability": ">=9.0",
    "nccl": ">=2.30",
    "shm": "9 GiB",
    "packages.numpy": "<2",
}
DAY = dt.date(2026, 6, 1)


def test_a_machine_that_has_all_that_is_required_is_clear(judge: Judge) -> None:
    assert judge(**HERE, expectation=Expectation(require=MET)).status == "clear"
    assert judge(**HERE).status == "clear"


@pytest.mark.parametrize("name", UNMET)
def test_each_thing_that_is_required_and_not_here_is_an_error(name: str, judge: Judge) -> None:
    required = {**MET, name: UNMET[name]}
    outcome = judge(**HERE, expectation=Expectation(require=required))
    (finding,) = outcome.findings
    assert (finding.name, finding.severity) == ("policy-unmet", "error")
    assert [seen.fact for seen in finding.evidence] == [name]
    assert UNMET[name] in finding.summary


def test_what_is_not_there_at_all_is_named(judge: Judge) -> None:
    known = {**HERE, "torch": None, "driver": None, "gpus": ()}
    required = {
        "torch": ">=2",
        "driver": ">=1",
        "gpus": ">=1",
        "capability": ">=7",
        "packages.x": ">0",
    }
    findings = judge(**known, expectation=Expectation(require=required)).findings
    assert [seen.fact for finding in findings for seen in finding.evidence] == list(required)
    assert {finding.name for finding in findings} == {"policy-unmet"}


def test_what_nobody_told_is_not_held_against_the_machine(judge: Judge) -> None:
    known = {**HERE, "runtime": Unknown("--no-import"), "limits": Unknown()}
    outcome = judge(**known, expectation=Expectation(require={"nccl": ">=9", "shm": "1 TiB"}))
    assert outcome.status == "unknown"
    assert outcome.reason == "nobody told of nccl, shm, which the policy requires"


def test_a_size_is_read_in_either_kind_of_units() -> None:
    said = {"24 GiB": 24 * GIB, "24GB": 24 * 10**9, "1.5 GiB": 3 * GIB // 2, "512": 512}
    assert {text: policy.size(text) for text in said} == said
    assert policy.size("much") is None


# ---- what to do about it -------------------------------------------------------------------------

CURES = {
    "torch": "torch==2.15.0+cu130",
    "cuda": "torch==2.13.0+cu132",
    "python": "uv venv --python 3.14",
    "driver": "ubuntu-drivers install nvidia:590",
    "shm": "mount -o remount,size=9G /dev/shm",
    "packages.numpy": "'numpy<2'",
}
"""What is in the command for each of UNMET that a command can meet."""


def requiring(**changed: str) -> dict[str, object]:
    required = MET | {name.replace("_", "."): wanted for name, wanted in changed.items()}
    return {**HERE, "platform": linux(), "expectation": Expectation(require=required)}


@pytest.mark.parametrize("name", CURES)
def test_what_a_command_can_meet_has_a_step_that_meets_all_of_the_policy(
    name: str, cure: Planner
) -> None:
    made = cure(**requiring(**{name: UNMET[name]}))
    assert made.verdict == "healthy"
    lines = [line for planned in made.steps for line in planned.step.commands.bash]
    assert CURES[name] in " ".join(lines)


@pytest.mark.parametrize("name", sorted(set(UNMET) - set(CURES)))
def test_what_no_command_can_meet_says_why(name: str, cure: Planner) -> None:
    made = cure(**requiring(**{name: UNMET[name]}))
    assert made.steps == ()
    (left,) = made.remaining
    assert "; no command " in left.summary or "; NCCL comes with torch" in left.summary


def test_one_build_meets_what_is_said_of_torch_and_of_cuda(cure: Planner) -> None:
    made = cure(**requiring(torch="<2.13", cuda=">=12.8,<12.9"))
    (planned,) = made.steps
    assert made.verdict == "healthy"
    assert planned.step.commands.bash[-1].endswith("/whl/cu128")


def test_on_a_jetson_nvidias_own_wheels_meet_what_is_said_of_cuda(judge: Judge) -> None:
    orin = {
        "platform": linux(machine="aarch64", jetson=True),
        "interpreter": interpreter("3.10.12", machine="linux-aarch64"),
        "driver": driver(None, cuda="12.6"),
        "gpus": (nvidia("", None),),
        "torch": None,
    }
    index = "https://pypi.jetson-ai-lab.io/jp6/cu126"
    for cuda, fits in ((">=12", True), (">=13", False)):
        (found,) = judge(**orin, expectation=Expectation(require={"cuda": cuda})).findings
        assert [index in step.commands.bash[-1] for step in found.steps] == [True] * fits


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"torch": ">=99"}, "no build of torch does justice to torch >=99"),
        ({"torch": "<2.6", "cuda": ">=13"}, "no build of torch for this machine has a CUDA of"),
        ({"python": "==2.7.*"}, "no build of torch fits such a Python"),
        ({"driver": "<570"}, "an older driver is no step"),
        ({"packages_torchvision": ">=0.28"}, "torchvision goes with the release of torch"),
        ({"packages_numpy": "!=2.1.0"}, "which version of numpy meets !=2.1.0 is not known"),
    ],
)
def test_where_nothing_meets_it_there_is_no_step_and_the_reason_is_told(
    changed: dict[str, str], why: str, judge: Judge
) -> None:
    for finding in judge(**requiring(**changed)).findings:
        assert finding.steps == ()
        assert why in finding.summary


def test_a_driver_that_has_left_a_gpu_behind_is_no_step(judge: Judge) -> None:
    old = nvidia("NVIDIA GeForce GTX 1080", (6, 1))
    known = requiring(driver=">=590") | {"gpus": (old, old)}
    findings = judge(**known).findings
    (said,) = [f for f in findings if f.evidence[0].fact == "driver"]
    assert said.steps == ()
    assert "driver 580 is the last one for NVIDIA GeForce GTX 1080" in said.summary


def test_in_a_container_memory_and_driver_are_of_the_host(judge: Judge) -> None:
    known = requiring(shm="16 GiB", driver=">=590") | {"container": Container("docker")}
    by_name = {f.evidence[0].fact: f.steps for f in judge(**known).findings}
    assert by_name["shm"][0].title == "Start the container with --shm-size=16g"
    assert by_name["driver"][0].title.endswith("(on the host)")
    assert not by_name["driver"][0].commands


# ---- what is ignored -----------------------------------------------------------------------------


def checks() -> dict[str, Check]:
    def run() -> Iterator[Finding]:
        for name in ("old", "other"):
            yield Finding(name, "warning", f"{name} is so.", (Evidence("x", "1", "y"),))

    return {"one": Check("one", "gpu", "", (), frozenset(), (), ("old", "other"), run)}


def test_what_is_ignored_is_left_out_until_its_day_is_over() -> None:
    rule = Policy("p.toml", ignore=(Ignored("old", "a driver is on its way", DAY),))
    for day, left in ((DAY, ["other"]), (DAY + dt.timedelta(days=1), ["old", "other"])):
        bearing = rule.bearing(checks(), day)
        assert [f.name for f in bearing.checks["one"].run()] == left
    (told,) = rule.bearing(checks(), DAY + dt.timedelta(days=1)).details()
    assert told.text == "old was ignored until 2026-06-01 and counts: a driver is on its way"


def test_what_is_ignored_and_not_there_is_not_told() -> None:
    rule = Policy("p.toml", ignore=(Ignored("gone", "no more", DAY), Ignored("old", "why", DAY)))
    bearing = rule.bearing(checks(), DAY)
    list(bearing.checks["one"].run())
    assert [d.text for d in bearing.details()] == ["old is ignored until 2026-06-01: why"]
    assert bearing.data() == {
        "policy": {
            "file": "p.toml",
            "ignored": [{"name": "old", "reason": "why", "until": "2026-06-01"}],
            "expired": [],
        }
    }


# ---- the file ------------------------------------------------------------------------------------

WHOLE = """
fail-on = "warning"
[require]
torch = ">=2.6"
gpus = 2
shm = "8 GiB"
packages = { numpy = ">=2" }
[[ignore]]
name = "driver-eol"
reason = "the new one comes in May"
until = 2026-06-01
"""


def written(folder: Path, text: str, name: str = "torchdoctor.toml") -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def test_a_policy_is_read_from_either_file(tmp_path: Path) -> None:
    rule = policy.read(written(tmp_path, WHOLE))
    assert rule.require == {
        "torch": ">=2.6",
        "gpus": ">=2",
        "shm": "8 GiB",
        "packages.numpy": ">=2",
    }
    assert rule.ignore == (Ignored("driver-eol", "the new one comes in May", DAY),)
    assert rule.fail_on == "warning"
    inside = WHOLE.replace("[require]", "[tool.torchdoctor.require]").replace(
        "[[ignore]]", "[[tool.torchdoctor.ignore]]"
    )
    inside = inside.replace("fail-on", "tool.torchdoctor.fail-on")
    assert replace(policy.read(written(tmp_path, inside, "pyproject.toml")), file=rule.file) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[require]\ntorch = 2", "and not like"),
        ("[require]\ntorsh = '>=2'", "require.torsh is unknown"),
        ("[require]\nshm = 'much'", "no size"),
        ("[require]\npackages = 1", "no table"),
        ("fail-on = 'note'", "fail-on is 'note'"),
        ("[[ignore]]\nname = 'x'\nuntil = 2026-01-01", "a reason"),
        ("[[ignore]]\nname = 'x'\nreason = 'y'", "no day at which it ends"),
        ("[[ignore]]\nname = 'x'\nreason = 'y'\nuntil = 'May'", "no day at which it ends"),
        ("[[ignore]]\nname = 'x'\nreason = 'y'\nuntil = 2026-01-01\nfor = 1", "'for' is unknown"),
        ("requires = 1", "'requires' is no setting"),
        ("[require", "cannot be read"),
        ("", "has no [tool.torchdoctor]"),
    ],
)
def test_a_policy_that_says_what_none_can_is_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(DoctorError) as caught:
        policy.read(written(tmp_path, text))
    assert why in caught.value.message
    assert "torchdoctor.toml" in caught.value.message


# ---- the command line ----------------------------------------------------------------------------


def test_check_holds_a_machine_to_the_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("PyTorch version: 2.6.0+cpu\nPython version: 3.11\n", "utf-8")
    strict = written(tmp_path, "[require]\ntorch = '>=2.9'\n")
    loose = written(tmp_path, "[require]\ntorch = '>=2.5'\n", "loose.toml")
    assert cli.main(["check", str(report), "--policy", loose]) == 0
    capsys.readouterr()
    assert cli.main(["check", str(report), "--policy", strict, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert "policy-unmet" in [finding["name"] for finding in document["findings"]]
    assert document["data"]["policy"]["file"] == strict
    ignored = written(
        tmp_path,
        "[require]\ntorch = '>=2.9'\n[[ignore]]\nname = 'policy-unmet'\nreason = 'later'\n"
        "until = 9999-12-31\n",
        "ignored.toml",
    )
    assert cli.main(["check", str(report), "--policy", ignored]) == 0
    assert "policy-unmet is ignored until 9999-12-31: later" in capsys.readouterr().out
