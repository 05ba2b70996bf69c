"""Choose checks and findings by name: ``--only`` and ``--skip``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from torchdoctor.model import DoctorError, Finding
from torchdoctor.registry import Check


def select(
    checks: Mapping[str, Check], *, only: Iterable[str] = (), skip: Iterable[str] = ()
) -> dict[str, Check]:
    """Return *checks*, cut down to *only* and without *skip*.

    Each word is a check, a finding or a family. A check of which only some findings are wanted
    makes only those.

    Raises:
        DoctorError: a word is none of them.

    """
    wanted, unwanted = _words(checks, only), _words(checks, skip)
    chosen: dict[str, Check] = {}
    for name, check in checks.items():
        groups = {name, check.family}
        if unwanted & groups or (wanted and not wanted & {*groups, *check.names}):
            continue
        kept = set(check.names) - unwanted
        if wanted and not wanted & groups:
            kept &= wanted
        if kept:
            whole = kept == set(check.names)
            chosen[name] = check if whole else replace(check, run=_filtered(check.run, kept))
    return chosen


def _filtered(
    run: Callable[..., Iterator[Finding]], kept: set[str]
) -> Callable[..., Iterator[Finding]]:
    def some(**given: object) -> Iterator[Finding]:
        return (finding for finding in run(**given) if finding.name in kept)

    return some


def _words(checks: Mapping[str, Check], lists: Iterable[str]) -> set[str]:
    words = {word.strip() for entry in lists for word in entry.split(",") if word.strip()}
    known = {n for c in checks.values() for n in (c.name, c.family, *c.names)}
    for word in sorted(words - known):
        import difflib  # noqa: PLC0415 - for a slip of the pen only

        near = difflib.get_close_matches(word, known, 1)
        hint = f"; did you mean {near[0]}?" if near else "; torchdoctor list names them all."
        raise DoctorError(f"{word!r} is no check, finding or family{hint}", kind="usage")
    return words
