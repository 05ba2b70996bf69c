"""The build that is chosen fits the machine, and no newer one would have."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tests.checks import make
from torchdoctor import constraints, steps
from torchdoctor.choose import Choice, Refusal, alternatives, choose, decide
from torchdoctor.constraints import Wish
from torchdoctor.facts import (
    Build,
    Distribution,
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
        new_abi = (
            key == "linux_x86_64"
            and release == "2.6.0"
            and neighbours.cxx11_abi(release, build.tag) is not False
        )
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


def pinned(name: str, version: str, release: str, build: builds.Build) -> bool:
    """Say again what a neighbour at a version asks of torch."""
    needs = neighbours.built_for(name, version) or neighbours.pins(name, version) or ""
    major = neighbours.plain_cuda(name, version)
    if major is not None and "+" not in version:
        return SpecifierSet(needs).contains(release) and (build.cuda or "").startswith(f"{major}.")
    return SpecifierSet(needs).contains(release)


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
        for b in builds.installable(r.version, key)
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


# ---- wishes --------------------------------------------------------------------------------------

wishes = st.builds(
    Wish,
    torch=st.sampled_from(["", "", "2.13", "2.6.0", ">=2.8,<2.12", "2.99", "2.13.0+cu126"]),
    accelerator=st.sampled_from([None, None, "cpu", "cuda", "rocm", "xpu"]),
    python=st.sampled_from([None, None, "3.12", "3.9", "3.6"]),
    companions=st.sampled_from([(), ("torchvision",), ("torchvision", "torchaudio")]),
    neighbours=st.lists(
        st.sampled_from(
            ["xformers", "xformers==0.0.34", "vllm", "vllm==0.14.1", "torchtext", "flash-attn"]
        ),
        max_size=2,
        unique_by=lambda text: text.partition("=")[0],
    ).map(tuple),
    keep=st.booleans(),
)


def key_of(facts: Facts) -> str:
    assert isinstance(facts.platform, Platform)
    key = releases.platform_key(facts.platform.system, facts.platform.machine)
    assert key
    return key


def kind_of(facts: Facts, wish: Wish) -> str:
    there = "cuda" if facts.gpus and isinstance(facts.driver, Driver) else "cpu"
    return wish.accelerator or there


def asked(wish: Wish, release: str, tag: str) -> bool:
    text, _, label = wish.torch.partition("+")
    if label not in ("", tag):
        return False
    if text[:1].isdigit():
        return release == text or release.startswith(f"{text}.")
    return SpecifierSet(text).contains(release)


@settings(deadline=None)
@given(machines, wishes)
def test_what_is_decided_does_justice_to_every_constraint(facts: Facts, wish: Wish) -> None:
    found = decide(facts, wish)
    choice = found if isinstance(found, Choice) else found.choice
    if isinstance(found, Refusal):
        facts, wish = found.facts, found.wish
    if choice is None:
        return
    key = key_of(facts)
    (build,) = [b for b in builds.installable(choice.release, key) if b.tag == choice.tag]
    if wish.python:
        assert isinstance(facts.interpreter, Interpreter)
        there = dataclasses.replace(facts.interpreter, version=f"{wish.python}.1")
        facts = dataclasses.replace(facts, interpreter=there)
    assert build.kind == kind_of(facts, wish)
    assert fits(facts, choice.release, build, key)
    assert asked(wish, choice.release, choice.tag)
    assert {*wish.companions} <= {*choice.versions}
    assert {n.partition("=")[0] for n in wish.neighbours} == {
        b.name for b in choice.beside if b.name != "torchaudio"
    }
    for beside in choice.beside:
        if beside.version and beside.name != "torchaudio":
            assert pinned(beside.name, beside.version, choice.release, build), beside


@settings(deadline=None)
@given(machines, wishes)
def test_no_newer_set_would_have_done(facts: Facts, wish: Wish) -> None:
    found = decide(facts, wish)
    if isinstance(found, Refusal):
        return
    key, all_of_it = key_of(facts), constraints.of(facts, wish)
    now = facts.torch.public if isinstance(facts.torch, Build) and wish.keep else None
    for release in (r.version for r in releases.torch_releases()):
        if release == found.release:
            break
        if now != found.release:
            for build in builds.installable(release, key):
                assert not all(c.admits(release, build) for c in all_of_it), (release, build.tag)


@settings(deadline=None)
@given(machines, wishes)
def test_the_order_of_what_is_given_does_not_matter(facts: Facts, wish: Wish) -> None:
    assert isinstance(facts.gpus, tuple)
    turned = dataclasses.replace(facts, gpus=facts.gpus[::-1])
    other = dataclasses.replace(
        wish, companions=wish.companions[::-1], neighbours=wish.neighbours[::-1]
    )
    one, two = decide(facts, wish), decide(turned, other)
    assert type(one) is type(two)
    first = one if isinstance(one, Choice) else one.choice
    second = two if isinstance(two, Choice) else two.choice
    assert (first and first.versions) == (second and second.versions)
    if isinstance(one, Refusal) and isinstance(two, Refusal):
        assert one.reasons == two.reasons
        assert one.relaxation == two.relaxation


@settings(deadline=None)
@given(machines, wishes)
def test_a_refusal_names_what_excludes_and_its_relaxation_gives_a_choice(
    facts: Facts, wish: Wish
) -> None:
    refusal = decide(facts, wish)
    if isinstance(refusal, Choice):
        return
    key = key_of(facts)
    every = [
        (r.version, b)
        for r in releases.torch_releases()
        for b in builds.installable(r.version, key)
    ]
    reasons = [reason.constraint for reason in refusal.reasons]
    assert reasons
    assert not any(all(c.admits(*candidate) for c in reasons) for candidate in every)
    assert refusal.relaxation
    assert decide(refusal.facts, refusal.wish) == refusal.choice
    assert isinstance(refusal.choice, Choice)


@given(machines)
def test_the_other_builds_that_are_offered_fit(facts: Facts) -> None:
    found = decide(facts, Wish())
    if isinstance(found, Choice):
        for tag in alternatives(facts, Wish(), found):
            (build,) = [b for b in builds.installable(found.release, key_of(facts)) if b.tag == tag]
            assert fits(facts, found.release, build, key_of(facts))


def refused(facts: Facts, wish: Wish) -> tuple[list[str], list[str]]:
    found = decide(facts, wish)
    assert isinstance(found, Refusal)
    return [r.constraint.name for r in found.reasons], [c.says for c in found.relaxation]


def chosen(facts: Facts, wish: Wish | None = None) -> Choice:
    found = decide(facts, wish or Wish())
    assert isinstance(found, Choice), found
    return found


def test_each_thing_to_give_up_is_told_with_its_values() -> None:
    assert refused(make.without_torch(), Wish(torch="2.13", neighbours=("vllm==0.14.1",))) == (
        ["torch", "neighbour"],
        ["vllm==0.32.0 instead of the one asked for"],
    )
    assert refused(make.without_torch(), Wish(torch="2.10.0", neighbours=("torchtext",))) == (
        ["torch", "neighbour"],
        ["without torchtext"],
    )
    old = make.without_torch(driver=make.driver("470.57.02", cuda="11.4"))
    said = ["torch 2.7.1 instead of 2.13"]
    assert refused(old, Wish(torch="2.13"))[1] == said
    volta_only = make.without_torch(driver=make.driver("396.26", cuda="9.2"))
    assert refused(volta_only, Wish())[1] == ["the CPU instead of the GPU"]
    assert refused(make.without_torch(interpreter=make.interpreter("3.6.9")), Wish())[1] == [
        "Python 3.12 instead of 3.6.9"
    ]
    musl = make.linux(libc="musl", libc_version="1.2.5")
    assert refused(make.without_torch(platform=musl), Wish())[1] == [
        "a system with glibc 2.28 or newer instead of musl 1.2.5"
    ]
    power = make.linux(machine="ppc64le")
    assert refused(make.without_torch(platform=power), Wish()) == (["platform"], [])


def test_one_of_two_gpus_that_no_build_serves_together_is_given_up() -> None:
    cards = (make.nvidia("Tesla K80", (3, 7)), make.nvidia("RTX 5090", (12, 0), 1))
    names, said = refused(make.without_torch(gpus=cards), Wish())
    assert names == ["gpu", "gpu"]
    assert said[0].startswith("without Tesla K80 (sm_37)")


def test_all_gpus_are_served_by_one_build_where_there_is_one() -> None:
    cards = (make.nvidia("Tesla V100", (7, 0)), make.nvidia("RTX 4090", (8, 9), 1))
    assert chosen(make.without_torch(gpus=cards)).tag == "cu126"


def test_torchaudio_is_the_one_that_exists_for_the_build() -> None:
    both = Wish(torch="2.14.1+cu126", companions=("torchvision", "torchaudio"))
    assert chosen(make.without_torch(), both).versions["torchaudio"] == "2.11.0+cu126"
    plain = chosen(make.without_torch(), dataclasses.replace(both, torch="2.14.1+cu132"))
    assert plain.versions["torchaudio"] == "2.11.1"
    lines = steps.change_build(make.without_torch(), plain, why="").commands.bash
    assert "torchaudio" not in lines[0]
    assert lines[1].endswith("install --no-deps torchaudio===2.11.1")
    on_windows = make.without_torch(
        platform=make.windows(), interpreter=make.interpreter(machine="win-amd64")
    )
    found = decide(on_windows, dataclasses.replace(both, torch="2.14.1+cu132"))
    assert isinstance(found, Refusal)


def test_neighbours_come_for_the_cuda_of_torch_and_after_it() -> None:
    old = make.without_torch(driver=make.driver("550.144.03", cuda="12.4"))
    found = chosen(old, Wish(neighbours=("vllm",)))
    assert found.tag == "cu129"
    assert found.versions["vllm"] == "0.32.0+cu129"
    lines = steps.change_build(old, found, why="").commands.bash
    assert lines[1].endswith("--extra-index-url https://wheels.vllm.ai/0.32.0/cu129")
    stable = chosen(make.without_torch(), Wish(torch="2.13", neighbours=("xformers==0.0.34",)))
    line = steps.change_build(make.without_torch(), stable, why="").commands.bash[1]
    assert "install --no-deps xformers==0.0.34 --index-url" in line  # it pins another torch


def test_what_is_installed_beside_torch_holds_it_back() -> None:
    there = make.without_torch(distributions=(make.dist("torchtext", "0.17.0"),))
    assert chosen(there).release == "2.3.1"
    assert chosen(there, Wish(beside=False)).release == releases.newest("torch")
    free = choose(there)
    assert free is not None
    assert free.release == releases.newest("torch")


def test_a_gpu_that_flash_attn_was_not_made_for_excludes_it() -> None:
    turing = make.without_torch(gpus=(make.nvidia("Tesla T4", (7, 5)),))
    assert refused(turing, Wish(neighbours=("flash-attn",)))[1] == ["without flash-attn"]


def test_the_torch_of_an_ngc_image_is_never_replaced() -> None:
    own = make.build("2.11.0a0+nv26.02", tag=None, cuda="13.1")
    image = make.without_torch(torch=own, distributions=(own.distribution,))
    assert choose(image) is None
    names, said = refused(image, Wish())
    assert names == ["image"]
    assert said == ["an environment of its own, which leaves the image's torch alone"]
    again = steps.reinstall(image, ["torch"], why="")
    assert again.commands.bash == (
        "docker run --gpus all --ipc=host -it --rm nvcr.io/nvidia/pytorch:26.02-py3",
    )
    assert isinstance(own.distribution, Distribution)


def test_a_relative_of_an_amd_target_takes_its_code() -> None:
    navi = Gpu("AMD Radeon RX 6600", "amd", gfx="gfx1032")
    found = chosen(make.without_torch(driver=None, gpus=(navi,)))
    assert found.tag == "rocm7.2"  # 7.14 refuses the override
    assert found.variables == (("HSA_OVERRIDE_GFX_VERSION", "10.3.0"),)
    both = make.without_torch(driver=None, gpus=(navi, Gpu("RX 7900 XTX", "amd", gfx="gfx1100")))
    assert isinstance(decide(both, Wish()), Refusal)  # one variable for two
    assert (
        chosen(make.without_torch(driver=None, gpus=(Gpu("", "amd", gfx="gfx1036"),))).tag == "cpu"
    )


def test_a_jetson_gets_the_wheels_of_its_jetpack_until_the_ordinary_ones_fit() -> None:
    def orin(cuda: str, python: str) -> Facts:
        return make.without_torch(
            platform=make.linux(machine="aarch64", jetson=True),
            interpreter=make.interpreter(python, machine="linux-aarch64"),
            driver=make.driver(None, cuda=cuda),
            gpus=(Gpu("", "nvidia"),),
        )

    old = chosen(orin("12.6", "3.10.12"))
    assert (old.release, old.index) == ("", "https://pypi.jetson-ai-lab.io/jp6/cu126")
    new = chosen(orin("13.2", "3.12.3"))
    assert (new.release, new.tag) == (releases.newest("torch"), "cu132")
    unknown = dataclasses.replace(orin("12.6", "3.10.12"), driver=None)
    assert refused(unknown, Wish(accelerator="cuda"))[0] == ["gpu"]


def test_inside_wsl_the_driver_is_that_of_windows() -> None:
    linux = make.without_torch(driver=make.driver("526.00", cuda="12.0"))
    assert "cu12" in chosen(linux).tag
    wsl = dataclasses.replace(linux, platform=make.linux(wsl=2))
    assert chosen(wsl).tag == "cu118"  # 528.33 is the first for CUDA 12 there


def test_mps_asks_for_more_of_macos_than_the_wheel() -> None:
    old = make.without_torch(
        platform=make.mac(version="13.2"),
        interpreter=make.interpreter(machine="macosx-11.0-arm64"),
        driver=None,
        gpus=(),
    )
    assert chosen(old).release == "2.11.0"
    asked_for = dataclasses.replace(old, expectation=Expectation("mps"))
    assert chosen(asked_for).release == "2.9.1"


@pytest.mark.parametrize(
    "bad",
    [
        {"torch": "newest"},
        {"python": "three"},
        {"neighbours": ("two words",)},
        {"companions": ("numpy",)},
    ],
)
def test_a_wish_that_cannot_be_read_is_told(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="is no "):
        Wish(**bad)  # type: ignore[arg-type]
