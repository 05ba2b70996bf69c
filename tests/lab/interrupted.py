"""pip killed in the middle of a real upgrade of torch, at a moment that the seed decides."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

from tests import environments
from tests.scenarios.doctor import Scene
from tests.scenarios.scenario import Scenario

TRIALS = 20
LONGEST = 12.0
"""Seconds after pip has moved the old torch away; the whole upgrade takes about that long."""
EXPECTED = (
    "interrupted-upgrade",
    "torch-files-missing",
    "torch-files-corrupt",
    "torch-not-installed",
)


def scenario(seed: int) -> Scenario:
    """Return the trial number *seed*."""
    delay = random.Random(seed).uniform(0, LONGEST)  # noqa: S311 - the same moments every time
    return Scenario(
        f"interrupted-{seed}",
        f"pip is killed {delay:.1f} s after it moved the old torch away",
        EXPECTED,
        severity="error or warning",
        proof="heals",
        build=_killed_after(delay),
    )


def _killed_after(delay: float) -> Callable[[Scene], None]:
    def build(scene: Scene) -> None:
        site = scene.environment.site
        version = environments.base().torch_version
        environments.relabel(scene.environment, "2.12.0+cpu")
        command = [str(scene.environment.python), "-m", "pip", "install", "--no-deps", "--no-index"]
        command += ["--find-links", str(environments.base().wheels), f"torch=={version}"]
        pip = subprocess.Popen(
            command,
            cwd=scene.work,
            env=scene.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(lambda: any(site.glob("~*")) or pip.poll() is not None)
            _wait(lambda: pip.poll() is not None, delay)
        finally:
            if pip.poll() is None:
                os.killpg(pip.pid, signal.SIGKILL)
            said, _ = pip.communicate()
        if not any(site.glob("~*")):
            raise LookupError(f"pip was through before it could be killed: {said[-300:]!r}")

    return build


def _wait(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until *condition* holds, or for *seconds*."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
