"""The part of a page on many machines: those with the same fault together, the sound ones apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from torchdoctor.report.page_parts import of_fault, of_step, prose
from torchdoctor.report.words import LONG_VALUE, LONGEST, count, one_line, visible

if TYPE_CHECKING:
    from torchdoctor.model import PlannedStep
    from torchdoctor.report.document import Group, Report, Way
    from torchdoctor.report.words import Shell

Say = Callable[[str], str]
MOST = 200
"""Groups of faulty machines that are drawn."""
OPEN = 3
"""Of them, those that are shown in full from the start."""
MOST_VALUES = 6
MOST_UNREAD = 200
NOT_ALL = "No fault was found, but not all could be told"


def drawn(report: Report, shell: Shell, say: Say) -> Iterator[str]:
    """Yield the sections on the groups of *report*, and on what could not be read."""
    faulty = [group for group in report.groups if group.faults or group.several]
    largest = max((group.count for group in report.groups), default=1)
    if faulty:
        yield f"<section>\n<h2>{prose(say('Machines with the same fault'))}</h2>"
        for place, group in enumerate(faulty[:MOST]):
            yield from _group(group, largest, shell, say, is_open=place < OPEN)
        if (left := len(faulty) - MOST) > 0:
            said = f"and {count(left, 'more group')}"
            yield f"<p>{prose(say(said))}</p>"
        yield "</section>"
    for group in report.groups:
        if not (group.faults or group.several):
            yield from _sound(group, say)
    yield from _unread(report.unread, say)


def _group(group: Group, largest: int, shell: Shell, say: Say, *, is_open: bool) -> Iterator[str]:
    names = prose(say("several faults")) if group.several else _codes(group.causes)
    wide = 100 * group.count / largest
    yield f'<details class="group {group.verdict}"{" open" if is_open else ""}>'
    yield (
        f"<summary><h3>{prose(say(count(group.count, 'machine')))}: {names}</h3>"
        f'<span class="share" aria-hidden="true"><span style="width:{wide:.2f}%"></span></span>'
        "</summary>"
    )
    yield from _machines(group, say)
    if group.faults and group.count > 1:
        yield f'<p class="quiet">{prose(say("As on the first of them:"))}</p>'
    for fault in group.faults:
        yield from of_fault(fault, say, level=4)
    yield from _ways(group, shell, say)
    if group.also:
        said = ", ".join(f"<code>{escape(visible(n))}</code> ({k:,})" for n, k in group.also[:20])
        yield f"<p>{prose(say('Also found:'))} {said}</p>"
    yield from _differences(group, say)
    yield "</details>"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(visible(name))}</code>" for name in names)


def _machines(group: Group, say: Say) -> Iterator[str]:
    names = ", ".join(
        f"<code>{prose(one_line(name, LONG_VALUE))}</code>" for name in group.machines
    )
    left = group.count - len(group.machines)
    more = f" {prose(say(f'and {left:,} more'))}" if left else ""
    yield f'<p class="machines">{names}{more}</p>'


def _ways(group: Group, shell: Shell, say: Say) -> Iterator[str]:
    """Yield the plans of *group*: that of the most machines in full, the others folded."""
    for place, way in enumerate(group.ways):
        if not way.plan.steps:
            said = f"For {count(way.count, 'machine')} no command is known that cures it."
            yield f"<p>{prose(say(said))}</p>"
            continue
        said = f"Plan for {count(way.count, 'machine')} of {group.planned:,}"
        if place:
            yield f"<details>\n<summary>{prose(say(said))}</summary>"
        else:
            one = len(group.ways) == 1
            yield f"<h4>{prose(say('Plan' if one else said))}</h4>"
        yield from _plan(way, shell, say)
        if place:
            yield "</details>"
    if 0 < group.planned < group.count:
        said = (
            f"A plan was made for the first {group.planned:,} of {count(group.count, 'machine')}."
        )
        yield f'<p class="quiet">{prose(say(said))}</p>'


def _plan(way: Way, shell: Shell, say: Say) -> Iterator[str]:
    if not way.alike:
        said = (
            f"The commands are those for {one_line(way.first, 60)}; for the others, names differ."
        )
        yield f'<p class="quiet">{prose(say(said))}</p>'
    yield '<ol class="plan">'
    for planned in way.plan.steps:
        yield from of_step(planned, _shell_of(planned, shell), say, level=5)
    yield "</ol>"
    left = [finding.name for finding in way.plan.remaining if finding.severity != "note"]
    if left:
        yield f"<p>{prose(say('This would remain:'))} {_codes(dict.fromkeys(left))}</p>"


def _shell_of(planned: PlannedStep, shell: Shell) -> Shell:
    """Return *shell*, or PowerShell where a step has commands for Windows only."""
    commands = planned.step.commands
    return "powershell" if shell == "bash" and commands.powershell and not commands.bash else shell


def _differences(group: Group, say: Say) -> Iterator[str]:
    if not group.differences:
        return
    left = group.more_differences
    title = f"{say('What differs among them')} ({len(group.differences) + left})"
    yield f'<details>\n<summary>{prose(title)}</summary>\n<dl class="evidence">'
    for fact, values in group.differences:
        shown = "".join(
            f"<li><code>{prose(one_line(text, LONG_VALUE) or '-')}</code> &times; {many:,}</li>"
            for text, many in values[:MOST_VALUES]
        )
        if (more := len(values) - MOST_VALUES) > 0:
            said = f"and {count(more, 'more value')}"
            shown += f"<li>{prose(say(said))}</li>"
        yield f"<dt>{prose(one_line(fact, LONG_VALUE))}</dt>"
        yield f'<dd><ul class="values">{shown}</ul></dd>'
    yield "</dl>"
    if left:
        said = f"and {count(left, 'more fact')}"
        yield f"<p>{prose(say(said))}</p>"
    yield "</details>"


def _sound(group: Group, say: Say) -> Iterator[str]:
    said = "No fault was found" if group.verdict == "healthy" else NOT_ALL
    yield f'<section class="group {group.verdict}">'
    yield f"<h2>{prose(say(said))}: {prose(say(count(group.count, 'machine')))}</h2>"
    yield from _machines(group, say)
    yield "</section>"


def _unread(rows: tuple[tuple[str, str], ...], say: Say) -> Iterator[str]:
    if not rows:
        return
    title = f"{say('Could not be read')} ({len(rows):,})"
    yield f"<section>\n<h2>{prose(title)}</h2>\n<ul>"
    for name, why in rows[:MOST_UNREAD]:
        told = "" if name in why else f"<code>{prose(one_line(name, LONG_VALUE))}</code>: "
        yield f"<li>{told}{prose(one_line(why, LONGEST))}</li>"
    yield "</ul>"
    if (left := len(rows) - MOST_UNREAD) > 0:
        yield f"<p>{prose(say(f'and {left:,} more'))}</p>"
    yield "</section>"
