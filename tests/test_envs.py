"""Every environment with a torch is found where its tool keeps it, and has its line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import environments
from tests.scenarios import standins
from torchdoctor import envs
from torchdoctor.tables import load

ROOT = Path(__file__).parents[1]


def prefix(folder: Path, *, mark: str = "pyvenv.cfg", torch: bool = True) -> Path:
    """Make what looks like an environment to one who runs nothing; return its interpreter."""
    for name in (mark, "bin/python"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    if torch:
        (site / "torch").mkdir()
        (site / "torch" / "__init__.py").write_text("")
    return folder / "bin" / "python"


def found(home: Path, *folders: Path, **environ: str) -> dict[str, tuple[str, ...]]:
    """Return the interpreters that are found, with who told of each."""
    given = {"HOME": str(home), "PATH": "", **environ}
    return {
        one.python: one.told_by for one in envs.find(given, folders, home / "work") if one.torch
    }


HOMES = [
    (row["of"], pattern)
    for row in load("environments")["place"]
    for pattern in row["patterns"]
    if pattern.startswith(("~/", "./", "$"))
]


@pytest.mark.parametrize(("tool", "pattern"), HOMES, ids=lambda v: v)
def test_each_place_of_each_tool_is_looked_into(tmp_path: Path, tool: str, pattern: str) -> None:
    first, _, rest = pattern.partition("/")
    start = {"~": tmp_path, ".": tmp_path / "work"}.get(first, tmp_path / "elsewhere")
    environ = {first[1:]: str(start)} if first.startswith("$") else {}
    place = start / rest.replace("3*", "313").replace("3.*", "3.13").replace("*", "one")
    python = prefix(place)
    assert found(tmp_path, **environ) == {str(python): (tool,)}
    near = tmp_path / "other"
    near.mkdir()
    assert not found(near, **({first[1:]: str(near / "x")} if environ else {}))


def test_a_list_of_conda_and_a_kernel_of_jupyter_are_read(tmp_path: Path) -> None:
    conda = prefix(tmp_path / "far" / "conda", mark="conda-meta/history")
    kernel = prefix(tmp_path / "far" / "kernel")
    lists = tmp_path / ".conda" / "environments.txt"
    lists.parent.mkdir()
    lists.write_text(f"{conda.parents[1]}\n{tmp_path / 'gone'}\n\n")
    for name, text in {
        "good": json.dumps({"argv": [str(kernel), "-m", "ipykernel_launcher"]}),
        "bare": json.dumps({"argv": ["python", "-m", "ipykernel_launcher"]}),
        "gone": json.dumps({"argv": [str(tmp_path / "gone" / "bin" / "python")]}),
        "other": json.dumps({"argv": ["/bin/sh", "-c", "exit"]}),
        "empty": "",
        "odd": "[" * 100_000,
        "list": "[1]",
    }.items():
        file = tmp_path / ".local/share/jupyter/kernels" / name / "kernel.json"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert found(tmp_path) == {str(conda): ("conda",), str(kernel): ("Jupyter kernel good",)}


def test_two_names_of_one_environment_are_one(tmp_path: Path) -> None:
    python = prefix(tmp_path / "work" / ".venv")
    (python.parent / "python3").symlink_to("python")
    assert found(
        tmp_path, PATH=str(python.parent), VIRTUAL_ENV=str(tmp_path / "work" / ".venv")
    ) == {str(python): ("PATH", "a project")}


def test_two_environments_of_one_interpreter_are_two(tmp_path: Path) -> None:
    for name in ("one", "two"):
        python = prefix(tmp_path / ".virtualenvs" / name)
        python.unlink()
        python.symlink_to(sys.executable)
    assert len(found(tmp_path)) == 2


def test_a_folder_is_searched_a_few_levels_down(tmp_path: Path) -> None:
    shallow = prefix(tmp_path / "search" / "a" / "b" / "env")
    prefix(tmp_path / "search" / "a" / "b" / "c" / "d" / "e" / "env")
    prefix(tmp_path / "search" / "node_modules" / "env")
    nested = prefix(tmp_path / "search" / "conda", mark="conda-meta/history")
    of_it = prefix(tmp_path / "search" / "conda" / "envs" / "x", mark="conda-meta/history")
    told = found(tmp_path, tmp_path / "search")
    assert set(told) == {str(shallow), str(nested), str(of_it)}
    assert set(told.values()) == {(str(tmp_path / "search"),)}


def test_an_environment_without_torch_is_none_with_it(tmp_path: Path) -> None:
    prefix(tmp_path / "work" / ".venv", torch=False)
    (one,) = envs.find({"HOME": str(tmp_path), "PATH": ""}, (), tmp_path / "work")
    assert one.torch == ()


@pytest.mark.parametrize("isolated", [True, False])
def test_the_users_own_torch_is_seen_by_who_would_see_it(
    tmp_path: Path,
    isolated: bool,  # noqa: FBT001
) -> None:
    mark = "pyvenv.cfg" if isolated else "else"
    python = prefix(tmp_path / "work" / ".venv", mark=mark, torch=False)
    torch = tmp_path / ".local/lib/python3.11/site-packages/torch"
    torch.mkdir(parents=True)
    (torch / "__init__.py").write_text("")
    assert bool(found(tmp_path)) is not isolated
    assert list(envs.torches(python, {"HOME": str(tmp_path)})) == ([] if isolated else [torch])


def command(home: Path, *words: str, **environ: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", "envs", *words],
        cwd=home,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={"HOME": str(home), "PATH": "/nowhere", "PYTHONPATH": str(ROOT), **environ},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_each_environment_has_its_verdict(tmp_path: Path) -> None:
    sound = environments.bare(tmp_path / ".venv")
    broken = environments.bare(tmp_path / ".virtualenvs" / "broken")
    for environment in (sound, broken):
        wheel = standins.tiny_torch(tmp_path, "2.13.0+cpu", requires=())
        environments.unpack(wheel, environment.site)
    broken.write("torch/__init__.py", "raise ImportError('libtorch_cpu.so: cannot open')\n")
    environments.bare(tmp_path / "venv")
    code, text = command(tmp_path)
    assert code == 1
    assert "2 environments with a torch: 1 broken, 1 interpreter without one." in text
    assert "healthy: PyTorch works here: torch 2.13.0+cpu" in text
    assert f"torchdoctor check --python {broken.python}" in text
    assert f"torchdoctor check --python {sound.python}" not in text
    code, text = command(tmp_path, "--format", "json")
    report = json.loads(text)
    rows = {row["python"]: row for row in report["data"]["envs"]["environments"]}
    assert rows[str(sound.python)]["verdict"] == "healthy"
    assert rows[str(broken.python)]["verdict"] == "broken"
    assert {f["where"]["environment"] for f in report["findings"]} == {str(broken.python)}
    assert (report["verdict"], code) == ("broken", 1)
    assert command(tmp_path, "--fail-on", "never")[0] == 0


def test_none_and_a_wrong_folder_are_told(tmp_path: Path) -> None:
    code, text = command(tmp_path)
    assert (code, text.splitlines()[0]) == (
        0,
        "No environment with a torch was found; 0 interpreters looked at.",
    )
    code, text = command(tmp_path, "gone")
    assert code == 2
    assert text.startswith("torchdoctor: gone is no folder")
