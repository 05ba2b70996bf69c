"""Take out of a snapshot what is nobody's business: who, where, and every secret.

Stand-ins are consistent: the same GPU has the same stand-in wherever it is named, and a path below
the home folder stays below it, so that a snapshot means the same after redaction as before. What
looks like an address but is the version of a package (nvidia-curand 10.3.5.147) is left alone.
Text that is written in another way (base64, percent signs, JSON in JSON) is looked into as well.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast
from urllib.parse import quote, unquote

from torchdoctor import confidential
from torchdoctor.child import Run, Stream
from torchdoctor.confidential import GONE
from torchdoctor.resource import read_text
from torchdoctor.snapshot import Snapshot
from torchdoctor.tables import load

DEEPEST = 4
"""Layers of encoding that are looked into."""
REMEMBERED = 512
"""Characters of a text whose redaction is kept: the same paths come again and again."""
_VERSIONS = frozenset(
    (
        "version",
        "requires",
        "metadata",
        "name",
        "wheel_tags",
        "tags",
        "build",
        "channel",
        "driver_release",
        "release",
        "nvml_version",
        "python_version",
    )
)
"""Keys whose text is a version or holds versions, never an address."""
_VARIABLES = frozenset(("variables", "told", "environ", "environment", "env"))
"""Keys under which every name is that of a variable."""
_WORDS = ("symptoms.toml", "symptoms_words.toml", "symptoms_running.toml", "libraries.toml")
"""Tables whose words mean something; whoever is called by one is hidden in paths only."""

_UUID = re.compile(
    r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"
)
_MAC = re.compile(
    r"(?<![\w:.-])(?:(?:[0-9a-fA-F]{2}:){5,19}[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{2}-){5}[0-9a-fA-F]{2}"
    r"|(?:[0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}|(?:[0-9a-fA-F]{4}:){3}[0-9a-fA-F]{4})(?![\w:-]|\.\w)"
)
_IPV4 = re.compile(r"(?<![\w.<>~-])(?<![=<>!~]=)(?:\d{1,3}\.){3}\d{1,3}(?![\w.-]|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){2,7}[0-9a-fA-F]{0,4}(?:%\w+)?(?![\w:])(?!\.\d)"
)
_CLOUD_HOST = re.compile(r"(?i)\bip(?:-\d{1,3}){4}(?:\.[\w-]+)*")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAME = r"[^\\/\s'\"`:;,<>|()\[\]{}]+"
_HOME = r"(?:home|homes|users|documents and settings)"
_HOMES = re.compile(
    rf"(?i)([a-z]:[\\/]+{_HOME}[\\/]+)({_NAME}(?: {_NAME}){{1,3}})(?=[\\/])"
    rf"|((?<![\w.]){_HOME}[\\/]+|[\\/]+{_HOME}[\\/]+|(?<![\w/\\~])~(?=[\w.-]+[\\/]))({_NAME})"
)
_PERCENT = re.compile(r"[^\s\"'<>]*%[0-9A-Fa-f]{2}[^\s\"'<>]*")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_KEPT_ADDRESSES = ("127.", "0.0.0.0", "255.")  # noqa: S104 - nothing is bound to it
_HEX_GROUPS = 8
"""Of an IPv6 address."""


@dataclass(slots=True)
class _Redactor:
    """Replaces in text what one machine's snapshot must not tell."""

    user: str
    host: str
    home: str
    stand_ins: dict[str, str] = field(default_factory=dict)
    _known: dict[tuple[str, bool], str] = field(default_factory=dict)
    _who: tuple[tuple[re.Pattern[str], str], ...] | None = None

    def text(self, text: str, *, versions: bool = False, depth: int = 0) -> str:
        """Return *text* without the secrets; *versions* says that numbers in it are versions."""
        key = (text, versions)
        if len(text) > REMEMBERED:
            return self._redacted(text, versions=versions, depth=depth)
        if key not in self._known:
            self._known[key] = self._redacted(text, versions=versions, depth=depth)
        return self._known[key]

    def _redacted(self, text: str, *, versions: bool, depth: int) -> str:
        if depth < DEEPEST:
            if "%" in text:
                text = _PERCENT.sub(lambda m: self._percent(m, depth), text)
            text = _BASE64.sub(lambda m: self._base64(m, depth), text)
        text = confidential.tokens(text)
        text = confidential.urls(text)
        text = confidential.settings(text)
        text = self._without_who(text)
        text = _EMAIL.sub(GONE, text)
        text = _UUID.sub(lambda m: self._number(m, "00000000-0000-0000-0000-{:012d}"), text)
        if not versions:
            text = _CLOUD_HOST.sub("host", text)
            text = _IPV4.sub(self._address, text)
        text = _MAC.sub("00:00:00:00:00:00", text)
        text = _IPV6.sub(self._address6, text)
        return confidential.random_words(text)

    def value(self, value: object, key: str = "", above: str = "") -> object:
        """Return *value*, JSON of any depth, redacted; keys that are paths are redacted too.

        *key* is its name, *above* that of what holds it.
        """
        if isinstance(value, str):
            if value and confidential.is_secret(key):
                return GONE
            if above in _VARIABLES and value and confidential.is_unknown_variable(key):
                return GONE
            return self.text(value, versions=key in _VERSIONS)
        if isinstance(value, Mapping):
            return self._mapping(value, key)
        if isinstance(value, list):
            return self._words(value, key)
        return value

    def _mapping(self, value: Mapping[object, object], key: str) -> dict[str, object]:
        made: dict[str, object] = {}
        for name, item in value.items():
            shown = self.text(str(name))
            number = 2
            while shown in made:  # two names that were told apart stay two
                shown = f"{self.text(str(name))} ({number})"
                number += 1
            made[shown] = self.value(item, str(name), key)
        return made

    def _words(self, value: list[object], key: str) -> list[object]:
        """Return a list redacted, a secret that follows its option too."""
        made: list[object] = []
        before = ""
        for item in value:
            follows = isinstance(item, str) and _names_a_secret(before)
            made.append(GONE if follows else self.value(item, key))
            before = item if isinstance(item, str) else ""
        return made

    def run(self, run: Run) -> Run:
        """Return *run* redacted."""
        return replace(
            run,
            command=tuple(cast("list[str]", self._words(list(run.command), ""))),
            reason=self.text(run.reason),
            stdout=self._stream(run.stdout),
            stderr=self._stream(run.stderr),
            data=cast("Mapping[str, object]", self.value(run.data)),
        )

    def _stream(self, stream: Stream) -> Stream:
        text = self.text(stream.text)
        return stream if text == stream.text else Stream(text, stream.length, "")

    # ---- who, and on which machine --------------------------------------------------------------

    def _without_who(self, text: str) -> str:
        if self._who is None:
            self._who = tuple(self._of_person())
        for pattern, becomes in self._who:
            text = pattern.sub(becomes, text)
        return _HOMES.sub(_in_home, text)

    def _of_person(self) -> list[tuple[re.Pattern[str], str]]:
        made: list[tuple[re.Pattern[str], str]] = []
        if self.home:
            parts = [re.escape(part) for part in re.split(r"[\\/]+", self.home)]
            flags = re.IGNORECASE if self.home[1:2] == ":" else re.NOFLAG
            stand_in = self._home_stand_in().replace("\\", r"\\")
            # However its separators are written; as itself where they are as usual.
            made += [
                (re.compile(re.escape(self.home) + r"(?![\w.-])", flags), stand_in),
                (re.compile(r"[\\/]+".join(parts) + r"(?![\w.-])", flags), _slashed(stand_in)),
            ]
        if self.user:
            made += [(_user(name), "user") for name in _names_of(self.user)]
        if self.host:
            short = self.host.partition(".")[0]
            pattern = rf"(?i)(?<![A-Za-z0-9-])(?:{re.escape(self.host)}|{re.escape(short)})"
            made.append((re.compile(rf"{pattern}(?:\.[A-Za-z0-9-]+)*(?![A-Za-z0-9-])"), "host"))
        return made

    def _home_stand_in(self) -> str:
        if "\\" in self.home or self.home[1:2] == ":":
            return r"C:\Users\user"
        return "/Users/user" if self.home.startswith("/Users/") else "/home/user"

    # ---- numbers --------------------------------------------------------------------------------

    def _number(self, match: re.Match[str], form: str) -> str:
        known = match[0].lower()
        return self.stand_ins.setdefault(known, form.format(len(self.stand_ins) + 1))

    def _address(self, match: re.Match[str]) -> str:
        address = match[0]
        if address.startswith(_KEPT_ADDRESSES) or any(int(p) > 255 for p in address.split(".")):  # noqa: PLR2004
            return address
        if confidential.is_version(match.string, match.start()):
            return address
        return self._number(match, "192.0.2.{:d}")

    def _address6(self, match: re.Match[str]) -> str:
        address = match[0]
        groups = address.partition("%")[0].split(":")
        if "::" not in address and len(groups) != _HEX_GROUPS:
            return address  # a time, a path list
        if "::" in address and sum(map(bool, groups)) < 2:  # noqa: PLR2004
            return address  # ::1, or the :: between two names
        return self._number(match, "2001:db8::{:x}")

    # ---- text that is written in another way ----------------------------------------------------

    def _percent(self, match: re.Match[str], depth: int) -> str:
        plain = unquote(match[0])
        if plain == match[0]:
            return plain
        hidden = self.text(plain, depth=depth + 1)
        return match[0] if hidden == plain else quote(hidden, safe="/:?&=#@<>+,;\\~")

    def _base64(self, match: re.Match[str], depth: int) -> str:
        plain = _decoded(match[0])
        if plain is not None:
            return match[0] if self.text(plain, depth=depth + 1) == plain else GONE
        if "/" not in match[0]:
            return match[0]
        return "/".join(self._part(part, depth) for part in match[0].split("/"))

    def _part(self, part: str, depth: int) -> str:
        plain = _decoded(part) if len(part) >= 20 else None  # noqa: PLR2004 - as in _BASE64
        if plain is None or self.text(plain, depth=depth + 1) == plain:
            return part
        return GONE


def _decoded(run: str) -> str | None:
    """Return the text that *run* is in base64; None where that is no text."""
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        text = raw.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    shown = sum(c.isprintable() or c in "\r\n\t" for c in text)
    return text if shown == len(text) and len(text.split()) < len(text) else None


def _names_a_secret(word: str) -> bool:
    if word in {"-u", "--user", "--proxy-user"}:
        return True
    return word.startswith("-") and "=" not in word and confidential.is_secret(word)


def _in_home(match: re.Match[str]) -> str:
    before, name = match[1] or match[3] or "", match[2] or match[4] or ""
    return match[0] if _is_common(name) else f"{before}user"


def _slashed(stand_in: str) -> str:
    return stand_in.replace(r"\\", "/")


def _names_of(user: str) -> list[str]:
    """Return how *user* is called: in full, and by each name that is long enough to be one."""
    parts = [part for part in re.split(r"[\s.]+", user) if len(part) > 3]  # noqa: PLR2004
    return list(dict.fromkeys([user, *(p for p in parts if not _is_common(p))]))


def _user(name: str) -> re.Pattern[str]:
    plain = re.escape(name)
    if len(name) < 3 or _means_something(name):  # noqa: PLR2004
        # A word in itself: only as a part of a path, before @, or alone.
        return re.compile(rf"(?<=[\\/=:]){plain}(?=[\\/@:;,'\"\s]|$)|\b{plain}(?=@)|^{plain}$")
    return re.compile(rf"(?i)(?<![A-Za-z0-9]){plain}(?![A-Za-z0-9])")


@cache
def _means_something(name: str) -> bool:
    """Tell whether *name* is a word in what machines say."""
    word = re.compile(rf"(?i)(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
    return any(word.search(read_text("tables", table)) for table in _WORDS)


@cache
def _is_common(name: str) -> bool:
    return name.lower() in load("secrets")["common"]["users"].split()


def redact(snapshot: Snapshot, *, user: str, host: str, home: str) -> Snapshot:
    """Return *snapshot* without user, host, home, addresses, UUIDs, tokens and credentials."""
    redactor = _redactor(user=user, host=host, home=home)
    return replace(
        snapshot,
        probes={name: redactor.run(run) for name, run in snapshot.probes.items()},
        options=cast("Mapping[str, object]", redactor.value(snapshot.options)),
        redacted=True,
    )


def _redactor(*, user: str, host: str, home: str) -> _Redactor:
    hosts = load("secrets")["common"]["hosts"].split()
    return _Redactor(
        user="" if _is_common(user) else user,
        host="" if host.lower() in hosts or _means_something(host or "localhost") else host,
        home="" if home in ("", "/", "/root") else home.rstrip("/\\"),
    )


def words(*, user: str, host: str, home: str) -> Callable[[str], str]:
    """Return what takes the same out of a text, one after the other, with the same stand-ins."""
    return _redactor(user=user, host=host, home=home).text


def here(environ: Mapping[str, str]) -> dict[str, str]:
    """Return user, host and home of this machine, as :func:`redact` takes them."""
    import socket  # noqa: PLC0415 - only where a snapshot is written

    user = environ.get("USER") or environ.get("USERNAME") or environ.get("LOGNAME") or ""
    return {"user": user, "host": socket.gethostname(), "home": os.path.expanduser("~")}  # noqa: PTH111
