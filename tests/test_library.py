"""A program may ask as the command line does, and other packages bring checks of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import torchdoctor
from tests import wheels
from torchdoctor import plugins, registry
from torchdoctor.facts import Build, Facts
from torchdoctor.inputs import read
from torchdoctor.model import DoctorError
from torchdoctor.report import as_json
from torchdoctor.run import run

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "plugin_example"
CASE = ROOT / "tests" / "corpus" / "001-win1114-redist-1436" / "input.txt"

PLUGIN = '''"""A plug-in."""
FAMILY = "company"
FINDS = ("odd",)
def check(symptoms):
    yield from ()
'''


def command(*words: str, path: Path | None = None, stdin: str = "") -> dict[str, object]:
    """Return the JSON report of a command that may import from *path*, too."""
    done = subprocess.run(
        [sys.executable, "-m", "torchdoctor", *words, "--format", "json"],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, filter(None, (ROOT, path))))},
        check=False,
    )
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def brought(folder: Path, modules: dict[str, str], name: str = "brought") -> Path:
    """Install a package with *modules* as plug-ins (entry point -> source) into *folder*."""
    files = {f"{name}_{n.replace('-', '_')}.py": source for n, source in modules.items()}
    points = "".join(f"{n} = {name}_{n.replace('-', '_')}\n" for n in modules)
    site = folder / "site"
    for path, text in {
        **files,
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/entry_points.txt": f"[{plugins.GROUP}]\n{points}",
    }.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, "utf-8")
    return site


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_text_gets_the_report_of_the_command(as_bytes: bool) -> None:  # noqa: FBT001
    content = CASE.read_bytes()
    report = torchdoctor.diagnose(content if as_bytes else content.decode("utf-8"))
    said = json.loads(as_json.render(report))
    told = command("check", "-", stdin=content.decode("utf-8"))
    for part in ("verdict", "plan", "after_plan"):
        assert said[part] == told[part], part
    assert [f.summary for f in report.findings] == [f["summary"] for f in _list(told, "findings")]
    assert report.findings[0].name == "vcredist-too-old"


def test_a_snapshot_gets_the_report_of_its_file(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    words = [sys.executable, "-m", "torchdoctor", "collect", "--no-import", "-o", str(file)]
    subprocess.run(words, check=True, capture_output=True, cwd=ROOT)
    from_value = torchdoctor.diagnose(read([str(file)]))
    from_text = torchdoctor.diagnose(file.read_text("utf-8"))
    told = command("check", str(file))
    assert json.loads(as_json.render(from_value))["findings"] == told["findings"]
    assert from_text.findings == from_value.findings
    assert from_text.target.source == "snapshot"


def test_without_an_argument_the_environment_of_the_program_is_looked_at() -> None:
    report = torchdoctor.diagnose()
    assert report.target.source == "live"
    assert report.target.python == ".".join(map(str, sys.version_info[:3]))


def test_an_expectation_counts() -> None:
    text = ">>> import torch\n>>> torch.__version__\n'2.13.0+cpu'\n"
    assert not any(f.severity == "error" for f in torchdoctor.diagnose(text).findings)
    (first, *_) = torchdoctor.diagnose(text, expect=["cuda"]).findings
    assert first.severity == "error"


@pytest.mark.parametrize("given", ["", "good morning", b"\x00\x01\x02" * 500])
def test_what_says_nothing_is_refused(given: str | bytes) -> None:
    with pytest.raises(DoctorError):
        torchdoctor.diagnose(given)


def test_a_wrong_word_is_refused() -> None:
    with pytest.raises(DoctorError, match="no check"):
        torchdoctor.diagnose(CASE.read_text("utf-8"), only=["no-such-check"])


def test_the_package_has_no_other_name_by_accident() -> None:
    with pytest.raises(AttributeError, match="diagnosis_of"):
        _ = torchdoctor.diagnosis_of


@pytest.mark.network
@pytest.mark.sample
def test_the_example_is_installed_and_asked(tmp_path: Path) -> None:
    site = tmp_path / "site"
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    pip = [wheels.UV, "pip", "install", "--quiet", "--python", sys.executable]
    subprocess.run([*pip, "--target", str(site), "--no-deps", str(project)], check=True)
    old, supported = "torch 2.4.0+cpu", "torch 2.13.0+cpu"
    listing = "Package Version\n------- -------\n{} {}\nnumpy 2.1.0\n"
    found = command("check", "-", path=site, stdin=listing.format(*old.split()))
    (finding,) = [f for f in _list(found, "findings") if f["name"] == "torch-not-supported-here"]
    assert finding["family"] == "company"
    quiet = command("check", "-", path=site, stdin=listing.format(*supported.split()))
    assert "torch-not-supported-here" not in [f["name"] for f in _list(quiet, "findings")]
    assert "company-torch" in [c["name"] for c in _list(quiet, "checks")]


def _list(report: dict[str, object], part: str) -> list[dict[str, object]]:
    found = report[part]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no licence')", "no licence"),
        ("import a_module_that_is_not_there", "a_module_that_is_not_there"),
        ("FAMILY = 'company'", "check"),
        (PLUGIN.replace("(symptoms)", "(moon_phase)"), "moon_phase"),
        (PLUGIN.replace("yield from ()", "raise ValueError('oops')"), "oops"),
        ("syntax error", "SyntaxError"),
    ],
    ids=["fails", "lacks a module", "no check", "an unknown fact", "crashes", "syntax"],
)
def test_a_plug_in_that_is_broken_stops_nothing(tmp_path: Path, source: str, said: str) -> None:
    site = brought(tmp_path, {"odd": source, "good": PLUGIN})
    told = command("check", "-", path=site, stdin=CASE.read_text("utf-8"))
    outcomes = {c["name"]: c for c in _list(told, "checks")}
    broken = outcomes.get("odd") or outcomes["plug-in-odd"]
    assert broken["outcome"] == "crashed"
    assert said in str(broken["reason"])
    assert outcomes["good"]["outcome"] in {"clear", "unknown"}
    assert _list(told, "findings")[0]["name"] == "vcredist-too-old"


BAD_STEP = PLUGIN.replace(
    "    yield from ()",
    """    from torchdoctor.model import Evidence, Finding, Layer, Step
    step = Step("odd-step", "Do it.", "Why not.", Layer.SCRIPT, 1, {effect})
    yield Finding("odd", "error", "It is odd.", (Evidence("a", "b", "c"),), (step,))
""",
)


@pytest.mark.parametrize("effect", ["lambda facts: 1 / 0", "lambda facts: None"])
def test_a_step_of_a_plug_in_that_cannot_be_foreseen_cures_nothing(
    tmp_path: Path, effect: str
) -> None:
    site = brought(tmp_path, {"odd": BAD_STEP.replace("{effect}", effect)})
    told = command("check", "-", path=site, stdin=CASE.read_text("utf-8"))
    assert "odd" in [f["name"] for f in _list(told, "findings")]
    after = told["after_plan"]
    assert isinstance(after, dict)
    assert [f["name"] for f in after["findings"]] == ["odd"]


def test_a_plug_in_that_yields_something_else_has_crashed(tmp_path: Path) -> None:
    site = brought(tmp_path, {"odd": PLUGIN.replace("yield from ()", "yield 'it is odd'")})
    told = command("check", "-", path=site, stdin=CASE.read_text("utf-8"))
    (outcome,) = [c for c in _list(told, "checks") if c["name"] == "odd"]
    assert outcome["outcome"] in {"crashed", "unknown"}
    assert "is no Finding" in str(outcome["reason"])


def test_a_plug_in_does_not_take_the_place_of_a_check_of_ours(tmp_path: Path) -> None:
    site = brought(tmp_path, {"torch-family": PLUGIN})
    sys_path = [*sys.path, str(site)]
    checks = registry.all_checks(sys_path)
    assert checks["torch-family"].family != "company"
    (outcome,) = run({"x": checks["plug-in-torch-family"]}, Facts())
    assert outcome.status == "crashed"
    assert "has the name of the check torch-family" in outcome.reason


def test_a_package_with_other_entry_points_is_no_plug_in(tmp_path: Path) -> None:
    site = brought(tmp_path, {"odd": PLUGIN})
    points = site / "brought-1.0.dist-info" / "entry_points.txt"
    points.write_text("[console_scripts]\nodd = brought_odd:check\n", "utf-8")
    assert not list(plugins.checks((), [str(site), str(tmp_path / "gone"), str(points)]))


def test_the_example_says_what_it_finds() -> None:
    source = EXAMPLE / "example_torchdoctor_checks" / "company_torch.py"
    module = type(registry)("company_torch")
    exec(compile(source.read_text("utf-8"), source, "exec"), module.__dict__)  # noqa: S102
    check = registry.of(module)
    (found,) = run({"c": check}, Facts(torch=Build("2.14.1+cpu")))
    (clear,) = run({"c": check}, Facts(torch=Build("2.13.0+cpu")))
    assert (found.status, clear.status) == ("found", "clear")
