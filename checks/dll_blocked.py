r"""On Windows, nothing forbids the DLLs of torch to be loaded.

How it shows: ``[WinError 4551] An Application Control policy has blocked this file``,
``[WinError 225]`` (a virus scanner), ``[WinError 5] Access is denied``.

Why: the DLLs of torch are not signed. Smart App Control and Windows Defender Application Control
refuse unsigned code that they do not know; a virus scanner may hold a file back or remove it; a
folder that was copied from another user may be closed to this one. The number tells which.

Where no number was told, a policy that is in force is named only if the import failed, the files
are whole and fit each other, and nothing else was said: then it is one reason among others.

The fix is a rule for the folder of torch by whoever runs the policy. Smart App Control has no
exceptions, and once it is off, it cannot be switched on again without setting Windows up anew.

Sources: https://github.com/pytorch/pytorch/issues/182008,
https://learn.microsoft.com/windows/apps/develop/smart-app-control/overview. Windows itself was not
at hand: these numbers are read from messages only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchdoctor import dlls, effects, steps, trials
from torchdoctor.facts import DllLoad, ImportTrial, Platform, Symptom, Unknown, Windows
from torchdoctor.model import Evidence, Finding, Step

FAMILY = "system"
FINDS = ("app-control-blocked", "antivirus-blocked", "dll-access-denied")

_NAMES = {"4551": FINDS[0], "225": FINDS[1], "5": FINDS[2]}
_SAID = {
    "4551": "An application control policy of Windows refuses {file}, which is not signed",
    "225": "A virus scanner refuses {file}",
    "5": "This user may not open {file}",
}


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
    trial: ImportTrial | Unknown,
) -> Iterator[Finding]:
    """Read the number; without one, the state of the policies."""
    if dlls.elsewhere(platform):
        return
    failed = dlls.told(symptoms, trial, *_NAMES)
    policy = windows.policy if isinstance(windows, Windows) else Unknown()
    known = {} if isinstance(policy, Unknown) else policy
    states = [Evidence(f"windows.policy.{n}", v, "the registry") for n, v in known.items()]
    if failed is None:
        if _refused_in_silence(windows, symptoms, trial) and (force := _in_force(known)):
            yield Finding(
                "app-control-blocked",
                "error",
                f"import torch fails although its DLLs are whole and fit each other, and {force} "
                "is in force: it may refuse them, as they are not signed.",
                (*states[:2], *trials.evidence(trial)),
                tuple(_steps("4551", smart=known.get("smart-app-control") == "on")),
                confidence="possible",
            )
        return
    yield Finding(
        _NAMES[failed.code],
        "error",
        f"{_SAID[failed.code].format(file=failed.file or 'a DLL of torch')} "
        f"(WinError {failed.code}).",
        (failed.evidence, *states[:2], *trials.evidence(trial)),
        tuple(_steps(failed.code, smart=known.get("smart-app-control") == "on")),
    )


def _refused_in_silence(
    windows: Windows | Unknown | None,
    symptoms: tuple[Symptom, ...],
    trial: ImportTrial | Unknown,
) -> bool:
    """Tell whether a load failed without a number where the files give no reason for it."""
    if not isinstance(windows, Windows) or not isinstance(windows.torch, DllLoad):
        return False
    error = trial.error if isinstance(trial, ImportTrial) else None
    of_loader = error is not None and error.type in ("ImportError", "OSError")
    numbered = any(s.name == "winerror-dll" and s.values.get("code") for s in symptoms)
    return trials.failed(trial) and of_loader and windows.torch.loads and not numbered


def _in_force(policy: Mapping[str, str]) -> str:
    if policy.get("smart-app-control") == "on":
        return "Smart App Control"
    enforced = policy.get("code-integrity") == "enforced"
    return "a code integrity policy" if enforced else ""


def _steps(code: str, *, smart: bool) -> Iterator[Step]:
    prefix = 'python -c "import sys; print(sys.prefix)"'
    if code == "4551":
        what = (
            "Use torch under WSL or on another machine, or switch Smart App Control off for good"
            if smart
            else "Have the folder of torch allowed in the application control policy"
        )
        yield dlls.by_hand(
            "allow-torch-dlls",
            what,
            why="The DLLs of torch are not signed, and the policy admits signed code only.",
            effect=effects.untried,
            cost=steps.BUILD,
            admin=True,
        )
    elif code == "225":
        yield dlls.by_hand(
            "exclude-torch-from-scan",
            "Restore the file in the virus scanner, and exclude the folder of the environment",
            why="What the scanner holds back or removes cannot be loaded.",
            powershell=(f"Add-MpPreference -ExclusionPath ({prefix})",),
            effect=effects.untried,
            admin=True,
        )
    else:
        yield dlls.by_hand(
            "grant-access-to-torch",
            "Give this user the right to read the folder of the environment",
            why="The file belongs to another user, or its rights were copied from elsewhere.",
            powershell=(f'icacls ({prefix}) /grant "${{env:USERNAME}}:(OI)(CI)RX" /T',),
            effect=effects.untried,
        )
