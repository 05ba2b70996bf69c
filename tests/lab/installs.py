"""Recipes of other ways to install: uv, pipx, --target, --user, zip files, other Pythons.

Each has its healthy twin, and the plan of each is carried out by the tool that the environment
belongs to.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.lab.recipes import base_site, extension, need_gcc, recipe
from tests.linux import lab
from tests.linux.lab import Library
from tests.scenarios import breakage, smi, standins
from tests.scenarios.doctor import Scene
from tests.scenarios.scenario import Scenario, healthy

LIBC10 = "torch/lib/libc10.so"
UV = shutil.which(
    "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
)

# ---- what owns the environment ------------------------------------------------------------------


def of_uv(root: Path, *, whole: bool = True) -> Environment:
    """Make an environment with uv, without pip, and let uv own what is in it."""
    del whole
    if UV is None:
        raise LookupError("no uv here")
    line = [UV, "venv", "--quiet", "--offline", "--python", sys.executable, str(root)]
    subprocess.run(line, check=True, capture_output=True)
    (site,) = root.glob("lib/python*/site-packages")
    for entry in base_site().iterdir():
        if entry.name.startswith("pip") or (site / entry.name).exists():
            continue
        if entry.is_dir():
            environments.link_tree(entry, site / entry.name)
        else:
            os.link(entry, site / entry.name)
    environment = Environment(root, root / "bin" / "python", site)
    programs = root.parent / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "uv").symlink_to(UV)
    for info in site.glob("*.dist-info"):
        environment.write(info / "INSTALLER", "uv")
    return environment


def of_pipx(root: Path, *, whole: bool = True) -> Environment:
    """Make the environment of an application that pipx installed."""
    environment = environments.copy(root, whole=whole)
    told = {"main_package": {"package": "torch"}, "pipx_metadata_version": "0.5"}
    environments.write(root / "pipx_metadata.json", json.dumps(told))
    return environment


def with_pip(root: Path, *, whole: bool = True) -> Environment:
    """Make an environment of the running Python with pip alone."""
    del whole
    environment = environments.bare(root)
    for entry in base_site().glob("pip*"):
        environments.link_tree(entry, environment.site / entry.name)
    return environment


def without_libc10(scene: Scene) -> None:
    """Take a library of torch away."""
    scene.environment.remove(LIBC10)


GONE = Scenario("", "", ("torch-files-missing",), shows=("libc10.so",), proof="heals")
"""What is said of an environment without libc10.so, whoever owns it."""


def broken_and_twin(key: str, title: str, **more: object) -> None:
    """Enter the recipe *key*, of which libc10.so is gone, and its twin."""
    known: dict[str, object] = {"place": environments.copy, **more}
    made = Scenario(f"{key}-twin", f"{title}, and nothing is wrong", **known)  # type: ignore[arg-type]
    recipe(made)(healthy)
    broken = Scenario(
        key,
        f"{title}, and libc10.so is gone",
        GONE.expected,
        shows=GONE.shows,
        proof=GONE.proof,
        **known,  # type: ignore[arg-type]
    )
    recipe(broken)(without_libc10)


broken_and_twin("uv", "uv made the environment", place=of_uv)
broken_and_twin("pipx", "pipx made the environment", place=of_pipx)

# ---- where pip was told to put it ---------------------------------------------------------------


def into_target(scene: Scene) -> Path:
    """Put torch where ``pip install --target`` does, with PYTHONPATH; return the folder."""
    folder = scene.folder / "target folder"
    pip = [entry.name for entry in base_site().glob("pip*")]
    environments.link_tree(base_site(), folder, but=pip)
    scene.variables["PYTHONPATH"] = str(folder)
    return folder


@recipe(
    Scenario(
        "target-broken",
        "pip install --target, PYTHONPATH, and libc10.so is gone",
        GONE.expected,
        shows=GONE.shows,
        proof="heals",
        place=with_pip,
    )
)
def _(scene: Scene) -> None:
    (into_target(scene) / LIBC10).unlink()


@recipe(
    Scenario(
        "user-broken",
        "pip install --user, and libc10.so is gone",
        GONE.expected,
        shows=GONE.shows,
        proof="heals",
        place=environments.prefix,
    )
)
def _(scene: Scene) -> None:
    site = scene.environment.site
    user = breakage.user_site(scene)
    user.parent.mkdir(parents=True)
    site.rename(user)
    site.mkdir()
    (user / LIBC10).unlink()


def zipped(scene: Scene, name: str) -> None:
    """Put the Python files of the package *name* into a zip file, which PYTHONPATH names."""
    archive = scene.folder / "packed.zip"
    source = scene.environment.site / "torch"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (source / "__init__.py", source / "version.py"):
            file.write(path, f"{name}/{path.name}")
    scene.variables["PYTHONPATH"] = str(archive)


@recipe(
    Scenario(
        "zip",
        "PYTHONPATH names a zip file with another torch in it",
        ("local-module-shadow", "duplicate-install"),
        shows=("packed.zip",),
        proof="heals",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    zipped(scene, "torch")


@recipe(Scenario("zip-twin", "PYTHONPATH names a zip file with another package in it"))
def _(scene: Scene) -> None:
    zipped(scene, "my_tools")


# ---- a disk that is full ------------------------------------------------------------------------

SMALL, LARGE = "400m", "2g"


@contextmanager
def disk_of(size: str, folder: Path) -> Iterator[None]:
    """Let *folder* be a disk of this *size* for a while; what is then in it stays there.

    Raises:
        LookupError: this user may not mount one.

    """
    kept = folder.with_name(f"{folder.name} before")
    folder.rename(kept)
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        raise LookupError("no small disk can be mounted")
    try:
        shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        yield
        shutil.rmtree(kept)
        shutil.copytree(folder, kept, symlinks=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()
    kept.rename(folder)


def install_on(size: str, scene: Scene) -> str:
    """Let pip install torch while site-packages is a disk of this *size*; return its errors."""
    base = environments.base()
    line = [str(scene.environment.python), "-m", "pip", "install", "--no-index", "--find-links"]
    line += [str(base.wheels), f"torch=={base.torch_version}", "numpy"]
    with disk_of(size, scene.environment.site):
        done = subprocess.run(
            line, env=scene.environ(), cwd=scene.work, capture_output=True, text=True, check=False
        )
    return done.stderr


@recipe(
    Scenario(
        "disk-full",
        "the disk is full in the middle of pip install torch",
        ("torch-files-missing", "torch-not-installed", "torch-files-corrupt"),
        proof="heals",
        place=with_pip,
    )
)
def _(scene: Scene) -> None:
    said = install_on(SMALL, scene)
    if "No space left on device" not in said:
        raise LookupError(f"the disk was large enough: {said[-300:]}")


@recipe(Scenario("disk-full-twin", "the same, and the disk is large enough", place=with_pip))
def _(scene: Scene) -> None:
    said = install_on(LARGE, scene)
    assert "ERROR" not in said, said


# ---- every Python as the target -----------------------------------------------------------------

PYTHONS = {"3.8": "2.4.1", "3.9": "2.2.2", "3.10": "1.13.1", "3.12": "2.9.1", "3.13": "2.9.1"}
"""A Python, and a torch of its time."""


def of_python(series: str, release: str) -> Callable[..., Environment]:
    """Return what makes an environment of another Python with the stand-in of *release*."""

    def place(root: Path, *, whole: bool = True) -> Environment:
        del whole
        pythons = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        found = sorted(pythons.glob(f"versions/{series}.*/bin/python"))
        if not found:
            raise LookupError(f"no Python {series} of pyenv")
        environment = environments.bare(root, found[-1])
        folder = standins.wheel_folder()
        made = standins.tiny_torch(folder, f"{release}+cpu", requires=())
        environments.unpack(made, environment.site)
        return environment

    return place


def _of_pythons() -> None:
    for series, release in PYTHONS.items():
        place = of_python(series, release)
        title = f"Python {series} with torch {release}"
        recipe(Scenario(f"python-{series}-twin", title, place=place))(healthy)
        broken = Scenario(
            f"python-{series}",
            f"{title}, and a file of it is gone",
            GONE.expected,
            shows=("version.py",),
            proof="heals",
            place=place,
        )
        recipe(broken)(lambda scene: scene.environment.remove("torch/version.py"))


_of_pythons()

# ---- built for another torch --------------------------------------------------------------------

OF_TORCH_2_9 = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ibj"


@recipe(
    Scenario(
        "xformers",
        "xformers for torch 2.9 beside torch 2.13",
        ("ext-abi-mismatch",),
        severity="warning",
        shows=("xformers 0.0.33", OF_TORCH_2_9),
        proof="heals",
    )
)
def _(scene: Scene) -> None:
    extension(
        scene, OF_TORCH_2_9, name="xformers", version="0.0.33", requires=("torch==2.9.0", "numpy")
    )


@recipe(Scenario("xformers-twin", "xformers that loads beside torch 2.13"))
def _(scene: Scene) -> None:
    extension(scene, name="xformers", version="0.0.35", requires=("torch>=2.10", "numpy"))


@recipe(
    Scenario(
        "torch-scatter",
        "torch-scatter for torch 2.4 beside torch 2.13",
        ("ext-abi-mismatch",),
        severity="warning",
        shows=("torch-scatter 2.1.2+pt24cpu", OF_TORCH_2_9),
        proof="words",  # it is compiled again, or goes
    )
)
def _(scene: Scene) -> None:
    extension(scene, OF_TORCH_2_9, name="torch-scatter", version="2.1.2+pt24cpu", requires=())


@recipe(Scenario("torch-scatter-twin", "torch-scatter for torch 2.13"))
def _(scene: Scene) -> None:
    extension(scene, name="torch-scatter", version="2.1.2+pt213cpu", requires=())


# ---- another libcuda ----------------------------------------------------------------------------

LIBCUDA = "libcuda.so.1"


def compat(scene: Scene, release: str) -> None:
    """Let LD_LIBRARY_PATH name the folder of a cuda-compat whose libcuda is of this *release*."""
    need_gcc()
    a_cuda_build(scene)
    folder = scene.folder / "cuda" / "compat"
    made = Library(f"libcuda.so.{release}", soname=LIBCUDA, defines=("cuDriverGetVersion",))
    lab.build_libraries((made,), folder)
    (folder / LIBCUDA).symlink_to(f"libcuda.so.{release}")
    scene.variables["LD_LIBRARY_PATH"] = str(folder)


@recipe(
    Scenario(
        "older-compat",
        "LD_LIBRARY_PATH names a cuda-compat that is older than the driver",
        ("cuda-compat-libs",),
        shows=("libcuda.so.575.57.08", "LD_LIBRARY_PATH", "error 803"),
        arguments=("--no-import",),
        proof="heals",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    compat(scene, "575.57.08")


@recipe(
    Scenario(
        "older-compat-twin",
        "LD_LIBRARY_PATH names a cuda-compat that is newer than the driver of an A100",
        arguments=("--no-import",),
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    compat(scene, "590.48.01")


# ---- another library of CUDA --------------------------------------------------------------------

NVIDIA = "nvidia/cu13/lib"
PART, OF_CUDNN, CALL = "libcudnn_graph.so.9", "cudnnBackendPopulate", "ncclCommWindowRegister"


def a_cuda_build(scene: Scene, without: tuple[str, ...] = ()) -> None:
    """Make torch a CUDA build, on a machine with a GPU that it works with."""
    smi.install(scene.bin, "a100-580")
    standins.cuda_torch(scene.environment, device=standins.A100, without=without)


def cuda_with(scene: Scene, *libraries: Library) -> Path:
    """Make a CUDA build of which *libraries* are real; return the folder they were built in."""
    need_gcc()
    a_cuda_build(scene)
    built = scene.folder / "built"
    lab.build_libraries(libraries, built)
    for library in libraries:
        scene.environment.write(library.path, (built / library.path).read_bytes())
    return built


def cudnn(scene: Scene, *defines: str) -> None:
    """Let LD_LIBRARY_PATH name a folder with a part of cuDNN that *defines* these."""
    folder = "nvidia/cudnn/lib"
    own = Library(f"{folder}/{PART}", soname=PART, defines=(OF_CUDNN,))
    user = Library(
        f"{folder}/libcudnn.so.9",
        soname="libcudnn.so.9",
        needs=(own.path,),
        uses=(OF_CUDNN,),
        runpath="$ORIGIN",
    )
    cuda_with(scene, own, user)
    other = Library(PART, soname=PART, defines=defines)
    lab.build_libraries((other,), scene.folder / "cudnn-9.1" / "lib")
    scene.variables["LD_LIBRARY_PATH"] = str(scene.folder / "cudnn-9.1" / "lib")


@recipe(
    Scenario(
        "other-cudnn",
        "LD_LIBRARY_PATH names a folder with an older cuDNN",
        ("cuda-lib-shadow",),
        shows=("LD_LIBRARY_PATH", OF_CUDNN, f"cudnn-9.1/lib/{PART}"),
        proof="heals",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    cudnn(scene, "cudnnGetVersion")


@recipe(
    Scenario(
        "other-cudnn-twin",
        "LD_LIBRARY_PATH names a folder with a cuDNN that has it all",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    cudnn(scene, OF_CUDNN)


def nccl(scene: Scene, *defines: str) -> None:
    """Let LD_PRELOAD name an NCCL that *defines* these."""
    own = Library("nvidia/nccl/lib/libnccl.so.2", soname="libnccl.so.2", defines=(CALL,))
    user = Library(
        f"{NVIDIA}/libcufile.so.0",
        soname="libcufile.so.0",
        needs=(own.path,),
        uses=(CALL,),
        runpath="$ORIGIN/../../nccl/lib",
    )
    cuda_with(scene, own, user)
    folder = scene.folder / "hpcx"
    other = Library("libnccl.so.2", soname="libnccl.so.2", defines=defines)
    lab.build_libraries((other,), folder)
    scene.variables["LD_PRELOAD"] = f"{folder}/libnccl.so.2"


@recipe(
    Scenario(
        "other-nccl",
        "LD_PRELOAD names an older NCCL",
        ("cuda-lib-shadow",),
        shows=("LD_PRELOAD", CALL, "hpcx/libnccl.so.2"),
        proof="heals",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    nccl(scene, "ncclAllReduce")


@recipe(Scenario("other-nccl-twin", "LD_PRELOAD names an NCCL that has it all", gpu_free=True))
def _(scene: Scene) -> None:
    nccl(scene, CALL)


# ---- NVIDIA's wheels ----------------------------------------------------------------------------


@recipe(
    Scenario(
        "two-nccl",
        "nvidia-nccl-cu12 was installed beside nvidia-nccl-cu13, then removed",
        ("nvidia-wheel-files-missing", "nvidia-wheels-mixed"),
        shows=("libnccl.so.2",),
        proof="heals",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    a_cuda_build(scene)
    environment = scene.environment
    file = "nvidia/nccl/lib/libnccl.so.2"
    content = (environment.site / file).read_bytes()
    folder = scene.folder / "wheels"
    tag = "py3-none-manylinux_2_18_x86_64"
    other = environments.wheel(folder, "nvidia-nccl-cu12", "2.27.5", {file: content}, tag=tag)
    environments.unpack(other, environment.site)
    done = environment.run("-m", "pip", "uninstall", "-y", "nvidia-nccl-cu12")
    if done.returncode or (environment.site / file).exists():
        raise LookupError(f"pip did not take the file along: {done.stdout}{done.stderr}")


@recipe(Scenario("two-nccl-twin", "a CUDA build with all of its wheels", gpu_free=True))
def _(scene: Scene) -> None:
    a_cuda_build(scene)


@recipe(
    Scenario(
        "no-cudnn",
        "nvidia-cudnn-cu13 is not installed",
        ("nvidia-wheels-missing",),
        shows=("nvidia-cudnn-cu13",),
        proof="heals",
        gpu_free=True,
    )
)
def _(scene: Scene) -> None:
    a_cuda_build(scene, without=("nvidia-cudnn-cu13",))
