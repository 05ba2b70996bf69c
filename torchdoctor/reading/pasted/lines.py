"""Lines as a reader wants them: wrapped ones joined again, each with the command it answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from torchdoctor.reading.pasted import normalise
from torchdoctor.values import dataclass

Kind = Literal["output", "command", "python"]
WIDTHS = (80, 100, 120, 132)
"""The widths at which terminals cut lines."""
MAIL = 80
"""The widest line of a text that was wrapped between words."""
NEARLY = 50
"""A line shorter than this was not wrapped, unless it says that something failed."""
WINDOW = 24
MOST_JOINED = 60


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a text: what was typed, or what a program answered.

    ``command`` is, for an answer, what was typed last before it.
    """

    text: str
    kind: Kind = "output"
    command: str = ""
    number: int = 0
    prompt: str = ""
    """What the shell printed before what was typed."""


def read(text: str) -> tuple[Line, ...]:
    """Return the lines of *text*: cleaned, joined, told apart."""
    lines = joined(_dedented(list(normalise.clean(text))))
    return tuple(_with_commands(line.expandtabs(8) for line in lines))


def _dedented(lines: list[str]) -> list[str]:
    """Return *lines* without the blanks that all of them start with, as code in Markdown has."""
    margin = min((len(x) - len(x.lstrip(" ")) for x in lines if x.strip()), default=0)
    return [line[margin:] for line in lines] if margin > 1 else lines


# ---- prompts ------------------------------------------------------------------------------------

_ENV = r"(?:\([\w./\\ :~-]{1,60}\)\s{0,2}){0,2}"
PROMPTS = (
    re.compile(
        rf"\s{{0,8}}{_ENV}PS(?: [A-Za-z]:\\[^<>|\n]{{0,200}}| /[^<>|\n]{{0,200}})?>\s*(?=\S)"
    ),
    re.compile(rf"\s{{0,8}}{_ENV}[A-Za-z]:\\[^<>|\"\n]{{0,200}}>\s*(?=\S)"),
    re.compile(
        rf"\s{{0,8}}{_ENV}\[?[\w.-]{{1,40}}@[\w.-]{{1,64}}[: ][^$#%>\n]{{0,120}}[$#%]\s+(?=\S)"
    ),
    re.compile(rf"\s{{0,8}}{_ENV}(?:~?/?[\w./~-]{{0,80}}\s?)?[$\u276f\u279c]\s+(?=\S)"),
)
"""What shells print before what is typed."""
_PYTHON_PROMPT = re.compile(r"\s{0,8}(?:>>>\s?|In \[\d{1,5}\]:\s?)(?=\S)")
_MORE = re.compile(r"\s{0,8}(?:\.\.\.\s|\s{2,9}\.\.\.:\s)")
_ANSWER = re.compile(r"\s{0,8}Out\[\d{1,5}\]:\s?")
_PROGRAM = (
    r"(?:sudo |!|%|time )*(?:\w+=\S* )*(?:python[\d.]{0,5}|py|pip[\d.]{0,5}|pipx|uv|uvx|conda|"
    r"mamba|"
    r"micromamba|pixi|poetry|nvidia-smi|nvcc|rocm-smi|rocminfo|amd-smi|lspci|dpkg|rpm|apt|"
    r"apt-get|yum|"
    r"dnf|docker|podman|export|echo|cat|uname|ldd|ls|dir|where|which|wget|curl|git|torchrun|deepspeed|accelerate|"
    r"mpirun|srun|ollama)"
)
_MARKED = re.compile(
    rf"\s{{0,8}}{_ENV}(?:[#>%]\s{{0,2}}|[!%](?=\w)|(?=docker (?:run|"
    rf"compose)\b))(?={_PROGRAM}(?:\.exe)? \S|nvidia-smi\s*$)"
)
_PLAIN = re.compile(
    rf"\s{{0,8}}(?={_PROGRAM}(?:\.exe)?\s+(?:-{{1,2}}\w|install|list|show|freeze|debug|run|"
    rf"create|add|pip|"
    r"sync|import|info|[\w/.~]+\.py\b))"
    r"|\s{0,8}(?=nvidia-smi\s*$|nvcc (?:-V|--version)\s*$|uname -\w+\s*$)"
)
_IMPORT = re.compile(r"(?:import [\w, .]{1,80}|from [\w.]{1,60} import )|print\(.{1,200}\)\s*$")


def _with_commands(lines: Iterable[str]) -> Iterator[Line]:
    command = ""
    for number, line in enumerate(lines):
        kind, text, prompt = _told_apart(line)
        if kind != "output":
            command = text
        elif normalise.GAP in text:
            command = ""
        yield Line(text, kind, "" if kind != "output" else command, number, prompt)


def _told_apart(  # noqa: PLR0911 - one answer for each kind of prompt
    line: str,
) -> tuple[Kind, str, str]:
    if not line:
        return "output", line, ""
    if prompt := _PYTHON_PROMPT.match(line):
        return "python", line[prompt.end() :].strip(), ""
    if answer := _ANSWER.match(line):
        return "output", line[answer.end() :], ""
    for pattern in (*PROMPTS, _MARKED, _PLAIN):
        if prompt := pattern.match(line[:400]):
            typed = line[prompt.end() :].strip()
            inside = _PYTHON_PROMPT.match(typed)
            if inside:
                return "python", typed[inside.end() :], prompt[0].strip()
            return "command", typed, prompt[0].strip()
    if _MORE.match(line) or _IMPORT.match(line[:300]):
        return "python", line.strip(), ""
    return "output", line, ""


# ---- lines cut by a terminal or a mail ----------------------------------------------------------

KEY = (
    r"(?:PyTorch version|Is debug build|CUDA used to build|ROC[mM] (?:SDK )?used to build|"
    r"HIP used to build|OS\s*:|GCC version|Clang version|CMake version|Libc version|Python version|"
    r"Python platform|Is (?:CUDA|XPU|XNNPACK) available|CUDA runtime version|CUDA_MODULE_LOADING|"
    r"GPU models and|Nvidia driver|cuDNN version|HIP runtime|MIOpen runtime|Caching allocator|"
    r"CPU:\s*$|Versions of relevant|XPU used to|Intel GPU|Collecting environment|Architecture[:=]|"
    r"CPU op-mode|Address sizes|Byte Order|CPU\(s\)|On-line CPU|Vendor ID|Model name|CPU family|"
    r"Model:|Thread\(s\)|Core\(s\)|Socket\(s\)|Stepping|BogoMIPS|Flags:|Virtualization|Hypervisor|"
    r"L\d\w? cache|NUMA node|Vulnerability|Family[:=]|Manufacturer[:=]|Name[:=]|Version[:=]|"
    r"Summary:|Home-page:|Author|License|Location:|Requires:|Required-by:|Installer:|"
    r"vLLM|ROCM Version|Neuron SDK|GPU Topology|[Tt]orch version)"
)
_FIRM = re.compile(
    rf"\s*$|(?:{KEY}).{{0,40}}:|Traceback \(|\s{{0,6}}File \"[^\"]+\", line|\[(?:pip\d?|conda|"
    rf"uv)\] |[|+]|"
    r"GPU ?\d+:|[A-Z][A-Z0-9_]{2,60}=|[\w.-]{2,60}==\S+\s*$|[-=~^\u2500\u2501]{4,}|# |"
    r"During handling|The above exc"
)
"""What begins a line whatever stands before it."""
_STARTS = re.compile(
    rf"{_FIRM.pattern}|\s{{2,}}\S|{KEY}|GPU ?\d|#|\*|```|"
    r"\w{1,60}(?:Error|Exception|Interrupt):|(?:ERROR|WARNING|INFO|DEBUG|NOTE|WARN)\b|"
    r"[\w.-]{1,60}\s{2,}\S|[\w.-]{1,60} +[0-9]{1,4}\.[\w.+]{1,40}$|(?:True|False|None)$|"
    r"CUDA kernel errors|For debugging|Compile with|Search for|Requirement already|Collecting |"
    r"Successfully |Installing |Attempting |Found existing|Uninstalling |\[(?:W|E|I|rank|\d)|"
    r"[\w.-]{1,40}:\d+:\d+ \[|The current PyTorch|[\w.-]{1,60} => |[A-Z][A-Z ]{3,30}:|"
    r"(?:[A-Za-z]:\\|/)\S+(?:$|:\d+:)|https?://\S+$|'?[0-9]+\.[0-9][\w.+]*'?$"
)
"""What may begin a line."""
_NAMED = re.compile(r"[`\w][\w .`()-]{0,30}:(?:\s|$)")
"""A name and a colon: what stands so at the beginning of a line is seldom the rest of another."""
_CHANNEL = re.compile(r"(?:conda-forge|pytorch|nvidia|defaults|pypi)$")


def joined(lines: Sequence[str]) -> list[str]:
    """Return *lines* with those joined again that a terminal or a mail had cut.

    Only where the lines around are no longer than such a width, and the next line is none that
    could begin by itself.
    """
    cut = _Cut(lines)
    if not cut.happened:
        return list(lines)
    out: list[str] = []
    at = 0
    while at < len(lines):
        parts = [lines[at]]
        while at + 1 < len(lines) and len(parts) < MOST_JOINED:
            glue = cut.glue(at, parts)
            if glue is None:
                break
            parts += [glue, lines[at + 1].lstrip() if glue else lines[at + 1]]
            at += 1
        out.append("".join(parts))
        at += 1
    return out


class _Cut:
    """How the lines of a text were cut: at a column, between words, or not at all."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._tops = _tops(lines)
        pairs = [i for i in range(len(lines) - 1) if not self._begins(i + 1)]
        full = [i for i in pairs if self._is_full(i)]
        early = [i for i in pairs if self._overflows(i) and len(lines[i]) < MAIL - 1]
        typed = sum(self._is_typed(i) and lines[i].count('"') % 2 == 0 for i in full)
        # Cut at a column, all full lines are equally long; between words, few are full.
        self.at_column = len(full) - typed > 0 or typed > 1
        torn = any(re.search(r"\w-$|File$|^[^\"]*\"[^\"]*$", lines[i]) for i in early)
        self.by_chance = len(full) == 1  # one line in eighty is that long without being cut
        self.between_words = bool(early) and (torn or len(early) >= len(full))
        self.happened = self.between_words or self.at_column
        inner = (line.split()[:-1] for line in lines[:5000]) if self.happened else ()
        self._words = Counter(word for words in inner for word in words)

    def glue(  # noqa: PLR0911 - a chain of reasons
        self, at: int, parts: Sequence[str]
    ) -> str | None:
        """Return what was lost after line *at*; None when the next one is a line of its own."""
        last, following = self._lines[at], self._lines[at + 1]
        if not last.strip() or last.startswith(("|", "+")) or _FIRM.match(following):
            return None
        if self._is_typed(at + 1) or _PYTHON_PROMPT.match(following):
            return None
        full = self.at_column and self._is_full(at) and not following.startswith("   ")
        if self.between_words and _CHANNEL.match(following) and _is_row(parts[0]):
            return "  "
        by_chance = self.by_chance and not self.between_words and not _goes_on(last, following)
        if full and by_chance and _NAMED.match(following):
            return None
        if full and not (self._begins(at + 1) and self.between_words):
            return self._at_column(last, following)
        over = self.between_words and self._overflows(at, least=0)
        if not over or (self._begins(at + 1) and not _goes_on(last, following)):
            return None
        if (
            self._is_typed(at)
            and "".join(parts).count('"') % 2 == 0
            and not _goes_on(last, following)
        ):
            return None  # what was typed is complete; this is the answer
        return "" if re.search(r"\w-$", last) else " "

    def _at_column(self, last: str, following: str) -> str:
        if re.search(r"[\\/]\S*\w-$", last) and following[:1].isalnum():
            return ""  # a path broken at its hyphen
        if following.startswith(" ") or len(last) + 1 in WIDTHS or last.endswith((",", ";")):
            return " "  # a blank at the end of the line, which editors take away
        if last.endswith(('"', "'")) and last.count(last[-1]) % 2 == 0 and following[:1].isalnum():
            return " "  # what was quoted is whole
        word, first = last.rsplit(" ", 1)[-1], following.split(" ", 1)[0]
        if self.between_words:
            cut = len(word) + len(first) > len(last) and not first.startswith(('"', "'", "/"))
            return "" if cut or word.endswith("-") else " "
        # Cut at a column, a blank would be seen on one side; both have to be words of the text.
        apart = self._words[word] and self._words[first] and not self._words[word + first]
        return " " if apart else ""

    def _is_full(self, at: int) -> bool:
        size, top = len(self._lines[at]), self._tops[at // WINDOW]
        return (top in WIDTHS and top - 1 <= size <= top) or (top == MAIL - 1 == size)

    def _is_typed(self, at: int) -> bool:
        return any(prompt.match(self._lines[at][:400]) for prompt in PROMPTS)

    def _overflows(self, at: int, least: int = NEARLY) -> bool:
        """Tell whether the next word had no room on line *at*."""
        last, following = self._lines[at], self._lines[at + 1]
        if self._tops[at // WINDOW] > MAIL and len(last) > MAIL and " " in last.strip():
            return False
        first = following.lstrip().split(" ", 1)[0]
        enough = len(last) >= least or bool(_LOUD.match(last) or _TORN.search(last))
        enough = enough or (last.count('"') % 2 == 1 and self._is_typed(at))
        return enough and self._tops[at // WINDOW] <= MAIL and len(last) + 1 + len(first) > MAIL

    def _begins(self, at: int) -> bool:
        """Tell whether line *at* could begin by itself."""
        line = self._lines[at]
        return bool(_STARTS.match(line) or _PYTHON_PROMPT.match(line)) or self._is_typed(at)


def _is_row(line: str) -> bool:
    return bool(re.match(r"\s*(?:\[conda\] )?[\w.-]+\s{2,}\d", line))


def _goes_on(last: str, following: str) -> bool:
    """Tell whether the two belong together although the second could begin a line."""
    return bool(
        (re.search(r":\d+:$", last) and re.match(r"\w*Warning", following))
        or (
            re.search(
                r"(?:Error|loading|module|File|in|of|from|process|-i\w*-url|-f|install):?$", last
            )
            and re.match(r"[\"'/(]|[A-Za-z]:|https?:", following)
        )
        or (re.search(r"\.(?:so|dll)[\d.]*:$", last) and following.startswith("undefined"))
        or (last.endswith("-") and following[:1].isalnum())
    )


def _tops(lines: Sequence[str]) -> list[int]:
    """Return, for each window of lines, the longest line in it and its neighbours.

    A line that is one word does not count: where lines are cut between words, it stays whole.
    """
    sizes = [len(line) if " " in line.strip() else min(len(line), MAIL) for line in lines]
    own = [max(sizes[start : start + WINDOW]) for start in range(0, len(lines), WINDOW)]
    return [max(own[max(0, i - 1) : i + 2]) for i in range(len(own))]


_TORN = re.compile(r"[\\/]\S{0,200}\w-$")
"""A path that ends with a hyphen, where programs that wrap like to break."""
_LOUD = re.compile(
    r"\s{0,8}(?:\*{3} )?(?:\w{1,60}(?:Error|Exception|Warning)\b|(?:ERROR|WARNING|OMP)\b|File$|"
    r"\$ ldd)"
)
