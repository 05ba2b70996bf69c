"""What pip said while it worked: what it found, what it put there, what it left behind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from torchdoctor.facts import Leftover
from torchdoctor.reading.pasted import packages, paths
from torchdoctor.reading.pasted.lines import Line
from torchdoctor.reading.pasted.said import DOTTED, PRINTED, TOLD, VERSION, Package, Said, normal

LAYOUT = "what pip said"
AFTER = TOLD + 5
"""pip compares what is installed when it is done: that holds, whatever it took away before."""

_STARS = re.compile(r"\s{0,4}\*{3}\s{1,8}")
_BROKEN = re.compile(r"Ignoring invalid distribution -?([\w.~-]{1,60}?)\s+\(([^()]{3,400})\)")
_SATISFIED = re.compile(
    rf"Requirement already (?:satisfied|up-to-date): ([\w.-]{{1,100}}?)(?:\[[^\]]*\])?(?:[<>=!~]"
    rf"[^ ]*)? in (.{{3,300}}?) \(({VERSION})\)"
)
_IN = re.compile(
    r"Requirement already (?:satisfied|up-to-date): [\w.-]{1,100}\S* in (\S.{2,300}?)\s*(?:\(|$)"
)
_RESOLVER = re.compile(
    rf"([\w.-]{{1,100}}) ({VERSION}) (?:requires|has requirement) .{{1,200}}, but you(?:'ll|"
    rf" will)? have ([\w.-]{{1,100}}) ({VERSION}) which is incompatible"
)
_INSTALLED = re.compile(r"Successfully installed ((?:[\w.-]{1,100}-[0-9][\w.+!]{0,60}\s?){1,400})")
_ONE = re.compile(rf"([\w.-]{{1,100}}?)-({VERSION})(?:\s|$)")
_UV = re.compile(rf"\s{{1,3}}([+-]) ([\w.-]{{1,100}})==({DOTTED})\s*$")
_GONE = re.compile(r"Successfully uninstalled ([\w.-]{1,100}?)-([0-9]\S{0,60})\s*$")
_BACKED_OUT = re.compile(r"Rolling back uninstall of ([\w.-]{1,100})")


def read(  # noqa: C901 - one branch for each message
    lines: Sequence[Line],
) -> Iterator[Said]:
    """Yield what pip's and uv's messages in *lines* say of packages and leftovers."""
    for line in lines:
        if line.kind != "output":
            continue
        text = _STARS.sub("", line.text[:9000])
        if broken := _BROKEN.search(text):
            name = broken[1].lstrip("-~")
            leftover = Leftover(f"~{name}", broken[2])
            yield Said("leftover", leftover, LAYOUT, PRINTED, line.number)
            if system := paths.system_of(broken[2]):
                yield Said("platform.system", system, LAYOUT, TOLD, line.number)
        elif there := _SATISFIED.search(text):
            folder = re.sub(r"\s*\(from [^)]*\)$", "", there[2])
            package = Package(normal(there[1]), there[3], folder)
            yield from packages.of_pip(package, LAYOUT, TOLD, line.number)
            yield from _where(there[2], line.number)
        elif place := _IN.search(text):
            yield from _where(place[1], line.number)
        elif told := _RESOLVER.search(text):
            for name, version in ((told[1], told[2]), (told[3], told[4])):
                yield from packages.of_pip(
                    Package(normal(name), version), LAYOUT, AFTER, line.number
                )
        elif done := _INSTALLED.search(text):
            for name, version in _ONE.findall(done[1]):
                yield from packages.of_pip(
                    Package(normal(name), version), LAYOUT, TOLD, line.number
                )
        elif (changed := _UV.match(text)) and changed[1] == "+":
            one = Package(normal(changed[2]), changed[3], installer="uv")
            yield from packages.of_pip(one, "what uv said", TOLD, line.number)
        elif (gone := _GONE.search(text)) or (gone := _BACKED_OUT.search(text)):
            yield Said("gone", normal(gone[1]), LAYOUT, PRINTED, line.number)


def _where(folder: str, number: int) -> Iterator[Said]:
    if system := paths.system_of(folder):
        yield Said("platform.system", system, LAYOUT, TOLD, number)
