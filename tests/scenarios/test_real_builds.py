"""The stand-ins' real counterparts, several gigabytes each.

Run by hand: ``pytest -m "slow and network" tests/scenarios/test_real_builds.py``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import doctor, smi
from tests.scenarios.doctor import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.network,
    pytest.mark.skipif(doctor.HAS_DRIVER, reason="needs a machine without an NVIDIA driver"),
]

CUDA_SETS = {
    "newest": ("torch===2.14.1", "torchvision===0.29.1", "numpy"),
    "torch 2.13": ("torch===2.13.0", "torchvision===0.28.0", "numpy"),
}
"""Untagged builds: those of the default index, which are CUDA builds on Linux."""
NUMPY_2 = ("torch===2.2.2", "numpy==2.0.2")


@contextmanager
def installed(folder: Path, *requirements: str, more: tuple[str, ...] = ()) -> Iterator[Scene]:
    """Make a scene with *requirements* from wherever this machine's pip finds them."""
    root = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", str(root)], check=True)
    (site,) = root.glob("lib/python*/site-packages")
    scene = Scene(folder, environments.Environment(root, root / "bin" / "python", site))
    command = [str(scene.environment.python), "-m", "pip", "install", "--quiet", *requirements]
    subprocess.run([*command, *more], check=True)
    yield scene


@pytest.mark.parametrize("which", CUDA_SETS)
def test_the_real_cuda_build_with_its_own_torchvision_is_healthy_without_a_gpu(
    tmp_path: Path, which: str
) -> None:
    with installed(tmp_path, *CUDA_SETS[which]) as scene:
        answer = doctor.check(scene)
        assert answer.faults == []
        assert answer.report["verdict"] == "healthy"
        expecting = doctor.check(scene, "--expect", "cuda")
        assert expecting.unexplained == ["driver-missing"]


def test_the_real_cuda_build_misses_a_library_an_old_driver_and_an_old_gpu(tmp_path: Path) -> None:
    with installed(tmp_path, "torch===2.13.0", "numpy") as scene:
        smi.install(scene.bin, "old535")
        assert doctor.check(scene).unexplained == ["driver-too-old"]
        smi.install(scene.bin, "gtx1080")
        assert doctor.check(scene, "--no-import").unexplained == ["arch-dropped"]
        (scene.bin / "nvidia-smi").unlink()
        (scene.environment.site / "nvidia/cu13/lib/libcublas.so.13").unlink()
        answer = doctor.check(scene)
        assert answer.unexplained == ["nvidia-wheel-files-missing"]
        assert "libcublas.so.13" in answer.evidence("nvidia-wheel-files-missing")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="torch 2.2 has no wheels for this Python")
def test_numpy_2_beside_the_real_torch_2_2_is_named(tmp_path: Path) -> None:
    with installed(tmp_path, *NUMPY_2) as scene:
        answer = doctor.check(scene)
        assert answer.unexplained == ["numpy2-abi"]
        assert any("numpy" in line for line in answer.commands)
