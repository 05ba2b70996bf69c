"""What the tests of lint share: its samples, and how a script is looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchdoctor.lint import looking
from torchdoctor.lint.looking import Found
from torchdoctor.lint.rule import all_rules
from torchdoctor.lint.source import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "samples"
PRELUDE = """\
import math, os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset
"""


@dataclass(frozen=True)
class Sample:
    """A script, and whether a rule finds something in it."""

    rule: str
    fires: bool
    number: int
    code: str

    @property
    def name(self) -> str:
        return f"{self.rule}-{'fires' if self.fires else 'quiet'}-{self.number}"


def samples() -> Iterator[Sample]:
    """Yield every sample, and the examples of the documentation as their number 0."""
    for rule in all_rules().values():
        yield Sample(rule.name, True, 0, rule.bad)  # noqa: FBT003
        yield Sample(rule.name, False, 0, rule.good)  # noqa: FBT003
    for file in sorted(FOLDER.glob("*.toml")):
        for rule_name, table in tomllib.loads(file.read_text("utf-8")).items():
            for key in ("fires", "quiet"):
                for number, code in enumerate(table[key], 1):
                    yield Sample(rule_name, key == "fires", number, PRELUDE + code)


def look(code: str, *names: str) -> list[Found]:
    """Return what the rules *names* (default: all) find in *code*; none may crash."""
    rules = all_rules()
    crashed: dict[str, str] = {}
    chosen = {name: rules[name] for name in names or rules}
    asked = {n: r for n, r in chosen.items() if any(word in code for word in r.words)}
    found = looking.findings(Source("train.py", code), asked, crashed)
    assert not crashed, crashed
    return found


def names_in(code: str) -> set[str]:
    """Return the names of all findings in *code*."""
    return {each.finding.name for each in look(code)}
