"""How the doctor does on public bug reports: exact, right, ordered, and what it said too much.

``python -m tests.corpus_score`` prints it by family and by kind, each miss, and for every check
the cases, near misses and rebuilt inputs on which it fired. The rules of scoring are those of
tests/corpus/README.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.near_miss_texts import near_misses
from tests.rebuilt_texts import inputs
from torchdoctor import inputs as reading
from torchdoctor import plan
from torchdoctor.facts import Expectation
from torchdoctor.model import Finding, Plan
from torchdoctor.reading import machine
from torchdoctor.registry import all_checks
from torchdoctor.run import run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORPUS = Path(__file__).parent / "corpus"
CHECKS = all_checks()
FIRST = 3


@dataclass(frozen=True)
class Case:
    """A public report with its confirmed cause."""

    id: str
    set: str
    kind: str
    family: str
    expected: str
    acceptable: tuple[str, ...]
    order: tuple[str, ...]
    decidable: str
    file: Path

    @property
    def healthy(self) -> bool:
        return self.expected == "healthy"


@dataclass(frozen=True)
class Scored:
    """What was said of one case."""

    case: Case
    findings: tuple[Finding, ...]
    plan: Plan

    @property
    def above_note(self) -> list[str]:
        return [f.name for f in self.findings if f.severity != "note"]

    @property
    def exact(self) -> bool:
        said = self.above_note
        return not said if self.case.healthy else said[:1] == [self.case.expected]

    @property
    def right(self) -> bool:
        said = self.above_note
        if self.case.healthy:
            return not said
        names = {self.case.expected, *self.case.acceptable}
        looked_at = said[:FIRST] if self.case.decidable == "shortlist" else said[:1]
        return bool(names & set(looked_at))

    @property
    def ordered(self) -> bool | None:
        """Tell whether the plan clears what is expected in the order expected; None: no order.

        What one step clears has no order within it.
        """
        if not self.case.order:
            return None
        step_of: dict[str, int] = {}
        for number, step in enumerate(self.plan.steps):
            for name in step.clears:
                step_of.setdefault(name, number)
        places = [step_of.get(name, -1) for name in self.case.order]
        return -1 not in places and places == sorted(places)

    @property
    def false(self) -> list[str]:
        """Return the findings above a note that the label does not name."""
        names = {self.case.expected, *self.case.acceptable, *self.case.order}
        return [name for name in self.above_note if name not in names]


def cases() -> list[Case]:
    """Return all cases of the corpus, by their number."""
    found = []
    for folder in sorted(p for p in CORPUS.iterdir() if p.is_dir()):
        label = tomllib.loads((folder / "case.toml").read_text("utf-8"))
        found.append(
            Case(
                id=label["id"],
                set=label.get("set", "first"),
                kind=label["kind"],
                family=label["family"],
                expected=label["expected"],
                acceptable=tuple(label.get("acceptable", ())),
                order=tuple(label.get("expected_order", ())),
                decidable=label.get("decidable", "from-input"),
                file=folder / "input.txt",
            )
        )
    return found


def vocabulary() -> list[str]:
    """Return the names of root causes that tests/corpus/VOCABULARY.md explains."""
    text = (CORPUS / "VOCABULARY.md").read_text("utf-8")
    return re.findall(r"^- `([a-z0-9-]+)` - ", text, re.MULTILINE)


def judge(text: str) -> tuple[tuple[Finding, ...], Plan]:
    """Return the findings and the plan for a pasted *text*."""
    facts = machine.read(reading.of_text(text), Expectation())
    outcomes = run(CHECKS, facts)
    assert not [o for o in outcomes if o.status == "crashed"], [
        o.reason for o in outcomes if o.status == "crashed"
    ]
    return plan.findings_of(outcomes), plan.make(CHECKS, facts, outcomes)


def score(case: Case) -> Scored:
    """Return what is said of *case*."""
    findings, made = judge(case.file.read_text("utf-8"))
    return Scored(case, findings, made)


def table(scored: Sequence[Scored]) -> str:
    """Return the figures by set, by family and by kind, as lines of text."""
    lines = [f"{'':24}{'cases':>6}{'exact':>7}{'right':>7}{'ordered':>9}{'false':>7}"]
    for title, key in (("set", "set"), ("family", "family"), ("kind", "kind")):
        groups: dict[str, list[Scored]] = defaultdict(list)
        for one in scored:
            groups[getattr(one.case, key)].append(one)
        lines.append(f"by {title}")
        lines += [_row(name, group) for name, group in sorted(groups.items())]
    return "\n".join([*lines, _row("all", scored)])


def _row(name: str, group: Sequence[Scored]) -> str:
    ordered = [one.ordered for one in group if one.ordered is not None]
    share = f"{sum(ordered)}/{len(ordered)}" if ordered else "-"
    return (
        f"  {name:22}{len(group):>6}{sum(o.exact for o in group):>7}"
        f"{sum(o.right for o in group):>7}{share:>9}{sum(len(o.false) for o in group):>7}"
    )


def misses(scored: Iterable[Scored]) -> str:
    """Return a line for each case that is not right, and what was said instead."""
    missed = [(o.case, ", ".join(o.above_note) or "nothing") for o in scored if not o.right]
    return "\n".join(f"{c.id} ({c.kind}): {c.expected}; said {said}" for c, said in missed)


def fired(scored: Iterable[Scored]) -> str:
    """Return for every finding the cases on which it was made."""
    where: dict[str, list[str]] = defaultdict(list)
    for one in scored:
        for finding in one.findings:
            where[finding.name].append(
                one.case.id.partition("-")[0] + "!" * (finding.severity != "note")
            )
    return "\n".join(f"{name}: {' '.join(ids)}" for name, ids in sorted(where.items()))


def fired_on(texts: Iterable[tuple[str, str]]) -> str:
    """Return for every finding the *texts*, pairs of a name and a text, on which it was made.

    ! where it is above a note.
    """
    where: dict[str, list[str]] = defaultdict(list)
    for name, text in texts:
        for finding in judge(text)[0]:
            where[finding.name].append(name + "!" * (finding.severity != "note"))
    return "\n".join(f"{name}: {', '.join(ids)}" for name, ids in sorted(where.items()))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the score; with a word, only the cases of that set or with it in their id, in full."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("word", nargs="?", default="")
    word = parser.parse_args(argv).word
    scored = [score(case) for case in cases() if word in case.id or word == case.set]
    print(table(scored))
    print("\nnot right\n" + misses(scored))
    print("\nfired (! above note)\n" + fired(scored))
    if not word:
        print("\nfired on near misses\n" + fired_on((one.id, one.text) for one in near_misses()))
        print("\nfired on rebuilt inputs\n" + fired_on((one.id, one.text) for one in inputs()))
    if word:
        for one in scored:
            print(f"\n{one.case.id}: {one.case.expected} {one.case.order}")
            for finding in one.findings:
                print(
                    f"  {finding.severity} {finding.confidence} {finding.name}: {finding.summary}"
                )
            for step in one.plan.steps:
                print(f"  -> {step.step.title} clears {step.clears}: {step.step.commands.bash}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
