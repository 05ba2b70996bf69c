"""What the trial imports of torch, torchvision and torchaudio said, as facts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, cast

from torchdoctor.child import Run
from torchdoctor.facts import (
    NOT_COLLECTED,
    Device,
    ErrorText,
    ImportTrial,
    Runtime,
    Symptom,
    Unknown,
)

MODULES = ("torch", "torchvision", "torchaudio")
LONGEST_OUTPUT = 16 * 1024
LONGEST_TEXT = 64 * 1024
MOST_DEVICES = 64
MOST_NOTES = 64
"""Warnings, causes, errors of single questions."""

Outcome = Literal["imported", "raised", "died", "hung", "not-started"]
NTSTATUS_ERRORS = {0xC, 0xE}
"""The first digit of an exit status of Windows that stands for an exception."""

# What a shell or a launcher between us and the interpreter returns for a signal.
SHELL_SIGNALS = {
    132: "SIGILL",
    134: "SIGABRT",
    135: "SIGBUS",
    136: "SIGFPE",
    137: "SIGKILL",
    139: "SIGSEGV",
    143: "SIGTERM",
}


def read(runs: Mapping[str, Run]) -> dict[str, object]:
    """Return the facts trial, trial_after, companion_trials, runtime and symptoms.

    *runs* are the probes of a snapshot; those called "import torch" and so on are read. Raises
    nothing: what cannot be read is Unknown.
    """
    own = {name: run for name in MODULES if (run := runs.get(f"import {name}")) is not None}
    torch = own.get("torch")
    return {
        "trial": _trial("torch", torch) if torch and _sane(torch) else _no_trial(torch),
        "trial_after": _after(runs.get("import torch after")),
        "companion_trials": (
            {name: _trial(name, run) for name, run in own.items() if name != "torch" and _sane(run)}
            if own
            else NOT_COLLECTED
        ),
        "runtime": _runtime(torch) if torch else NOT_COLLECTED,
        "symptoms": (
            tuple(symptom for name, run in own.items() for symptom in _symptoms(name, run))
            if own
            else NOT_COLLECTED
        ),
    }


# ---- how the import ended ----------------------------------------------------------------------


def _trial(module: str, run: Run) -> ImportTrial:
    data = run.data
    outcome = _outcome(run)
    return ImportTrial(
        module=module,
        outcome=outcome,
        # What hung was waited for until the deadline, in whatever stage.
        seconds=run.seconds if outcome == "hung" else _seconds(data.get("seconds"), run.seconds),
        stage=_text(data, "stage") or "import",
        error=_error(data.get("error")),
        signal=_signal(run) if outcome == "died" else None,
        exit_code=run.exit_code if outcome == "died" else None,
        version=_text(data, "version"),
        file=_text(data, "file"),
        output=_ends(run.stderr.text, LONGEST_OUTPUT) or run.reason,
    )


def _after(run: Run | None) -> object:
    """Return the import of torch after other modules, by their names."""
    if run is None:
        return NOT_COLLECTED
    trial = _trial("torch", run)
    if not _sane(run) or trial.outcome == "not-started" or trial.stage.startswith("after"):
        return Unknown("what is imported before torch ended the process, or did not start")
    name = ", ".join(_asked(run.command))
    return {name: trial} if name else Unknown("which modules came before torch is not told")


def _asked(command: Sequence[str]) -> tuple[str, ...]:
    """Return the modules that the command asked for before torch."""
    try:
        options = json.loads(command[-1])
        return _texts(options.get("after"))
    except (ValueError, AttributeError, IndexError, RecursionError):
        return ()


def _sane(run: Run) -> bool:
    """Tell whether the answer says how the import ended, if it claims to be whole."""
    data = run.data
    whole = data.get("done") is True
    return not whole or data.get("imported") is True or isinstance(data.get("error"), Mapping)


def _no_trial(run: Run | None) -> Unknown:
    return Unknown("the answer of the import is damaged") if run else NOT_COLLECTED


def _outcome(run: Run) -> Outcome:
    """Tell how it ended; where a stage after the import did, the trial's ``stage`` names it."""
    if isinstance(run.data.get("error"), Mapping):
        return "raised"
    if run.data.get("done") is True:
        return "imported"
    if run.outcome == "timeout":
        return "hung"
    # No first line: it was the interpreter that did not start, not the import that failed.
    return "died" if run.outcome == "failed" and "stage" in run.data else "not-started"


def _signal(run: Run) -> str | None:
    code = run.exit_code
    if run.signal is not None or code is None:
        return run.signal
    if abs(code) >> 32 == 0 and (code & 0xFFFFFFFF) >> 28 in NTSTATUS_ERRORS:
        return f"0x{code & 0xFFFFFFFF:08X}"
    return SHELL_SIGNALS.get(code)


def _error(value: object) -> ErrorText | None:
    if not isinstance(value, Mapping):
        return None
    return ErrorText(
        type=_text(value, "type") or "an exception",
        message=_text(value, "message") or "",
        traceback=_text(value, "traceback") or "",
    )


def ending(trial: ImportTrial) -> str:
    """Return how the process ended, for a sentence: "was ended by SIGSEGV"."""
    if trial.outcome == "hung":
        return "did not come back"
    if trial.signal:
        return f"was ended by {trial.signal}"
    return f"ended with exit code {trial.exit_code} and no answer"


# ---- what torch says of the machine ------------------------------------------------------------


def _runtime(run: Run) -> Runtime | Unknown:
    data = run.data
    trial = _trial("torch", run)
    if data.get("imported") is not True:
        said = f"{trial.error.type}: {trial.error.message}" if trial.error else trial.outcome
        return Unknown(f"torch was not imported: {said[:300]}")
    if trial.version is None:
        return Unknown(f"torch.__version__: {_errors(data).get('version', 'not collected')}")
    cut_off = None if data.get("done") is True else f"{trial.stage}: torch {ending(trial)}"
    if "cuda_available" not in data and cut_off is None:
        return Unknown("what torch says of CUDA was not collected")
    errors = _errors(data)
    return Runtime(
        version=trial.version,
        cuda=_text(data, "cuda"),
        hip=_text(data, "hip"),
        available=data.get("cuda_available") is True,
        reason=None if data.get("cuda_available") is True else _reason(data, errors, cut_off),
        devices=_devices(data, cut_off),
        arch_list=_texts(data.get("arch_list")),
        cudnn=_cudnn(data.get("cudnn")),
        nccl=_nccl(data.get("nccl")),
        mps=_flag(data.get("mps")),
        xpu=_flag(data.get("xpu")),
        numpy=_numpy(data, errors, cut_off),
    )


def _reason(
    data: Mapping[str, object], errors: Mapping[str, str], cut_off: str | None
) -> str | None:
    """Return why CUDA is not available: an error before a warning, torch's words before ours."""
    warned = [text for stage, text in _warnings(data) if stage == "cuda"]
    said = [_text(data, "cuda_reason"), errors.get("cuda_available"), *warned, cut_off]
    return next((text for text in said if text), None)


def _devices(data: Mapping[str, object], cut_off: str | None) -> tuple[Device, ...]:
    found = []
    for index in range(MOST_DEVICES):
        said = data.get(f"device {index}")
        begun = cut_off is not None and data.get("stage") in (f"device {index}", f"kernel {index}")
        if not isinstance(said, Mapping) and not begun:
            break
        found.append(_device(index, said, _errors(data), cut_off if begun else None))
    return tuple(found)


def _device(index: int, value: object, errors: Mapping[str, str], cut_off: str | None) -> Device:
    said: Mapping[str, object] = value if isinstance(value, Mapping) else {}
    untried = errors.get(f"device {index}") or "not tried"
    return Device(
        index=index,
        name=_text(said, "name") or "",
        capability=_pair(said.get("capability")),
        memory=_count(said.get("memory")),
        kernel=cut_off or (_text(said, "kernel") if "kernel" in said else untried),
        gfx=_text(said, "gfx"),
    )


def _numpy(
    data: Mapping[str, object], errors: Mapping[str, str], cut_off: str | None
) -> str | None:
    said = data.get("numpy")
    if isinstance(said, Mapping):
        return _text(said, "from_numpy") or _text(said, "to_numpy")
    if cut_off is not None and data.get("stage") == "numpy":
        return cut_off
    return errors.get("numpy")


def _cudnn(value: object) -> str | None:
    """Return 90100 as 9.1.0, 8902 as 8.9.2: the format changed with cuDNN 9."""
    number = _count(value)
    if number is None:
        return None
    unit = 10_000 if number >= 10_000 else 1_000  # noqa: PLR2004 - 9.0.0 is 90000
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


def _nccl(value: object) -> str | None:
    """Return "2.27.5"; torch of old gave the number that NCCL has: 2708, later 22705."""
    if isinstance(value, str):
        return value[:40]
    number = _count(value)
    if number is None:
        return None
    unit = 10_000 if number >= 10_000 else 1_000  # noqa: PLR2004 - NCCL 2.9 made it longer
    return f"{number // unit}.{number % unit // 100}.{number % 100}"


# ---- known messages ----------------------------------------------------------------------------


def _symptoms(module: str, run: Run) -> Iterator[Symptom]:
    """Yield each message once for each trial, from the place that says most."""
    seen = set()
    for source, text in _texts_of(module, run):
        if not text:
            continue
        from torchdoctor.reading.traceback import symptoms  # noqa: PLC0415 - most say nothing

        for symptom in symptoms(text, source):
            key = (symptom.name, tuple(sorted(symptom.values.items())))
            if key not in seen:
                seen.add(key)
                yield symptom


def _texts_of(module: str, run: Run) -> Iterator[tuple[str, str]]:
    """Yield (where it was read, text)."""
    data = run.data
    here = f"import {module}"
    for text in _error_texts(data.get("error")):
        yield here, text
    for stage, text in _warnings(data):
        yield here if stage == "import" else _place(module, stage), text
    yield _place(module, "cuda"), _text(data, "cuda_reason") or ""
    numpy = data.get("numpy")
    if isinstance(numpy, Mapping):
        yield "torch and numpy", _text(numpy, "from_numpy") or ""
        yield "torch and numpy", _text(numpy, "to_numpy") or ""
    for name, text in _strings(data.get("errors")).items():
        yield _place(module, name), text
    for file, text in _strings(data.get("extensions")).items():
        yield f"{module}, {file}", text
    for index, device in enumerate(_devices(data, None)):
        yield f"torch.cuda, device {index}", device.kernel or ""
    yield f"output of {here}", run.stderr.text


def _error_texts(error: object) -> Iterator[str]:
    """Yield what an exception and each of its causes said, then the traceback."""
    if not isinstance(error, Mapping):
        return
    causes = error.get("causes")
    for one in [error, *(causes[:MOST_NOTES] if isinstance(causes, list) else [])]:
        if isinstance(one, Mapping):
            yield f"{_text(one, 'type')}: {_text(one, 'message')}"
    yield _text(error, "traceback") or ""


def _place(module: str, stage: str) -> str:
    if stage.startswith(("cuda", "device", "kernel", "arch_list")):
        return "torch.cuda"
    return "torch and numpy" if stage == "numpy" else f"{module}, {stage}"


def _warnings(data: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    for number in range(MOST_NOTES):
        said = data.get(f"warning {number}")
        if not isinstance(said, Mapping):
            return
        yield _text(said, "stage") or "import", _text(said, "text") or ""


def _errors(data: Mapping[str, object]) -> dict[str, str]:
    return _strings(data.get("errors"))


def _strings(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    pairs = [(k, v) for k, v in value.items() if isinstance(k, str) and isinstance(v, str)]
    return {k[:100]: v[:LONGEST_TEXT] for k, v in pairs[:MOST_NOTES]}


# ---- values out of JSON ------------------------------------------------------------------------


def _text(data: Mapping[str, object], key: str) -> str | None:
    value = data.get(key)
    return value[:LONGEST_TEXT] if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item[:100] for item in value[:100] if isinstance(item, str))


def _count(value: object) -> int | None:
    right = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return cast("int", value) if right else None


def _pair(value: object) -> tuple[int, int] | None:
    numbers = [_count(item) for item in value] if isinstance(value, list) else []
    match numbers:
        case [int(major), int(minor)]:
            return major, minor
    return None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _seconds(value: object, whole: float) -> float:
    """Return the time of the import alone, or of the whole run when it did not end."""
    right = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9  # noqa: PLR2004
    return float(cast("float", value)) if right else whole


def _ends(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n[...]\n{text[-most // 2 :]}"
