"""The blind cases: predicted first, run later; both are kept as they came.

python -m tests.windows.wine.kept predict    writes blind_predictions.json
python -m tests.windows.wine.kept blind      writes blind_results.json
python -m tests.windows.wine.kept record     writes results.json, of the cases that are not blind

What was predicted before the first run stays as it was: to predict again once the results are known
proves nothing. ``predict`` is for new cases.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from tests.windows.wine import box, cases
from tests.windows.wine.cases import HERE, Case, Layout, Outcome, Prediction
from windows.loader import normal

PREDICTIONS = HERE / "blind_predictions.json"
BLIND_RESULTS, RESULTS = HERE / "blind_results.json", HERE / "results.json"


def blind() -> list[Case]:
    """Return the blind cases."""
    return [Case.of(row) for row in cases.table("blind_cases")["case"]]


def as_data(outcome: Outcome, layout: Layout) -> dict[str, Any]:
    """Return *outcome* as an object for JSON, without where the case was laid out."""
    folder = normal(box.windows_path(layout.home.parent)) + "\\"
    return {**asdict(outcome), "msvcp": outcome.msvcp.removeprefix(folder)}


def predicted(case: Case, layout: Layout) -> dict[str, Any]:
    """Return what is predicted of *case*."""
    found: Prediction = cases.predict(case, layout)
    return {
        "windows": as_data(found.windows, layout),
        "wine": as_data(found.wine, layout),
        "kind": found.kind,
        "chain": list(found.chain),
        "translated": list(found.translated),
    }


def _each(these: Iterable[Case], what: Callable[[Case, Layout], object]) -> str:
    found = {}
    for case in these:
        with cases.laid_out(case) as layout:
            found[case.name] = what(case, layout)
        print(case.name, found[case.name], file=sys.stderr)  # noqa: T201 - it takes minutes
    return json.dumps(found, indent=1) + "\n"


def main(verb: str) -> None:
    """Predict or run."""
    if verb == "predict":
        PREDICTIONS.write_text(_each(blind(), predicted), "ascii")
        return
    with box.started() as wine:
        these, file = {
            "blind": (blind(), BLIND_RESULTS),
            "record": (cases.all_of_them(), RESULTS),
        }[verb]
        file.write_text(_each(these, partial(_shown, wine)), "ascii")


def _shown(wine: box.Box, case: Case, layout: Layout) -> dict[str, Any]:
    return as_data(cases.seen(cases.run(case, layout, wine)), layout)


if __name__ == "__main__":
    main(sys.argv[1])
