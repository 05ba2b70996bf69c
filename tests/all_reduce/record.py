"""Run faults on two ranks, and keep what their ranks said, for tests that judge it again.

    python -m tests.all_reduce.record [WORD]

Only faults whose name has the word. What is kept is redacted, and shortened to what is judged.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests import environments
from tests.all_reduce import trying
from tests.all_reduce.faults import EVERY, Fault
from torchdoctor import redact
from torchdoctor.child import Run
from torchdoctor.snapshot import Snapshot

RECORDED = Path(__file__).with_name("recorded")
LONGEST = 2000
LEFT_OUT = ("stack", "limits", "asked")


def file_of(fault: Fault) -> Path:
    """Return the file that keeps the record of *fault*."""
    words = "".join(c if c.isalnum() else " " for c in fault.name.lower()).split()
    return RECORDED / f"{'-'.join(words)}.json"


def shortened(value: object) -> object:
    """Return *value* without what is not judged."""
    if isinstance(value, Mapping):
        return {str(k): shortened(v) for k, v in value.items() if k not in LEFT_OUT}
    if isinstance(value, list):
        beats = [v for v in value if not (isinstance(v, Mapping) and v.get("ev") == "beat")]
        return [shortened(v) for v in beats]
    return value[-LONGEST:] if isinstance(value, str) else value


def keep(fault: Fault) -> None:
    """Run *fault* and write its record."""
    with tempfile.TemporaryDirectory() as folder:
        seen = trying.run(fault, 2, Path(folder, "run"))
        run = Run(("all-reduce",), "answered", data=seen.data)
        whole = redact.redact(Snapshot("", {"all-reduce": run}), **redact.here({}))
        text = json.dumps(shortened(whole.probes["all-reduce"].data), indent=None)
        root = str(environments.base().root)
        text = text.replace(folder, "/folder").replace(root, "/home/user/env")
    text = text.replace('{"t"', '\n{"t"').replace(', {"rank"', ',\n{"rank"')
    file_of(fault).write_text(f"{text}\n", "utf-8")
    sys.stdout.write(f"{fault.name}: {seen.verdict}\n")


if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    for each in EVERY:
        if word in each.name:
            keep(each)
