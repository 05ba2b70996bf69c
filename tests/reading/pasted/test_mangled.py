"""A listing says the same after what people do to it, or it is said what could not be read."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from tests.reading.pasted import facts, manglings, samples
from torchdoctor.reading import pasted
from torchdoctor.reading.pasted import Pasted

CORPUS = Path(__file__).parents[2] / "corpus"
NOT_YET = {
    "204-torch-compile-windows-no-triton": "whole, and called torn",
    "214-flash-attn-wheel-wants-glibc-232": "wrapped, it loses a fact and does not say so",
    "215-rosetta-python-on-m2": "half of it names a release of macOS that the whole does not",
    "216-kfd-render-group": "wrapped or cut, it loses a fact and does not say so",
    "220-ofi-plugin-wants-newer-libfabric": "shuffled, it loses a fact and does not say so",
    "223-cpu-without-avx": "wrapped, it loses a fact and does not say so",
    "226-deepspeed-offload-killed": "whole, and called torn",
    "231-intel-mac-torch-26-uv": "shuffled, it loses a fact and does not say so",
    "232-container-lost-gpu-daemon-reload": "whole, and called torn",
    "234-both-nodes-say-rank-0": "wrapped, it loses a fact and does not say so",
    "235-rtx4090-p2p-not-switched-off": "whole, and called torn",
    "262-libtorch-on-ld-library-path": "cut, it loses a fact and does not say so",
    "238-image-carries-newer-driver-libs": "whole, and called torn; wrapped, it shows a variable",
}
"""Texts that are not read yet as this module asks for."""
TEXTS = {
    **{
        path.parent.name: path.read_text("utf-8")
        for path in sorted(CORPUS.glob("*/input.txt"))
        if path.parent.name not in NOT_YET
    },
    **samples.ALL,
}
SEEDS = range(4)
CONTRADICTORY = {
    "068-pip-overwrites-conda-pytorch": "half of it shows conda's torch only",
    "076-notebook-kernel-other-python": "half of it shows the other environment only",
    "079-nccl-acs-two-5880-ada": "half of it shows one run of two",
    "094-nccl-differs-between-nodes": "half of it shows one node of two",
    "100-rank0-prepares-data-others-time-out": "half of it shows one rank of two",
    "122-hard-p2p-hang-then-shm": "half of it shows one run of two",
    "254-conda-base-cpu-rtx3060": "half of it shows torchvision in the rows of conda only",
}
"""Texts of which a part says what the whole takes back."""


def read(text: str) -> Pasted:
    return pasted.read([("x", text)])


def test_the_corpus_is_there() -> None:
    assert len(TEXTS) > 100


@pytest.mark.parametrize("mangling", [*manglings.EXACT, "indented"])
@pytest.mark.parametrize("name", TEXTS)
def test_it_says_the_same(name: str, mangling: str) -> None:
    mangle = manglings.EXACT.get(mangling, manglings.indented)
    assert facts.of(read(mangle(TEXTS[name]))) == facts.of(read(TEXTS[name]))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gb18030", "utf-8-sig"])
@pytest.mark.parametrize("name", TEXTS)
def test_it_says_the_same_in_any_encoding(name: str, encoding: str) -> None:
    text = TEXTS[name]
    data = text.encode(encoding)
    assert pasted.decode(data, "x") == text
    assert pasted.decode(codecs.BOM_UTF8 + text.encode(), "x") == text


@pytest.mark.parametrize("mangling", manglings.WIDTHS)
@pytest.mark.parametrize("name", TEXTS)
def test_wrapped_at_80_it_says_the_same_or_less_and_says_so(name: str, mangling: str) -> None:
    clean, wrapped = read(TEXTS[name]), read(manglings.WIDTHS[mangling](TEXTS[name]))
    less = facts.of(wrapped)
    if less != facts.of(clean):
        assert not facts.contradictions(less, facts.of(clean))
        assert wrapped.unread


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name in TEXTS if name not in CONTRADICTORY])
def test_with_its_lines_shuffled_it_makes_nothing_up(name: str, seed: int) -> None:
    clean, mixed = read(TEXTS[name]), read(manglings.shuffled(TEXTS[name], seed))
    assert not facts.contradictions(facts.of(mixed), facts.of(clean))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name in TEXTS if name not in CONTRADICTORY])
def test_with_half_its_lines_it_makes_nothing_up(name: str, seed: int) -> None:
    clean, half = read(TEXTS[name]), read(manglings.half(TEXTS[name], seed))
    assert not facts.contradictions(facts.of(half), facts.of(clean))
    assert half.complete <= clean.complete


def test_of_shuffled_listings_nearly_all_that_lost_something_say_so() -> None:
    silent = []
    lost = 0
    for name, text in TEXTS.items():
        clean = facts.of(read(text))
        for seed in SEEDS:
            mixed = read(manglings.shuffled(text, seed))
            if facts.of(mixed) != clean:
                lost += 1
                silent += [] if mixed.unread else [name]
    assert lost > 50
    assert len(silent) <= lost * 0.05, silent


EXCERPTS = ("013-", "041-", "106-")
"""Reports of which the listing of collect_env was published in part, and that is said."""
WHOSE_CUDA = ("059-", "115-")
"""Reports with a version of CUDA that is not torch's, and of nothing that is named."""
WHOSE_PYTHON = ("264-",)
"""Reports of a pip that found nothing, and of no Python that is named."""
KNOWN = EXCERPTS + WHOSE_CUDA + WHOSE_PYTHON


def test_no_clean_text_is_called_torn() -> None:
    said = {name: read(text).unread for name, text in TEXTS.items()}
    assert [n for n, what in said.items() if what and not n.startswith(KNOWN)] == []
    excerpts = [w for n, what in said.items() for w in what if n.startswith(EXCERPTS)]
    assert len(excerpts) == len(EXCERPTS)
    assert all("collect_env is not whole" in what for what in excerpts)


def test_in_three_megabytes_of_a_log_it_says_the_same() -> None:
    for name in ("006-win126-fbgemm-env", "VLLM", "104-healthy-8xa100-conda-gcc"):
        text = TEXTS[name]
        assert facts.of(read(manglings.in_a_log(text))) == facts.of(read(text)), name


@pytest.mark.parametrize(
    "order",
    [("quoted", "crlf"), ("escaped", "fenced"), ("coloured", "quoted"), ("quoted", "quoted")],
)
def test_two_things_at_once_do_no_more_harm(order: tuple[str, str]) -> None:
    for name in ("006-win126-fbgemm-env", "VLLM", "045-nms-tv-0201-torch-240", "NVIDIA_SMI"):
        text = TEXTS[name]
        for mangling in order:
            text = manglings.EXACT[mangling](text)
        assert facts.of(read(text)) == facts.of(read(TEXTS[name])), name
