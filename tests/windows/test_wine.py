"""A real loader against the model: Windows' own CPython under Wine imports the real torch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checks import vc_runtime
from tests.windows.shipped import pyz
from tests.windows.wine import box, cases
from tests.windows.wine.search import PLACES, Field, trial
from torchdoctor.child import Run
from torchdoctor.snapshot import load
from windows.loader import base, normal

pytestmark = [pytest.mark.wine, pytest.mark.xdist_group("wine")]

SAMPLE = {
    "torch 2.9.1, VC++ none",
    "torch 2.9.1, VC++ 14.34.31931",
    "torch 2.9.1, VC++ 14.44.35112",
    "torch 2.9.1: libiomp5md.dll is not there",
    "an old runtime beside python.exe",
}
"""What runs with the default tier as well: one torch, a hundred megabytes to download."""
OWN = ("fastjsonschema", "packaging", "rich", "nvidia-ml-py", "markdown-it-py", "mdurl", "pygments")
"""What torchdoctor needs, and what that needs."""
CHECKOUT = Path(__file__).parents[2]
MSVCP = rf"{cases.SYSTEM32}\msvcp140.dll".lower()


@pytest.fixture(scope="module")
def wine() -> Iterator[box.Box]:
    """Start Wine in a prefix of its own; skip where it, or a wheel, is not to be had."""
    try:
        with box.started() as running:
            yield running
    except box.Unavailable as reason:
        pytest.skip(str(reason))


def marked(case: cases.Case) -> object:
    """Return *case* as a parameter; one of the sample is marked so."""
    marks = [pytest.mark.sample] if case.name in SAMPLE else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [marked(case) for case in cases.all_of_them()])
def test_the_real_loader_does_what_the_model_says(case: cases.Case, wine: box.Box) -> None:
    try:
        with cases.laid_out(case) as layout:
            predicted = cases.predict(case, layout)
            seen = cases.seen(cases.run(case, layout, wine))
    except box.Unavailable as reason:
        pytest.skip(str(reason))
    assert predicted.agrees(seen), (predicted, seen)
    if not predicted.translated:
        assert seen == predicted.windows


LOOKED_AT = {
    "14.44.35112": (None, set()),
    "14.34.31931": (998, {"vcredist-too-old"}),
    "none": (126, {"vcredist-missing"}),
}
"""What becomes of the import of torch 2.9.1 under Wine, and what is found, by runtime."""
MOST_BYTES = 1_000_000
"""Of a snapshot; five times as much is what may be sent, a third of it is what was measured."""


@pytest.mark.sample
@pytest.mark.parametrize(
    ("runtime", "shipped"),
    [
        pytest.param("14.44.35112", False, id="the checkout, VC++ 14.44"),
        pytest.param("14.34.31931", True, id="the one file, VC++ 14.34"),
        pytest.param("none", False, id="the checkout, no VC++"),
    ],
)
def test_torchdoctor_looks_at_windows_from_within(
    runtime: str, wine: box.Box, tmp_path: Path, *, shipped: bool
) -> None:
    error, names = LOOKED_AT[runtime]
    doctor: tuple[str, ...] = ("-m", "torchdoctor")
    if shipped:
        doctor = (box.windows_path(pyz(tmp_path / "torchdoctor.pyz")),)
    snapshot = tmp_path / "snapshot.json"
    try:
        with cases.laid_out(cases.Case("collect", "2.9.1", runtime)) as layout:
            wine.put(runtime)
            own = () if shipped else (CHECKOUT, box.libraries(*OWN))
            sites = (*own, layout.site, box.libraries(*box.DEPENDENCIES))
            done = wine.execute(
                layout.home,
                *(*doctor, "collect", "--timeout", "60", "--output"),
                box.windows_path(snapshot),
                timeout=cases.SECONDS,
                PYTHONPATH=";".join(map(box.windows_path, sites)),
            )
    except box.Unavailable as reason:
        pytest.skip(str(reason))
    assert done.outcome == "answered", done
    print(snapshot.stat().st_size, "bytes")  # noqa: T201 - the figure is asked for
    assert snapshot.stat().st_size < MOST_BYTES
    runs = load(snapshot).probes
    assert {name: run.outcome for name, run in runs.items()} == dict.fromkeys(runs, "answered")
    assert {"environment", "host", "windows", "windows files", "import torch"} <= set(runs)
    assert runs["windows"].data["errors"] == {}
    assert notices(runs["windows trace"]) == TOLD[runtime]
    trial = runs["import torch"].data
    assert trial.get("imported", False) is (error is None)
    assert (f"[WinError {error}]" in str(trial)) is (error is not None)
    assert found(snapshot) & set(vc_runtime.FINDS) == names


TOLD = {
    "14.44.35112": [(MSVCP, "loaded"), ("c10.dll", "loaded"), ("torch_python.dll", "loaded")],
    "14.34.31931": [(MSVCP, "loaded"), ("c10.dll", "loaded"), ("c10.dll", "unloaded")],
    "none": [],
}
"""What Windows tells, while torch is imported, of the runtime and of some of torch's DLLs."""


def notices(run: Run) -> list[tuple[str, str]]:
    """Return what was told of the files in TOLD, in its order; the runtime's by its path."""
    assert run.data["errors"] == {}, run
    trace = run.data["trace"]
    assert isinstance(trace, dict)
    named = {"msvcp140.dll": MSVCP, "c10.dll": "c10.dll", "torch_python.dll": "torch_python.dll"}
    return [
        (path.lower() if named[base(path)] == MSVCP else base(path), what)
        for what, path in trace["notices"]
        if base(path) in named
    ]


def found(snapshot: Path) -> set[str]:
    """Return the names of what ``check`` finds in *snapshot*, here, on another system."""
    command = [sys.executable, "-m", "torchdoctor", "check", "--format", "json", str(snapshot)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr
    return {finding["name"] for finding in json.loads(done.stdout)["findings"]}


# ---- the search order, over many small DLLs ----

TRIALS = [trial(number) for number in range(600)]


@pytest.mark.sample
def test_the_real_loader_takes_the_file_that_the_model_says(wine: box.Box, tmp_path: Path) -> None:
    folders = {place: tmp_path / place for place in PLACES} | {"system32": wine.system32}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    cases.link_python(folders["home"])
    field = Field(folders)
    for one in TRIALS:
        field.lay(one)
    trials = tmp_path / "trials.json"
    trials.write_text(json.dumps([field.asked(one) for one in TRIALS]), "ascii")
    done = wine.run(
        folders["home"],
        {"trials": box.windows_path(trials), "working": field.windows("working")},
        cases.SECONDS,
        box.HERE / "inside_search.py",
        WINEPATH=field.windows("path"),
    )
    assert done.outcome == "answered", (done.stderr.text, done.stdout.text)
    results = done.data["results"]
    assert isinstance(results, list)
    machine = field.machine()
    differ, plain = [], 0
    for one, seen in zip(TRIALS, results, strict=True):
        predicted, taken = field.predict(one, machine)
        shown = {name: normal(path) for name, path in seen["taken"].items() if path}
        if seen["error"]:  # what was loaded before stays
            taken, shown = {}, {}
        if (seen["error"], shown) != (predicted.wine.error, dict(taken)):
            differ.append((one.number, field.asked(one), list(one.files), seen, predicted, taken))
        plain += not predicted.translated
    assert not differ, (len(differ), differ[:3])
    assert plain > 0.7 * len(TRIALS)
