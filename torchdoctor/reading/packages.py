"""Read what the environment probe said of packages: pip's metadata, leftovers, conda's records."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torchdoctor.facts import Conda, CondaPackage, Distribution, Leftover
from torchdoctor.reading import shapes
from torchdoctor.reading.answer import Answer

CONDA_NAMES = {"torch": ("pytorch", "pytorch-cpu", "pytorch-gpu", "libtorch", "torch")}
"""What conda calls a distribution; the distribution's own name when it is not here."""
_SUBDIR = re.compile(r"/(noarch|(linux|win|osx|emscripten|wasi|freebsd|zos)-\w+)/?$")


def distributions(answer: Answer) -> tuple[Distribution, ...]:
    """Read what pip's metadata says is installed; raises CannotReadError."""
    said = _packages(answer)
    links = {
        (shapes.text(link.get("name"), "egg_links"), shapes.text(link.get("folder"), "egg_links"))
        for link in shapes.mappings(said.get("egg_links", ()), "egg_links")
    }
    found = shapes.mappings(said.get("distributions"), "distributions")
    return tuple(_distribution(one, links) for one in found)


def _distribution(said: Mapping[str, object], links: set[tuple[str, str]]) -> Distribution:
    what = "distributions"
    name, folder = shapes.text(said.get("name"), what), shapes.text(said.get("folder"), what)
    direct = shapes.mapping(said.get("direct_url") or {}, what)
    return Distribution(
        name=name,
        version=shapes.text(said.get("version"), what),
        folder=folder,
        metadata=shapes.text(said.get("metadata"), what),
        installer=shapes.text(said.get("installer", ""), what),
        requires=shapes.strings(said.get("requires", ()), what),
        direct_url=shapes.text_or_none(direct.get("url"), what),
        editable=shapes.truth(direct.get("editable", False), what) or (name, folder) in links,
        user_site=shapes.truth(said.get("user_site", False), what),
        wheel_tags=shapes.strings(said.get("tags", ()), what),
    )


def leftovers(answer: Answer) -> tuple[Leftover, ...]:
    """Read the folders that an interrupted pip left behind; raises CannotReadError."""
    what = "leftovers"
    return tuple(
        Leftover(shapes.text(one.get("name"), what), shapes.text(one.get("folder"), what))
        for one in shapes.mappings(_packages(answer).get(what), what)
    )


def _packages(answer: Answer) -> Mapping[str, object]:
    return shapes.mapping(answer.get("packages"), "packages")


def conda_of(answer: Answer) -> Conda | None:
    """Read conda's records, None outside of conda; raises CannotReadError."""
    said = answer.get("conda")
    if said is None:
        return None
    said = shapes.mapping(said, "conda")
    packages = [
        (
            CondaPackage(
                name=shapes.text(one.get("name"), "conda"),
                version=shapes.text(one.get("version"), "conda"),
                build=shapes.text(one.get("build"), "conda"),
                channel=_channel(shapes.text(one.get("channel"), "conda")),
            ),
            shapes.number(one.get("torch_files", 0), "conda"),
        )
        for one in shapes.mappings(said.get("packages"), "conda")
    ]
    return Conda(
        packages=tuple(package for package, _ in packages),
        prefix=shapes.text(said.get("prefix", ""), "conda"),
        torch_files=sum(count for _, count in packages),
    )


def _channel(text: str) -> str:
    """Return the name of a channel as people write it.

    conda, mamba and pixi keep the whole address of a platform's folder, perhaps with a token;
    the channels of Anaconda's own distribution (pkgs/main, pkgs/r ...) are called defaults.
    """
    path = _SUBDIR.sub("", text).rstrip("/")
    if "://" in path:
        path = path.partition("://")[2].partition("/")[2]
    path = re.sub(r"^t/[^/]+/", "", path)
    return "defaults" if re.match(r"pkgs/(main|r|free|msys2|pro)$", path) else path or text
