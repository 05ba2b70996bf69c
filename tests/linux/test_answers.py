"""From small libraries on the disk to facts, by way of the record that a snapshot holds."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.linux import lab, torch_start
from tests.linux.lab import Arrangement, Library
from tests.linux.test_startup import CUDART, MACHINERIES, SITE, SPARSE, WRITTEN, but, source
from tests.linux.torch_start import Machinery
from torchdoctor import redact
from torchdoctor.child import Run
from torchdoctor.facts import Linux, SoLoad, Unknown
from torchdoctor.linux import answers, inventory, objects
from torchdoctor.linux.inventory import Layout
from torchdoctor.reading import linux as reader
from torchdoctor.snapshot import Snapshot

pytestmark = pytest.mark.skipif(lab.GCC is None, reason="no gcc to compile with")

DEPS = "site/torch/lib/libtorch_global_deps.so"
FOREIGN_SPARSE = Library("toolkit/libcusparse.so.12", soname="libcusparse.so.12", defines=("old",))
SHADOWED = Machinery(
    (
        *but(SPARSE, defines=("cusparseNew",)),
        FOREIGN_SPARSE,
        Library(DEPS, soname="libtorch_global_deps.so", needs=(CUDART,), runpath=WRITTEN),
        Library(
            "site/torch/_C.so",
            needs=(SPARSE,),
            uses=("cusparseNew",),
            runpath=WRITTEN.replace("/../../", "/../"),
        ),
    ),
    library_path="@/toolkit",
)


def record(machinery: Machinery, root: Path, **changes: object) -> dict[str, object]:
    """Return the record of *machinery*, as it comes out of a snapshot."""
    torch_start.build(machinery, root)
    site = root / "site"
    text = subprocess.run(
        [torch_start.interpreter(), "--help"], capture_output=True, text=True, check=False
    ).stdout
    known: dict[str, object] = {
        "program": str(Path(sys.executable).resolve()),
        "variables": {"LD_LIBRARY_PATH": machinery.library_path.replace("@", str(root))}
        if machinery.library_path
        else {},
        "loaded": (),
        "path": (str(site),),
        "torch": str(site / "torch"),
        "release": "2.9.0",  # the last that does not load every wheel before torch._C
        "cuda": machinery.cuda,
        "help": text,
        "cwd": str(root),
        "prefix": str(site),
    }
    layout = Layout(**known | changes)  # type: ignore[arg-type]
    taken: dict[str, object] = json.loads(json.dumps(inventory.take(layout)))
    return taken


def facts(taken: Mapping[str, object]) -> Linux:
    return Linux(**answers.of(taken))  # type: ignore[arg-type]


def of_torch(linux: Linux) -> tuple[SoLoad, SoLoad]:
    assert isinstance(linux.torch, SoLoad)
    assert isinstance(linux.without, SoLoad)
    return linux.torch, linux.without


@pytest.mark.parametrize("name", MACHINERIES)
def test_the_record_leads_to_what_the_files_lead_to(name: str, tmp_path: Path) -> None:
    release, _ = source()
    machinery = MACHINERIES[name]
    torch_load, _ = of_torch(facts(record(machinery, tmp_path, release=release)))
    said = torch_start.predicted(machinery, tmp_path, release)
    assert torch_load.message == (said.problem.message if said.problem else "")


def test_a_foreign_library_is_named_with_its_variable_and_what_would_serve(tmp_path: Path) -> None:
    linux = facts(record(SHADOWED, tmp_path))
    load, without = of_torch(linux)
    assert (load.kind, load.place) == ("symbol", "LD_LIBRARY_PATH")
    assert load.culprit == str(tmp_path / "toolkit/libcusparse.so.12")
    assert load.instead == str(tmp_path / SPARSE)
    assert load.names == ("cusparseNew",)
    assert load.asks == str(tmp_path / "site/torch/_C.so")
    assert load.message.endswith("_C.so: undefined symbol: cusparseNew")
    assert without.loads
    assert isinstance(linux.steered, tuple)
    (steered,) = linux.steered
    assert (steered.name, steered.how) == ("libcusparse.so.12", "LD_LIBRARY_PATH")


def test_the_message_of_a_symbol_names_the_version_that_it_is_wanted_in(tmp_path: Path) -> None:
    own, foreign, deps, extension = SHADOWED.libraries[-4:]
    versioned = replace(own, versions=("libcusparse.so.12",))
    others = SHADOWED.libraries[:-4]
    machinery = replace(SHADOWED, libraries=(*others, versioned, foreign, deps, extension))
    load, _ = of_torch(facts(record(machinery, tmp_path)))
    assert load.names == ("cusparseNew",)
    assert load.message.endswith("_C.so: undefined symbol: cusparseNew, version libcusparse.so.12")


def test_a_variable_that_leads_to_nothing_steers_nothing(tmp_path: Path) -> None:
    linux = facts(record(replace(SHADOWED, library_path="@/none"), tmp_path))
    assert of_torch(linux)[0].loads
    assert linux.steered == ()


EXTENSION = Library("site/ext/_ext.so", needs=("site/torch/lib/libc10.so",), uses=("at_add",))
C10 = Library("site/torch/lib/libc10.so", soname="libc10.so", defines=("at_add",))


def with_extension(c10: Library, *more: Library) -> Machinery:
    both = f"{WRITTEN}:$ORIGIN"
    libraries = (*SITE, c10, Library(DEPS, "libtorch_global_deps.so", (CUDART, c10.path), both))
    found = Library("site/torch/_C.so", None, (c10.path,), "$ORIGIN/lib")
    return Machinery((*libraries, found, EXTENSION, *more))


def installed(root: Path, name: str = "my-ext", *files: str, wants: str = "torch") -> None:
    info = root / "site" / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {wants}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    rows = "".join(f"{f},sha256=x,1\n" for f in files)
    (info / "RECORD").write_text(rows, encoding="utf-8")


@pytest.mark.parametrize(("offers", "kind"), [(("at_add",), ""), (("at_sub",), "symbol")])
def test_an_extension_is_judged_by_the_symbols_of_this_torch(
    offers: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    installed(tmp_path, "my-ext", "ext/_ext.so", "ext/__init__.py")
    installed(tmp_path, "other", "other/x.so", wants="numpy")
    machinery = with_extension(replace(C10, defines=offers))
    linux = facts(record(machinery, tmp_path))
    assert of_torch(linux)[0].loads
    assert isinstance(linux.extensions, dict)
    ((name, (load,)),) = linux.extensions.items()
    assert (name, load.kind) == ("my-ext", kind)
    assert load.names == (("at_add",) if kind else ())


def test_a_symbol_of_another_file_of_the_package_is_not_missing(tmp_path: Path) -> None:
    installed(tmp_path, "my-ext", "ext/_ext.so", "ext/libown.so")
    own = Library("site/ext/libown.so", needs=(C10.path,), defines=("at_add",))
    machinery = with_extension(replace(C10, defines=()), own)
    linux = facts(record(machinery, tmp_path))
    assert isinstance(linux.extensions, dict)
    assert all(load.loads for load in linux.extensions["my-ext"])


def test_a_file_that_somebody_built_into_the_folder_counts(tmp_path: Path) -> None:
    own = replace(EXTENSION, path="site/mine.cpython-311-x86_64-linux-gnu.so")
    machinery = with_extension(replace(C10, defines=()), own)
    linux = facts(record(machinery, tmp_path))
    assert isinstance(linux.extensions, dict)
    assert {n: [x.kind for x in loads] for n, loads in linux.extensions.items()} == {
        "mine": ["symbol"]
    }


def test_files_that_want_an_executable_stack_are_told(tmp_path: Path) -> None:
    loose = replace(C10, flags=("-Wl,-z,execstack",))
    linux = facts(record((with_extension(loose)), tmp_path))
    assert linux.stacks == (str(tmp_path / C10.path),)


def test_without_torch_the_c_library_is_told_alone(tmp_path: Path) -> None:
    linux = facts(record(Machinery(SITE[:1]), tmp_path, torch=None))
    assert isinstance(linux.glibc, str)
    assert linux.glibc.startswith("2.")
    assert isinstance(linux.torch, Unknown)


def test_a_release_before_the_table_is_unknown(tmp_path: Path) -> None:
    linux = facts(
        record(MACHINERIES["the wheels are found by DT_RPATH"], tmp_path, release="1.4.0")
    )
    assert isinstance(linux.torch, Unknown)
    assert "1.4.0" in linux.torch.reason


def test_a_record_is_small(tmp_path: Path) -> None:
    assert len(json.dumps(record(SHADOWED, tmp_path))) < 20_000


def many_missing(root: Path, *, own: tuple[str, ...]) -> dict[str, object]:
    """Return the record of an extension that asks for a hundred symbols torch does not have.

    Another file of its package has *own* of them.
    """
    installed(root, "my-ext", "ext/_ext.so", "ext/libown.so")
    names = tuple(f"at_{number:03}" for number in range(100))
    lib = Library("site/ext/libown.so", needs=(C10.path,), defines=own)
    one = replace(EXTENSION, uses=names)
    machinery = with_extension(C10, lib)
    libraries = (*(lib for lib in machinery.libraries if lib is not EXTENSION), one)
    return record(replace(machinery, libraries=libraries), root)


def symbols(taken: Mapping[str, object]) -> int:
    entries = taken["objects"]
    assert isinstance(entries, dict)
    return max(len(entry.get("symbols", ())) for entry in entries.values())


def test_of_many_missing_symbols_those_stay_that_are_told(tmp_path: Path) -> None:
    taken = many_missing(tmp_path, own=())
    short = answers.shortened(taken)
    assert (symbols(taken), symbols(short)) == (100, answers.MOST_SYMBOLS)
    assert answers.of(short) == answers.of(taken)
    linux = facts(short)
    assert isinstance(linux.extensions, dict)
    (missing,) = (load for load in linux.extensions["my-ext"] if not load.loads)
    assert len(missing.names) == answers.MOST_NAMES


def test_all_missing_symbols_stay_where_fewer_answer_otherwise(tmp_path: Path) -> None:
    taken = many_missing(tmp_path, own=tuple(f"at_{number:03}" for number in range(90)))
    assert answers.shortened(taken) is taken
    assert symbols(taken) == 100


def test_a_record_of_few_missing_symbols_stays_as_it_is(tmp_path: Path) -> None:
    taken = record(SHADOWED, tmp_path)
    assert answers.shortened(taken) is taken


def test_a_preloaded_name_that_the_cache_serves_is_found_again(tmp_path: Path) -> None:
    name = "libanl.so.1"  # of glibc; nothing here needs it
    variables = {"LD_PRELOAD": name}
    taken = record(MACHINERIES["the wheels are found by DT_RPATH"], tmp_path, variables=variables)
    steered = facts(taken).steered
    assert isinstance(steered, tuple)
    assert [(row.name, row.how) for row in steered] == [(name, "LD_PRELOAD")]
    table = taken["cache"]
    assert isinstance(table, dict)
    assert table[name] in taken["files"]  # type: ignore[operator]


def test_the_loader_of_musl_is_not_taken_for_this_one(tmp_path: Path) -> None:
    program = Library("program", flags=("-Wl,-dynamic-linker=/lib/ld-musl-x86_64.so.1",))
    lab.build(Arrangement((), (), program=program), tmp_path)
    with pytest.raises(inventory.NotGlibc):
        record(Machinery(SITE[:1]), tmp_path, program=str(tmp_path / "program"))


# ---- reading ----------------------------------------------------------------------------------


def run(**data: object) -> dict[str, Run]:
    return {"linux files": Run((), "answered", data=data)}


def test_a_spoiled_record_is_unknown_and_says_why(tmp_path: Path) -> None:
    taken = record(SHADOWED, tmp_path)
    rng = random.Random(4)  # noqa: S311 - the same every time
    values: list[object] = [None, 1, "x", [], {}, [1], {"a": 1}, True, -1]
    for key in taken:
        for value in values:
            found = reader.read(run(record=taken | {key: value}))
            assert isinstance(found["linux"], Linux | Unknown), (key, value)
    for _ in range(200):
        entry = rng.choice(list(taken["objects"].values()))  # type: ignore[attr-defined]
        key = rng.choice([*entry, "needed", "defined", "wants"])
        old = entry.get(key)
        entry[key] = rng.choice(values)
        assert isinstance(reader.read(run(record=taken))["linux"], Linux | Unknown)
        entry[key] = old
        if old is None:
            del entry[key]


def test_what_the_probe_could_not_do_is_the_reason() -> None:
    found = reader.read(run(errors={"record": "OSError: no"}))
    assert found["linux"] == Unknown("the shared objects were not read: OSError: no")
    assert reader.read({}) == {}
    only = {"linux": Run((), "failed", reason="exit code 1")}
    assert reader.read(only)["linux"] == Unknown("the shared objects were not read: exit code 1")


def test_a_record_comes_whole_through_redaction(tmp_path: Path) -> None:
    whole = record(SHADOWED, tmp_path)
    run = Run((), "answered", data={"record": whole})
    who = {"user": "nobody-here", "host": "no-such-host", "home": "/home/nobody-here"}
    sent = redact.redact(Snapshot("now", {"linux files": run}), **who).probes["linux files"]
    assert sent.data["record"] == whole
    some = (objects.symbol_hash(f"symbol_{number}") for number in range(5000))
    hashes = objects.SharedObject(defined=frozenset(some))
    packed = objects.to_json(hashes)
    assert max(map(len, str(packed["defined"]).split())) == 8
    assert redact.words(**who)(str(packed["defined"])) == packed["defined"]
    assert objects.from_json(packed) == hashes


def test_facts_of_a_file_come_back_as_they_went() -> None:
    own = objects.read(sys.executable)
    assert objects.from_json(json.loads(json.dumps(objects.to_json(own)))) == own
