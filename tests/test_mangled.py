"""A report that was torn on its way here gives the same findings, or what was lost is said."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from tests import corpus_score
from tests.reading.pasted import manglings
from torchdoctor import inputs
from torchdoctor.facts import Expectation, Facts
from torchdoctor.reading import machine
from torchdoctor.run import run

CASES = {case.id: case for case in corpus_score.cases()}
SEEDS = (1, 2, 3, 4)
WAYS: dict[str, Callable[[str], str]] = {
    **{f"half its lines {n}": partial(manglings.half, seed=n) for n in SEEDS},
    **{f"shuffled {n}": partial(manglings.shuffled, seed=n) for n in SEEDS},
    "quoted": manglings.quoted,
    "fenced": manglings.fenced,
    "wrapped at 80": manglings.wrapped,
    "tabs as spaces": manglings.tabs,
    "CRLF": manglings.crlf,
    "ANSI colours": manglings.coloured,
    "HTML escapes": manglings.escaped,
    "in a log": manglings.in_a_log,
}
WHOLE_BY_ITSELF = {
    ("081-p2p-broken-by-driver-545", "half its lines 2"): (
        "a run that hangs, and works without P2P, is left: a comparison that lacks nothing"
    ),
    **dict.fromkeys(
        (
            ("255-a6000-docker-iommu", "half its lines 1"),
            ("255-a6000-docker-iommu", "half its lines 3"),
        ),
        "NCCL's log of a start is left, without the words that it hangs: nothing is wrong in it",
    ),
    ("115-hard-cpu-build-and-newer-torchvision", "half its lines 2"): (
        "what torchvision asks of torch is left, without what torch says of its build"
    ),
    **dict.fromkeys(
        (
            ("206-triton-windows-35-on-torch-28", "half its lines 2"),
            ("206-triton-windows-35-on-torch-28", "half its lines 4"),
        ),
        "what triton lacks is left, without the release of torch or that of triton",
    ),
    ("216-kfd-render-group", "half its lines 3"): (
        "a container is started and one GPU listed, without what rocminfo may not open"
    ),
    ("218-istio-sidecar-takes-rendezvous", "half its lines 2"): (
        "a closed connection is left, without the container that stands before every pod"
    ),
    ("257-container-without-ip-interface", "half its lines 3"): (
        "a start without InfiniBand is left, which is none of a fault"
    ),
    ("258-length-tensor-on-cpu", "half its lines 4"): (
        "calls that one rank was in are left, without the error that ended it"
    ),
    ("260-uv-torch251-python313-windows", "half its lines 3"): (
        "what uv refuses is left, without the Python that it is for"
    ),
    ("262-libtorch-on-ld-library-path", "half its lines 2"): (
        "what a library of that name lacks is left, without the torch that was meant"
    ),
    ("265-pyslice-unpack-python-360", "half its lines 4"): (
        "the Python is left, without what it lacks"
    ),
}
"""What is left of a report by chance and reads as a report of something else."""
SAID_OF_CLEAN = {
    "013-win126-shm-user-install": "its collect_env ends at 'Is CUDA available'",
    "040-cuda-visible-devices-2-of-1": "two runs, of which one saw the GPU",
    "041-uvm-stale-after-suspend": "its collect_env ends at the version of Python",
    "059-xformers-says-cpu-torch": "'CUDA: 12.2.79' beside a build for no GPU",
    "094-nccl-differs-between-nodes": "listings of two nodes",
    "106-healthy-blackwell-wsl": "its collect_env lacks Python, toolkit and driver",
    "115-hard-cpu-build-and-newer-torchvision": "'CUDA version: 12.5' beside a build for no GPU",
    "264-cu131-index-does-not-exist": "pip found no torch, and its Python is not named",
}
"""Reports as they were published of which something truly cannot be read, and what."""
NOTHING = Facts(expectation=Expectation())


def facts_of(text: str) -> Facts:
    return machine.read(inputs.of_text(text), Expectation())


def findings(facts: Facts) -> list[str]:
    outcomes = run(corpus_score.CHECKS, facts)
    return sorted({f.name for o in outcomes for f in o.findings if f.severity != "note"})


@cache
def clean(name: str) -> tuple[str, tuple[str, ...]]:
    text = CASES[name].file.read_text("utf-8")
    return text, tuple(findings(facts_of(text)))


def tiered(way: str) -> object:
    """Return *way* as a parameter; other chances of the same tear are for the slow tier."""
    again = way.endswith(tuple(map(str, SEEDS[1:])))
    return pytest.param(way, marks=[pytest.mark.slow] if again else [])


@pytest.mark.parametrize("way", [tiered(way) for way in WAYS])
@pytest.mark.parametrize("name", CASES)
def test_a_mangled_report_says_the_same_or_says_what_was_lost(name: str, way: str) -> None:
    if (name, way) in WHOLE_BY_ITSELF:
        pytest.skip(WHOLE_BY_ITSELF[name, way])
    text, expected = clean(name)
    facts = facts_of(WAYS[way](text))
    if facts == NOTHING:
        return  # a text that says nothing is refused, in one line
    assert facts.remarks or tuple(findings(facts)) == expected


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_said_to_be_lost_of_a_report_as_it_was_published(name: str) -> None:
    remarks = facts_of(clean(name)[0]).remarks
    assert bool(remarks) == (name in SAID_OF_CLEAN), remarks


def test_the_exceptions_are_of_the_corpus() -> None:
    assert SAID_OF_CLEAN.keys() <= CASES.keys()
    assert {name for name, _ in WHOLE_BY_ITSELF} <= CASES.keys()
    assert {way for _, way in WHOLE_BY_ITSELF} <= WAYS.keys()


def test_of_the_ten_ways_none_makes_up_what_a_healthy_report_does_not_say() -> None:
    made_up = [
        (name, way, found)
        for name, case in CASES.items()
        if case.family == "healthy"
        for way, mangle in WAYS.items()
        if (found := findings(facts_of(mangle(clean(name)[0]))))
    ]
    assert made_up == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "gbk", "utf-8-sig"])
@pytest.mark.parametrize("name", CASES)
def test_a_report_in_another_encoding_says_the_same(
    name: str, encoding: str, tmp_path: Path
) -> None:
    data = clean(name)[0].encode(encoding, "replace")
    file = tmp_path / "pasted.txt"
    file.write_bytes(data)
    facts = machine.read(inputs.read([str(file)]), Expectation())
    assert findings(facts) == findings(facts_of(data.decode(encoding)))
