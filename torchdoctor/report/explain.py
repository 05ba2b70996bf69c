"""What the checks say of themselves: one of them in full, or all of them in rows."""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterable, Mapping

from torchdoctor.model import DoctorError
from torchdoctor.registry import Check

_ROLE = re.compile(r":[a-z]+:`~?(?:[\w.]+\.)?(\w+)`")
_LITERAL = re.compile(r"``(.+?)``")


def explain(name: str, checks: Mapping[str, Check]) -> str:
    """Return what is known of *name*: a finding, a check, or a family of checks.

    Raises :class:`~torchdoctor.model.DoctorError` with the nearest names when there is none.
    """
    makers = [check for check in checks.values() if name in check.names]
    # What only repeats, or answers a question, says nothing of the finding itself.
    if makers := [check for check in makers if not check.echoes] or makers:
        texts = [_of_finding(name, check) for check in makers]
    elif name in checks:
        texts = [_of_check(checks[name])]
    else:
        texts = []
    if family := [check for check in checks.values() if check.family == name]:
        texts.append(_of_family(name, family))
    if not texts:
        raise DoctorError(_unknown(name, checks), kind="usage")
    return "\n".join(texts)


def listing(checks: Mapping[str, Check]) -> str:
    """Return every check by family: its name, its subject, the findings that it can make."""
    families = sorted({check.family for check in checks.values()})
    return "\n".join(
        _of_family(family, [check for check in checks.values() if check.family == family])
        for family in families
    )


def _of_finding(name: str, check: Check) -> str:
    return f"{name}: a finding of the check {check.name} (family {check.family})\n\n{_about(check)}"


def _of_check(check: Check) -> str:
    return f"{check.name}: a check (family {check.family})\n\n{_about(check)}"


def _about(check: Check) -> str:
    facts = [
        ("Finds: ", check.names),
        ("Reads: ", check.reads),
        ("Waits for: ", check.after),
    ]
    rows = [_hanging(label, names) for label, names in facts if names]
    return "\n".join([cleaned(check.explains) or "It says nothing of itself.", "", *rows]) + "\n"


def _of_family(name: str, checks: Iterable[Check]) -> str:
    rows = [name]
    for check in sorted(checks, key=lambda check: check.name):
        rows += [f"  {check.name}: {title(check)}", _hanging("    ", check.names)]
    return "\n".join(rows) + "\n"


def title(check: Check) -> str:
    """Return what *check* looks for, in one sentence."""
    return cleaned(check.explains).partition("\n\n")[0].replace("\n", " ")


def _hanging(label: str, names: Iterable[str]) -> str:
    return textwrap.fill(
        ", ".join(names),
        100,
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def cleaned(docstring: str) -> str:
    """Return *docstring* as plain text: the names in it without their markup."""
    return _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", docstring)).strip()


def _unknown(name: str, checks: Mapping[str, Check]) -> str:
    known = {
        *checks,
        *(finding for check in checks.values() for finding in check.names),
        *(check.family for check in checks.values()),
    }
    asked = name if len(name) <= 60 and name.isprintable() else ascii(name[:60])  # noqa: PLR2004
    near = difflib.get_close_matches(name[:100], sorted(known), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`torchdoctor list` shows all."
    return f"There is no finding, check or family called {asked}; {hint}"
