r"""On Windows, OpenCV finds Media Foundation, which N editions and servers are without.

How it shows: ``ImportError: DLL load failed while importing cv2: The specified module could not be
found``, on Windows N, KN, Server Core, or in a container. torch is not concerned, but a program
that imports both is often taken for a broken torch.

Why: cv2 needs MF.dll, MFPlat.DLL and MFReadWrite.dll of Windows' Media Foundation.

The fix is the Media Feature Pack (Settings, Optional features), on a server the feature
Server-Media-Foundation, or opencv-python-headless of a release that does not need it.

Sources: https://github.com/opencv/opencv-python/issues/185, the import table of opencv-python
5.0.0.93. Windows itself was not at hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchdoctor import dlls, effects
from torchdoctor.facts import Platform, Symptom, Unknown, Windows
from torchdoctor.model import Evidence, Finding

FAMILY = "system"
FINDS = ("media-feature-pack-missing",)


def check(
    symptoms: tuple[Symptom, ...],
    platform: Platform | Unknown,
    windows: Windows | Unknown | None,
) -> Iterator[Finding]:
    """Read the message about cv2, and which edition of Windows it is."""
    told = [
        s
        for s in symptoms
        if s.name == "winerror-dll"
        and s.values.get("module") == "cv2"
        and s.values.get("code") == "126"
    ]
    if not told or dlls.elsewhere(platform):
        return
    edition = windows.edition if isinstance(windows, Windows) else Unknown()
    name = edition if isinstance(edition, str) else ""
    sure = _lacks(name)
    if name and not sure:
        return
    server = "server" in name.lower()
    yield Finding(
        "media-feature-pack-missing",
        "warning",
        "cv2 needs Media Foundation"
        + (f", and Windows {name} has none." if sure else ", which some Windows do not have."),
        (
            Evidence("symptoms", told[0].text.strip()[:300], told[0].source),
            *((Evidence("windows.edition", name, "the registry"),) if sure else ()),
        ),
        (
            dlls.by_hand(
                "install-media-foundation",
                "Add the feature Server-Media-Foundation"
                if server
                else "Add the Media Feature Pack in the optional features of Windows",
                why="It brings the DLLs that cv2 links to.",
                powershell=("Install-WindowsFeature Server-Media-Foundation",) if server else (),
                effect=effects.untried,
                admin=True,
            ),
        ),
        confidence="likely" if sure else "possible",
    )


def _lacks(edition: str) -> bool:
    first, _, kind = edition.partition(" ")
    return first.endswith("N") or "Core" in kind or "Nano" in kind
