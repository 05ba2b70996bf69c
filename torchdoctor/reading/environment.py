"""Read what the environment probe said into facts.

The answer may come from a file of unknown origin: a value of a wrong type makes the facts that
need it unknown, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from torchdoctor.facts import Record, Unknown
from torchdoctor.reading import shapes
from torchdoctor.reading.answer import Answer
from torchdoctor.reading.builds import build, local_modules, modules, owner_of
from torchdoctor.reading.interpreter import interpreter, search_path
from torchdoctor.reading.packages import conda_of, distributions, leftovers
from torchdoctor.reading.shapes import CannotReadError

if TYPE_CHECKING:
    from torchdoctor.child import Run


def read(run: Run) -> dict[str, object]:
    """Return the facts in what the environment probe answered, by the names of their fields.

    Never raises: what is not there or cannot be read is :class:`~torchdoctor.facts.Unknown`.
    """
    answer = Answer(run)
    return {name: _guarded(reader, answer) for name, reader in _READERS.items()}


def _guarded(reader: Callable[[Answer], object], answer: Answer) -> object:
    try:
        return answer.read(reader)
    except CannotReadError as reason:
        return Unknown(str(reason))
    except RecursionError:
        return Unknown("the environment probe's answer is nested too deeply")


def _variables(answer: Answer) -> Mapping[str, str]:
    said = shapes.mapping(answer.get("variables"), "variables")
    return MappingProxyType(shapes.texts(said.get("told"), "variables"))


def _records(answer: Answer) -> Mapping[str, Record]:
    """Return the comparisons; a distribution that could not be compared has none."""
    if answer.get("verify") == "none":
        raise CannotReadError("the files of packages were not to be compared with RECORD")
    said = answer.get("records")
    found: dict[str, Record] = {}
    owners = {name: owner_of(name, answer) for name in ("torch", "torchvision", "torchaudio")}
    for one in shapes.mappings(said, "records"):
        record = _record(one)
        if record is None:
            continue
        place = (one.get("folder"), one.get("metadata"))
        owner = owners.get(record.name)
        if record.name not in found or (owner and place == (owner.folder, owner.metadata)):
            found[record.name] = record
    if not found and not answer.complete():
        raise CannotReadError("the environment probe came to no RECORD in time")
    return MappingProxyType(found)


def _record(said: Mapping[str, object]) -> Record | None:
    what = "records"
    name = shapes.text(said.get("name"), what)
    if "problem" in said:
        return None
    numbers = {
        key: shapes.number(said.get(key), what)
        for key in ("files", "missing_count", "altered_count", "hashed")
    }
    if shapes.number(said.get("unreadable", 0), what) and not (
        numbers["missing_count"] or numbers["altered_count"]
    ):
        return None  # what was readable is whole, which says nothing of the rest
    return Record(
        name=name,
        missing=shapes.strings(said.get("missing"), what),
        altered=shapes.strings(said.get("altered"), what),
        **numbers,
    )


_READERS: Mapping[str, Callable[[Answer], object]] = {
    "interpreter": interpreter,
    "variables": _variables,
    "search_path": search_path,
    "distributions": distributions,
    "conda": conda_of,
    "leftovers": leftovers,
    "records": _records,
    "modules": modules,
    "local_modules": local_modules,
    "torch": build("torch"),
    "torchvision": build("torchvision"),
    "torchaudio": build("torchaudio"),
}
