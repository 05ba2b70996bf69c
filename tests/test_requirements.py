import pytest
from packaging.specifiers import SpecifierSet

from tests.checks.make import dist, interpreter, linux, windows
from torchdoctor import requirements

LINES = (
    "filelock",
    'setuptools; python_version >= "3.12"',
    'nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux" and platform_machine == "x86_64"',
    'optree>=0.13.0; extra == "optree"',
    "not a requirement at all",
)


def names(*found: object) -> list[str]:
    return [requirements.name(r) for r in found]  # type: ignore[arg-type]


def test_markers_are_those_of_the_machine_under_test() -> None:
    torch = dist("torch", "2.9.1", requires=LINES)
    here = requirements.environment(linux(), interpreter("3.12.4"))
    there = requirements.environment(windows(), interpreter("3.11.9"))
    assert names(*requirements.needed(torch, here)) == [
        "filelock",
        "setuptools",
        "nvidia-cublas-cu12",
    ]
    assert names(*requirements.needed(torch, there)) == ["filelock"]


def test_extras_are_followed_into_what_is_installed() -> None:
    torch = dist("torch", "2.13.0", requires=("cuda-toolkit[cublas]==13.0.2",))
    toolkit = dist(
        "cuda-toolkit", "13.0.2", requires=('nvidia-cublas==13.1.0.3.*; extra == "cublas"',)
    )
    marks = requirements.environment(linux(), interpreter())
    assert names(*requirements.closure(torch, [toolkit], marks)) == [
        "cuda-toolkit",
        "nvidia-cublas",
    ]
    assert names(*requirements.closure(torch, [], marks)) == ["cuda-toolkit"]


@pytest.mark.parametrize(
    ("specifier", "version"),
    [
        ("==13.1.1.3.*", "13.1.1.3"),
        ("<14,>=13.0.3", "13.0.3"),
        ("~=3.8.0", "3.8.0"),
        ("<2", "1.99"),
        ("", requirements.NEWEST),
        (">2,<1", "0"),
        ("!=3.14.1,>=5", "5"),
    ],
)
def test_the_version_that_a_specifier_brings(specifier: str, version: str) -> None:
    wanted = SpecifierSet(specifier)
    assert requirements.version_in(wanted) == version
    assert version == "0" or version in wanted


def test_what_is_no_version_is_neither_accepted_nor_refused() -> None:
    assert requirements.accepts(">=1", "custom build") is None
    assert requirements.accepts("nonsense", "1.0") is None
    assert requirements.accepts(">=2.0.0.dev0", "2.1.0a0") is True


def test_a_version_that_cannot_be_read_counts_as_met() -> None:
    asked = requirements.parse("filelock>=3")
    assert asked is not None
    assert not list(requirements.unmet([asked], [dist("filelock", "odd one")]))
    ((unmet, there),) = requirements.unmet([asked], [dist("filelock", "2.0")])
    assert unmet is asked
    assert there is not None
