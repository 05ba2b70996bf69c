"""What one rank was given, what it says, and for how long it waits."""

import contextlib
import faulthandler
import json
import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False  # typing would have to be imported
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    Options = dict[str, Any]

OPTIONS = json.loads(sys.argv[1])  # type: Options
RANK = int(OPTIONS["rank"])
WORLD = int(OPTIONS["world"])
LOCAL_RANK = int(OPTIONS["local_rank"])
HOST = str(OPTIONS["host"])
FOLDER = str(OPTIONS["folder"])

LONGEST = 2000
BEAT = 1.0
MARGIN = 2.0
"""Seconds before its time is up that a rank says what it waited for."""
USUAL_IMPORT = 5.0
"""Seconds that an import of torch takes where two processes share two processors."""
SLOWEST = 6.0
"""A machine, or the load on it, is taken for no slower than so many times the usual."""

CHANNEL = os.open(
    os.path.join(FOLDER, "rank%d.jsonl" % RANK), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
)
STACKS = open(os.path.join(FOLDER, "rank%d.stack" % RANK), "w")  # noqa: SIM115


class Fault(Exception):  # noqa: N818 - it is an answer
    """What this rank found out by itself: ``why`` in one word, and values."""

    def __init__(self, why: str, message: str, **values: "object") -> None:
        super().__init__(message)
        self.said = dict(values, why=why)  # type: dict[str, object]


def say(stage: str, kind: str, **values: "object") -> None:
    """Write one event, as one write, so that no line is torn."""
    at = round(time.time() - float(OPTIONS["began"]), 4)
    event = dict(values, t=at, stage=stage, ev=kind)  # type: dict[str, object]
    os.write(CHANNEL, (json.dumps(event) + "\n").encode("ascii"))


class Stage:
    """One stage: announced, and its end told."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "Stage":  # noqa: PYI034 - Python 3.8 has no Self
        say(self.name, "enter")
        return self

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: "BaseException | None",
        trace: "TracebackType | None",
    ) -> None:
        if error is None:
            say(self.name, "ok")
            return
        more = error.said if isinstance(error, Fault) else {}  # type: dict[str, object]
        number = getattr(error, "errno", None)
        if isinstance(number, int):
            more = dict(more, errno=number)
        text = str(error)
        if len(text) > LONGEST:
            text = text[: LONGEST // 2] + " ... " + text[-LONGEST // 2 :]
        say(self.name, "error", type=type(error).__name__, message=text, **more)

    def fact(self, **values: "object") -> None:
        """Tell something that was learnt."""
        say(self.name, "fact", **values)

    def call(self, **values: "object") -> None:
        """Tell that the blocking call comes now: one that is late has not come so far."""
        say(self.name, "call", **values)


def beat() -> None:
    """Tell every second that this process lives, whatever it waits for."""
    while True:
        time.sleep(BEAT)
        say("", "beat")


def prepare() -> None:
    """Take care that a stack can be had, and that this process ends with the one that began it."""
    faulthandler.enable(STACKS)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, STACKS, all_threads=True)
    faulthandler.dump_traceback_later(float(OPTIONS["limit"]) + 5, exit=True, file=STACKS)
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    threading.Thread(target=beat, daemon=True).start()


class Pace:
    """How patient to be: as many times as usual as the import of torch took."""

    slowness = 1.0

    def imported_in(self, seconds: float) -> None:
        """Learn from how long an import took."""
        self.at_least(min(SLOWEST, seconds / USUAL_IMPORT))

    def at_least(self, slowness: float) -> None:
        """Be as patient as *slowness*, which another rank needs."""
        self.slowness = max(self.slowness, slowness)

    def limit(self, seconds: "float | None" = None) -> float:
        """Return for how long to wait in a stage, or for what usually takes *seconds* at most."""
        usual = float(OPTIONS["stage_limit"])
        wanted = self.slowness * (usual if seconds is None else min(seconds, usual))
        return max(1.0, min(wanted, left() - MARGIN))

    def importing(self) -> float:
        """Return for how long another rank may still be importing, and this one waits for it."""
        usual = float(OPTIONS["import_limit"]) + float(OPTIONS["stage_limit"])
        return max(1.0, min(self.slowness * usual, left() - MARGIN))


PACE = Pace()


def left() -> float:
    """Return the seconds that are left for all of it."""
    return float(OPTIONS["began"]) + float(OPTIONS["limit"]) - time.time()
