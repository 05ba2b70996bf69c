from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

import torchdoctor
from tests.report import samples
from torchdoctor.facts import Facts
from torchdoctor.report import as_json
from torchdoctor.report.document import Report, Target, build, failure

SCHEMA = json.loads(
    Path(torchdoctor.__file__).with_name("report.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)


def parsed(report: Report) -> Any:
    document = json.loads(as_json.render(report))
    VALIDATOR.validate(document)
    return document


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_keys_come_in_the_order_of_the_contract() -> None:
    document = parsed(samples.broken())
    assert list(document) == [
        "schema",
        "tool",
        "target",
        "verdict",
        "findings",
        "plan",
        "after_plan",
        "checks",
        "data",
    ]
    assert document["tool"] == {"name": "torchdoctor", "version": torchdoctor.__version__}


def test_a_finding_has_a_place_only_where_it_applies() -> None:
    document = parsed(samples.broken())
    first, _, third, _ = document["findings"]
    assert list(first) == [
        "name",
        "family",
        "severity",
        "confidence",
        "summary",
        "evidence",
        "because_of",
        "steps",
    ]
    assert first["evidence"][0] == {
        "fact": "trial.error",
        "value": "WinError 1114, names c10.dll",
        "from": "import trial, 1.9 s",
    }
    assert third["location"] == {"file": "requirements.txt", "line": 3}
    assert third["where"] == {"rank": 1, "stage": "store"}


def test_a_step_shows_its_commands_for_every_shell() -> None:
    document = parsed(samples.broken())
    assert document["plan"][0] == {
        "step": "install-vcredist",
        "title": "Install the current VC++ x64 redistributable",
        "why": "c10.dll of torch 2.9.1 calls into a msvcp140.dll of 14.40 or newer.",
        "commands": {
            "bash": [samples.WINGET],
            "powershell": [samples.WINGET],
            "cmd": [samples.WINGET],
        },
        "needs": ["admin", "network"],
        "deletes": False,
        "clears": ["vcredist-too-old", "torch-import-fails"],
        "verify": ["torchdoctor check --only vc-runtime"],
    }


def test_seconds_have_six_digits() -> None:
    checks = parsed(samples.healthy())["checks"]
    assert checks[0]["seconds"] == 0.000012


def test_without_a_plan_what_would_remain_is_what_there_is() -> None:
    found = samples.finding()
    document = parsed(build(target=samples.LIVE, findings=[found]))
    assert document["after_plan"] == {
        "verdict": "broken",
        "findings": document["findings"],
    }


def test_an_essential_unknown_is_unknown_before_and_after() -> None:
    document = parsed(build(target=samples.LIVE, essential_unknown=True, facts=Facts()))
    assert document["verdict"] == "unknown"
    assert document["after_plan"] == {"verdict": "unknown", "findings": []}


def test_a_failure_has_the_same_shape_and_says_why() -> None:
    document = parsed(failure("input", "it is empty", "report.txt"))
    assert document.pop("error") == {
        "kind": "input",
        "message": "it is empty",
        "file": "report.txt",
    }
    assert list(document) == list(parsed(samples.healthy()))
    assert document["findings"] == document["plan"] == document["checks"] == []
    assert document["target"]["inputs"] == ["report.txt"]


def test_a_failure_about_no_file_names_none() -> None:
    document = parsed(failure("usage", "no check is called x"))
    assert document["error"]["file"] is None
    assert document["target"]["inputs"] == []


def test_a_measure_that_is_no_number_is_null() -> None:
    data = {"bandwidth": math.nan, "shards": (1, 2), "nested": {"far": math.inf}}
    document = parsed(build(target=samples.LIVE, data=data))
    assert document["data"] == {"bandwidth": None, "shards": [1, 2], "nested": {"far": None}}


@pytest.mark.parametrize("path", [(), ("tool",), ("target",), ("findings", 0), ("plan", 0)])
def test_a_key_that_the_contract_lacks_is_refused(path: tuple[str | int, ...]) -> None:
    document = parsed(samples.broken())
    at = document
    for key in path:
        at = at[key]
    at["extra"] = 1
    with pytest.raises(ValidationError, match="extra"):
        VALIDATOR.validate(document)


def test_a_verdict_that_its_findings_contradict_is_refused() -> None:
    document = parsed(samples.broken())
    document["verdict"] = "healthy"
    with pytest.raises(ValidationError):
        VALIDATOR.validate(document)


def test_findings_beside_an_error_are_refused() -> None:
    document = parsed(failure("internal", "it broke"))
    document["findings"] = parsed(samples.broken())["findings"]
    with pytest.raises(ValidationError):
        VALIDATOR.validate(document)


@settings(max_examples=60, deadline=None)
@given(samples.reports(samples.KEBABS))
def test_any_report_is_valid_ascii(report: Report) -> None:
    parsed(report)
    assert as_json.render(report).isascii()


def test_a_target_that_says_nothing_has_nulls() -> None:
    document = parsed(build(target=Target("text", ("-",))))
    assert document["target"] == {
        "source": "text",
        "inputs": ["-"],
        "os": None,
        "python": None,
        "collected_at": None,
    }
