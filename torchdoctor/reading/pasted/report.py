"""torchdoctor's own reports: the one of a terminal, at any width, and the one in Markdown.

What a report says of the facts (its evidence, its commands) is not a fact to be judged again: the
lines of a report are taken out of the text, and its findings are kept as symptoms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from torchdoctor.facts import Symptom
from torchdoctor.reading.pasted import embedded, normalise, report_words
from torchdoctor.reading.pasted.said import PRINTED, Said

LAYOUT = "a report of torchdoctor"
NAME = "reported"
"""The symptom that stands for one finding of a report, or for a report without any."""
MOST_LINES = 5_000
"""Lines of one report."""
MOST_ABOVE = 40
LONGEST_SUMMARY = 4_000

_HINTS = ("certain", "likely", "possible", "checks: ", "torchdoctor", "\u9879\u68c0\u67e5")
"""One of these is in every report; the last one is "checks" in Chinese."""
_FINDING = r"[a-z0-9]{1,40}(?:-[a-z0-9]{1,40}){0,12}"
_SEVERITY = r"(?P<severity>error|warning|note) (?:·|-) (?P<confidence>certain|likely|possible)"
_MARK = "(?:[\u2717x!-])"
_TITLE = re.compile(rf"\s{{0,12}}{_MARK} (?P<name>{_FINDING})\s{{2,120}}{_SEVERITY}$")
_TITLE_ABOVE = re.compile(rf"\s{{0,12}}{_MARK} (?P<name>[a-z0-9][a-z0-9-]{{0,240}})$")
_TITLE_MORE = re.compile(r"\s{1,14}(?P<name>[a-z0-9-]{1,240})$")
_TITLE_BELOW = re.compile(rf"\s{{0,14}}{_SEVERITY}$")
_ITEM = re.compile(
    rf"\s{{0,12}}(?:[-*\u2022] )?(?P<name>{_FINDING}) \({_SEVERITY}\):(?P<summary>.*)"
)
_HEAD = re.compile(
    r"\s{0,12}torchdoctor [0-9]\S{0,40}: (?P<verdict>healthy|degraded|broken|unknown)\."
    r"(?P<headline>.*)"
)
_CLEAR = re.compile(
    r"\s{0,12}(?:PyTorch works (?:here|there)|Cannot tell whether PyTorch works (?:here|there):"
    r"|Nothing was found that stands)"
)
_WORKS = re.compile(
    r"(?P<how>PyTorch works \w+|Nothing was found that stands in the way): "
    r"torch (?P<torch>[0-9][\w.+]{0,60}?)(?: \(Python (?P<python>[0-9][\w.+]{0,30}?)\))?(?:,|\.?$)"
)
_TALLY = re.compile(r"\s{0,12}[0-9,]{1,9} checks?: [0-9]{1,6} (?:clear|with|unknown|waiting|crash)")
_PROMPT = re.compile(r".{0,200}\btorchdoctor(?:\.pyz)?(?:\.exe)? (?:check|install)\b")

_ABOUT = re.compile(r"(?P<label>at|cause|seen|then) {2,6}(?P<text>\S.*)")
_NOTE = re.compile(r"Note: (?P<text>.*)")
_NOTE_NAME = re.compile(rf"(?P<summary>.*)\((?P<name>{_FINDING})\)$")
_THEN = re.compile(rf"(?P<name>{_FINDING})(?:: |\uff1a)")
_CAUSES = re.compile(r"[-*\u2022] because of: (?P<text>.*)")
_LAST = re.compile(r"More: {1,3}torchdoctor explain ")
_ORIGIN = re.compile(r"Looked at: ")
_LABELS = re.compile(
    rf"Do this$|Note: |Not told:|Not read: |Looked at: |Clear: |{_MARK} {_FINDING}(?:: |\uff1a)|"
    r"and [0-9,]{1,9} more "
)
_STEP = re.compile(r"[0-9]{1,3}\.(?: |$)")
_MARKDOWN = re.compile(r"(?:#{1,6} )?(?:Findings|Do this)$|[-*\u2022] \S|and [0-9,]{1,9} more ")
_OPEN = re.compile(
    r"After th(?:is step|ese steps) |No command is known |What to do is in the report|"
    r"[0-9,]{1,9} checks?: "
)
"""What begins a sentence that may go on in the next line without a mark."""
_BRACKETS = (("(", ")"), ("\uff08", "\uff09"))
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass
class _Finding:
    name: str
    severity: str
    confidence: str
    title: str
    summary: list[str] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    consequences: list[str] = field(default_factory=list)


@dataclass
class _Report:
    """One report: the lines from ``start`` to ``end``, and what it says."""

    start: int
    headline: str
    verdict: str = ""
    end: int = 0
    findings: list[_Finding] = field(default_factory=list)


def take(text: str, source: str) -> tuple[str, tuple[Symptom, ...], tuple[Said, ...]]:
    """Return *text* without torchdoctor's reports in it, their findings, and what they say.

    A report whose snapshot was read from the same text is taken out and says nothing: the
    snapshot says it all. *source* is kept in each symptom.
    """
    if not any(hint in text for hint in _HINTS):
        return text, (), ()
    lines = list(normalise.clean(text))
    reports = list(_reports([report_words.in_english(line) for line in lines]))
    if not reports:
        return text, (), ()
    symptoms: list[Symptom] = []
    said: list[Said] = []
    rest: list[str] = []
    at = 0
    for report in reports:
        rest += [*lines[at : report.start], ""]
        at = report.end
        if any(line.strip() == embedded.TAKEN for line in lines[report.start : report.end]):
            continue
        symptoms += _symptoms(report, source)
        said += _said(report)
    return "\n".join([*rest, *lines[at:]]), tuple(symptoms), tuple(said)


# ---- where they are -----------------------------------------------------------------------------


def _reports(lines: Sequence[str]) -> Iterator[_Report]:
    at = 0
    while at < len(lines):
        report = _begins(lines, at)
        if report is None:
            at += 1
            continue
        _Body(lines, report).read()
        yield report
        at = max(report.end, at + 1)


def _begins(lines: Sequence[str], at: int) -> _Report | None:
    """Return the report that line *at* shows to be there, with its first line and headline."""
    line = lines[at][:1000]
    if head := _HEAD.match(line):
        return _Report(at, _unescaped(lines[at][head.start("headline") :]), head["verdict"])
    if _CLEAR.match(line):
        end = _paragraph_end(lines, at)
        below = next((x for x in lines[end : end + 3] if x.strip()), "")
        if _TALLY.match(below):
            return _Report(at, _joined(lines[at:end]))
        return None
    if _title(lines, at) or _ITEM.match(line):
        start = _above(lines, at)
        return _Report(start, _joined(lines[start:at]))
    return None


def _above(lines: Sequence[str], at: int) -> int:
    """Return where the headline of a report begins whose first title is line *at*."""
    end = at
    while end and at - end < 3 and not lines[end - 1].strip():  # noqa: PLR2004
        end -= 1
    if end == at:
        return at
    start = end
    while start and end - start < MOST_ABOVE and lines[start - 1].strip():
        start -= 1
    typed = [place for place in range(start, end) if _PROMPT.match(lines[place][:400])]
    return typed[-1] + 1 if typed else start


def _paragraph_end(lines: Sequence[str], at: int) -> int:
    end = at
    while end < len(lines) and end - at < MOST_ABOVE and lines[end].strip():
        end += 1
    return end


def _title(lines: Sequence[str], at: int) -> tuple[_Finding, int] | None:
    """Return the finding whose title is at line *at*, and the line after the title."""
    line = lines[at]
    if len(line) > 1000:  # noqa: PLR2004 - no page is as wide
        return None
    if whole := _TITLE.match(line):
        return _Finding(whole["name"], whole["severity"], whole["confidence"], line.strip()), at + 1
    return _broken_title(lines, at)


def _broken_title(lines: Sequence[str], at: int) -> tuple[_Finding, int] | None:
    """Return the same for a title that had no room in one line."""
    above = _TITLE_ABOVE.match(lines[at])
    name = above["name"] if above else ""
    for place in range(at + 1, min(at + 6, len(lines)) if above else 0):
        below = _TITLE_BELOW.match(lines[place])
        if below and re.fullmatch(_FINDING, name):
            shown = f"{lines[at].strip()}  {lines[place].strip()}"
            return _Finding(name, below["severity"], below["confidence"], shown), place + 1
        folded = _TITLE_MORE.match(lines[place])
        if folded is None:
            break
        name += folded["name"]
    return None


# ---- what they say ------------------------------------------------------------------------------


class _Body:
    """Reads the lines of one report, as far as they are its own."""

    def __init__(self, lines: Sequence[str], report: _Report) -> None:
        self._lines = lines
        self._report = report
        self._margin = 0
        self._label = ""
        self._open = ""
        self._plan = False

    def read(self) -> None:
        """Fill ``findings`` and ``end`` of the report."""
        at = self._after_headline()
        self._report.end = at
        stop = min(len(self._lines), at + MOST_LINES)
        while at < stop:
            if not self._lines[at].strip():
                self._open, self._label = "", ""
                at += 1
                continue
            following = self._take(at)
            if following is None:
                break
            at = self._report.end = following
            if _LAST.match(self._lines[at - 1].lstrip()):
                break
        self._to_the_last_line()

    def _after_headline(self) -> int:
        report, lines = self._report, self._lines
        if report.verdict:
            return report.start + 1
        if _CLEAR.match(lines[report.start]):
            self._margin = _indent(lines[report.start])
            return _paragraph_end(lines, report.start)
        at = report.start
        while _title(lines, at) is None and not _ITEM.match(lines[at][:1000]):
            at += 1
        self._margin = _indent(lines[at])
        return at

    def _to_the_last_line(self) -> None:
        """Take in what a page has left without indentation, up to the line that ends Markdown."""
        report, lines = self._report, self._lines
        if not report.verdict:
            return
        for at in range(report.end, min(len(lines), report.end + MOST_LINES)):
            if _HEAD.match(lines[at][:1000]):
                return
            if _ORIGIN.match(lines[at].lstrip()):
                report.end = at + 1
                break
        for at in range(report.end, min(len(lines), report.end + 6)):
            line = lines[at].strip()
            if line.startswith(("-----TORCHDOCTOR SNAPSHOT", "Snapshot of the machine")):
                report.end = at + 1

    def _take(self, at: int) -> int | None:
        """Take line *at* as one of the report's; return the next one, None when it is none."""
        raw = self._lines[at]
        if titled := _title(self._lines, at):
            self._report.findings.append(titled[0])
            self._open, self._label = "", "summary"
            return titled[1]
        if item := _ITEM.match(raw[: LONGEST_SUMMARY * 2]):
            finding = _Finding(
                item["name"], item["severity"], item["confidence"], raw.strip()[:300]
            )
            finding.summary.append(_unescaped(item["summary"]))
            self._report.findings.append(finding)
            self._open, self._label = "", "item"
            return at + 1
        line = raw[min(self._margin, _indent(raw)) :]
        if line.startswith("  ") or (line.startswith(" ") and self._label == "item"):
            self._indented(line)
            return at + 1
        if self._is_labelled(line):
            self._open, self._label = "", ""
            if note := _NOTE.match(line):
                self._label = "note"
                self._report.findings.append(_Finding("", "note", "certain", line[:300]))
                self._noted(note["text"])
            return at + 1
        return at + 1 if self._goes_on(line, at) else None

    def _goes_on(self, line: str, at: int) -> bool:
        """Tell whether *line* begins or continues a sentence of the report's own."""
        if _OPEN.match(line):
            self._open, self._label = line, ""
        elif self._open:
            self._open += f" {line}"
        else:
            return self._is_between(at)
        ends = self._open.endswith((".", ":", "\u3002", "\uff1a"))
        if ends and all(self._open.count(a) <= self._open.count(b) for a, b in _BRACKETS):
            self._open = ""
        return True

    def _is_between(self, at: int) -> bool:
        """Tell whether line *at* lost its indentation, as one does that looks like a quotation."""
        below = self._lines[at + 1] if at + 1 < len(self._lines) else ""
        return bool(self._lines[at - 1].strip()) and _indent(below) - self._margin > 1

    def _is_labelled(self, line: str) -> bool:
        self._plan = self._plan or line.endswith("Do this")
        if _LAST.match(line) or _LABELS.match(line) or (self._plan and _STEP.match(line)):
            return True
        return bool(self._report.verdict and _MARKDOWN.match(line))

    def _indented(self, line: str) -> None:
        if self._label == "note":
            if _indent(line) >= len("Note: "):
                self._noted(line.strip())
            else:
                self._label = "seen"  # with everything shown, its evidence follows
            return
        if not self._report.findings or not self._label:
            return
        finding = self._report.findings[-1]
        about = _ABOUT.match(line[2:])
        if about:
            self._label, line = about["label"], about["text"]
        text = line.strip()
        if self._label == "summary":
            finding.summary.append(text)
        elif self._label == "cause":
            finding.causes += re.findall(rf"{_FINDING}(?=,|$)", text)
        elif self._label == "then" and (then := _THEN.match(text)):
            finding.consequences.append(then["name"])
        elif self._label == "item" and (causes := _CAUSES.match(text)):
            finding.causes += re.findall(rf"{_FINDING}(?=[`,]|$)", causes["text"])

    def _noted(self, text: str) -> None:
        """Add *text* to the note that is being read; its name is what stands at the end."""
        finding = self._report.findings[-1]
        finding.summary.append(text)
        whole = " ".join(finding.summary)
        if named := _NOTE_NAME.match(whole[-LONGEST_SUMMARY:]):
            finding.name = named["name"]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _joined(lines: Sequence[str]) -> str:
    return report_words.joined(" ".join(" ".join(lines).split()))[:LONGEST_SUMMARY]


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text).strip()[:LONGEST_SUMMARY]


def _symptoms(report: _Report, source: str) -> Iterator[Symptom]:
    named = [finding for finding in report.findings if finding.name]
    folded = {name: finding.name for finding in named for name in finding.consequences}
    for place, finding in enumerate(named):
        summary = report_words.joined(" ".join(finding.summary))
        if finding.severity == "note" and finding.title.startswith("Note: "):
            summary = summary.removesuffix(f"({finding.name})").strip()
        if not summary and place == 0:
            summary = report_words.others().sub("", report.headline)
        # What explains it may have been folded under another, which explains both.
        causes = [*finding.causes, *(folded[c] for c in finding.causes if c in folded)]
        values = {
            "finding": finding.name,
            "severity": finding.severity,
            "confidence": finding.confidence,
            "summary": summary[:LONGEST_SUMMARY],
        }
        if causes := [name for name in dict.fromkeys(causes) if name != finding.name]:
            values["because_of"] = " ".join(causes)
        yield Symptom(NAME, values, source, finding.title)
    if not named:
        values = {"verdict": report.verdict, "summary": report.headline}
        yield Symptom(NAME, {k: v for k, v in values.items() if v}, source, report.headline[:300])


def _said(report: _Report) -> Iterator[Said]:
    """Yield what the first line of a report without faults says of torch and its Python."""
    if any(finding.severity != "note" for finding in report.findings):
        return
    works = _WORKS.match(report.headline)
    if works is None:
        return
    yield Said("torch.version", works["torch"], LAYOUT, PRINTED)
    if works["how"].startswith("PyTorch works"):
        yield Said("trial.imported", works["torch"], LAYOUT, PRINTED)
    if works["python"]:
        yield Said("interpreter.version", works["python"], LAYOUT, PRINTED)
