"""The keys of a checkpoint are those of the model that loads it, without a wrapper's prefix.

How it shows: "Error(s) in loading state_dict": every missing key is an unexpected one without
``module.`` in front, or with it.

Why: DistributedDataParallel and DataParallel hold the model as ``.module``, so that the wrapper's
state_dict has ``module.`` before each name; torch.compile does the same with ``_orig_mod.``. Saved
from the wrapper and loaded into a bare model (or the reverse), no name fits; from wrapper to
wrapper it works.

Neighbours: keys that differ in anything else (other layers, other sizes) are another model or
another version of it: then nothing is found here.

The fix is ``model.module.state_dict()`` when saving; for a file that is there,
``torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")`` before loading.

Sources: https://github.com/aks2203/deep-thinking/issues/5,
https://github.com/pytorch/pytorch/issues/3805, torch/nn/modules/utils.py
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import distributed_steps as distributed
from torchdoctor.facts import Symptom
from torchdoctor.model import Confidence, Finding

FAMILY = "use"
FINDS = ("module-prefix-keys",)

PREFIXES = {"module.": "DistributedDataParallel or DataParallel", "_orig_mod.": "torch.compile"}
CONSUME = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"


def check(symptoms: tuple[Symptom, ...]) -> Iterator[Finding]:
    """Compare the first missing key with the first unexpected one."""
    for said in distributed.told(symptoms, "state-dict-keys"):
        missing = said.values.get("missing", "")
        unexpected = said.values.get("unexpected", "")
        for prefix, wrapper in PREFIXES.items():
            saved = unexpected.startswith(prefix) and not missing.startswith(prefix)
            wanted = missing.startswith(prefix) and not unexpected.startswith(prefix)
            if not (saved or wanted):
                continue
            both = bool(missing and unexpected)
            if both and missing.removeprefix(prefix) != unexpected.removeprefix(prefix):
                continue
            yield _finding(said, prefix, wrapper, saved=saved, certain="certain" if both else None)
            return


def _finding(
    said: Symptom, prefix: str, wrapper: str, *, saved: bool, certain: Confidence | None
) -> Finding:
    key = said.values.get("unexpected" if saved else "missing", "")
    summary = (
        f"The checkpoint was saved from a model inside {wrapper}, so its keys begin with"
        f" {prefix!r} ({key}), and those of this model do not."
        if saved
        else f"This model is inside {wrapper}, so its keys begin with {prefix!r} ({key}), and those"
        " of the checkpoint do not."
    )
    title = (
        f"Strip the prefix before loading: {CONSUME}(state, {prefix!r}); and save"
        " model.module.state_dict() from now on"
        if saved
        else "Load the checkpoint into the bare model, before it is wrapped (or into .module)"
    )
    return Finding(
        "module-prefix-keys",
        "error",
        summary,
        distributed.seen(said),
        (
            distributed.in_script(
                "strip-key-prefix" if saved else "load-before-wrapping",
                title,
                why="Apart from the prefix the keys are the same.",
                settles=("state-dict-keys",),
            ),
        ),
        confidence=certain or "possible",
    )
