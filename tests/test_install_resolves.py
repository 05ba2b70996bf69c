"""What is chosen can be had: pip resolves it from the package index that it is configured for.

PyTorch's own indexes may be out of reach; a labelled build is then asked for by its release.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_choose import SYSTEMS
from torchdoctor import choose
from torchdoctor.constraints import Wish
from torchdoctor.facts import Facts, Interpreter, Platform
from torchdoctor.tables import builds, releases

pytestmark = pytest.mark.network

SAMPLE = 60
GLIBC = "2.39"


def cases() -> list[tuple[str, str, str]]:
    """Return release, platform and Python of a sample of all that the tables have."""
    every = [
        (release.version, key, python)
        for release in releases.torch_releases()
        for key in SYSTEMS
        for python in release.pythons.get(key, ())
        if python.replace(".", "").isdigit()
    ]
    return random.Random(20261129).sample(sorted(every), SAMPLE)  # noqa: S311 - the same each time


def tags(key: str) -> list[str]:
    """Return the platform tags of pip for a machine of *key*, as new as the wheels ask for."""
    if key.startswith("linux"):
        arch = key.removeprefix("linux_")
        minors = [f"manylinux_2_{minor}_{arch}" for minor in range(39, 4, -1)]
        return [*minors, f"manylinux2014_{arch}", f"manylinux1_{arch}", f"linux_{arch}"]
    if key == "win_amd64":
        return [key]
    return [f"macosx_{major}_0_arm64" for major in range(15, 10, -1)]


@pytest.mark.parametrize(("release", "key", "python"), cases())
def test_the_answer_resolves(release: str, key: str, python: str, tmp_path: Path) -> None:
    system, arch = SYSTEMS[key]
    facts = Facts(
        platform=Platform(
            system,
            arch,
            libc="glibc" if system == "linux" else None,
            libc_version=GLIBC if system == "linux" else None,
        ),
        interpreter=Interpreter("/v/bin/python", f"{python}.1", "/v", "/usr", "venv", machine=arch),
        torch=None,
        torchvision=None,
        torchaudio=None,
    )
    tag = builds.default_build(release, key)
    assert tag
    wish = Wish(torch=release, accelerator=builds.kind_of(tag))
    found = choose.decide(facts, wish)
    assert isinstance(found, choose.Choice), found
    assert found.release == release
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"]
    command += ["--only-binary=:all:", f"--python-version={python}", "--ignore-installed"]
    command += [f"--platform={tag}" for tag in tags(key)]
    command += [f"--target={tmp_path / 'target'}", f"--report={report}"]
    command += ["--disable-pip-version-check"]
    wanted = {p.name: p.version.partition("+")[0] for p in found.packages}
    done = subprocess.run(
        [*command, *(f"{name}=={version}" for name, version in wanted.items())],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ResolutionImpossible" in done.stderr:  # one package, alone: only that can forbid it
        pytest.skip("a constraints file of this machine excludes it")
    assert done.returncode == 0, done.stderr
    installed = json.loads(report.read_text("utf-8"))["install"]
    assert {
        i["metadata"]["name"]: i["metadata"]["version"].partition("+")[0] for i in installed
    } == (wanted)
