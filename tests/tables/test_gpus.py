"""GPUs and the code builds have for them: invariants, and facts with their public sources."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchdoctor.tables import load
from torchdoctor.tables.builds import builds, cuda_of
from torchdoctor.tables.gpus import ArchList, arch_list, capability_of, gfx_of, runs
from torchdoctor.tables.releases import torch_releases

TARGETS = st.sampled_from([37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90])
NEWER = st.sampled_from([100, 101, 103, 107, 110, 120, 121, 122, 130])
CODES = TARGETS | NEWER
CAPABILITIES = CODES.map(lambda code: divmod(code, 10))
MAXWELL_TO_BLACKWELL = (50, 60, 61, 70, 75, 80, 86, 90, 100, 120)


def known(torch: str, tag: str, platform: str) -> ArchList:
    found = arch_list(torch, tag, platform)
    assert found is not None
    return found


def rows() -> Iterator[tuple[str, str, str]]:
    for torch, tags in load("archs")["torch"].items():
        for tag, platforms in tags.items():
            for platform in platforms:
                yield torch, tag, platform


def test_lists_are_ordered_and_of_a_status_we_know() -> None:
    statuses = {"wheel", "measured", "source", "uncertain"}
    for torch, tag, platform in rows():
        sm, ptx, status, _ = load("archs")["torch"][torch][tag][platform]
        assert sm == sorted(set(sm)), (torch, tag, platform)
        assert ptx == sorted(set(ptx))
        assert set(ptx) <= set(sm)
        assert status in statuses
        assert cuda_of(tag) is not None


def test_every_list_is_of_a_release() -> None:
    versions = {release.version for release in torch_releases()}
    assert {torch for torch, _, _ in rows()} <= versions


def test_every_cuda_build_has_a_list_but_those_nobody_read() -> None:
    missing = {
        (release.version, build.tag, platform)
        for release in torch_releases()
        for platform in ("linux_x86_64", "linux_aarch64", "win_amd64")
        for build in builds(release.version, platform)
        if build.cuda and arch_list(release.version, build.tag, platform) is None
    }
    assert missing == {
        ("2.10.0", "cu129", "linux_x86_64"),
        ("2.10.0", "cu129", "linux_aarch64"),
        ("2.11.0", "cu129", "linux_x86_64"),
        ("2.12.1", "cu129", "linux_aarch64"),
    }


def test_code_for_a_gpu_runs_on_that_gpu_and_stays_in_its_family() -> None:
    for target, devices in load("archs")["runs_on"].items():
        assert int(target) in devices
        twins = {101, 110}  # 11.0 was called 10.1
        assert {d // 10 for d in devices} == {int(target) // 10} or set(devices) == twins


@settings(deadline=None)
@given(
    sm=st.lists(CODES, max_size=9),
    ptx=st.lists(CODES, max_size=3),
    capability=CAPABILITIES,
    data=st.data(),
)
def test_the_order_of_a_list_does_not_matter(
    sm: list[int], ptx: list[int], capability: tuple[int, int], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(sm))
    assert runs(sm, ptx, capability) is runs(shuffled, tuple(reversed(ptx)), capability)


@settings(deadline=None)
@given(
    sm=st.lists(CODES, max_size=9),
    ptx=st.lists(CODES, max_size=3),
    more=CODES,
    capability=CAPABILITIES,
)
def test_more_code_never_runs_on_less(
    sm: list[int], ptx: list[int], more: int, capability: tuple[int, int]
) -> None:
    rank = {False: 0, None: 1, True: 2}
    before = rank[runs(sm, ptx, capability)]
    assert rank[runs([*sm, more], ptx, capability)] >= before
    assert rank[runs(sm, [*ptx, more], capability)] >= before


@settings(deadline=None)
@given(capability=CAPABILITIES, sm=st.lists(CODES))
def test_code_of_another_family_never_runs(capability: tuple[int, int], sm: list[int]) -> None:
    twins = {10, 11}
    foreign = [s for s in sm if s // 10 != capability[0] and not {s // 10, capability[0]} <= twins]
    assert runs(foreign, (), capability) is False


# DEVICE_REQUIREMENT in torch/cuda/__init__.py of torch 2.14.1 and 2.15.0
@pytest.mark.parametrize(
    ("sm", "capability", "answer"),
    [
        ((120,), (12, 1), True),  # GB10 runs sm_120
        ((121,), (12, 0), False),
        ((100,), (10, 3), True),
        ((100,), (10, 7), True),  # Rubin: the rule is an interval to the end of the major
        ((100,), (10, 1), False),
        ((90, 100), (12, 0), False),
        ((80, 86), (8, 9), True),
        ((90,), (8, 9), False),
        ((89,), (8, 6), False),
        ((70,), (7, 5), True),
        ((75,), (7, 0), False),
        ((60,), (6, 1), True),
        ((60,), (6, 2), False),
        ((50, 60), (5, 2), True),
        ((50,), (5, 3), False),
        ((101,), (11, 0), True),
        ((110,), (10, 1), True),
        ((37, 50), (3, 5), False),
        ((37, 50), (3, 7), True),
        ((100, 120), (13, 0), False),
        ((100, 120), (12, 2), None),  # a GPU newer than torch's table
        ((), (9, 0), False),
    ],
)
def test_which_code_runs_where(
    sm: tuple[int, ...], capability: tuple[int, int], *, answer: bool | None
) -> None:
    assert runs(sm, (), capability) is answer


# DEVICE_REQUIREMENT_POST_JETSON_SBSA_UNIFICATION in torch 2.14.1
@pytest.mark.parametrize(
    ("cuda", "answer"), [("13.2", True), ("13.4", True), ("13.0", False), (None, None)]
)
def test_orin_runs_code_for_8_0_from_cuda_13_2(cuda: str | None, *, answer: bool | None) -> None:
    assert runs((80, 90, 100, 110, 120), (), (8, 7), cuda=cuda) is answer
    assert runs((70, 75), (), (7, 2), cuda=cuda) is answer
    assert runs((87,), (), (8, 7), cuda=cuda) is True


# torch warns of sm_120 with compute_37 in the list (public reports)
def test_ptx_3_7_supports_no_new_gpu() -> None:
    windows = known("2.6.0", "cu118", "win_amd64")
    assert windows.ptx == (37,)
    assert runs(windows.sm, windows.ptx, (12, 0)) is False
    assert runs(windows.sm, windows.ptx, (8, 9)) is True


def test_ptx_of_the_family_runs_ptx_of_an_earlier_one_cannot_be_told() -> None:
    assert runs((), (120,), (12, 1)) is True
    assert runs((), (120,), (12, 0)) is True
    assert runs((), (121,), (12, 0)) is False
    assert runs((90,), (90,), (12, 0)) is None


# Flags in the wheels; torch.cuda.get_arch_list() in https://github.com/pytorch/pytorch/issues/182250
# and https://github.com/nikopueringer/CorridorKey/pull/141;
# https://github.com/pytorch/pytorch/pull/158126, https://github.com/pytorch/pytorch/pull/188443
@pytest.mark.parametrize(
    ("torch", "tag", "platform", "sm"),
    [
        ("2.6.0", "cu124", "linux_x86_64", (50, 60, 70, 75, 80, 86, 90)),
        ("2.7.1", "cu126", "linux_x86_64", (50, 60, 70, 75, 80, 86, 90)),
        ("2.8.0", "cu128", "linux_x86_64", (70, 75, 80, 86, 90, 100, 120)),
        ("2.10.0", "cu128", "linux_x86_64", (70, 75, 80, 86, 90, 100, 120)),
        ("2.11.0", "cu128", "linux_x86_64", (75, 80, 86, 90, 100, 120)),
        ("2.11.0", "cu126", "linux_x86_64", (50, 60, 70, 75, 80, 86, 90)),
        ("2.12.1", "cu129", "linux_x86_64", (75, 80, 86, 90, 100, 120)),
        ("2.15.0", "cu132", "linux_x86_64", (75, 80, 86, 90, 100, 120)),
        ("2.12.1", "cu130", "linux_aarch64", (80, 90, 100, 110, 120)),
        ("2.7.0", "cu128", "win_amd64", MAXWELL_TO_BLACKWELL),
        ("2.7.1", "cu128", "win_amd64", MAXWELL_TO_BLACKWELL),
        ("2.8.0", "cu128", "win_amd64", (61, 70, 75, 80, 86, 90, 100, 120)),
        ("2.10.0", "cu128", "win_amd64", (70, 75, 80, 86, 90, 100, 120)),
        ("2.10.0", "cu126", "win_amd64", (50, 60, 61, 70, 75, 80, 86, 90)),
    ],
)
def test_what_a_build_was_compiled_for(
    torch: str, tag: str, platform: str, sm: tuple[int, ...]
) -> None:
    assert known(torch, tag, platform) == ArchList(sm, (), certain=True)


def test_ptx_in_a_list() -> None:
    assert known("2.7.1+cu128", "cu128", "linux_x86_64").ptx == (120,)


# Sources disagree: https://github.com/RobThePCGuy/Claude-Patent-Creator/issues/29
@pytest.mark.parametrize(
    ("torch", "tag"),
    [
        ("2.8.0", "cu126"),
        ("2.8.0", "cu129"),
        ("2.9.0", "cu126"),
        ("2.9.1", "cu126"),
        ("2.9.0", "cu128"),
        ("2.9.1", "cu128"),
    ],
)
def test_windows_lists_nobody_measured_are_not_certain(torch: str, tag: str) -> None:
    assert not known(torch, tag, "win_amd64").certain


def test_what_is_not_known_has_no_list() -> None:
    assert arch_list("2.16.0", "cu132", "linux_x86_64") is None
    assert arch_list("2.15.0", "cpu", "linux_x86_64") is None
    assert arch_list("2.10.0", "cu129", "linux_x86_64") is None


# https://developer.nvidia.com/cuda-gpus and https://developer.nvidia.com/cuda-legacy-gpus, written
# as nvidia-smi writes them; Kepler: https://www.cnblogs.com/nightnine/p/16591404.html
NAMES = {
    (12, 1): ["NVIDIA GB10"],
    (12, 0): [
        "NVIDIA GeForce RTX 5090",
        "NVIDIA GeForce RTX 5060 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA RTX PRO 500 Blackwell Generation Laptop GPU",
        "NVIDIA RTX PRO 5000 Blac...",
    ],
    (11, 0): ["NVIDIA Thor"],
    (10, 3): ["NVIDIA B300 SXM6 AC", "NVIDIA GB300"],
    (10, 0): ["NVIDIA B200", "NVIDIA GB200"],
    (9, 0): ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA GH200 480GB", "NVIDIA H20"],
    (8, 9): [
        "NVIDIA L4",
        "NVIDIA L40S",
        "NVIDIA GeForce RTX 4060 Laptop GPU",
        "NVIDIA RTX 6000 Ada Generation",
        "NVIDIA RTX 4000 SFF Ada Generation",
        "NVIDIA RTX 500 Ada Generation Laptop GPU",
        "NVIDIA RTX 2000E Ada Generation",
    ],
    (8, 7): ["Orin"],
    (8, 6): [
        "NVIDIA GeForce RTX 3060",
        "NVIDIA GeForce RTX 2050",
        "NVIDIA A10G",
        "NVIDIA A40-48Q",
        "NVIDIA RTX A4000",
        "NVIDIA RTX A500 Laptop GPU",
    ],
    (8, 0): ["NVIDIA A100-SXM4-40GB", "NVIDIA A30", "NVIDIA A800 80GB PCIe", "GRID A100D-40C"],
    (7, 5): [
        "Tesla T4",
        "NVIDIA GeForce RTX 2080 Ti",
        "NVIDIA GeForce GTX 1650",
        "Quadro RTX 4000",
        "NVIDIA T1200 Laptop GPU",
        "Quadro T2000",
        "NVIDIA TITAN RTX",
    ],
    (7, 2): ["Xavier"],
    (7, 0): ["Tesla V100-SXM2-16GB", "NVIDIA TITAN V", "Quadro GV100", "GRID V100D-8Q"],
    (6, 2): ["NVIDIA Jetson TX2"],
    (6, 1): [
        "NVIDIA GeForce GTX 1080 Ti",
        "NVIDIA GeForce GT 1030",
        "NVIDIA GeForce MX150",
        "NVIDIA TITAN X (Pascal)",
        "NVIDIA TITAN Xp",
        "Tesla P40",
        "Tesla P4",
        "Quadro P2000",
        "P106-100",
    ],
    (6, 0): ["Tesla P100-PCIE-16GB", "Quadro GP100"],
    (5, 3): ["NVIDIA Tegra X1"],
    (5, 2): [
        "NVIDIA GeForce GTX 980 Ti",
        "NVIDIA GeForce GTX 970M",
        "NVIDIA GeForce GTX TITAN X",
        "Tesla M40 24GB",
        "Tesla M4",
        "Quadro M2000",
        "Quadro M6000 24GB",
    ],
    (5, 0): [
        "NVIDIA GeForce GTX 750 Ti",
        "NVIDIA GeForce GTX 960M",
        "NVIDIA GeForce 940MX",
        "NVIDIA GeForce MX130",
        "Quadro K2200",
        "Quadro K620",
        "Quadro M1200",
        "Quadro M2000M",
        "Tesla M10",
    ],
    (3, 7): ["Tesla K80"],
    (3, 5): ["Tesla K20Xm", "Tesla K40c", "GeForce GTX 780 Ti", "GeForce GTX TITAN Black"],
    (3, 0): ["Quadro K2000", "Quadro K4000", "Quadro K4200", "GeForce GTX 680", "GeForce GTX 770"],
}


# Table of PCI IDs in README.md of NVIDIA/open-gpu-kernel-modules 595.45.04: the first two digits of
# an ID are the chip's (20 = GA100, 21 = TU116/117, 22/24/25 = GA10x, 26-28 = AD10x, 2B-2F = GB20x)
BY_CHIP = {
    "1E": ("NVIDIA CMP 50HX", (7, 5)),
    "1F": ("NVIDIA T400E", (7, 5)),
    "20": ("NVIDIA AX800", (8, 0)),
    "21": ("NVIDIA GeForce GTX 1660 Ti", (7, 5)),
    "22": ("NVIDIA A10M", (8, 6)),
    "23": ("NVIDIA H100 NVL", (9, 0)),
    "24": ("NVIDIA RTX A4000H", (8, 6)),
    "25": ("NVIDIA GeForce RTX 3050 Laptop GPU", (8, 6)),
    "26": ("NVIDIA L40G", (8, 9)),
    "27": ("NVIDIA L2", (8, 9)),
    "28": ("NVIDIA GeForce RTX 3050 A Laptop GPU", (8, 9)),
    "29": ("NVIDIA GB200", (10, 0)),
    "2B": ("NVIDIA RTX 6000D", (12, 0)),
    "2D": ("NVIDIA GeForce RTX 5050", (12, 0)),
}


@pytest.mark.parametrize(("name", "capability"), BY_CHIP.values())
def test_capability_by_name_is_that_of_the_chip(name: str, capability: tuple[int, int]) -> None:
    assert capability_of(name) == capability


@pytest.mark.parametrize(("capability", "names"), NAMES.items())
def test_capability_by_name(capability: tuple[int, int], names: list[str]) -> None:
    assert {name: capability_of(name) for name in names} == dict.fromkeys(names, capability)


def test_a_name_means_one_capability() -> None:
    table = load("gpus")["capability"]
    for names in NAMES.values():
        for name in names:
            found = [cc for cc, pats in table.items() if any(re.search(p, name) for p in pats)]
            assert len(found) == 1, (name, found)


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce GTX 860M",  # Kepler and Maxwell both
        "NVIDIA GeForce GT 730",  # Fermi and Kepler both
        "NVIDIA GeForce RTX 6090",
        "NVIDIA Graphics Device",
        "AMD Radeon RX 7900 XTX",
        "Intel(R) Arc(TM) A770 Graphics",
        "",
    ],
)
def test_a_name_we_do_not_know_is_unknown(name: str) -> None:
    assert capability_of(name) is None


# https://rocm.docs.amd.com/en/7.13.0-preview/reference/gpu-specs.html,
# https://github.com/llvm/llvm-project/pull/170469, https://github.com/llvm/llvm-project/pull/155577
@pytest.mark.parametrize(
    ("name", "gfx"),
    [
        ("AMD Instinct MI300X", "gfx942"),
        ("AMD Instinct MI355X", "gfx950"),
        ("AMD Instinct MI250X", "gfx90a"),
        ("AMD Radeon RX 7900 XTX", "gfx1100"),
        ("AMD Radeon RX 7800 XT", "gfx1101"),
        ("AMD Radeon RX 7600", "gfx1102"),
        ("AMD Radeon RX 7700S", "gfx1102"),
        ("AMD Radeon RX 9070 XT", "gfx1201"),
        ("AMD Radeon RX 9060 XT", "gfx1200"),
        ("AMD Radeon RX 6800 XT", "gfx1030"),
        ("AMD Radeon RX 6800M", "gfx1031"),
        ("AMD Radeon RX 580", None),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_gfx_by_name(name: str, gfx: str | None) -> None:
    assert gfx_of(name) == gfx


def test_every_pattern_compiles() -> None:
    for table in ("capability", "gfx"):
        for patterns in load("gpus")[table].values():
            assert all(re.compile(pattern) for pattern in patterns)
