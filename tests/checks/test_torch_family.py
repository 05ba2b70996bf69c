from tests.checks.make import (
    build,
    dist,
    imported,
    interpreter,
    linux,
    loader,
    raised,
    symptom,
    unloadable,
)
from tests.conftest import Judge, Planner

HERE = {"platform": linux(), "interpreter": interpreter()}


def trio(torch: str, vision: str | None = None, audio: str | None = None) -> dict[str, object]:
    return HERE | {
        "torch": build(torch),
        "torchvision": build(vision, "torchvision") if vision else None,
        "torchaudio": build(audio, "torchaudio") if audio else None,
    }


def test_companions_of_other_releases_are_aligned_in_one_command(judge: Judge) -> None:
    (finding,) = judge(**trio("2.13.0+cpu", "0.26.0+cpu", "2.10.0+cpu")).findings
    assert (finding.name, finding.severity) == ("trio-misaligned", "error")
    assert "torchvision 0.26.0+cpu (for torch 2.11.0)" in finding.summary
    (line,) = finding.steps[0].commands.bash
    assert "--no-deps torchvision==0.28.0+cpu torchaudio==2.11.0+cpu" in line


def test_torch_can_be_brought_to_them_instead(judge: Judge) -> None:
    (finding,) = judge(**trio("2.4.0+cpu", "0.20.1+cpu", "2.5.1+cpu")).findings
    assert "torch==2.5.1+cpu" in finding.steps[1].commands.bash[0]


def test_a_wheel_of_the_default_index_gets_companions_from_there(judge: Judge) -> None:
    plain = build("2.13.0+cu130", distribution=dist("torch", "2.13.0"))
    facts = trio("2.13.0+cu130", "0.26.0+cu130") | {"torch": plain}
    (finding,) = judge(**facts).findings
    assert finding.steps[0].commands.bash[0].endswith("--no-deps torchvision===0.28.0")


def test_the_error_of_the_import_is_in_the_evidence(judge: Judge) -> None:
    nms = raised("RuntimeError", "operator torchvision::nms does not exist", "torchvision")
    facts = trio("2.5.1+cpu", "0.21.0+cpu")
    (finding,) = judge(**facts, companion_trials={"torchvision": nms}).findings
    assert any("torchvision::nms" in e.value for e in finding.evidence)


def test_a_companion_that_imports_all_the_same_is_a_warning(judge: Judge) -> None:
    tried = {"torchaudio": imported(module="torchaudio")}
    (finding,) = judge(**trio("2.10.0+cpu", None, "2.11.0+cpu"), companion_trials=tried).findings
    assert finding.severity == "warning"


def test_two_patches_of_one_release_are_a_warning_until_they_fail(judge: Judge) -> None:
    facts = trio("2.5.0+cpu", "0.20.1+cpu")
    assert judge(**facts).findings[0].severity == "warning"
    nms = (symptom("nms-operator-missing", operator="torchvision::nms"),)
    assert judge(**facts, symptoms=nms).findings[0].severity == "error"


def test_a_release_is_in_order(judge: Judge) -> None:
    assert judge(**trio("2.5.1+cpu", "0.20.1+cpu", "2.5.1+cpu")).status == "clear"


def test_open_requirements_accept_newer_ones(judge: Judge) -> None:
    assert judge(**trio("2.14.1+cpu", "0.29.2+cpu", "2.11.0+cpu")).status == "clear"


def test_nightlies_of_one_night_are_in_order(judge: Judge) -> None:
    same = trio("2.16.0.dev20261101+cpu", "0.31.0.dev20261102+cpu")
    assert judge(**same).status == "clear"
    other = trio("2.16.0.dev20261101+cpu", "0.31.0.dev20260901+cpu")
    assert judge(**other).findings[0].name == "trio-misaligned"


def test_torch_alone_is_in_order(judge: Judge) -> None:
    assert judge(**trio("2.99.0+cpu")).status == "clear"


def test_what_is_newer_than_the_tables_is_unknown(judge: Judge) -> None:
    outcome = judge(**trio("2.99.0+cpu", "0.29.2+cpu"))
    assert outcome.status == "unknown"
    assert "torch 2.99.0+cpu is newer than the tables of 2026-11-29" in outcome.reason


def test_what_is_older_than_the_tables_is_unknown(judge: Judge) -> None:
    assert "no row" in judge(**trio("1.3.1", "0.4.2")).reason


def test_old_releases_fit_by_the_rule_of_their_time(judge: Judge) -> None:
    assert judge(**trio("1.9.0", "0.10.0", "0.9.0")).status == "clear"
    (found,) = judge(**trio("1.9.0", "0.7.0")).findings
    assert found.name == "trio-misaligned"


def test_what_is_newer_and_imports_is_in_order(judge: Judge) -> None:
    tried = {"torchvision": imported(module="torchvision")}
    outcome = judge(**trio("2.99.0+cpu", "0.40.0+cpu"), companion_trials=tried)
    assert outcome.status == "clear"


def test_aligning_cures(cure: Planner) -> None:
    plan = cure(**trio("2.13.0+cpu", "0.26.0+cpu", "2.10.0+cpu"))
    assert (plan.verdict, len(plan.steps)) == ("healthy", 1)


def test_a_message_of_torchvision_is_enough_where_no_version_is(
    judge: Judge, cure: Planner
) -> None:
    for said in (
        symptom("nms-operator-missing", "log"),
        symptom("name-missing", "log", module="torch.library", attribute="register_fake"),
        symptom("undefined-symbol", "log", family="torch", file="/s/torchvision/_C.so"),
    ):
        (finding,) = judge(symptoms=(said,)).findings
        assert (finding.name, finding.confidence) == ("trio-misaligned", "likely")
        assert "torchvision==" in finding.steps[0].commands.bash[0]
        assert cure(symptoms=(said,)).verdict == "healthy"
    other = symptom("name-missing", "log", module="torch", attribute="float8_e5m2")
    assert judge(symptoms=(other,)).status == "unknown"
    nms = symptom("nms-operator-missing", "log")
    assert judge(symptoms=(nms,), torch=build(), torchvision=None, torchaudio=None).findings == ()


def test_a_symbol_that_torch_has_not_decides_where_the_versions_do_not(judge: Judge) -> None:
    symbol = "_ZN2at4_ops10zeros_like4callERKNS_6TensorE"
    lacks = unloadable("symbol", names=(symbol,), message=f"_C.so: undefined symbol: {symbol}")
    unknown = trio("2.13.0+cpu", "0.99.0+cpu")
    assert judge(**unknown).status == "unknown"
    (finding,) = judge(**unknown, linux=loader(extensions={"torchvision": (lacks,)})).findings
    assert finding.name == "trio-misaligned"
    assert f"torchvision 0.99.0+cpu (it looks for {symbol})" in finding.summary
    assert any(e.fact == "linux.extensions.torchvision" for e in finding.evidence)


def test_files_that_load_and_symbols_of_others_decide_nothing(judge: Judge) -> None:
    fits = trio("2.13.0+cpu", "0.28.0+cpu")
    jpeg = unloadable("symbol", names=("jpeg_CreateDecompress",))
    for loads in ((), (jpeg,)):
        outcome = judge(**fits, linux=loader(extensions={"torchvision": loads}))
        assert outcome.status == "clear"
    lacks = unloadable("symbol", names=("_ZN3c104cuda9SetDeviceEa",))
    mixed = trio("2.13.0+cpu", "0.28.0+cu130")
    assert judge(**mixed, linux=loader(extensions={"torchvision": (lacks,)})).status == "clear"
