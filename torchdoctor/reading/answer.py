"""The answer of the environment probe, asked by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from torchdoctor.reading import shapes
from torchdoctor.reading.shapes import CannotReadError

if TYPE_CHECKING:
    from torchdoctor.child import Run

T = TypeVar("T")


class Answer:
    """The data of one run, asked by name."""

    def __init__(self, run: Run) -> None:
        """Ask *run*, whose data may have any shape."""
        self._data = run.data
        self._run = run
        self._known: dict[Callable[[Answer], object], object] = {}

    def get(self, name: str) -> object:
        """Return the piece called *name*; raises CannotReadError where there is none."""
        if name in self._data:
            return self._data[name]
        errors = self._data.get("errors")
        if isinstance(errors, Mapping) and (said := errors.get(name)):
            raise CannotReadError(f"looking at the {name} failed: {said}")
        raise CannotReadError(self._why_nothing(name))

    def errors(self) -> Mapping[str, str]:
        """Return what failed: name of what was looked at, and how."""
        return shapes.texts(self._data.get("errors") or {}, "errors")

    def raw(self, name: str) -> object:
        """Return the piece called *name* as it came; None when it did not."""
        return self._data.get(name)

    def read(self, reader: Callable[[Answer], T]) -> T:
        """Return what *reader* makes of this answer; it is asked once."""
        if reader not in self._known:
            self._known[reader] = reader(self)
        return cast("T", self._known[reader])

    def told(self, reader: Callable[[Answer], T]) -> T | None:
        """Return what *reader* makes of this answer; None also when it cannot be told."""
        try:
            return self.read(reader)
        except CannotReadError:
            return None

    def complete(self) -> bool:
        """Tell whether the probe came to its end."""
        return self._data.get("done") is True

    def _why_nothing(self, name: str) -> str:
        if self._run.reason:
            return f"the environment probe gave no {name}: {self._run.reason}"
        last = self._run.stderr.text.strip().rpartition("\n")[2][:200]
        if self._run.outcome != "answered" and last:
            return f"the environment probe gave no {name}; its last words: {last}"
        return f"the environment probe gave no {name}"
