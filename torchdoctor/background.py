"""Do something while something else is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """A call in a thread of its own.

    What concurrent.futures has costs as much to import as a probe takes to start.
    """

    def __init__(self, call: Callable[[], T]) -> None:
        """Start *call* at once."""
        self._call = call
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self._error = error

    def result(self) -> T:
        """Wait for the end of the call, and return what it returned or raise what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]
