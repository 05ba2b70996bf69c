"""Try the doctor on one scene, prove its plan, and show all of it beside what rivals said."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests import environments
from tests.scenarios import doctor, rivals, standins
from tests.scenarios.doctor import Answer, Scene
from tests.scenarios.scenario import Scenario
from torchdoctor.tables import releases


@dataclass(frozen=True)
class Row:
    """What came of one scene."""

    key: str
    title: str
    expected: str
    found: str
    cause: bool
    proof: str
    """"yes", "no: why", "in the lab" (not in this run), or "" when there is nothing to prove."""
    seconds: float

    @property
    def right(self) -> bool:
        """Tell whether nothing is wrong with it."""
        return self.cause and not self.proof.startswith("no:")


def set_up(scenario: Scenario, folder: Path, *, whole: bool) -> Scene:
    """Make the machine of *scenario* in *folder*; *whole* when packages may be installed there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    scene = Scene(folder, scenario.place(folder / "env", whole=whole))
    scenario.build(scene)
    return scene


def place(key: str) -> Path:
    """Return the folder for the scene *key*; a space in it, as users have them."""
    return environments.copies() / "scenes" / key


def judge(scenario: Scenario, answer: Answer) -> list[str]:
    """Return what is wrong with *answer*, one line each."""
    first = answer.unexplained[0] if answer.unexplained else None
    if not scenario.expected:
        wrong = [f"{f['name']}: {f['summary']}" for f in answer.faults]
        if answer.report["verdict"] != "healthy" and not wrong:
            wrong.append(f"verdict {answer.report['verdict']}")
        return wrong + _notes(scenario, answer)
    if first not in scenario.expected:
        return [f"first is {first}, not {' or '.join(scenario.expected)}"]
    wrong = [f"beside it {name}" for name in answer.unexplained[1:]]
    finding = answer.get(first)
    if finding["severity"] not in scenario.severity:
        wrong.append(f"{first} is {finding['severity']}, not {scenario.severity}")
    shown = answer.evidence(first)
    wrong += [f"evidence lacks {text!r}" for text in scenario.shows if text not in shown]
    return wrong + _notes(scenario, answer)


def by_bundle(scenario: Scenario, scene: Scene, answer: Answer) -> list[str]:
    """Return how the answer to a bundle of *scene* differs from *answer*, that of the machine.

    What other programs do to the machine between two looks is no difference: then both look again.
    """
    wrong = unlike(answer, doctor.elsewhere(scene, *scenario.arguments))
    if wrong:
        again = doctor.check(scene, *scenario.arguments)
        wrong = unlike(again, doctor.elsewhere(scene, *scenario.arguments))
    return wrong


def unlike(live: Answer, read: Answer) -> list[str]:
    """Return how *read*, the answer to a bundle, differs from *live*, that of the machine."""
    here, there = (
        [(f["name"], f["severity"], sorted(f["because_of"])) for f in answer.findings]
        for answer in (live, read)
    )
    return [] if here == there else [f"live it is {here}, and by its bundle {there}"]


def _notes(scenario: Scenario, answer: Answer) -> list[str]:
    notes = {f["name"] for f in answer.findings if f["severity"] == "note"}
    return [f"no note {name}" for name in scenario.notes if name not in notes]


def prove(scenario: Scenario, scene: Scene, answer: Answer) -> str:
    """Carry out the plan of *answer* in *scene*; return "yes" or "no: why"."""
    remain = {finding["name"] for finding in answer.report["after_plan"]["findings"]}
    if scenario.proof == "told":
        return "yes" if remain & set(scenario.expected) else "no: it claims a cure"
    cleared = {name for step in answer.report["plan"] for name in step["clears"]}
    if missing := set(answer.unexplained) - cleared:
        return f"no: the plan does not clear {', '.join(sorted(missing))}"
    if answer.report["after_plan"]["verdict"] != "healthy":
        return f"no: after_plan is {answer.report['after_plan']['verdict']}"
    if scenario.proof == "words":
        return "yes"
    try:
        again = _carried_out(scenario, scene, answer)
    except AssertionError as failure:
        return f"no: {failure}"
    return f"no: then {again.unexplained}" if again.faults else "yes"


def _carried_out(scenario: Scenario, scene: Scene, answer: Answer) -> Answer:
    before = scene.environment.version("torch")
    said = doctor.carry_out(scene, follow(scene, answer.commands), wheels)
    if scenario.proof == "heals":
        doctor.import_torch(scene)
        return doctor.check(scene, *scenario.arguments)
    after = scene.environment.version("torch")
    right = after != before and re.fullmatch(scenario.becomes, after or "")
    assert right, f"torch {before} became {after}\n{said}"
    return doctor.check(scene, "--no-import", *scenario.arguments)


def follow(scene: Scene, lines: Iterable[str]) -> list[str]:
    """Return *lines* but for those that change the shell itself; the scene keeps what they do."""
    kept = []
    for line in lines:
        match shlex.split(line):
            case ["unset", *names]:
                for name in names:
                    scene.variables.pop(name, None)
            case ["export", assignment]:
                name, _, value = assignment.partition("=")
                scene.variables[name] = value
            case ["cd", folder]:
                scene.stay_in(folder.replace("$HOME", str(scene.home)))
            case _:
                kept.append(line)
    return kept


def wheels() -> list[Path]:
    """Return every wheel that the indexes of this machine have: real ones and stand-ins."""
    base = environments.base()
    folder = standins.wheel_folder()
    made = [*base.wheels.glob("*.whl"), *base.more.glob("numpy-1*.whl"), *base.more.glob("pillow*")]
    made += standins.nvidia_wheels(folder)
    for tag, cuda in (("cu126", "12.6"), ("cu130", "13.0"), ("cu132", "13.2")):
        made.append(standins.tiny_torch(folder, f"2.13.0+{tag}", cuda=cuda))
        made += standins.fitting_companions(folder, f"+{tag}")
    requires = standins.CU130
    made.append(standins.tiny_torch(folder, "2.13.0", cuda="13.0", requires=requires))
    made += standins.fitting_companions(folder, "")
    made += standins.fitting_companions(folder, "+cpu")
    others = (*standins.OLD, releases.newest("torch"))
    made += [standins.tiny_torch(folder, f"{other}+cpu", requires=()) for other in others]
    made.append(standins.xformers(folder))
    return made


def run(scenario: Scenario, *, lab: bool) -> Row:
    """Try *scenario*; carry out its plan too where that is quick, or with *lab*."""
    folder = place(scenario.key)
    try:
        carried_out = lab or scenario.quick
        scene = set_up(scenario, folder, whole=carried_out and scenario.installs)
        answer = doctor.check(scene, *scenario.arguments)
        wrong = judge(scenario, answer)
        if lab:
            wrong += by_bundle(scenario, scene, answer)
        proof = ""
        if scenario.proof != "none" and not wrong:
            tried = carried_out or scenario.proof in ("words", "told")
            proof = prove(scenario, scene, answer) if tried else "in the lab"
        if left := scene.left():
            wrong.append(f"left running: {left}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    names = ", ".join(answer.unexplained) or "quiet"
    return Row(
        scenario.key,
        scenario.title,
        " or ".join(scenario.expected) or "quiet",
        names if not wrong else f"{names} ({'; '.join(wrong)})",
        not wrong,
        proof,
        answer.seconds,
    )


def table(rows: Iterable[Row]) -> str:
    """Return *rows* as a Markdown table, with the rivals' recorded cells at the right."""
    head = ["scene", "machine", "right answer", "torchdoctor", "cause", "plan proven", "s"]
    lines = [[*head, *rivals.TOOLS]]
    for row in rows:
        found = row.found.splitlines()[0]
        proof = row.proof.splitlines()[0] if row.proof else ""
        cells = [row.key, row.title, row.expected, found, "right" if row.cause else "WRONG"]
        cells += [proof, f"{row.seconds:.1f}"]
        lines.append([*cells, *rivals.CELLS.get(row.key, ("",) * len(rivals.TOOLS))])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    text = (
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    )
    return "\n".join(f"| {line} |" for line in text)
