"""The docs have a page for all that can be found, and no link in them is dead."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs import pages, site
from torchdoctor import cli
from torchdoctor.commands.known import known
from torchdoctor.lint.rule import all_rules
from torchdoctor.registry import all_checks
from torchdoctor.report import parts

ROOT = Path(__file__).parents[2]
LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src"}


class Page(HTMLParser):
    """The anchors of a page, where its links lead, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif (place := LOADS.get(tag)) in given and given.get("rel") not in {"author", "canonical"}:
            self.loads.append(given[place or ""])


def dead(folder: Path) -> list[str]:
    """Return the links between the pages in *folder*, and the files, that are not there."""
    read = {path: Page(path.read_text("utf-8")) for path in folder.rglob("*.html")}
    found = []
    for path, page in read.items():
        for link in [*page.links, *page.loads]:
            parts_of = urlsplit(link)
            if parts_of.scheme or parts_of.netloc:
                continue
            aim = (path.parent / unquote(parts_of.path)).resolve() if parts_of.path else path
            anchors = read[aim].anchors if aim in read else set()
            here = aim.exists() and (not parts_of.fragment or unquote(parts_of.fragment) in anchors)
            if not here and link != "#":
                found.append(f"{path.relative_to(folder)}: {link}")
    return found


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    return pages.written()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the docs by the command for it."""
    folder = tmp_path_factory.mktemp("docs").resolve() / "site"
    command = [sys.executable, "-m", "tests.docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder / 'index.html'}\n"
    return folder


def test_each_finding_check_rule_and_verb_is_on_its_page(written: dict[str, str]) -> None:
    everything = known()
    for name in {name for check in everything.values() for name in check.names}:
        assert f"\ntorchdoctor explain {name}\n" in written[f"findings/{name}.md"]
        assert f"]({name}.md)" in written["findings/index.md"]
    assert [name for name in all_checks() if f"| `{name}` |" not in written["checks.md"]] == []
    assert [name for name in all_rules() if f"| [{name}](" not in written["lint.md"]] == []
    assert [verb for verb in cli.VERBS if f"\n## {verb}\n" not in written["commands.md"]] == []


def test_each_example_and_each_page_of_the_repository_is_there(written: dict[str, str]) -> None:
    for path in (ROOT / ".github" / "examples").iterdir():
        assert f"\n## {path.name}\n" in written["examples.md"]
    for path in (ROOT / ".github" / "docs").glob("*.md"):
        assert written[path.name] == path.read_text("utf-8")
        assert f"]({path.name})" in written["index.md"]


def test_a_page_has_every_part_that_explain_prints(written: dict[str, str]) -> None:
    for name in ("driver-too-old", "missing-set-epoch"):
        page = parts.page(name, known().values())
        assert page
        heads = [head for part, head in parts.PARTS.items() if page.parts[part] and part != "what"]
        assert len(heads) == 5
        assert all(f"\n## {head}\n" in written[f"findings/{name}.md"] for head in heads)


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("set_epoch() of <x> [1]", r"set\_epoch() of \<x\> \[1\]"),
        ("`a_b` stays", "`a_b` stays"),
        ("see https://x.org/a_b, and so on", "see <https://x.org/a_b>, and so on"),
        ("told apart from no-such-thing", "told apart from no-such-thing"),
        ("that is dll-missing.", "that is [dll-missing](dll-missing.md)."),
        ("that is `dll-missing`", "that is [dll-missing](dll-missing.md)"),
    ],
)
def test_text_is_shown_as_it_is_and_names_are_links(plain: str, shown: str) -> None:
    assert pages.text(plain, frozenset({"dll-missing"})) == shown


@pytest.mark.lab
def test_the_site_has_all_pages_and_no_dead_link(built: Path, written: dict[str, str]) -> None:
    made = {path.relative_to(built).with_suffix(".md").as_posix() for path in built.rglob("*.html")}
    assert set(written) <= made
    assert dead(built) == []


@pytest.mark.lab
def test_no_page_loads_anything_from_elsewhere(built: Path) -> None:
    for path in built.rglob("*.html"):
        assert [x for x in Page(path.read_text("utf-8")).loads if urlsplit(x).netloc] == []


@pytest.mark.lab
@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("# One\n\n[x](nowhere.md)\n", "nowhere.md"),
        ("# One\n\n[x](#nowhere)\n", "nowhere"),
        ("# One\n\n```{toctree}\nnowhere\n```\n", "nonexisting document"),
        ("# One\n", ""),
    ],
)
def test_a_link_that_leads_nowhere_ends_the_build(
    tmp_path: Path, page: str, complaint: str
) -> None:
    code, said = site.build(tmp_path / "drafts", tmp_path / "site", {"index.md": page})
    assert (code == 0) == (not complaint)
    assert complaint in said


def test_a_dead_link_between_pages_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="x">a</h1><a href="b.html#y">b</a><a href="#x">', "utf-8"
    )
    assert dead(tmp_path) == ["a.html: b.html#y"]
    (tmp_path / "b.html").write_text('<h1 id="y">b</h1><script src="c.js"></script>', "utf-8")
    assert dead(tmp_path) == ["b.html: c.js"]
