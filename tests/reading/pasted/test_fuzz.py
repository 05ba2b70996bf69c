"""No text makes a reader fail, and the time it takes grows with the length alone."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reading.pasted import samples
from tests.reading.pasted.test_mangled import TEXTS
from torchdoctor.facts import Facts
from torchdoctor.model import DoctorError
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted import READERS, lines, normalise, unread

LINES = sorted({line for text in TEXTS.values() for line in text.split("\n") if line.strip()})
WORDS = sorted({word for line in LINES for word in line.split() if len(word) < 60})
NASTY = (
    "",
    "\0",
    "\x1b[",
    "|",
    '"',
    "'",
    "\\",
    "(",
    "[",
    "{",
    "=" * 9,
    "9" * 30,
    "é",
    "\u3000",
    "\ufffd",
)
MUTATED = 100_000


def mutate(chance: random.Random, line: str) -> str:
    """Return *line* with one thing changed that could matter to a reader."""
    at = chance.randrange(len(line) + 1)
    match chance.randrange(6):
        case 0:
            return line[:at] + line[at + chance.randrange(1, 9) :]
        case 1:
            return line[:at] + chance.choice(NASTY) + line[at:]
        case 2:
            return line[:at] + chance.choice(WORDS) + line[at:]
        case 3:
            return line[:at] + line[:at]
        case 4:
            words = line.split(" ")
            chance.shuffle(words)
            return " ".join(words)
        case _:
            return line.translate({ord(str(d)): str(chance.randrange(10)) for d in range(10)})


text_lines = st.lists(
    st.one_of(st.sampled_from(LINES), st.text(max_size=120), st.sampled_from(NASTY))
    | st.builds(
        lambda line, seed: mutate(random.Random(seed), line),  # noqa: S311 - repeatable
        st.sampled_from(LINES),
        st.integers(0, 1 << 30),
    ),
    max_size=30,
)
a_few_hundred = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("name", READERS)
@a_few_hundred
@given(text_lines)
def test_a_reader_bears_any_lines(name: str, found: list[str]) -> None:
    parts = lines.read("\n".join(found))
    said = list(READERS[name](parts))
    assert all(one.layout and one.fact for one in said)


@a_few_hundred
@given(text_lines)
def test_all_of_it_becomes_facts_or_nothing(found: list[str]) -> None:
    read = pasted.read([("a", "\n".join(found)), ("b", "\n".join(reversed(found)))])
    Facts(**read.fields)  # type: ignore[arg-type]
    assert all(list(unread.read(lines.read("\n".join(found)))))


@a_few_hundred
@given(st.binary(max_size=400))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    message = ""
    try:
        text = pasted.decode(data, "x")
    except DoctorError as error:
        message = error.message
    else:
        pasted.read([("x", text)])
    assert "\n" not in message


@a_few_hundred
@given(st.text(max_size=4000))
def test_any_text_is_cleaned_and_kept_whole_when_it_is_short(text: str) -> None:
    assert normalise.shorten(text) == text
    assert len(lines.read(text)) <= text.count("\n") + len(text) + 1


def seconds(reader: object, parts: Sequence[lines.Line]) -> float:
    """Return the least time of three that *reader* takes."""
    times = []
    for _ in range(3):
        start = time.process_time()
        list(reader(parts))  # type: ignore[operator]
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_hundred_thousand_mutated_inputs_raise_nothing(name: str) -> None:
    chance = random.Random(name)  # noqa: S311 - repeatable
    reader = READERS[name]
    blocks = [text.split("\n") for text in TEXTS.values()]
    for _ in range(MUTATED // 10):
        block = list(chance.choice(blocks))
        # Ten mutated inputs in one go, apart from each other by an empty line.
        several = []
        for _ in range(10):
            at = chance.randrange(len(block))
            near = block[max(0, at - 3) : at + 6]
            near[chance.randrange(len(near))] = mutate(chance, chance.choice(near))
            several += [*near, ""]
        list(reader(lines.read("\n".join(several))))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*READERS, "everything"])
@pytest.mark.parametrize(
    "unit",
    [
        "A" * 3000,
        "a=b " * 700,
        "C:\\a\\" * 600,
        "/a" * 1500,
        '("[{' * 700,
        "1.2+3 " * 500,
        "| a | 1 ",
    ],
)
def test_twice_the_text_takes_twice_the_time(name: str, unit: str) -> None:
    def run(count: int) -> float:
        text = "\n".join([unit, *LINES] * count)
        if name == "everything":
            return seconds(lambda one: [pasted.read([("x", one)])], text)  # type: ignore[arg-type]
        return seconds(READERS[name], lines.read(text))

    small, large = run(6), run(24)
    assert large < max(small, 0.01) * 4 * 4, (small, large)


@pytest.mark.slow
def test_one_endless_line_takes_time_by_its_length() -> None:
    for unit in ("A", "1.", "=", '"', "/a", "C:\\a", "(", "| a ", "ab ", "A=b "):
        small, large = (
            seconds(lambda one: [pasted.read([("x", one)])], unit * count)  # type: ignore[arg-type]
            for count in (50_000 // len(unit), 400_000 // len(unit))
        )
        assert large < max(small, 0.02) * 8 * 4, (unit, small, large)


def test_the_samples_are_all_read() -> None:
    assert len(samples.ALL) > 20
    assert all(pasted.read([("x", text)]).understood for text in samples.ALL.values())
