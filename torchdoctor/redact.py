"""Take out of a snapshot what is nobody's business: who, where, and every secret.

Stand-ins are consistent: the same GPU has the same stand-in wherever it is named, and a path below
the home folder stays below it, so that a snapshot means the same after redaction as before. What
looks like an address but is the version of a package (nvidia-curand 10.3.5.147) is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

from torchdoctor.child import Run, Stream
from torchdoctor.snapshot import Snapshot

GONE = "<redacted>"

_COMMON_USERS = frozenset(
    (
        "root",
        "user",
        "admin",
        "administrator",
        "ubuntu",
        "debian",
        "centos",
        "ec2-user",
        "runner",
        "vagrant",
        "jovyan",
        "app",
        "pi",
        "default",
        "guest",
        "nobody",
        "public",
        "shared",
    )
)
_COMMON_HOSTS = frozenset(
    (
        "localhost",
        "localhost.localdomain",
        "docker-desktop",
        "buildkitsandbox",
    )
)
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
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|AUTH", re.IGNORECASE)

_URL_CREDENTIALS = re.compile(r"(?<=://)[^/\s:@'\"]+(?::[^/\s@'\"]*)?@")
_QUERY_SECRET = re.compile(
    r"(?i)([?&;\s](?:[a-z_]*(?:token|secret|password|passwd|api_?key|signature))=)[^&\s'\"]+"
)
_TOKEN = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|hf_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}"
    r"|sk-[\w-]{16,}|xox[abprs]-[\w-]{10,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}"
    r"|A(?:KIA|SIA)[0-9A-Z]{16}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_UUID = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_MAC = re.compile(r"\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b")
_IPV4 = re.compile(r"(?<![\w.=<>~-])(?:\d{1,3}\.){3}\d{1,3}(?![\w.-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{0,4}(?![\w:.])")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_HOMES = re.compile(r"(?i)((?:/home|/Users|[a-z]:[\\/]+Users)[\\/]+)([^\\/\s'\":;]+)")
_KEPT_ADDRESSES = ("127.", "0.0.0.0", "255.")  # noqa: S104 - nothing is bound to it


@dataclass(slots=True)
class _Redactor:
    """Replaces in text what one machine's snapshot must not tell."""

    user: str
    host: str
    home: str
    stand_ins: dict[str, str] = field(default_factory=dict)

    def text(self, text: str, *, versions: bool = False) -> str:
        """Return *text* without the secrets; *versions* says that numbers in it are versions."""
        if self.home:
            text = text.replace(self.home, self._home_stand_in())
        text = _HOMES.sub(self._in_home, text)
        if self.user:
            text = self._user().sub("user", text)
        if self.host:
            text = re.sub(rf"(?<![\w-]){re.escape(self.host)}(?![\w-])", "host", text)
        text = _URL_CREDENTIALS.sub(f"{GONE}@", text)
        text = _QUERY_SECRET.sub(rf"\1{GONE}", text)
        text = _TOKEN.sub(GONE, text)
        text = _UUID.sub(lambda m: self._number(m, "00000000-0000-0000-0000-{:012d}"), text)
        text = _MAC.sub("00:00:00:00:00:00", text)
        text = _EMAIL.sub(GONE, text)
        if not versions:
            text = _IPV4.sub(self._address, text)
            text = _IPV6.sub(self._address6, text)
        return text

    def value(self, value: object, key: str = "") -> object:
        """Return *value*, JSON of any depth, redacted; keys that are paths are redacted too."""
        if isinstance(value, str):
            if key and _SECRET_NAME.search(key) and value:
                return GONE
            return self.text(value, versions=key in _VERSIONS)
        if isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, str(k)) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        return value

    def run(self, run: Run) -> Run:
        """Return *run* redacted."""
        return replace(
            run,
            command=tuple(self.text(word) for word in run.command),
            reason=self.text(run.reason),
            stdout=self._stream(run.stdout),
            stderr=self._stream(run.stderr),
            data=cast("Mapping[str, object]", self.value(run.data)),
        )

    def _stream(self, stream: Stream) -> Stream:
        text = self.text(stream.text)
        return stream if text == stream.text else Stream(text, stream.length, "")

    def _home_stand_in(self) -> str:
        if "\\" in self.home or self.home[1:2] == ":":
            return r"C:\Users\user"
        return "/Users/user" if self.home.startswith("/Users/") else "/home/user"

    def _in_home(self, match: re.Match[str]) -> str:
        common = match[2].lower() in _COMMON_USERS
        return match[0] if common else f"{match[1]}user"

    def _user(self) -> re.Pattern[str]:
        # A user's name is a word in itself too often: only as a part of a path or before @.
        name = re.escape(self.user)
        return re.compile(rf"(?<=[\\/=:]){name}(?=[\\/@:;,'\"\s]|$)|\b{name}(?=@)|^{name}$")

    def _number(self, match: re.Match[str], form: str) -> str:
        known = match[0].lower()
        return self.stand_ins.setdefault(known, form.format(len(self.stand_ins) + 1))

    def _address(self, match: re.Match[str]) -> str:
        address = match[0]
        if address.startswith(_KEPT_ADDRESSES) or any(int(p) > 255 for p in address.split(".")):  # noqa: PLR2004
            return address
        return self._number(match, "192.0.2.{:d}")

    def _address6(self, match: re.Match[str]) -> str:
        address = match[0]
        if "::" not in address and address.count(":") != 7:  # noqa: PLR2004
            return address  # a time, a path list
        return address if address in ("::", "::1") else self._number(match, "2001:db8::{:x}")


def redact(snapshot: Snapshot, *, user: str, host: str, home: str) -> Snapshot:
    """Return *snapshot* without user, host, home, addresses, UUIDs, tokens and credentials."""
    redactor = _Redactor(
        user="" if user.lower() in _COMMON_USERS else user,
        host="" if host.lower() in _COMMON_HOSTS else host,
        home="" if home in ("", "/", "/root") else home.rstrip("/\\"),
    )
    return replace(
        snapshot,
        probes={name: redactor.run(run) for name, run in snapshot.probes.items()},
        options=cast("Mapping[str, object]", redactor.value(snapshot.options)),
        redacted=True,
    )


def here(environ: Mapping[str, str]) -> dict[str, str]:
    """Return user, host and home of this machine, as :func:`redact` takes them."""
    import socket  # noqa: PLC0415 - only where a snapshot is written

    user = environ.get("USER") or environ.get("USERNAME") or environ.get("LOGNAME") or ""
    return {"user": user, "host": socket.gethostname(), "home": os.path.expanduser("~")}  # noqa: PTH111
