"""What a step says that it does to the facts is what it does: each kind is really carried out.

The environment is a real one, the wheels are stand-ins of the real names and layouts, the index is
one over http on this machine. A step's commands are run as they are printed, the environment is
looked at again, and the facts are those that the step's effect had foretold.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.version import Version

from tests import wheels
from torchdoctor import choose, collect, installers, steps
from torchdoctor.facts import Build, Expectation, Facts, Interpreter, Unknown
from torchdoctor.model import Step
from torchdoctor.reading import machine
from torchdoctor.registry import load
from torchdoctor.run import run
from torchdoctor.tables import builds

pytestmark = pytest.mark.lab

NCCL = {
    "cpu": (),
    "cu126": ("nvidia-nccl-cu12==2.29.3",),
    "cu129": ("nvidia-nccl-cu12==2.29.3",),
    "cu130": ("nvidia-nccl-cu13==2.29.7",),
}
FAMILY = ("torch", "torchvision", "torchaudio")
BACKEND = """
import os, zipfile
NAME, VERSION = "extension", "1.0"
def get_requires_for_build_wheel(config_settings=None): return []
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info = f"{NAME}-{VERSION}.dist-info"
    files = {
        f"{NAME}/__init__.py": "built = 'here'\\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: {VERSION}\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    rows = "".join(f"{name},,\\n" for name in files) + f"{info}/RECORD,,\\n"
    path = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, path), "w") as archive:
        for name, text in {**files, f"{info}/RECORD": rows}.items():
            archive.writestr(name, text)
    return path
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("index")
    _default(root / "simple")
    for tag in NCCL:
        _of_build(root / "whl" / tag, tag)
    with wheels.served(root) as served:
        yield served


def _default(place: Path) -> None:
    files = place / "files"
    wheels.torch_wheel(files, "2.13.0", requires=(*NCCL["cu130"], "filelock"))
    for version in ("1.26.4", "2.1.0"):
        wheels.wheel(files, "numpy", version, {"numpy/__init__.py": f"# {version}"})
    for name, version in (("filelock", "3.20.0"), ("networkx", "3.6"), ("torchtext", "0.18.0")):
        wheels.wheel(files, name, version, {f"{name}/__init__.py": f"__version__ = '{version}'"})
    for version in ("0.0.32", "0.0.33"):
        wheels.wheel(files, "xformers", version, {"xformers/__init__.py": f"# {version}"})
    for name, version in (("nvidia-nccl-cu12", "2.29.3"), ("nvidia-nccl-cu13", "2.29.7")):
        library = {"nvidia/nccl/lib/libnccl.so.2": name}
        wheels.wheel(files, name, version, library)
    wheels.wheel(files, "extension", "1.0", {"extension/__init__.py": "built = 'elsewhere'\n"})
    _source(files)
    wheels.index(place)
    page = place / "extension" / "index.html"
    link = '<a href="../files/extension-1.0.tar.gz">extension-1.0.tar.gz</a><br></body>'
    page.write_text(page.read_text().replace("</body>", link))


def _source(folder: Path) -> None:
    """Write a source distribution that builds itself, with nothing but Python."""
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    about = "Metadata-Version: 2.1\nName: extension\nVersion: 1.0\n"
    files = {"pyproject.toml": project, "backend.py": BACKEND, "PKG-INFO": about}
    with tarfile.open(folder / "extension-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"extension-1.0/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def _of_build(place: Path, tag: str) -> None:
    files = place / "files"
    for torch, vision, audio in (("2.12.0", "0.27.0", "2.11.1"), ("2.13.0", "0.28.0", "2.11.1")):
        wheels.torch_wheel(files, f"{torch}+{tag}", requires=NCCL[tag])
        for name, version in (("torchvision", vision), ("torchaudio", audio)):
            cuda = f"'{tag[2:4]}.{tag[4:]}'" if tag != "cpu" else None
            said = f"__version__ = '{version}+{tag}'\ncuda = {cuda}\n"
            content = {f"{name}/__init__.py": "", f"{name}/version.py": said}
            needs = (f"torch=={torch}",) if name == "torchvision" else ()
            wheels.wheel(files, name, f"{version}+{tag}", content, requires=needs)
    for requirement in NCCL[tag]:
        name, _, version = requirement.partition("==")
        wheels.wheel(files, name, version, {"nvidia/nccl/lib/libnccl.so.2": name})
    wheels.index(place)


@dataclass
class Patient:
    """An environment that a step is carried out in."""

    python: Path
    address: str

    @property
    def environ(self) -> dict[str, str]:
        known = wheels.isolated(f"{self.address}/simple")
        return known | {"UV_PYTHON_DOWNLOADS": "never", "PIP_CACHE_DIR": str(self.folder / "cache")}

    @property
    def folder(self) -> Path:
        return self.python.parents[2]

    @property
    def site(self) -> Path:
        (place,) = (self.python.parents[1] / "lib").glob("python3.*/site-packages")
        return place

    def facts(self, python: Path | None = None) -> Facts:
        which = str(python or self.python)
        request = collect.Request(which, str(self.folder), import_torch=False)
        return machine.read(collect.collect(request, self.environ), Expectation())

    def install(self, *words: str, tag: str | None = None) -> None:
        index = f"{self.address}/whl/{tag}" if tag else f"{self.address}/simple"
        where = ["--default-index", index, "--no-deps"]
        line = [wheels.UV, "pip", "install", "--quiet", "--python", str(self.python)]
        wheels.run([*line, *where, *words], self.environ)

    def do(self, step: Step) -> None:
        assert step.commands.bash
        for line in step.commands.bash:
            here = line.replace(builds.INDEX_ROOT, f"{self.address}/whl/")
            wheels.run(f"cd '{self.folder}' && {here}", self.environ)


@pytest.fixture(params=["pip", "uv"])
def patient(request: pytest.FixtureRequest, tmp_path: Path, address: str) -> Patient:
    folder = tmp_path / "a b"
    folder.mkdir()
    return Patient(wheels.environment(folder / "env", pip=request.param == "pip"), address)


# ---- the kinds of steps --------------------------------------------------------------------------

Make = Callable[[Patient], Step]
KINDS: dict[str, Make] = {}
WHY = "a test"


def kind(make: Make) -> Make:
    KINDS[make.__name__] = make
    return make


def _torch(sick: Patient, version: str = "2.13.0", tag: str = "cpu", *more: str) -> Facts:
    requires = [r for r in NCCL[tag] if tag != "cpu"]
    sick.install(f"torch=={version}+{tag}", *requires, *more, tag=tag)
    return sick.facts()


@kind
def one_package_below_a_version(sick: Patient) -> Step:
    sick.install("numpy==2.1.0")
    return steps.pip_install(sick.facts(), "numpy", "<2", why=WHY)


@kind
def one_package_at_a_version(sick: Patient) -> Step:
    sick.install("xformers==0.0.32")
    return steps.pip_install(sick.facts(), "xformers", "0.0.33", why=WHY)


@kind
def several_packages_that_are_lacking(sick: Patient) -> Step:
    landed = {"filelock": ("filelock", "3.20.0"), "networkx": ("networkx>=2.5", "3.6")}
    return steps.install_requirements(sick.facts(), landed, why=WHY)


@kind
def a_reinstall_of_a_build_with_a_label(sick: Patient) -> Step:
    _torch(sick)
    (sick.site / "torch/lib/libc10.so").unlink()
    return steps.reinstall(sick.facts(), ["torch"], why=WHY)


@kind
def a_reinstall_of_the_plain_build(sick: Patient) -> Step:
    sick.install("torch===2.13.0", "nvidia-nccl-cu13==2.29.7", "filelock")
    (sick.site / "torch/lib/libc10.so").write_text("torn")
    return steps.reinstall(sick.facts(), ["torch"], why=WHY)


@kind
def a_reinstall_of_two_from_two_indexes(sick: Patient) -> Step:
    _torch(sick)
    sick.install("numpy==2.1.0")
    (sick.site / "numpy/__init__.py").write_text("torn")
    (sick.site / "torch/lib/libc10.so").unlink()
    return steps.reinstall(sick.facts(), ["torch", "numpy"], why=WHY)


@kind
def a_reinstall_of_what_has_two_metadata_folders(sick: Patient) -> Step:
    _torch(sick)
    info = sick.site / "torch-2.9.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    (info / "INSTALLER").write_text("pip\n")
    (info / "RECORD").write_text(
        "".join(f"{info.name}/{file},,\n" for file in ("METADATA", "RECORD", "INSTALLER"))
    )
    return steps.reinstall(sick.facts(), ["torch"], why=WHY, copies=2)


@kind
def another_build_of_the_release(sick: Patient) -> Step:
    facts = _torch(sick)
    return steps.change_build(facts, choose.at(facts, "2.13.0", "cu126"), why=WHY)


@kind
def a_build_of_another_cuda_major(sick: Patient) -> Step:
    facts = _torch(sick, tag="cu130")
    return steps.change_build(facts, choose.at(facts, "2.13.0", "cu126"), why=WHY)


@kind
def another_release_with_its_companions(sick: Patient) -> Step:
    facts = _torch(sick, "2.12.0", "cu126", "torchvision==0.27.0+cu126")
    return steps.change_build(facts, choose.at(facts, "2.13.0", "cu126"), why=WHY)


@kind
def a_build_with_a_label_for_the_plain_one(sick: Patient) -> Step:
    sick.install("torch===2.13.0", "nvidia-nccl-cu13==2.29.7", "filelock")
    facts = sick.facts()
    return steps.change_build(facts, choose.at(facts, "2.13.0", "cpu"), why=WHY)


@kind
def torch_where_there_is_none(sick: Patient) -> Step:
    sick.install("numpy==2.1.0")
    facts = sick.facts()
    return steps.change_build(facts, choose.at(facts, "2.13.0", "cpu"), why=WHY)


@kind
def one_companion_brought_to_torch(sick: Patient) -> Step:
    facts = _torch(sick, "2.13.0", "cpu", "torchvision==0.27.0+cpu")
    index = steps.index_for(facts, "cpu")
    return steps.align(facts, {"torchvision": "0.28.0+cpu"}, index, why=WHY)


@kind
def the_companion_that_the_tables_name(sick: Patient) -> Step:
    facts = _torch(sick, "2.13.0", "cu126", "torchvision==0.27.0+cu126")
    step = steps.align_companions(facts, ["torchvision"], why=WHY)
    assert step is not None
    return step


@kind
def an_uninstall(sick: Patient) -> Step:
    sick.install("torchtext==0.18.0", "numpy==2.1.0")
    return steps.uninstall(sick.facts(), "torchtext", why=WHY)


@kind
def an_uninstall_of_torch(sick: Patient) -> Step:
    return steps.uninstall(
        _torch(sick, "2.13.0", "cpu", "torchvision==0.28.0+cpu"), "torch", why=WHY
    )


@kind
def an_install_after_a_removal(sick: Patient) -> Step:
    _torch(sick, "2.13.0", "cu126")
    sick.install(*NCCL["cu130"])
    facts = sick.facts()
    package = installers.Package("nvidia-nccl-cu12", "2.29.3")
    gone = ("nvidia-nccl-cu13", "nvidia-nccl-cu12")
    return steps.clean_install(facts, [package], gone=gone, why=WHY)


@kind
def a_compilation_on_the_machine(sick: Patient) -> Step:
    sick.install("extension==1.0")
    facts = sick.facts()
    assert not isinstance(facts.distributions, Unknown)
    (there,) = [d for d in facts.distributions if d.name == "extension"]
    return steps.compile_again(facts, there, why=WHY)


@kind
def a_new_environment(sick: Patient) -> Step:
    facts = _torch(sick)
    assert isinstance(facts.interpreter, Interpreter)
    choice = choose.at(facts, "2.13.0", "cpu")
    return steps.new_environment(facts, facts.interpreter.tag, choice, why=WHY)


@kind
def what_an_upgrade_left_deleted(sick: Patient) -> Step:
    _torch(sick)
    (sick.site / "~orch").mkdir()
    (sick.site / "~orch/__init__.py").touch()
    check = load("interrupted_upgrade")
    (outcome,) = run({check.name: check}, sick.facts())
    return outcome.findings[0].steps[0]


# ---- what is compared ----------------------------------------------------------------------------


def packages(facts: Facts, foretold: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return name -> version; the NVIDIA wheels that torch brings along only where foretold."""
    assert not isinstance(facts.distributions, Unknown)
    known = {d.name: d.version for d in facts.distributions}
    brought = ("nvidia-", "pip", "setuptools", "filelock")
    return {
        name: version
        for name, version in known.items()
        if not name.startswith(brought) or (foretold is not None and name in foretold)
    }


def as_foretold(found: Mapping[str, str], told: Mapping[str, str]) -> bool:
    """Tell whether these packages are there; of one that has to be below a version, which is open.

    A step that asks for ``<2`` foretells 1.99, above all that can come.
    """
    return found.keys() == told.keys() and all(
        version == told[name]
        or (told[name].endswith(".99") and Version(version) < Version(told[name]))
        for name, version in found.items()
    )


def family(facts: Facts) -> dict[str, object]:
    """Return what is known of torch and its companions, as far as a step can foretell it."""
    found: dict[str, object] = {}
    for name in FAMILY:
        build = getattr(facts, name)
        assert isinstance(build, Build | None), name
        if build is not None and build.distribution is not None:
            owner = build.distribution
            found[name] = (build.public, owner.version, owner.installer, build.cuda)
        else:
            found[name] = build
    return found


def torn(facts: Facts) -> set[str]:
    """Return the distributions whose files are not all as published."""
    assert not isinstance(facts.records, Unknown)
    return {name for name, r in facts.records.items() if r.missing_count or r.altered_count}


def leftovers(facts: Facts) -> list[str]:
    assert not isinstance(facts.leftovers, Unknown)
    return [leftover.name for leftover in facts.leftovers]


@pytest.mark.parametrize("name", KINDS)
def test_the_facts_after_a_step_are_those_that_it_foretold(name: str, patient: Patient) -> None:
    step = KINDS[name](patient)
    before = patient.facts()
    told = step.effect(before)
    patient.do(step)
    fresh = patient.folder / ".venv-torch/bin/python"
    after = patient.facts(fresh if fresh.exists() else None)
    assert as_foretold(packages(after, packages(told)), packages(told))
    assert family(after) == family(told)
    assert torn(after) == torn(told) == set()
    assert leftovers(after) == leftovers(told) == []
    assert isinstance(told.interpreter, Interpreter)
    assert isinstance(after.interpreter, Interpreter)
    assert after.interpreter.tag == told.interpreter.tag
    changed = before.distributions != after.distributions or family(before) != family(after)
    assert changed or torn(before) or leftovers(before) or fresh.exists() or "compil" in name


def test_there_are_many_kinds() -> None:
    assert len(KINDS) >= 15


def test_a_compilation_takes_the_source(patient: Patient) -> None:
    step = a_compilation_on_the_machine(patient)
    patient.do(step)
    assert "here" in (patient.site / "extension/__init__.py").read_text()


def test_of_the_libraries_that_two_majors_share_the_right_one_is_left(patient: Patient) -> None:
    patient.do(an_install_after_a_removal(patient))
    assert (patient.site / "nvidia/nccl/lib/libnccl.so.2").read_text() == "nvidia-nccl-cu12"
