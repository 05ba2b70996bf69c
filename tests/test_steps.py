"""Steps say what is to be typed, and no address that does not exist."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.checks import make
from torchdoctor import choose, distributed_steps, effects, gpu, steps
from torchdoctor.facts import Compiler, DeviceNode, Driver, Facts, Toolkit
from torchdoctor.registry import load
from torchdoctor.run import run

LINUX = Facts(platform=make.linux())


@pytest.mark.parametrize("label", ["cpu", "cu118", "cu130", "rocm6.4", "rocm5.4.2", "xpu"])
def test_a_label_of_an_index_names_it(label: str) -> None:
    assert steps.index_for(LINUX, label) == f"https://download.pytorch.org/whl/{label}"


@pytest.mark.parametrize("label", ["cxx11.abi", "nv24.5", "git1a2b3c", "cu", "post2", None, ""])
def test_any_other_label_names_none(label: str | None) -> None:
    assert steps.index_for(LINUX, label) is None


def test_what_no_index_has_is_reinstalled_from_where_it_came() -> None:
    torch = make.dist("torch", "2.1.0.post2+cxx11.abi")
    step = steps.reinstall(Facts(distributions=(torch,)), ["torch"], why="A file is gone.")
    assert not step.commands
    assert "from where it came" in step.title
    other = steps.reinstall(
        Facts(distributions=(make.dist("torch", "2.9.1+cu128"),)), ["torch"], why="A file is gone."
    )
    assert other.commands.bash[0].endswith("https://download.pytorch.org/whl/cu128")


def test_the_packages_of_a_system_are_brought_by_its_own_installer() -> None:
    debian = steps.system_install(LINUX, apt="gcc", dnf="gcc")
    assert debian.bash[-1] == "sudo apt-get install -y gcc"
    red_hat = Facts(platform=make.linux(distribution="rocky", like=("rhel",)))
    assert steps.system_install(red_hat, apt="a", dnf="b").bash == ("sudo dnf install -y b",)
    alpine = Facts(platform=make.linux(distribution="alpine", like=()))
    assert steps.system_install(alpine, apt="a", dnf="b", apk="c").bash == ("sudo apk add c",)
    assert not steps.system_install(alpine, apt="a", dnf="b")
    assert not steps.system_install(Facts(platform=make.windows()), apt="a", dnf="b")


@pytest.mark.parametrize("there", ["apt-get", "dnf", "apk", None])
def test_where_the_system_is_not_known_the_installer_that_is_there_is_taken(
    there: str | None, tmp_path: Path
) -> None:
    for name in (there, "sudo") if there else ("sudo",):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@"\n')
        program.chmod(0o755)
    (line,) = steps.system_install(Facts(), apt="one", dnf="two", apk="three").bash
    done = subprocess.run(
        ["/bin/bash", "-ec", line],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {"apt-get": "install -y one", "dnf": "install -y two", "apk": "add three"}
    said = done.stdout.splitlines()
    assert said[-1:] == ([f"sudo {there} {wanted[there]}"] if there else [])


def test_a_compiler_or_a_toolkit_is_there_whoever_asked_for_it() -> None:
    said = tuple(make.symptom(n, "log") for n in ("host-compiler-refused", "nvcc-not-found"))
    facts = Facts(build_tools=make.tools(), toolkits=(), symptoms=said)
    gcc = Compiler("g++-12", "g++-12", "gcc", "12", "CXX")
    after = steps.compiling.older_compiler("12", windows=False).effect(facts)
    assert after.symptoms == said[1:]
    assert after.build_tools == replace(make.tools(), cxx=gcc, cc=gcc)
    after = steps.compiling.older_compiler("", windows=True).effect(facts)
    assert (after.symptoms, after.build_tools) == (said[1:], facts.build_tools)
    newer = Compiler("g++-13", "g++-13", "gcc", "13")
    after = steps.compiling.newer_compiler(13).effect(facts)
    assert after.build_tools == replace(make.tools(), cxx=newer, cc=newer)
    new = Toolkit("12.1", "/usr/local/cuda-12.1")
    after = steps.compiling.toolkit("12.1").effect(facts)
    assert after.symptoms == said[:1]
    assert after.toolkits == (new,)
    assert after.build_tools == replace(make.tools(), nvcc=new, home=new.path)
    unknown = steps.compiling.toolkit(None).effect(facts)
    assert (unknown.build_tools, unknown.toolkits) == (facts.build_tools, ())


def test_a_cpu_build_that_is_a_guess_says_so() -> None:
    facts = Facts(platform=make.windows(), interpreter=make.interpreter("3.11.4"))
    choice = choose.choose(facts, release="2.4.1")
    assert choice is not None
    step = steps.change_build(facts, choice, why="It is whole.")
    assert ("no GPU is told of here" in step.title) == (choice.tag == "cpu")
    known = Facts(platform=make.windows(), torch=make.build("2.4.0+cpu"))
    choice = choose.choose(known, release="2.4.1")
    assert choice is not None
    assert "no GPU is told of" not in steps.change_build(known, choice, why="x").title


def test_a_value_that_is_to_be_filled_in_is_no_value() -> None:
    facts = Facts(variables={"GLOO_SOCKET_IFNAME": "lo", "A": "1"})
    open_ = distributed_steps.assign("GLOO_SOCKET_IFNAME", "<interface>", why="", settles=())
    assert open_.effect(facts).variables == {"A": "1"}
    assert not open_.commands
    known = distributed_steps.assign("GLOO_SOCKET_IFNAME", "eth0", why="", settles=())
    assert known.effect(facts).variables == {"GLOO_SOCKET_IFNAME": "eth0", "A": "1"}
    assert known.commands.bash == ("export GLOO_SOCKET_IFNAME=eth0",)


def test_a_companion_of_a_torch_from_elsewhere_is_built_as_that_torch_is() -> None:
    # The default index has a CUDA build of this release, and this torch is none.
    torch = make.build("2.5.1", tag="cpu")
    facts = Facts(platform=make.linux(), interpreter=make.interpreter("3.12.1"), torch=torch)
    step = steps.align_companions(facts, ["torchvision"], why="")
    assert step is not None
    assert "torchvision==0.20.1+cpu" in step.commands.bash[0]
    usual = replace(facts, torch=make.build("2.5.1", tag="cu124", cuda="12.4"))
    step = steps.align_companions(usual, ["torchvision"], why="")
    assert step is not None
    assert "torchvision===0.20.1" in step.commands.bash[0]


LOST = Driver(None, error="Unknown Error", code=999, kernel_module="550.90.07")


def test_whatever_a_container_is_started_anew_for_it_gets_the_gpus_that_it_lost() -> None:
    step = steps.restart_container("Start it with more", why="", effect=effects.untried)
    here = Facts(container=make.DOCKER, driver=LOST)
    after = step.effect(here).driver
    assert isinstance(after, Driver)
    assert gpu.answers(after)
    assert after.release == "550.90.07"
    # One that fell off the bus comes back with a reboot alone.
    said = "Unable to determine the device handle for GPU0000:34:00.0: Unknown Error"
    off = Driver("550.54", error=said, code=999)
    assert step.effect(here.but(driver=off)).driver is off
    # A host does not get a GPU back when something in it is made larger.
    assert step.effect(here.but(container=None)).driver is LOST


def test_so_it_does_where_its_rules_did_not_name_them() -> None:
    shut = DeviceNode("/dev/nvidia0", allowed=False, mode="0666", owner="root:root")
    here = Facts(
        torch=make.build(), container=make.DOCKER, driver=LOST, device_nodes=(shut,), symptoms=()
    )
    (outcome,) = run({"gpu-permission": load("gpu_permission")}, here)
    (step,) = outcome.findings[0].steps
    assert step.name == "ask-for-gpus"
    assert gpu.answers(step.effect(here).driver)
