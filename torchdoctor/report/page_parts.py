"""The pieces that more than one part of a page is made of: a step, its commands, a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from torchdoctor.report import words
from torchdoctor.report.words import LONG_VALUE, LONGEST, one_line, visible

if TYPE_CHECKING:
    from torchdoctor.model import Evidence, Finding, PlannedStep
    from torchdoctor.report.document import Fault
    from torchdoctor.report.words import Shell

ARROW = " -> "
"""Between the files of a chain in which each needs the next."""
SHELLS: dict[Shell, str] = {"bash": "bash", "powershell": "PowerShell", "cmd": "cmd"}


def prose(text: str) -> str:
    """Return *text* as it stands in a page; nothing in it is markup."""
    return escape(visible(text))


# ---- what to do ----------------------------------------------------------------------------------


def of_step(
    planned: PlannedStep, shell: Shell, say: Callable[[str], str], *, level: int = 3
) -> Iterator[str]:
    """Yield the item of a list that *planned* is, its commands for *shell* first.

    *level* is that of its heading.
    """
    step = planned.step
    deletes = f'<span class="tag deletes">{prose(say("deletes"))}</span>'
    tags = deletes if step.deletes else ""
    tags += "".join(f'<span class="tag">{prose(say(n))}</span>' for n in words.needs(step.needs))
    title = prose(one_line(step.title, LONG_VALUE * 2))
    yield f"<li>\n<h{level}>{title}{tags}</h{level}>"
    if step.why.strip():
        yield f"<p>{prose(one_line(step.why, LONGEST))}</p>"
    before, commands = words.commands(step, shell)
    if before:
        yield f"<p>{prose(say(before))}</p>"
    yield from _commands(commands, say)
    if planned.verify:
        yield f"<p>{prose(say('then'))}</p>"
        yield from _commands(planned.verify, say)
    for other, name in SHELLS.items():
        lines: tuple[str, ...] = getattr(step.commands, other)
        if other != shell and lines and lines != commands:
            yield f"<details>\n<summary>{name}</summary>"
            yield from _commands(lines, say)
            yield "</details>"
    yield "</li>"


def _commands(commands: Iterable[str], say: Callable[[str], str]) -> Iterator[str]:
    copy, done, marked = map(say, ("Copy", "Copied", "Marked: copy it with the keyboard"))
    for command in commands:
        yield (
            f'<div class="command"><pre tabindex="0">{escape(visible(command))}</pre>'
            f'<button type="button" hidden data-copy data-done="{escape(done)}" '
            f'data-marked="{escape(marked)}" aria-label="{escape(f"{copy}: {visible(command)}")}">'
            f"{escape(copy)}</button></div>"
        )


# ---- why -----------------------------------------------------------------------------------------


def of_fault(fault: Fault, say: Callable[[str], str], *, level: int = 3) -> Iterator[str]:
    """Yield the card of *fault*: what is so, what shows it, what comes of it."""
    finding = fault.finding
    yield f'<article class="card {finding.severity}">'
    marks = f"{say(finding.severity)} · {say(finding.confidence)}"
    yield (
        f"<h{level}><code>{escape(visible(finding.name))}</code> "
        f'<span class="mark {finding.severity}">{prose(marks)}</span></h{level}>'
    )
    yield f"<p>{prose(one_line(finding.summary, LONGEST))}</p>"
    yield from _place(finding)
    yield from _evidence(finding, say)
    for consequence in fault.consequences:
        both = f"{consequence.name}: {one_line(consequence.summary, LONGEST)}"
        yield f'<p class="quiet">{prose(say("so"))} {prose(both)}</p>'
    yield (
        f'<p class="quiet">{prose(say("More:"))} '
        f"<code>torchdoctor explain {escape(visible(finding.name))}</code></p>\n</article>"
    )


def _place(finding: Finding) -> Iterator[str]:
    if (place := finding.location) is not None:
        spot = (place.file, place.line, place.column)
        at = ":".join(str(part) for part in spot if part is not None)
        yield f"<p><code>{escape(visible(at))}</code></p>"
    if finding.where:
        at = ", ".join(f"{key} {value}" for key, value in finding.where.items())
        yield f"<p><code>{escape(visible(at))}</code></p>"


def _evidence(finding: Finding, say: Callable[[str], str]) -> Iterator[str]:
    if not finding.evidence:
        return
    yield f'<dl class="evidence" aria-label="{escape(say("Evidence"))}">'
    for seen in finding.evidence:
        source = one_line(seen.source, LONG_VALUE)
        from_there = f' <span class="quiet">({prose(source)})</span>' if source else ""
        yield (
            f"<dt>{prose(one_line(seen.fact, LONG_VALUE))}{from_there}</dt><dd>{_value(seen)}</dd>"
        )
    yield "</dl>"


def _value(seen: Evidence) -> str:
    """Return the value of a fact; a chain of files is drawn as one."""
    links = one_line(seen.value, LONGEST).split(ARROW)
    if len(links) == 1:
        return f"<code>{escape(visible(links[0]))}</code>"
    drawn = "".join(f"<li><code>{escape(visible(link))}</code></li>" for link in links)
    return f'<ol class="chain">{drawn}</ol>'
