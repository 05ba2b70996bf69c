"""The report as a page: whole HTML that no fact breaks out of, and that browsers show well."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import wheels
from tests.environments import CACHE
from tests.report import samples
from tests.report.test_markdown import HOSTILE, TEXTS, snapshot
from torchdoctor.diagnosis import diagnose
from torchdoctor.model import Evidence, PlannedStep
from torchdoctor.report import page
from torchdoctor.report.document import Report, failure

ROOT = Path(__file__).parents[2]
VOID = {"meta", "link", "img", "br", "hr", "input"}
KNOWN = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "section", "article"),
    *(
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "p",
        "ol",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "code",
        "pre",
        "span",
    ),
    *("div", "button", "details", "summary", "script"),
}


class Tree(HTMLParser):
    """What a page is made of; asserts that what is opened is closed, in its order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in KNOWN, tag
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data


def is_whole(text: str, report: Report) -> Tree:
    """Assert that *text* has the structure that its report gives it, and no other."""
    tree = Tree(text)
    counts = [tag for tag, _ in tree.tags]
    assert counts.count("script") == counts.count("style") == counts.count("h1") == 1
    assert counts.count("article") == len(report.faults)
    assert counts.count("h3") == len(report.faults) + len(report.plan.steps)
    names = {name for _, attrs in tree.tags for name in attrs}
    assert not {n for n in names if n.startswith("on")}
    assert not names & {"src", "href", "srcdoc", "action"}
    return tree


@settings(deadline=None, max_examples=40)
@given(report=samples.reports(samples.KEBABS), shell=st.sampled_from(list(page.SHELLS)))
def test_any_report_is_a_whole_page(report: Report, shell: Any) -> None:
    is_whole(page.render(report, shell=shell), report)


@settings(deadline=None, max_examples=60)
@given(text=TEXTS)
def test_no_fact_breaks_out_of_it(text: str) -> None:
    broken = samples.broken()
    finding = replace(
        broken.findings[0], summary=text, evidence=(Evidence(text, f"{text} -> {text}", text),)
    )
    report = replace(
        broken, headline=text, findings=(finding,), remarks=(text,), snapshot=snapshot(text)
    )
    is_whole(page.render(report), report)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_said_is_shown_as_it_is(text: str) -> None:
    report = replace(samples.broken(), headline=text)
    (title,) = is_whole(page.render(report), report).texts["h1"]
    assert title == " ".join(text.split())


def test_a_command_is_copied_as_it_is_typed() -> None:
    step = samples.step("x", 'python -c \'print("<&>")\' && echo "$HOME"')
    report = samples.broken()
    report = replace(report, plan=replace(report.plan, steps=(PlannedStep(step, (), ()),)))
    tree = is_whole(page.render(report), report)
    assert tree.texts["pre"][0] == step.commands.bash[0]
    (button,) = [attrs for tag, attrs in tree.tags if tag == "button"][:1]
    assert "hidden" in button, "without its script the page has no button that does nothing"


def test_what_deletes_and_needs_rights_is_marked() -> None:
    step = replace(samples.step("x", "rm -r y"), deletes=True, needs=("admin", "reboot"))
    report = samples.broken()
    report = replace(report, plan=replace(report.plan, steps=(PlannedStep(step, (), ()),)))
    text = page.render(report)
    assert '<span class="tag deletes">deletes</span>' in text
    assert '<span class="tag">admin</span><span class="tag">reboot</span>' in text


def test_only_its_own_script_may_run_and_nothing_is_loaded() -> None:
    text = page.render(samples.broken())
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert f'content="{policy}"' in text
    assert "http" not in script
    assert "@import" not in text
    assert "url(" not in text


def test_a_chain_of_files_is_drawn() -> None:
    evidence = (Evidence("chain", "torch_python.dll -> c10.dll -> msvcp140.dll", "x"),)
    finding = replace(samples.finding(), evidence=evidence)
    report = replace(samples.broken(), findings=(finding,))
    text = page.render(report)
    assert text.count("<li><code>") >= 3
    assert '<ol class="chain"><li><code>torch_python.dll</code></li>' in text


def test_a_failure_has_its_page() -> None:
    assert "no snapshot" in page.render(failure("input", "x.json is no snapshot", "x.json"))


def test_the_timeline_has_the_probes_in_their_order() -> None:
    whole = snapshot("x")
    run = whole.probes["host"]
    probes = {
        "late": replace(run, began=3.0, seconds=1.0, outcome="timeout"),
        "early": replace(run, began=0.0, seconds=2.0),
        "unknown": run,
    }
    report = replace(samples.broken(), snapshot=replace(whole, probes=probes))
    text = page.render(report)
    assert text.index("early: 2.00 s, answered") < text.index("late: 1.00 s, no answer in time")
    assert 'style="left:75.00%;width:25.00%"' in text
    assert "unknown: 0.00 s" not in text


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of this very machine, made by the command."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    words = [sys.executable, "-m", "torchdoctor", "check", "--no-import", "--expect", "cuda"]
    done = subprocess.run(
        [*words, "--format", "html", "-o", str(file)], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode in {0, 1}, done.stderr
    return file


def test_the_page_of_a_machine_is_judged_again_like_the_machine(looked_at: Path) -> None:
    words = [sys.executable, "-m", "torchdoctor", "check", str(looked_at), "--format", "json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    again = json.loads(done.stdout)
    text = looked_at.read_text("utf-8")
    assert again["target"]["source"] == "snapshot"
    for finding in again["findings"]:
        assert f"{finding['name']}</code>" in text or f"{finding['name']}: " in text
    assert diagnose(text).findings
    assert Path.home().name not in text or Path.home().name in {"root", ""}


# ---- in a browser --------------------------------------------------------------------------------

WIDTHS = (360, 768, 1280)
CASES = ("001-win1114-redist-1436", "048-numpy2-torch-222-cpu", "104-healthy-8xa100-conda-gcc")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Start this system's Chromium, driven by Playwright; skip where there is none."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no Chromium here")
    place = CACHE / "playwright"
    if not (place / "playwright").is_dir():
        install = [wheels.UV, "pip", "install", "--quiet", "--python", sys.executable]
        subprocess.run([*install, "--target", str(place), "playwright"], check=True)
    sys.path.append(str(place))
    try:
        api = importlib.import_module("playwright.sync_api")
        with api.sync_playwright() as driver:
            running = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield running
            running.close()
    finally:
        sys.path.remove(str(place))


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the source of axe-core."""
    place = CACHE / "axe"
    place.mkdir(parents=True, exist_ok=True)
    if not list(place.glob("axe-core-*.tgz")):
        if shutil.which("npm") is None:
            pytest.skip("there is no npm here")
        subprocess.run(["npm", "pack", "--silent", "axe-core"], cwd=place, check=True)
    (archive,) = place.glob("axe-core-*.tgz")
    with tarfile.open(archive) as tar:
        file = tar.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode("utf-8")


def of_many(folder: Path, language: str) -> Path:
    """Return the page on machines of which some have the same fault, and one cannot be read."""
    cases = [*CASES, "028-arch-5090-cu12x", "029-arch-5070ti-old-nightly", "051-nvjitlink*"]
    given_ = [next((ROOT / "tests" / "corpus").glob(f"{case}/input*")) for case in cases]
    (folder / "cut.zip").write_bytes(b"PK\x03\x04 cut off")
    page_ = folder / "of-many.html"
    words = [sys.executable, "-m", "torchdoctor", "compare", "--lang", language, *map(str, given_)]
    words += [str(folder / "cut.zip"), "--format", "html", "-o", str(page_)]
    subprocess.run(words, cwd=ROOT, check=False)
    return page_


@pytest.mark.network
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_browsers_show_it_accessibly_at_any_width(
    scheme: str, language: str, browser: Any, axe: str, looked_at: Path, tmp_path: Path
) -> None:
    pages = [looked_at]
    for case in CASES:
        pages.append(tmp_path / f"{case}.html")
        given_ = next((ROOT / "tests" / "corpus" / case).glob("input*"))
        words = [sys.executable, "-m", "torchdoctor", "check", str(given_), "--lang", language]
        subprocess.run([*words, "--format", "html", "-o", str(pages[-1])], cwd=ROOT, check=False)
    pages.append(of_many(tmp_path, language))
    for file in pages:
        for width in WIDTHS:
            view = {"width": width, "height": 800}
            context = browser.new_context(viewport=view, color_scheme=scheme, bypass_csp=True)
            tab = context.new_page()
            tab.goto(file.as_uri())
            root = "document.documentElement"
            assert tab.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), (file, width)
            tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            tab.evaluate(axe)
            found = tab.evaluate("axe.run(document)")
            assert found["violations"] == [], (file, width)
            assert len(found["passes"]) > 10
            tab.screenshot(path=tmp_path / f"{file.stem}-{scheme}-{width}.png", full_page=True)
            context.close()


@pytest.mark.network
def test_the_button_copies_the_command(browser: Any, tmp_path: Path) -> None:
    step = samples.step("x", "pip install 'torch==2.9.1'")
    report = samples.broken()
    report = replace(report, plan=replace(report.plan, steps=(PlannedStep(step, (), ()),)))
    file = tmp_path / "page.html"
    file.write_text(page.render(report), "utf-8")
    for allowed in (True, False):
        context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
        tab = context.new_page()
        wrong: list[str] = []
        tab.on("console", lambda message, wrong=wrong: wrong.append(message.text))
        tab.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
        if not allowed:
            tab.add_init_script("navigator.clipboard.writeText = () => Promise.reject()")
        tab.goto(file.as_uri())
        tab.get_by_role("button").first.click()
        said = tab.get_by_role("status")
        said.get_by_text("Copied" if allowed else "Marked").wait_for()
        script = "navigator.clipboard.readText()" if allowed else "getSelection().toString()"
        assert tab.evaluate(script) == step.commands.bash[0]
        assert wrong == []
        context.close()


@pytest.mark.network
def test_the_policy_of_the_page_stops_a_script_that_is_not_its_own(
    browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "page.html"
    text = page.render(samples.broken())
    file.write_text(text.replace("</main>", "<script>document.title = 'owned'</script></main>"))
    tab = browser.new_page()
    tab.goto(file.as_uri())
    assert tab.title() == "torchdoctor: broken"
