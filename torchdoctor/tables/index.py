"""Read a package index: project pages, names of wheels, members of wheels.

By PEP 503 (HTML) and PEP 691 (JSON) for pages, PEP 658 for metadata beside a wheel, and HTTP
ranges for a member inside one. Polite: one request at a time, a pause before each, one retry, and
every answer kept in a folder, so that the same folder gives the same answers again. Whatever
comes back is hostile until it is read: bounded in size, and used by what it says of itself only.
"""

from __future__ import annotations

import base64
import email.parser
import hashlib
import html.parser
import http.client
import io
import json
import re
import ssl
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, cast

from packaging.utils import (
    InvalidWheelFilename,
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import Version  # noqa: TC002 - read by dataclasses

import torchdoctor
from torchdoctor.model import DoctorError
from torchdoctor.tables.releases import platform_key
from torchdoctor.values import dataclass

ACCEPT = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2,"
    " text/html;q=0.1"
)
LARGEST_PAGE = 64 << 20
LARGEST_MEMBER = 4 << 20
LARGEST_RANGE = 32 << 20
"""The directory of a wheel with 15 000 files takes 1.5 MiB."""
BLOCK = 1 << 16

_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
"""PEP 513, 571, 599; since PEP 600 the tag carries the number itself."""


class Unreadable(Exception):  # noqa: N818 - it is an answer, not an error
    """One file of the index that could not be read; the others can."""


class NoParts(Exception):  # noqa: N818 - likewise
    """The index does not serve the part of a file that was asked for."""


_NO_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, RuntimeError)
"""What zipfile raises for a file that is no zip, or one it cannot read."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a project page."""

    name: str
    url: str
    size: int | None = None
    """Bytes; None where the page is HTML."""
    day: str | None = None
    """The day it was uploaded, 2026-10-28; None where the page is HTML."""
    yanked: bool = False
    metadata: bool | None = None
    """Whether the page says that metadata lies beside it; None: the page does not say."""
    metadata_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel, as its file name describes it."""

    file: File
    version: Version
    build: tuple[int, str]
    """(0, "") when the name has no build number."""
    python: str | None
    """"3.12", "3.14t" (free-threaded), "3.12+" (stable ABI), "any"; None: something else."""
    platform: str | None
    """A platform key; None for musl, and for what torch has no key for."""
    glibc: tuple[int, int] | None = None
    macos: tuple[int, int] | None = None

    @property
    def evaluated(self) -> str:
        """Return a plain Python version, to evaluate markers with."""
        return self.python.rstrip("t+") if self.python and self.python != "any" else "3.12"


# ---- what an index says, as values --------------------------------------------------------------


def page(text: str, content_type: str, base: str) -> tuple[File, ...]:
    """Return the files that a project page names; *base* is the page's own address.

    Raises ValueError for text that is no project page.
    """
    if "json" not in content_type.lower():
        return page_of_html(text, base)
    return page_of_json(text, base)


def page_of_json(text: str, base: str) -> tuple[File, ...]:
    """Return the files of a PEP 691 page; entries of another shape are passed over."""
    data = json.loads(text)
    entries = data.get("files") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise ValueError("not a project page")  # noqa: TRY004 - of what was read, not of a call
    made = (_file_of_json(entry, base) for entry in entries if isinstance(entry, dict))
    return tuple(file for file in made if file is not None)


def page_of_html(text: str, base: str) -> tuple[File, ...]:
    """Return the files of a PEP 503 page: its links."""
    anchors = _Anchors(base)
    anchors.feed(text)
    anchors.close()
    return tuple(anchors.files)


def _file_of_json(entry: Mapping[str, object], base: str) -> File | None:
    name, url = entry.get("filename"), entry.get("url")
    if not isinstance(name, str) or not isinstance(url, str):
        return None
    size, uploaded = entry.get("size"), entry.get("upload-time")
    beside = entry.get("core-metadata", entry.get("dist-info-metadata"))
    sha256 = beside.get("sha256") if isinstance(beside, dict) else None
    day = re.match(r"\d{4}-\d\d-\d\d", uploaded) if isinstance(uploaded, str) else None
    return File(
        name,
        urllib.parse.urljoin(base, url),
        size if isinstance(size, int) and size > 0 else None,
        day[0] if day else None,
        yanked=entry.get("yanked", False) not in (False, None),
        metadata=None if beside is None else bool(beside),
        metadata_sha256=sha256 if isinstance(sha256, str) else None,
    )


class _Anchors(html.parser.HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.files: list[File] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        href = found.get("href")
        if tag != "a" or not href:
            return
        url = urllib.parse.urljoin(self.base, href).partition("#")[0]
        beside = found.get("data-core-metadata", found.get("data-dist-info-metadata"))
        kind, _, digest = (beside or "").partition("=")
        self.files.append(
            File(
                urllib.parse.unquote(url.partition("?")[0].rpartition("/")[2]),
                url,
                yanked="data-yanked" in found,
                metadata=None if beside is None else beside != "false",
                metadata_sha256=digest if kind == "sha256" and digest else None,
            )
        )


def wheel(file: File) -> Wheel | None:
    """Return what the name of *file* says, or None when it names no wheel."""
    try:
        _, version, build, _ = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, ValueError):
        return None
    python, abi, platforms = file.name.removesuffix(".whl").split("-")[-3:]
    tags = platforms.split(".")
    return Wheel(
        file,
        version,
        build or (0, ""),
        _python(python, abi),
        next((key for tag in tags if (key := _platform(tag))), None),
        min((g for tag in tags if (g := _glibc(tag))), default=None),
        min((m for tag in tags if (m := _macos(tag))), default=None),
    )


def _python(python: str, abi: str) -> str | None:
    if found := re.fullmatch(r"cp(\d)(\d+)", python):
        kind = "+" if abi == "abi3" else "t" if abi.endswith("t") else ""
        return f"{found[1]}.{found[2]}{kind}"
    return "any" if "py3" in python.split(".") and abi == "none" else None


def _platform(tag: str) -> str | None:
    if found := re.fullmatch(r"manylinux(?:\d+|_\d+_\d+)_(\w+)", tag):
        return platform_key("linux", found[1])
    if found := re.fullmatch(r"macosx_\d+_\d+_(\w+)", tag):
        return platform_key("darwin", found[1])
    return platform_key("win32", tag.removeprefix("win_")) if tag.startswith("win_") else None


def _glibc(tag: str) -> tuple[int, int] | None:
    if found := re.match(r"manylinux_(\d+)_(\d+)_", tag):
        return int(found[1]), int(found[2])
    return _MANYLINUX.get(tag.partition("_")[0])


def _macos(tag: str) -> tuple[int, int] | None:
    found = re.match(r"macosx_(\d+)_(\d+)_", tag)
    return (int(found[1]), int(found[2])) if found else None


def metadata_of(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the version and the Requires-Dist lines of METADATA; ValueError without a version."""
    message = email.parser.HeaderParser().parsestr(text)
    version = message.get("Version")
    if not version:
        raise ValueError("no Version in METADATA")
    lines = message.get_all("Requires-Dist") or ()
    return str(version), tuple(" ".join(str(line).split()) for line in lines)


# ---- asking -------------------------------------------------------------------------------------


class Index:
    """A package index at *address*, with what it answered kept in the folder *cache*.

    A file's content never changes, so it is kept for good; a page is asked for again once it is
    *fresh_for* seconds old. *offline* takes everything from the folder, however old. *certificates*
    is a file of certificates to trust instead of the system's.
    """

    def __init__(  # noqa: PLR0913 - it is told once
        self,
        address: str,
        cache: Path,
        *,
        offline: bool = False,
        pause: float = 0.2,
        fresh_for: float = 24 * 3600,
        certificates: str | None = None,
    ) -> None:
        parts = urllib.parse.urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DoctorError(f"not the address of a package index: {hidden(address)}")
        place = parts.netloc.rpartition("@")[2]
        self.address = urllib.parse.urlunsplit(parts._replace(netloc=place)).rstrip("/")
        self._login = _basic(parts)
        self._place = (parts.scheme, place)
        self._cache = cache
        self._offline = offline
        self._pause = pause
        self._fresh_for = fresh_for
        try:
            context = ssl.create_default_context(cafile=certificates)
        except OSError as error:  # ssl.SSLError is one
            raise DoctorError(f"no certificates in {certificates}", file=certificates) from error
        self._open = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), _Redirects()
        ).open
        self._refuses_beside: set[str] = set()
        self._zip: tuple[str, zipfile.ZipFile] | None = None
        self.requests = 0
        self.days: set[str] = set()
        """The days on which the pages in use were read."""

    def files(self, project: str) -> tuple[File, ...]:
        """Return the files of *project*; none when the index does not have it."""
        url = f"{self.address}/{canonicalize_name(project)}/"
        answer = self._get(url, ACCEPT, LARGEST_PAGE, lasts=False)
        self.days.add(cast("str", answer["day"]))
        if answer["status"] != http.client.OK:
            return ()
        try:
            found = page(cast("str", answer["text"]), cast("str", answer["type"]), url)
        except (ValueError, RecursionError) as error:
            raise DoctorError(f"what the index answers for {project} is no project page") from error
        return tuple(f for f in found if urllib.parse.urlsplit(f.url).scheme in ("http", "https"))

    def metadata(self, file: File) -> tuple[str, tuple[str, ...]]:
        """Return the version and the requirements in the METADATA of the wheel *file*.

        Raises Unreadable when it is not to be had.
        """
        text = self._beside(file)
        if text is None:
            text = self.member(file, r"[^/]+\.dist-info/METADATA")
        try:
            return metadata_of(text)
        except ValueError as error:
            raise Unreadable(f"{file.name}: {error}") from error

    def _beside(self, file: File) -> str | None:
        """Return the metadata that lies beside *file*, or None when the index has none there."""
        project = file.name.partition("-")[0]
        if file.metadata is False or (file.metadata is None and project in self._refuses_beside):
            return None
        answer = self._get(f"{file.url}.metadata", "*/*", LARGEST_MEMBER)
        if answer["status"] != http.client.OK:
            # Some mirrors do not say whether they have it: the first answer tells for the project.
            self._refuses_beside.add(project)
            return None
        digest = hashlib.sha256(cast("str", answer["text"]).encode("utf-8", "surrogateescape"))
        if file.metadata_sha256 and digest.hexdigest() != file.metadata_sha256:
            raise Unreadable(f"{file.name}: its metadata is not what the page says (sha256)")
        return cast("str", answer["text"])

    def member(self, file: File, pattern: str) -> str:
        """Return the text of the one member of the wheel *file* whose name matches *pattern*.

        Only the directory of the zip and that member are read. Raises Unreadable.
        """
        key = self._key(f"{pattern} in {file.url}")
        if (kept := self._kept(key)) is not None:
            return cast("str", kept["text"])
        if self._offline:
            raise Unreadable(f"{file.name}: not in the cache")
        try:
            text = self._read_member(file, pattern)
        except (urllib.error.HTTPError, NoParts, *_NO_ZIP) as error:
            raise Unreadable(f"{file.name}: {_said(error)}") from error
        except (OSError, http.client.HTTPException) as error:
            raise DoctorError(f"the index does not answer: {_said(error)}") from error
        self._keep(key, {"url": f"{pattern} in {file.url}", "status": 200, "text": text})
        return text

    def _read_member(self, file: File, pattern: str) -> str:
        if self._zip is None or self._zip[0] != file.url:
            view = _Remote(self, file.url, file.size or self._length(file.url))
            self._zip = (file.url, zipfile.ZipFile(cast("IO[bytes]", view)))
        archive = self._zip[1]
        names = [n for n in archive.namelist() if re.fullmatch(pattern, n)]
        if len(names) != 1:
            raise zipfile.BadZipFile(f"{len(names)} members match {pattern}")
        with archive.open(names[0]) as member:
            content = member.read(LARGEST_MEMBER + 1)
        if len(content) > LARGEST_MEMBER:
            raise zipfile.BadZipFile(f"{names[0]} is too large")
        return content.decode("utf-8", "surrogateescape")

    def _length(self, url: str) -> int:
        with self._ask(url, {}, method="HEAD") as answer:
            return int(answer.headers.get("Content-Length") or 0)

    def part(self, url: str, start: int, stop: int) -> bytes:
        """Return the bytes from *start* up to *stop* at *url*; NoParts when there are none."""
        if stop - start > LARGEST_RANGE:
            raise NoParts(f"its directory takes {stop - start} bytes")
        with self._ask(url, {"Range": f"bytes={start}-{stop - 1}"}) as answer:
            if answer.status != http.client.PARTIAL_CONTENT:
                raise NoParts("the index serves no parts of a file")
            content = answer.read(stop - start)
        if len(content) != stop - start:
            raise NoParts("the answer is cut short")
        return content

    def _get(self, url: str, accept: str, largest: int, *, lasts: bool = True) -> dict[str, object]:
        """Return what is at *url*, or at least its status 404, from the folder when it is there."""
        key = self._key(f"{accept} {url}")
        kept = self._kept(key)
        if kept is not None and (lasts or self._offline or self._fresh(kept)):
            return kept
        if self._offline:
            raise DoctorError(f"not in the cache, and not to be asked for: {hidden(url)}")
        now = time.time()
        answer: dict[str, object] = {"url": url, "status": 404, "type": "", "text": "", "at": now}
        try:
            with self._ask(url, {"Accept": accept}) as got:
                content = got.read(largest + 1)
                answer |= {"status": 200, "type": got.headers.get("Content-Type", "")}
        except urllib.error.HTTPError as error:
            if error.code not in (http.client.NOT_FOUND, http.client.GONE):
                raise DoctorError(f"the index answers {error.code} for {hidden(url)}") from error
            content = b""
        except (OSError, http.client.HTTPException) as error:
            raise DoctorError(f"the index does not answer: {_said(error)}") from error
        if len(content) > largest:
            raise DoctorError(f"more than {largest >> 20} MiB at {hidden(url)}")
        answer["text"] = content.decode("utf-8", "surrogateescape")
        answer["day"] = time.strftime("%Y-%m-%d", time.gmtime(now))
        self._keep(key, answer)
        return answer

    def _ask(
        self, url: str, headers: Mapping[str, str], *, method: str = "GET"
    ) -> http.client.HTTPResponse:
        name = {"User-Agent": f"torchdoctor/{torchdoctor.__version__} (refresh of its tables)"}
        request = urllib.request.Request(url, headers={**name, **headers}, method=method)  # noqa: S310
        parts = urllib.parse.urlsplit(url)
        if self._login and (parts.scheme, parts.netloc) == self._place:
            request.add_unredirected_header("Authorization", self._login)
        for last in (False, True):
            time.sleep(self._pause if not last else 10 * self._pause)
            self.requests += 1
            try:
                return cast("http.client.HTTPResponse", self._open(request, timeout=120))
            except urllib.error.HTTPError as error:
                if last or error.code < http.client.INTERNAL_SERVER_ERROR:
                    raise
                error.close()
            except (OSError, http.client.HTTPException):
                if last:
                    raise
        raise AssertionError

    def _key(self, text: str) -> Path:
        return self._cache / f"{hashlib.sha256(text.encode()).hexdigest()}.json"

    def _kept(self, key: Path) -> dict[str, object] | None:
        try:
            kept = json.loads(key.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        return kept if isinstance(kept, dict) and isinstance(kept.get("text"), str) else None

    def _fresh(self, kept: Mapping[str, object]) -> bool:
        at = kept.get("at")
        return isinstance(at, (int, float)) and 0 <= time.time() - at < self._fresh_for

    def _keep(self, key: Path, answer: Mapping[str, object]) -> None:
        self._cache.mkdir(parents=True, exist_ok=True)
        replace(key, json.dumps(answer, ensure_ascii=True))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow to http and https only; urllib would follow to ftp as well."""

    def redirect_request(  # noqa: PLR0913, PLR0917 - its signature
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.URLError("the index redirects to something that is not HTTP")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Remote(io.RawIOBase):
    """A file on the index as one to seek in: it asks for at least BLOCK bytes at a time."""

    def __init__(self, index: Index, url: str, size: int) -> None:
        super().__init__()
        if size <= 0:
            raise NoParts("the index does not tell its size")
        self._index = index
        self._url = url
        self._size = size
        self._at = 0
        self._blocks: list[tuple[int, bytes]] = []

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        stop = self._size if size is None or size < 0 else min(self._size, self._at + size)
        start = self._at
        if stop <= start:
            return b""
        self._at = stop
        for first, block in self._blocks:
            if first <= start and stop <= first + len(block):
                return block[start - first : stop - first]
        end = min(self._size, max(stop, start + BLOCK))
        first = start if end < self._size else min(start, max(0, self._size - BLOCK))
        block = self._index.part(self._url, first, end)
        self._blocks.append((first, block))
        return block[start - first : stop - first]


def hidden(address: str) -> str:
    """Return *address* without the login in it."""
    return re.sub(r"//[^/@]*@", "//", address)


def replace(path: Path, text: str) -> None:
    """Write *text* to *path* whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as out:
            out.write(text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _basic(parts: urllib.parse.SplitResult) -> str | None:
    if not parts.username:
        return None
    login = [urllib.parse.unquote(text or "") for text in (parts.username, parts.password)]
    return "Basic " + base64.b64encode(":".join(login).encode()).decode("ascii")


def _said(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error) or type(error).__name__


def newest_build(wheels: Sequence[Wheel]) -> list[Wheel]:
    """Return those of *wheels* with the highest build number, by Python, oldest first."""
    top = max(w.build for w in wheels)
    return sorted((w for w in wheels if w.build == top), key=lambda w: python_order(w.python))


def python_order(python: str | None) -> tuple[tuple[int, ...], str]:
    """Return a key by which Pythons sort: 3.9 before 3.14, 3.14 before 3.14t, "any" first."""
    if python is None or python == "any":
        return (0,), ""
    plain = python.rstrip("t+")
    return tuple(int(part) for part in plain.split(".")), python[len(plain) :]
