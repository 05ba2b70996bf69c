"""Every package command that a step prints is run, as printed, and does what the step says.

The wheels are stand-ins of the real names, versions and layouts; the index is a real one over
http. After each run the environment is looked at again, and the facts are those that the step's
effect had foretold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import wheels
from torchdoctor import collect, steps
from torchdoctor.choose import at
from torchdoctor.facts import Build, Expectation, Facts, Platform, Unknown
from torchdoctor.model import Step
from torchdoctor.reading import machine
from torchdoctor.tables import builds

pytestmark = [pytest.mark.lab, pytest.mark.sample]

TAGS = ("cpu", "cu126", "cu130")
LINUX = Platform("linux", "x86_64", libc="glibc", libc_version="2.36")


@dataclass(frozen=True)
class Index:
    """A package index: the default one, and one for each build as PyTorch's own has."""

    address: str

    @property
    def environ(self) -> dict[str, str]:
        return wheels.isolated(f"{self.address}/simple")

    def here(self, command: str) -> str:
        return command.replace(builds.INDEX_ROOT, f"{self.address}/whl/")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    root = tmp_path_factory.mktemp("index")
    default = root / "simple"
    needs = ("nvidia-nccl-cu13==2.29.7",)
    wheels.torch_wheel(default / "files", "2.13.0", requires=needs)
    wheels.wheel(
        default / "files", "nvidia-nccl-cu13", "2.29.7", {"nvidia/nccl/lib/libnccl.so.2": "13"}
    )
    wheels.wheel(default / "files", "torchvision", "0.28.0", {"torchvision/__init__.py": ""})
    for version in ("1.26.4", "2.1.0"):
        wheels.wheel(default / "files", "numpy", version, {"numpy/__init__.py": f"# {version}"})
    wheels.index(default)
    for tag in TAGS:
        place = root / "whl" / tag
        requires = {
            "cpu": (),
            "cu126": ("nvidia-nccl-cu12==2.29.3",),
            "cu130": ("nvidia-nccl-cu13==2.29.7",),
        }[tag]
        wheels.torch_wheel(place / "files", f"2.13.0+{tag}", requires=requires)
        for version in ("0.27.0", "0.28.0"):
            text = f"__version__ = '{version}+{tag}'\ncuda = None\n"
            wheels.wheel(
                place / "files",
                "torchvision",
                f"{version}+{tag}",
                {"torchvision/__init__.py": "", "torchvision/version.py": text},
                requires=("torch==2.13.0",) if version == "0.28.0" else ("torch==2.12.0",),
            )
        major = tag[2:4]
        if requires:
            name, _, version = requires[0].partition("==")
            wheels.wheel(place / "files", name, version, {"nvidia/nccl/lib/libnccl.so.2": major})
        wheels.index(place)
    with wheels.served(root) as address:
        yield Index(address)


Bench = Callable[..., "Patient"]


@dataclass
class Patient:
    """An environment that steps are tried on."""

    python: Path
    index: Index

    def facts(self) -> Facts:
        request = collect.Request(str(self.python), str(self.python.parent), import_torch=False)
        facts = machine.read(collect.collect(request, self.index.environ), Expectation())
        assert isinstance(facts.torch, Build | None)
        return facts

    def do(self, step: Step) -> None:
        assert step.commands.bash
        for line in step.commands.bash:
            wheels.run(self.index.here(line), self.index.environ)

    def installed(self) -> dict[str, str]:
        facts = self.facts()
        assert not isinstance(facts.distributions, Unknown)
        return {d.name: d.version for d in facts.distributions}


@pytest.fixture(params=["pip", "uv"])
def patient(request: pytest.FixtureRequest, tmp_path: Path, index: Index) -> Bench:
    def make(*requirements: str, tag: str | None = None) -> Patient:
        python = wheels.environment(tmp_path / "a b", pip=request.param == "pip")
        if requirements:
            of = ["--default-index", f"{index.address}/whl/{tag}"] if tag else []
            install = [wheels.UV, "pip", "install", "--quiet", "--python", str(python)]
            wheels.run([*install, *of, *requirements], index.environ)
        return Patient(python, index)

    return make


def foretold(facts: Facts) -> dict[str, str]:
    assert not isinstance(facts.distributions, Unknown)
    return {d.name: d.version for d in facts.distributions}


@pytest.mark.parametrize(
    ("now", "tag", "wanted"),
    [
        ("torch==2.13.0+cpu", "cpu", "cu126"),
        ("torch==2.13.0+cu130", "cu130", "cu126"),
        ("torch==2.13.0+cu130", "cu130", "cpu"),
        ("torch===2.13.0", None, "cu126"),
        ("torch===2.13.0", None, "cpu"),
    ],
)
def test_another_build_of_the_same_release_is_really_installed(
    patient: Bench, now: str, tag: str | None, wanted: str
) -> None:
    sick = patient(now, tag=tag)
    before = sick.facts()
    step = steps.change_build(before, at(before, "2.13.0", wanted), why="a test")
    sick.do(step)
    installed = sick.installed()
    assert installed["torch"] == f"2.13.0+{wanted}"
    after = sick.facts()
    assert isinstance(after.torch, Build)
    assert after.torch.tag == wanted
    told = foretold(step.effect(before))
    assert _without_nvidia(installed) == _without_nvidia(told)
    nccl = sick.python.parents[1] / "lib"
    if wanted == "cu126":  # and the library that both majors share is the right one
        (library,) = nccl.rglob("libnccl.so.2")
        assert library.read_text() == "12"


@pytest.mark.parametrize(("now", "tag"), [("torch==2.13.0+cpu", "cpu"), ("torch===2.13.0", None)])
def test_a_reinstall_puts_a_lost_file_back_and_keeps_the_build(
    patient: Bench, now: str, tag: str | None
) -> None:
    sick = patient(now, tag=tag)
    (library,) = (sick.python.parents[1] / "lib").rglob("libc10.so")
    before = sick.facts()
    whole = sick.installed()
    library.unlink()
    broken = sick.facts()
    assert not isinstance(broken.records, Unknown)
    assert broken.records["torch"].missing_count == 1
    step = steps.reinstall(broken, ["torch"], why="a test")
    sick.do(step)
    assert library.exists()
    assert sick.installed() == whole == foretold(step.effect(broken))
    after = sick.facts()
    assert not isinstance(after.records, Unknown)
    assert after.records["torch"].missing_count == 0
    assert isinstance(after.torch, Build)
    assert isinstance(before.torch, Build)
    assert (after.torch.version, after.torch.tag) == (before.torch.version, before.torch.tag)


def test_a_companion_is_brought_to_torch_without_touching_torch(patient: Bench) -> None:
    sick = patient("torch==2.13.0+cpu", tag="cpu")
    install = [wheels.UV, "pip", "install", "--quiet", "--no-deps", "--python", str(sick.python)]
    where = ["--default-index", f"{sick.index.address}/whl/cpu"]
    wheels.run([*install, *where, "torchvision==0.27.0+cpu"], sick.index.environ)
    before = sick.facts()
    index = steps.index_for(before, "cpu")
    step = steps.align(before, {"torchvision": "0.28.0+cpu"}, index, why="a test")
    sick.do(step)
    installed = sick.installed()
    assert installed["torchvision"] == "0.28.0+cpu"
    assert installed["torch"] == "2.13.0+cpu"
    assert installed == foretold(step.effect(before))


def test_a_package_is_brought_below_a_version(patient: Bench) -> None:
    sick = patient("numpy==2.1.0")
    step = steps.pip_install(sick.facts(), "numpy", "<2", why="a test")
    sick.do(step)
    assert sick.installed()["numpy"] == "1.26.4"


def test_torch_is_installed_where_there_is_none(patient: Bench) -> None:
    sick = patient("numpy==2.1.0")
    before = sick.facts()
    assert before.torch is None
    step = steps.change_build(before, at(before, "2.13.0", "cpu"), why="a test")
    sick.do(step)
    assert sick.installed() == foretold(step.effect(before))


def test_a_distribution_is_removed_with_all_its_copies(patient: Bench) -> None:
    sick = patient("torch==2.13.0+cpu", tag="cpu")
    (info,) = (sick.python.parents[1] / "lib").rglob("torch-2.13.0+cpu.dist-info")
    other = info.with_name("torch-2.9.1.dist-info")
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    (other / "RECORD").write_text(
        "".join(f"{other.name}/{file},,\n" for file in ("METADATA", "RECORD", "INSTALLER"))
    )
    (other / "INSTALLER").write_text("pip\n")
    before = sick.facts()
    assert not isinstance(before.distributions, Unknown)
    copies = sum(d.name == "torch" for d in before.distributions)
    assert copies == 2
    step = steps.reinstall(before, ["torch"], why="a test", copies=copies)
    sick.do(step)
    after = sick.facts()
    assert not isinstance(after.distributions, Unknown)
    assert [d.version for d in after.distributions if d.name == "torch"] == ["2.13.0+cpu"]
    assert foretold(step.effect(before)) == sick.installed()


def _without_nvidia(installed: dict[str, str]) -> dict[str, str]:
    """The wheels that torch brings along are chosen by its metadata, not by the step."""
    return {name: v for name, v in installed.items() if not name.startswith("nvidia-")}
