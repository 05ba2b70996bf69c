"""Where steps lead: the facts after them, and what the checks and common sense say stands then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

from torchdoctor import standing
from torchdoctor.facts import Facts
from torchdoctor.model import Finding, Outcome, Step
from torchdoctor.ranking import findings_of, ranked
from torchdoctor.registry import Check
from torchdoctor.replay import Replay
from torchdoctor.values import dataclass

MOST_WAYS = 30
"""How many ways are gone before the best end so far is taken."""
MORE_WAYS = 20
"""How many more are gone where what costs most is barred."""


@dataclass(frozen=True, slots=True)
class State:
    """Where some steps lead."""

    facts: Facts
    pending: tuple[Finding, ...]
    steps: tuple[Step, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    standing: tuple[Finding, ...] = ()
    """Those of ``pending`` that the checks do not see any more, but that no step has cured."""
    cured: tuple[tuple[Finding, Mapping[str, str]], ...] = ()
    """Those that were cured, with what the step for them put in place."""
    renewed: bool = False
    """Whether a step brought another torch or another interpreter, which is yet to be tried."""

    @property
    def worth(self) -> tuple[int, int, int, int]:
        """Return what is to be as small as can be, the weightiest first."""
        return (*weight_of(self.pending), self.cost, len(self.steps))

    @property
    def cost(self) -> int:
        """Return what the steps cost together."""
        return sum(step.cost for step in self.steps)

    def least(self) -> int:
        """Return the cost that no plan by this way can be below."""
        taken = {step.name for step in self.steps}
        more = (s.cost for f in self.pending for s in f.steps if s.name not in taken)
        return self.cost + min(more, default=0)


class World:
    """What becomes of a machine: each way is gone once, whoever asks where it leads."""

    def __init__(self, checks: Mapping[str, Check], start: State) -> None:
        """Begin at *start*, where *checks* said its outcomes."""
        self._checks = checks
        self._replay = Replay(checks)
        self._replay.told(start.facts, start.outcomes)
        self._makers: dict[str, list[Check]] = {}
        for check in checks.values():
            for name in check.names:
                self._makers.setdefault(name, []).append(check)
        self.prevented: dict[str, list[Finding]] = {}
        """For a step, by its name, what was there when it was left out."""
        self._start = start.facts
        self._shown = names_of(start.pending)
        self._named = set(self._shown)
        """Whatever was found on any way."""
        self._barred: Callable[[Step], bool] = lambda _step: False
        self._known: dict[tuple[int, ...], State] = {}
        self._most = MOST_WAYS
        self._facts: dict[tuple[int, int], tuple[Step, Facts, Facts]] = {}
        self._as_tried: dict[int, tuple[Facts, Facts]] = {}
        self._touched: dict[tuple[int, int], tuple[Step, Facts, Mapping[str, str]]] = {}

    def without(self, barred: Callable[[Step], bool], *, rested: bool = False) -> World:
        """Return this world, in which no step is offered that is *barred*.

        It is as tired as this one, or else *rested*.
        """
        other, mine = copy(self), self._barred
        other._barred = lambda step: mine(step) or barred(step)  # noqa: SLF001 - it is one of us
        if rested:
            other._most = len(self._known) + MORE_WAYS  # noqa: SLF001 - as above
        return other

    @property
    def tired(self) -> bool:
        """Tell whether so many ways were gone that the best end so far is taken."""
        return len(self._known) >= self._most

    def unseen(self, state: State) -> set[str]:
        """Return the findings that a check might have made at *state*, if it could have told."""
        return {
            name
            for outcome in state.outcomes
            if outcome.status in {"moot", "unknown"} or outcome.reason
            for name in self._checks[outcome.check].names
        }

    def offered(self, finding: Finding) -> tuple[Step, ...]:
        """Return the steps that may be taken for *finding*, the cheapest first."""
        allowed = (step for step in finding.steps if not self._barred(step))
        return tuple(sorted(allowed, key=lambda step: step.cost))

    def after(self, state: State, *steps: Step) -> State:
        """Return where *steps*, one after the other, lead from *state*."""
        for step in steps:
            way = (*state.steps, step)
            key = tuple(map(id, way))
            if key not in self._known:
                self._known[key] = self._one(state, step, way)
            state = self._known[key]
        return state

    def lasts(self, steps: Sequence[Step], findings: Sequence[Finding]) -> bool:
        """Tell whether one of *findings* is surely there after *steps* alone.

        It costs less than to go that way, as only the checks that make them are asked.
        """
        met = [self._start]
        for step in steps:
            met.append(self._effect(step, met[-1]))
        facts, tried = met[-1], self._tried(met[-1])
        return any(
            self._is_seen(finding, facts) and (tried is facts or self._finds(finding, tried))
            for finding in findings
        ) or any(self._stands(finding, steps, met) for finding in findings)

    def _stands(self, finding: Finding, steps: Sequence[Step], met: Sequence[Facts]) -> bool:
        """Tell whether *finding*, of the start, surely stands all the way: none of *steps* cures.

        *met* are the facts before each, and those at the end.
        """
        if finding.name not in self._shown or self._named.intersection(finding.because_of):
            return False
        for place, step in enumerate(steps):
            if not self._finds(finding, self._tried(met[place + 1])):
                return False
            offered = self._with_new_steps(finding, self._tried(met[place]))
            if standing.cures(step, offered, met[place], self.touched):
                return False
        return True

    def _tried(self, facts: Facts) -> Facts:
        if id(facts) not in self._as_tried:
            self._as_tried[id(facts)] = facts, standing.as_tried(self._start, facts)
        return self._as_tried[id(facts)][1]

    def touched(self, step: Step, facts: Facts) -> Mapping[str, str]:
        """Return what *step* puts in place anew on *facts*, or takes away."""
        key = id(step), id(facts)
        if key not in self._touched:  # with both, so that the ids stay theirs
            self._touched[key] = step, facts, standing.touched(step, facts, self._effect)
        return self._touched[key][2]

    def _effect(self, step: Step, facts: Facts) -> Facts:
        key = id(step), id(facts)
        if key not in self._facts:
            self._facts[key] = step, facts, step.effect(facts)
        return self._facts[key][2]

    def _one(self, state: State, step: Step, way: tuple[Step, ...]) -> State:
        facts = self._effect(step, state.facts)
        outcomes = self._replay.run(facts, state.facts)
        seen = pending_of(outcomes)
        tried = self._tried(facts)
        done = self.touched(step, state.facts)
        renewed = state.renewed or standing.is_new_torch(done)
        if not renewed:  # what an import showed holds on
            old = names_of(state.pending)
            seen = tuple(f for f in seen if f.name in old or self._is_seen(f, tried, echoed=True))
        found = names_of(seen)
        self._named |= found
        undone = [f for f, before in state.cured if standing.undoes(done, before)]
        gone = [f for f in (*state.pending, *undone) if f.name not in found]
        stand = self._standing(gone, step, state.facts, tried)
        open_ones = found | names_of(stand)
        return State(
            facts,
            pending=ranked((*seen, *stand)) if stand else seen,
            steps=way,
            outcomes=outcomes,
            standing=stand,
            cured=(
                *((f, before) for f, before in state.cured if f not in undone),
                *((f, done) for f in gone if f.name not in open_ones),
            ),
            renewed=renewed,
        )

    def _standing(
        self, gone: Sequence[Finding], step: Step, before: Facts, tried: Facts
    ) -> tuple[Finding, ...]:
        """Return what stands of what is *gone*; what is offered for it by now cures it, too.

        What came up on the way and is out of sight again was never seen by anyone.
        """
        then = self._tried(before)
        stand = standing.standing(
            gone,
            step,
            before,
            finds=lambda finding: self._finds(finding, tried),
            offered=lambda finding: self._with_new_steps(finding, then),
            puts=self.touched,
        )
        return tuple(finding for finding in stand if finding.name in self._shown)

    def _with_new_steps(self, finding: Finding, facts: Facts) -> Finding:
        had = {step.name for step in finding.steps}
        new = {
            step.name: step
            for check in self._makers.get(finding.name, ())
            for other in self._replay.look(check, facts, self._start).findings
            if other.name == finding.name and other.severity != "note"
            for step in other.steps
            if step.name not in had
        }
        if not new:
            return finding
        return replace(finding, steps=(*finding.steps, *(new[name] for name in sorted(new))))

    def _finds(self, finding: Finding, facts: Facts) -> bool:
        return any(
            other.name == finding.name
            for check in self._makers.get(finding.name, ())
            for other in self._replay.look(check, facts, self._start).findings
        )

    def _is_seen(self, finding: Finding, facts: Facts, *, echoed: bool = False) -> bool:
        """Tell whether a run of all checks on *facts* surely makes *finding* above a note.

        With *echoed* it may be one that a check only repeats.
        """
        return any(
            other.name == finding.name and other.severity != "note"
            for check in self._makers.get(finding.name, ())
            if echoed or not check.echoes
            if not any(self._errs(name, facts) for name in check.after)
            for other in self._replay.look(check, facts, self._start).findings
        )

    def _errs(self, name: str, facts: Facts) -> bool:
        check = self._checks.get(name)
        said = self._replay.look(check, facts, self._start).findings if check else ()
        return any(finding.severity == "error" for finding in said)


def pending_of(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """Return the findings in *outcomes* that want a step, the first to look at first."""
    return tuple(f for f in findings_of(outcomes) if f.severity != "note")


def weight_of(findings: Sequence[Finding]) -> tuple[int, int]:
    """Return how many errors are left, and how many findings at all."""
    return sum(f.severity == "error" for f in findings), len(findings)


def names_of(findings: Iterable[Finding]) -> set[str]:
    """Return the names of *findings*."""
    return {finding.name for finding in findings}
