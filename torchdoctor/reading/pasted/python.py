"""The Python banner, and what an interpreter printed: versions, truth values, paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from torchdoctor.facts import Device
from torchdoctor.reading.pasted import paths, platforms
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import DOTTED, LISTED, PRINTED, TOLD, Said, Value

NUMBER = r"[23]\.[0-9]{1,2}(?:\.[0-9]{1,2}(?:(?:a|b|rc)[0-9]{1,2})?\+?)?"
_BANNER = re.compile(
    rf"(?:^|\s|: )(?:Python )?({NUMBER})(?: (?:experimental )?(free-threading build))?"
    r"(?: \|([^|]{1,80})\|)? ?\(([^()]{3,80})\)\s{1,3}\[((?:GCC|Clang|MSC|"
    r"PyPy)[^\]]{0,80})\](?: on (\w+))?"
)
_COMPILER = re.compile(r"MSC v\.\d{4} (\d\d) bit \((AMD64|Intel|ARM64)\)")
_ALONE = re.compile(rf"\s{{0,4}}Python ({NUMBER})(?:\s*$|\s*[/,|(;]|\s+::)")
_TOLD = re.compile(
    rf"(?i)\s{{0,4}}(?:[-*] )?python(?:[ _]version)?(?: ?[:=]| is|"
    rf" -) ?(?:python )?v?({NUMBER})(?![\w.])(?P<rest>.{{0,120}})"
)
_UV = re.compile(
    rf"\s{{0,4}}Using (?:C|c)?[Pp]ython ({NUMBER})(?: interpreter at: \S|\s*$| environment)"
)
_HAVE = re.compile(rf"Python {{1,4}}\S+ \(you have ({NUMBER})\)")
_XFORMERS = re.compile(rf"(?:PyTorch|torch) [^\n(]{{1,60}}\(you have ({DOTTED})\)")
_TORCH_TOLD = re.compile(
    rf"(?i)\s{{0,4}}(?:[-*] )?(?:py)?torch(?:[ _]?version(?: \([^)]*\))?|"
    rf" is)? ?[:=] ?'?v?({DOTTED})'?(?![\w.]*\.whl)(?P<rest>.{{0,60}})$"
)
_AVAILABLE_TOLD = re.compile(
    r"(?i)\s{0,4}(?:[-*] )?(?:is )?(?:torch\.)?(?:cuda|"
    r"gpu)(?:[ ._]is)?[ _]?available(?:\(\))?(?: \(pytorch\))? ?[:=]{1,2} ?(True|False|Yes|No)\s*$"
)
_ACCELERATE = re.compile(
    rf"\s{{0,4}}(?:[-*] )?PyTorch version \(GPU\?\): ({DOTTED}) \((True|False)\)"
)
_YOLO = re.compile(
    rf"(?:Ultralytics )?YOLO\S{{1,20}} .{{0,20}}Python-({NUMBER}) torch-({DOTTED}) "
    rf"(?:CPU|CUDA:|MPS)"
)
_LABEL = re.compile(r"(?i)\s{0,4}(cuda available|cuda version|cuda device|gpu available)\s*:\s*$")
_WHOLE = re.compile(rf"'?({DOTTED})'?\s*$")
_TRUTH = re.compile(r"(True|False)\s*$")
_PAIR = re.compile(r"\((\d{1,2}), ?(\d{1,2})\)\s*$")
_PRINTED_PATH = re.compile(r"'?((?:[A-Za-z]:\\|/|~/)[^'\n]{2,400}?)'?\s*$")

QUESTIONS: tuple[tuple[str, str], ...] = (
    (r"torch\.__version__|torch\.version\.__version__", "torch.version"),
    (r"torchvision\.__version__", "torchvision.version"),
    (r"torchaudio\.__version__", "torchaudio.version"),
    (r"torch\.version\.cuda", "torch.cuda"),
    (r"torch\.version\.hip", "torch.hip"),
    (r"torch\.cuda\.is_available\(\)", "runtime.available"),
    (r"torch\.cuda\.device_count\(\)", "runtime.count"),
    (r"torch\.cuda\.get_device_capability\([^()]*\)", "capability"),
    (r"torch\.cuda\.get_device_name\([^()]*\)", "device"),
    (r"torch\.cuda\.get_arch_list\(\)", "runtime.arch_list"),
    (r"torch\.backends\.mps\.is_available\(\)", "runtime.mps"),
    (r"torch\.xpu\.is_available\(\)", "runtime.xpu"),
    (r"torch\.backends\.cudnn\.version\(\)", "runtime.cudnn"),
    (r"torch\.__file__", "torch.file"),
    (r"sys\.executable", "interpreter.executable"),
    (r"sys\.prefix", "interpreter.prefix"),
    (r"(?:platform\.python_version\(\))", "interpreter.version"),
    (r"platform\.machine\(\)", "platform.machine"),
    (r"struct\.calcsize\(['\"]P['\"]\) ?\* ?8", "interpreter.bits"),
)
"""What people have Python print, and the fact that the answer is."""
_ASKED = re.compile("|".join(f"({pattern})" for pattern, _ in QUESTIONS))
LAYOUT = "what Python printed"


def read(lines: Sequence[Line]) -> Iterator[Said]:
    """Yield what the banner, answers at a prompt and "name: value" lines say."""
    for place, line in enumerate(lines):
        text = line.text[:2000]
        if line.kind != "output":
            yield from _answers(lines, place)
            continue
        yield from _banner(text, line.number)
        yield from _told(text, line.number)
        if (label := _LABEL.match(text)) and place + 1 < len(lines):
            yield from _labelled(label[1].lower(), lines[place + 1])


def _banner(text: str, number: int) -> Iterator[Said]:
    found = _BANNER.search(text)
    if found is None or "Python platform" in text:
        return
    version, free, vendor, _, compiler, system = found.groups()
    layout = "the Python banner"

    def said(fact: str, value: Value) -> Said:
        return Said(fact, value, layout, PRINTED, number)

    yield said("interpreter.version", version.rstrip("+"))
    if free:
        yield said("interpreter.free_threaded", value=True)
    if "PyPy" in compiler:
        yield said("interpreter.implementation", "pypy")
    if vendor and re.search("conda", vendor, re.IGNORECASE):
        yield Said("interpreter.vendor", vendor.strip(), layout, PRINTED, number)
    if built := _COMPILER.match(compiler):
        yield said("interpreter.bits", int(built[1]))
        machine = {"Intel": "x86"}.get(built[2], built[2])
        yield said("interpreter.machine", machine)
        yield said("platform.system", "win32")
        if machine == "AMD64":
            yield Said("platform.machine", machine, layout, TOLD, number)
    elif system in ("linux", "darwin", "win32"):
        yield said("platform.system", system)


def _of_programs(text: str, number: int) -> Iterator[Said]:
    """Read the first line of Ultralytics' programs, and a line of ``accelerate env``."""
    if both := _YOLO.search(text):
        yield Said("interpreter.version", both[1], "Ultralytics", PRINTED, number)
        yield Said("torch.version", both[2], "Ultralytics", PRINTED, number)
    elif both := _ACCELERATE.match(text):
        yield Said("torch.version", both[1], "accelerate env", PRINTED, number)
        yield Said("runtime.available", both[2] == "True", "accelerate env", PRINTED, number)


def _told(text: str, number: int) -> Iterator[Said]:
    yield from _of_programs(text, number)
    if have := _XFORMERS.search(text):
        yield Said("torch.version", have[1], "a message of xFormers", PRINTED, number)
    elif have := _HAVE.search(text):
        yield Said("interpreter.version", have[1], "a message of xFormers", PRINTED, number)
    elif uv := _UV.match(text):
        yield Said("interpreter.version", uv[1], "uv", PRINTED, number)
    elif alone := _ALONE.match(text):
        weight = LISTED if text.strip() == f"Python {alone[1]}" else TOLD
        yield Said("interpreter.version", alone[1], "Python --version", weight, number)
        if windows := re.search(r"\bWindows (?:7|8|10|11)\b.{0,20}", text):
            yield from platforms.named(windows[0], "what was written", TOLD, number)
    elif (told := _TOLD.match(text)) and not re.search(
        r"[<>]|support|requires|or (?:newer|later|above)", text
    ):
        yield Said("interpreter.version", told[1].rstrip("+"), "what was written", TOLD, number)
    if (told := _TORCH_TOLD.match(text)) and not re.search(r"[<>]", text):
        layout = "what was written"
        yield Said("torch.version", told[1], layout, TOLD, number)
        if vision := re.match(rf"\s*\(torchvision: ({DOTTED})\)", told["rest"]):
            yield Said("torchvision.version", vision[1], layout, TOLD, number)
    if available := _AVAILABLE_TOLD.match(text):
        value = available[1].lower() in ("true", "yes")
        yield Said("runtime.available", value, "what was written", TOLD, number)


def _labelled(label: str, answer: Line) -> Iterator[Said]:
    text = answer.text.strip()
    if "available" in label and (truth := _TRUTH.match(text)):
        yield Said("runtime.available", truth[1] == "True", LAYOUT, PRINTED, answer.number)
    elif label == "cuda device" and re.match(r"(?:NVIDIA |GeForce |Tesla |Quadro )", text):
        yield Said("runtime.device", Device(0, text[:80]), LAYOUT, PRINTED, answer.number)


# ---- questions and answers ----------------------------------------------------------------------


def _answers(lines: Sequence[Line], place: int) -> Iterator[Said]:
    """Yield the facts in the lines that answer what was typed in line *place*."""
    typed = lines[place]
    asked = [
        (QUESTIONS[int(m.lastindex or 1) - 1][1], m) for m in _ASKED.finditer(typed.text[:2000])
    ]
    asked = [(fact, m) for fact, m in asked if _is_shown(typed, m)]
    if not asked:
        return
    answers = []
    for line in lines[place + 1 : place + 60]:
        if line.kind != "output":
            break
        if line.text.strip():
            answers.append(line)
    facts = [fact for fact, _ in asked]
    yield from _matched(facts, answers)


def unanswered(lines: Sequence[Line]) -> Iterator[str]:
    """Yield which questions at a prompt have no answer below them that fits."""
    for place, line in enumerate(lines):
        if line.kind == "output" or not _ASKED.search(line.text[:2000]):
            continue
        shown = any(_is_shown(line, match) for match in _ASKED.finditer(line.text[:2000]))
        until = takewhile(lambda one: one.kind == "output", lines[place + 1 : place + 30])
        below = [one.text for one in until]
        failed = any(re.match(r"\s*(?:\w{1,60}Error\b|Traceback)", text) for text in below)
        if shown and not failed and not list(_answers(lines, place)):
            yield f"the answer to {line.text[:120]!r} was not found below it"


def _is_shown(typed: Line, match: re.Match[str]) -> bool:
    """Tell whether the answer is printed: at a prompt it is all there is, else print() is asked."""
    before = typed.text[: match.start()]
    if re.search(r"(?:^|[;\s])(?:if|assert|while|with)\s[^;]*$|\w\s*=\s*$", before):
        return False
    alone = typed.kind == "python" and typed.text.strip().rpartition(";")[2].strip() == match[0]
    return alone or "print(" in before or "print (" in before


def _matched(facts: Sequence[str], answers: Sequence[Line]) -> Iterator[Said]:
    """Pair *facts* with the values in the answers: on one line each, or all on one line."""
    for start, line in enumerate(answers[:40]):
        words = re.findall(r"\([^()]{0,40}\)|\[[^\]]{0,400}\]|\S+", line.text.strip())
        if len(facts) == 1:
            values = [line.text.strip()]
        elif len(words) == len(facts):
            values = words
        else:
            values = [one.text.strip() for one in answers[start : start + len(facts)]]
        if len(values) != len(facts):
            continue
        read_values = [_value(fact, text) for fact, text in zip(facts, values, strict=True)]
        if all(value is not _NOT for value in read_values):
            for fact, value in zip(facts, read_values, strict=True):
                yield from _as_said(fact, value, line.number)
            return


_NOT = "\0"
LONGEST_NAME = 80


def _value(  # noqa: PLR0911 - one answer for each kind of value
    fact: str, text: str
) -> Value:
    """Return the value in *text*, _NOT when it is none of that fact."""
    if fact in ("runtime.available", "runtime.mps", "runtime.xpu"):
        truth = _TRUTH.match(text)
        return truth[1] == "True" if truth else _NOT
    if fact.endswith(".version") or fact in ("torch.cuda", "torch.hip"):
        if text == "None" and fact in ("torch.cuda", "torch.hip"):
            return None
        whole = _WHOLE.match(text)
        return whole[1] if whole else _NOT
    if fact in ("runtime.count", "interpreter.bits", "runtime.cudnn"):
        return int(text) if re.fullmatch(r"\d{1,6}", text) else _NOT
    if fact == "capability":
        pair = _PAIR.match(text)
        return f"{pair[1]}.{pair[2]}" if pair else _NOT
    if fact == "runtime.arch_list":
        if text == "[]":
            return ()
        return tuple(re.findall(r"(?:sm|compute)_\d{2,3}a?|gfx[0-9a-f]{3,5}", text)) or _NOT
    if fact == "device":
        name = text.strip("'\"")
        return (
            name
            if re.search(r"[A-Za-z]{2}", name)
            and len(name) < LONGEST_NAME
            and not re.search(r"[:\"<>=]|^(?:True|False|None)$", name)
            else _NOT
        )
    if fact == "platform.machine":
        name = text.strip("'")
        return (
            name
            if re.fullmatch(r"x86_64|aarch64|arm64|AMD64|ARM64|ppc64le|i[36]86", name)
            else _NOT
        )
    path = _PRINTED_PATH.match(text)
    return path[1].replace("\\\\", "\\") if path else _NOT


def _as_said(fact: str, value: Value, number: int) -> Iterator[Said]:
    if fact == "capability" and isinstance(value, str):
        major, minor = (int(part) for part in value.split("."))
        yield Said("runtime.device", Device(0, "", (major, minor)), LAYOUT, PRINTED, number)
    elif fact == "device":
        yield Said("runtime.device", Device(0, str(value)), LAYOUT, PRINTED, number)
    else:
        yield Said(fact, value, LAYOUT, PRINTED, number)
    if fact == "torch.file" and isinstance(value, str):
        if site := re.match(
            r"(?i)(.{1,300}[\\/](?:site|dist)-packages)[\\/]torch[\\/]__init__\.py$", value
        ):
            yield from paths.environment(site[1], TOLD, number)
        if system := paths.system_of(value):
            yield Said("platform.system", system, LAYOUT, TOLD, number)
