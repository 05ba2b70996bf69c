"""What the probes of Windows say, as facts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.windows.machines import machine, record
from torchdoctor.child import Run
from torchdoctor.facts import DllLoad, Facts, Unknown, Windows
from torchdoctor.inputs import of_text
from torchdoctor.reading import machine as whole
from torchdoctor.reading import windows
from torchdoctor.snapshot import Snapshot

# As a Windows Python 3.11 under Wine answered, with values of a real Windows in its registry.
PROBE: dict[str, Any] = {
    "interpreter": {"include": True, "libs": True, "executable": r"C:\py\python.exe"},
    "system": {
        "EditionID": "ProfessionalN",
        "InstallationType": "Client",
        "CurrentBuild": "22631",
        "UBR": 4317,
        "version": [10, 0, 22631],
    },
    "runtimes": {
        "64 x64": {"Version": "v14.36.32532.00", "Installed": 1},
        "Wow6432Node x64": {"Version": "v14.44.35211.00", "Installed": 1},
        "Wow6432Node x86": {"Version": "v14.29.30139.00", "Installed": 1},
        "32 arm64": {"Version": "v14.51.1.0", "Installed": 0},
    },
    "switches": {"LongPathsEnabled": 1, "SafeDllSearchMode": None},
    "known_dlls": ["kernel32.dll"],
    "policy": {"VerifiedAndReputablePolicyState": 2, "code_integrity": 1 | 4},
    "memory": {"commit_limit": 1 << 34, "commit_available": 1 << 33},
    "errors": {},
    "done": True,
}


def run(data: object) -> Run:
    return Run((), "answered", data=data)  # type: ignore[arg-type]


def read(probe: dict[str, Any] = PROBE, **files: Any) -> Windows:
    runs = {"windows": run(probe)}
    if files:
        runs["windows files"] = run(files)
    known = windows.read(runs)["windows"]
    assert isinstance(known, Windows)
    return known


def test_the_answer_becomes_facts() -> None:
    known = read()
    assert known.registered == {"x64": "14.44.35211.00", "x86": "14.29.30139.00"}
    assert (known.edition, known.build) == ("ProfessionalN Client", 22631)
    assert known.long_paths is True
    assert (known.commit_limit, known.commit_available) == (1 << 34, 1 << 33)
    assert known.policy == {"smart-app-control": "evaluation", "code-integrity": "enforced"}
    assert known.headers is True
    assert isinstance(known.torch, Unknown)


def test_the_dlls_are_judged_with_the_known_dlls_of_that_windows() -> None:
    known = read(record=json.loads(json.dumps(record(machine(vc="14.34")))))
    assert isinstance(known.torch, DllLoad)
    assert known.torch.error == 1114
    assert known.renewed == DllLoad(
        assumed=("the version of C:\\Windows\\System32\\msvcp140.dll is not known",)
    ) or (isinstance(known.renewed, DllLoad) and known.renewed.loads)


def test_a_piece_that_failed_is_unknown_with_its_reason() -> None:
    failed = {**PROBE, "errors": {"memory": "OSError: no"}}
    del failed["memory"]
    known = read(failed)
    assert isinstance(known.commit_limit, Unknown)
    assert "OSError: no" in known.commit_limit.reason
    assert known.build == 22631


def test_dlls_that_were_not_read_are_unknown_with_the_reason() -> None:
    known = read(errors={"record": "PermissionError: denied"})
    assert isinstance(known.torch, Unknown)
    assert "PermissionError: denied" in known.torch.reason


def test_no_probe_no_fact() -> None:
    assert windows.read({}) == {}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([k for k in PROBE if k != "done"]), VALUES)
def test_rubbish_in_a_piece_never_raises(name: str, value: object) -> None:
    read({**PROBE, name: value})


RECORD = json.loads(json.dumps(record(machine("2.4.1", "none"), "2.4.1")))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(RECORD)), VALUES)
def test_rubbish_in_the_record_is_unknown(name: str, value: object) -> None:
    known = read(record={**RECORD, name: value})
    assert isinstance(known.torch, (Unknown, DllLoad))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Microsoft Visual C++ 2015-2022 Redistributable (x64) - 14.36.32532", "14.36.32532"),
        ("Microsoft Visual C++ 2015-2022 Redistributable (x86) - 14.36.32532", None),
    ],
)
def test_a_pasted_list_of_programs_is_the_registry_s_word(text: str, version: str | None) -> None:
    facts = whole.read(of_text(text + "\n"), Facts().expectation)
    if version is None:
        assert not isinstance(facts.windows, Windows) or facts.windows.registered == {
            "x86": "14.36.32532"
        }
    else:
        assert isinstance(facts.windows, Windows)
        assert facts.windows.registered == {"x64": version}


def test_a_snapshot_brings_it_into_the_facts() -> None:
    facts = whole.read(Snapshot("", {"windows": run(PROBE)}), Facts().expectation)
    assert isinstance(facts.windows, Windows)
    assert facts.windows.build == 22631


# ---- what torch really loaded ----

NOTICES = [
    ["loaded", r"C:\Windows\System32\msvcp140.dll"],
    ["loaded", r"C:\site\torch\lib\c10.dll"],
    ["unloaded", r"C:\site\torch\lib\c10.dll"],
    ["loaded", r"C:\site\torch\lib\c10.dll"],
]


def traced(data: object, outcome: str = "answered") -> object:
    runs = {"windows": run(PROBE), "windows trace": Run((), outcome, data=data)}  # type: ignore[arg-type]
    known = windows.read(runs)["windows"]
    assert isinstance(known, Windows)
    return known.loaded


def test_what_windows_told_of_an_import_is_kept_in_its_order() -> None:
    told = {"trace": {"ended": "OSError: x", "notices": NOTICES}, "errors": {}, "done": True}
    assert traced(told) == (NOTICES[0][1], NOTICES[1][1])


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        ({}, "not-started"),
        ({"stage": "trace"}, "timeout"),
        ({"trace": {"notices": []}, "errors": {"notice": "AttributeError: x"}}, "answered"),
        ({"trace": {"notices": "none"}, "errors": {}}, "answered"),
        ({"trace": 7}, "answered"),
    ],
)
def test_what_windows_did_not_tell_is_unknown(data: object, outcome: str) -> None:
    assert isinstance(traced(data, outcome), Unknown)


def test_without_that_probe_nothing_was_looked_at() -> None:
    assert isinstance(read().loaded, Unknown)


# ---- an interpreter that does not start ----


@pytest.mark.parametrize(
    ("signal", "data", "status"),
    [
        ("0xC0000142", {}, "0xC0000142"),
        ("0xC0000142", {"interpreter": {}}, None),
        ("SIGSEGV", {}, None),
        (None, {}, None),
    ],
)
def test_a_python_that_ended_before_it_said_anything_leaves_its_status(
    signal: str | None, data: dict[str, Any], status: str | None
) -> None:
    ended = Run((), "failed", exit_code=0xC0000142, signal=signal, data=data)
    known = windows.read({"windows": ended})["windows"]
    assert isinstance(known, Windows)
    assert known.status == status
