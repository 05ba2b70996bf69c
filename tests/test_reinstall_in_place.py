"""What pip was told to put elsewhere is put back there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.checks import make
from torchdoctor import steps
from torchdoctor.facts import Build, Facts

FOLDER = "/opt/target folder"


def machine(**changes: object) -> Facts:
    """Return a machine with torch in FOLDER, which PYTHONPATH names."""
    there = make.dist("torch", "2.13.0+cpu", folder=FOLDER)
    build = make.build("2.13.0+cpu", distribution=there)
    known: dict[str, Any] = {
        "platform": make.linux(),
        "interpreter": make.interpreter(site_packages=(make.SITE,)),
        "torch": build,
        "distributions": (there,),
        "variables": {"PYTHONPATH": f"/else:{FOLDER}"},
    }
    return Facts(**known | changes)


def test_torch_goes_back_into_the_folder_that_pythonpath_names() -> None:
    facts = machine()
    step = steps.reinstall(facts, ["torch"], why="It is not whole.")
    (line,) = step.commands.bash
    assert f"install --upgrade --no-deps --target '{FOLDER}' torch==2.13.0+cpu" in line
    after = step.effect(facts)
    assert isinstance(after.torch, Build)
    assert after.torch.distribution is not None
    assert after.torch.distribution.folder == FOLDER
    assert isinstance(after.distributions, tuple)
    assert [d.folder for d in after.distributions] == [FOLDER]


def test_uv_is_told_the_folder_too() -> None:
    owned = make.interpreter(site_packages=(make.SITE,), installer="uv", has_pip=False)
    step = steps.reinstall(machine(interpreter=owned), ["torch"], why="It is not whole.")
    assert f"--target '{FOLDER}'" in step.commands.bash[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"variables": {}},
        {"interpreter": make.interpreter(site_packages=(make.SITE, FOLDER))},
        {"interpreter": make.interpreter(site_packages=(make.SITE,), redacted=True)},
    ],
)
def test_usual_places_and_stand_ins_for_paths_are_left_to_pip(changes: dict[str, object]) -> None:
    step = steps.reinstall(machine(**changes), ["torch"], why="It is not whole.")
    assert "--target" not in step.commands.bash[0]
    assert "--force-reinstall" in step.commands.bash[0]
