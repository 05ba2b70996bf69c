"""Ask every rule of every module, and make findings of what it says."""

from __future__ import annotations

import ast
import fnmatch
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchdoctor.lint import source
from torchdoctor.lint.rule import Edit, Hit, Rule
from torchdoctor.lint.script import Script
from torchdoctor.lint.settings import Settings
from torchdoctor.lint.source import Source, Unreadable
from torchdoctor.model import SEVERITIES, Evidence, Finding, Location, Outcome, Step


@dataclass(frozen=True, slots=True)
class Found:
    """A finding, and what would mend it."""

    finding: Finding
    edits: tuple[Edit, ...] = ()


@dataclass(slots=True)
class Looked:
    """What came of all files."""

    found: list[Found] = field(default_factory=list)
    files: int = 0
    """How many were looked at, those included in which no rule had anything to ask."""
    unread: list[str] = field(default_factory=list)
    """Why a file, or a cell, could not be read: one line each."""
    named_unread: int = 0
    """How many of them had been named by the user."""
    mendable: dict[str, bytes] = field(default_factory=dict)
    """The files for which there are edits, as they were when looked at."""
    crashed: dict[str, str] = field(default_factory=dict)
    """Rules that failed, with the trace of the first time."""

    def outcomes(self, rules: Iterable[str]) -> tuple[Outcome, ...]:
        """Return what became of each of *rules*, and of reading the files."""
        by_rule: dict[str, list[Finding]] = {}
        for each in self.found:
            by_rule.setdefault(each.finding.name, []).append(each.finding)
        told = [self._outcome(name, by_rule.get(name, [])) for name in rules]
        reading = Outcome(
            "scripts-read",
            "unknown" if self.unread else "clear",
            reason=_first(self.unread) if self.unread else "",
        )
        return (*told, reading)

    def _outcome(self, name: str, findings: list[Finding]) -> Outcome:
        if name in self.crashed:
            return Outcome(name, "crashed", tuple(findings), self.crashed[name])
        return Outcome(name, "found" if findings else "clear", tuple(findings))

    def findings(self, mends: Step | None = None) -> tuple[Finding, ...]:
        """Return the findings, the gravest first, then by place.

        *mends* is the step that makes the edits, for those that bring some along.
        """
        return tuple(
            replace(each.finding, steps=(mends,)) if mends and each.edits else each.finding
            for each in sorted(self.found, key=_order)
        )


def look(
    paths: Iterable[str], rules: Mapping[str, Rule], settings: Settings | None = None
) -> Looked:
    """Look at the files below *paths* with *rules*.

    Raises:
        DoctorError: a path does not exist.

    """
    given, looked = settings or Settings(), Looked()
    for file, named in source.files(paths, given.exclude):
        _file(file, rules, given, looked, named=named)
    return looked


def again(
    before: Looked, texts: Mapping[str, bytes], rules: Mapping[str, Rule], settings: Settings
) -> Looked:
    """Return what *before* would be if the files in *texts* held those."""
    after = Looked(
        found=[
            f
            for f in before.found
            if f.finding.location is None or f.finding.location.file not in texts
        ],
        files=before.files,
        unread=list(before.unread),
        named_unread=before.named_unread,
        crashed=dict(before.crashed),
    )
    for file, raw in texts.items():
        asked = _for_file(file, _asked(raw, rules), settings)
        after.found += findings(source.read(file, raw), asked, after.crashed)
    return after


def _file(
    file: str, rules: Mapping[str, Rule], settings: Settings, looked: Looked, *, named: bool
) -> None:
    looked.files += 1
    try:
        raw = _bytes(file)
        asked = _asked(raw, rules)
        if not asked and not named:
            return
        module = source.read(file, raw)
        looked.unread += module.skipped
        found = findings(module, _for_file(file, asked, settings), looked.crashed)
        looked.found += found
        if file != "-" and any(each.edits for each in found):
            looked.mendable[file] = raw
    except Unreadable as reason:
        looked.unread.append(f"{file}: {reason}")
        looked.named_unread += named


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read(source.LARGEST + 1)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(source.LARGEST + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror or error}") from None


def _asked(raw: bytes, rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """Return those of *rules* that have a word in *raw*: the others need no syntax tree."""
    there: dict[str, bool] = {}

    def has(word: str) -> bool:
        if word not in there:
            there[word] = word.encode() in raw
        return there[word]

    return {name: rule for name, rule in rules.items() if any(map(has, rule.words))}


def _for_file(file: str, rules: Mapping[str, Rule], settings: Settings) -> Mapping[str, Rule]:
    off: set[str] = set()
    for pattern, names in settings.per_file.items():
        if fnmatch.fnmatch(file, pattern) or fnmatch.fnmatch(file, f"*/{pattern}"):
            off |= set(names)
    return {n: r for n, r in rules.items() if not off & {n, r.family}} if off else rules


def findings(
    module: Source, rules: Mapping[str, Rule], crashed: dict[str, str] | None = None
) -> list[Found]:
    """Return what *rules* find in *module*; a rule that fails is put into *crashed*.

    Raises:
        Unreadable: it is no Python that this interpreter can read.

    """
    try:
        script = source.script(module)
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    lines, whole = source.ignored(module.text)
    found: list[Found] = []
    for rule in rules.values():
        if whole & {"all", rule.name, rule.family}:
            continue
        try:
            hits = list(rule.look(script))
        except RecursionError:
            raise Unreadable("nested too deeply") from None
        except Exception:  # noqa: BLE001 - one broken rule must not hide the other answers
            if crashed is not None:
                crashed.setdefault(rule.name, f"{module.file}\n{traceback.format_exc()}")
            continue
        found += (
            _found(rule, hit, script, module)
            for hit in hits
            if not _off(hit.node, script, rule, lines)
        )
    return found


def _off(node: ast.AST, script: Script, rule: Rule, lines: Mapping[int, frozenset[str]]) -> bool:
    if not lines:
        return False
    statement = script.statement(node)
    ends = {
        node.lineno,  # type: ignore[attr-defined]
        getattr(node, "end_lineno", 0),
        statement.lineno,
    }
    if not isinstance(statement, ast.ClassDef | ast.FunctionDef):
        ends.add(statement.end_lineno or 0)
    return any(
        not lines[line] or lines[line] & {rule.name, rule.family} for line in ends & set(lines)
    )


def _found(rule: Rule, hit: Hit, script: Script, module: Source) -> Found:
    line: int = hit.node.lineno  # type: ignore[attr-defined]
    raw = script.text.split("\n")[line - 1]
    column = len(raw.encode()[: hit.node.col_offset].decode("utf-8", "replace")) + 1  # type: ignore[attr-defined]
    where: dict[str, int | str] | None = None
    if module.cells:
        cell, line = module.cells[line - 1]
        where = {"cell": cell}
    cell_of = f"cell {where['cell']}:" if where else ""
    place = f"{module.file}:{cell_of}{line}:{column}"
    return Found(
        Finding(
            rule.name,
            hit.severity or rule.severity,
            hit.summary,
            (Evidence("script.line", raw.strip()[:200], place),),
            confidence=hit.confidence or rule.confidence,
            family=rule.family,
            location=Location(module.file, line, column),
            where=where,
        ),
        () if module.cells else hit.edits,
    )


def _order(each: Found) -> tuple[int, str, int, int]:
    place = each.finding.location
    assert place is not None
    grave = SEVERITIES.index(each.finding.severity)
    return grave, place.file, place.line or 0, place.column or 0


def _first(reasons: list[str]) -> str:
    more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"


def mended(looked: Looked) -> Iterator[tuple[str, bytes, list[Found]]]:
    """Yield each file in which something can be mended, as it was, with those findings."""
    by_file: dict[str, list[Found]] = {file: [] for file in looked.mendable}
    for each in looked.found:
        place = each.finding.location
        if each.edits and place is not None and place.file in by_file:
            by_file[place.file].append(each)
    for file, found in by_file.items():
        yield file, looked.mendable[file], found
