"""A plug-in of pytest: no test runs in a broken environment, and a skip says why.

``pytest --torchdoctor`` (or ``-p torchdoctor``) looks once before the first test; where PyTorch
cannot work, the session ends with the diagnosis. The markers ``requires_gpus(n)`` and
``requires_nccl`` skip with the doctor's reason, with the option or without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torchdoctor.diagnosis import Look
    from torchdoctor.report.document import Report

LOOK = pytest.StashKey["Look"]()
WORKER = "torchdoctor"
"""The snapshot that the main process of pytest-xdist gives its workers."""
MARKERS = (
    "requires_gpus(n=1): skip where torch cannot use n GPUs, with torchdoctor's reason",
    "requires_nccl: skip where torch has no NCCL or no GPU for it, with torchdoctor's reason",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("torchdoctor", "diagnosis of PyTorch's environment")
    group.addoption(
        "--torchdoctor",
        action="store_true",
        help="look whether PyTorch works here before the first test; if not, say why and stop",
    )
    group.addoption(
        "--torchdoctor-expect",
        action="append",
        default=[],
        metavar="WHAT",
        help="the same, and these have to hold: cpu, cuda, cuda>=12.6, gpus>=2 …",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for line in MARKERS:
        config.addinivalue_line("markers", line)


def pytest_sessionstart(session: pytest.Session) -> None:
    """End the session before the first test when PyTorch cannot work."""
    config = session.config
    if not _asked(config) or hasattr(config, "workerinput"):
        return
    from torchdoctor import diagnosis  # noqa: PLC0415 - nobody pays who does not ask
    from torchdoctor.model import DoctorError  # noqa: PLC0415

    try:
        seen = diagnosis.expecting(_look(config).snapshot, _expected(config), live=True)
    except DoctorError as error:
        raise pytest.UsageError(f"--torchdoctor-expect: {error.message}") from None
    report = diagnosis.report(seen)
    if report.verdict == "broken":
        pytest.exit(_told(report), returncode=pytest.ExitCode.TESTS_FAILED)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401 - pytest-xdist has no types for it
    """Give a worker of pytest-xdist what was seen, so that it need not look again."""
    if _asked(node.config):
        from torchdoctor import snapshot  # noqa: PLC0415 - as above

        node.workerinput[WORKER] = snapshot.dump(_look(node.config).snapshot)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose markers ask for what is not here."""
    if (marker := item.get_closest_marker("requires_gpus")) is not None:
        wanted = marker.args[0] if marker.args else marker.kwargs.get("n", 1)
        if not isinstance(wanted, int) or wanted < 1:
            pytest.fail(f"requires_gpus({wanted!r}): give a number from 1 up", pytrace=False)
        _require_gpus(item.config, wanted)
    if item.get_closest_marker("requires_nccl") is not None:
        _require_nccl(item.config)


def _require_gpus(config: pytest.Config, wanted: int) -> None:
    from torchdoctor.facts import Runtime  # noqa: PLC0415 - as above

    runtime = _look(config).facts.runtime
    if not isinstance(runtime, Runtime) or len(runtime.devices) < wanted:
        pytest.skip(f"{wanted} GPU{'s' * (wanted > 1)} wanted: {_why(config, f'gpus>={wanted}')}")


def _require_nccl(config: pytest.Config) -> None:
    from torchdoctor.facts import Runtime  # noqa: PLC0415 - as above

    runtime = _look(config).facts.runtime
    if isinstance(runtime, Runtime) and runtime.nccl is None:
        pytest.skip(f"NCCL wanted: torch {runtime.version} has none")
    if not isinstance(runtime, Runtime) or not runtime.devices:
        pytest.skip(f"NCCL wanted, which needs a GPU: {_why(config, 'gpus>=1')}")


def _why(config: pytest.Config, expect: str) -> str:
    """Return in one line why *expect* does not hold here."""
    from torchdoctor import diagnosis  # noqa: PLC0415 - as above

    report = diagnosis.report(diagnosis.expecting(_look(config).snapshot, [expect], live=True))
    first = next((f.summary for f in report.findings if f.severity == "error"), None)
    return first or report.headline


def _look(config: pytest.Config) -> Look:
    """Return what was seen of the environment of this process; look only once."""
    from torchdoctor import diagnosis, snapshot  # noqa: PLC0415 - as above

    if LOOK not in config.stash:
        given = getattr(config, "workerinput", {}).get(WORKER)
        config.stash[LOOK] = (
            diagnosis.seen()
            if given is None
            else diagnosis.expecting(snapshot.parse(given.encode(), "snapshot"), (), live=True)
        )
    return config.stash[LOOK]


def _asked(config: pytest.Config) -> bool:
    named = config.known_args_namespace.plugins or ()
    return bool(config.option.torchdoctor or _expected(config) or "torchdoctor" in named)


def _expected(config: pytest.Config) -> list[str]:
    expected = config.option.torchdoctor_expect
    assert isinstance(expected, list)
    return expected


def _told(report: Report) -> str:
    from torchdoctor.report import text  # noqa: PLC0415 - as above

    said = text.render(report, width=100, colour=False, unicode=True)
    return f"torchdoctor: no test was run.\n\n{said}"
