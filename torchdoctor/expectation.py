"""Read what ``--expect`` says: cpu, cuda, cuda>=12.6, rocm, gpus>=2, or a file of such words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from torchdoctor.facts import Accelerator, Expectation, Profile
from torchdoctor.model import DoctorError

FORMS = "cpu, cuda, cuda>=12.6, rocm, xpu, mps, gpus>=2, or a file with one of them a line"
_WORD = re.compile(r"(cpu|cuda|rocm|xpu|mps|gpus)(?:\s*>=\s*(\d+(?:\.\d+)?))?")


def read(words: Iterable[str]) -> Expectation:
    """Return the expectation that *words* add up to; a word may name a file.

    Raises:
        DoctorError: a word is none of the forms, or two contradict each other.

    """
    expected = Expectation()
    for word, file in _all(words):
        expected = _with(expected, word, file)
    return expected


def words(expected: Expectation) -> tuple[str, ...]:
    """Return the words that :func:`read` takes for *expected*."""
    least = f">={expected.cuda_at_least}" if expected.cuda_at_least else ""
    kind = (f"{expected.accelerator}{least}",) if expected.accelerator else ()
    return (*kind, f"gpus>={expected.gpus_at_least}") if expected.gpus_at_least else kind


def kept(options: Mapping[str, object]) -> Expectation:
    """Return what a snapshot's *options* say was expected of its machine.

    They come from elsewhere: no file is read for them, and what is not understood is left out.
    """
    kept_words = options.get("expect")
    known = kept_words if isinstance(kept_words, list) else []
    try:
        expected = read(w for w in known[:9] if isinstance(w, str) and _WORD.fullmatch(w))
    except DoctorError:
        expected = Expectation()
    return under(expected, options)


def under(
    expected: Expectation, options: Mapping[str, object], asked: str | None = None
) -> Expectation:
    """Return *expected* under the profile *asked* for, or the one that a snapshot was made for."""
    profile = asked or options.get("profile")
    if profile not in get_args(Profile):
        return expected
    return replace(expected, profile=cast("Profile", profile))


def _all(words: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    for word in words:
        path = Path(word)
        if _WORD.fullmatch(word.strip()) or not path.is_file():
            yield from ((part.strip(), None) for part in word.split(","))
            continue
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DoctorError(
                f"{word} cannot be read as an expectation: {error}; it holds {FORMS}.", file=word
            ) from error
        yield from ((line.strip(), word) for line in lines if line.strip() and line[0] != "#")


def _with(expected: Expectation, word: str, file: str | None) -> Expectation:
    match = _WORD.fullmatch(word)
    kind, least = (match[1], match[2] or "") if match else ("", "")
    if match is None or (least and kind not in ("cuda", "gpus")) or (kind == "gpus" and not least):
        where = f" (in {file})" if file else ""
        raise DoctorError(
            f"--expect does not know {word!r}{where}; it takes {FORMS}.", file=file, kind="usage"
        )
    if kind == "gpus":
        return replace(expected, gpus_at_least=int(float(least)))
    if expected.accelerator not in (None, kind):
        raise DoctorError(
            f"--expect {expected.accelerator} and --expect {kind} exclude each other; keep one.",
            file=file,
            kind="usage",
        )
    return replace(
        expected,
        accelerator=cast("Accelerator", kind),
        cuda_at_least=least or expected.cuda_at_least,
    )
