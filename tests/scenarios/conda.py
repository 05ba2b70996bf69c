"""A conda that is not there: the records of a prefix, and a program that changes them.

Synthetic: records in conda's documented layout (conda-meta/<name>-<version>-<build>.json), as none
of its channels was at hand.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from tests import environments
from tests.environments import Environment
from tests.scenarios import standins
from tests.scenarios.doctor import Scene

CONDA = r'''#!@PYTHON@
"""A stand-in for conda: `list`; `remove --force` and `install` of pytorch, done to the prefix."""
import json, re, subprocess, sys
from pathlib import Path

words = sys.argv[1:]
verb = words[0]
root = Path(words[words.index("-p") + 1] if "-p" in words else @ROOT@)
meta = root / "conda-meta"
records = {json.loads(path.read_text())["name"]: path for path in meta.glob("*.json")}


def drop(name):
    path = records.pop(name)
    for file in json.loads(path.read_text())["files"]:
        (root / file).unlink(missing_ok=True)
    path.unlink()


if verb == "remove":
    assert "--force" in words, words
    for word in words[1:]:
        if word in records:
            drop(word)
elif verb == "install":
    found = [re.match(r"pytorch=([\d.]+)(=cpu.*)?$", word) for word in words]
    (spec,) = [match for match in found if match]
    version = spec.group(1)
    if "pytorch" in records:
        same = json.loads(records["pytorch"].read_text())["version"] == version
        if same and "--force-reinstall" not in words:
            print("# All requested packages already installed.")
            sys.exit(0)
        drop("pytorch")
    subprocess.run([sys.executable, "-c", @MAKE@, str(root), version], check=True)
elif verb == "list":
    print("# packages in environment at %s:\n#" % root)
    print("# Name                    Version                   Build  Channel")
    rows = [json.loads(path.read_text()) for path in records.values()]
    rows = [(row["name"], row["version"], row["build"], "conda-forge") for row in rows]
    for path in root.glob("lib/python3*/site-packages/*.dist-info"):
        if (path / "INSTALLER").exists() and (path / "INSTALLER").read_text().strip() == "pip":
            name, version = path.name[: -len(".dist-info")].split("-")
            rows.append((name.replace("_", "-"), version, "pypi_0", "pypi"))
    for row in sorted(rows):
        print("%-25s %-25s %s    %s" % row)
else:
    sys.exit("conda: unknown verb " + verb)
'''


def records(environment: Environment, torch: str | None) -> None:
    """Make *environment* a conda prefix whose records say pytorch *torch*; None: no pytorch."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    tag = f"py{python.replace('.', '')}"
    torch_files = sorted(
        str(path.relative_to(environment.root))
        for path in environment.site.glob("torch/**/*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    full = ".".join(map(str, sys.version_info[:3]))
    packages: dict[str, tuple[str, str, list[str]]] = {
        "python": (full, "h955ad1f_0_cpython", ["bin/python"]),
    }
    if torch:
        packages["pytorch"] = (torch, f"cpu_generic_{tag}_h1234567_0", torch_files)
        packages["libtorch"] = (torch, "cpu_generic_h7654321_0", [])
    for name, (version, build, files) in packages.items():
        _record(environment.root, name, version, build, files)
    history = "==> 2026-10-01 10:00:00 <==\n# cmd: conda create -n ml python\n"
    (environment.root / "conda-meta" / "history").write_text(history)


def _record(root: Path, name: str, version: str, build: str, files: list[str]) -> None:
    """Write the conda-meta record of one package."""
    full = f"{name}-{version}-{build}"
    record = {
        "arch": "x86_64",
        "build": build,
        "build_number": 0,
        "channel": "https://conda.anaconda.org/conda-forge/linux-64",
        "constrains": [],
        "depends": [],
        "extracted_package_dir": f"/home/user/miniforge3/pkgs/{full}",
        "files": files,
        "fn": f"{full}.conda",
        "license": "BSD-3-Clause",
        "link": {"source": f"/home/user/miniforge3/pkgs/{full}", "type": 1},
        "name": name,
        "package_tarball_full_path": f"/home/user/miniforge3/pkgs/{full}.conda",
        "paths_data": {
            "paths": [{"_path": path, "path_type": "hardlink"} for path in files],
            "paths_version": 1,
        },
        "platform": "linux",
        "requested_spec": name if name in ("python", "pytorch") else "None",
        "subdir": "linux-64",
        "timestamp": 1790000000000,
        "url": f"https://conda.anaconda.org/conda-forge/linux-64/{full}.conda",
        "version": version,
    }
    folder = root / "conda-meta"
    folder.mkdir(exist_ok=True)
    (folder / f"{full}.json").write_text(json.dumps(record, indent=2))


def program(scene: Scene) -> None:
    """Put a stand-in ``conda`` on the scene's PATH."""
    make = (
        f"import sys; sys.path[0] = {str(environments.CHECKOUT)!r}; "
        "from tests.scenarios import conda; conda.install(*sys.argv[1:])"
    )
    program = CONDA.replace("@PYTHON@", sys.executable).replace("@MAKE@", repr(make))
    program = program.replace("@ROOT@", repr(str(scene.environment.root)))
    path = scene.bin / "conda"
    path.write_text(program)
    path.chmod(0o755)
    scene.variables["TORCHDOCTOR_TEST_CACHE"] = str(environments.CACHE)


def install(root: str, version: str) -> None:
    """Put pytorch *version* of conda into the prefix *root*: the files of the base."""
    (target,) = Path(root).glob("lib/python3*/site-packages")
    (home,) = environments.base().root.glob("lib/python3*/site-packages")
    (info,) = home.glob("torch-*.dist-info")
    for name in ("torch", "functorch", "torchgen", info.name):
        shutil.rmtree(target / name, ignore_errors=True)
        environments.link_tree(home / name, target / name)
    environment = Environment(Path(root), Path(root, "bin", "python"), target)
    text = standins.VERSION_PY.format(version=version, cuda=None)
    made = environments.relabel(environment, version, changes={"torch/version.py": text})
    environment.write(made / "INSTALLER", "conda")
    records(environment, version)
