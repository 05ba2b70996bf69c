"""The recipes: how each machine is made, and what has to be said of it.

They are scenes like those of :mod:`tests.scenarios` and are tried in the same way. Names that end
with ``twin`` are the healthy twin of the one before: the same in all but the fault.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.linux import lab
from tests.linux.lab import Library
from tests.scenarios import breakage
from tests.scenarios.doctor import Scene
from tests.scenarios.elf import shared_object
from tests.scenarios.scenario import Scenario

RECIPES: dict[str, Scenario] = {}


def recipe(scenario: Scenario) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Enter *scenario*, made by the decorated function, in the list of recipes."""

    def enter(build: Callable[[Scene], None]) -> Callable[[Scene], None]:
        RECIPES[scenario.key] = replace(scenario, build=build)
        return build

    return enter


# ---- a variable of the loader -------------------------------------------------------------------

OTHER = "other libtorch"


def foreign(scene: Scene, *names: str) -> str:
    """Put empty libraries called *names* into a folder outside the environment; return it."""
    folder = scene.folder / OTHER
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_bytes(shared_object(name))
    return str(folder)


@recipe(
    Scenario(
        "libtorch-by-path",
        "LD_LIBRARY_PATH names a folder with another libc10.so",
        ("libtorch-shadow",),
        shows=("LD_LIBRARY_PATH", OTHER, "torch/lib/libc10.so"),
        proof="heals",
        quick=True,
        installs=False,
    )
)
def _(scene: Scene) -> None:
    scene.variables["LD_LIBRARY_PATH"] = foreign(scene, "libc10.so")


@recipe(Scenario("libtorch-by-path-twin", "LD_LIBRARY_PATH names torch's own libraries again"))
def _(scene: Scene) -> None:
    folder = scene.folder / OTHER
    folder.mkdir()
    own = scene.environment.site / "torch" / "lib" / "libc10.so"
    shutil.copyfile(own, folder / "libc10.so")
    scene.variables["LD_LIBRARY_PATH"] = str(folder)


@recipe(
    Scenario(
        "libtorch-not-tried",
        "the same, and torch may not be imported, but all files may be read",
        ("libtorch-shadow",),
        shows=("LD_LIBRARY_PATH", OTHER, "torch/lib/libc10.so"),
        arguments=("--no-import", "--verify", "full"),
        proof="heals",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    scene.variables["LD_LIBRARY_PATH"] = foreign(scene, "libc10.so")


@recipe(
    Scenario(
        "libtorch-by-preload",
        "LD_PRELOAD names another libtorch_cpu.so",
        ("libtorch-shadow",),
        shows=("LD_PRELOAD", "libtorch_cpu.so"),
        proof="heals",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    folder = scene.folder / "preload"
    if " " in str(folder):
        raise LookupError("LD_PRELOAD takes no path with a space in it")
    folder.mkdir()
    (folder / "libtorch_cpu.so").write_bytes(shared_object("libtorch_cpu.so"))
    scene.variables["LD_PRELOAD"] = f"{folder}/libtorch_cpu.so"


@recipe(Scenario("libtorch-by-preload-twin", "LD_PRELOAD names a library that torch does not need"))
def _(scene: Scene) -> None:
    folder = scene.folder / "preload"
    folder.mkdir()
    (folder / "libmine.so").write_bytes(shared_object("libmine.so"))
    scene.variables["LD_LIBRARY_PATH"] = str(folder)
    scene.variables["LD_PRELOAD"] = "libmine.so"


@recipe(
    Scenario(
        "libstdcxx-by-path",
        "LD_LIBRARY_PATH names a folder with an old libstdc++.so.6",
        ("libstdcxx-too-old",),
        shows=("old gcc/libstdc++.so.6",),
        proof="heals",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    folder = scene.folder / "old gcc"
    old = Library(
        "libstdc++.so.6",
        soname="libstdc++.so.6",
        defines=("old",),
        versions=("GLIBCXX_3.4", "CXXABI_1.3"),
    )
    need_gcc()
    lab.build_libraries((old,), folder)
    scene.variables["LD_LIBRARY_PATH"] = str(folder)


# ---- extensions ---------------------------------------------------------------------------------


def need_gcc() -> None:
    """Raise LookupError where no compiler is at hand."""
    if lab.GCC is None:
        raise LookupError("no gcc to compile with")


def extension(
    scene: Scene,
    *uses: str,
    name: str = "lab-ext",
    version: str = "1.0",
    requires: tuple[str, ...] = ("torch",),
    **more: object,
) -> None:
    """Install the package *name* with a compiled file that needs libc10.so and *uses*."""
    need_gcc()
    site = scene.environment.site
    package = name.replace("-", "_")
    known: dict[str, object] = {"needs": ("torch/lib/libc10.so",), "uses": uses}
    built = scene.folder / "built"
    built.mkdir()
    (built / "torch").symlink_to(site / "torch")
    library = Library(f"{package}/_C.so", **known | more)  # type: ignore[arg-type]
    lab.build_libraries((library,), built)
    content = (built / package / "_C.so").read_bytes()
    files: dict[str, str | bytes] = {f"{package}/__init__.py": "", f"{package}/_C.so": content}
    wheel = environments.wheel(
        built, name, version, files, requires=requires, tag="py3-none-linux_x86_64"
    )
    environments.unpack(wheel, site)


OF_THIS_TORCH = "_ZN3c1019UndefinedTensorImpl10_singletonE"
OF_ANOTHER = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"


@recipe(
    Scenario(
        "extension-of-another-torch",
        "a package is compiled for a torch with the C++ ABI before GCC 5",
        ("ext-abi-mismatch",),
        severity="warning",
        shows=("lab-ext 1.0", OF_ANOTHER, "C++ ABI before GCC 5"),
        proof="words",  # no index has its source
        installs=False,
    )
)
def _(scene: Scene) -> None:
    extension(scene, OF_ANOTHER)


@recipe(Scenario("extension-twin", "the same package, compiled for this torch"))
def _(scene: Scene) -> None:
    extension(scene)


@recipe(
    Scenario(
        "extension-built-here",
        "a file that somebody built himself is for another torch",
        ("ext-abi-mismatch",),
        severity="warning",
        shows=("mine", OF_ANOTHER),
        proof="words",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    need_gcc()
    built = scene.folder / "built"
    built.mkdir()
    (built / "torch").symlink_to(scene.environment.site / "torch")
    mine = Library("mine.so", needs=("torch/lib/libc10.so",), uses=(OF_ANOTHER,))
    lab.build_libraries((mine,), built)
    scene.environment.write("mine.so", (built / "mine.so").read_bytes())


@recipe(
    Scenario(
        "extension-of-a-newer-system",
        "a package is compiled on a newer glibc",
        ("glibc-too-old",),
        severity="warning",
        shows=("GLIBC_9.99", "_C.so"),
        proof="words",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    need_gcc()
    folder = scene.folder / "newer"
    libc = Library("libc.so.6", soname="libc.so.6", defines=("newest",), versions=("GLIBC_9.99",))
    lab.build_libraries((libc,), folder)
    extension(scene, "newest", flags=(str(folder / "libc.so.6"),))


# ---- healthy, in unusual places -----------------------------------------------------------------


def in_a_chinese_folder(root: Path, *, whole: bool = True) -> Environment:
    """Make the environment in a folder with Chinese characters and a space."""
    return environments.copy(root.with_name("我的 环境"), whole=whole)


def with_a_target(root: Path, *, whole: bool = True) -> Environment:
    """Make an empty environment; what pip put elsewhere is on PYTHONPATH."""
    del whole
    return environments.bare(root)


@recipe(
    Scenario(
        "chinese-folder", "the environment lies in 我的 环境", place=in_a_chinese_folder, quick=True
    )
)
def _(scene: Scene) -> None:
    pass


@recipe(
    Scenario(
        "chinese-folder-broken",
        "the same, and libc10.so is gone",
        ("torch-files-missing",),
        shows=("libc10.so",),
        proof="heals",
        place=in_a_chinese_folder,
    )
)
def _(scene: Scene) -> None:
    scene.environment.remove("torch/lib/libc10.so")


def base_site() -> Path:
    """Return site-packages of the base."""
    return next(environments.base().root.glob("lib/python*/site-packages"))


@recipe(Scenario("target", "pip install --target, and PYTHONPATH", place=with_a_target))
def _(scene: Scene) -> None:
    folder = scene.folder / "target folder"
    environments.link_tree(base_site(), folder)
    scene.variables["PYTHONPATH"] = str(folder)


@recipe(Scenario("user", "pip install --user", place=environments.prefix))
def _(scene: Scene) -> None:
    site = scene.environment.site
    user = breakage.user_site(scene)
    user.parent.mkdir(parents=True)
    site.rename(user)
    site.mkdir()


def editable(scene: Scene) -> Path:
    """Move torch into a source tree and install it from there as pip does; return the tree."""
    tree = scene.folder / "my torch"
    tree.mkdir()
    environment = scene.environment
    for name in ("torch", "torchgen", "functorch"):
        (environment.site / name).rename(tree / name)
    info = environment.info("torch")
    url = {"url": tree.as_uri(), "dir_info": {"editable": True}}
    environment.write(info / "direct_url.json", json.dumps(url))
    environment.write("__editable__.torch.pth", f"{tree}\n")
    rows = [row for row in environments.read_record(info) if row[0].startswith(info.name)]
    rows.append(("__editable__.torch.pth", "", ""))
    environment.write(info / "RECORD", environments.record_text(rows))
    return tree


@recipe(Scenario("editable", "an editable torch tree"))
def _(scene: Scene) -> None:
    editable(scene)


@recipe(
    Scenario(
        "editable-libtorch-by-path",
        "an editable torch tree, and LD_LIBRARY_PATH names another libc10.so",
        ("libtorch-shadow",),
        shows=("LD_LIBRARY_PATH", OTHER, "my torch/torch/lib/libc10.so"),
        proof="heals",
        installs=False,
    )
)
def _(scene: Scene) -> None:
    editable(scene)
    scene.variables["LD_LIBRARY_PATH"] = foreign(scene, "libc10.so")


@recipe(Scenario("read-only", "site-packages may not be written to"))
def _(scene: Scene) -> None:
    scene.environment.site.chmod(0o555)


@recipe(
    Scenario(
        "read-only-broken",
        "the same, and libc10.so is gone",
        ("torch-files-missing",),
        shows=("libc10.so",),
        proof="words",  # somebody else has to carry it out
        installs=False,
    )
)
def _(scene: Scene) -> None:
    scene.environment.remove("torch/lib/libc10.so")
    scene.environment.site.chmod(0o555)
