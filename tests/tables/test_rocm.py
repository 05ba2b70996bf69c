"""AMD targets of the ROCm builds: invariants, and facts with their public sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.tables import load
from torchdoctor.tables.builds import builds
from torchdoctor.tables.gpus import gfx_of
from torchdoctor.tables.releases import torch_releases
from torchdoctor.tables.rocm import (
    Override,
    blas,
    integrated,
    override,
    override_hangs,
    override_works,
    runs,
    target_of,
    targets,
    windows_index,
)

ROCM = [
    (release.version, build.tag)
    for release in torch_releases()
    for build in builds(release.version, "linux_x86_64")
    if build.kind == "rocm"
]


def test_every_rocm_build_from_2_0_on_has_its_targets() -> None:
    for torch, tag in ROCM:
        found = targets(torch, tag)
        if torch.startswith("1."):
            assert found is None
        else:
            assert found is not None
            assert len(set(found)) == len(found)
            assert {"gfx90a", "gfx1030"} <= set(found)
            assert all(name.startswith("gfx") for name in found)


def test_rows_are_newest_first() -> None:
    rows = [tuple(map(int, version.split("."))) for version in load("rocm")["targets"]]
    assert rows == sorted(rows, reverse=True)


def test_exceptions_are_of_builds_that_exist() -> None:
    table = load("rocm")
    assert set(table["without"]) <= {tag for _, tag in ROCM}
    assert {tuple(key.split()) for key in table["with"]} <= set(ROCM)


def test_an_override_leads_to_a_target_that_builds_have() -> None:
    for value, target in load("rocm")["override"].values():
        major, minor, step = value.split(".")
        assert target == f"gfx{major}{minor}{step}"
        assert target in (targets("2.13.0", "rocm7.2") or ())


# torch.cuda.get_arch_list() of installed wheels: https://github.com/astral-sh/uv/issues/14086,
# https://github.com/astral-sh/uv/pull/18730 (rocm7.2 in March 2026)
@pytest.mark.parametrize(
    ("torch", "tag", "printed"),
    [
        ("2.4.1", "rocm6.0", "900 906 908 90a 1030 1100 942"),
        ("2.5.1", "rocm6.2", "900 906 908 90a 1030 1100 942"),
        ("2.7.1", "rocm6.2.4", "900 906 908 90a 942 1030 1100 1101 1102 1200 1201"),
        ("2.7.1", "rocm6.3", "900 906 908 90a 942 1030 1100 1101 1102 1200 1201"),
        (
            "2.11.0",
            "rocm7.2",
            "900 906 908 90a 942 1030 1100 1101 1102 1200 1201 950 1150 1151",
        ),
    ],
)
def test_targets_are_what_users_printed(torch: str, tag: str, printed: str) -> None:
    found = targets(torch, tag)
    assert found is not None
    assert set(found) == {f"gfx{name}" for name in printed.split()}


# https://github.com/pytorch/pytorch/pull/179653, https://github.com/unslothai/unsloth/pull/9829
def test_gfx1103_comes_with_2_13() -> None:
    assert "gfx1103" not in (targets("2.12.1", "rocm7.2") or ())
    assert "gfx1103" in (targets("2.13.0", "rocm7.2") or ())


# pytorch/pytorch .ci/docker/manywheel/build.sh @027375bf
def test_rocm_7_14_has_no_mi50_any_more() -> None:
    assert "gfx906" in (targets("2.14.1", "rocm7.2") or ())
    assert "gfx906" not in (targets("2.14.1", "rocm7.14") or ())
    assert "gfx942" in (targets("2.14.1", "rocm7.14") or ())


# https://github.com/ROCm/legacy-rocm-build/issues/4625, https://github.com/unslothai/unsloth/pull/7354
def test_mi50_has_kernels_but_no_rocblas_from_rocm_6_4_on() -> None:
    assert runs("2.7.1", "rocm6.3", "gfx906") is True
    assert "gfx906" in (targets("2.9.1", "rocm6.4") or ())
    assert runs("2.9.1", "rocm6.4", "gfx906") is False
    assert blas("rocm6.3", "gfx906")
    assert not blas("rocm7.2", "gfx900")


# https://github.com/ROCm/rocBLAS/issues/1339, https://github.com/ROCm/ROCm/issues/2353
def test_a_sibling_runs_by_override_on_linux() -> None:
    assert runs("2.12.1", "rocm7.2", "gfx1031") is False
    assert override("2.12.1", "rocm7.2", "gfx1031") == Override("10.3.0", "gfx1030")
    assert override("2.5.1", "rocm6.2", "gfx1101") == Override("11.0.0", "gfx1100")
    assert override("2.0.1", "rocm5.4.2", "gfx1101") is None


def test_no_override_where_none_is_needed_or_none_works() -> None:
    assert override("2.12.1", "rocm7.2", "gfx1101") is None
    assert override("2.12.1", "rocm7.2", "gfx1030") is None
    assert override("2.12.1", "rocm7.2", "gfx803") is None
    # https://github.com/pytorch/pytorch/pull/179653: faults and hangs
    assert override("2.12.1", "rocm7.2", "gfx1103") is None


# docs.rs/rusty-stack/0.4.0 env_setup: the runtime of ROCm 7.14 refuses to start with it
def test_rocm_7_14_takes_no_override() -> None:
    assert override_works("rocm7.2")
    assert not override_works("rocm7.14")
    assert not override_works("rocm10.0")
    assert override("2.14.1", "rocm7.14", "gfx1031") is None


@given(st.sampled_from(ROCM), st.sampled_from(sorted(load("rocm")["override"])))
def test_an_override_is_only_told_to_those_who_cannot_run(
    build: tuple[str, str], target: str
) -> None:
    if found := override(*build, target):
        assert runs(*build, target) is False
        assert runs(*build, found.target) is True
        assert override_works(build[1])


def test_what_was_not_read_is_unknown() -> None:
    assert targets("2.15.0", "rocm7.14") is None
    assert targets("1.13.1", "rocm5.2") is None
    assert targets("2.14.1", "cu130") is None
    assert targets("2.11.0a0+nv26.02", "rocm7.2") is None
    assert runs("2.16.0", "rocm10.0", "gfx942") is None
    assert override("2.16.0", "rocm7.2", "gfx1031") is None


# https://rocm.docs.amd.com/en/docs-5.7.1/release/windows_support.html; LLVM AMDGPUUsage;
# https://github.com/pytorch/pytorch/issues/179865 (Vega 56)
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("AMD Radeon RX 6600", "gfx1032"),
        ("AMD Radeon RX 6650 XT", "gfx1032"),
        ("AMD Radeon PRO W6600", "gfx1032"),
        ("AMD Radeon RX 6600M", None),
        ("AMD Radeon RX 6700 XT", "gfx1031"),
        ("AMD Radeon RX Vega 56", "gfx900"),
        ("AMD Instinct MI60", "gfx906"),
        ("AMD Radeon Pro VII", "gfx906"),
        ("AMD Radeon RX 9070 XT", "gfx1201"),
    ],
)
def test_targets_by_name(name: str, target: str | None) -> None:
    assert gfx_of(name) == target


def test_windows_has_an_index_of_its_own() -> None:
    assert windows_index().startswith("https://")


# https://github.com/pytorch/pytorch/pull/179653
def test_an_override_that_hangs_is_never_the_advice() -> None:
    assert override_hangs("gfx1103", "11.0.0")
    assert not override_hangs("gfx1102", "11.0.0")
    for target, values in load("rocm")["override_hangs"].items():
        assert load("rocm")["override"].get(target, [""])[0] not in values


@pytest.mark.parametrize(
    ("value", "target"),
    [("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("11.0.0", "gfx1100"), ("gfx1030", None)],
)
def test_the_target_that_a_value_names(value: str, target: str | None) -> None:
    assert target_of(value) == target


def test_graphics_inside_a_processor() -> None:
    assert integrated("gfx1036")
    assert not integrated("gfx1030")
    assert not integrated("gfx1151")
