"""The environment probe in real, small environments, most of them out of order."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import environments
from torchdoctor.child import Run, run_probe
from torchdoctor.reading import environment as reading
from torchdoctor.resource import read_text

PROBE = read_text("probes", "environment.py")
DEADLINE = 30.0
"""Seconds, for a machine that is busy with other things."""
TORCH: dict[str, str | bytes] = {
    "torch/__init__.py": "raise SystemExit('imported')\n",
    "torch/version.py": "__version__ = '2.9.1+cu128'\ncuda = '12.8'\nhip = None\n",
    "torch/lib/libtorch.so": b"\x7fELF" + b"x" * 500,
}


@dataclass(frozen=True)
class Place:
    """A venv to break, a home, and a user's working folder."""

    env: environments.Environment
    home: Path
    cwd: Path

    @property
    def site(self) -> Path:
        return self.env.site

    def install(
        self, name: str, version: str, files: Mapping[str, str | bytes], **more: Any
    ) -> Path:
        """Install a stand-in the way pip does; return its dist-info."""
        return environments.unpack(
            environments.wheel(self.home / "wheels", name, version, files, **more), self.site
        )

    def look(self, verify: str = "quick", **variables: str) -> Run:
        neutral = self.home / "neutral"
        neutral.mkdir(exist_ok=True)
        return run_probe(
            PROBE,
            {"cwd": str(self.cwd), "verify": verify, "redact": False},
            python=[str(self.env.python)],
            timeout=DEADLINE,
            folder=str(neutral),
            environ=environments.environ(self.home, **variables),
        )

    def facts(self, verify: str = "quick", **variables: str) -> Any:
        run = self.look(verify, **variables)
        assert run.outcome == "answered", run.stderr.text
        return reading.read(run)


def make(tmp_path: Path, python: Path | str = sys.executable) -> Place:
    place = Place(
        environments.bare(tmp_path / "env", python), tmp_path / "home", tmp_path / "project"
    )
    place.home.mkdir()
    place.cwd.mkdir()
    return place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make(tmp_path)


def another_python(series: str) -> Path:
    """Return an interpreter of *series* that pyenv has; skip the test when it has none."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = sorted(root.glob(f"versions/{series}.*/bin/python"))
    if not found:
        pytest.skip(f"needs Python {series} from pyenv")
    return found[-1]


# ---- what it is for -----------------------------------------------------------------------------


@pytest.mark.parametrize("series", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_environment_of_another_python_is_told(tmp_path: Path, series: str) -> None:
    place = make(tmp_path, another_python(series))
    place.install("torch", "2.9.1", TORCH, requires=["filelock"], tag="cp310-cp310-win_amd64")
    place.install("some.Thing_else", "1", {"thing.py": ""}, requires=["filelock"])
    facts = place.facts()
    interpreter = facts["interpreter"]
    assert interpreter.tag == series
    assert (interpreter.kind, interpreter.installer) == ("venv", "pip")
    assert not interpreter.has_pip
    assert interpreter.site_packages == (str(place.site),)
    assert "" not in facts["search_path"]
    assert facts["search_path"][-1] == str(place.site)
    thing, torch = facts["distributions"]
    assert (thing.name, thing.version, thing.requires) == ("some-thing-else", "1", ())
    assert torch.requires == ("filelock",)
    assert torch.wheel_tags == ("cp310-cp310-win_amd64",)
    assert torch.installer == "pip"
    assert facts["torch"].version == "2.9.1+cu128"
    assert facts["torch"].tag == "cu128"
    assert facts["torch"].distribution == torch
    assert facts["torchvision"] is None
    record = facts["records"]["torch"]
    assert (record.missing_count, record.altered_count, record.hashed) == (0, 0, 2)


def test_nothing_that_is_examined_is_imported(place: Place) -> None:
    trap = f"open({str(place.home / 'sprung')!r}, 'w')\n"
    for name in ("torch", "torchvision", "torchaudio", "numpy", "triton", "functorch", "pip"):
        place.install(name, "1", {f"{name}/__init__.py": trap, f"{name}/version.py": trap})
    (place.cwd / "random.py").write_text(trap)
    modules = place.facts()["modules"]
    assert all(modules.values())
    assert not (place.home / "sprung").exists()


def test_nothing_is_written_into_the_environment(place: Place) -> None:
    place.install("torch", "2.9.1", TORCH)
    before = {path: path.stat().st_mtime_ns for path in place.env.root.rglob("*")}
    place.facts("full")
    assert {path: path.stat().st_mtime_ns for path in place.env.root.rglob("*")} == before


def test_an_older_python_than_the_oldest_is_unknown_and_says_why(tmp_path: Path) -> None:
    python = another_python("3.6")
    run = run_probe(
        PROBE, {}, python=[str(python)], timeout=DEADLINE, folder=str(tmp_path), environ={}
    )
    assert run.outcome == "failed"
    assert "SyntaxError" in reading.read(run)["interpreter"].reason  # type: ignore[attr-defined]


# ---- hostile environments -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "startup",
    [
        "print('no end of line', end='')",
        "import os; os.write(1, b'{\"verify\": 1')",
        "import atexit; atexit.register(print, 'late')",
        "import atexit, time; atexit.register(time.sleep, 60)",
        "import sys; sys.stdout = None",
        "import sys\nclass Full:\n    def flush(self): raise SystemExit(5)\nsys.stdout = Full()",
        "import sys; sys.stderr.close(); import os; os.close(2)",
        "raise RuntimeError('broken start')",
        "import sys; sys.path.append(7); sys.path.append(b'bytes')",
    ],
)
def test_what_sitecustomize_prints_or_breaks_does_not_hide_the_answer(
    place: Place, startup: str
) -> None:
    place.install("torch", "2.9.1", TORCH)
    place.env.write("sitecustomize.py", startup)
    run = place.look()
    facts: Any = reading.read(run)
    assert (run.outcome, run.exit_code, run.data["verify"]) == ("answered", 0, "quick")
    assert facts["torch"].version == "2.9.1+cu128"
    assert len(facts["distributions"]) == 1


def test_a_path_file_that_raises_is_kept_as_text(place: Place) -> None:
    place.env.write("broken.pth", "# comment\nimport no_such_module_at_all\n/nowhere\n")
    run = place.look()
    (file,) = run.data["packages"]["pth"]  # type: ignore[index]
    assert file["name"] == "broken.pth"
    assert file["imports"] == [2]
    assert "no_such_module_at_all" in file["text"]
    assert run.outcome == "answered"


def test_modules_of_the_users_path_do_not_become_the_probes_own(
    place: Place, tmp_path: Path
) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    for name in ("json", "re", "hashlib", "_hashlib", "binascii", "sysconfig", "csv", "stat"):
        (shadow / f"{name}.py").write_text("raise SystemExit('shadowed')\n")
    place.install("torch", "2.9.1", {**TORCH, "torch/with,comma.py": ""})
    facts = place.facts(PYTHONPATH=str(shadow))
    assert facts["search_path"][0] == str(shadow)
    assert facts["records"]["torch"].hashed == 3


def test_entries_of_the_path_that_are_no_folders_are_passed_over(place: Place) -> None:
    place.env.write("archive.zip", b"PK rubbish")
    place.site.joinpath("loop").symlink_to(place.site / "loop")
    more = [place.site / "archive.zip", place.site / "loop", "/no/such/folder"]
    place.env.write("more.pth", "".join(f"{path}\n" for path in more))
    run = place.look(PYTHONPATH=os.pathsep.join(map(str, more)))
    assert str(place.site / "loop") in run.data["not_folders"]  # type: ignore[operator]
    assert reading.read(run)["distributions"] == ()


@pytest.mark.parametrize(
    ("content", "version"),
    [
        (b"", "2.0"),
        (b"Metadata-Version: 2.1\nName: torch\n\nVersion: 9\n", "2.0"),
        (b"\xff\xfe\x00rubbish", "2.0"),
        (b"Name: torch\r\nVersion: 3.1\r\n\r\nVersion: 9\r\n", "3.1"),
        (b"NAME: Torch\nDescription: x\n Version: 8\nversion: 3.1\nVersion: 9\n\n", "3.1"),
        (b"Name: torch\n" + b"Classifier: x\n" * 400 + b"Version: 3.1\n\n", "3.1"),
        (b"Name: torch\n" + b"X: " + b"y" * 4070 + b"\nVersion: 3.14159\n\n", "3.14159"),
    ],
)
def test_metadata_wins_over_the_name_of_its_folder_as_far_as_it_says(
    place: Place, content: bytes, version: str
) -> None:
    place.env.write("torch-2.0.dist-info/METADATA", content)
    (found,) = place.facts()["distributions"]
    assert (found.name, found.version) == ("torch", version)


def test_metadata_that_is_no_file_does_not_hold_up_or_hide_the_others(place: Place) -> None:
    place.site.joinpath("pipe-1.dist-info").mkdir()
    os.mkfifo(place.site / "pipe-1.dist-info" / "METADATA")
    place.site.joinpath("folder-1.dist-info", "METADATA").mkdir(parents=True)
    place.site.joinpath("loop-1.dist-info").symlink_to(place.site / "loop-1.dist-info")
    place.env.write("whole-1.dist-info/METADATA", "Name: whole\nVersion: 2\n")
    place.env.write("whole-1.dist-info/direct_url.json", "{broken")
    run = place.look()
    found = reading.read(run)["distributions"]
    assert [(d.name, d.version) for d in found] == [  # type: ignore[attr-defined]
        ("folder", "1"),
        ("loop", "1"),
        ("pipe", "1"),
        ("whole", "2"),
    ]
    assert any("direct_url.json" in name for name in run.data["errors"])  # type: ignore[attr-defined]


def test_a_name_that_is_no_text_comes_through_as_text(place: Place) -> None:
    folder = os.fsencode(place.site) + b"/odd\xff-1.dist-info"
    try:
        os.mkdir(folder)  # noqa: PTH102 - the name is bytes
    except OSError:
        pytest.skip("the file system takes no such name")
    (found,) = place.facts()["distributions"]
    found.metadata.encode("utf-8")


def test_a_record_with_an_endless_line_is_refused_and_the_others_are_compared(
    place: Place,
) -> None:
    place.install("torch", "2.9.1", TORCH)
    info = place.install("numpy", "2.0", {"numpy/__init__.py": ""})
    with (info / "RECORD").open("wb") as file:
        file.truncate(100 << 20)
    start = time.monotonic()
    records = place.facts()["records"]
    assert set(records) == {"torch"}
    assert time.monotonic() - start < 5


def test_a_folder_that_may_not_be_read_stops_nothing(place: Place) -> None:
    if os.geteuid() == 0:
        pytest.skip("needs a user who is not root")
    place.install("torch", "2.9.1", TORCH)
    place.site.joinpath("torch", "lib").chmod(0)
    try:
        facts = place.facts()
    finally:
        place.site.joinpath("torch", "lib").chmod(0o755)
    assert facts["torch"].version == "2.9.1+cu128"
    assert "torch" not in facts["records"]


# ---- distributions ------------------------------------------------------------------------------


def test_two_copies_of_a_distribution_are_both_told(place: Place) -> None:
    place.install("torch", "2.8.0", TORCH)
    place.install("torch", "2.9.1", TORCH)
    facts = place.facts()
    assert [d.version for d in facts["distributions"]] == ["2.8.0", "2.9.1"]
    assert facts["torch"].distribution.version == "2.9.1"


def test_a_folder_that_is_twice_on_the_path_is_looked_at_once(place: Place) -> None:
    place.install("torch", "2.9.1", TORCH)
    link = place.env.root / "again"
    link.symlink_to(place.site)
    facts = place.facts(PYTHONPATH=str(link))
    assert str(link) in facts["search_path"]
    assert len(facts["distributions"]) == 1
    assert facts["torch"].distribution is not None


def test_egg_infos_of_every_shape_are_distributions(place: Place, tmp_path: Path) -> None:
    place.env.write("single-1.2-py3.8.egg-info", "Name: single\nVersion: 1.2\n")
    place.env.write("folder.egg-info/PKG-INFO", "Name: fol.der\nVersion: 3\n")
    place.env.write("thing-4-py3.8.egg/EGG-INFO/PKG-INFO", "Name: thing\nVersion: 4\n")
    source = tmp_path / "pytorch"
    (source / "torch.egg-info").mkdir(parents=True)
    (source / "torch.egg-info" / "PKG-INFO").write_text("Name: torch\nVersion: 2.9.0a0\n")
    (source / "torch").mkdir()
    (source / "torch" / "__init__.py").touch()
    (source / "torch" / "version.py").write_text("__version__ = '2.9.0a0+gitabc'\ncuda = None\n")
    place.env.write("torch.egg-link", f"{source}\n.")
    place.env.write("easy-install.pth", f"{source}\n{place.site / 'thing-4-py3.8.egg'}\n")
    facts = place.facts()
    found = {d.name: (d.version, d.editable) for d in facts["distributions"]}
    assert found == {
        "single": ("1.2", False),
        "fol-der": ("3", False),
        "thing": ("4", False),
        "torch": ("2.9.0a0", True),
    }
    assert facts["torch"].version == "2.9.0a0+gitabc"
    assert facts["torch"].distribution.editable


def test_leftovers_are_told_and_are_no_distributions(place: Place) -> None:
    for name in ("~orch", "~orch-2.9.1.dist-info"):
        place.site.joinpath(name).mkdir()
    place.env.write("~file", "")
    facts = place.facts()
    assert [left.name for left in facts["leftovers"]] == ["~orch", "~orch-2.9.1.dist-info"]
    assert facts["distributions"] == ()


def test_an_editable_install_names_its_source(place: Place) -> None:
    info = place.install("torchvision", "1", {"x.py": ""})
    direct = {"url": "file:///src/vision", "dir_info": {"editable": True}}
    (info / "direct_url.json").write_text(json.dumps(direct))
    (found,) = place.facts()["distributions"]
    assert (found.editable, found.direct_url) == (True, "file:///src/vision")


def test_the_user_site_is_told_with_what_it_holds(place: Place, tmp_path: Path) -> None:
    config = place.env.root / "pyvenv.cfg"
    text = config.read_text().replace("system-site-packages = false", "system-site-packages = true")
    config.write_text(text)
    user = tmp_path / "home" / ".local" / "lib" / place.site.parent.name / "site-packages"
    (user / "torch-2.0.dist-info").mkdir(parents=True)
    (user / "torch-2.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.0\n\n")
    facts = place.facts()
    assert facts["interpreter"].user_site == str(user)
    assert [d.user_site for d in facts["distributions"] if d.name == "torch"] == [True]
    off = place.facts(PYTHONNOUSERSITE="1")
    assert off["interpreter"].user_site is None
    assert [d for d in off["distributions"] if d.user_site] == []


# ---- RECORD -------------------------------------------------------------------------------------


def test_a_missing_and_a_truncated_file_are_told_by_name(place: Place) -> None:
    place.install("torch", "2.9.1", TORCH)
    place.env.remove("torch/version.py")
    place.env.write("torch/lib/libtorch.so", b"\x7fELF")
    record = place.facts()["records"]["torch"]
    assert (record.missing, record.missing_count) == (("torch/version.py",), 1)
    assert (record.altered, record.altered_count) == (("torch/lib/libtorch.so",), 1)


def test_a_file_of_the_same_size_is_told_by_its_hash(place: Place) -> None:
    place.install("torch", "2.9.1", TORCH)
    place.env.write("torch/__init__.py", "x" * len(TORCH["torch/__init__.py"]))
    place.env.write("torch/lib/libtorch.so", b"\x7fELF" + b"y" * 500)
    assert place.facts("quick")["records"]["torch"].altered == ("torch/__init__.py",)
    assert set(place.facts("full")["records"]["torch"].altered) == {
        "torch/__init__.py",
        "torch/lib/libtorch.so",
    }
    assert "not to be compared" in place.facts("none")["records"].reason


def test_what_installers_rewrite_is_not_damage(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    rows = [
        *environments.read_record(info),
        ("../../../bin/torchrun", "sha256=x", "3"),
        ("torch/__pycache__/gone.cpython-311.pyc", "sha256=x", "3"),
        ("torch/unhashed.py", "", ""),
    ]
    (info / "RECORD").write_text(environments.record_text(rows))
    place.env.root.joinpath("bin", "torchrun").write_text("#!/another/python\n")
    (info / "INSTALLER").unlink()
    (info / "METADATA").write_text("Name: torch\nVersion: 2.9.1\nX: rewritten\n\n")
    record = place.facts("full")["records"]["torch"]
    assert (record.missing, record.altered) == ((), ())
    place.env.root.joinpath("bin", "torchrun").unlink()
    assert place.facts()["records"]["torch"].missing == ("../../../bin/torchrun",)


def test_rows_that_make_no_sense_are_passed_over(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    text = (info / "RECORD").read_text()
    odd = [
        '"torch/a, b.py",sha256=x,3',
        "torch/nul\0.py,sha256=x,3",
        "one field",
        "torch/version.py,sha256=x,many",
        "",
        ",,,,",
        "torch/lib,sha256=x,1",
    ]
    (info / "RECORD").write_text("\r\n".join([*odd, *text.split("\n")]))
    record = place.facts()["records"]["torch"]
    assert "torch/a, b.py" in record.missing
    assert record.missing_count == 2
    assert record.altered == ("torch/lib",)


def test_only_the_first_hundred_names_are_told(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    rows = [(f"torch/gone{i}.py", "sha256=x", "3") for i in range(250)]
    (info / "RECORD").write_text(environments.record_text(rows))
    record = place.facts()["records"]["torch"]
    assert (len(record.missing), record.missing_count, record.files) == (100, 250, 250)


def test_a_record_of_any_size_is_compared_to_its_end(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    own = environments.read_record(info)
    rows = [(f"torch/{'gone/' * 15}{i}.py", "sha256=x", "3") for i in range(50_000)]
    (info / "RECORD").write_text(environments.record_text([*rows, *own]))
    assert (info / "RECORD").stat().st_size > 4 << 20  # more than is read at once
    place.env.write("torch/lib/libtorch.so", b"\x7fELF" + b"y" * 500)
    record = place.facts("full")["records"]["torch"]
    assert record.missing_count == 50_000
    assert record.altered == ("torch/lib/libtorch.so",)


def progress_of(place: Place, source: str) -> tuple[Run, list[Any]]:
    """Return the answer of the probe with this *source*, and what it said of its progress."""
    said: list[Any] = []
    options = {"cwd": str(place.cwd), "verify": "full"}
    run = run_probe(
        source,
        options,
        python=[str(place.env.python)],
        timeout=DEADLINE,
        folder=str(place.home),
        environ=environments.environ(place.home),
        hears=said.append,
    )
    return run, said


def test_it_says_how_far_it_is_and_that_is_no_part_of_the_answer(place: Place) -> None:
    files = {f"torch/{i}.bin": bytes([i]) * 1000 for i in range(20)}
    place.install("torch", "2.9.1", files)
    run, said = progress_of(place, PROBE.replace("PATIENCE = 1.0", "PATIENCE = 0.0"))
    done, total = zip(*said, strict=True)
    assert set(total) == {20_000}
    assert list(done) == sorted(done)
    assert done[-1] == 20_000
    assert "progress" not in run.data
    assert progress_of(place, PROBE)[1] == []  # it takes no time


def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_an_altered_file(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    place.env.remove("torch/__init__.py")
    os.mkfifo(place.site / "torch" / "__init__.py")
    size = (place.site / "torch" / "lib").stat().st_size
    rows = [("torch/__init__.py", "sha256=x", "0"), ("torch/lib", "sha256=x", str(size))]
    (info / "RECORD").write_text(environments.record_text(rows))
    assert place.facts("full")["records"]["torch"].altered == ("torch/__init__.py", "torch/lib")


def test_a_record_with_line_ends_of_windows_is_read(place: Place) -> None:
    info = place.install("torch", "2.9.1", TORCH)
    rows = [*environments.read_record(info), ("torch/unhashed.py", "", "")]
    (info / "RECORD").write_bytes(environments.record_text(rows).replace("\n", "\r\n").encode())
    record = place.facts()["records"]["torch"]
    assert (record.missing, record.altered, record.hashed) == ((), (), 2)


# ---- what an import would take ------------------------------------------------------------------


def test_a_file_in_the_working_folder_is_a_local_module_only(place: Place) -> None:
    place.install("torch", "2.9.1", TORCH)
    for name in ("torch.py", "random.py", "Types.txt", "unrelated.py"):
        (place.cwd / name).touch()
    (place.cwd / "profile").mkdir()  # no package: the standard library's module comes first
    (place.cwd / "queue").mkdir()
    (place.cwd / "queue" / "__init__.py").touch()
    facts = place.facts()
    assert facts["modules"]["torch"].folder == str(place.site)
    assert facts["local_modules"]["torch"].origin == str(place.cwd / "torch.py")
    assert facts["local_modules"]["torch"].folder == str(place.cwd)
    shadowed = set(facts["local_modules"]) - set(facts["modules"])
    assert shadowed == {"random", "queue"}


def test_a_folder_without_init_hides_nothing_that_is_installed(place: Place) -> None:
    (place.cwd / "torch").mkdir()
    bare = place.facts()["local_modules"]["torch"]
    assert (bare.origin, bare.folder) == (None, str(place.cwd))
    place.install("torch", "2.9.1", TORCH)
    assert place.facts()["local_modules"]["torch"].folder == str(place.site)


def test_the_working_folder_does_not_come_first_in_safe_path_mode(place: Place) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("needs Python 3.11 as the interpreter under test")
    (place.cwd / "torch.py").touch()
    facts = place.facts(PYTHONSAFEPATH="1")
    assert facts["local_modules"]["torch"] is None
    assert facts["search_path"][0] != ""


def test_what_the_interpreter_has_loaded_before_cannot_be_shadowed(place: Place) -> None:
    place.env.write("early.pth", "import random\n")
    (place.cwd / "random.py").touch()
    assert "random" not in place.facts()["local_modules"]


def test_a_torch_on_pythonpath_is_the_one_imported(place: Place, tmp_path: Path) -> None:
    place.install("torch", "2.9.1", TORCH)
    other = tmp_path / "other"
    (other / "torch").mkdir(parents=True)
    (other / "torch" / "__init__.py").touch()
    (other / "torch" / "version.py").write_text("__version__ = '1.0'\ncuda = None\n")
    facts = place.facts(PYTHONPATH=str(other))
    assert facts["variables"]["PYTHONPATH"] == str(other)
    assert facts["modules"]["torch"].folder == str(other)
    build = facts["torch"]
    assert (build.version, build.tag, build.distribution) == ("1.0", "cpu", None)


@pytest.mark.parametrize("entry", ["", "src", "./src/../src"])
def test_relative_entries_of_pythonpath_mean_the_users_folder(place: Place, entry: str) -> None:
    where = place.cwd / "src" if entry else place.cwd
    where.mkdir(exist_ok=True)
    (where / "torch.py").touch()
    facts = place.facts(PYTHONPATH=f"/nowhere{os.pathsep}{entry}")
    assert str(where) in facts["search_path"]
    assert facts["modules"]["torch"].origin == str(where / "torch.py")


def test_a_finder_of_an_editable_install_is_asked(place: Place, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "__init__.py").write_text("raise SystemExit\n")
    place.env.write(
        "finder.py",
        "import sys\nfrom importlib.util import spec_from_file_location\n"
        "class Finder:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'torchvision':\n"
        f"            return spec_from_file_location(name, {str(tmp_path / 'src/__init__.py')!r})\n"
        "        if name == 'torchaudio':\n"
        "            import os; os.write(1, b'rubbish'); raise SystemExit('broken finder')\n"
        "sys.meta_path.append(Finder)\n",
    )
    place.env.write("finder.pth", "import finder\n")
    facts = place.facts()
    module = facts["modules"]["torchvision"]
    assert (module.origin, module.folder) == (str(tmp_path / "src" / "__init__.py"), "")
    assert "torchaudio" not in facts["modules"]
    assert "broken finder" in facts["torchaudio"].reason
    assert facts["torch"] is None


def test_a_finder_that_builds_when_asked_is_not_asked(place: Place) -> None:
    place.env.write(
        "finder.py",
        "import sys\n"
        "class MesonpyMetaFinder:\n"
        "    def __init__(self): self._top_level_modules = {'numpy'}\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'numpy': open({str(place.home / 'built')!r}, 'w')\n"
        "sys.meta_path.insert(0, MesonpyMetaFinder())\n",
    )
    place.env.write("finder.pth", "import finder\n")
    facts = place.facts()
    assert "numpy" not in facts["modules"]
    assert facts["modules"]["torch"] is None
    assert not (place.home / "built").exists()


def test_a_torch_that_was_imported_at_startup_is_the_one_told(place: Place, tmp_path: Path) -> None:
    place.install("torch", "2.9.1", TORCH)
    early = tmp_path / "early"
    (early / "torch").mkdir(parents=True)
    (early / "torch" / "__init__.py").touch()
    line = f"import sys; sys.path.insert(0, {str(early)!r}); import torch; del sys.path[0]\n"
    place.env.write("early.pth", line)
    assert place.facts()["modules"]["torch"].origin == str(early / "torch" / "__init__.py")


def test_a_working_folder_that_is_gone_is_unknown_and_nothing_else(place: Place) -> None:
    place.cwd.rmdir()
    facts = place.facts()
    assert "FileNotFoundError" in facts["local_modules"].reason
    assert facts["modules"]["torch"] is None


# ---- variables ----------------------------------------------------------------------------------


def test_only_variables_of_the_families_are_told_and_no_secrets(place: Place) -> None:
    given = {
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "RANK": "3",
        "RANKLE": "x",
        "AWS_SESSION": "x",
        "UV_PUBLISH_TOKEN": "hidden",
        "LD_LIBRARY_PATH": "/opt/\udcff",
    }
    run = place.look(**given)
    told = reading.read(run)["variables"]
    assert isinstance(told, Mapping)
    assert told["CUDA_VISIBLE_DEVICES"] == "0"
    assert told["NCCL_DEBUG"] == "INFO"
    assert told["RANK"] == "3"
    assert "PATH" in told
    assert told["LD_LIBRARY_PATH"] == "/opt/\\udcff"
    assert not {"RANKLE", "AWS_SESSION", "UV_PUBLISH_TOKEN", "HOME", "TORCHDOCTOR_CHILD"} & set(
        told
    )
    assert "hidden" not in json.dumps(dict(run.data))


# ---- conda --------------------------------------------------------------------------------------

FILES = [
    "lib/python3.11/site-packages/torch/__init__.py",
    "lib/python3.11/site-packages/torch/version.py",
    "lib/python3.11/site-packages/torchgen/__init__.py",
]


def conda_record(**more: object) -> dict[str, object]:
    """Return a record in conda's documented layout (synthetic)."""
    return {
        "build": "cuda126_mkl_py311_0",
        "channel": "https://conda.example/conda-forge/linux-64",
        "depends": ["python"],
        "files": FILES,
        "link": {"source": "/pkgs/pytorch", "name": "not this one"},
        "name": "pytorch",
        "paths_data": {"paths": [{"_path": path, "path_type": "hardlink"} for path in FILES]},
        "version": "2.9.1",
        **more,
    }


@pytest.mark.parametrize("indent", [2, 4, None])
def test_the_records_of_conda_mamba_and_pixi_are_read_alike(
    place: Place, indent: int | None
) -> None:
    meta = place.env.root / "conda-meta"
    meta.mkdir()
    text = json.dumps(conda_record(), indent=indent)
    (meta / "pytorch-2.9.1-cuda126.json").write_text(text)
    odd = json.dumps(conda_record(name='q"uote\u00e9', files=[]), indent=indent)
    (meta / "quote.json").write_text(odd)
    (meta / "broken.json").write_text(text[: len(text) // 2])
    (meta / "history").write_text("==> 2026-01-01 <==\n# cmd: /opt/bin/mamba install pytorch\n")
    run = place.look()
    conda: Any = reading.read(run)["conda"]
    assert conda.torch_files == 2
    package = conda.get("pytorch")
    assert (package.version, package.build) == ("2.9.1", "cuda126_mkl_py311_0")
    assert package.channel == "conda-forge"
    assert conda.get('q"uote\u00e9') is not None
    assert len(conda.packages) in (2, 3)  # what is whole in half a file may be told
    assert run.data["conda"]["commands"] == ["/opt/bin/mamba install pytorch"]  # type: ignore[index]


def test_an_environment_without_conda_has_none(place: Place) -> None:
    assert place.facts()["conda"] is None


# ---- speed --------------------------------------------------------------------------------------


def test_it_imports_little() -> None:
    # Each of these costs more than the rest of the probe.
    for slow in ("importlib", "email", "pathlib", "typing", "subprocess", "logging"):
        assert f"import {slow}" not in PROBE
        assert f"from {slow}" not in PROBE
