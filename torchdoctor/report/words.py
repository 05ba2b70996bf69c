"""Sentences that more than one format for people has in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from torchdoctor.model import REPORTED

if TYPE_CHECKING:
    from torchdoctor.model import Finding, Outcome, Status, Step
    from torchdoctor.report.document import Report, Target

Shell = Literal["bash", "powershell", "cmd"]

# How much is shown unless everything is asked for.
FEW_FAULTS, FEW_LINES, FEW_NOTES = 12, 6, 5
SHORT_REASON, LONG_VALUE, LONGEST = 60, 240, 4000
NEEDS = {"restart-shell": "new shell", "restart-container": "new container"}


def one_line(text: str, limit: int) -> str:
    """Return *text* with its white space collapsed, and its middle left out when it is long."""
    # Far more than is shown, so that a text of many megabytes is not gone through in vain.
    if len(text) > 8 * limit:
        text = f"{text[: 4 * limit]} … {text[-4 * limit :]}"
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half].rstrip()} … {text[-half:].lstrip()}"


def visible(text: str) -> str:
    """Return *text* with whatever could move a cursor or reorder a line made visible."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def tally(outcomes: tuple[Outcome, ...], what: str = "") -> str:
    """Return how many *outcomes* of each kind there are."""
    counts = Counter(outcome.status for outcome in outcomes)
    words: dict[Status, str] = {
        "clear": "clear",
        "found": "with findings",
        "unknown": "unknown",
        "moot": "waiting",
        "crashed": "crashed",
    }
    parts = [f"{counts[status]} {word}" for status, word in words.items() if counts[status]]
    total = " ".join(filter(None, [count(len(outcomes), "check"), what]))
    return f"{total}: {', '.join(parts)}"


def few(names: list[str]) -> str:
    """Return the first of *names*, and how many more there are."""
    if len(names) <= FEW_LINES:
        return ", ".join(names)
    return f"{', '.join(names[:FEW_LINES])} and {len(names) - FEW_LINES} more"


def count(number: int, what: str) -> str:
    """Return *number* of *what*, in the plural where it has to be."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def more(number: int, what: str) -> str:
    """Return that *number* of *what* were left out, and what shows them."""
    return f"and {count(number, f'more {what}')} (--verbose shows all)"


def commands(step: Step, shell: Shell) -> tuple[str, tuple[str, ...]]:
    """Return the commands of *step* for *shell*, and what has to be said before them, if anything.

    Where there are none for *shell*, they are those for another.
    """
    every = step.commands
    own: tuple[str, ...] = getattr(every, shell)
    if own or not every:
        return "", own
    other = every.bash or every.powershell or every.cmd
    return f"There is no command for {shell}. In another shell:", other


def needs(marks: Iterable[str]) -> list[str]:
    """Return what a step needs, in words."""
    return [NEEDS.get(need, need) for need in marks]


def outlook(report: Report, faults: Iterable[Finding], limit: int) -> str:
    """Return what stands once the plan is done, or what the checks came to when there is none.

    It ends with a colon where the findings that remain are to follow.
    """
    plan = report.plan
    if not plan.steps:
        return _no_plan(report, tuple(faults), limit)
    if not (report.outcomes or report.findings):  # no check ran, so nothing was replayed
        return ""
    after = "After this step" if len(plan.steps) == 1 else "After these steps"
    replayed = f" ({tally(plan.outcomes, 'replayed')})" if plan.outcomes else ""
    remain = sum(finding.severity != "note" for finding in plan.remaining)
    if remain:
        return f"{after} {count(remain, 'finding')} would remain{replayed}:"
    if plan.verdict == "healthy":
        return f"{after} nothing else stands in the way{replayed}."
    return f"{after} nothing known stands in the way, but not all can be told{replayed}."


def _no_plan(report: Report, faults: tuple[Finding, ...], limit: int) -> str:
    if not faults:
        return f"{tally(report.outcomes)}." if report.outcomes else ""
    if report.target.source == "script":  # each finding says what to write instead
        return ""
    if "compare" in report.data:  # a plan is for one machine
        return ""
    if all(finding.family == REPORTED for finding in faults):
        return "What to do is in the report that was given."
    names = one_line(", ".join(dict.fromkeys(f.name for f in faults)), limit)
    return f"No command is known that cures {names}."


def untold(outcomes: Iterable[Outcome], say: Callable[[str], str] = str) -> str:
    """Return which checks could not tell, and why; empty when all could.

    *say* says our own words in another language.
    """
    open_ones = [o for o in outcomes if o.status in {"unknown", "moot", "crashed"}]
    # A fault of our own is never the one left out.
    open_ones.sort(key=lambda o: o.status != "crashed")
    groups: dict[str, list[str]] = {}
    for outcome in open_ones:
        groups.setdefault(_short_reason(outcome), []).append(outcome.check)
    said = [
        one_line(f"{_named(names, say)} ({reason})" if reason else _named(names, say), LONG_VALUE)
        for reason, names in list(groups.items())[:FEW_LINES]
    ]
    left = sum(len(names) for names in list(groups.values())[FEW_LINES:])
    if left:
        said.append(say(more(left, "check")))
    return f"{'; '.join(said)}." if said else ""


def _named(names: list[str], say: Callable[[str], str]) -> str:
    """Return the first of *names*, which stay as they are, and how many more there are."""
    return few(names) if len(names) <= FEW_LINES else say(few(names))


def _short_reason(outcome: Outcome) -> str:
    if outcome.status == "crashed":
        last = next((x for x in reversed(outcome.reason.splitlines()) if x.strip()), "")
        return one_line(f"the check crashed: {last}", SHORT_REASON * 2)
    return one_line(outcome.reason.split("; ")[0], SHORT_REASON)


def origin(target: Target) -> str:
    """Return what was looked at."""
    what = ", ".join(target.inputs[:FEW_LINES]) or (
        "this machine" if target.source in {"live", "run"} else ""
    )
    details = [
        target.source,
        target.os or "",
        f"Python {target.python}" if target.python else "",
        target.collected_at or "",
    ]
    said = f"{what} ({', '.join(detail for detail in details if detail)})"
    return one_line(said, LONG_VALUE * 2)
