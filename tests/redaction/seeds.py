"""Snapshots with secrets in them, in every place where a snapshot can hold text.

Written without a look at the code that takes them out.
"""

from __future__ import annotations

import base64
import binascii
import json
import random
import re
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

from tests.redaction.secrets import MAKERS, Person, Secret, of_person

OTHER_SYLLABLES = ("bim", "cos", "dra", "fla", "mer", "pio", "ser", "tul", "vin", "wes")
"""None of those that secrets are made of, so that nothing around one looks like another."""
Wrap = Callable[[str, random.Random], str]
SOLO = ("private-key",)
"""Those with lines of their own: they stand in no path and in no URL."""


def word(rng: random.Random) -> str:
    """Return a word that is no secret."""
    return "".join(rng.choice(OTHER_SYLLABLES) for _ in range(3))


def _traceback(text: str, rng: random.Random) -> str:
    name = word(rng)
    return (
        "Traceback (most recent call last):\n"
        f'  File "/srv/app/{name}.py", line {rng.randrange(1, 900)}, in load\n'
        f"    connect({text!r})\n"
        f"RuntimeError: could not use {text}\n"
    )


def _json(text: str, rng: random.Random) -> str:
    return json.dumps({"event": word(rng), "args": [1, {"value": text}], "ok": False})


def _nested(text: str, rng: random.Random) -> str:
    return json.dumps({"body": _json(text, rng)})


def _base64(text: str, rng: random.Random) -> str:
    said = f"{word(rng)} {text} {word(rng)}".encode()
    if rng.random() < 0.3:
        return base64.urlsafe_b64encode(said).decode().rstrip("=")
    return base64.b64encode(said).decode()


def _command(text: str, rng: random.Random) -> str:
    return f"$ python -m torch.distributed.run --x {rng.randrange(9)} train.py {text} --epochs 3"


def _log(text: str, rng: random.Random) -> str:
    return f"2026-03-{rng.randrange(10, 28)} 12:00:0{rng.randrange(9)} INFO worker: got {text}, on"


def _quoted(text: str, rng: random.Random) -> str:
    return f'{word(rng)} "{text}" not found' if rng.random() < 0.5 else f"value='{text}'"


def _url(text: str, rng: random.Random) -> str:
    return f"GET https://api.{word(rng)}.example/v1/x?q={urllib.parse.quote(text, safe='')} 404"


def _path(text: str, rng: random.Random) -> str:
    inner = text.replace("\n", "").replace(" ", "_").replace("/", "_").replace("\\", "_")
    return f"/srv/data/{word(rng)}/{inner}/model.pt: No such file or directory"


def _bare(text: str, rng: random.Random) -> str:
    del rng
    return text


def _tuple(text: str, rng: random.Random) -> str:
    return f"connect to ({text!r}, {rng.randrange(1024, 60000)}) failed"


WRAPS: tuple[Wrap, ...] = (
    _bare, _traceback, _json, _nested, _base64, _command, _log, _quoted, _tuple
)  # fmt: skip
IN_URL = ("github", "gitlab", "huggingface", "ipv4", "email", "jwt", "openai", "other-home")
IN_PATH = ("github", "huggingface", "ipv4", "gpu-uuid", "mac", "email", "wandb", "user")


def wrapped(secret: Secret, rng: random.Random) -> str:
    """Return *secret* inside of something."""
    wraps = [*WRAPS]
    wraps += [_url] if secret.kind in IN_URL else []
    wraps += [_path] if secret.kind in IN_PATH else []
    return rng.choice(wraps)(secret.text, rng)


def drawn(who: Person, rng: random.Random, count: int) -> Iterator[Secret]:
    """Yield *count* secrets, each kind about as often as any other."""
    kinds = list(MAKERS)
    for at in range(count):
        if at % 6 == 0:
            yield of_person(rng, who)
        else:
            yield MAKERS[rng.choice(kinds)](rng)


def seeded(
    document: dict[str, Any], who: Person, rng: random.Random, count: int
) -> tuple[dict[str, Any], list[tuple[Secret, str]]]:
    """Return a copy of the snapshot *document* with secrets, and each with the text around it."""
    grown: dict[str, Any] = json.loads(json.dumps(document))
    put: list[tuple[Secret, str]] = []
    for secret in drawn(who, rng, count):
        text = wrapped(secret, rng)
        place = rng.choice(PLACES)
        place(grown, text, rng)
        put.append((secret, text))
    return grown, put


def _run(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    return document["probes"][rng.choice(sorted(document["probes"]))]  # type: ignore[no-any-return]


def _in_stream(document: dict[str, Any], text: str, rng: random.Random) -> None:
    stream = _run(document, rng)[rng.choice(("stdout", "stderr"))]
    lines = stream["text"].split("\n")
    # Not into the middle of a listing or a traceback, whose meaning would change.
    at = rng.choice((0, len(lines)))
    stream["text"] = "\n".join([*lines[:at], text, *lines[at:]])
    stream["length"] = len(stream["text"].encode())


def _in_command(document: dict[str, Any], text: str, rng: random.Random) -> None:
    _run(document, rng)["command"].append(text)


def _in_data(document: dict[str, Any], text: str, rng: random.Random) -> None:
    """Put *text* under a name that no reader knows, as a newer probe may have written it."""
    data = _run(document, rng)["data"]
    value: object = text
    for _ in range(rng.randrange(3)):
        value = {word(rng): value} if rng.random() < 0.5 else [value, 1]
    data[f"later {word(rng)}"] = value


def _as_key(document: dict[str, Any], text: str, rng: random.Random) -> None:
    _run(document, rng)["data"].setdefault("by name", {})[text] = rng.randrange(9)


def _in_options(document: dict[str, Any], text: str, rng: random.Random) -> None:
    del rng
    document["options"].setdefault("after", []).append(text)


def _in_reason(document: dict[str, Any], text: str, rng: random.Random) -> None:
    run = _run(document, rng)
    run["reason"] = f"{run['reason']} {text}"


PLACES: tuple[Callable[[dict[str, Any], str, random.Random], None], ...] = (
    _in_stream, _in_stream, _in_stream, _in_command, _in_data, _in_data, _as_key, _in_options,
    _in_reason,
)  # fmt: skip


def survivors(text: str, put: list[tuple[Secret, str]]) -> list[tuple[Secret, str, str]]:
    """Return the secrets of *put* that *text* still tells, with the needle and where they stood.

    Looked for as they are, and behind JSON's escapes, percent signs and base64.
    """
    layers = _layers(text)
    return [
        (secret, needle, around)
        for secret, around in put
        for needle in secret.needles[:]
        if any(needle.lower() in layer for layer in layers)
    ]


def _layers(text: str) -> list[str]:
    shown = [text, urllib.parse.unquote(text), text.replace("\\\\", "\\").replace('\\"', '"')]
    shown += _decoded(text)
    return [one.lower() for one in shown]


def _decoded(text: str) -> list[str]:
    """Return what stands in base64 in *text*."""
    found = []
    for match in re.finditer(r"[A-Za-z0-9+/_-]{16,}", text):
        run = match[0].replace("-", "+").replace("_", "/")
        for start in range(4):
            part = run[start:]
            try:
                raw = base64.b64decode(part[: len(part) // 4 * 4])
            except binascii.Error:
                continue
            found.append(raw.decode("utf-8", "replace"))
    return found
