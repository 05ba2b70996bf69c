"""What in a text is nobody's business, by what it looks like: patterns, and what is no secret.

Pure functions from text to text; who somebody is, and stand-ins that have to be the same all over a
snapshot, are redact.py's. The issuers' patterns and the names are data: tables/secrets.toml.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from torchdoctor.tables import load

GONE = "<redacted>"
LONG = 20
"""Letters and digits in a row that may be a secret, where nothing else says so."""
WORDS = 3.5
"""Letters or digits of one kind that come in a row: in words more, in what is random fewer."""
LONGEST_NAME = 60
_TRIVIAL = re.compile(
    r"-?\d{1,6}(?:\.\d{1,6})?|on|off|true|false|yes|no|none|null|auto|default|.{0,2}", re.IGNORECASE
)
# A value: in quotes, escaped or not, or up to what ends a word.
_VALUE = r"""(?P<open>\\*["'])(?P<quoted>.*?)(?P=open)|(?P<bare>[^\s"'<>|,;&)\]}]+)"""
_NAMED = (
    rf"(?P<name>[A-Za-z_][\w.-]{{1,{LONGEST_NAME}}})"
    r"(?P<between>(?:\\*[\"'])?[ \t]{0,3}(?:=>|=(?!=)|:(?![:/])(?!\\(?!\\*[\"'])))[ \t]{0,3})"
)
_SETTING = re.compile(
    rf"{_NAMED}(?P<scheme>(?:bearer|basic|digest|token|apikey)[ \t]+)?(?:{_VALUE})", re.IGNORECASE
)
_NAME_OF_SETTING = re.compile(_NAMED)
_OPTION = re.compile(
    rf"(?<![\w-])(?P<name>--?[A-Za-z][\w-]{{1,{LONGEST_NAME}}})(?P<between>[ \t]+|=)"
    rf"(?!-)(?:{_VALUE})"
)
_SAID = re.compile(
    r"\b(?P<name>password|passwd|passphrase|pwd)(?P<between>[ \t]+(?:is[ \t]+)?)"
    r"(?P<open>\\*[\"'])(?P<quoted>.*?)(?P=open)",
    re.IGNORECASE,
)
_SET = re.compile(
    r"(?P<name>\bENV[ \t]+[A-Z][A-Z0-9_]{2,}|\bsetenv[ \t]+\w{3,}|\$env:\w{3,})"
    rf"(?P<between>[ \t]+=?[ \t]*|=)(?:{_VALUE})"
)
_LOGIN = re.compile(r"(?<![\w-])(-u|--user|--proxy-user)([ \t=]+)[^\s:\"']+:[^\s\"']+")
_SERIAL = re.compile(
    r"(?i)(serial(?:[ _-]?(?:number|num|no|short|id))*\\*[\"']?[ \t]*[:=#]?[ \t]*\\*[\"']?)"
    r"(?-i:(?=[A-Z-]*\d)[A-Z0-9-]{6,}|(?<=[:=\"' ])[A-Z][A-Z0-9-]{6,}(?![\w.]))"
)
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s\"'<>|]+", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+@")
_QUERY = re.compile(r"([?&;#])([\w.-]+)=([^&\s;#'\"]+)")
_CHANNEL_TOKEN = re.compile(r"(?<=/t/)[^/\s]{6,}(?=/)")
_RUN = re.compile(r"_{1,3}Z\w+|\?[\w@?$]{8,}|[A-Za-z0-9]{16,}")
_HASH = re.compile(
    r"(?:git|commit|sha\d*|md5|blake\w*|hash|rev|revision|digest|version)\w*"
    r"\\*[\"']?\s*[:=@]{0,2}\s*\\*[\"']?(?:sha\d+[:=])?$",
    re.IGNORECASE,
)
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:[0-9a-f]{32,}|[0-9A-F]{32,})(?![A-Za-z0-9])")
_ARMOUR = re.compile(r"(-----BEGIN [^-]*-----)([\s\S]*?)(-----END [^-]*-----)?")
_BODY = re.compile(r"\\+[nr]|\S")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def tokens(text: str) -> str:
    """Return *text* without what issuers, and keys in armour, are known by; it keeps its lines."""
    return _tokens().sub(_of_token, text)


def _of_token(match: re.Match[str]) -> str:
    armour = _ARMOUR.fullmatch(match[0])
    if armour is None:
        return GONE
    begin, body, end = armour.groups(default="")
    # As long and as many lines: what stands before and after it stays as far apart.
    hidden = _BODY.sub(lambda part: part[0] if len(part[0]) > 1 else "x", body)
    return f"{begin}{hidden}{end}"


def settings(text: str) -> str:
    """Return *text* without the values of settings, options and variables that are secrets.

    A setting is one by its name; a variable also where its name is unknown.
    """
    text = _LOGIN.sub(rf"\1\2{GONE}", text)
    text = _SET.sub(_value_of(variable=True), text)
    text = _OPTION.sub(_value_of(variable=False), text)
    text = _SAID.sub(_value_of(variable=False), text)
    text = _settings(text)
    return _SERIAL.sub(rf"\1{GONE}", text)


def urls(text: str) -> str:
    """Return *text* with URLs that let nobody in."""
    return _URL.sub(_plain_url, text) if "://" in text else text


def random_words(text: str, long: int = LONG) -> str:
    """Return *text* without runs of letters and digits that look drawn by lot.

    Names of symbols, which compilers have mangled, stay, and so does the hash of something public.
    """

    def stand_in(match: re.Match[str]) -> str:
        word = match[0]
        return GONE if word[0] not in "_?" and looks_random(word, long) else word

    def hexadecimal(match: re.Match[str]) -> str:
        return match[0] if _HASH.search(text[: match.start()][-40:]) else GONE

    text = _HEX.sub(hexadecimal, text)
    return _RUN.sub(stand_in, text)


def looks_random(word: str, long: int = LONG) -> bool:
    """Tell whether letters and digits in *word* follow each other as if drawn by lot."""
    if len(word) < long or _HEX.fullmatch(word):
        return False
    return len(word) < WORDS * len(_PARTS.findall(word))


@cache
def is_secret(name: str) -> bool:
    """Tell whether the *name* of a setting says that its value is a secret."""
    parts = [part.lower() for part in _PARTS.findall(name[: 2 * LONGEST_NAME])]
    alone, together = _names()
    return not alone.isdisjoint(parts) or any(f"{a} {b}" in together for a, b in pairwise(parts))


@cache
def is_unknown_variable(name: str) -> bool:
    """Tell whether *name* is that of a variable of which nothing is known."""
    exact, families = _variables()
    return (
        len(name) > 2  # noqa: PLR2004 - X=1 is arithmetic
        and re.fullmatch(r"[A-Z][A-Z0-9_]*", name) is not None
        and name not in exact
        and not name.startswith(families)
    )


def is_version(text: str, start: int) -> bool:
    """Tell whether a number with four parts at *start* is said to be a version."""
    return _before_version().search(text[max(0, start - 80) : start]) is not None


# ---- the values of settings ----------------------------------------------------------------------


def _settings(text: str) -> str:
    """Return *text* without secret values. A setting may be the value of another one."""
    hide = _value_of(variable=True)
    made: list[str] = []
    at = 0
    for name in _NAME_OF_SETTING.finditer(text):
        if name.start() < at:
            continue
        whole = _SETTING.match(text, name.start()) if _may_hide(name["name"]) else None
        if whole is not None:
            made += [text[at : whole.start()], hide(whole)]
            at = whole.end()
    return "".join([*made, text[at:]])


def _may_hide(name: str) -> bool:
    return is_secret(name) or is_unknown_variable(name)


def _value_of(*, variable: bool) -> Callable[[re.Match[str]], str]:
    def stand_in(match: re.Match[str]) -> str:
        name = match["name"].split()[-1].removeprefix("$env:")
        value = match["quoted"] or match.groupdict().get("bare") or ""
        between = match["between"]
        known = is_secret(name) or (
            variable
            and is_unknown_variable(name)
            # "ERROR: text" is no variable; 'NAME': 'value' is one.
            and (":" not in between or not between.strip().startswith(":"))
        )
        if not known or _TRIVIAL.fullmatch(value) or value.startswith(GONE):
            return match[0]
        opened = match["open"] or ""
        scheme = match.groupdict().get("scheme") or ""
        return f"{match['name']}{between}{scheme}{opened}{GONE}{opened}"

    return stand_in


def _plain_url(match: re.Match[str]) -> str:
    url = _USERINFO.sub(f"{GONE}@", match[0])
    url = _CHANNEL_TOKEN.sub(GONE, url)
    return _QUERY.sub(_plain_query, random_words(url, 16))


def _plain_query(match: re.Match[str]) -> str:
    mark, name, value = match.groups()
    hidden = is_secret(name) or name.lower().startswith("x-amz") or name.lower() == "key"
    return f"{mark}{name}={GONE}" if hidden and value else match[0]


# ---- the table -----------------------------------------------------------------------------------


@cache
def _tokens() -> re.Pattern[str]:
    rows = load("secrets")["token"]
    return re.compile("|".join(rf"(?<![A-Za-z0-9])(?:{row['pattern']})" for row in rows))


@cache
def _names() -> tuple[frozenset[str], frozenset[str]]:
    table = load("secrets")["names"]
    return frozenset(table["alone"]), frozenset(table["together"])


@cache
def _variables() -> tuple[frozenset[str], tuple[str, ...]]:
    table = load("secrets")["variables"]
    return frozenset(table["names"].split()), tuple(table["families"].split())


@cache
def _before_version() -> re.Pattern[str]:
    table = load("secrets")["versions"]
    return re.compile(
        rf"(?:(?<![A-Za-z0-9])(?:{table['before']})[\s\"'=:<>~!,|@(-]*v?"
        rf"|\b{table['words']}[\"']?[\s:=]*[\"']?)$",
        re.IGNORECASE,
    )
