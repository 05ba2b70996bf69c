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
        left = delay
        while not _killed(scene, left):  # a quick machine was through before
            left /= 2

    return build


def _killed(scene: Scene, delay: float) -> bool:
    """Upgrade an older torch, kill pip after *delay*; tell whether it was still at it."""
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
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait(lambda: any(site.glob("~*")) or pip.poll() is not None)
        _wait(lambda: pip.poll() is not None, delay)
    finally:
        if pip.poll() is None:
            os.killpg(pip.pid, signal.SIGKILL)
        code = pip.wait()
    assert code in (0, -signal.SIGKILL), f"pip ended with {code}"
    return any(site.glob("~*"))


def _wait(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until *condition* holds, or for *seconds*."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
