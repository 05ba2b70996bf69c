"""Steps say what is to be typed, and no address that does not exist."""

from __future__ import annotations

import pytest

from tests.checks import make
from torchdoctor import choose, steps
from torchdoctor.facts import Facts

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
    for other in (Facts(), Facts(platform=make.linux(distribution="alpine", like=()))):
        assert not steps.system_install(other, apt="a", dnf="b")


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
