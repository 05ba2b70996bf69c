"""torch's own start, as the table has it, is what torch itself does."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests import environments
from tests.linux import lab, torch_start
from tests.linux.lab import Library
from tests.linux.torch_start import Machinery
from torchdoctor.linux import startup
from torchdoctor.tables import load, refresh
from torchdoctor.tables.index import Index

WHEELS = {
    "cu13": (
        *("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libnvrtc.so.13"),
        *("libnvrtc-builtins.so.13.0", "libcupti.so.13", "libcufft.so.12", "libcurand.so.10"),
        *("libnvJitLink.so.13", "libcusparse.so.12", "libcusolver.so.12", "libcufile.so.0"),
    ),
    "cudnn": ("libcudnn.so.9",),
    "cusparselt": ("libcusparseLt.so.0",),
    "nccl": ("libnccl.so.2",),
    "nvshmem": ("libnvshmem_host.so.3",),
}
LIBRARIES = {f"nvidia/{f}/lib/{name}": name for f, names in WHEELS.items() for name in names}
SITE = tuple(Library(f"site/{path}", soname=name) for path, name in LIBRARIES.items())
CUDART = "site/nvidia/cu13/lib/libcudart.so.13"
SPARSE = "site/nvidia/cu13/lib/libcusparse.so.12"
JIT = "site/nvidia/cu13/lib/libnvJitLink.so.13"
WRITTEN = "$ORIGIN/../../nvidia/cu13/lib"


def torch(
    rpath: str = "",
    runpath: str = "",
    needs: tuple[str, ...] = (CUDART,),
    cuda: tuple[str, ...] = (CUDART, SPARSE),
) -> tuple[Library, ...]:
    """Return torch's own files, with where they look."""
    deps = "site/torch/lib/libtorch_global_deps.so"
    own, same = rpath.replace("/../../", "/../"), runpath.replace("/../../", "/../")
    return (
        Library(deps, "libtorch_global_deps.so", needs, rpath, runpath),
        Library("site/torch/_C.so", None, cuda, own, same),
    )


def but(path: str, **changes: object) -> tuple[Library, ...]:
    """Return the libraries of the wheels, one of them otherwise."""
    known = {"soname": LIBRARIES[path.removeprefix("site/")]}
    other = Library(path, **known | changes)  # type: ignore[arg-type]
    return (*(lib for lib in SITE if lib.path != path), other)


FOREIGN = Library("toolkit/libnvJitLink.so.13", soname="libnvJitLink.so.13")
MACHINERIES = {
    "the wheels are found by DT_RPATH": Machinery((*SITE, *torch(rpath=WRITTEN))),
    "nvJitLink of the wheel is there before that of LD_LIBRARY_PATH": Machinery(
        (*but(SPARSE, needs=(JIT,)), FOREIGN, *torch(rpath=WRITTEN)), library_path="@/toolkit"
    ),
    "without an own path the wheels are found by torch itself": Machinery((*SITE, *torch())),
    "a wheel that torch looks for is gone": Machinery(
        (*SITE, *torch()), removed=("site/nvidia/nccl/lib/libnccl.so.2",)
    ),
    "a foreign library that lacks a symbol gives way to the wheel's": Machinery(
        (
            *but(CUDART, defines=("cudaNew",)),
            Library("toolkit/libcudart.so.13", soname="libcudart.so.13", uses=("gone",)),
            *torch(runpath=WRITTEN),
        ),
        library_path="@/toolkit",
    ),
    "a foreign cudart is taken, and the rest comes from the wheels": Machinery(
        (
            *SITE,
            Library("toolkit/libcudart.so.13", soname="libcudart.so.13"),
            Library("toolkit/libcusparse.so.12", soname="libcusparse.so.12"),
            *torch(runpath=WRITTEN),
        ),
        library_path="@/toolkit",
    ),
    "a library that no wheel has ends it": Machinery(
        (
            *SITE,
            Library("site/x/libx.so.1", soname="libx.so.1"),
            *torch(needs=("site/x/libx.so.1",)),
        ),
    ),
    "a wheel in which a library is gone, which the start does not need": Machinery(
        (*SITE, *torch(rpath=WRITTEN)), removed=("site/nvidia/cudnn/lib/libcudnn.so.9",)
    ),
}


def source(release: str | None = None) -> tuple[str, str]:
    """Return the release of the torch at hand, and its torch/__init__.py."""
    wheel = environments.base().torch_wheel
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("torch/__init__.py").decode("utf-8")
    return release or environments.base().torch_version, text


@pytest.mark.skipif(lab.GCC is None, reason="no gcc to compile with")
@pytest.mark.parametrize("machinery", MACHINERIES.values(), ids=MACHINERIES)
def test_the_start_loads_what_torch_itself_loads(machinery: Machinery, tmp_path: Path) -> None:
    release, text = source()
    torch_start.build(machinery, tmp_path)
    answer, files = torch_start.real(machinery, tmp_path, torch_start.code_of(text))
    said = torch_start.predicted(machinery, tmp_path, release)
    assert (said.problem.message if said.problem else None) == answer or (
        # torch says the pattern and that it is not in the path
        said.problem is not None and said.problem.culprit == answer
    )
    if said.problem is None:
        mine = {Path(o.path).resolve() for o in said.process.objects}
        assert {p for p in mine if p.is_relative_to(tmp_path)} == files


def test_the_table_has_the_lists_of_the_torch_at_hand() -> None:
    compare(*source())


@pytest.mark.network
@pytest.mark.parametrize("since", [row["since"] for row in load("torch_start")["release"][2:]])
def test_the_table_has_the_lists_of_every_release(since: str, tmp_path: Path) -> None:
    address, certificates = refresh.configured()
    index = Index(address, tmp_path, certificates=certificates)
    wheels = [f for f in index.files("torch") if f.name.startswith(f"torch-{since}-")]
    wheel = next(f for f in wheels if "win_amd64" in f.name)  # the same text, a smaller directory
    compare(since, index.member(wheel, r"torch/__init__\.py"))


def compare(release: str, text: str) -> None:
    """Hold the row of *release* against its torch/__init__.py."""
    how = startup.sequence(release)
    assert how is not None
    fallback = [tuple(row) for row in how["fallback"]]
    assert torch_start.listed(text) == [r for r in fallback if r[0] not in how.get("cuda12", ())]
    after = [] if how.get("after") == "all" else how.get("after", [])
    rows = {tuple(row) for row in (*fallback, *how.get("optional", ()), *after)}
    assert torch_start.named(text) == rows


def test_releases_before_the_table_are_not_known_and_newer_ones_are_as_the_last() -> None:
    assert startup.sequence("1.9.1") is None
    last = load("torch_start")["release"][-1]
    assert startup.sequence("9.0.0") == last
    assert startup.is_read("2.15.0")
    assert not startup.is_read("2.16.0")


def test_rows_of_the_table_are_in_order_and_say_where_they_are_from() -> None:
    table = load("torch_start")
    since = [tuple(map(int, row["since"].split("."))) for row in table["release"]]
    assert since == sorted(since)
    for row in table["release"]:
        assert row["source"]
        assert not row.get("fallback") or row["places"]
        folders = {folder for folder, _ in row.get("fallback", ())}
        assert set(row.get("cuda12", ())) <= folders
