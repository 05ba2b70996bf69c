"""A fixture for tests of training code: ``assert_sharded``.

pytest finds it where torchdoctor is installed; ``-p torchdoctor.training.pytest_plugin`` does
otherwise. Nothing but pytest is imported before a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.fixture
def assert_sharded() -> Callable[..., None]:
    """Return a function that fails the test unless every rank gets its share of a loader.

    It takes a loader, or a function of rank and world size that makes one, and what
    ``torchdoctor.training.sanitize`` takes: world_size, evaluation, accelerator.
    """

    def check(loader: object, **options: object) -> None:
        __tracebackhide__ = True
        from torchdoctor.training import LoaderError, sanitize  # noqa: PLC0415 - only this pays

        try:
            sanitize(loader, **options)  # type: ignore[arg-type]
        except LoaderError as fault:
            rows = [f"{f.severity} {f.name}: {f.summary}" for f in fault.findings]
            pytest.fail("\n".join(rows), pytrace=False)

    return check
