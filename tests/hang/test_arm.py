"""arm() in a process of its own: what it leaves, what it tells, and what it does not touch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from torchdoctor.hang import folder, looking, processes, signs, stacks

ROOT = Path(__file__).parents[2]
ARM = "from torchdoctor.training import arm\n"
PATIENCE = 30.0
INITIALISED = """
import sys, types
sys.modules["torch.distributed"] = types.SimpleNamespace(is_initialized=lambda: True)
"""


class Armed:
    """A process that runs *code*, without torch."""

    def __init__(self, place: Path, code: str, environ: Mapping[str, str] | None = None) -> None:
        self.folder = place / "armed"
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("TORCH", "RANK", "WORLD"))}
        self.process = subprocess.Popen(
            [sys.executable, "-c", ARM + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place,
            env=kept | {"PYTHONPATH": str(ROOT), "TMPDIR": str(place)} | dict(environ or {}),
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[str, str]:
        """Let it come to its end, and return what it printed."""
        return self.process.communicate("go\n", timeout=PATIENCE)

    @property
    def beat(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.folder / "torchdoctor-rank0.json").read_text())
        return told

    def until(self, is_so: Callable[[], bool]) -> None:
        limit = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < limit
            time.sleep(0.02)


WAITS = """
a = arm("armed", every=0.1, rank=0, world_size=2)
print(a, flush=True)
def here():
    input()
here()
"""


def test_an_armed_process_is_found_asked_and_signalled(tmp_path: Path) -> None:
    armed = Armed(tmp_path, WAITS)
    assert armed.line() == (
        f"rank 0 is armed in {tmp_path}/armed: flight recorder, stacks, heartbeat"
    )
    pid = armed.process.pid
    found = processes.find(pid)
    assert {rank: p.pid for rank, p in found.ranks.items()} == {0: pid}
    sign = found.signs[0]
    assert signs.may_be_signalled(sign, pid)
    # Asked, it writes its stacks without a signal.
    (armed.folder / signs.ASK).write_text("word")
    armed.until(lambda: bool(armed.beat["answered"] == "word"))
    asked = sign.stack.read_text()
    assert stacks.of_faulthandler(asked, sign.main_thread)[0].function == "here"
    # Signalled, too, and it goes on.
    os.kill(pid, sign.signal or 0)
    armed.until(lambda: len(sign.stack.read_text()) > len(asked))
    armed.end()
    assert armed.process.returncode == 0
    assert armed.beat["ended"] is True
    assert armed.beat["raised"] == ""


@pytest.mark.slow
def test_a_rank_that_holds_the_interpreter_and_cannot_answer_is_signalled(tmp_path: Path) -> None:
    code = """
    import re
    arm("armed", every=0.1, rank=0, world_size=1)
    print(flush=True)
    def stuck():
        re.match(r"(a+)+$", "a" * 60 + "b")
    stuck()
    """
    armed = Armed(tmp_path, code)
    armed.line()
    time.sleep(0.5)
    wish = looking.Wish(0.5, os.environ, py_spy=False, ras=False)
    (rank,) = looking.live(armed.process.pid, wish).ranks
    assert armed.process.poll() is None
    armed.process.kill()
    armed.process.communicate()
    assert rank.stack_from == "faulthandler"
    assert any(frame.function == "stuck" for frame in rank.stack)


@pytest.mark.slow
def test_the_heartbeat_goes_on_and_has_the_step(tmp_path: Path) -> None:
    armed = Armed(
        tmp_path,
        """
        a = arm("armed", every=0.1)
        a.step(12)
        print(flush=True)
        input()
        """,
    )
    armed.line()
    first = armed.beat["at"]
    armed.until(lambda: bool(armed.beat["at"] > first))
    assert armed.beat["step"] == 12
    armed.end()


def test_what_ended_a_script_is_written_down(tmp_path: Path) -> None:
    armed = Armed(tmp_path, 'arm("armed")\nraise KeyError("batch")\n')
    armed.end()
    left = folder.job(folder.read([str(armed.folder)]))
    beat = left.ranks[0].beat
    assert beat is not None
    assert (beat.ended, beat.raised) == (True, "KeyError")


def test_a_killed_script_does_not_say_that_it_ended(tmp_path: Path) -> None:
    armed = Armed(tmp_path, WAITS)
    armed.line()
    armed.process.send_signal(signal.SIGKILL)
    armed.end()
    assert armed.beat["ended"] is False


@pytest.mark.slow
def test_stacks_may_be_written_by_themselves_after_some_time(tmp_path: Path) -> None:
    armed = Armed(tmp_path, "print(arm('armed', traceback_after=0.2), flush=True)\ninput()")
    assert "stacks every 0.2 s" in armed.line()
    stack = armed.folder / signs.STACK.format(rank=0)
    armed.until(lambda: stack.read_text().count("Timeout") > 1)
    armed.end()


@pytest.mark.slow
def test_what_is_set_already_stays_and_the_rest_is_set(tmp_path: Path) -> None:
    code = """
    import os
    arm("armed", buffer=77)
    names = ("TORCH_FR_BUFFER_SIZE", "TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DUMP_ON_TIMEOUT")
    print(*(os.environ[name] for name in names), sep="|")
    """
    out, _ = Armed(tmp_path, code, {"TORCH_FR_DUMP_TEMP_FILE": "/mine/trace_"}).end()
    assert out.strip() == "77|/mine/trace_|1"
    out, _ = Armed(tmp_path, code).end()
    assert out.strip() == f"77|{tmp_path}/armed/nccl_trace_rank_|1"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "environ", "said"),
    [
        (
            "import signal; signal.signal(signal.SIGUSR1, lambda *_: None)",
            {},
            "not stacks: SIGUSR1 has a handler already",
        ),
        (
            "",
            {"TORCH_FR_BUFFER_SIZE": "0"},
            "not flight recorder: TORCH_FR_BUFFER_SIZE is set to 0",
        ),
        (
            INITIALISED,
            {},
            "not flight recorder: init_process_group was called before arm()",
        ),
    ],
)
def test_what_could_not_be_armed_is_told(
    code: str, environ: dict[str, str], said: str, tmp_path: Path
) -> None:
    _, err = Armed(tmp_path, f"{code}\narm('armed')\n", environ).end()
    assert "RuntimeWarning: torchdoctor: rank 0 is armed" in err
    assert said in err


def test_a_handler_of_ones_own_stays(tmp_path: Path) -> None:
    code = """
    import os, signal
    signal.signal(signal.SIGUSR1, lambda *_: print("mine", flush=True))
    a = arm("armed")
    os.kill(os.getpid(), signal.SIGUSR1)
    print(a.armed)
    """
    out, _ = Armed(tmp_path, code).end()
    assert out.splitlines() == ["mine", "('flight recorder', 'heartbeat')"]


@pytest.mark.slow
def test_the_folder_of_ranks_of_one_launcher_is_one_and_closed_to_others(tmp_path: Path) -> None:
    code = "print(arm().folder)"
    own = [
        Armed(tmp_path, code, {"RANK": str(rank), "WORLD_SIZE": "2"}).end()[0] for rank in (0, 1)
    ]
    assert own[0] == own[1]
    place = Path(own[0].strip())
    assert place.parent == tmp_path
    assert place.stat().st_mode & 0o077 == 0
    assert {p.name for p in place.glob("*.json")} == {
        "torchdoctor-rank0.json",
        "torchdoctor-rank1.json",
    }


@pytest.mark.slow
def test_a_folder_that_is_a_link_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    name = f"torchdoctor-{os.getuid()}-{os.getpid()}"
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    _, err = Armed(tmp_path, "arm()").end()
    assert "is there already, and not ours" in err
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.slow
def test_arming_twice_is_arming_once_and_disarming_ends_it(tmp_path: Path) -> None:
    code = """
    import signal, threading
    a = arm("armed")
    assert arm("other") is a
    a.disarm()
    print(threading.active_count(), signal.getsignal(signal.SIGUSR1))
    """
    out, err = Armed(tmp_path, code).end()
    assert out.strip().startswith("1 "), err
    assert not (tmp_path / "other").exists()
    assert not list((tmp_path / "armed").glob("*.json"))


@pytest.mark.slow
def test_a_forked_child_does_not_say_that_the_rank_has_ended(tmp_path: Path) -> None:
    code = """
    import os, sys
    arm("armed", every=60)
    if os.fork() == 0:
        sys.exit(0)
    os.wait()
    print(flush=True)
    input()
    """
    armed = Armed(tmp_path, code)
    armed.line()
    assert armed.beat["ended"] is False
    armed.end()


@pytest.mark.slow
def test_without_torch_nothing_imports_it(tmp_path: Path) -> None:
    out, _ = Armed(tmp_path, "import sys; arm('armed'); print('torch' in sys.modules)").end()
    assert out.strip() == "False"
