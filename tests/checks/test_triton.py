from tests.checks.make import build, dist, interpreter, linux, windows
from tests.conftest import Judge, Planner

LINUX = '; platform_system == "Linux"'


def facts(triton: object, pin: str = f"triton==3.7.1{LINUX}", **more: object) -> dict[str, object]:
    torch = build("2.13.0+cu130", distribution=dist("torch", "2.13.0", requires=(pin,)))
    known: dict[str, object] = {
        "platform": linux(),
        "interpreter": interpreter(),
        "torch": torch,
        "distributions": (torch.distribution, triton),
    }
    return known | more


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
    (finding,) = judge(**facts(dist("pytorch-triton-rocm", "3.4.0"), torch=torch)).findings
    assert finding.steps[0].commands.bash[0].endswith("https://download.pytorch.org/whl/rocm6.4")


def test_the_pinned_triton_is_in_order(judge: Judge) -> None:
    assert judge(**facts(dist("triton", "3.7.1"))).status == "clear"


def test_a_compatible_release_is_in_order(judge: Judge) -> None:
    assert judge(**facts(dist("triton", "3.8.2"), "triton~=3.8.0")).status == "clear"


def test_a_cpu_build_asks_for_none(judge: Judge) -> None:
    torch = build("2.13.0+cpu")
    assert judge(**facts(OTHER, torch=torch)).status == "clear"


def test_on_windows_the_first_two_numbers_count(judge: Judge) -> None:
    good, old = dist("triton-windows", "3.7.1.post27"), dist("triton-windows", "3.5.1.post24")
    assert judge(**facts(good, platform=windows())).status == "clear"
    (finding,) = judge(**facts(old, platform=windows())).findings
    assert "triton-windows==3.7.*" in finding.steps[0].commands.bash[0]


def test_on_windows_a_torch_beyond_the_tables_is_unknown(judge: Judge) -> None:
    triton = dist("triton-windows", "3.7.1.post27")
    known = facts(triton, platform=windows(), torch=build("2.99.0+cu130"))
    assert judge(**known).status == "unknown"


def test_what_is_installed_must_be_known(judge: Judge) -> None:
    assert judge(torch=build()).status == "unknown"


def test_the_pinned_triton_cures(cure: Planner) -> None:
    assert cure(**facts(OTHER)).verdict == "healthy"
    known = facts(dist("triton-windows", "3.5.1.post24"), platform=windows())
    assert cure(**known).verdict == "healthy"
