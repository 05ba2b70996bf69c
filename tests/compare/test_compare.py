"""What differs between machines is told, what means nothing is not, and the odd ones are named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import torchdoctor
from tests.compare import machines
from torchdoctor import cli
from torchdoctor.compare import fleet, report, rules
from torchdoctor.compare.rows import rows
from torchdoctor.compare.sources import Source, files, read
from torchdoctor.compare.tally import MOST_VALUES, Tally
from torchdoctor.facts import Facts, Gpu, Limits, Platform, Unknown
from torchdoctor.report import as_json
from torchdoctor.report.document import Report
from torchdoctor.snapshot import Snapshot, parse
from torchdoctor.tables import load

FOLDER = Path(torchdoctor.__file__).parent
SCHEMAS = [
    json.loads((FOLDER / f"{name}.schema.json").read_text("utf-8"))
    for name in ("report", "compare")
]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["compare", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def compared(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = run(capsys, *words, "--format", "json")
    document = json.loads(out)
    jsonschema.validate(document, SCHEMAS[0])
    jsonschema.validate(document["data"]["compare"], SCHEMAS[1])
    return code, document


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return yesterday's and today's snapshot of a machine, on which something was changed."""
    folder = tmp_path_factory.mktemp("pair")
    before, after = machines.noisy(machines.base(), 1), machines.noisy(machines.base(), 2)
    machines.version(after, "numpy", "1.26.4")
    machines.variables(after)["NCCL_SOCKET_IFNAME"] = "eth7"
    return (
        machines.written(folder / "before.json", before),
        machines.written(folder / "after.json", after),
    )


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Return what is said of a file with the snapshots of thirty machines, some of them odd."""
    path = tmp_path_factory.mktemp("fleet") / "fleet.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in machines.fleet(30))
    return report.build(fleet.of(read([str(path)]), fleet.judge()))


def data_of(said: Report) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(as_json.render(said))["data"]["compare"]
    jsonschema.validate(made, SCHEMAS[1])
    return made


# ---- two machines --------------------------------------------------------------------------------


def test_two_snapshots_differ_in_what_was_changed_and_in_nothing_else(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = compared(capsys, *pair)
    said = document["data"]["compare"]["differences"]
    assert [row["fact"] for row in said] == ["variables.NCCL_SOCKET_IFNAME", "packages.numpy"]
    numpy = said[1]
    values = {value["value"]: value["machines"] for value in numpy["others"]}
    assert values == {"2.2.6": [pair[0]], "1.26.4": [pair[1]]}


def test_noise_that_differs_is_named_with_its_reason(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = compared(capsys, *pair)
    noise = {row["fact"]: row["why"] for row in document["data"]["compare"]["noise"]}
    assert "network.own_addresses" in noise
    assert "variables.RANK" in noise
    assert all(noise.values())


def test_a_finding_that_is_new_is_told_and_one_that_is_gone_too(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, document = compared(capsys, *pair)
    assert document["data"]["compare"]["findings"]["new"] == ["wrong-socket-ifname"]
    assert [finding["name"] for finding in document["findings"]] == ["wrong-socket-ifname"]
    _, back, _ = run(capsys, *reversed(pair))
    assert "Gone\n  wrong-socket-ifname: " in back
    assert "! wrong-socket-ifname" not in back


def test_the_exit_code_is_that_of_new_findings_or_of_differences(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    codes = [
        run(capsys, *pair, "--fail-on", word)[0] for word in ("error", "warning", "difference")
    ]
    assert codes == [0, 1, 1]
    assert run(capsys, *reversed(pair), "--fail-on", "warning")[0] == 0
    assert run(capsys, *reversed(pair), "--fail-on", "difference")[0] == 1
    assert run(capsys, *pair, "--no-findings", "--fail-on", "warning")[0] == 0


def test_a_snapshot_is_like_itself(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy.json"
    copy.write_bytes(Path(pair[0]).read_bytes())
    code, out, _ = run(capsys, pair[0], str(copy), "--fail-on", "difference")
    assert code == 0
    assert out.startswith("2 machines are alike in ")


def test_the_text_shows_before_and_after_under_a_heading(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, *pair)
    assert "\nNCCL and network\n" in out
    line = next(row for row in out.splitlines() if row.strip().startswith("packages.numpy"))
    assert line.endswith("2.2.6 -> 1.26.4")
    _, markdown, _ = run(capsys, *pair, "--format", "markdown")
    assert "#### NCCL and network" in markdown
    assert line.strip() in markdown


def test_pasted_reports_are_compared_as_snapshots_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text(
        "PyTorch version: 2.6.0+cu124\nOS: Ubuntu 22.04\nPython version: 3.11\n", "utf-8"
    )
    two.write_text(
        "PyTorch version: 2.5.1+cu124\nOS: Ubuntu 22.04\nPython version: 3.11\n", "utf-8"
    )
    _, document = compared(capsys, str(one), str(two))
    assert "torch.version" in [r["fact"] for r in document["data"]["compare"]["differences"]]


# ---- many ----------------------------------------------------------------------------------------


def test_the_odd_machines_of_many_are_named(gathered: Report) -> None:
    said = {row["fact"]: row for row in data_of(gathered)["differences"]}
    assert set(said) == set(machines.ODD)
    for fact in machines.ODD:
        odd = {f"rank {number}" for number in machines.odd_ones(fact, 30)}
        assert said[fact]["norm"]["count"] == 30 - len(odd)
        assert {name for value in said[fact]["others"] for name in value["machines"]} == odd


def test_what_would_matter_for_a_failure_comes_first(gathered: Report) -> None:
    said = [row["fact"] for row in data_of(gathered)["differences"]]
    assert said == ["variables.NCCL_SOCKET_IFNAME", "limits.shm", "packages.numpy"]


def test_machines_with_the_same_faults_stand_together(gathered: Report) -> None:
    clusters = data_of(gathered)["clusters"]
    assert sum(cluster["count"] for cluster in clusters) == 30
    having = [c for c in clusters if "wrong-socket-ifname" in c["findings"]]
    odd = machines.odd_ones("variables.NCCL_SOCKET_IFNAME", 30)
    assert {name for c in having for name in c["machines"]} == {f"rank {n}" for n in odd}
    assert "Machines with the same fault" in {detail.heading for detail in gathered.details}


def of_job(*versions: str, gathered: bool = True) -> Report:
    """Return what is said of machines that have these versions of NCCL."""
    made = []
    for number, version in enumerate(versions):
        one = machines.noisy(machines.base(), number)
        machines.version(one, "nvidia-nccl-cu12", version)
        if not gathered:
            del one["options"]["seat"]
        made.append(Source(f"m{number}", parse(json.dumps(one).encode(), "x")))
    return report.build(fleet.of(made, None))


def test_machines_of_one_job_need_the_same_nccl() -> None:
    (finding,) = of_job("2.27.5", "2.27.5", "2.21.5").findings
    assert (finding.name, finding.severity) == ("nccl-version-differs", "error")
    assert "2.27.5 on m0, m1; 2.21.5 on m2" in finding.summary
    assert of_job("2.27.5", "2.21.5").findings[0].name == "nccl-version-differs"
    assert of_job("2.27.5", "2.27.5").findings == ()
    assert of_job("2.27.5", "2.21.5", gathered=False).findings == ()


def test_a_folder_and_a_pattern_stand_for_their_files(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(Path(pair[0]).parent)
    assert files([folder]) == files([f"{folder}/*.json"]) == tuple(sorted(pair))
    assert run(capsys, folder)[0] == 0


def test_what_cannot_be_read_is_named_and_the_rest_is_used(
    pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_bytes(Path(pair[0]).read_bytes()[:3000])
    code, document = compared(capsys, *pair, str(cut))
    data = document["data"]["compare"]
    assert code == 0
    assert data["machines"] == 2
    assert [row["name"] for row in data["not_read"]] == [str(cut)]
    assert data["not_read_count"] == 1
    assert any(str(cut) in remark for remark in document["data"]["remarks"])
    assert run(capsys, *pair, str(cut), "--strict")[0] == 3


def test_a_line_that_is_no_snapshot_is_named_by_its_number(
    pair: tuple[str, str], tmp_path: Path
) -> None:
    lines = [Path(name).read_text("utf-8") for name in pair]
    many = tmp_path / "many.jsonl"
    many.write_text(f"{lines[0]}\n{{not one\n\n{lines[1]}\n", "utf-8")
    seen = list(read([str(many)]))
    assert [one.snapshot is not None for one in seen] == [True, False, True]
    assert seen[1].name == f"{many}:2"


@pytest.mark.parametrize("how", ["one", "none", "gone", "empty"])
def test_too_few_to_compare_is_refused_in_one_line(
    how: str, pair: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = tmp_path / "cut.json"
    cut.write_text('{"schema": "torchdoctor.snapshot/1", ', "utf-8")
    (tmp_path / "empty").mkdir()
    given = {
        "one": [pair[0]],
        "none": [str(cut), str(cut)],
        "gone": [pair[0], str(tmp_path / "gone.json")],
        "empty": [str(tmp_path / "empty")],
    }[how]
    code, out, err = run(capsys, *given)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_a_machine_that_tells_nothing_is_no_machine() -> None:
    seen = fleet.of([Source("x", Snapshot("now", {}))], None)
    assert (len(seen.names), seen.unread_count) == (0, 1)


# ---- counting ------------------------------------------------------------------------------------


def tally(*said: Facts) -> Tally:
    made = Tally()
    for facts in said:
        made.add(rows(facts))
    return made


def test_a_part_that_nobody_looked_for_is_no_difference() -> None:
    one = Facts(limits=Limits(shm=64), platform=Platform("linux", "x86_64"))
    other = Facts(platform=Platform("linux", "x86_64"))
    assert tally(one, other, other).differences() == ()


def test_a_part_that_could_not_be_told_is_one_difference_not_many() -> None:
    one, other = Facts(limits=Limits(shm=64)), Facts(limits=Unknown("asked in vain"))
    (difference,) = tally(one, one, other).differences()
    assert difference.fact == "limits"
    assert difference.outliers == (2,)
    assert difference.values[0].text == "not told"


def test_the_order_of_gpus_is_no_difference_and_their_number_is() -> None:
    first, second = Gpu("A100", index=0), Gpu("H100", index=1)
    assert tally(Facts(gpus=(first, second)), Facts(gpus=(second, first))).differences() == ()
    found = tally(Facts(gpus=(first, second)), Facts(gpus=(first,))).differences()
    assert {"gpus.count", "gpus.name"} <= {difference.fact for difference in found}


def test_where_an_environment_lies_is_no_difference() -> None:
    def lies_in(home: str) -> Facts:
        return Facts(variables={"PATH": f"{home}/bin", "TMPDIR": f"/tmp/{home[-2:]}"})  # noqa: S108

    assert tally(lies_in("/home/ann"), lies_in("/Users/bob")).differences() == ()
    assert tally(lies_in("/srv/a1"), lies_in("/srv/b2")).differences()


def test_what_most_say_is_found_among_any_number_of_values() -> None:
    made = Tally()
    for number in range(4 * MOST_VALUES):
        text = "usual" if number % 3 else f"rare {number}"
        made.add([("variables.X", text)])
    (difference,) = made.differences()
    assert difference.norm is not None
    assert difference.norm.text == "usual"
    told = sum(len(value.machines) for value in difference.values)
    assert len(difference.norm.machines) + told + difference.rare == 4 * MOST_VALUES


def test_without_a_majority_there_is_no_norm_and_nobody_is_out_of_line() -> None:
    made = Tally()
    for text in ("a", "b", "c"):
        made.add([("variables.X", text)])
    (difference,) = made.differences()
    assert difference.norm is None
    assert difference.outliers == ()


# ---- the rules, which are data -------------------------------------------------------------------


def test_every_rule_has_its_reason() -> None:
    table = load("compare")
    assert all(row["why"] for kind in ("noise", "kept", "value") for row in table[kind])
    assert table["subject"][-1]["facts"] == ["*"]


def test_every_rule_names_a_fact_that_there_is() -> None:
    table = load("compare")
    known = {"*", "packages", *Facts.__slots__}
    for kind in ("subject", "kept", "noise"):
        for row in table[kind]:
            assert {fact.partition(".")[0] for fact in row["facts"]} <= known, row


def test_a_flag_of_the_processor_that_kernels_are_chosen_by_is_no_noise() -> None:
    assert rules.noise("cpu.flags.avx2") is None
    assert rules.noise("cpu.flags.lahf_lm")


# ---- memory --------------------------------------------------------------------------------------

MEASURED = """
import sys
from torchdoctor import cli
code = cli.main(["compare", sys.argv[1], "--format", "json", "-o", sys.argv[2]])
said = open("/proc/self/status").read()
print(code, int(said.partition("VmHWM:")[2].split()[0]) >> 10)
"""


def measured(count: int, folder: Path) -> tuple[int, dict[str, Any]]:
    """Compare *count* machines in a process of its own; return its peak in MB, and the report."""
    path = folder / "fleet.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in machines.fleet(count))
    done = subprocess.run(
        (sys.executable, "-c", MEASURED, str(path), str(folder / "out.json")),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parent)},
    )
    code, peak = done.stdout.split()
    assert code in {"0", "1"}
    path.unlink()
    return int(peak), json.loads((folder / "out.json").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    "count", [pytest.param(300, marks=pytest.mark.sample), pytest.param(10_000)]
)
def test_any_number_of_snapshots_is_compared_in_bounded_memory(count: int, tmp_path: Path) -> None:
    peak, document = measured(count, tmp_path)
    assert peak < 300
    data = document["data"]["compare"]
    assert data["machines"] == count
    said = {row["fact"]: row for row in data["differences"]}
    assert set(said) == set(machines.ODD)
    for fact, row in said.items():
        assert row["norm"]["count"] == count - len(machines.odd_ones(fact, count))
