"""torchdoctor install: the command, what it was chosen for, and what it says when nothing fits."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.checks import make
from tests.test_cli import Ran
from torchdoctor import choose, install_steps
from torchdoctor.commands import install
from torchdoctor.constraints import Wish
from torchdoctor.tables import releases

NEWEST = releases.newest("torch")


def asked(ran: Ran) -> dict[str, object]:
    data = ran.json["data"]
    assert isinstance(data, dict)
    told = data["install"]
    assert isinstance(told, dict)
    return told


def lines(ran: Ran) -> list[str]:
    plan = ran.json["plan"]
    assert isinstance(plan, list)
    return [line for step in plan for line in step["commands"]["bash"]]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran("install", "--format", "json", cwd=tmp_path_factory.mktemp("here"))


def test_this_machine_gets_one_command_and_what_it_was_chosen_for(here: Ran) -> None:
    assert here.code == 0
    assert here.json["findings"] == []
    assert here.json["verdict"] == "healthy"
    told = asked(here)
    choice = told["choice"]
    assert isinstance(choice, dict)
    assert f"torch=={choice['torch']}+{choice['build']}" in lines(here)[-1]
    constraints = told["constraints"]
    assert isinstance(constraints, list)
    assert {"python", "accelerator"} <= {c["name"] for c in constraints}
    assert all(c["from"] and c["value"] for c in constraints)
    commands = told["commands"]
    assert isinstance(commands, dict)
    assert set(commands) == set(install.INSTALLERS)


def test_the_page_says_the_command_the_reasons_and_with_verbose_every_installer(
    tmp_path: Path,
) -> None:
    ran = Ran("install", "--accelerator", "cpu", "--torch", "2.13", cwd=tmp_path)
    assert ran.code == 0
    first, *rest = ran.out.splitlines()
    assert first == "torch 2.13.0+cpu is the newest of 2.13 that fits here."
    assert any("pip install torch==2.13.0+cpu --index-url" in line for line in rest)
    assert "Chosen for" in rest
    assert "  torch 2.13 (what was asked for)" in rest
    assert "With poetry" not in rest
    ran = Ran("install", "--accelerator", "cpu", "--torch", "2.13", "--verbose", cwd=tmp_path)
    assert "With poetry" in ran.out.splitlines()
    assert "  poetry add --source=pytorch-cpu torch==2.13.0+cpu" in ran.out.splitlines()
    assert "'pytorch=2.13.0=cpu*'" in ran.out


def test_companions_and_neighbours_come_along(tmp_path: Path) -> None:
    ran = Ran(
        *("install", "--format", "json", "--accelerator", "cuda", "--torch", "2.14.0+cu130"),
        *("--with", "torchvision,torchaudio", "--with", "vllm>=0.30,<0.40"),
        cwd=tmp_path,
    )
    assert ran.code == 0
    torch, vllm = lines(ran)[-2:]
    assert "torchvision==0.29.0+cu130 torchaudio==2.11.0+cu130" in torch
    assert vllm.endswith("install vllm==0.33.0")


@pytest.mark.parametrize(
    ("installer", "line"),
    [
        ("pip", "python -m pip install torch==2.13.0+cu132 --index-url"),
        ("uv", "torch==2.13.0+cu132 --default-index"),
        ("conda", "conda install -y -c conda-forge 'pytorch=2.13.0=cuda13*'"),
        ("pixi", "pixi workspace system-requirements add cuda 13"),
        ("poetry", "poetry source add --priority=explicit pytorch-cu132"),
        ("pdm", "pdm config --local pypi.pytorch.url"),
    ],
)
def test_the_command_is_the_one_of_the_installer(installer: str, line: str, tmp_path: Path) -> None:
    words = ("--accelerator", "cuda", "--torch", "2.13", "--for", installer)
    ran = Ran("install", "--format", "json", *words, cwd=tmp_path)
    assert ran.code == 0
    said = [re.sub(r"\S*/python[\d.]*", "python", text) for text in lines(ran)]
    assert any(line in text for text in said), lines(ran)


def test_a_python_of_ones_own_choice_comes_with_an_environment(tmp_path: Path) -> None:
    ran = Ran("install", "--format", "json", "--python", "3.13", cwd=tmp_path)
    assert ran.code == 0
    assert lines(ran)[0] == "uv venv --python 3.13 .venv-torch"
    choice = asked(ran)["choice"]
    assert isinstance(choice, dict)
    assert choice["python"] == "3.13"


def test_what_fits_nowhere_is_refused_with_the_way_out(tmp_path: Path) -> None:
    words = ("--torch", "2.2", "--python", "3.14", "--accelerator", "cpu")
    ran = Ran("install", "--format", "json", *words, cwd=tmp_path)
    assert ran.code == 1
    findings = ran.json["findings"]
    assert isinstance(findings, list)
    (finding,) = findings
    assert (finding["name"], finding["severity"]) == ("no-build-fits", "error")
    assert {e["value"] for e in finding["evidence"]} == {"2.2", "3.14"}
    refusal = asked(ran)["refusal"]
    assert isinstance(refusal, dict)
    assert [r["leaves"] for r in refusal["reasons"]] == [
        "torch 2.2.0 to 2.2.2",
        "torch 2.9.0 and newer",
    ]
    assert refusal["relaxation"] == [
        {"kind": "torch", "says": f"torch {NEWEST} instead of 2.2", "value": NEWEST}
    ]
    assert asked(ran)["choice"] is None
    assert lines(ran)[0] == "uv venv --python 3.14 .venv-torch"
    assert ran.json["after_plan"] == {"verdict": "healthy", "findings": []}


def test_the_page_of_a_refusal_names_what_excludes_and_what_to_give_up(tmp_path: Path) -> None:
    words = ("--torch", "2.99", "--accelerator", "cpu")
    ran = Ran("install", *words, cwd=tmp_path)
    assert ran.code == 1
    out = ran.out.splitlines()
    assert out[0].startswith("No build of torch fits: torch 2.99 leaves nothing: the tables of ")
    assert "What excludes the rest" in out
    at = out.index("What would have to be given up")
    assert out[at + 1] == f"  torch {NEWEST} instead of 2.99"
    assert "More: torchdoctor explain no-build-fits" in out
    quiet = Ran("install", *words, "--quiet", cwd=tmp_path)
    assert quiet.out.startswith("error no-build-fits: No build of torch fits: torch 2.99")


def test_the_finding_is_explained(tmp_path: Path) -> None:
    ran = Ran("explain", "no-build-fits", cwd=tmp_path)
    assert ran.code == 0
    assert "No build of torch fits this machine" in ran.out


def test_a_snapshot_of_another_machine_is_answered(tmp_path: Path) -> None:
    made = Ran("collect", "--no-import", "-o", "s.json", cwd=tmp_path)
    assert made.code == 0, made.err
    snapshot = json.loads((tmp_path / "s.json").read_text("utf-8"))
    (tmp_path / "s.json").write_text(json.dumps(snapshot))
    ran = Ran("install", "--format", "json", "--accelerator", "cpu", "s.json", cwd=tmp_path)
    assert ran.code == 0
    target = ran.json["target"]
    assert isinstance(target, dict)
    assert (target["source"], target["inputs"]) == ("snapshot", ["s.json"])
    # its paths are stand-ins, so that no command may use them
    assert lines(ran)[0].startswith("python -m pip install torch==")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--torch", "newest"], "newest"),
        (["--with", "two words"], "two words"),
        (["--accelerator", "tpu"], "tpu"),
        (["--for", "easy_install"], "easy_install"),
        (["--python", "/no/such/python"], "/no/such/python"),
        (["no-such-file.json"], "no-such-file.json"),
    ],
)
def test_wrong_usage_is_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    assert said in Ran("install", *words, cwd=tmp_path).complaint


def test_what_is_there_already_is_said_to_be() -> None:
    there = make.without_torch(torch=make.build(f"{NEWEST}+cu130"))
    choice = choose.decide(there, Wish())
    assert isinstance(choice, choose.Choice)
    assert install_steps.is_installed(there, choice)
    older = make.without_torch(torch=make.build("2.13.0+cu130"))
    assert not install_steps.is_installed(older, choice)
    more = choose.decide(there, Wish(companions=("torchvision",)))
    assert isinstance(more, choose.Choice)
    assert not install_steps.is_installed(there, more)


def test_a_driver_that_is_too_old_is_upgraded_first() -> None:
    cards = (make.nvidia("NVIDIA A100", (8, 0)),)
    old = make.without_torch(gpus=cards, driver=make.driver("396.26", cuda="9.2"))
    refusal = choose.decide(old, Wish())
    assert isinstance(refusal, choose.Refusal)
    assert [change.kind for change in refusal.relaxation] == ["cpu"]  # needs no admin
    (step,) = install_steps.way_out(old, refusal)
    assert step.commands.bash[0].endswith("/whl/cpu")


def test_the_python_of_the_system_is_left_alone() -> None:
    system = make.without_torch(interpreter=make.interpreter(externally_managed=True))
    choice = choose.decide(system, Wish())
    assert isinstance(choice, choose.Choice)
    step = install_steps.step_for(system, choice, "")
    assert step.commands.bash[0] == "uv venv --python 3.12 .venv-torch"
