"""The scenes: what is done to a healthy machine, and what has to be said of it.

``s0`` to ``s17`` are the machines that other tools were tried on (rivals.py); those that start
with ``r`` are real environments with a real breakage, or a stand-in where the row says so; those
that start with ``t`` are their healthy twins.
"""

from __future__ import annotations

import json
import shutil

from tests import environments
from tests.scenarios import breakage, conda, smi, standins
from tests.scenarios.doctor import Scene
from tests.scenarios.elf import shared_object
from tests.scenarios.scenario import SCENARIOS, Scenario

__all__ = ["SCENARIOS"]

# ---- the machines that other tools were tried on ------------------------------------------------


@Scenario("s0", "healthy CPU environment")
def _(scene: Scene) -> None:
    pass


@Scenario("s1", "libc10.so missing", ("torch-files-missing",), shows=("libc10.so",), proof="heals")
def _(scene: Scene) -> None:
    scene.environment.remove("torch/lib/libc10.so")


@Scenario(
    "s2",
    "import segfaults",
    ("torch-files-corrupt",),
    shows=("SIGSEGV", "torch/__init__.py"),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.write("torch/__init__.py", "import ctypes\n\nctypes.string_at(0)\n")


@Scenario(
    "s3",
    "import hangs",
    ("torch-files-corrupt",),
    shows=("torch/__init__.py",),
    arguments=("--timeout", "6"),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.write("torch/__init__.py", "import time\n\ntime.sleep(100000)\n")


@Scenario(
    "s4",
    "torch.py in the working folder",
    ("local-module-shadow",),
    severity="error or warning",
    shows=("torch.py",),
    proof="heals",
    quick=True,
    installs=False,
)
def _(scene: Scene) -> None:
    (scene.work / "torch.py").write_text("print('my first try')\n")


@Scenario(
    "s5",
    "torchvision 0.26, torchaudio 2.10, torch 2.13",
    ("trio-misaligned",),
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


@Scenario(
    "s6",
    "CUDA build, no driver, --expect cuda",
    ("driver-missing",),
    arguments=("--expect", "cuda"),
    proof="told",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    standins.cuda_torch(scene.environment, says=standins.NO_DRIVER)


@Scenario(
    "s6 quiet", "CUDA build, no driver, nothing expected", notes=("driver-missing",), gpu_free=True
)
def _(scene: Scene) -> None:
    standins.cuda_torch(scene.environment, says=standins.NO_DRIVER)


@Scenario(
    "s7",
    "cu130 build, driver 535",
    ("driver-too-old",),
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


@Scenario("s8", "driver 610 and its new header, B200", gpu_free=True)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "new610")
    standins.cuda_torch(scene.environment, device=standins.B200)


@Scenario(
    "s9",
    "GTX 1080 and cu130",
    ("arch-dropped",),
    shows=("sm_61",),
    proof="becomes",
    becomes=r"2\.13\.0\+cu126",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "gtx1080")
    standins.cuda_torch(scene.environment, device=standins.GTX1080, kernels=False)


@Scenario(
    "s10",
    "two dist-infos of torch",
    ("duplicate-install",),
    severity="error or warning",
    shows=("2.12.1", "2.13.0"),
    proof="heals",
)
def _(scene: Scene) -> None:
    breakage.older_info(scene.environment, "2.12.1+cpu")


@Scenario(
    "s11",
    "libcublas.so.13 missing",
    ("nvidia-wheel-files-missing",),
    shows=("libcublas.so.13",),
    proof="heals",
    gpu_free=True,
    quick=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100)
    scene.environment.remove("nvidia/cu13/lib/libcublas.so.13")


@Scenario(
    "s11 wheel",
    "nvidia-cublas not installed",
    ("nvidia-wheels-missing",),
    shows=("nvidia-cublas",),
    proof="heals",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100, without=["nvidia-cublas"])


@Scenario(
    "s12",
    "torch of conda, and of pip over it",
    ("conda-pip-mix",),
    severity="error or warning",
    shows=("2.12.1",),
    proof="heals",
    place=environments.prefix,
)
def _(scene: Scene) -> None:
    conda.records(scene.environment, "2.12.1")
    conda.program(scene)


@Scenario("s13", "folders of CUDA 12 on LD_LIBRARY_PATH, torch imports", gpu_free=True)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100)
    folder = scene.folder / "usr" / "local" / "cuda-12.4" / "lib64"
    folder.mkdir(parents=True)
    for name in ("libcublas.so.12", "libcublasLt.so.12", "libcudart.so.12"):
        (folder / name).write_bytes(shared_object(name))
    scene.variables["LD_LIBRARY_PATH"] = str(folder)


@Scenario(
    "s15",
    "nvidia-smi hangs",
    ("driver-not-answering",),
    severity="warning",
    arguments=("--timeout", "8"),
    proof="words",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "hang")


@Scenario(
    "s16",
    "NVML: driver and library differ",
    ("nvml-mismatch",),
    shows=("580.95",),
    proof="words",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "mismatch")
    standins.cuda_torch(scene.environment, says=standins.ERROR_803)


@Scenario(
    "s17",
    "CPU build, GPU present",
    ("cpu-only-build",),
    severity="warning",
    proof="becomes",
    becomes=r"2\.13\.0(\+cu13\d)?",
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


@Scenario(
    "s17 cuda",
    "CPU build, GPU present, --expect cuda",
    ("cpu-only-build",),
    arguments=("--no-import", "--expect", "cuda"),
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


@Scenario(
    "s17 cpu",
    "CPU build, GPU present, --expect cpu",
    arguments=("--no-import", "--expect", "cpu"),
    gpu_free=True,
)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")


# ---- real environments --------------------------------------------------------------------------


@Scenario(
    "r1",
    "torchvision of the default index beside torch+cpu",
    ("trio-variant-mixed",),
    shows=("torchvision::nms", "0.28.0+cu130"),
    proof="heals",
)
def _(scene: Scene) -> None:
    breakage.unpack_more(scene.environment, "torchvision-0.28.0-*.whl", "pillow-*.whl")


@Scenario(
    "r2",
    "torchvision of another release (real)",
    ("trio-misaligned",),
    shows=("0.26.0", "2.13.0", "torchvision::nms"),
    proof="heals",
)
def _(scene: Scene) -> None:
    breakage.unpack_more(scene.environment, "torchvision-0.26.0-*.whl", "pillow-*.whl")


@Scenario(
    "r3",
    "a ~orch leftover",
    ("interrupted-upgrade",),
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


@Scenario(
    "r4",
    "a file of RECORD truncated",
    ("torch-files-corrupt",),
    shows=("libtorch_python.so",),
    proof="heals",
)
def _(scene: Scene) -> None:
    path = scene.environment.site / "torch" / "lib" / "libtorch_python.so"
    with path.open("rb") as file:
        scene.environment.write(path, file.read(1 << 20))


@Scenario(
    "r5",
    "a Python file of RECORD deleted",
    ("torch-files-missing",),
    shows=("torch/nn/init.py",),
    proof="heals",
)
def _(scene: Scene) -> None:
    scene.environment.remove("torch/nn/init.py")


@Scenario(
    "r6",
    "a torch in the user site hides the conda environment's",
    ("user-site-shadow",),
    severity="error or warning",
    shows=("2.6.0",),
    proof="heals",
    place=environments.prefix,
)
def _(scene: Scene) -> None:
    conda.records(scene.environment, None)  # where the user site comes first
    path = standins.tiny_torch(standins.wheel_folder() / "old", "2.6.0+cpu", requires=("filelock",))
    environments.unpack(path, breakage.user_site(scene))


@Scenario(
    "r7",
    "a torch folder in the working folder",
    ("local-module-shadow",),
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


@Scenario(
    "r8",
    "PYTHONPATH names a folder with another torch",
    ("local-module-shadow", "duplicate-install"),
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


@Scenario(
    "r9",
    "NumPy 2 beside torch 2.2 (real torch under that name)",
    ("numpy2-abi",),
    severity="error or warning",
    shows=("2.2.2",),
    proof="heals",
)
def _(scene: Scene) -> None:
    breakage.torch_of_numpy_1(scene.environment)


# ---- healthy twins ------------------------------------------------------------------------------


@Scenario("t2", "torchvision and torchaudio of this release (stand-ins)")
def _(scene: Scene) -> None:
    folder = standins.wheel_folder() / "fitting"
    for path in standins.fitting_companions(folder, "+cpu")[:2]:
        environments.unpack(path, scene.environment.site)


@Scenario("t7", "names that look like torch but hide nothing")
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


@Scenario("t6", "a conda environment, a user site without torch", place=environments.prefix)
def _(scene: Scene) -> None:
    conda.records(scene.environment, None)
    environments.unpack(
        environments.wheel(standins.wheel_folder(), "rich", "14.0.0", {"rich/__init__.py": ""}),
        breakage.user_site(scene),
    )


@Scenario("t9", "NumPy 1 beside torch 2.2 (real torch under that name)")
def _(scene: Scene) -> None:
    breakage.torch_of_numpy_1(scene.environment)
    for name in ("numpy", "numpy.libs", scene.environment.info("numpy").name):
        scene.environment.remove(name)
    breakage.unpack_more(scene.environment, "numpy-1.26.4-*.whl")


@Scenario("t12", "torch of conda alone", place=environments.prefix)
def _(scene: Scene) -> None:
    conda.records(scene.environment, "2.13.0")
    version = standins.VERSION_PY.format(version="2.13.0", cuda=None)
    info = environments.relabel(scene.environment, "2.13.0", changes={"torch/version.py": version})
    scene.environment.write(info / "INSTALLER", "conda")
    url = "file:///home/conda/feedstock_root/build_artifacts/libtorch_1790000000000/work"
    scene.environment.write(info / "direct_url.json", json.dumps({"dir_info": {}, "url": url}))


@Scenario("t s11", "CUDA build, all wheels, GPU and driver fit", gpu_free=True)
def _(scene: Scene) -> None:
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, "2.13.0+cu130", device=standins.A100)
