"""A machine that hangs, crashes, floods and forks: the right answer in time, and nothing left."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import doctor, smi, standins
from tests.scenarios.doctor import Scene

DEADLINE = 3
"""Seconds that the doctor is given for each probe."""
SLACK = 2

FORKS = """
import os, signal, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(100000)
"""
LEAVES_THE_GROUP = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(100000)
    os._exit(0)
"""

IS_DEAF = """
import signal, time
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
time.sleep(100000)
"""

# What torch does on import -> what the report has to say of it; None: torch imports all the same.
HOSTILE: dict[str, tuple[str, str | None]] = {
    "segfaults": ("import ctypes\nctypes.string_at(0)\n", "SIGSEGV"),
    "aborts": ("import os\nos.abort()\n", "SIGABRT"),
    "kills itself": ("import os\nos.kill(os.getpid(), 9)\n", "SIGKILL"),
    "exits": ("import os\nos._exit(3)\n", "3"),
    "leaves politely": ("import sys\nsys.exit('go away')\n", "go away"),
    "never returns": ("import time\ntime.sleep(100000)\n", "did not"),
    "spins": ("while True: pass\n", "did not"),
    "holds the interpreter": ("import ctypes\nctypes.PyDLL(None).sleep(100000)\n", "did not"),
    "is deaf": (IS_DEAF, "did not"),
    "prints 50 MB": ("for _ in range(50): print('x' * (1 << 20))\n", None),
    "prints 50 MB of errors and dies": (
        "import sys\nfor _ in range(50): sys.stderr.write('e' * (1 << 20))\n1 / 0\n",
        "ZeroDivisionError",
    ),
    "prints lies": (
        'import os\nos.write(1, b\'{"done": true, "module": 5, "error": [[[]]]}\\n\' * 100)\n',
        None,
    ),
    "prints binary": ("import os\nos.write(1, bytes(range(256)) * 100)\n", None),
    "forks": (FORKS, None),
    "leaves the process group": (LEAVES_THE_GROUP, None),
    "forks and never returns": (FORKS + "time.sleep(100000)\n", "did not"),
    "closes stdout": ("import os\nos.close(1)\n", None),
    # Python itself then ends with 120, as it cannot flush what it printed.
    "closes everything": ("import os\nos.closerange(0, 100)\n", "120"),
    "closes stdout and hangs": ("import os, time\nos.close(1)\ntime.sleep(100000)\n", "did not"),
    "raises a huge error": ("raise RuntimeError('y' * (20 << 20))\n", "RuntimeError"),
    "recurses": ("def f(): f()\nf()\n", "RecursionError"),
    "leaves a thread": (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(100000,)).start()\n",
        None,
    ),
    "hangs on exit": (
        "import atexit, time\natexit.register(time.sleep, 100000)\n",
        None,
    ),
}


def scene(tmp_path: Path, code: str) -> Scene:
    environment = environments.bare(tmp_path / "env")
    wheel = standins.tiny_torch(tmp_path, "2.13.0+cpu", requires=(), code=code)
    environments.unpack(wheel, environment.site)
    return Scene(tmp_path, environment)


def in_time(machine: Scene, *arguments: str, deadline: float = DEADLINE) -> doctor.Answer:
    """Return the doctor's answer; it came in time, and left nothing running."""
    start = time.monotonic()
    answer = doctor.check(
        machine, "--timeout", str(deadline), *arguments, deadline=deadline + 10 * SLACK
    )
    seconds = time.monotonic() - start
    assert machine.left() == []
    assert seconds < deadline + SLACK
    return answer


@pytest.mark.parametrize("what", HOSTILE)
def test_a_torch_that_misbehaves_is_reported_in_time(tmp_path: Path, what: str) -> None:
    code, word = HOSTILE[what]
    # What ends by itself has time to, also on a machine with other things to do.
    deadline = DEADLINE if word == "did not" else 5 * DEADLINE
    answer = in_time(scene(tmp_path, code), deadline=deadline)
    said = "\n".join(answer.evidence(f["name"]) for f in answer.findings)
    if word is None:
        assert answer.faults == []
    else:
        assert word in said
        assert answer.report["verdict"] == "broken"


@pytest.mark.parametrize("what", ["segfaults", "never returns", "closes everything"])
def test_other_checks_answer_as_on_a_healthy_machine(tmp_path: Path, what: str) -> None:
    ill = in_time(scene(tmp_path / "ill", HOSTILE[what][0])).outcomes()
    well = in_time(scene(tmp_path / "well", "")).outcomes()
    about_the_import = {name for name in well if ill[name] != well[name]}
    assert {ill[name] for name in about_the_import} <= {"found", "unknown", "moot"}
    assert len(about_the_import) < len(well) / 2


NEEDS_NO_DRIVER = pytest.mark.skipif(doctor.HAS_DRIVER, reason="NVML would answer")


@NEEDS_NO_DRIVER
@pytest.mark.parametrize("kind", ["hang", "rubbish"])
def test_an_nvidia_smi_that_misbehaves_is_named_and_nothing_else_is_concluded(
    tmp_path: Path, kind: str
) -> None:
    machine = scene(tmp_path, "")
    smi.install(machine.bin, kind)
    answer = in_time(machine)
    (fault,) = answer.faults
    assert (fault["name"], fault["severity"]) == ("driver-not-answering", "warning")


@NEEDS_NO_DRIVER
def test_everything_at_once_still_ends_in_time(tmp_path: Path) -> None:
    machine = scene(tmp_path, FORKS + "time.sleep(100000)\n")
    smi.install(machine.bin, "hang")
    answer = in_time(machine)
    assert answer.report["verdict"] == "broken"
    assert "driver-not-answering" in {f["name"] for f in answer.findings}
