"""Error text in all its forms, and text that is none."""

from __future__ import annotations

import time
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchdoctor.reading.traceback import (
    LONGEST_LINE,
    MOST_FOUND,
    Exc,
    Frame,
    exceptions,
    symptoms,
    torch_file,
)
from torchdoctor.tables import symptoms as table

ROWS = (*table.rows(), *table.words())
HINTS = sorted({str(hint) for row in ROWS for hint in cast("list[str]", row["hints"])})

CHAINED = """\
Traceback (most recent call last):
  File "/v/torch/__init__.py", line 168, in _load_global_deps
    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
  File "/usr/lib/python3.10/ctypes/__init__.py", line 374, in __init__
    self._handle = _dlopen(self._name, mode)
OSError: libcurand.so.10: cannot open shared object file: No such file or directory

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app.py", line 1, in <module>
    import torch
  File "/v/torch/__init__.py", line 217, in <module>
    _load_global_deps()
ValueError: libcublas.so.*[0-9] not found in the system path ['/v']
"""

NOTEBOOK = """\
---------------------------------------------------------------------------
ImportError                               Traceback (most recent call last)
Cell In[1], line 1
----> 1 import torch

File ~/venv/lib/python3.12/site-packages/torch/__init__.py:405, in <module>
    403     from torch._C import *  # noqa: F403
--> 405     _initExtension()

ImportError: /home/user/x.so: undefined symbol: iJIT_NotifyEvent
"""


# ---- symptoms ------------------------------------------------------------------------------------


def test_a_text_without_known_messages_has_no_symptoms() -> None:
    assert symptoms("2026-11-29 12:00:00 INFO epoch 3, loss 0.123\n" * 1000, "a log") == ()
    assert symptoms("", "nothing") == ()


def test_a_symptom_keeps_the_line_and_where_it_was_read() -> None:
    (symptom,) = symptoms(
        "first\nOSError: libcudnn.so.9: cannot open shared object file\nlast", "log"
    )
    assert symptom.text == "OSError: libcudnn.so.9: cannot open shared object file"
    assert symptom.source == "log"


def test_symptoms_come_in_the_order_of_the_text_and_each_once() -> None:
    found = symptoms(f"Numpy is not available\n{CHAINED}{CHAINED}", "log")
    assert [symptom.name for symptom in found] == [
        "numpy-not-available",
        "shared-library-missing",
        "preload-not-found",
    ]


def test_two_missing_libraries_are_two_symptoms() -> None:
    said = "cannot open shared object file"
    text = f"libcudnn.so.9: {said}\nlibnccl.so.2: {said}"
    assert [s.values["library"] for s in symptoms(text, "log")] == ["libcudnn.so.9", "libnccl.so.2"]


def test_colours_and_quote_marks_hide_nothing() -> None:
    text = "> \x1b[31mOSError\x1b[0m: \x1b[1mlibcudnn.so.9\x1b[0m: cannot open shared object file"
    (symptom,) = symptoms(text, "log")
    assert symptom.values == {"library": "libcudnn.so.9"}


def test_doubled_backslashes_become_single_ones() -> None:
    text = r'{"error": "[WinError 126] x Error loading \"C:\\v\\torch\\lib\\shm.dll\" or one"}'
    (symptom,) = symptoms(text, "json")
    assert symptom.values == {"code": "126", "file": r"C:\v\torch\lib\shm.dll"}


def test_both_ends_of_a_long_log_are_read() -> None:
    middle = "nothing of note\n" * 100_000
    text = f"Numpy is not available\n{middle}No CUDA GPUs are available"
    assert [s.name for s in symptoms(text, "log")] == ["numpy-not-available", "cuda-no-device"]


def test_a_flood_of_one_message_is_cut() -> None:
    text = "".join(f"lib{n}.so.1: cannot open shared object file\n" for n in range(5000))
    assert len(symptoms(text, "log")) == MOST_FOUND


@given(st.lists(st.one_of(st.sampled_from(HINTS), st.text(max_size=40))))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_text_is_too_odd(parts: list[str]) -> None:
    text = "".join(parts)
    for symptom in symptoms(text, "any"):
        assert len(symptom.text) <= LONGEST_LINE
        assert all(isinstance(value, str) for value in symptom.values.values())
    exceptions(text)


HALF_A_MEGABYTE = 512 * 1024


@pytest.mark.parametrize(
    "unit", ["a", "/", "'", " ", "\n", ".", "a.", ": ", "(", "_Z", "Aa Error: "]
)
def test_the_time_taken_is_linear(unit: str) -> None:
    padding = unit * (480 // len(unit))
    text = "".join(padding + hint + padding for hint in HINTS)
    text *= HALF_A_MEGABYTE // len(text) + 1
    start = time.process_time()
    symptoms(text, "hostile")
    exceptions(text)
    assert time.process_time() - start < 5.0


@pytest.mark.parametrize("hint", HINTS)
def test_no_single_row_is_slow(hint: str) -> None:
    text = ("a" * 490 + hint + "a" * 490) * 100
    start = time.process_time()
    symptoms(text, "hostile")
    assert time.process_time() - start < 2.0


# ---- exceptions ----------------------------------------------------------------------------------


def test_a_chain_is_read_in_order_and_tied_together() -> None:
    first, last = exceptions(CHAINED)
    assert first.type == "OSError"
    assert first.led_to == "context"
    assert first.frames[0] == Frame("/v/torch/__init__.py", 168, "_load_global_deps")
    assert last.type == "ValueError"
    assert last.led_to is None
    assert [frame.line for frame in last.frames] == [1, 217]


def test_a_direct_cause_is_told_from_a_context() -> None:
    text = CHAINED.replace(
        "During handling of the above exception, another exception occurred",
        "The above exception was the direct cause of the following exception",
    )
    assert exceptions(text)[0].led_to == "cause"


@pytest.mark.parametrize("prefix", ["> ", "| ", "E   ", ">>> "])
def test_what_stands_before_the_lines_is_borne(prefix: str) -> None:
    quoted = "\n".join(prefix + line for line in CHAINED.splitlines())
    assert exceptions(quoted) == exceptions(CHAINED)


def test_a_notebooks_traceback_is_read() -> None:
    (exc,) = exceptions(NOTEBOOK)
    assert exc.type == "ImportError"
    assert exc.message == "/home/user/x.so: undefined symbol: iJIT_NotifyEvent"
    assert exc.frames[-1].file == "~/venv/lib/python3.12/site-packages/torch/__init__.py"


def test_a_last_line_alone_is_an_exception() -> None:
    (exc,) = exceptions("ERROR tests/a.py - OSError: libx.so: cannot open shared object file")
    assert exc == Exc("OSError", "libx.so: cannot open shared object file")


def test_a_message_of_several_lines_is_kept_whole() -> None:
    (exc,) = exceptions("RuntimeError: CUDA error: no kernel image\nCompile with X\n\nmore")
    assert exc.message == "CUDA error: no kernel image\nCompile with X"


def test_code_and_warnings_are_no_exceptions() -> None:
    code = "    raise RuntimeError('x')\nexcept ImportError:\n    pass\nUserWarning: old\n"
    assert exceptions(code) == ()


def test_the_torch_that_was_imported_is_named() -> None:
    assert torch_file(exceptions(CHAINED)) == "/v/torch/__init__.py"
    shadow = (
        'Traceback (most recent call last):\n  File "/home/u/torch.py", line 3, in <module>\nX: y'
    )
    assert torch_file(exceptions(shadow)) == "/home/u/torch.py"
    assert torch_file(exceptions("OSError: x")) is None
