"""Bundles that came in are put together by their cause, not by what they show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchdoctor
from tests import environments
from tests.compare import machines
from tests.report import samples
from tests.report.test_markdown import HOSTILE
from tests.report.test_page import Tree
from tests.scenarios import doctor, trial
from tests.scenarios.catalogue import SCENARIOS
from torchdoctor import cli
from torchdoctor.compare import clusters
from torchdoctor.compare.clusters import MOST, PLANNED, Clusters, Judged
from torchdoctor.model import Finding, Plan, PlannedStep, verdict
from torchdoctor.report import page
from torchdoctor.report.document import Fault, Group, Way

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((Path(torchdoctor.__file__).parent / "compare.schema.json").read_text("utf-8"))
CORPUS = Path(__file__).parents[1] / "corpus"
SAME_FAULT = ("028-arch-5090-cu12x", "029-arch-5070ti-old-nightly")
SAME_SYMPTOM = ("001-win1114-redist-1436", "003-win1114-pyqt5-then-spacy")
HEALTHY = "104-healthy-8xa100-conda-gcc"


def sent(folder: Path, *cases: str) -> list[str]:
    """Return bundles as users send them: ZIP files of the texts of the corpus."""
    made = []
    for case in cases:
        (text,) = (CORPUS / case).glob("input*")
        place = folder / f"{case[:3]}.zip"
        with zipfile.ZipFile(place, "w") as archive:
            archive.write(text, "report.txt")
        made.append(str(place))
    return made


def said(capsys: pytest.CaptureFixture[str], *words: str, form: str = "text") -> tuple[int, str]:
    code = cli.main(["compare", *words, "--format", form])
    return code, capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the clusters of the bundles *words* by their causes."""
    _, out = said(capsys, *words, form="json")
    data = json.loads(out)["data"]["compare"]
    jsonschema.validate(data, SCHEMA)
    return {tuple(row["findings"]): row for row in data["clusters"]}


def stems(row: dict[str, Any]) -> set[str]:
    return {Path(name).stem for name in row["machines"]}


# ---- the bundles that came in --------------------------------------------------------------------


def test_one_fault_is_one_cluster_and_one_symptom_of_two_causes_is_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(capsys, *sent(tmp_path, *SAME_FAULT, *SAME_SYMPTOM, HEALTHY))
    assert stems(found["arch-not-supported",]) == {"028", "029"}
    assert stems(found["vcredist-too-old",]) == {"001"}
    (other,) = (row for row in found.values() if stems(row) == {"003"})
    assert other["findings"] != ["vcredist-too-old"]
    for case in SAME_SYMPTOM:
        assert "1114" in next((CORPUS / case).glob("input*")).read_text("utf-8")
    assert stems(found[()]) == {"104"}
    assert found[()]["verdict"] == "healthy"


def test_a_cluster_has_its_plan_and_what_differs_inside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = told(capsys, *sent(tmp_path, *SAME_FAULT, *SAME_SYMPTOM))["arch-not-supported",]
    (plan,) = row["plans"]
    assert (row["planned"], plan["count"], plan["remaining"]) == (2, 2, [])
    assert plan["steps"][0]["commands"]["bash"]
    inside = {one["fact"]: one["values"] for one in row["differences"]}
    assert {"gpus.name", "torch.version"} & set(inside)
    assert all(sum(v["count"] for v in values) == 2 for values in inside.values())


def test_what_cannot_be_read_is_listed_with_its_reason_in_every_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = sent(tmp_path, *SAME_FAULT, HEALTHY)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(Path(given[0]).read_bytes()[:40])
    for form in ("text", "json", "html"):
        code, out = said(capsys, *given, str(cut), form=form)
        assert code == 1
        assert "a bundle that is cut off" in " ".join(out.split()), form
        assert "arch-not-supported" in out


def test_the_page_has_each_group_once_the_sound_ones_apart_and_loads_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = said(capsys, *sent(tmp_path, *SAME_FAULT, *SAME_SYMPTOM, HEALTHY), form="html")
    tree = Tree(text)
    groups = [attrs for tag, attrs in tree.tags if "group" in (attrs.get("class") or "").split()]
    assert len(groups) == 4
    assert sum("healthy" in (attrs["class"] or "") for attrs in groups) == 1
    assert "No fault was found: 1 machine" in tree.texts["h2"]
    names = {name for _, attrs in tree.tags for name in attrs}
    assert not names & {"src", "href", "srcdoc", "action"}


def test_the_text_says_which_machines_what_to_do_and_what_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, text = said(capsys, *sent(tmp_path, *SAME_FAULT, *SAME_SYMPTOM))
    flat = " ".join(text.split())
    assert "2 machines: arch-not-supported" in flat
    assert "Plan: Install torch " in flat
    assert "They differ in " in flat


def test_a_page_for_others_names_nobody(tmp_path: Path) -> None:
    home = tmp_path / "home" / "brunhilde"
    home.mkdir(parents=True)
    given = []
    for number in range(3):
        one = machines.noisy(machines.base(), number)
        machines.variables(one)["CUDA_HOME"] = f"{home}/cuda{number}"
        one["redacted"] = False
        del one["options"]["seat"]
        given.append(machines.written(home / f"brunhilde-{number}.json", one))
    own = {**os.environ, "USER": "brunhilde", "HOME": str(home), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "torchdoctor", "compare", *given, "--format", "html"]
    done = subprocess.run(words, env=own, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "brunhilde" not in done.stdout
    assert "-2.json" in done.stdout


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_and_no_fact_breaks_out_of_the_page(text: str) -> None:
    broken = replace(samples.finding(text), summary=text)
    way = Way(Plan((PlannedStep(samples.step("a", text), (), ()),)), 1, text, alike=False)
    group = Group(
        *((Fault(broken, (broken,)),), "broken", 3, (text,), (way,), 1, ((text, 1),)),
        differences=((text, ((text, 2), ("x", 1))),),
    )
    sound = Group((), "healthy", 1, (text,))
    report = replace(samples.broken(), groups=(group, sound), unread=((text, text), ("x", text)))
    tree = Tree(page.render(report))
    tags = [tag for tag, _ in tree.tags]
    assert tags.count("script") == tags.count("style") == 1
    assert not {n for _, attrs in tree.tags for n in attrs if n.startswith("on")}


# ---- what makes a cluster ------------------------------------------------------------------------


def judged(*findings: Finding, plan: Plan | None = None) -> Judged:
    made = plan or Plan()
    return Judged(findings, verdict(findings), lambda: made)


def together(*all_: Judged) -> list[clusters.Cluster]:
    made = Clusters()
    for number, one in enumerate(all_):
        made.add(number, one)
    return list(made)


ERROR = samples.finding("driver-too-old")
WARNING = samples.finding("shm-too-small", "warning")
SHOWN = samples.finding("cuda-unavailable", because_of=("driver-too-old",))


def test_neither_a_warning_nor_what_the_cause_explains_parts_machines() -> None:
    (one,) = together(judged(ERROR), judged(ERROR, WARNING), judged(ERROR, SHOWN))
    assert one.causes == ("driver-too-old",)
    assert {name: list(numbers) for name, numbers in one.also.items()} == {"shm-too-small": [1]}


def test_warnings_alone_are_a_fault_and_what_shows_it_without_its_cause_is_another() -> None:
    found = together(judged(ERROR, SHOWN), judged(SHOWN), judged(WARNING), judged())
    assert {one.causes for one in found} == {
        ("driver-too-old",),
        ("cuda-unavailable",),
        ("shm-too-small",),
        (),
    }
    assert not found[-1].faults


def test_machines_without_a_fault_are_sound_only_where_all_was_told() -> None:
    untold = replace(judged(), verdict="unknown")
    assert [one.verdict for one in together(judged(), untold, judged())] == ["healthy", "unknown"]


def test_plans_are_told_apart_by_their_steps_and_commands_of_other_places_are_one() -> None:
    def plan(name: str, command: str) -> Plan:
        return Plan((PlannedStep(samples.step(name, command), (), ()),))

    plans = [plan("a", "/x/pip install t"), plan("a", "/y/pip install t"), plan("b", "reboot")]
    (one,) = together(*(judged(ERROR, plan=p) for p in plans))
    assert [(list(way.machines), way.alike) for way in one.ways.values()] == [
        ([0, 1], False),
        ([2], True),
    ]


def test_any_number_of_machines_and_of_causes_is_counted_in_bounded_memory() -> None:
    asked: list[Plan] = []

    def plan() -> Plan:
        asked.append(Plan())
        return asked[-1]

    made = Clusters()
    for number in range(PLANNED + 5):
        made.add(number, replace(judged(ERROR), plan=plan))
    for number in range(MOST + 5):
        made.add(PLANNED + 5 + number, judged(samples.finding(f"fault-{number}")))
    kept = list(made)
    assert len(asked) == PLANNED
    assert len(kept) == MOST + 1
    assert sum(len(one.machines) for one in kept) == PLANNED + 5 + MOST + 5
    (rest,) = (one for one in kept if one.several)
    assert len(rest.machines) == 6


def test_what_is_kept_of_a_machine_does_not_hold_its_facts() -> None:
    step = samples.step("a", "x")
    held = replace(step, effect=lambda facts: facts)
    (one,) = together(
        judged(replace(ERROR, steps=(held,)), plan=Plan((PlannedStep(held, (), ()),)))
    )
    (way,) = one.ways.values()
    assert way.plan.steps[0].step.effect is not held.effect
    assert one.faults[0].finding.steps[0].effect is not held.effect


# ---- real environments ---------------------------------------------------------------------------

SCENES = (("s1", 1), ("s1", 2), ("s2", 1), ("s4", 1), ("s0", 1))
"""libc10.so gone on two, an import that ends in SIGSEGV, a torch.py in the way, a sound one."""


@pytest.mark.lab
def test_bundles_of_broken_environments_are_told_apart_by_what_was_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = []
    for key, number in SCENES:
        scene = trial.set_up(SCENARIOS[key], trial.place(f"triage {key}"), whole=False)
        doctor.elsewhere(scene)
        given.append(str(tmp_path / f"{key}-{number}.zip"))
        Path(scene.folder / "another machine" / "sent.zip").rename(given[-1])
    environments.drop_copies()
    found = {cause: stems(row) for cause, row in told(capsys, *given).items()}
    assert found == {
        ("torch-files-missing",): {"s1-1", "s1-2"},
        ("torch-files-corrupt",): {"s2-1"},
        ("local-module-shadow",): {"s4-1"},
        (): {"s0-1"},
    }
