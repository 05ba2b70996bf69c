"""The stacks of ranks that are not armed, by py-spy: the real one, and one that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from tests.hang.jobs import line_of, running
from tests.test_cli import Ran
from torchdoctor.hang import looking
from torchdoctor.hang.records import Rank

STUCK = """
import re, threading
print(flush=True)
def stuck():
    re.match(r"(a+)+$", "a" * 60 + "b")
threading.Thread(target=threading.Event().wait, daemon=True).start()
stuck()
"""
REFUSED = """#!/bin/sh
echo "Error: Permission denied: try running again with elevated permissions" >&2
exit 1
"""


@pytest.fixture(scope="module")
def spy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a py-spy: the installed one, else the one that pip finds."""
    if found := shutil.which("py-spy"):
        return Path(found).parent
    folder = tmp_path_factory.mktemp("py-spy")
    command = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder))
    subprocess.run((*command, "py-spy==0.4.*"), check=True)
    return folder / "bin"


def looked_at(code: str, path: Path) -> Rank:
    """Return what is seen, with *path* first on PATH, of a rank that runs *code* and is stuck."""
    environ = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_PORT": str(29_500 + os.getpid() % 1000)}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    wish = looking.Wish(0.2, environments.environ(path, (path,)), ras=False)
    (rank,) = looking.live(process.pid, wish).ranks
    assert process.poll() is None
    process.kill()
    process.communicate()
    return rank


def test_a_py_spy_that_may_not_look_is_told_with_its_own_words(tmp_path: Path) -> None:
    refusing = tmp_path / "py-spy"
    refusing.write_text(REFUSED)
    refusing.chmod(0o755)
    rank = looked_at(STUCK, tmp_path)
    assert rank.stack == ()
    assert rank.why_no_stack.startswith("py-spy: ")
    assert "Permission denied" in rank.why_no_stack


@pytest.mark.network
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_real_one_sees_the_main_thread_inside_a_call_that_holds_the_interpreter(
    spy: Path,
) -> None:
    rank = looked_at(STUCK, spy)
    assert rank.stack_from == "py-spy"
    assert [frame.function for frame in rank.stack][-2:] == ["stuck", "<module>"]


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("armed", [False, True])
def test_the_real_one_gives_the_place_of_each_rank_of_a_job(
    spy: Path,
    armed: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    path = os.pathsep.join((str(spy), os.environ["PATH"]))
    with running("late", tmp_path, armed=armed) as job:
        words = ("--watch", "2", "--no-ras", "--format", "json")
        ran = Ran("hang", str(job.launcher), *words, cwd=tmp_path, PATH=path)
        assert all(map(job.alive, range(2)))
    report: dict[str, Any] = ran.json
    (finding,) = report["findings"]
    assert (finding["name"], finding["confidence"]) == ("rank-stuck", "likely")
    assert finding["where"]["rank"] == 1
    assert finding["where"]["operation"] == "all_reduce"
    assert finding["location"]["line"] == line_of("time.sleep(120)")
    ranks = report["data"]["hang"]["ranks"]
    assert [rank["stack_from"] for rank in ranks] == ["py-spy", "py-spy"]
    assert "all_reduce" in [frame["function"] for frame in ranks[0]["stack"]]
