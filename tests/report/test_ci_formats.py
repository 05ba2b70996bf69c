"""What CI systems read is valid by their schemas, whatever the report says, and says all of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest
import xmlschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.report import samples
from torchdoctor import cli
from torchdoctor.model import Location
from torchdoctor.report import document, github, gitlab, junit, sarif
from torchdoctor.report.document import Report

SCHEMAS = Path(__file__).parent / "schemas"
XSD = xmlschema.XMLSchema(SCHEMAS / "junit.xsd")
SARIF = jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0.json").read_text("utf-8")))
GITLAB = jsonschema.Draft202012Validator(
    json.loads((SCHEMAS / "gitlab-code-quality.json").read_text("utf-8"))
)
COMMAND = re.compile(r"^::(error|warning|notice)(?: (.*?))?::(.*)$")
SAMPLES: dict[str, Callable[[], Report]] = {
    "healthy": samples.healthy,
    "broken": samples.broken,
    "failed": lambda: document.failure("input", "x.json is cut off", "x.json"),
}


def read_junit(text: str) -> ET.Element:
    XSD.validate(text)
    return ET.fromstring(text)  # noqa: S314 - our own


def read_sarif(text: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(text)
    SARIF.validate(made)
    run: dict[str, Any] = made["runs"][0]
    return run


def read_gitlab(text: str) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads(text)
    GITLAB.validate(made)
    return made


def read_github(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Read workflow commands back as the runner does."""

    def plain(said: str, marks: tuple[tuple[str, str], ...]) -> str:
        for mark, becomes in marks:
            said = said.replace(mark, becomes)
        return said

    data = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
    found = []
    for line in text.split("\n")[1:]:
        if not line:
            continue
        match = COMMAND.match(line)
        assert match, line
        pairs = (pair.partition("=") for pair in (match[2] or "").split(",") if pair)
        own = (("%3A", ":"), ("%2C", ","), *data)
        given = {name: plain(value, own) for name, _, value in pairs}
        found.append((match[1], given, plain(match[3], data)))
    return found


READERS: dict[str, Callable[[str], object]] = {
    "junit": read_junit,
    "sarif": read_sarif,
    "gitlab": read_gitlab,
    "github": read_github,
}


# ---- valid, and readable -------------------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_every_format_is_valid_by_its_schema(name: str) -> None:
    report = SAMPLES[name]()
    read_junit(junit.render(report))
    read_sarif(sarif.render(report))
    read_gitlab(gitlab.render(report))
    read_github(github.render(report))


@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(samples.reports(st.text(min_size=1, max_size=20)))
def test_every_report_is_valid_whatever_stands_in_it(report: Report) -> None:
    suite = read_junit(junit.render(report))[0]
    assert len(suite.findall("testcase")) == int(suite.get("tests", ""))
    assert len(read_sarif(sarif.render(report))["results"]) == len(report.findings)
    issues = read_gitlab(gitlab.render(report))
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    assert len(read_github(github.render(report))) >= len(report.findings)
    for made in (junit.render(report), sarif.render(report), gitlab.render(report)):
        assert made.isascii()


def test_junit_counts_failures_errors_and_what_was_skipped() -> None:
    report = samples.broken()
    suite = read_junit(junit.render(report))[0]
    by_name = {case.get("name"): case for case in suite.findall("testcase")}
    failure = by_name["vc-runtime"].find("failure")
    assert failure is not None
    assert failure.get("type") == "vcredist-too-old"
    assert "winget install" in (failure.text or "")
    assert by_name["nccl"].find("skipped") is not None
    assert by_name["shm"].find("error") is not None
    assert list(by_name["check-0"]) == []
    counted = {
        kind: len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error", "skipped")
    }
    said = {"failure": "failures", "error": "errors", "skipped": "skipped"}
    assert {kind: int(suite.get(said[kind], "")) for kind in said} == counted


def test_a_warning_fails_a_test_case_only_where_warnings_are_to_fail() -> None:
    report = samples.broken()
    for fail_on, fails in (("error", False), ("warning", True)):
        suite = read_junit(junit.render(report, fail_on=fail_on))[0]
        types = {failure.get("type") for failure in suite.iter("failure")}
        assert ("torchvision-of-another-release" in types) is fails


def test_sarif_has_the_place_and_the_rule_of_a_finding() -> None:
    run = read_sarif(sarif.render(samples.broken()))
    (placed,) = [result for result in run["results"] if "locations" in result]
    place = placed["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "requirements.txt"
    assert place["region"]["startLine"] == 3
    rule = run["tool"]["driver"]["rules"][placed["ruleIndex"]]
    assert rule["id"] == placed["ruleId"] == "torchvision-of-another-release"
    assert placed["level"] == "warning"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("src/train.py", "src/train.py"),
        ("./a b%.py", "a%20b%25.py"),
        ("/srv/x.py", "file:///srv/x.py"),
        ("C:\\w\\x.py", "file:///C:/w/x.py"),
        ("w\\x.py", "w/x.py"),
        ("a:b.py", "a%3Ab.py"),
        ("\\\\server\\share\\x.py", "file://server/share/x.py"),
    ],
)
def test_a_file_of_any_system_becomes_a_uri(file: str, expected: str) -> None:
    assert sarif.uri(file) == expected


def test_github_shows_a_finding_at_its_place_with_all_that_is_said() -> None:
    said = read_github(github.render(samples.broken()))
    level, given, text = next(row for row in said if row[1].get("file"))
    assert (level, given["file"], given["line"]) == ("warning", "requirements.txt", "3")
    assert "torchvision 0.19.0 was not built for torch 2.9.1." in text
    assert {level for level, _, _ in said} == {"error", "warning", "notice"}


def test_a_finding_cannot_smuggle_a_command_into_the_log() -> None:
    evil = samples.finding(
        summary="x\n::set-output name=a::b\r::error::c",
        location=Location("a,line=1::b\n::warning::d", 1),
    )
    report = document.build(target=samples.LIVE, findings=(evil,), headline="::error::first\n::x::")
    text = github.render(report)
    assert len(read_github(text)) == 1
    assert not text.startswith("::")
    assert text.count("\n") == 2


def test_gitlab_marks_two_findings_of_one_text_apart() -> None:
    one = samples.finding(location=Location("./x.py", 3))
    report = document.build(target=samples.LIVE, findings=(one, one))
    issues = read_gitlab(gitlab.render(report))
    assert issues[0]["fingerprint"] != issues[1]["fingerprint"]
    assert issues[0]["location"] == {"path": "x.py", "lines": {"begin": 3}}


def test_a_fingerprint_stays_when_lines_are_added_above() -> None:
    before, after = (samples.finding(location=Location("x.py", line)) for line in (3, 30))
    assert sarif.fingerprint(before) == sarif.fingerprint(after)


# ---- the command line ----------------------------------------------------------------------------

FAULTY = str(Path(__file__).parents[1] / "corpus" / "026-driver-too-old-11040" / "input.txt")


@pytest.mark.parametrize("form", READERS)
def test_the_exit_code_is_the_same_in_every_format(
    form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = cli.main(["check", FAULTY, "--format", form])
    READERS[form](capsys.readouterr().out)
    assert code == cli.main(["check", FAULTY]) == 1


def test_a_summary_of_the_job_is_added_to_the_file_that_the_runner_names(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", "utf-8")
    done = subprocess.run(
        (sys.executable, "-m", "torchdoctor", "check", FAULTY, "--format", "github"),
        env={**os.environ, github.SUMMARY: str(summary)},
        capture_output=True,
        text=True,
        check=False,
    )
    read_github(done.stdout)
    said = summary.read_text("utf-8")
    assert said.startswith("before\n")
    assert "#### Findings" in said


def test_findings_of_lint_have_their_place_in_sarif(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\nfrom torch.nn.parallel import DistributedDataParallel\n"
        "model = DistributedDataParallel(m)\nmodel.load_state_dict(torch.load('x.pt'))\n"
        "for batch in loader:\n    loss = model(batch)\n    loss.backward()\n    total += loss\n",
        "utf-8",
    )
    cli.main(["lint", str(script), "--format", "sarif"])
    results = read_sarif(capsys.readouterr().out)["results"]
    assert results
    assert all(r["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1 for r in results)
