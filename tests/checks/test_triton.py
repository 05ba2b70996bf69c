from tests.checks.make import build, dist, linux, symptom, torch_and, windows
from tests.conftest import Judge, Planner
from torchdoctor.facts import Distribution

LINUX = '; platform_system == "Linux"'


def facts(
    triton: Distribution, pin: str = f"triton==3.7.1{LINUX}", **more: object
) -> dict[str, object]:
    torch = build("2.13.0+cu130", distribution=dist("torch", "2.13.0", requires=(pin,)))
    return torch_and(torch, triton, **more)


OTHER = dist("triton", "3.4.0")


def test_another_triton_is_a_warning(judge: Judge) -> None:
    (finding,) = judge(**facts(OTHER)).findings
    assert (finding.name, finding.severity) == ("triton-version-mismatch", "warning")
    assert "triton 3.4.0" in finding.summary
    assert finding.steps[0].commands.bash == ("/env/bin/python -m pip install triton==3.7.1",)


def test_the_triton_of_another_index_is_taken_from_there(judge: Judge) -> None:
    torch = build(
        "2.9.1+rocm6.4",
        distribution=dist("torch", "2.9.1+rocm6.4", requires=("pytorch-triton-rocm==3.5.1",)),
    )
    (finding,) = judge(**torch_and(torch, dist("pytorch-triton-rocm", "3.4.0"))).findings
    assert finding.steps[0].commands.bash[0].endswith("https://download.pytorch.org/whl/rocm6.4")


def test_the_pinned_triton_is_in_order(judge: Judge) -> None:
    assert judge(**facts(dist("triton", "3.7.1"))).status == "clear"


def test_a_compatible_release_is_in_order(judge: Judge) -> None:
    assert judge(**facts(dist("triton", "3.8.2"), "triton~=3.8.0")).status == "clear"


def test_a_cpu_build_asks_for_none(judge: Judge) -> None:
    assert judge(**torch_and(build("2.13.0+cpu"), OTHER)).status == "clear"


def test_on_windows_the_first_two_numbers_count(judge: Judge) -> None:
    good, old = dist("triton-windows", "3.7.1.post27"), dist("triton-windows", "3.5.1.post24")
    assert judge(**facts(good, platform=windows())).status == "clear"
    (finding,) = judge(**facts(old, platform=windows())).findings
    assert "triton-windows==3.7.*" in finding.steps[0].commands.bash[0]


def test_on_windows_a_torch_beyond_the_tables_is_unknown(judge: Judge) -> None:
    triton = dist("triton-windows", "3.7.1.post27")
    known = torch_and(build("2.99.0+cu130"), triton, platform=windows())
    assert judge(**known).status == "unknown"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


def test_the_pinned_triton_cures(cure: Planner) -> None:
    assert cure(**facts(OTHER)).verdict == "healthy"
    known = facts(dist("triton-windows", "3.5.1.post24"), platform=windows())
    assert cure(**known).verdict == "healthy"


SAID = symptom("triton-not-found")


def test_torch_compile_finds_no_triton_on_windows(judge: Judge, cure: Planner) -> None:
    known = {"torch": build("2.8.0+cu129"), "platform": windows(), "symptoms": (SAID,)}
    (finding,) = judge(**known).findings
    assert (finding.name, finding.severity) == ("triton-missing", "error")
    assert finding.steps[0].commands.bash == ("python -m pip install 'triton-windows==3.4.*'",)
    assert cure(**known).verdict == "healthy"


def test_torch_2_4_takes_the_first_triton_for_windows(judge: Judge) -> None:
    known = {"torch": build("2.4.1+cu124"), "platform": windows(), "symptoms": (SAID,)}
    (finding,) = judge(**known).findings
    assert "triton-windows==3.1.*" in finding.steps[0].commands.bash[0]


def test_where_no_triton_is_on_record_none_is_named(judge: Judge, cure: Planner) -> None:
    for torch in (build("2.3.1+cu121"), build("2.9.1+rocm6.4")):
        known = {"torch": torch, "platform": windows(), "symptoms": (SAID,)}
        (finding,) = judge(**known).findings
        assert not finding.steps[0].commands
        assert cure(**known).verdict == "healthy"


def test_on_linux_it_is_the_triton_that_torch_pins(judge: Judge) -> None:
    known = {"torch": build("2.13.0+cu130"), "platform": linux(), "symptoms": (SAID,)}
    (finding,) = judge(**known).findings
    assert finding.steps[0].commands.bash == ("python -m pip install triton==3.7.1",)


def test_a_triton_that_is_there_is_not_missing(judge: Judge) -> None:
    old = dist("triton-windows", "3.5.1.post24")
    (finding,) = judge(**facts(old, platform=windows(), symptoms=(SAID,))).findings
    assert finding.name == "triton-version-mismatch"
    good = dist("triton-windows", "3.7.1.post27")
    assert judge(**facts(good, platform=windows(), symptoms=(SAID,))).status == "clear"


def test_no_triton_and_no_message_is_no_fault(judge: Judge) -> None:
    known = torch_and(build("2.13.0+cu130"), platform=windows())
    assert judge(**known).status == "clear"


def test_the_label_of_a_version_tells_the_cuda_too(judge: Judge) -> None:
    triton = dist("triton-windows", "3.5.0.post21")
    torch = build("2.8.0+cu129", cuda=None)
    (finding,) = judge(**torch_and(torch, triton, platform=windows())).findings
    assert "==3.4.*" in finding.summary
