"""The scenes: what is done to a healthy machine, and what has to be said of it.

``s0`` to ``s17`` are the machines that other tools were tried on (rivals.py); those that start
with ``r`` are real environments with a real breakage, or a stand-in where the row says so; those
that start with ``t`` are their healthy twins.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from tests import environments
from tests.environments import Environment
from tests.scenarios import smi, standins
from tests.scenarios.doctor import Scene
from tests.scenarios.elf import shared_object

Proof = Literal["heals", "becomes", "words", "told", "none"]
"""How a plan is proven: ``heals``: its commands are run, then torch imports and all is quiet;
``becomes``: its commands are run, then another build is installed and what was found is gone (the
build itself is a stand-in); ``words``: the system has to be changed, nothing is run;
``told``: nothing on this machine can cure it, and the plan says so; ``none``: nothing to do."""


class Place(Protocol):
    """Makes an environment in a folder."""

    def __call__(self, root: Path, *, whole: bool = True) -> Environment:
        """Return it; see :func:`tests.environments.copy`."""


@dataclass(frozen=True)
class Scenario:
    """One scene and its right answer."""

    key: str
    title: str
    build: Callable[[Scene], None]
    expected: tuple[str, ...] = ()
    """Names, any one of which is right for what is to be fixed first; none: quiet."""
    severity: tuple[str, ...] = ("error",)
    shows: tuple[str, ...] = ()
    """Texts that the evidence has to hold."""
    notes: tuple[str, ...] = ()
    """Names that have to be there as notes."""
    arguments: tuple[str, ...] = ()
    proof: Proof = "none"
    becomes: str = ""
    """A pattern for the version of torch after the plan."""
    place: Place = environments.copy
    quick: bool = False
    """Whether its plan is carried out in the default tier too, not only with the marker lab."""
    installs: bool = True
    """Whether its plan installs or removes packages."""
    gpu_free: bool = False
    """Whether it needs a machine that has no NVIDIA driver of its own."""


SCENARIOS: dict[str, Scenario] = {}


def _scene(
    key: str,
    title: str,
    *expected: str,
    severity: str = "error",
    shows: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    arguments: tuple[str, ...] = (),
    proof: Proof = "none",
    becomes: str = "",
    place: Place = environments.copy,
    quick: bool = False,
    installs: bool = True,
    gpu_free: bool = False,
) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    def keep(build: Callable[[Scene], None]) -> Callable[[Scene], None]:
        SCENARIOS[key] = Scenario(
            key,
            title,
            build,
            expected,
            tuple(severity.split(" or ")),
            shows,
            notes,
            arguments,
            proof,
            becomes,
            place,
            quick,
            installs,
            gpu_free,
        )
        return build

    return keep


# ---- the machines that other tools were tried on ------------------------------------------------


@_scene("s0", "healthy CPU environment")
def _(scene: Scene) -> None:
    pass


@_scene(
    "s1",
    "libc10.so missing",
    "torch-files-missing",
    shows=("libc10.so",),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.remove("torch/lib/libc10.so")


@_scene(
    "s2",
    "import segfaults",
    "torch-files-corrupt",
    shows=("SIGSEGV", "torch/__init__.py"),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.write("torch/__init__.py", "import ctypes\n\nctypes.string_at(0)\n")


@_scene(
    "s3",
    "import hangs",
    "torch-files-corrupt",
    shows=("torch/__init__.py",),
    arguments=("--timeout", "6"),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.write("torch/__init__.py", "import time\n\ntime.sleep(100000)\n")


@_scene(
    "s4",
    "torch.py in the working folder",
    "local-module-shadow",
    severity="error or warning",
    shows=("torch.py",),
    proof="heals",
    quick=True,
    installs=False,
)
def _(scene: Scene) -> None:
    (scene.work / "torch.py").write_text("print('my first try')\n")


@_scene(
    "s5",
    "torchvision 0.26, torchaudio 2.10, torch 2.13",
    "trio-misaligned",
    severity="error or warning",
    shows=("0.26.0", "2.13.0"),
    proof="heals",
)
def _(scene: Scene) -> None:
    folder = standins.wheel_folder() / "old"
    for path in (
        standins.companion(folder, "torchvision", "0.26.0+cpu", " (==2.11.0)"),
        standins.companion(folder, "torchaudio", "2.10.0+cpu", "==2.10.0"),
    ):
        environments.unpack(path, scene.environment.site)


@_scene(
    "s6",
    "CUDA build, no driver, --expect cuda",
    "driver-missing",
    arguments=("--expect", "cuda"),
    proof="told",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    standins.cuda_torch(scene.environment, says=standins.NO_DRIVER)


@_scene(
    "s6 quiet",
    "CUDA build, no driver, nothing expected",
    notes=("driver-missing",),
    gpu_free=True,
)
def _(scene: Scene) -> None:
    standins.cuda_torch(scene.environment, says=standins.NO_DRIVER)


@_scene(
    "s7",
    "cu130 build, driver 535",
    "driver-too-old",
    shows=("535.183.01",),
    proof="becomes",
    becomes=r"2\.13\.0\+cu126",
    gpu_free=True,
    quick=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "old535")
    standins.cuda_torch(
        scene.environment, "2.13.0+cu130", says=standins.TOO_OLD.format(number=12020)
    )


@_scene("s8", "driver 610 and its new header, B200", gpu_free=True)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "new610")
    standins.cuda_torch(scene.environment, device=standins.B200)


@_scene(
    "s9",
    "GTX 1080 and cu130",
    "arch-dropped",
    shows=("sm_61",),
    proof="becomes",
    becomes=r"2\.13\.0\+cu126",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "gtx1080")
    standins.cuda_torch(scene.environment, device=standins.GTX1080, kernels=False)


@_scene(
    "s10",
    "two dist-infos of torch",
    "duplicate-install",
    severity="error or warning",
    shows=("2.12.1", "2.13.0"),
    proof="heals",
)
def _(scene: Scene) -> None:
    older_info(scene.environment, "2.12.1+cpu")


@_scene(
    "s11",
    "libcublas.so.13 missing",
    "nvidia-wheel-files-missing",
    shows=("libcublas.so.13",),
    proof="heals",
    gpu_free=True,
    quick=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100)
    scene.environment.remove("nvidia/cu13/lib/libcublas.so.13")


@_scene(
    "s11 wheel",
    "nvidia-cublas not installed",
    "nvidia-wheels-missing",
    shows=("nvidia-cublas",),
    proof="heals",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100, without=["nvidia-cublas"])


@_scene(
    "s12",
    "torch of conda, and of pip over it",
    "conda-pip-mix",
    severity="error or warning",
    shows=("2.12.1",),
    proof="heals",
    place=environments.prefix,
)
def _(scene: Scene) -> None:
    conda(scene.environment, "2.12.1")
    conda_program(scene)


@_scene("s13", "folders of CUDA 12 on LD_LIBRARY_PATH, torch imports", gpu_free=True)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100)
    folder = scene.folder / "usr" / "local" / "cuda-12.4" / "lib64"
    folder.mkdir(parents=True)
    for name in ("libcublas.so.12", "libcublasLt.so.12", "libcudart.so.12"):
        (folder / name).write_bytes(shared_object(name))
    scene.variables["LD_LIBRARY_PATH"] = str(folder)


@_scene(
    "s15",
    "nvidia-smi hangs",
    "driver-not-answering",
    severity="warning",
    arguments=("--timeout", "8"),
    proof="words",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "hang")


@_scene(
    "s16",
    "NVML: driver and library differ",
    "nvml-mismatch",
    shows=("580.95",),
    proof="words",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "mismatch")
    standins.cuda_torch(scene.environment, says=standins.ERROR_803)


@_scene(
    "s17",
    "CPU build, GPU present",
    "cpu-only-build",
    severity="warning",
    proof="becomes",
    becomes=r"2\.13\.0(\+cu13\d)?",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


@_scene(
    "s17 cuda",
    "CPU build, GPU present, --expect cuda",
    "cpu-only-build",
    arguments=("--no-import", "--expect", "cuda"),
    proof="none",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


@_scene(
    "s17 cpu",
    "CPU build, GPU present, --expect cpu",
    arguments=("--no-import", "--expect", "cpu"),
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


# ---- real environments --------------------------------------------------------------------------


@_scene(
    "r1",
    "torchvision of the default index beside torch+cpu",
    "trio-variant-mixed",
    severity="error",
    shows=("torchvision::nms", "0.28.0+cu130"),
    proof="heals",
)
def _(scene: Scene) -> None:
    unpack_more(scene.environment, "torchvision-0.28.0-*.whl", "pillow-*.whl")


@_scene(
    "r2",
    "torchvision of another release (real)",
    "trio-misaligned",
    severity="error",
    shows=("0.26.0", "2.13.0", "torchvision::nms"),
    proof="heals",
)
def _(scene: Scene) -> None:
    unpack_more(scene.environment, "torchvision-0.26.0-*.whl", "pillow-*.whl")


@_scene(
    "r3",
    "a ~orch leftover",
    "interrupted-upgrade",
    severity="warning",
    shows=("~orch",),
    proof="heals",
    quick=True,
    installs=False,
)
def _(scene: Scene) -> None:
    scene.environment.write("~orch/__init__.py", "")
    scene.environment.write("~orch/version.py", "__version__ = '2.12.1+cpu'\n")
    info = "~orch-2.12.1+cpu.dist-info"
    scene.environment.write(f"{info}/METADATA", environments.metadata("torch", "2.12.1+cpu"))


@_scene(
    "r4",
    "a file of RECORD truncated",
    "torch-files-corrupt",
    shows=("libtorch_python.so",),
    proof="heals",
)
def _(scene: Scene) -> None:
    path = scene.environment.site / "torch" / "lib" / "libtorch_python.so"
    with path.open("rb") as file:
        scene.environment.write(path, file.read(1 << 20))


@_scene(
    "r5",
    "a Python file of RECORD deleted",
    "torch-files-missing",
    shows=("torch/nn/init.py",),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.remove("torch/nn/init.py")


@_scene(
    "r6",
    "a torch in the user site hides the conda environment's",
    "user-site-shadow",
    severity="error or warning",
    shows=("2.6.0",),
    proof="heals",
    place=environments.prefix,
)
def _(scene: Scene) -> None:
    conda(scene.environment, None)  # where the user site comes first
    path = standins.tiny_torch(standins.wheel_folder() / "old", "2.6.0+cpu", requires=("filelock",))
    environments.unpack(path, user_site(scene))


@_scene(
    "r7",
    "a torch folder in the working folder",
    "local-module-shadow",
    severity="error or warning",
    shows=("torch",),
    proof="heals",
    installs=False,
    quick=True,
)
def _(scene: Scene) -> None:
    (scene.work / "torch").mkdir()
    (scene.work / "torch" / "__init__.py").write_text("")
    (scene.work / "torch" / "models.py").write_text("")


@_scene(
    "r8",
    "PYTHONPATH names a folder with another torch",
    "local-module-shadow",
    "duplicate-install",
    severity="error or warning",
    shows=("PYTHONPATH",),
    proof="heals",
    quick=True,
    installs=False,
)
def _(scene: Scene) -> None:
    folder = scene.folder / "old-project"
    environments.unpack(standins.tiny_torch(standins.wheel_folder() / "old", "2.6.0+cpu"), folder)
    shutil.rmtree(next(folder.glob("*.dist-info")))
    scene.variables["PYTHONPATH"] = str(folder)


@_scene(
    "r9",
    "NumPy 2 beside torch 2.2 (real torch under that name)",
    "numpy2-abi",
    severity="error or warning",
    shows=("2.2.2",),
    proof="heals",
)
def _(scene: Scene) -> None:
    torch_of_numpy_1(scene.environment)


# ---- healthy twins ------------------------------------------------------------------------------


@_scene("t2", "torchvision and torchaudio of this release (stand-ins)")
def _(scene: Scene) -> None:
    folder = standins.wheel_folder() / "fitting"
    for path in fitting_companions(folder, "+cpu")[:2]:
        environments.unpack(path, scene.environment.site)


@_scene("t7", "names that look like torch but hide nothing")
def _(scene: Scene) -> None:
    # Without __init__.py it is a namespace, which any real package wins over.
    (scene.work / "torch").mkdir()
    (scene.work / "torch" / "checkpoint.pt").write_text("")
    (scene.work / "torch_model.py").write_text("")
    (scene.work / "my_torch").mkdir()
    (scene.work / "my_torch" / "__init__.py").write_text("")
    helpers = scene.folder / "helpers"
    helpers.mkdir()
    (helpers / "helper.py").write_text("")
    scene.variables["PYTHONPATH"] = str(helpers)


@_scene("t6", "a conda environment, a user site without torch", place=environments.prefix)
def _(scene: Scene) -> None:
    conda(scene.environment, None)
    environments.unpack(
        environments.wheel(standins.wheel_folder(), "rich", "14.0.0", {"rich/__init__.py": ""}),
        user_site(scene),
    )


@_scene("t9", "NumPy 1 beside torch 2.2 (real torch under that name)")
def _(scene: Scene) -> None:
    torch_of_numpy_1(scene.environment)
    for name in ("numpy", "numpy.libs", scene.environment.info("numpy").name):
        scene.environment.remove(name)
    unpack_more(scene.environment, "numpy-1.26.4-*.whl")


@_scene("t12", "torch of conda alone", place=environments.prefix)
def _(scene: Scene) -> None:
    conda(scene.environment, "2.13.0")
    version = standins.VERSION_PY.format(version="2.13.0", cuda=None)
    info = environments.relabel(scene.environment, "2.13.0", changes={"torch/version.py": version})
    scene.environment.write(info / "INSTALLER", "conda")
    url = "file:///home/conda/feedstock_root/build_artifacts/libtorch_1790000000000/work"
    scene.environment.write(info / "direct_url.json", json.dumps({"dir_info": {}, "url": url}))


@_scene(
    "t s11",
    "CUDA build, all wheels, GPU and driver fit",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, "2.13.0+cu130", device=standins.A100)


# ---- what scenes are made of --------------------------------------------------------------------


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


def fitting_companions(folder: Path, label: str) -> list[Path]:
    """Make torchvision and torchaudio for torch 2.13.0 in the build *label* ("+cpu")."""
    return [
        standins.companion(folder, "torchvision", f"0.28.0{label}", f"==2.13.0{label}"),
        standins.companion(folder, "torchaudio", f"2.11.0{label}", None),
        standins.companion(folder, "torchaudio", f"2.11.1{label}", ">=2.11"),
    ][: 2 if not label else 3]


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


def conda(environment: Environment, torch: str | None) -> None:
    """Make *environment* a conda prefix whose records say pytorch *torch*; None: no pytorch.

    Synthetic: records in conda's documented layout (conda-meta/<name>-<version>-<build>.json), as
    none of its channels was at hand.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    tag = f"py{python.replace('.', '')}"
    torch_files = sorted(
        str(path.relative_to(environment.root))
        for path in environment.site.glob("torch/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    full = ".".join(map(str, sys.version_info[:3]))
    packages: dict[str, tuple[str, str, list[str]]] = {
        "python": (full, "h955ad1f_0_cpython", ["bin/python"]),
    }
    if torch:
        packages["pytorch"] = (torch, f"cpu_generic_{tag}_h1234567_0", torch_files)
        packages["libtorch"] = (torch, "cpu_generic_h7654321_0", [])
    for name, (version, build, files) in packages.items():
        conda_record(environment.root, name, version, build, files)
    history = "==> 2026-10-01 10:00:00 <==\n# cmd: conda create -n ml python\n"
    (environment.root / "conda-meta" / "history").write_text(history)


def conda_record(root: Path, name: str, version: str, build: str, files: list[str]) -> None:
    """Write the conda-meta record of one package."""
    full = f"{name}-{version}-{build}"
    record = {
        "arch": "x86_64",
        "build": build,
        "build_number": 0,
        "channel": "https://conda.anaconda.org/conda-forge/linux-64",
        "constrains": [],
        "depends": [],
        "extracted_package_dir": f"/home/user/miniforge3/pkgs/{full}",
        "files": files,
        "fn": f"{full}.conda",
        "license": "BSD-3-Clause",
        "link": {"source": f"/home/user/miniforge3/pkgs/{full}", "type": 1},
        "name": name,
        "package_tarball_full_path": f"/home/user/miniforge3/pkgs/{full}.conda",
        "paths_data": {
            "paths": [{"_path": path, "path_type": "hardlink"} for path in files],
            "paths_version": 1,
        },
        "platform": "linux",
        "requested_spec": name if name in ("python", "pytorch") else "None",
        "subdir": "linux-64",
        "timestamp": 1790000000000,
        "url": f"https://conda.anaconda.org/conda-forge/linux-64/{full}.conda",
        "version": version,
    }
    folder = root / "conda-meta"
    folder.mkdir(exist_ok=True)
    (folder / f"{full}.json").write_text(json.dumps(record, indent=2))


CONDA = r'''#!@PYTHON@
"""A stand-in for conda: `list`; `remove --force` and `install` of pytorch, done to the prefix."""
import json, re, subprocess, sys
from pathlib import Path

words = sys.argv[1:]
verb = words[0]
root = Path(words[words.index("-p") + 1] if "-p" in words else @ROOT@)
meta = root / "conda-meta"
records = {json.loads(path.read_text())["name"]: path for path in meta.glob("*.json")}


def drop(name):
    path = records.pop(name)
    for file in json.loads(path.read_text())["files"]:
        (root / file).unlink(missing_ok=True)
    path.unlink()


if verb == "remove":
    assert "--force" in words, words
    for word in words[1:]:
        if word in records:
            drop(word)
elif verb == "install":
    found = [re.match(r"pytorch=([\d.]+)(=cpu.*)?$", word) for word in words]
    (spec,) = [match for match in found if match]
    version = spec.group(1)
    if "pytorch" in records:
        same = json.loads(records["pytorch"].read_text())["version"] == version
        if same and "--force-reinstall" not in words:
            print("# All requested packages already installed.")
            sys.exit(0)
        drop("pytorch")
    subprocess.run([sys.executable, "-c", @MAKE@, str(root), version], check=True)
elif verb == "list":
    print("# packages in environment at %s:\n#" % root)
    print("# Name                    Version                   Build  Channel")
    rows = [json.loads(path.read_text()) for path in records.values()]
    rows = [(row["name"], row["version"], row["build"], "conda-forge") for row in rows]
    for path in root.glob("lib/python3*/site-packages/*.dist-info"):
        if (path / "INSTALLER").exists() and (path / "INSTALLER").read_text().strip() == "pip":
            name, version = path.name[: -len(".dist-info")].split("-")
            rows.append((name.replace("_", "-"), version, "pypi_0", "pypi"))
    for row in sorted(rows):
        print("%-25s %-25s %s    %s" % row)
else:
    sys.exit("conda: unknown verb " + verb)
'''


def conda_program(scene: Scene) -> None:
    """Put a stand-in ``conda`` on the scene's PATH."""
    make = (
        f"import sys; sys.path[0] = {str(environments.CHECKOUT)!r}; "
        "from tests.scenarios import catalogue; catalogue.conda_install(*sys.argv[1:])"
    )
    program = CONDA.replace("@PYTHON@", sys.executable).replace("@MAKE@", repr(make))
    program = program.replace("@ROOT@", repr(str(scene.environment.root)))
    path = scene.bin / "conda"
    path.write_text(program)
    path.chmod(0o755)
    scene.variables["TORCHDOCTOR_TEST_CACHE"] = str(environments.CACHE)


def conda_install(root: str, version: str) -> None:
    """Put pytorch *version* of conda into the prefix *root*: the files of the base."""
    (target,) = Path(root).glob("lib/python3*/site-packages")
    (home,) = environments.base().root.glob("lib/python3*/site-packages")
    (info,) = home.glob("torch-*.dist-info")
    for name in ("torch", "functorch", "torchgen", info.name):
        shutil.rmtree(target / name, ignore_errors=True)
        environments.link_tree(home / name, target / name)
    environment = Environment(Path(root), Path(root, "bin", "python"), target)
    text = standins.VERSION_PY.format(version=version, cuda=None)
    made = environments.relabel(environment, version, changes={"torch/version.py": text})
    environment.write(made / "INSTALLER", "conda")
    conda(environment, version)
