"""The build that is chosen fits the machine, and no newer one would have."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchdoctor.choose import Choice, choose
from torchdoctor.facts import (
    Build,
    Driver,
    Expectation,
    Facts,
    Gpu,
    Interpreter,
    Platform,
)
from torchdoctor.tables import builds, drivers, gpus, neighbours, releases

SYSTEMS = {
    "linux_x86_64": ("linux", "x86_64"),
    "linux_aarch64": ("linux", "aarch64"),
    "win_amd64": ("win32", "AMD64"),
    "macos_arm64": ("darwin", "arm64"),
}


def machine(
    key: str = "linux_x86_64",
    python: str = "3.11.7",
    libc: str = "2.35",
    driver: str | None = None,
    capabilities: tuple[tuple[int, int], ...] = (),
    torch: str | None = None,
    **more: object,
) -> Facts:
    system, arch = SYSTEMS[key]
    return Facts(
        platform=Platform(
            system, arch, libc="glibc" if system == "linux" else None, libc_version=libc
        ),
        interpreter=Interpreter("/v/bin/python", python, "/v", "/usr", "venv", machine=arch),
        driver=Driver(driver) if driver else None,
        gpus=tuple(Gpu(f"GPU {c}", capability=c) for c in capabilities),
        torch=Build(torch, tag=torch.partition("+")[2] or None) if torch else None,
        torchvision=None,
        torchaudio=None,
        **more,  # type: ignore[arg-type]
    )


def fits(facts: Facts, release: str, build: builds.Build, key: str) -> bool:
    """Say again, in other words, what a fitting build is."""
    known = releases.torch_release(release)
    assert known is not None
    assert isinstance(facts.interpreter, Interpreter)
    assert isinstance(facts.platform, Platform)
    if facts.interpreter.tag not in known.pythons.get(key, ()):
        return False
    if key.startswith("linux") and facts.platform.libc_version:
        have = [int(p) for p in facts.platform.libc_version.split(".")]
        new_abi = release == "2.6.0" and neighbours.cxx11_abi(release, build.tag) is not False
        needs = "2.28" if new_abi else known.glibc[key]
        if have < [int(p) for p in needs.split(".")]:
            return False
    if build.kind != "cuda":
        return True
    assert build.cuda
    if isinstance(facts.driver, Driver):
        assert facts.driver.release
        needed = drivers.minimum_driver(build.cuda, key)
        if needed and drivers.compare(facts.driver.release, needed) < 0:
            return False
    assert isinstance(facts.gpus, tuple)
    archs = gpus.arch_list(release, build.tag, key)
    return all(
        archs is not None and gpus.runs(archs.sm, archs.ptx, g.capability, cuda=build.cuda) is True
        for g in facts.gpus
        if g.capability
    )


machines = st.builds(
    machine,
    key=st.sampled_from(sorted(SYSTEMS)),
    python=st.sampled_from([f"3.{minor}.1" for minor in range(8, 16)]),
    libc=st.sampled_from(["2.17", "2.27", "2.28", "2.35"]),
    driver=st.sampled_from([None, "450.80.02", "470.57.02", "528.33", "535.183.01", "580.95.05"]),
    capabilities=st.lists(
        st.sampled_from(
            [(5, 2), (6, 1), (7, 0), (7, 5), (8, 6), (9, 0), (10, 0), (12, 0), (12, 1)]
        ),
        max_size=3,
    ).map(tuple),
    torch=st.sampled_from([None, "2.13.0+cpu", "2.13.0+cu130", "2.6.0+cu124", "1.13.1+cu117"]),
)


@given(machines, st.sampled_from(["cpu", "cuda", None]))
def test_the_choice_fits_and_nothing_better_does(facts: Facts, accelerator: str | None) -> None:
    choice = choose(facts, accelerator=accelerator)  # type: ignore[arg-type]
    assert isinstance(facts.platform, Platform)
    key = releases.platform_key(facts.platform.system, facts.platform.machine)
    assert key
    wanted = accelerator or ("cuda" if facts.gpus and isinstance(facts.driver, Driver) else "cpu")
    fitting = {
        (r.version, b.tag)
        for r in releases.torch_releases()
        for b in builds.builds(r.version, key)
        if b.kind == wanted and fits(facts, r.version, b, key)
    }
    if choice is None:
        assert not fitting
        return
    assert (choice.release, choice.tag) in fitting
    now = facts.torch.public if isinstance(facts.torch, Build) else None
    if now in {release for release, _ in fitting}:
        assert choice.release == now
    else:
        newest = next(
            r.version for r in releases.torch_releases() if r.version in {f[0] for f in fitting}
        )
        assert choice.release == newest


@given(machines)
def test_the_order_of_the_gpus_does_not_matter(facts: Facts) -> None:
    assert isinstance(facts.gpus, tuple)
    turned = dataclasses.replace(facts, gpus=facts.gpus[::-1])
    assert choose(facts) == choose(turned)


def test_the_present_release_is_kept_when_another_build_of_it_fits() -> None:
    facts = machine(driver="535.183.01", capabilities=((8, 0),), torch="2.13.0+cu130")
    choice = choose(facts)
    assert choice is not None
    assert choice.versions == {"torch": "2.13.0+cu126"}
    assert choice.index == "https://download.pytorch.org/whl/cu126"


def test_a_release_is_left_when_no_build_of_it_fits() -> None:
    facts = machine(driver="580.95.05", capabilities=((12, 0),), torch="2.6.0+cu124")
    choice = choose(facts)
    assert choice is not None
    assert choice.release == releases.newest("torch")


def test_companions_that_are_there_come_along() -> None:
    facts = dataclasses.replace(
        machine(torch="2.13.0+cu130", driver="535.183.01", capabilities=((8, 0),)),
        torchvision=Build("0.26.0+cu130"),
    )
    choice = choose(facts)
    assert choice is not None
    assert choice.versions == {"torch": "2.13.0+cu126", "torchvision": "0.28.0+cu126"}


def test_on_a_mac_the_default_index_has_the_only_build() -> None:
    choice = choose(machine("macos_arm64"))
    assert choice is not None
    assert choice.index is None
    assert [p.requirement for p in choice.packages] == [f"torch==={choice.release}"]


@pytest.mark.parametrize(("expected", "kind"), [("cpu", "cpu"), ("cuda", "cuda")])
def test_what_is_expected_decides_what_it_runs_on(expected: str, kind: str) -> None:
    facts = machine(driver="580.95.05", capabilities=((8, 0),))
    choice = choose(dataclasses.replace(facts, expectation=Expectation(expected)))  # type: ignore[arg-type]
    assert isinstance(choice, Choice)
    assert choice.tag.startswith({"cpu": "cpu", "cuda": "cu"}[kind])
    assert (choice.tag == "cpu") == (kind == "cpu")


def test_a_python_without_any_wheel_has_no_choice() -> None:
    assert choose(machine(python="3.6.1")) is None
