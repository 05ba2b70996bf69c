"""Parts that several scenes are made of: what a real environment looks like once it is broken."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.scenarios import standins
from tests.scenarios.doctor import Scene

NUMPY_1_ONLY = '''
import sys as _sys

import numpy as _numpy

if not _numpy.__version__.startswith("1."):
    _sys.stderr.write("""
A module that was compiled using NumPy 1.x cannot be run in
NumPy %s as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.
Some module may need to rebuild instead e.g. with 'pybind11>=2.12'.

If you are a user of the module, the easiest solution will be to
downgrade to 'numpy<2' or try to upgrade the affected module.
We expect that some modules will need time to support NumPy 2.

torch/nn/modules/transformer.py:20: UserWarning: Failed to initialize NumPy: _ARRAY_API not found
(Triggered internally at ../torch/csrc/utils/tensor_numpy.cpp:84.)
""" % _numpy.__version__)

    def from_numpy(array):
        raise RuntimeError("Numpy is not available")

    def _to_numpy(self, *, force=False):
        raise RuntimeError("Numpy is not available")

    Tensor.numpy = _to_numpy
'''


def older_info(environment: Environment, version: str) -> Path:
    """Put a second dist-info of torch beside the right one, as a broken upgrade leaves it."""
    source = environment.info("torch")
    target = source.with_name(f"torch-{version}.dist-info")
    environments.link_tree(source, target)
    text = (source / "METADATA").read_text(encoding="utf-8")
    installed = source.name.removeprefix("torch-").removesuffix(".dist-info")
    environment.write(
        target / "METADATA", text.replace(f"Version: {installed}", f"Version: {version}")
    )
    record = (source / "RECORD").read_text(encoding="utf-8")
    environment.write(target / "RECORD", record.replace(source.name, target.name))
    return target


def user_site(scene: Scene) -> Path:
    """Return the user site of the scene's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return scene.home / ".local" / "lib" / version / "site-packages"


def unpack_more(environment: Environment, *patterns: str) -> None:
    """Install wheels of the base's extra ones.

    Raises:
        LookupError: pip found none for this Python.

    """
    for pattern in patterns:
        path = environments.base().wheel(pattern)
        if path is None:
            raise LookupError(f"no {pattern} for this Python")
        environments.unpack(path, environment.site)


def torch_of_numpy_1(environment: Environment) -> None:
    """Give the real torch the name, the requirements and the NumPy messages of torch 2.2.2."""
    requires = ("filelock", "typing-extensions>=4.8.0", "sympy", "networkx", "jinja2", "fsspec")
    init = (environment.site / "torch" / "__init__.py").read_text(encoding="utf-8")
    environments.relabel(
        environment,
        "2.2.2+cpu",
        changes={
            "torch/version.py": standins.VERSION_PY.format(version="2.2.2+cpu", cuda=None),
            "torch/__init__.py": init + NUMPY_1_ONLY,
        },
        requires=requires,
    )
