"""What a rule is, and where all of them are: one function each, by family, in ``rules/``."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from torchdoctor.lint.script import Script
from torchdoctor.model import Confidence, Severity

FAMILIES = ("sampling", "checkpoint", "ranks", "launch", "devices", "wrapping", "precision")
"""The modules of ``rules/``."""
DISTRIBUTED = ("init_process_group", "DistributedDataParallel", "DistributedSampler")
"""One of these stands in every module that is distributed by torch's own means."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A piece of text to put in place of another; lines count from 1, columns are UTF-8 bytes."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """What a rule found: where, and one sentence with the names that stand there."""

    node: ast.AST
    summary: str
    severity: Severity | None = None
    """Where it is another than the rule's own."""
    confidence: Confidence | None = None
    edits: tuple[Edit, ...] = ()
    """What mends it, where that is mechanical."""


Look = Callable[[Script], Iterator[Hit]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name states the fault."""

    name: str
    family: str
    severity: Severity
    confidence: Confidence
    words: tuple[str, ...]
    """One of them stands in every module that it can say something of."""
    look: Look
    explains: str
    """What, why, a bad and a good example."""

    @property
    def title(self) -> str:
        """Return the first sentence of the documentation."""
        return " ".join(self.explains.partition("\n\n")[0].split())

    @property
    def bad(self) -> str:
        """Return the example in which this rule finds something."""
        return _example(self.explains, "Bad")

    @property
    def good(self) -> str:
        """Return the example in which it finds nothing."""
        return _example(self.explains, "Good")


_DECLARED: dict[str, Rule] = {}


def rule(
    severity: Severity, *words: str, confidence: Confidence = "likely"
) -> Callable[[Look], Look]:
    """Declare a function to be the rule of its own name.

    *severity* is the usual one. It is asked only of modules in which one of *words* stands.
    """

    def declared(look: Look) -> Look:
        name = look.__name__.replace("_", "-")
        _DECLARED[name] = Rule(
            name,
            look.__module__.rpartition(".")[2],
            severity,
            confidence,
            words,
            look,
            _stated(inspect.getdoc(look) or ""),
        )
        return look

    return declared


@cache
def all_rules() -> dict[str, Rule]:
    """Return every rule by its name, family by family."""
    for family in FAMILIES:
        importlib.import_module(f"torchdoctor.lint.rules.{family}")
    return dict(_DECLARED)


def _stated(text: str) -> str:
    """Return *text*, which begins as a function's documentation does, as a statement."""
    return re.sub(r"^(?:Tell|Say) that (\w)", lambda match: match[1].upper(), text)


def _example(text: str, which: str) -> str:
    match = re.search(rf"^{which}::\n\n((?:[ ]{{4}}.*\n|\n)+)", f"{text}\n", re.MULTILINE)
    return textwrap.dedent(match[1]).strip("\n") + "\n" if match else ""
